package io.github.nccl4j.header;

import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Splits C source into tokens, after joining continued lines. */
final class Lexer {
    private static final Pattern CONTINUED = Pattern.compile("\\\\[ \\t]*\\r?\\n");
    private static final Pattern TOKEN = Pattern.compile("""
            (?<space>[\\x20\\t\\r\\f]+)
            |(?<newline>\\n)
            |//(?<line>[^\\n]*)
            |/\\*(?<block>.*?)\\*/
            |(?<string>"(?:[^"\\\\\\n]|\\\\.)*"|'(?:[^'\\\\\\n]|\\\\.)*')
            |(?<word>[A-Za-z_$][A-Za-z_0-9$]*)
            |(?<number>\\.?[0-9](?:[eEpP][+-]|[A-Za-z0-9_.])*)
            |(?<mark><<|>>|<=|>=|==|!=|&&|\\|\\||\\#\\#|.)""", Pattern.COMMENTS | Pattern.DOTALL);

    private Lexer() {}

    static List<Token> tokens(String source) {
        Matcher matcher = TOKEN.matcher(CONTINUED.matcher(source).replaceAll(" "));
        List<Token> tokens = new ArrayList<>();
        boolean spaced = false;
        while (matcher.find()) {
            if (matcher.group("space") != null) {
                spaced = true;
                continue;
            }
            tokens.add(token(matcher, spaced));
            spaced = false;
        }
        tokens.add(new Token(Token.Kind.NEWLINE, "\n", false));
        return tokens;
    }

    private static Token token(Matcher matcher, boolean spaced) {
        if (matcher.group("newline") != null) {
            return new Token(Token.Kind.NEWLINE, "\n", spaced);
        }
        if (matcher.group("line") != null) {
            return new Token(Token.Kind.COMMENT, matcher.group("line"), spaced);
        }
        if (matcher.group("block") != null) {
            return new Token(Token.Kind.COMMENT, matcher.group("block"), spaced);
        }
        if (matcher.group("string") != null) {
            return new Token(Token.Kind.STRING, matcher.group("string"), spaced);
        }
        if (matcher.group("word") != null) {
            return new Token(Token.Kind.WORD, matcher.group("word"), spaced);
        }
        if (matcher.group("number") != null) {
            return new Token(Token.Kind.NUMBER, matcher.group("number"), spaced);
        }
        return new Token(Token.Kind.MARK, matcher.group("mark"), spaced);
    }
}

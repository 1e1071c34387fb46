package io.github.nccl4j.header;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/** Parses the declarations of a header. Used once, by one thread. */
final class HeaderParser {
    private static final Set<String> SPECIFIERS = Set.of("extern", "static", "inline", "__inline__", "NCCL_API");
    private static final Set<String> TYPE_WORDS = Set.of(
            "void",
            "char",
            "short",
            "int",
            "long",
            "float",
            "double",
            "signed",
            "unsigned",
            "const",
            "volatile",
            "bool",
            "struct",
            "enum",
            "union");

    /** Constants of {@code limits.h} in enumerations. */
    private static final Map<String, Long> LIMITS =
            Map.of("INT_MIN", (long) Integer.MIN_VALUE, "INT_MAX", (long) Integer.MAX_VALUE);

    private static final Pattern OPTIONAL_INT = Pattern.compile("\\b(short|long) int\\b");

    private final List<Token> tokens;
    private final Map<String, Macro> macros;
    private final Map<String, Function> functions = new LinkedHashMap<>();
    private final List<Function> prototypes = new ArrayList<>();
    private final Map<String, EnumType> enums = new LinkedHashMap<>();
    private final Map<String, StructType> structs = new LinkedHashMap<>();
    private final Map<String, Alias> aliases = new LinkedHashMap<>();
    private final Map<String, Long> constants = new HashMap<>();
    private int position;

    /** The last comment before the current declaration. */
    private String doc = "";

    private HeaderParser(String text) {
        Preprocessor preprocessor = Preprocessor.run(text);
        tokens = preprocessor.active();
        macros = preprocessor.macros();
    }

    static Header parse(String text) {
        HeaderParser parser = new HeaderParser(text);
        parser.parseDeclarations();
        return new Header(parser.functions, parser.macros, parser.enums, parser.structs, parser.aliases);
    }

    /** The prototypes of a header with overloaded functions. */
    static List<Function> prototypes(String text) {
        HeaderParser parser = new HeaderParser(text);
        parser.parseDeclarations();
        return List.copyOf(parser.prototypes);
    }

    private void parseDeclarations() {
        while (position < tokens.size()) {
            Token token = tokens.get(position);
            if (token.kind() == Token.Kind.COMMENT) {
                doc = token.text();
                position++;
            } else if (token.kind() == Token.Kind.NEWLINE || token.is("}") || token.is(";")) {
                position++;
            } else if (token.is("extern") && peekCode(1).kind() == Token.Kind.STRING) {
                skipTo("{");
            } else {
                parseDeclaration();
                doc = "";
            }
        }
    }

    /** The n-th token of code from the current position, starting at 0; the last token if there are fewer. */
    private Token peekCode(int n) {
        int left = n;
        for (int i = position; i < tokens.size(); i++) {
            if (isCode(tokens.get(i)) && left-- == 0) {
                return tokens.get(i);
            }
        }
        return tokens.get(tokens.size() - 1);
    }

    private static boolean isCode(Token token) {
        return token.kind() != Token.Kind.COMMENT && token.kind() != Token.Kind.NEWLINE;
    }

    private void skipTo(String mark) {
        while (position < tokens.size() && !tokens.get(position).is(mark)) {
            position++;
        }
        position++;
    }

    /** Parses a declaration: the tokens up to the semicolon, or up to the end of a function's body. */
    private void parseDeclaration() {
        String since = Comments.since(doc);
        List<Token> all = new ArrayList<>();
        int depth = 0;
        for (; position < tokens.size(); position++) {
            Token token = tokens.get(position);
            all.add(token);
            if (token.is("{") || token.is("(")) {
                depth++;
            } else if (token.is("}") || token.is(")")) {
                depth--;
            }
            boolean endsBody = token.is("}") && !all.get(0).is("typedef") && isFunction(all);
            if (depth == 0 && (token.is(";") || endsBody)) {
                position++;
                break;
            }
        }
        List<Token> code =
                withoutAttributes(all.stream().filter(HeaderParser::isCode).toList());
        if (code.isEmpty() || code.get(0).is("static_assert")) {
            return;
        }
        int brace = indexOf(code, "{");
        boolean typedef = code.get(0).is("typedef");
        Token first = code.get(typedef ? 1 : 0);
        if (brace >= 0 && (first.is("struct") || first.is("enum"))) {
            addType(first.is("enum"), code, all, since);
        } else if (typedef) {
            addAlias(code, since);
        } else if (indexOf(code, "(") > 0) {
            addFunction(code, since);
        }
    }

    private static boolean isFunction(List<Token> tokens) {
        int parenthesis = indexOf(tokens, "(");
        int brace = indexOf(tokens, "{");
        return parenthesis >= 0 && parenthesis < brace;
    }

    private static int indexOf(List<Token> tokens, String mark) {
        for (int i = 0; i < tokens.size(); i++) {
            if (tokens.get(i).is(mark)) {
                return i;
            }
        }
        return -1;
    }

    private static List<Token> withoutAttributes(List<Token> tokens) {
        List<Token> rest = new ArrayList<>();
        for (int i = 0; i < tokens.size(); i++) {
            Token token = tokens.get(i);
            boolean brackets =
                    token.is("[") && i + 1 < tokens.size() && tokens.get(i + 1).is("[");
            if (token.is("__attribute__") || token.is("__declspec") || brackets) {
                i = closing(tokens, brackets ? i : i + 1);
            } else if (!SPECIFIERS.contains(token.text())) {
                rest.add(token);
            }
        }
        return rest;
    }

    /** The index of the bracket that closes the bracket at {@code open}. */
    private static int closing(List<Token> tokens, int open) {
        int depth = 0;
        for (int i = open; i < tokens.size(); i++) {
            Token token = tokens.get(i);
            if (token.is("(") || token.is("[")) {
                depth++;
            } else if ((token.is(")") || token.is("]")) && --depth == 0) {
                return i;
            }
        }
        throw new IllegalArgumentException("bracket is not closed: " + text(tokens));
    }

    private void addAlias(List<Token> code, String since) {
        int open = indexOf(code, "(");
        // A pointer to a function: type (*name)(parameters).
        boolean function = open > 0 && code.get(open + 1).is("*");
        String name = code.get(function ? open + 2 : code.size() - 2).text();
        String type;
        if (function) {
            String parameters = parameters(code, closing(code, open) + 1).stream()
                    .map(Parameter::type)
                    .collect(Collectors.joining(", "));
            type = typeText(code.subList(1, open)) + " (*)(" + parameters + ")";
        } else {
            type = typeText(code.subList(1, code.size() - 2));
        }
        aliases.put(name, new Alias(name, type, since));
    }

    private void addFunction(List<Token> code, String since) {
        int open = indexOf(code, "(");
        Token name = code.get(open - 1);
        if (!name.isWord() || open < 2) {
            throw new IllegalArgumentException("not a prototype: " + text(code.subList(0, closing(code, open) + 1)));
        }
        Function function =
                new Function(typeText(code.subList(0, open - 1)), name.text(), parameters(code, open), since);
        functions.put(name.text(), function);
        prototypes.add(function);
    }

    /** The parameters in the parentheses that open at an index. */
    private static List<Parameter> parameters(List<Token> code, int open) {
        int close = closing(code, open);
        List<Parameter> parameters = new ArrayList<>();
        List<Token> parameter = new ArrayList<>();
        int depth = 0;
        for (Token token : code.subList(open + 1, close + 1)) {
            if (token == code.get(close) || (token.is(",") && depth == 0)) {
                addParameter(parameters, parameter);
                parameter.clear();
            } else {
                // A function pointer contains a parameter list with commas of its own.
                depth += token.is("(") ? 1 : token.is(")") ? -1 : 0;
                parameter.add(token);
            }
        }
        return parameters;
    }

    private static void addParameter(List<Parameter> parameters, List<Token> tokens) {
        boolean none = tokens.isEmpty() || (tokens.size() == 1 && tokens.get(0).is("void"));
        if (none) {
            return;
        }
        int bracket = indexOf(tokens, "[");
        List<Token> words = bracket < 0 ? tokens : tokens.subList(0, bracket);
        Token last = words.get(words.size() - 1);
        boolean named = words.size() > 1 && last.isWord() && !TYPE_WORDS.contains(last.text());
        String type = typeText(named ? words.subList(0, words.size() - 1) : words) + (bracket < 0 ? "" : "*");
        parameters.add(new Parameter(type, named ? last.text() : ""));
    }

    private void addType(boolean isEnum, List<Token> code, List<Token> all, String since) {
        int open = indexOf(code, "{");
        Token beforeBrace = code.get(open - 1);
        String tag = beforeBrace.is("struct") || beforeBrace.is("enum") ? "" : beforeBrace.text();
        Token last = code.get(code.size() - 2);
        String name = last.isWord() ? last.text() : tag;
        List<Member> members = members(all, isEnum ? "," : ";");
        if (isEnum) {
            enums.put(name, new EnumType(tag, name, enumerators(members), since));
        } else {
            structs.put(name, new StructType(tag, name, fields(members), since));
        }
    }

    /** The code of a field or an enumerator, and the release in the comment after it. */
    private record Member(List<Token> code, String since) {}

    private static List<Member> members(List<Token> all, String separator) {
        List<Member> members = new ArrayList<>();
        List<Token> code = new ArrayList<>();
        boolean afterMember = false;
        int depth = 0;
        for (Token token : all.subList(indexOf(all, "{") + 1, all.size())) {
            if (token.is("{")) {
                depth++;
            }
            if (depth > 0) {
                // A nested structure is one member.
                code.add(token);
                depth -= token.is("}") ? 1 : 0;
            } else if (token.kind() == Token.Kind.COMMENT) {
                String since = Comments.release(token.text());
                // There may be no comma between the last enumerator and its comment.
                boolean last = separator.equals(",") && !code.isEmpty();
                if (!since.isEmpty() && last) {
                    members.add(new Member(List.copyOf(code), since));
                    code.clear();
                } else if (!since.isEmpty() && afterMember) {
                    int previous = members.size() - 1;
                    members.set(previous, new Member(members.get(previous).code(), since));
                }
            } else if (token.kind() == Token.Kind.NEWLINE) {
                afterMember = false;
            } else if (token.is(separator) || token.is("}")) {
                if (!code.isEmpty()) {
                    members.add(new Member(List.copyOf(code), ""));
                    code.clear();
                }
                afterMember = true;
                if (token.is("}")) {
                    break;
                }
            } else {
                code.add(token);
            }
        }
        return members;
    }

    private List<Enumerator> enumerators(List<Member> members) {
        List<Enumerator> enumerators = new ArrayList<>();
        OptionalLong next = OptionalLong.of(0);
        for (Member member : members) {
            String name = member.code().get(0).text();
            List<Token> expression =
                    withoutAttributes(member.code().subList(1, member.code().size()));
            if (!expression.isEmpty()) {
                next = evaluate(expression.subList(1, expression.size()));
            }
            String text = expression.isEmpty() ? "" : text(expression.subList(1, expression.size()));
            enumerators.add(new Enumerator(name, text, next, member.since()));
            next.ifPresent(value -> constants.put(name, value));
            next = next.isPresent() ? OptionalLong.of(next.getAsLong() + 1) : next;
        }
        return enumerators;
    }

    private OptionalLong evaluate(List<Token> expression) {
        try {
            return OptionalLong.of(Expression.value(expression, this::constant));
        } catch (IllegalArgumentException e) {
            return OptionalLong.empty();
        }
    }

    /** The value of a previous enumerator, of a limit of C, or of a macro that is defined as one of these; null if unknown. */
    private Long constant(String name) {
        Macro macro = macros.get(name);
        String word = macro == null || macro.functionLike() ? name : macro.text();
        return constants.containsKey(word) ? constants.get(word) : LIMITS.get(word);
    }

    /** The fields; a nested structure or union contributes each of its fields, as {@code key.vendorId}. */
    private static List<Field> fields(List<Member> members) {
        List<Field> fields = new ArrayList<>();
        for (Member member : members) {
            List<Token> code =
                    member.code().stream().filter(HeaderParser::isCode).toList();
            if (indexOf(code, "{") >= 0) {
                Token last = code.get(code.size() - 1);
                String prefix = last.isWord() ? last.text() + "." : "";
                fields(members(member.code(), ";"))
                        .forEach(field -> fields.add(new Field(
                                field.type(),
                                prefix + field.name(),
                                field.array(),
                                field.since().isEmpty() ? member.since() : field.since())));
                continue;
            }
            int comma = indexOf(code, ",");
            Field first = field(comma < 0 ? code : code.subList(0, comma), member.since());
            fields.add(first);
            for (int i = comma; i > 0 && i < code.size(); i += 2) {
                // In NCCL's headers, no field of a declaration with several has a star or a length.
                fields.add(new Field(first.type(), code.get(i + 1).text(), "", member.since()));
            }
        }
        return fields;
    }

    private static Field field(List<Token> code, String since) {
        int bracket = indexOf(code, "[");
        int end = bracket < 0 ? code.size() : bracket;
        String array = bracket < 0 ? "" : text(code.subList(bracket + 1, code.size() - 1));
        return new Field(typeText(code.subList(0, end - 1)), code.get(end - 1).text(), array, since);
    }

    /** The normalized spelling of a type: one space between words, none before stars, and no int that C allows to omit. */
    private static String typeText(List<Token> tokens) {
        StringBuilder text = new StringBuilder();
        for (Token token : tokens) {
            text.append(token.isWord() && !text.isEmpty() ? " " : "").append(token.text());
        }
        return OPTIONAL_INT.matcher(text).replaceAll("$1");
    }

    private static String text(List<Token> tokens) {
        return tokens.stream().map(Token::text).collect(Collectors.joining(" "));
    }
}

package io.github.nccl4j.header;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Evaluates the directives of a header, as for a C program on Linux with CUDA's 8-bit and 16-bit float types. Records macros
 * without expanding them.
 */
final class Preprocessor {
    /** Macros that NCCL's headers test and that are, or can be, defined on Linux. */
    private static final Map<String, Long> PREDEFINED = Map.of(
            "NCCL_OS_LINUX", 1L,
            "__linux__", 1L,
            "__CUDA_BF16_TYPES_EXIST__", 1L,
            "__CUDA_FP16_TYPES_EXIST__", 1L,
            "__CUDA_FP8_TYPES_EXIST__", 1L,
            "CUDART_VERSION", 13000L);

    private static final Set<String> CONDITIONS = Set.of("if", "ifdef", "ifndef");

    private final List<Token> source;
    private final List<Token> active = new ArrayList<>();
    private final Map<String, Macro> macros = new LinkedHashMap<>();

    /** The open conditions, innermost first. */
    private final Deque<Condition> conditions = new ArrayDeque<>();

    /** An open condition: is its current branch active, was any branch so far, and is the enclosing code? */
    private record Condition(boolean isActive, boolean wasActive, boolean isEnclosingActive) {}

    private Preprocessor(String text) {
        source = Lexer.tokens(text);
    }

    static Preprocessor run(String text) {
        Preprocessor preprocessor = new Preprocessor(text);
        preprocessor.run();
        return preprocessor;
    }

    /** The tokens of active branches, without directives, including comments and line ends. */
    List<Token> active() {
        return active;
    }

    /** The macros that are defined at the end of the header, in order of definition. */
    Map<String, Macro> macros() {
        return macros;
    }

    private void run() {
        List<Token> line = new ArrayList<>();
        for (Token token : source) {
            line.add(token);
            if (token.kind() == Token.Kind.NEWLINE) {
                process(line);
                line.clear();
            }
        }
        if (!conditions.isEmpty()) {
            throw new IllegalArgumentException(conditions.size() + " #if without #endif");
        }
    }

    private void process(List<Token> line) {
        List<Token> code = line.stream()
                .filter(t -> t.kind() != Token.Kind.COMMENT && t.kind() != Token.Kind.NEWLINE)
                .toList();
        if (code.isEmpty() || !code.get(0).is("#")) {
            if (isActive()) {
                active.addAll(line);
            }
            return;
        }
        if (code.size() > 1) {
            processDirective(code.get(1).text(), code.subList(2, code.size()), line);
        }
    }

    private boolean isActive() {
        return conditions.isEmpty() || conditions.peek().isActive();
    }

    private void processDirective(String name, List<Token> rest, List<Token> line) {
        if (CONDITIONS.contains(name)) {
            boolean enclosing = isActive();
            boolean active = enclosing && evaluate(name, rest);
            conditions.push(new Condition(active, active, enclosing));
        } else if (name.equals("elif")) {
            Condition condition = conditions.pop();
            boolean enclosing = condition.isEnclosingActive();
            boolean active = enclosing && !condition.wasActive() && evaluate("if", rest);
            conditions.push(new Condition(active, condition.wasActive() || active, enclosing));
        } else if (name.equals("else")) {
            Condition condition = conditions.pop();
            boolean enclosing = condition.isEnclosingActive();
            conditions.push(new Condition(enclosing && !condition.wasActive(), true, enclosing));
        } else if (name.equals("endif")) {
            conditions.pop();
        } else if (isActive() && name.equals("define")) {
            define(rest, line);
        } else if (isActive() && name.equals("undef")) {
            macros.remove(rest.get(0).text());
        }
    }

    private boolean evaluate(String name, List<Token> rest) {
        return switch (name) {
            case "ifdef" -> isDefined(rest.get(0).text());
            case "ifndef" -> !isDefined(rest.get(0).text());
            default -> Expression.value(replaceDefined(rest), word -> value(word, 0)) != 0;
        };
    }

    private boolean isDefined(String name) {
        return macros.containsKey(name) || PREDEFINED.containsKey(name);
    }

    private List<Token> replaceDefined(List<Token> tokens) {
        List<Token> replaced = new ArrayList<>();
        for (int i = 0; i < tokens.size(); i++) {
            if (!tokens.get(i).is("defined")) {
                replaced.add(tokens.get(i));
                continue;
            }
            boolean parenthesis = tokens.get(i + 1).is("(");
            String name = tokens.get(i + (parenthesis ? 2 : 1)).text();
            replaced.add(new Token(Token.Kind.NUMBER, isDefined(name) ? "1" : "0", true));
            i += parenthesis ? 3 : 1;
        }
        return replaced;
    }

    /** The value of a name in a condition; as in C, a name that is not a macro is 0. */
    private long value(String name, int depth) {
        Macro macro = macros.get(name);
        if (macro == null || depth > 8) {
            return PREDEFINED.getOrDefault(name, 0L);
        }
        List<Token> tokens = Lexer.tokens(macro.text());
        return Expression.value(tokens.subList(0, tokens.size() - 1), word -> value(word, depth + 1));
    }

    private void define(List<Token> rest, List<Token> line) {
        String name = rest.get(0).text();
        boolean functionLike =
                rest.size() > 1 && rest.get(1).is("(") && !rest.get(1).spaced();
        StringBuilder text = new StringBuilder();
        for (Token token : rest.subList(1, rest.size())) {
            text.append(token.spaced() && !text.isEmpty() ? " " : "").append(token.text());
        }
        String since = line.stream()
                .filter(t -> t.kind() == Token.Kind.COMMENT)
                .map(t -> Comments.release(t.text()))
                .filter(s -> !s.isEmpty())
                .findFirst()
                .orElse("");
        macros.put(name, new Macro(name, text.toString(), functionLike, since));
    }
}

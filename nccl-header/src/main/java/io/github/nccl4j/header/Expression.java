package io.github.nccl4j.header;

import java.util.List;
import java.util.function.Function;

/**
 * Evaluates integer expressions of C, as in {@code #if} and enumerators.
 *
 * <p>{@code sizeof} is always that of an int, which is correct for the enumerations in {@code nccl.h}; the C++ program of {@link
 * Layout} verifies it.
 */
final class Expression {
    /** The binary operators by precedence, lowest first. */
    private static final List<List<String>> LEVELS = List.of(
            List.of("||"),
            List.of("&&"),
            List.of("|"),
            List.of("^"),
            List.of("&"),
            List.of("==", "!="),
            List.of("<", ">", "<=", ">="),
            List.of("<<", ">>"),
            List.of("+", "-"),
            List.of("*", "/", "%"));

    private final List<Token> tokens;
    private final Function<String, Long> names;
    private int at;

    private Expression(List<Token> tokens, Function<String, Long> names) {
        this.tokens = tokens;
        this.names = names;
    }

    /**
     * Evaluates an expression.
     *
     * @param tokens the expression, without comments
     * @param names returns the value of a name, or null if the name is unknown
     * @throws IllegalArgumentException if the tokens are not an integer expression
     */
    static long value(List<Token> tokens, Function<String, Long> names) {
        Expression expression = new Expression(tokens, names);
        long value = expression.conditional();
        if (expression.at != tokens.size()) {
            throw expression.failure();
        }
        return value;
    }

    private long conditional() {
        long condition = binary(0);
        if (!accept("?")) {
            return condition;
        }
        long ifTrue = conditional();
        expect(":");
        long ifFalse = conditional();
        return condition != 0 ? ifTrue : ifFalse;
    }

    private long binary(int level) {
        if (level == LEVELS.size()) {
            return unary();
        }
        long left = binary(level + 1);
        while (at < tokens.size() && LEVELS.get(level).contains(tokens.get(at).text())) {
            String operator = tokens.get(at++).text();
            left = apply(operator, left, binary(level + 1));
        }
        return left;
    }

    private long apply(String operator, long a, long b) {
        return switch (operator) {
            case "||" -> truth(a != 0 || b != 0);
            case "&&" -> truth(a != 0 && b != 0);
            case "|" -> a | b;
            case "^" -> a ^ b;
            case "&" -> a & b;
            case "==" -> truth(a == b);
            case "!=" -> truth(a != b);
            case "<" -> truth(a < b);
            case ">" -> truth(a > b);
            case "<=" -> truth(a <= b);
            case ">=" -> truth(a >= b);
            case "<<" -> a << b;
            case ">>" -> a >> b;
            case "+" -> a + b;
            case "-" -> a - b;
            case "*" -> a * b;
            default -> {
                if (b == 0) {
                    throw failure();
                }
                yield operator.equals("/") ? a / b : a % b;
            }
        };
    }

    private static long truth(boolean value) {
        return value ? 1 : 0;
    }

    private long unary() {
        if (accept("!")) {
            return truth(unary() == 0);
        }
        if (accept("-")) {
            return -unary();
        }
        if (accept("+")) {
            return unary();
        }
        if (accept("~")) {
            return ~unary();
        }
        if (accept("(")) {
            long value = conditional();
            expect(")");
            return value;
        }
        if (accept("sizeof")) {
            expect("(");
            while (!accept(")")) {
                next();
            }
            return Integer.BYTES;
        }
        Token token = next();
        if (token.kind() == Token.Kind.NUMBER) {
            return number(token.text());
        }
        Long value = token.isWord() ? names.apply(token.text()) : null;
        if (value == null) {
            throw failure();
        }
        return value;
    }

    private long number(String text) {
        try {
            return Long.decode(text.replaceAll("[uUlL]+$", ""));
        } catch (NumberFormatException e) {
            throw new IllegalArgumentException("not an integer: " + text, e);
        }
    }

    private Token next() {
        if (at == tokens.size()) {
            throw failure();
        }
        return tokens.get(at++);
    }

    private boolean accept(String text) {
        boolean found = at < tokens.size() && tokens.get(at).is(text);
        at += found ? 1 : 0;
        return found;
    }

    private void expect(String text) {
        if (!accept(text)) {
            throw failure();
        }
    }

    private IllegalArgumentException failure() {
        return new IllegalArgumentException("not an integer expression: "
                + String.join(" ", tokens.stream().map(Token::text).toList()));
    }
}

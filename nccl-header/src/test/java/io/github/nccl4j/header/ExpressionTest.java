package io.github.nccl4j.header;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Integer expressions with C's operators and their precedence. */
class ExpressionTest {
    private static final Map<String, Long> NAMES = Map.of("two", 2L, "ten", 10L);

    private static long value(String text) {
        List<Token> tokens = Lexer.tokens(text);
        return Expression.value(tokens.subList(0, tokens.size() - 1), NAMES::get);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = ';',
            value = {
                "0 || 0; 0",
                "0 || 3; 1",
                "3 || 0; 1",
                "3 && 0; 0",
                "0 && 3; 0",
                "2 && 4; 1",
                "5 | 2; 7",
                "6 ^ 3; 5",
                "6 & 3; 2",
                "3 == 3; 1",
                "3 == 4; 0",
                "3 != 3; 0",
                "3 != 4; 1",
                "3 < 3; 0",
                "2 < 3; 1",
                "4 < 3; 0",
                "3 > 3; 0",
                "4 > 3; 1",
                "2 > 3; 0",
                "3 <= 3; 1",
                "2 <= 3; 1",
                "4 <= 3; 0",
                "3 >= 3; 1",
                "4 >= 3; 1",
                "2 >= 3; 0",
                "3 << 4; 48",
                "-48 >> 4; -3",
                "3 + 4; 7",
                "3 - 4; -1",
                "3 * 4; 12",
                "13 / 4; 3",
                "13 % 4; 1",
                "!0; 1",
                "!7; 0",
                "-ten; -10",
                "+ten; 10",
                "~0; -1",
                "~5; -6",
                "- -5; 5",
                "1 ? 2 : 3; 2",
                "0 ? 2 : 3; 3",
                "0 ? 1 : 0 ? 2 : 4; 4",
                "(1 ? 0 : 1) ? 2 : 3; 3",
                "2 + 3 * 4; 14",
                "(2 + 3) * 4; 20",
                "10 - 3 - 2; 5",
                "1 | 2 ^ 3 & 4; 3",
                "1 << 2 + 1; 8",
                "1 == 2 < 3; 1",
                "0 && 0 || 1; 1",
                "1 || 0 && 0; 1",
                "7 & 3 == 3; 1",
                "0x10; 16",
                "010; 8",
                "10UL; 10",
                "0xffffffffu; 4294967295",
                "sizeof(int) * 2; 8",
                "sizeof(unsigned long); 4",
                "two * ten; 20"
            })
    void evaluatesLikeC(String text, long expected) {
        assertEquals(expected, value(text));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = ';',
            value = {
                "1 +; 1 +",
                "(1; ( 1",
                "1 2; 1 2",
                "1 ? 2; 1 ? 2",
                "1 / 0; 1 / 0",
                "1 % (2 - 2); 1 % ( 2 - 2 )",
                "unknown; unknown",
                "sizeof int; sizeof int",
                "\"x\"; \"x\"",
                "sizeof(int; sizeof ( int"
            })
    void rejectsOtherExpressions(String text, String named) {
        assertEquals(
                "not an integer expression: " + named,
                assertThrows(IllegalArgumentException.class, () -> value(text)).getMessage());
    }

    @Test
    void rejectsFractions() {
        assertEquals(
                "not an integer: 1.5",
                assertThrows(IllegalArgumentException.class, () -> value("1.5")).getMessage());
    }
}

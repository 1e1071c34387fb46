package io.github.nccl4j.tools.support;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.google.gson.JsonParser;
import org.junit.jupiter.api.Test;

class PrintableTest {
    private static final String EVIL = "a\u001b[2J\u009b\u007f\u202e\u2028\ud800b\udb40\udc01\tc\n";

    @Test
    void charactersThatTerminalsObeyAreReplaced() {
        assertEquals("a [2J     b  c ", Printable.line(EVIL));
        assertEquals("a?[2J?????b?\tc\n", Printable.lines(EVIL));
        assertEquals("Zürich 東京 \ud83d\ude00", Printable.line("Zürich 東京 \ud83d\ude00"));
    }

    @Test
    void jsonKeepsItsValues() {
        String json = "\"x\u009b\u202ey\udb40\udc01\"";
        String printable = Printable.json(json);
        assertEquals("\"x\\u009b\\u202ey\\udb40\\udc01\"", printable);
        assertEquals(JsonParser.parseString(json), JsonParser.parseString(printable));
    }
}

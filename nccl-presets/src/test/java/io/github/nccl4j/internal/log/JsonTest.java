package io.github.nccl4j.internal.log;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.junit.jupiter.api.Test;

/** The text of the flight recorder's files, to the character. */
class JsonTest {
    @Test
    void fieldsHaveNamesAndValues() {
        Json json = new Json();
        json.begin();
        json.field("a", 1).field("b", null).field("c", "x").field("d", 2.5);
        json.end();
        assertEquals("{\"a\": 1, \"b\": null, \"c\": \"x\", \"d\": 2.5}", json.toString());
    }

    @Test
    void aListHasALineForEachElement() {
        Json json = new Json();
        json.begin();
        json.list("none", List.of(), (one, element) -> {})
                .list("two", List.of(3, 4), (one, element) -> one.field("n", element)
                        .field("twice", 2 * element))
                .field("last", "y");
        json.end();
        assertEquals(
                "{\"none\": [\n], \"two\": [\n{\"n\": 3, \"twice\": 6},\n{\"n\": 4, \"twice\": 8}\n], \"last\": \"y\"}",
                json.toString());
    }

    @Test
    void anObjectInAFieldHasItsOwnFields() {
        Json json = new Json();
        json.begin();
        json.field("a", 1).object("b").field("c", 2).field("d", 3).end().field("e", 4);
        json.end();
        assertEquals("{\"a\": 1, \"b\": {\"c\": 2, \"d\": 3}, \"e\": 4}", json.toString());
    }

    @Test
    void escapesCharactersThatEndAString() {
        Json json = new Json();
        json.begin();
        json.field("\"", "\"\\\n\t\u001f ~é");
        json.end();
        assertEquals("{\"\\\"\": \"\\\"\\\\\\n\\u0009\\u001f ~é\"}", json.toString());
    }
}

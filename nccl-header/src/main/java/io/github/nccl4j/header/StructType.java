package io.github.nccl4j.header;

import java.util.List;

/**
 * A structure with fields. Immutable.
 *
 * @param tag the name after {@code struct}; empty if there is none
 * @param name the typedef name; the tag if there is none
 * @param fields the fields, in order
 * @param since the text after {@code @since} in the doc comment, or empty
 */
public record StructType(String tag, String name, List<Field> fields, String since) {
    /**
     * Copies the list.
     *
     * @param tag the name after {@code struct}; empty if there is none
     * @param name the typedef name; the tag if there is none
     * @param fields the fields, in order
     * @param since the text after {@code @since} in the doc comment, or empty
     */
    public StructType {
        fields = List.copyOf(fields);
    }
}

package io.github.nccl4j.header;

import java.util.List;

/**
 * A structure with fields.
 *
 * @param tag the name after {@code struct}; empty if there is none
 * @param name the typedef name; the tag if there is none
 * @param fields the fields, in order
 * @param since what the doc comment says after {@code @since}; empty if it says nothing
 */
public record StructType(String tag, String name, List<Field> fields, String since) {
    /**
     * Copies the list.
     *
     * @param tag the name after {@code struct}; empty if there is none
     * @param name the typedef name; the tag if there is none
     * @param fields the fields, in order
     * @param since what the doc comment says after {@code @since}; empty if it says nothing
     */
    public StructType {
        fields = List.copyOf(fields);
    }
}

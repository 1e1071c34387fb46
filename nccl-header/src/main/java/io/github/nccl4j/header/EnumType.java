package io.github.nccl4j.header;

import java.util.List;

/**
 * An enumeration. Immutable.
 *
 * @param tag the name after {@code enum}; empty if there is none
 * @param name the typedef name; the tag if there is none
 * @param enumerators the constants, in order
 * @param since the text after {@code @since} in the doc comment, or empty
 */
public record EnumType(String tag, String name, List<Enumerator> enumerators, String since) {
    /**
     * Copies the list.
     *
     * @param tag the name after {@code enum}; empty if there is none
     * @param name the typedef name; the tag if there is none
     * @param enumerators the constants, in order
     * @param since the text after {@code @since} in the doc comment, or empty
     */
    public EnumType {
        enumerators = List.copyOf(enumerators);
    }
}

package io.github.nccl4j.header;

import java.util.List;

/**
 * An enumeration.
 *
 * @param tag the name after {@code enum}; empty if there is none
 * @param name the typedef name; the tag if there is none
 * @param enumerators the constants, in order
 * @param since what the doc comment says after {@code @since}; empty if it says nothing
 */
public record EnumType(String tag, String name, List<Enumerator> enumerators, String since) {
    /**
     * Copies the list.
     *
     * @param tag the name after {@code enum}; empty if there is none
     * @param name the typedef name; the tag if there is none
     * @param enumerators the constants, in order
     * @param since what the doc comment says after {@code @since}; empty if it says nothing
     */
    public EnumType {
        enumerators = List.copyOf(enumerators);
    }
}

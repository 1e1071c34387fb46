package io.github.nccl4j.header;

/**
 * A typedef that is neither a structure with fields nor an enumeration. Immutable.
 *
 * @param name the name of the typedef
 * @param type the type that the name denotes, such as {@code struct ncclComm*}
 * @param since the text after {@code @since} in the doc comment, or empty
 */
public record Alias(String name, String type, String since) {}

package io.github.nccl4j.header;

/**
 * A typedef that is neither a structure with fields nor an enumeration.
 *
 * @param name the name that it gives
 * @param type what the name stands for, as in {@code struct ncclComm*}
 * @param since what the doc comment says after {@code @since}; empty if it says nothing
 */
public record Alias(String name, String type, String since) {}

package io.github.nccl4j.header;

/**
 * A macro. Immutable.
 *
 * @param name its name
 * @param text its replacement, without comments and with single spaces; may be empty
 * @param functionLike true if it has parameters; the text then begins with their list
 * @param since the release in its comment, or empty
 */
public record Macro(String name, String text, boolean functionLike, String since) {}

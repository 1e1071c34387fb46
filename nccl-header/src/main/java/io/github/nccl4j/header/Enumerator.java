package io.github.nccl4j.header;

import java.util.OptionalLong;

/**
 * A constant of an enumeration. Immutable.
 *
 * @param name its name
 * @param text the expression of its value; empty if it is one greater than the previous value
 * @param value its value; empty if only a compiler can evaluate the expression
 * @param since the release in its comment, or empty
 */
public record Enumerator(String name, String text, OptionalLong value, String since) {}

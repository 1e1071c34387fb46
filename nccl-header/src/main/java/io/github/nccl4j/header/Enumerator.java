package io.github.nccl4j.header;

import java.util.OptionalLong;

/**
 * A constant of an enumeration.
 *
 * @param name its name
 * @param text the expression that gives its value; empty if it follows the one before
 * @param value its value; empty where the expression needs a compiler
 * @param since the release that its comment names; empty if none
 */
public record Enumerator(String name, String text, OptionalLong value, String since) {}

package io.github.nccl4j.header;

/**
 * A macro.
 *
 * @param name its name
 * @param text what it stands for, comments removed and spaces joined; may be empty
 * @param functionLike whether it takes arguments; then the text begins with their list
 * @param since the release that its comment names; empty if none
 */
public record Macro(String name, String text, boolean functionLike, String since) {}

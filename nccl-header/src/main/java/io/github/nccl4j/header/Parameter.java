package io.github.nccl4j.header;

/**
 * A parameter of a function. Immutable.
 *
 * @param type its type, such as {@code const void*}
 * @param name its name; empty if the prototype has none
 */
public record Parameter(String type, String name) {
    @Override
    public String toString() {
        return name.isEmpty() ? type : type + " " + name;
    }
}

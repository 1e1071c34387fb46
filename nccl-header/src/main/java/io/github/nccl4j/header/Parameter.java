package io.github.nccl4j.header;

/**
 * A parameter of a function.
 *
 * @param type its type, as in {@code const void*}
 * @param name its name; empty if the prototype gives none
 */
public record Parameter(String type, String name) {
    @Override
    public String toString() {
        return name.isEmpty() ? type : type + " " + name;
    }
}

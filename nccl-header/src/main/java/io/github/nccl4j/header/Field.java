package io.github.nccl4j.header;

/**
 * A field of a structure.
 *
 * @param type its type, for arrays that of an element
 * @param name its name
 * @param array the length between the brackets; empty if it is no array
 * @param since the release that its comment names; empty if none
 */
public record Field(String type, String name, String array, String since) {
    @Override
    public String toString() {
        return type + " " + name + (array.isEmpty() ? "" : "[" + array + "]");
    }
}

package io.github.nccl4j.header;

/**
 * A field of a structure. Immutable.
 *
 * @param type its type; for an array, the type of an element
 * @param name its name
 * @param array the text between the brackets of an array; empty if the field is not an array
 * @param since the release in its comment, or empty
 */
public record Field(String type, String name, String array, String since) {
    @Override
    public String toString() {
        return type + " " + name + (array.isEmpty() ? "" : "[" + array + "]");
    }
}

package io.github.nccl4j.tools.support;

/** Words in lines of a limited width. */
public final class Wrapped {
    private Wrapped() {}

    /**
     * Appends words in lines. Breaks lines at spaces only, so that users can copy paths.
     *
     * @param text the text to extend
     * @param first the begin of the first line
     * @param indent the begin of the others
     * @param words the words
     * @param width the width of a line
     */
    public static void append(StringBuilder text, String first, String indent, String words, int width) {
        String begin = first;
        int column = 0;
        for (String word : words.split(" ")) {
            if (column > 0 && column + 1 + word.length() > width) {
                text.append('\n');
                column = 0;
                begin = indent;
            }
            text.append(column == 0 ? begin : " ").append(word);
            column += (column == 0 ? begin.length() : 1) + word.length();
        }
        text.append('\n');
    }
}

package io.github.nccl4j.header;

/**
 * A piece of C source.
 *
 * @param kind what it is
 * @param text its characters; of a comment, those between the marks
 * @param spaced whether white space stands before it
 */
record Token(Kind kind, String text, boolean spaced) {
    /** What a token is. */
    enum Kind {
        /** A name or keyword. */
        WORD,
        /** A number. */
        NUMBER,
        /** A string or character in its quotes. */
        STRING,
        /** One character of punctuation, or one of the two-character operators. */
        MARK,
        /** A comment. */
        COMMENT,
        /** The end of a line. */
        NEWLINE
    }

    boolean is(String other) {
        return text.equals(other) && kind != Kind.COMMENT && kind != Kind.STRING;
    }

    boolean isWord() {
        return kind == Kind.WORD;
    }
}

package io.github.nccl4j.header;

/**
 * A token of C source. Immutable.
 *
 * @param kind the kind of token
 * @param text its characters; for a comment, the text between the delimiters
 * @param spaced true if white space precedes it
 */
record Token(Kind kind, String text, boolean spaced) {
    /** The kinds of tokens. */
    enum Kind {
        /** A name or keyword. */
        WORD,
        /** A number. */
        NUMBER,
        /** A string or character literal, with its quotes. */
        STRING,
        /** A punctuation character or a two-character operator. */
        MARK,
        /** A comment. */
        COMMENT,
        /** The end of a line. */
        NEWLINE
    }

    /** True if this token is code and has this text. */
    boolean is(String other) {
        return text.equals(other) && kind != Kind.COMMENT && kind != Kind.STRING;
    }

    boolean isWord() {
        return kind == Kind.WORD;
    }
}

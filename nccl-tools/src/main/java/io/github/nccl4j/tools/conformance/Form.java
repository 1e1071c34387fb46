package io.github.nccl4j.tools.conformance;

/** Forms in which an operation gets its buffers. */
enum Form {
    OUT_OF_PLACE(false),
    IN_PLACE(true),
    /** The method that takes one buffer for both, or omits the buffer of the root. */
    ONE_BUFFER(true),
    ADDRESSES(false),
    ADDRESSES_IN_PLACE(true);

    final boolean inPlace;

    Form(boolean inPlace) {
        this.inPlace = inPlace;
    }

    boolean byAddress() {
        return this == ADDRESSES || this == ADDRESSES_IN_PLACE;
    }
}

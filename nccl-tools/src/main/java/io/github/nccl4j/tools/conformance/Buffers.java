package io.github.nccl4j.tools.conformance;

/**
 * Lengths of the buffers of an operation on a rank, and the offset of each in the shared memory if they are in place.
 * In elements.
 */
enum Buffers {
    /** Both have the same length. */
    EQUAL,

    GATHERED {
        @Override
        int recvLength(Case c, int rank, int size) {
            return size * c.count();
        }

        @Override
        int sendPlace(Case c, int rank, int size) {
            return rank * c.count();
        }
    },

    SCATTERED {
        @Override
        int sendLength(Case c, int rank, int size) {
            return size * c.count();
        }

        @Override
        int recvPlace(Case c, int rank, int size) {
            return rank * c.count();
        }
    },

    EXCHANGED {
        @Override
        int sendLength(Case c, int rank, int size) {
            return size * c.count();
        }

        @Override
        int recvLength(Case c, int rank, int size) {
            return size * c.count();
        }
    },

    /** The parts have different lengths, and gaps between them. */
    GATHERED_UNEVENLY {
        @Override
        int sendLength(Case c, int rank, int size) {
            return Shares.count(c, rank);
        }

        @Override
        int recvLength(Case c, int rank, int size) {
            return Shares.spread(c, size).length();
        }

        @Override
        int sendPlace(Case c, int rank, int size) {
            return Shares.spread(c, size).place(rank);
        }
    },

    /** The reverse of GATHERED_UNEVENLY. */
    SCATTERED_UNEVENLY {
        @Override
        int sendLength(Case c, int rank, int size) {
            return GATHERED_UNEVENLY.recvLength(c, rank, size);
        }

        @Override
        int recvLength(Case c, int rank, int size) {
            return GATHERED_UNEVENLY.sendLength(c, rank, size);
        }

        @Override
        int recvPlace(Case c, int rank, int size) {
            return GATHERED_UNEVENLY.sendPlace(c, rank, size);
        }
    },

    /** The parts have different lengths, and no gaps between them. */
    SCATTERED_DENSELY {
        @Override
        int sendLength(Case c, int rank, int size) {
            return Shares.dense(c, size).length();
        }

        @Override
        int recvLength(Case c, int rank, int size) {
            return Shares.count(c, rank);
        }

        @Override
        int recvPlace(Case c, int rank, int size) {
            return Shares.dense(c, size).place(rank);
        }
    },

    EXCHANGED_UNEVENLY {
        @Override
        int sendLength(Case c, int rank, int size) {
            return Shares.sent(c, rank, size).length();
        }

        @Override
        int recvLength(Case c, int rank, int size) {
            return Shares.received(c, rank, size).length();
        }
    };

    int sendLength(Case c, int rank, int size) {
        return c.count();
    }

    int recvLength(Case c, int rank, int size) {
        return c.count();
    }

    int sendPlace(Case c, int rank, int size) {
        return 0;
    }

    int recvPlace(Case c, int rank, int size) {
        return 0;
    }
}

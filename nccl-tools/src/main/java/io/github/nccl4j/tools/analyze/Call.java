package io.github.nccl4j.tools.analyze;

/**
 * An operation in the record of a rank. Times are in microseconds since 1970, or 0 if unknown.
 *
 * @param sequence its number in the communicator on this rank, as in messages of exceptions
 * @param number the number of the collective in the communicator, the same on all ranks; 0 for other operations
 * @param operation the function and its arguments
 * @param stream the stream, or empty
 * @param group the number of the group in which it was called; 0 if it was in none
 * @param enqueued the time of the call
 * @param done the time at which it was observed as done
 */
record Call(long sequence, long number, Operation operation, String stream, long group, long enqueued, long done) {
    /**
     * A function and its arguments.
     *
     * @param function the function, such as {@code ncclAllReduce}, or {@code all_reduce} in records of torch
     * @param count the number of elements; -1 if ranks may differ
     * @param type the type of the elements, or empty
     * @param op the operator, or empty
     * @param peer the root or the other rank, or -1
     */
    record Operation(String function, long count, String type, String op, int peer) {}

    private static final String CONFIGURED = "Config";

    String function() {
        return operation.function;
    }

    long count() {
        return operation.count;
    }

    String type() {
        return operation.type;
    }

    String op() {
        return operation.op;
    }

    int peer() {
        return operation.peer;
    }

    boolean isDone() {
        return done != 0;
    }

    /** The function without regard to a configuration, which may differ between ranks. */
    String plainFunction() {
        return operation.function.endsWith(CONFIGURED)
                ? operation.function.substring(0, operation.function.length() - CONFIGURED.length())
                : operation.function;
    }

    boolean isSend() {
        return operation.function.equals("ncclSend") || operation.function.equals("send");
    }

    boolean isReceive() {
        return operation.function.equals("ncclRecv") || operation.function.equals("recv");
    }

    /** A description such as "ncclReduce of 1024 float32 to rank 3, SUM (operation 17)". */
    String describe() {
        return arguments() + " (operation " + sequence + ")";
    }

    /** As {@link #describe}, without the number of the operation. */
    String arguments() {
        StringBuilder text = new StringBuilder(operation.function);
        if (!operation.type.isEmpty()) {
            text.append(" of ")
                    .append(operation.count < 0 ? "" : operation.count + " ")
                    .append(operation.type);
        }
        if (operation.peer >= 0) {
            text.append(isFromPeer() ? " from rank " : " to rank ").append(operation.peer);
        }
        return operation.op.isEmpty()
                ? text.toString()
                : text.append(", ").append(operation.op).toString();
    }

    private boolean isFromPeer() {
        return isReceive()
                || operation.function.startsWith("ncclBroadcast")
                || operation.function.startsWith("ncclScatter")
                || operation.function.equals("ncclWaitSignal");
    }
}

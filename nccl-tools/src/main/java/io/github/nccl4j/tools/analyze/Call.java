package io.github.nccl4j.tools.analyze;

/**
 * An operation in the record of a rank. Times are in microseconds since 1970, or 0 if unknown.
 *
 * @param sequence its number in the communicator on this rank, as in messages of exceptions
 * @param number the number of the collective in the communicator, the same on all ranks; 0 for other operations
 * @param function the function, such as {@code ncclAllReduce}, or {@code all_reduce} in records of torch
 * @param count the number of elements; -1 if ranks may differ
 * @param type the type of the elements, or empty
 * @param op the operator, or empty
 * @param peer the root or the other rank, or -1
 * @param stream the stream, or empty
 * @param group the number of the group in which it was called; 0 if it was in none
 * @param enqueued the time of the call
 * @param done the time at which it was observed as done
 */
record Call(
        long sequence,
        long number,
        String function,
        long count,
        String type,
        String op,
        int peer,
        String stream,
        long group,
        long enqueued,
        long done) {

    private static final String CONFIGURED = "Config";

    boolean isDone() {
        return done != 0;
    }

    /** The function without regard to a configuration, which may differ between ranks. */
    String plainFunction() {
        return function.endsWith(CONFIGURED)
                ? function.substring(0, function.length() - CONFIGURED.length())
                : function;
    }

    boolean isSend() {
        return function.equals("ncclSend") || function.equals("send");
    }

    boolean isReceive() {
        return function.equals("ncclRecv") || function.equals("recv");
    }

    /** A description such as "ncclReduce of 1024 float32 to rank 3, SUM (operation 17)". */
    String describe() {
        return arguments() + " (operation " + sequence + ")";
    }

    /** As {@link #describe}, without the number of the operation. */
    String arguments() {
        StringBuilder text = new StringBuilder(function);
        if (!type.isEmpty()) {
            text.append(" of ").append(count < 0 ? "" : count + " ").append(type);
        }
        if (peer >= 0) {
            text.append(isFromPeer() ? " from rank " : " to rank ").append(peer);
        }
        return op.isEmpty() ? text.toString() : text.append(", ").append(op).toString();
    }

    private boolean isFromPeer() {
        return isReceive()
                || function.startsWith("ncclBroadcast")
                || function.startsWith("ncclScatter")
                || function.equals("ncclWaitSignal");
    }
}

package io.github.nccl4j.tools.analyze;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The record of one rank of one communicator. Immutable.
 */
final class RankRecord {
    /** The fields of a record's file that precede its operations. */
    static final class Header {
        String communicator = "unknown";
        String name = "";
        /** True if the communicator may lack ranks of the job. */
        boolean derived;

        int rank = -1;
        /** The number of ranks, or 0 if unknown. */
        int size;
        /** The rank in the communicator from which this one was derived first, or -1 if unknown. */
        int world = -1;

        String host = "";
        String process = "";
        String device = "";
        String state = "";
        String failure = "";
        /** The function other than an operation in which the rank waited, or empty. */
        String call = "";
        /** The time since which it waited there, in microseconds since 1970; 0 if unknown. */
        long called;

        long recorded = -1;
        long collectives = -1;
        /** The time at which the record was written, in microseconds since 1970; 0 if unknown. */
        long written;
    }

    private final Path file;
    private final Header header;
    private final boolean cut;
    private final List<Call> calls;
    private final Map<Long, Call> byNumber = new HashMap<>();
    private final long firstNumber;
    private final long lastNumber;

    RankRecord(Path file, Header header, List<Call> calls, boolean cut) {
        this.file = file;
        this.header = header;
        this.calls = List.copyOf(calls);
        this.cut = cut;
        long first = Long.MAX_VALUE;
        long last = 0;
        for (Call call : calls) {
            if (call.number() > 0) {
                byNumber.put(call.number(), call);
                first = Math.min(first, call.number());
                last = Math.max(last, call.number());
            }
        }
        firstNumber = first;
        lastNumber = Math.max(last, header.collectives);
    }

    Path file() {
        return file;
    }

    Header header() {
        return header;
    }

    int rank() {
        return header.rank;
    }

    /** True if the file ends before the record does. */
    boolean isCut() {
        return cut;
    }

    /** The recorded operations, the oldest first. */
    List<Call> calls() {
        return calls;
    }

    /** The collective with a number, or null if it was not called or is not in the record any more. */
    Call at(long number) {
        return byNumber.get(number);
    }

    /** The number of the first collective in the record; {@link Long#MAX_VALUE} if there is none. */
    long firstNumber() {
        return firstNumber;
    }

    /** The number of the last collective that the rank has called; 0 if there is none. */
    long lastNumber() {
        return lastNumber;
    }

    /** The last operation, or null. */
    Call last() {
        return calls.isEmpty() ? null : calls.get(calls.size() - 1);
    }

    /** True if the record has all operations of the rank. */
    boolean isComplete() {
        return !cut && (calls.isEmpty() || calls.get(0).sequence() == 1);
    }

    boolean hasFailed() {
        return !header.failure.isEmpty();
    }

    /** Identifies the process: its host and number, or its file if these are unknown. */
    String process() {
        return header.process.isEmpty() ? file.toString() : header.host + "/" + header.process;
    }

    /** Identifies the rank in the whole job: its process and its rank in the first communicator. */
    String member() {
        return process() + (header.world < 0 ? "" : "/" + header.world);
    }

    /** The rank in the job, or that in the communicator if it is unknown. */
    int jobRank() {
        return header.world < 0 ? header.rank : header.world;
    }
}

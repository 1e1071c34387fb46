package io.github.nccl4j.internal.communicator;

import io.github.nccl4j.internal.log.HostName;
import io.github.nccl4j.launch.Inquiry;
import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.RendezvousTimeoutException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * Asks the ranks of a communicator for their status after a timeout. A rank answers through the store at which the
 * ranks met, even while its threads are blocked; a rank whose process is stopped does not answer.
 */
public final class RankStatusQuery {
    /** Maximum time to wait for the answers. Not asked after a shorter timeout. */
    public static final Duration TIMEOUT = Duration.ofSeconds(1);

    private static final long CACHED_NANOSECONDS = 2_000_000_000;

    /** Time for which a rank answers after its communicator has ended, for ranks whose deadline passes later. */
    private static final long ANSWERS_AFTER_END_SECONDS = 30;

    private static final int MAX_LISTED = 4;

    public static final Result NOTHING = new Result(List.of(), "");

    private final int rank;
    private final int size;
    private final Supplier<Position> position;
    private final Inquiry inquiry;
    private Result last = NOTHING;
    private long lastTime;
    private volatile boolean ended;

    /**
     * Result of a query.
     *
     * @param silent the ranks that did not answer
     * @param text the status of the ranks for messages, in sentences without the last period; or empty
     */
    public record Result(List<Integer> silent, String text) {}

    /**
     * The position of a rank.
     *
     * @param sequence the number of its last operation in the communicator; 0 if there is none
     * @param done true if that operation was observed as done
     * @param operation a description of that operation
     * @param call the function other than an operation in which the rank waits for others, or empty
     * @param ended the predicate of a rank that has ended its communicator, such as "has closed its communicator"; else empty
     */
    public record Position(long sequence, boolean done, String operation, String call, String ended) {
        private static final int FIELDS = 6;

        /** As an answer, with this process: a line for each field. */
        private byte[] encode() {
            String process =
                    HostName.get() + ", process " + ProcessHandle.current().pid();
            return String.join("\n", sequence + "", done + "", operation, call, ended, process)
                    .getBytes(StandardCharsets.UTF_8);
        }

        /**
         * The difference of this position from that of the rank that asks, as a predicate; empty if there is none.
         *
         * @param asking the position of the rank that asks
         */
        String differenceFrom(Position asking) {
            if (!ended.isEmpty()) {
                return ended;
            }
            if (sequence > asking.sequence) {
                return "is at " + operation;
            }
            if (!call.isEmpty() && (!call.equals(asking.call) || sequence < asking.sequence)) {
                return "is in " + call + (sequence == 0 ? ", before any operation" : ", after operation " + sequence);
            }
            String missing = sequence < asking.sequence ? "operation " + (sequence + 1) : asking.call;
            if (missing.isEmpty() || missing.equals(call)) {
                return "";
            }
            return (sequence == 0
                            ? ""
                            : done ? "has finished operation " + sequence + " and " : "is at " + operation + " and ")
                    + "has not called " + missing;
        }
    }

    private RankStatusQuery(int rank, int size, Supplier<Position> position, Inquiry inquiry) {
        this.rank = rank;
        this.size = size;
        this.position = position;
        this.inquiry = inquiry;
    }

    /**
     * Starts to answer for this rank. Returns null if the rendezvous does not support inquiries.
     *
     * @param name the name of the inquiry, the same on all ranks
     * @param position this rank's position; must not keep the communicator reachable, and may be called by any thread
     */
    public static RankStatusQuery begin(
            String name, int rank, int size, Rendezvous rendezvous, Supplier<Position> position) {
        try {
            return rendezvous
                    .inquiry(name, () -> position.get().encode())
                    .map(inquiry -> new RankStatusQuery(rank, size, position, inquiry))
                    .orElse(null);
        } catch (IllegalArgumentException | IllegalStateException closed) {
            // The store is closed, or another inquiry has the name: a communicator works without a query.
            return null;
        }
    }

    /**
     * Asks the ranks and waits for their answers. Returns the last result if it is less than 2 s old or the
     * communicator has ended.
     */
    public synchronized Result ask() {
        if (ended || last != NOTHING && System.nanoTime() - lastTime < CACHED_NANOSECONDS) {
            return last;
        }
        last = askNow();
        lastTime = System.nanoTime();
        return last;
    }

    private Result askNow() {
        try {
            return result(inquiry.ask(TIMEOUT));
        } catch (RendezvousTimeoutException silent) {
            return silent.missing().isEmpty()
                    ? NOTHING
                    : new Result(
                            silent.missing(),
                            noAnswerFrom(silent.missing())
                                    + ", which keeps the store, so that the others could not be asked");
        } catch (RendezvousException | IllegalStateException unreachable) {
            return NOTHING;
        }
    }

    private Result result(Map<Integer, byte[]> answers) {
        Position mine = position.get();
        List<Integer> silent = IntStream.range(0, size)
                .filter(rank -> rank != this.rank && !answers.containsKey(rank))
                .boxed()
                .toList();
        List<String> sentences = new ArrayList<>();
        if (!silent.isEmpty()) {
            sentences.add(noAnswerFrom(silent));
        }
        int elsewhere = 0;
        for (Map.Entry<Integer, byte[]> answer : answers.entrySet()) {
            String[] fields = new String(answer.getValue(), StandardCharsets.UTF_8).split("\n", -1);
            if (answer.getKey() == rank || fields.length != Position.FIELDS || !fields[0].matches("\\d{1,18}")) {
                continue;
            }
            String difference = new Position(
                            Long.parseLong(fields[0]), Boolean.parseBoolean(fields[1]), fields[2], fields[3], fields[4])
                    .differenceFrom(mine);
            if (!difference.isEmpty() && elsewhere++ < MAX_LISTED) {
                sentences.add("Rank " + answer.getKey() + " (" + fields[5] + ") " + difference);
            }
        }
        if (elsewhere > MAX_LISTED) {
            sentences.add(elsewhere - MAX_LISTED + " more ranks are elsewhere");
        }
        return new Result(
                silent,
                sentences.isEmpty()
                        ? "All ranks answered and are in the same "
                                + (mine.call().isEmpty() ? "operation" : "call")
                        : String.join(". ", sentences));
    }

    private static String noAnswerFrom(List<Integer> silent) {
        return "No answer from "
                + (silent.size() == 1 ? "rank " : "ranks ")
                + silent.stream().map(Object::toString).collect(Collectors.joining(", "));
    }

    /** Ends the query; this rank answers for a while that its communicator has ended. */
    public void end() {
        // Without the lock: a query may be running, and an abort must not wait.
        ended = true;
        CompletableFuture.delayedExecutor(ANSWERS_AFTER_END_SECONDS, TimeUnit.SECONDS)
                .execute(inquiry::close);
    }
}

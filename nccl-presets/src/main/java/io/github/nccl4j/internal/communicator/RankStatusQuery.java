package io.github.nccl4j.internal.communicator;

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
     * @param text the status of the ranks for messages, or empty
     */
    public record Result(List<Integer> silent, String text) {}

    /**
     * The last operation of a rank.
     *
     * @param sequence its number in the communicator
     * @param text the status of the rank as a predicate; begins with "is at " if it has called an operation
     */
    public record Position(long sequence, String text) {}

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
                    .inquiry(name, () -> answer(position.get()))
                    .map(inquiry -> new RankStatusQuery(rank, size, position, inquiry))
                    .orElse(null);
        } catch (IllegalArgumentException | IllegalStateException closed) {
            // The store is closed, or another inquiry has the name: a communicator works without a query.
            return null;
        }
    }

    /** Returns an answer: the number of the last operation, a newline, and the status as text. */
    private static byte[] answer(Position position) {
        return (position.sequence() + "\n" + position.text()).getBytes(StandardCharsets.UTF_8);
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
        long mine = position.get().sequence();
        List<Integer> silent = IntStream.range(0, size)
                .filter(rank -> rank != this.rank && !answers.containsKey(rank))
                .boxed()
                .toList();
        List<String> elsewhere = new ArrayList<>();
        answers.forEach((rank, answer) -> {
            String[] parts = new String(answer, StandardCharsets.UTF_8).split("\n", 2);
            if (rank != this.rank
                    && parts.length == 2
                    && !(parts[0].equals(Long.toString(mine)) && parts[1].startsWith("is at "))) {
                elsewhere.add("rank " + rank + " " + parts[1]);
            }
        });
        String text = silent.isEmpty() ? "All ranks answered" : noAnswerFrom(silent);
        if (!elsewhere.isEmpty()) {
            text += "; " + elsewhere.stream().limit(MAX_LISTED).collect(Collectors.joining("; "))
                    + (elsewhere.size() > MAX_LISTED
                            ? "; " + (elsewhere.size() - MAX_LISTED) + " more ranks are at other operations"
                            : "");
        }
        return new Result(silent, text);
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

package io.github.nccl4j.highlevel;

import io.github.nccl4j.launch.Inquiry;
import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.RendezvousTimeoutException;
import java.lang.ref.WeakReference;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * Asks the ranks of a communicator what they are at, when something was not done in time. They answer by the store where they
 * met, whatever their threads wait for; a rank that is stopped does not.
 */
final class RankStatusQuery {
    /** Who waited for less does not want to wait for this. */
    static final Duration PATIENCE = Duration.ofSeconds(1);

    private static final long FRESH = 2_000_000_000;

    /** Ranks that come to their deadline later hear of one that has ended. */
    private static final long ANSWERS_AFTER_END_SECONDS = 30;

    private static final int MOST_TOLD = 4;

    static final Result NOTHING = new Result(List.of(), "");

    private final CommunicatorCore core;
    private final Inquiry inquiry;
    private Result last = NOTHING;
    private long lastTime;
    private volatile boolean ended;

    /**
     * What came of it.
     *
     * @param silent the ranks that have not answered
     * @param text for people, or empty
     */
    record Result(List<Integer> silent, String text) {}

    private RankStatusQuery(CommunicatorCore core, Inquiry inquiry) {
        this.core = core;
        this.inquiry = inquiry;
    }

    /** From now on this rank answers; null where ranks can't be asked. */
    static RankStatusQuery begin(CommunicatorCore core, Rendezvous rendezvous) {
        WeakReference<CommunicatorCore> dropped = new WeakReference<>(core);
        try {
            return rendezvous
                    .inquiry("roll-" + core.identity(), () -> answer(dropped.get()))
                    .map(inquiry -> new RankStatusQuery(core, inquiry))
                    .orElse(null);
        } catch (IllegalArgumentException | IllegalStateException closed) {
            // There is no store any more, or one of the same name is still there: nothing that a communicator needs.
            return null;
        }
    }

    /** The number of the last operation, and what this rank is at in words. */
    private static byte[] answer(CommunicatorCore core) {
        String text = "0\nhas dropped its communicator";
        if (core != null) {
            OperationLog.Entry last = core.communicator().operationLog().last();
            text = last.sequence() + "\n"
                    + switch (core.state()) {
                        case CLOSED -> "has closed its communicator";
                        case ABORTED -> "has aborted its communicator";
                        default -> last.sequence() == 0 ? "has called nothing" : "is at " + last.describe();
                    };
        }
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /** Asks, and waits a moment; soon after another time, and when the communicator has ended, says the same again. */
    synchronized Result ask() {
        if (ended || last != NOTHING && System.nanoTime() - lastTime < FRESH) {
            return last;
        }
        last = askNow();
        lastTime = System.nanoTime();
        return last;
    }

    private Result askNow() {
        try {
            return result(inquiry.ask(PATIENCE));
        } catch (RendezvousTimeoutException silent) {
            return silent.missing().isEmpty()
                    ? NOTHING
                    : new Result(
                            silent.missing(),
                            notHeardOf(silent.missing())
                                    + ", which keeps the store, so that the others could not be asked");
        } catch (RendezvousException | IllegalStateException unreachable) {
            return NOTHING;
        }
    }

    private Result result(Map<Integer, byte[]> answers) {
        long mine = core.communicator().operationLog().last().sequence();
        List<Integer> silent = IntStream.range(0, core.size())
                .filter(rank -> rank != core.rank() && !answers.containsKey(rank))
                .boxed()
                .toList();
        List<String> elsewhere = new ArrayList<>();
        answers.forEach((rank, answer) -> {
            String[] parts = new String(answer, StandardCharsets.UTF_8).split("\n", 2);
            if (rank != core.rank()
                    && parts.length == 2
                    && !(parts[0].equals(Long.toString(mine)) && parts[1].startsWith("is at "))) {
                elsewhere.add("rank " + rank + " " + parts[1]);
            }
        });
        String text = silent.isEmpty() ? "All ranks were heard of" : notHeardOf(silent);
        if (!elsewhere.isEmpty()) {
            text += "; " + elsewhere.stream().limit(MOST_TOLD).collect(Collectors.joining("; "))
                    + (elsewhere.size() > MOST_TOLD
                            ? "; " + (elsewhere.size() - MOST_TOLD) + " more are not where this rank is"
                            : "");
        }
        return new Result(silent, text);
    }

    private static String notHeardOf(List<Integer> silent) {
        return "Not heard of: "
                + (silent.size() == 1 ? "rank " : "ranks ")
                + silent.stream().map(Object::toString).collect(Collectors.joining(", "));
    }

    /** The communicator has ended, which others may still ask about. */
    void end() {
        // Without the lock: somebody may be asking, and an abort waits for nobody.
        ended = true;
        CompletableFuture.delayedExecutor(ANSWERS_AFTER_END_SECONDS, TimeUnit.SECONDS)
                .execute(inquiry::close);
    }
}

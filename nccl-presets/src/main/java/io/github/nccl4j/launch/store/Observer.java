package io.github.nccl4j.launch.store;

import io.github.nccl4j.launch.RankStatus.State;
import io.github.nccl4j.launch.wire.Wire;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/**
 * The server's end of an observer: asks the ranks of all jobs for their status, and passes each answer on at once. A
 * rank has at most one unanswered question, for any number of observers, so that no observer can flood it. Confined to
 * the thread of the loop.
 */
final class Observer {
    /** Limit for answers that the observer has not read; further answers are omitted. */
    static final long MAX_QUEUED_BYTES = 16L << 20;

    private static final long MAX_LOOK_SECONDS = 60;
    private static final long POLL_NANOS = 1_000_000;

    /** A connected rank. */
    interface Rank {
        int rank();

        String process();

        /** Nanoseconds since the last frame of the rank, if the rank is silent; otherwise 0. */
        long silence();

        /** Asks the rank, unless it has yet to answer, and gives the answer to the observer. */
        void ask(Observer asker);

        /** The observer does not wait any more. */
        void forget(Observer asker);
    }

    /** The connection of the observer. */
    interface Output {
        void send(byte[] frame);

        boolean hasSentAll();
    }

    /**
     * A job at the beginning of a look.
     *
     * @param joined the connected ranks
     * @param gone the ranks that are lost or have left
     */
    record Job(String name, int restart, int size, List<Rank> joined, Map<Integer, Gone> gone) {}

    /** A rank that is lost, or has left. */
    record Gone(String process, boolean left) {}

    private final TimerQueue timers;
    private final Supplier<List<Job>> jobs;
    private final Output output;
    private final Deque<byte[]> queue = new ArrayDeque<>();
    private long queuedBytes;
    private boolean pumping;

    private boolean looking;
    private int number;
    private TimerQueue.Timer timer;
    /** The ranks that have not answered, with the index of their job. */
    private final Map<Rank, Integer> waiting = new LinkedHashMap<>();

    Observer(TimerQueue timers, Supplier<List<Job>> jobs, Output output) {
        this.timers = timers;
        this.jobs = jobs;
        this.output = output;
    }

    Void handleRequest(ByteBuffer frame) throws IOException {
        int wanted = frame.getInt();
        long timeout = frame.getLong();
        if (timeout < 0 || timeout > TimeUnit.SECONDS.toNanos(MAX_LOOK_SECONDS)) {
            throw new IOException("timeout must be from 0 to " + MAX_LOOK_SECONDS + " s: " + timeout + " ns");
        }
        if (looking) {
            throw new IOException("an observer must wait for the end of its look");
        }
        looking = true;
        number = wanted;
        begin(timeout);
        return null;
    }

    private void begin(long timeout) {
        List<Job> all = jobs.get();
        for (int i = 0; i < all.size(); i++) {
            Job job = all.get(i);
            add(part(Wire.Look.JOB).text(job.name).number32(job.restart).number32(job.size));
            for (Map.Entry<Integer, Gone> one : job.gone.entrySet()) {
                State state = one.getValue().left ? State.LEFT : State.LOST;
                add(i, one.getKey(), state, one.getValue().process, 0, new byte[0]);
            }
            for (Rank rank : job.joined) {
                waiting.put(rank, i);
            }
        }
        timer = timers.schedule(timers.now() + timeout, this::giveUp);
        // A copy: a rank whose connection breaks now is reported and removed.
        new ArrayList<>(waiting.keySet()).forEach(rank -> rank.ask(this));
        endIfDone();
    }

    /** A rank has answered. */
    void report(Rank rank, byte[] report) {
        end(rank, State.ANSWERED, report);
        endIfDone();
    }

    /** The connection of a rank has ended. */
    void lose(Rank rank, boolean left) {
        end(rank, left ? State.LEFT : State.LOST, new byte[0]);
        endIfDone();
    }

    private void end(Rank rank, State state, byte[] report) {
        Integer job = waiting.remove(rank);
        if (job != null) {
            add(job, rank.rank(), state, rank.process(), state == State.SILENT ? rank.silence() : 0, report);
        }
    }

    private void giveUp() {
        for (Rank rank : new ArrayList<>(waiting.keySet())) {
            rank.forget(this);
            end(rank, rank.silence() > 0 ? State.SILENT : State.NO_ANSWER, new byte[0]);
        }
        endIfDone();
    }

    private void endIfDone() {
        if (looking && waiting.isEmpty()) {
            timers.cancel(timer);
            looking = false;
            add(part(Wire.Look.END));
        }
    }

    /** The connection of the observer has ended. */
    void close() {
        timers.cancel(timer);
        looking = false;
        waiting.keySet().forEach(rank -> rank.forget(this));
        waiting.clear();
        queue.clear();
    }

    /* Output. */

    private Wire.Frame part(Wire.Look part) {
        return new Wire.Frame().number32(number).number8(part.ordinal());
    }

    private void add(int job, int rank, State state, String process, long silence, byte[] report) {
        boolean fits = queuedBytes + report.length <= MAX_QUEUED_BYTES;
        byte[] sent = fits ? report : new byte[0];
        add(part(Wire.Look.RANK)
                .number32(job)
                .number32(rank)
                .number8(state.ordinal())
                .text(process)
                .number64(silence)
                .bytes(sent));
    }

    private void add(Wire.Frame frame) {
        byte[] content = frame.toBytes();
        queue.add(content);
        queuedBytes += content.length;
        if (!pumping) {
            pump();
        }
    }

    /** Sends while the observer reads, since a connection that is not read from is closed. */
    private void pump() {
        while (!queue.isEmpty() && output.hasSentAll()) {
            byte[] next = queue.remove();
            queuedBytes -= next.length;
            output.send(next);
        }
        pumping = !queue.isEmpty();
        if (pumping) {
            timers.schedule(timers.now() + POLL_NANOS, this::pump);
        }
    }
}

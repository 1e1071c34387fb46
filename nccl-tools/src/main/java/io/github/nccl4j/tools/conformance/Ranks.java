package io.github.nccl4j.tools.conformance;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CommunicatorBuilder;
import io.github.nccl4j.highlevel.CommunicatorConfig;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.UniqueId;
import io.github.nccl4j.tools.support.Threads;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.function.Consumer;
import java.util.function.Predicate;
import java.util.function.Supplier;

/** Creates communicators, in each way that a program can, and runs a suite with them. */
final class Ranks {
    private static final Duration DEADLINE = Duration.ofSeconds(120);
    private static final Duration LIMIT = Duration.ofMinutes(9);

    private final boolean blocking;
    private final Consumer<Crew> suite;
    private final ProgressWatch watch;
    private final Predicate<String> wanted;

    Ranks(boolean blocking, Consumer<Crew> suite) {
        this(blocking, suite, ProgressWatch.NONE, what -> true);
    }

    /**
     * Creates ranks whose crews run the wanted checks only.
     *
     * @param wanted true for a check that is to run, by its subject and description
     */
    Ranks(boolean blocking, Consumer<Crew> suite, ProgressWatch watch, Predicate<String> wanted) {
        this.blocking = blocking;
        this.suite = suite;
        this.watch = watch;
        this.wanted = wanted;
    }

    private CommunicatorBuilder builder() {
        CommunicatorBuilder builder = Communicator.builder().deadline(DEADLINE);
        return blocking
                ? builder
                : builder.config(CommunicatorConfig.builder().blocking(false).build());
    }

    /** A thread for each rank. */
    Report inThreads(List<Device> devices) throws Exception {
        int size = devices.size();
        UniqueId id = UniqueId.create();
        List<Callable<Report>> ranks = new ArrayList<>();
        for (int r = 0; r < size; r++) {
            int rank = r;
            ranks.add(() -> run(
                    "rank " + rank,
                    () -> List.of(builder().device(devices.get(rank)).create(id, rank, size))));
        }
        return Report.ofRanks(Threads.together(ranks, LIMIT));
    }

    /** All ranks in this thread. */
    Report inOneThread(List<Device> devices) {
        return run("all ranks", () -> builder().createAll(devices));
    }

    /** One rank in this process, the others elsewhere. */
    Report inThisProcess(UniqueId id, int rank, int size, Device device) {
        return run("rank " + rank, () -> List.of(builder().device(device).create(id, rank, size)));
    }

    private Report run(String who, Supplier<List<Communicator>> communicators) {
        String name = Thread.currentThread().getName();
        Thread.currentThread().setName(who);
        watch.at("creating the communicator");
        try {
            return run(new Crew(communicators.get(), watch, wanted));
        } finally {
            watch.done();
            Thread.currentThread().setName(name);
        }
    }

    private Report run(Crew crew) {
        boolean done = false;
        try {
            suite.accept(crew);
            done = true;
        } catch (Crew.Unusable inTheReport) {
            // The other checks can't be run.
        } finally {
            if (!done) {
                // Other ranks must not wait for this one.
                crew.abort();
            }
            watch.at("closing the communicator");
            close(crew);
        }
        return crew.report();
    }

    /** A failure here must not hide an earlier one. */
    private static void close(Crew crew) {
        try {
            crew.close();
        } catch (RuntimeException e) {
            crew.report().add(Outcome.failed("close", e.toString()));
        }
    }
}

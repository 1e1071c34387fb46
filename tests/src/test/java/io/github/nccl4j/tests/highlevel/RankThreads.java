package io.github.nccl4j.tests.highlevel;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CommunicatorBuilder;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.UniqueId;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** The ranks of a communicator on the host engine, each in a thread of this process. */
final class RankThreads {
    static final CudaStream STREAM = CudaStream.defaultOf(Device.host());

    private RankThreads() {}

    /** What a rank does. */
    @FunctionalInterface
    interface Body {
        void run(Communicator communicator) throws Exception;
    }

    /** Runs all ranks, and closes their communicators; if one fails, the others don't wait for it. */
    static void run(int size, Body body) throws Exception {
        run(size, Communicator.builder(), body);
    }

    static void run(int size, CommunicatorBuilder builder, Body body) throws Exception {
        UniqueId id = UniqueId.create();
        ExecutorService threads = Executors.newFixedThreadPool(size);
        try {
            List<Future<?>> ranks = new ArrayList<>();
            for (int r = 0; r < size; r++) {
                int rank = r;
                ranks.add(threads.submit(() -> {
                    Communicator communicator = builder.create(id, rank, size);
                    try {
                        body.run(communicator);
                        communicator.close();
                    } catch (Throwable failure) {
                        communicator.abort();
                        throw failure;
                    }
                    return null;
                }));
            }
            Throwable first = null;
            for (Future<?> rank : ranks) {
                try {
                    rank.get();
                } catch (ExecutionException e) {
                    if (first == null) {
                        first = e.getCause();
                    } else {
                        first.addSuppressed(e.getCause());
                    }
                }
            }
            if (first != null) {
                throw new AssertionError("a rank has failed: " + first, first);
            }
        } finally {
            threads.shutdownNow();
        }
    }
}

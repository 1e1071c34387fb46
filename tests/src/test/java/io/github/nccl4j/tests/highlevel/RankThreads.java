package io.github.nccl4j.tests.highlevel;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CommunicatorBuilder;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.UniqueId;
import io.github.nccl4j.tests.Threads;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;

/** The ranks of a communicator on the host engine, each in a thread of this process. */
final class RankThreads {
    private static final Duration LIMIT = Duration.ofSeconds(50);

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
        List<Callable<Void>> ranks = new ArrayList<>();
        for (int r = 0; r < size; r++) {
            int rank = r;
            ranks.add(() -> {
                Communicator communicator = builder.create(id, rank, size);
                try {
                    body.run(communicator);
                    communicator.close();
                } catch (Throwable failure) {
                    communicator.abort();
                    throw failure;
                }
                return null;
            });
        }
        Threads.together(ranks, LIMIT);
    }
}

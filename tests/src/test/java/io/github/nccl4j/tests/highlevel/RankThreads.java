package io.github.nccl4j.tests.highlevel;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CommunicatorBuilder;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.NcclResultException;
import io.github.nccl4j.highlevel.NcclTimeoutException;
import io.github.nccl4j.highlevel.UniqueId;
import io.github.nccl4j.tools.support.Threads;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/** The ranks of a communicator on the host engine, each in a thread of this process. */
final class RankThreads {
    private static final Duration LIMIT = Duration.ofMinutes(5);

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
        Creation creation = new Creation(builder, size);
        List<Callable<Void>> ranks = new ArrayList<>();
        for (int r = 0; r < size; r++) {
            int rank = r;
            ranks.add(() -> {
                Communicator communicator = creation.create(rank);
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

    /**
     * The making of a communicator that all ranks repeat if one is late: on a busy machine it may take longer than the deadline
     * that a test has for what it looks at.
     */
    static final class Creation {
        private final CommunicatorBuilder builder;
        private final int size;
        private final CyclicBarrier all;
        private final AtomicBoolean late = new AtomicBoolean();
        private volatile UniqueId id = UniqueId.create();
        private volatile boolean again;

        Creation(CommunicatorBuilder builder, int size) {
            this.builder = builder;
            this.size = size;
            this.all = new CyclicBarrier(size, this::decide);
        }

        private void decide() {
            again = late.getAndSet(false);
            if (again) {
                id = UniqueId.create();
            }
        }

        Communicator create(int rank) throws Exception {
            while (true) {
                Communicator made = null;
                NcclResultException failure = null;
                try {
                    made = builder.create(id, rank, size);
                } catch (NcclResultException e) {
                    failure = e;
                    late.compareAndSet(false, e instanceof NcclTimeoutException);
                }
                all.await(LIMIT.toSeconds(), TimeUnit.SECONDS);
                if (made != null && again) {
                    made.abort();
                } else if (made != null) {
                    return made;
                } else if (!again) {
                    throw failure;
                }
            }
        }
    }
}

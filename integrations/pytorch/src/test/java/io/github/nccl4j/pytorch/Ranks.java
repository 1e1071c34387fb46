package io.github.nccl4j.pytorch;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.UniqueId;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.bytedeco.pytorch.global.torch;

/** Runs ranks as threads of this process, on the host engine. */
final class Ranks {
    private static final Duration DEADLINE = Duration.ofSeconds(20);

    private Ranks() {}

    interface Body {
        void run(Communicator communicator) throws Exception;
    }

    /** Runs a body at each rank; throws what the first rank that failed threw. */
    static void run(int size, Body body) throws Exception {
        // More threads would share two cores, and change the order of sums.
        torch.set_num_threads(1);
        UniqueId id = UniqueId.create();
        ExecutorService threads = Executors.newFixedThreadPool(size);
        try {
            List<Future<?>> ranks = new ArrayList<>();
            for (int rank = 0; rank < size; rank++) {
                int own = rank;
                ranks.add(threads.submit(() -> {
                    try (Communicator communicator =
                            Communicator.builder().deadline(DEADLINE).create(id, own, size)) {
                        body.run(communicator);
                    }
                    return null;
                }));
            }
            for (Future<?> rank : ranks) {
                rank.get();
            }
        } finally {
            threads.shutdown();
        }
    }
}

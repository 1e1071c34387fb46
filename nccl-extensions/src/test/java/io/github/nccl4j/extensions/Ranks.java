package io.github.nccl4j.extensions;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** Ranks in threads of this process, on the host engine. */
final class Ranks {
    private Ranks() {}

    interface Body {
        void run(Communicator communicator, CudaStream stream) throws Exception;
    }

    /** Runs a body in each rank; throws the failure of the first rank that has one. */
    static void run(int size, Body body) throws Exception {
        List<Communicator> communicators = Communicator.createAll(Collections.nCopies(size, Device.host()));
        ExecutorService threads = Executors.newFixedThreadPool(size);
        try {
            List<Future<Void>> done = new ArrayList<>();
            for (Communicator communicator : communicators) {
                done.add(threads.submit(() -> {
                    try (communicator;
                            CudaStream stream = CudaStream.nonBlocking(communicator.device())) {
                        body.run(communicator, stream);
                        return null;
                    } catch (Throwable e) {
                        // The other ranks wait for this one.
                        communicator.abort();
                        throw e;
                    }
                }));
            }
            for (Future<Void> one : done) {
                try {
                    one.get();
                } catch (ExecutionException e) {
                    throw new AssertionError(e.getCause());
                }
            }
        } finally {
            threads.shutdownNow();
        }
    }
}

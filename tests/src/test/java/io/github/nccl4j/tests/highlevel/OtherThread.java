package io.github.nccl4j.tests.highlevel;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.testing.Waiting;
import java.util.concurrent.CompletableFuture;

/** A thread of its own that is in a call which does not return by itself. */
final class OtherThread {
    private OtherThread() {}

    /** Starts the call in a thread, and returns when it is in the communicator. */
    static CompletableFuture<Void> startInside(Communicator communicator, String name, Runnable call)
            throws InterruptedException {
        CompletableFuture<Void> ended = new CompletableFuture<>();
        new Thread(() -> callUntilLetIn(call, ended), name).start();
        Waiting.until(name + " inside", () -> ended.isDone() || isInUse(communicator));
        return ended;
    }

    /** Who asks whether another thread is inside is inside himself at that moment. */
    private static void callUntilLetIn(Runnable call, CompletableFuture<Void> ended) {
        while (!ended.isDone()) {
            try {
                call.run();
                ended.complete(null);
            } catch (RuntimeException e) {
                if (!isInUse(e)) {
                    ended.completeExceptionally(e);
                }
            }
        }
    }

    private static boolean isInUse(Communicator communicator) {
        try {
            communicator.work(CudaStream.defaultOf(communicator.device()));
            return false;
        } catch (IllegalStateException e) {
            return isInUse(e);
        }
    }

    private static boolean isInUse(RuntimeException e) {
        return e instanceof IllegalStateException && e.getMessage().contains("is in use by thread");
    }
}

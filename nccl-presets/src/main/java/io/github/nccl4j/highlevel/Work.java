package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.communicator.StreamWork;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;

/**
 * The work that was in a stream when {@link Communicator#work} was called. A thread can wait for the work with a
 * deadline, while other ranks may fail.
 *
 * <pre>{@code
 * communicator.allReduce(gradients, ReduceOp.SUM, stream);
 * communicator.work(stream).await(Duration.ofSeconds(10));
 * }</pre>
 *
 * <p>Waiting checks the device for completion, and NCCL for errors. After an error or when the deadline has passed, the
 * communicator's {@link FailurePolicy} is called, and an exception names the last operation, its rank, and NCCL's
 * messages. The work itself continues unless the policy aborts the communicator.
 *
 * <p>Work need not be closed; its resources are freed with the communicator.
 *
 * <p><b>Threads.</b> Any thread may wait for the work; several threads may wait at once.
 *
 * @since 0.1
 */
public final class Work {
    private final StreamWork work;

    Work(StreamWork work) {
        this.work = work;
    }

    /**
     * Returns true if the work is done. Does not wait.
     *
     * @return true if the work is done
     * @throws NcclRemoteException if a call was ended because a rank is lost, before the work was done
     * @throws NcclTimeoutException if a call was ended at the communicator's deadline, before the work was done
     * @throws IllegalStateException if the communicator was revoked or aborted before the work was done
     * @throws CudaException if work on the device failed
     */
    public boolean isDone() {
        return work.isDone();
    }

    /**
     * Waits until the work is done, at most for the communicator's deadline. As {@link #await(Duration)}.
     *
     * @throws NcclTimeoutException if it was not done in time
     * @throws NcclResultException if NCCL reports an error of the communicator
     * @throws NcclInterruptedException if the thread was interrupted; the communicator was aborted then
     * @throws IllegalStateException if the communicator was revoked or aborted before it was done
     * @throws CudaException if work on the device failed
     */
    public void await() {
        work.await();
    }

    /**
     * Waits until the work is done, at most for a timeout. An interrupt ends the wait and aborts the communicator.
     *
     * @param timeout the timeout; 0 checks once
     * @throws NcclTimeoutException if the work was not done in time
     * @throws NcclResultException if NCCL reports an error of the communicator
     * @throws NcclInterruptedException if the thread was interrupted; the communicator was aborted then
     * @throws IllegalArgumentException if the timeout is negative
     * @throws IllegalStateException if the communicator was revoked or aborted before it was done
     * @throws CudaException if work on the device failed
     */
    public void await(Duration timeout) {
        work.await(timeout);
    }

    /**
     * Returns a future for the work, as {@link #toFuture(Executor)} with threads of this package. Each completion has a
     * thread of its own, so that dependent actions may wait, and may call and await further operations.
     *
     * @return a new future
     */
    public CompletableFuture<Void> toFuture() {
        return work.toFuture();
    }

    /**
     * Returns a future for the work. The executor completes it: normally when the work is done, exceptionally as {@link
     * #await()} would throw. Actions that depend on the future run on the executor too, unless they are added after the
     * completion. If more actions wait for each other's operations than the executor has threads, they wait until the
     * deadline. If the work is done already, or its failure is known, the future is complete when this method
     * returns. Cancelling the future does not affect the work.
     *
     * @param executor completes the future, and calls the communicator's {@link FailurePolicy} if the work fails. If it
     *     rejects that, the future gets its exception. If it runs actions in the thread that polls the work, waiting for
     *     work in them throws {@link IllegalStateException}
     * @return a new future
     */
    public CompletableFuture<Void> toFuture(Executor executor) {
        return work.toFuture(executor);
    }

    /** {@return the last operation of the work: "ncclAllReduce of 1024 float32 (operation 17)"} */
    @Override
    public String toString() {
        return work.toString();
    }
}

package io.github.nccl4j.spark;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.launch.RendezvousTimeoutException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.math.BigDecimal;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import org.apache.spark.TaskContext;
import org.apache.spark.TaskKilledException;
import org.apache.spark.util.TaskCompletionListener;
import org.apache.spark.util.TaskFailureListener;

/**
 * Ends the calls for which a task waits when Spark ends the task. Spark only sets a flag, which native code does not
 * read.
 */
final class TaskWatch {
    private static final int NANO_DIGITS = 9;

    private static final Logger LOGGER = System.getLogger(TaskWatch.class.getName());
    private static final long PERIOD_MILLIS = 100;
    private static final long EXCHANGE_PERIOD_MILLIS = 5;
    private static final long HEAD_START_MILLIS = 1000;

    private TaskWatch() {}

    /** A duration for messages: "20 s", "0.25 s". */
    static String seconds(Duration time) {
        BigDecimal seconds = BigDecimal.valueOf(time.getSeconds()).add(BigDecimal.valueOf(time.getNano(), NANO_DIGITS));
        return (seconds.signum() == 0 ? BigDecimal.ZERO : seconds.stripTrailingZeros()).toPlainString() + " s";
    }

    /**
     * Makes a call that waits for other tasks, in a thread of its own. If Spark ends the task or the limit has passed, the
     * thread is interrupted and not waited for.
     *
     * @param what the object of the wait, for messages
     * @param limit the time to wait
     * @param late disposes of the result of a call that returns after the caller gave up
     * @throws TaskKilledException if Spark ends the task
     * @throws RendezvousTimeoutException if the limit has passed
     */
    static <V> V await(TaskContext task, String what, Duration limit, Callable<V> call, Consumer<V> late)
            throws Exception {
        return await(task, what, limit, call, late, PERIOD_MILLIS, false);
    }

    /**
     * As {@link #await} for an exchange of Spark's, which looks for its result once a second and sleeps meanwhile. An interrupt ends
     * the sleep, and Spark ignores it unless the task is killed. Without it each exchange takes a second.
     */
    static <V> V awaitExchange(TaskContext task, String what, Duration limit, Callable<V> call) throws Exception {
        return await(task, what, limit, call, ignored -> {}, EXCHANGE_PERIOD_MILLIS, true);
    }

    private static <V> V await(
            TaskContext task,
            String what,
            Duration limit,
            Callable<V> call,
            Consumer<V> late,
            long periodMillis,
            boolean wakes)
            throws Exception {
        CompletableFuture<V> result = new CompletableFuture<>();
        Thread caller = daemon(task, "waits for " + what, () -> {
            try {
                V value = call.call();
                if (!result.complete(value)) {
                    late.accept(value);
                }
            } catch (Throwable e) {
                result.completeExceptionally(e);
            }
        });
        long start = System.nanoTime();
        try {
            while (true) {
                try {
                    return result.get(periodMillis, TimeUnit.MILLISECONDS);
                } catch (TimeoutException notYet) {
                    if (wakes && caller.getState() == Thread.State.TIMED_WAITING) {
                        caller.interrupt();
                    }
                    boolean killed = task.isInterrupted();
                    boolean over = Duration.ofNanos(System.nanoTime() - start).compareTo(limit) >= 0;
                    // Otherwise the call has returned meanwhile, and its result counts.
                    if ((killed || over) && result.cancel(false)) {
                        caller.interrupt();
                        throw killed
                                ? new TaskKilledException("while it waited for " + what)
                                : new RendezvousTimeoutException(
                                        describe(task) + " waited " + seconds(limit) + " for " + what, List.of());
                    }
                }
            }
        } catch (InterruptedException e) {
            if (!result.cancel(false) && !result.isCompletedExceptionally()) {
                late.accept(result.join());
            }
            caller.interrupt();
            throw e;
        } catch (ExecutionException e) {
            throw e.getCause() instanceof Exception cause ? cause : e;
        }
    }

    /**
     * Returns true if Spark ends the task within a second. When a stage ends, Spark ends its exchanges and its tasks in either
     * order.
     */
    static boolean endsSoon(TaskContext task) {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(HEAD_START_MILLIS);
        while (!task.isInterrupted() && !Thread.currentThread().isInterrupted() && System.nanoTime() < end) {
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(PERIOD_MILLIS));
        }
        return task.isInterrupted();
    }

    /**
     * Closes a communicator when its task is done, and aborts it when the task fails or Spark ends the task.
     */
    static void endWithTask(TaskContext task, Communicator communicator) {
        CompletableFuture<Boolean> succeeded = new CompletableFuture<>();
        TaskFailureListener whenFailed = (context, error) -> succeeded.complete(false);
        TaskCompletionListener whenDone = context -> {
            // If the task has failed, Spark called the failure listener first.
            if (!succeeded.isDone()) {
                try {
                    communicator.close();
                    succeeded.complete(true);
                } finally {
                    succeeded.complete(false);
                }
            }
        };
        task.addTaskFailureListener(whenFailed);
        task.addTaskCompletionListener(whenDone);
        daemon(task, "watches its communicator", () -> {
            if (!endsWell(task, succeeded)) {
                abort(task, communicator);
            }
        });
    }

    private static boolean endsWell(TaskContext task, CompletableFuture<Boolean> succeeded)
            throws InterruptedException {
        while (true) {
            try {
                if (!succeeded.get(PERIOD_MILLIS, TimeUnit.MILLISECONDS)) {
                    // Aborting makes the other tasks fail, too. The driver shows the first failure that is reported to
                    // it, which should be the cause of the others.
                    Thread.sleep(HEAD_START_MILLIS);
                    return false;
                }
                return true;
            } catch (TimeoutException notYet) {
                if (task.isInterrupted()) {
                    return false;
                }
            } catch (ExecutionException e) {
                throw new IllegalStateException("never completed with an exception", e);
            }
        }
    }

    private static void abort(TaskContext task, Communicator communicator) {
        try {
            communicator.abort();
        } catch (RuntimeException e) {
            LOGGER.log(Level.WARNING, describe(task) + ": " + communicator + " was not aborted cleanly", e);
        }
    }

    private static String describe(TaskContext task) {
        return "task " + task.partitionId() + " of stage " + task.stageId() + "." + task.stageAttemptNumber();
    }

    /** The work of a thread beside the task. */
    @FunctionalInterface
    private interface Work {
        void run() throws InterruptedException;
    }

    private static Thread daemon(TaskContext task, String what, Work work) {
        Thread thread = new Thread(
                () -> {
                    try {
                        work.run();
                    } catch (InterruptedException e) {
                        throw new IllegalStateException(what + " was interrupted", e);
                    }
                },
                "nccl4j " + describe(task) + " " + what);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }
}

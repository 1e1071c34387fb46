package io.github.nccl4j.spark;

import io.github.nccl4j.highlevel.Communicator;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import org.apache.spark.TaskContext;
import org.apache.spark.TaskKilledException;
import org.apache.spark.util.TaskCompletionListener;
import org.apache.spark.util.TaskFailureListener;

/**
 * Ends what a task waits for when Spark wants the task to end. Spark only sets a flag, of which native code knows nothing.
 */
final class TaskWatch {
    private static final Logger LOGGER = System.getLogger(TaskWatch.class.getName());
    private static final long PERIOD_MILLIS = 100;
    private static final long HEAD_START_MILLIS = 1000;

    private TaskWatch() {}

    /**
     * Makes a call that waits for other tasks, in a thread of its own, which is interrupted and left alone if the task is
     * to end or the limit has passed.
     *
     * @param what it waits for, for the message
     * @param limit how long
     * @param late gets the result of a call that returns when nobody waits for it any more
     * @throws TaskKilledException if the task is to end
     * @throws IllegalStateException if the limit has passed
     */
    static <V> V await(TaskContext task, String what, Duration limit, Callable<V> call, Consumer<V> late)
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
                    return result.get(PERIOD_MILLIS, TimeUnit.MILLISECONDS);
                } catch (TimeoutException notYet) {
                    boolean killed = task.isInterrupted();
                    boolean over = Duration.ofNanos(System.nanoTime() - start).compareTo(limit) >= 0;
                    // A call that returns late gets nowhere with its result, and disposes of it.
                    if ((killed || over) && result.cancel(false)) {
                        caller.interrupt();
                        throw killed
                                ? new TaskKilledException("while it waited for " + what)
                                : new IllegalStateException(
                                        describe(task) + " waited for " + what + " for " + limit + " in vain");
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
     * Closes a communicator when the task is done, and aborts it when the task has failed or is to end.
     */
    static void endWithTask(TaskContext task, Communicator communicator) {
        CompletableFuture<Boolean> succeeded = new CompletableFuture<>();
        TaskFailureListener whenFailed = (context, error) -> succeeded.complete(false);
        TaskCompletionListener whenDone = context -> {
            // Spark has called the other one before, if the task has failed.
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
                    // Aborting makes the other tasks fail too. The driver shows the first failure that it hears of,
                    // which
                    // should be the one that led to the others.
                    Thread.sleep(HEAD_START_MILLIS);
                    return false;
                }
                return true;
            } catch (TimeoutException notYet) {
                if (task.isInterrupted()) {
                    return false;
                }
            } catch (ExecutionException e) {
                throw new IllegalStateException("it is never completed with an exception", e);
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

    /** What a thread beside the task does. */
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

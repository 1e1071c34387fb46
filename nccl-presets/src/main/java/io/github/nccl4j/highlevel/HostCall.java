package io.github.nccl4j.highlevel;

import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.IntConsumer;
import java.util.function.IntSupplier;

/**
 * Makes a native call that may never return in a thread of its own, so that the caller can stop waiting for it. The
 * thread is lost then until the call returns; NCCL has no way to end it from outside.
 */
final class HostCall {
    private int result;
    private Throwable thrown;
    private boolean abandoned;
    private final CountDownLatch finished = new CountDownLatch(1);

    private HostCall() {}

    /** The call has not returned in time. */
    static final class Expired extends Exception {
        private static final long serialVersionUID = 1L;

        private Expired() {
            super(null, null, false, false);
        }
    }

    /**
     * Makes the call. An interrupt does not end the waiting, but is kept for the caller.
     *
     * @param name of the thread
     * @param late gets the result of a call that returns when nobody waits for it any more
     */
    static int make(String name, Duration timeout, IntSupplier call, IntConsumer late) throws Expired {
        HostCall one = new HostCall();
        Thread thread = new Thread(() -> one.run(call, late), "nccl4j " + name);
        thread.setDaemon(true);
        thread.start();
        if (!one.await(Waiting.nanoseconds(timeout)) && one.abandon()) {
            throw new Expired();
        }
        if (one.thrown instanceof RuntimeException exception) {
            throw exception;
        }
        if (one.thrown instanceof Error error) {
            throw error;
        }
        return one.result;
    }

    private void run(IntSupplier call, IntConsumer late) {
        try {
            result = call.getAsInt();
        } catch (RuntimeException | Error e) {
            thrown = e;
        }
        synchronized (this) {
            finished.countDown();
            if (!abandoned) {
                return;
            }
        }
        if (thrown == null) {
            late.accept(result);
        }
    }

    private boolean await(long nanoseconds) {
        long start = System.nanoTime();
        boolean interrupted = false;
        try {
            while (true) {
                try {
                    return finished.await(nanoseconds - (System.nanoTime() - start), TimeUnit.NANOSECONDS);
                } catch (InterruptedException e) {
                    interrupted = true;
                }
            }
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /** Stops waiting, unless the call has returned at the last moment. */
    private synchronized boolean abandon() {
        abandoned = finished.getCount() > 0;
        return abandoned;
    }
}

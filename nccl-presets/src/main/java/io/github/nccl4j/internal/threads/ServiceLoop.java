package io.github.nccl4j.internal.threads;

import java.lang.System.Logger.Level;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/** The loop of a thread that must not end while it is needed, whatever is thrown in it. */
public final class ServiceLoop {
    /** The pause after a failure, which may be a lack of memory. */
    private static final long PAUSE = 50_000_000;

    private ServiceLoop() {}

    /**
     * Repeats a step until it returns false. What a step throws is logged, and the next step follows: of the failures of a loop,
     * number 1, 10, 100 and so on.
     *
     * @param name the name of the service
     */
    public static void run(String name, BooleanSupplier step) {
        long failures = 0;
        long logged = 1;
        while (true) {
            try {
                if (!step.getAsBoolean()) {
                    return;
                }
            } catch (Throwable failure) {
                failures++;
                boolean logs = failures == logged;
                logged *= logs ? 10 : 1;
                pause(logs ? name : null, failure);
            }
        }
    }

    /** Logs a failure unless the name is null, and waits a little. */
    private static void pause(String name, Throwable failure) {
        try {
            if (name != null) {
                log(Level.ERROR, name + " continues after a failure", failure);
            }
            LockSupport.parkNanos(PAUSE);
        } catch (Throwable another) {
            // Without memory, the machine may be unable to load even a class.
        }
    }

    /** Logs a failure that nobody gets. Throws nothing: there may be no memory, and the logger may be a program's. */
    public static void log(Level level, String message, Throwable failure) {
        try {
            System.getLogger("io.github.nccl4j").log(level, message, failure);
        } catch (Throwable lost) {
            // The work of the thread is more important.
        }
    }
}

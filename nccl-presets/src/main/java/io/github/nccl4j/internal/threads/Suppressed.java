package io.github.nccl4j.internal.threads;

/** Collects the exceptions of several actions: the first is thrown, with the others suppressed in it. */
public final class Suppressed {
    private Suppressed() {}

    public static RuntimeException first(RuntimeException earlier, RuntimeException now) {
        if (earlier == null) {
            return now;
        }
        if (earlier != now) {
            earlier.addSuppressed(now);
        }
        return earlier;
    }

    public static void rethrow(RuntimeException problem) {
        if (problem != null) {
            throw problem;
        }
    }
}

package io.github.nccl4j.highlevel;

/** Collects the exceptions of several actions: the first is thrown, with the others suppressed in it. */
final class Suppressed {
    private Suppressed() {}

    static RuntimeException first(RuntimeException earlier, RuntimeException now) {
        if (earlier == null) {
            return now;
        }
        if (earlier != now) {
            earlier.addSuppressed(now);
        }
        return earlier;
    }

    static void rethrow(RuntimeException problem) {
        if (problem != null) {
            throw problem;
        }
    }
}

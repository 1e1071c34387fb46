package io.github.nccl4j.highlevel;

/** Several things are done although one of them fails: the first exception is thrown, with the others in it. */
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

package io.github.nccl4j.tools.support;

import java.util.Arrays;
import java.util.Objects;

/** Assertions that need no test framework and are counted. */
public final class Checks {
    private int passed;

    /** Code that may throw. */
    @FunctionalInterface
    public interface Code {
        void run() throws Exception;
    }

    /** {@return the number of checks that have passed} */
    public int passed() {
        return passed;
    }

    public void isTrue(boolean condition, String what) {
        if (!condition) {
            throw new AssertionError(what);
        }
        passed++;
    }

    public void equal(Object expected, Object actual, String what) {
        if (!Objects.deepEquals(expected, actual)) {
            throw new AssertionError(what + ": expected " + text(expected) + ", was " + text(actual));
        }
        passed++;
    }

    private static String text(Object value) {
        String text = Arrays.deepToString(new Object[] {value});
        return text.length() > 300 ? text.substring(0, 300) + "..." : text;
    }

    /** The exception must be of the class, not of a subclass, and its message must contain all parts. */
    public <E extends Throwable> E fails(Class<E> type, Code code, String... parts) {
        try {
            code.run();
        } catch (Throwable thrown) {
            if (thrown.getClass() != type) {
                throw new AssertionError("expected " + type.getName() + ", was " + thrown, thrown);
            }
            for (String part : parts) {
                if (thrown.getMessage() == null || !thrown.getMessage().contains(part)) {
                    throw new AssertionError("'" + part + "' is not in: " + thrown.getMessage(), thrown);
                }
            }
            passed++;
            return type.cast(thrown);
        }
        throw new AssertionError("expected " + type.getName() + " " + Arrays.toString(parts) + ", nothing was thrown");
    }
}

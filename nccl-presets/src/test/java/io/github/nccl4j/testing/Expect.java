package io.github.nccl4j.testing;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.function.Executable;

/** Assertions about texts and messages; a failure shows the whole text. */
public final class Expect {
    private Expect() {}

    public static void assertContains(String text, String... parts) {
        for (String part : parts) {
            assertTrue(text.contains(part), () -> "'" + part + "' is not in:\n" + text);
        }
    }

    /** The call throws an exception whose message has all parts. */
    public static void fails(Class<? extends Exception> type, Executable call, String... parts) {
        assertContains(assertThrows(type, call).getMessage(), parts);
    }

    /** The message of the {@link IllegalArgumentException} that the call throws. */
    public static String refused(Executable call) {
        return assertThrows(IllegalArgumentException.class, call).getMessage();
    }

    /** The call throws an {@link IllegalArgumentException} with this message. */
    public static void refused(String message, Executable call) {
        assertEquals(message, refused(call));
    }
}

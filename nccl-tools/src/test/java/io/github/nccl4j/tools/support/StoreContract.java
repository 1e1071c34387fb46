package io.github.nccl4j.tools.support;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.RendezvousTimeoutException;
import io.github.nccl4j.launch.Store;
import io.github.nccl4j.testing.Waiting;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** What {@link Store} promises of keys, for every implementation: a class of tests extends this one. */
@Timeout(value = 5, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
public abstract class StoreContract {
    protected static final Duration LIMIT = Waiting.LONG;

    private static final Duration NOW = Duration.ZERO;

    /** The stores of the two ranks of a job. */
    protected Store zero;

    protected Store one;

    /** Opens the store of a rank of two, in the one job of the test. */
    protected abstract Store open(int rank) throws Exception;

    @BeforeEach
    void openBoth() throws Exception {
        zero = open(0);
        one = open(1);
    }

    /** Rank 0 last, because it may keep the store. */
    @AfterEach
    void closeBoth() {
        one.close();
        zero.close();
    }

    protected static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    protected static String text(byte[] bytes) {
        return new String(bytes, StandardCharsets.UTF_8);
    }

    /** A call in a thread of its own. */
    protected static final class Call<T> {
        private final FutureTask<T> task;
        private final Thread thread;

        private Call(Callable<T> call) {
            task = new FutureTask<>(call);
            thread = new Thread(task, "call");
            thread.setDaemon(true);
            thread.start();
        }

        /** Starts a call, and returns when it waits. */
        public static <T> Call<T> waiting(Callable<T> call) {
            Call<T> started = new Call<>(call);
            Waiting.until("a call that waits", () -> started.thread.getState() == Thread.State.TIMED_WAITING);
            return started;
        }

        public T result() throws ExecutionException, InterruptedException, TimeoutException {
            return task.get(LIMIT.toSeconds(), TimeUnit.SECONDS);
        }

        public RendezvousException failure() {
            Throwable cause = assertThrows(ExecutionException.class, this::result, "no failure")
                    .getCause();
            return assertInstanceOf(RendezvousException.class, cause, () -> "" + cause);
        }
    }

    protected static Call<byte[]> waitingGet(Store store, String key) {
        return Call.waiting(() -> store.get(key, LIMIT));
    }

    private static Call<Boolean> waitingAwait(Store store, String... keys) {
        return Call.waiting(() -> {
            store.await(List.of(keys), LIMIT);
            return true;
        });
    }

    /* Values. */

    @Test
    void valueIsTheLastOneThatARankHasSet() {
        zero.set("a", bytes("first"));
        assertEquals("first", text(one.get("a", NOW)));
        one.set("a", bytes("second"));
        assertEquals("second", text(zero.get("a", NOW)));
        assertEquals("second", text(one.get("a", NOW)));
        zero.set("a", new byte[0]);
        assertEquals("", text(one.get("a", LIMIT)));
        one.set("a", new byte[Rendezvous.LONGEST_VALUE]);
        assertArrayEquals(new byte[Rendezvous.LONGEST_VALUE], zero.get("a", NOW));
    }

    @Test
    void valuesAreCopied() {
        byte[] value = bytes("value");
        zero.set("a", value);
        Arrays.fill(value, (byte) 0);
        Arrays.fill(zero.get("a", NOW), (byte) 0);
        assertEquals("value", text(zero.get("a", NOW)));
        assertEquals("value", text(one.get("a", NOW)));
    }

    @Test
    void anyTextWithoutASlashIsAKey() {
        List<String> keys =
                List.of(".", "..", " ", "a b", "a+b", "%2F", "\\", "-", "\n", "é", "\ud83d\ude00", "x".repeat(1024));
        keys.forEach(key -> zero.set(key, bytes(key)));
        keys.forEach(key -> assertEquals(key, text(one.get(key, NOW))));
        keys.forEach(key -> assertTrue(one.delete(key), key));
    }

    @Test
    void keyOutlivesTheStoreThatHasSetIt() {
        one.set("a", bytes("value"));
        assertEquals(3, one.add("b", 3));
        one.close();
        assertEquals("value", text(zero.get("a", NOW)));
        assertEquals(4, zero.add("b", 1));
    }

    /* Waiting. */

    @Test
    void waitsEndWhenTheKeyIsSet() throws Exception {
        Call<byte[]> getsSet = waitingGet(zero, "a");
        Call<byte[]> getsAdded = waitingGet(zero, "b");
        Call<byte[]> other = waitingGet(one, "a");
        Call<Boolean> all = waitingAwait(one, "b", "c", "a", "c");
        zero.set("a", bytes("value"));
        assertEquals("value", text(getsSet.result()));
        assertEquals("value", text(other.result()));
        one.add("b", 7);
        assertEquals("7", text(getsAdded.result()));
        assertFalse(all.task.isDone(), "'c' is not set");
        zero.set("c", new byte[0]);
        assertTrue(all.result());
    }

    @Test
    void awaitTakesAnyNumberOfKeys() throws Exception {
        zero.await(List.of(), NOW);
        List<String> keys =
                IntStream.range(0, 200).mapToObj(i -> "x".repeat(1000) + i).toList();
        keys.subList(1, 200).forEach(key -> zero.set(key, new byte[0]));
        assertNotSet(keys.get(0), "0.01 s", () -> one.await(keys, Duration.ofMillis(10)));
        Call<Boolean> all = waitingAwait(one, keys.toArray(String[]::new));
        zero.set(keys.get(0), new byte[0]);
        assertTrue(all.result());
        zero.delete(keys.get(199));
        assertNotSet(keys.get(199), "0 s", () -> one.await(keys, NOW));
    }

    private static void assertNotSet(String key, String limit, Executable call) {
        RendezvousTimeoutException late = assertThrows(RendezvousTimeoutException.class, call);
        assertEquals("'" + key + "' was not set within " + limit, late.getMessage());
        assertEquals(List.of(), late.missing());
    }

    @Test
    void timeoutNamesTheKeyAndTheLimit() {
        zero.set("here", new byte[0]);
        assertNotSet("never", "0 s", () -> one.get("never", NOW));
        assertNotSet("never", "0.05 s", () -> one.get("never", Duration.ofMillis(50)));
        assertNotSet("never", "0 s", () -> one.await(List.of("never"), NOW));
        assertNotSet("never", "0.05 s", () -> one.await(List.of("here", "never", "here"), Duration.ofMillis(50)));
        assertEquals(0, one.get("here", NOW).length);
    }

    /** The limit has passed twice when the last key is set. */
    @Test
    void allKeysHaveOneLimit() {
        Duration limit = Duration.ofSeconds(1);
        List<String> keys = List.of("a", "b", "c", "d");
        Call<Boolean> all = Call.waiting(() -> {
            one.await(keys, limit);
            return true;
        });
        for (String key : keys) {
            assertThrows(RendezvousTimeoutException.class, () -> zero.get("never", limit.dividedBy(2)));
            zero.set(key, new byte[0]);
        }
        RendezvousException late = all.failure();
        assertEquals(RendezvousTimeoutException.class, late.getClass(), late::toString);
        assertTrue(late.getMessage().matches("'[a-d]' was not set within 1 s"), late::getMessage);
    }

    @Test
    void longestTimeoutIsNoTimeout() throws Exception {
        Duration longest = Duration.ofSeconds(Long.MAX_VALUE);
        Call<byte[]> waits = Call.waiting(() -> one.get("a", longest));
        zero.set("a", bytes("value"));
        assertEquals("value", text(waits.result()));
        one.await(List.of("a"), longest);
    }

    @Test
    void interruptEndsAWaitAndNothingElse() throws Exception {
        Call<byte[]> other = waitingGet(one, "a");
        for (Executable wait : List.<Executable>of(() -> one.get("a", LIMIT), () -> one.await(List.of("a"), LIMIT))) {
            Call<Boolean> call = Call.waiting(() -> {
                RendezvousException failure = assertThrows(RendezvousException.class, wait);
                assertEquals(RendezvousException.class, failure.getClass(), failure::toString);
                // For the key, or for a node of the store that the call reads before.
                assertTrue(failure.getMessage().contains(" was interrupted while it waited for '"), failure::toString);
                return Thread.currentThread().isInterrupted();
            });
            call.thread.interrupt();
            assertTrue(call.result(), "the thread is not interrupted any more");
        }
        one.set("a", bytes("value"));
        assertEquals("value", text(other.result()));
    }

    /* Numbers. */

    @Test
    void numbersAreAddedAtomically() throws Exception {
        List<Call<Long>> calls = Stream.of(zero, one, zero, one)
                .map(store -> new Call<>(() -> {
                    long last = 0;
                    for (int i = 0; i < 50; i++) {
                        last = store.add("sum", 3);
                    }
                    return last;
                }))
                .toList();
        long most = 0;
        for (Call<Long> call : calls) {
            most = Math.max(most, call.result());
        }
        assertEquals(600, most);
        assertEquals("600", text(zero.get("sum", NOW)));
        assertEquals(-1, one.add("sum", -601));
        assertEquals("-1", text(zero.get("sum", NOW)));
        assertEquals(0, zero.add("none", 0));
        assertEquals("0", text(one.get("none", NOW)));
        zero.set("text", bytes("-00000000000000000041"));
        assertThrows(RendezvousException.class, () -> one.add("text", 1), "21 bytes");
        zero.set("text", bytes("-0000000000000000041"));
        assertEquals(-40, one.add("text", 1));
    }

    @Test
    void sumAndValueMustBeNumbers() {
        assertNotAdded("x", 1, "the value of a counter must be a decimal number: 'x'");
        assertNotAdded("", 1, "the value of a counter must be a decimal number: ''");
        // A digit, but not in ASCII.
        assertNotAdded("\u0663", 1, "the value of a counter must be a decimal number: '");
        assertNotAdded("9".repeat(21), 1, "the value of a counter must have <= 20 bytes: it has 21");
        String range = "the sum must be from -9223372036854775808 to 9223372036854775807: ";
        assertNotAdded("" + Long.MAX_VALUE, 1, range + "9223372036854775807 + 1");
        assertNotAdded("" + Long.MIN_VALUE, -1, range + "-9223372036854775808 + -1");
        zero.set("a", bytes("" + Long.MIN_VALUE));
        assertEquals(-1, one.add("a", Long.MAX_VALUE));
    }

    private void assertNotAdded(String value, long delta, String reason) {
        zero.set("a", bytes(value));
        RendezvousException refused = assertThrows(RendezvousException.class, () -> one.add("a", delta));
        assertEquals(RendezvousException.class, refused.getClass(), refused::toString);
        assertTrue(refused.getMessage().startsWith("'a': " + reason), refused::getMessage);
        assertEquals(value, text(zero.get("a", NOW)));
    }

    /* Deleting. */

    @Test
    void deletedKeyHasNoValue() throws Exception {
        assertFalse(one.delete("a"));
        zero.set("a", bytes("5"));
        assertTrue(one.delete("a"));
        assertFalse(zero.delete("a"));
        assertThrows(RendezvousTimeoutException.class, () -> zero.get("a", NOW));
        assertThrows(RendezvousTimeoutException.class, () -> one.get("a", NOW));
        Call<byte[]> waits = waitingGet(one, "a");
        assertEquals(2, zero.add("a", 2));
        assertEquals("2", text(waits.result()));
    }

    /* Arguments. */

    static Stream<String> wrongKeys() {
        return Stream.of("", "/", "a/b", "x".repeat(1025), "é".repeat(513));
    }

    @ParameterizedTest(name = "{index}")
    @MethodSource
    void wrongKeys(String key) {
        String reason = key.isEmpty()
                ? "a key must not be empty"
                : key.contains("/")
                        ? "a key must not contain a slash: " + key
                        : "a key with its scopes must have <= 1024 bytes: " + bytes(key).length;
        for (Executable call : callsWith(key)) {
            assertRefused(reason, call);
        }
    }

    /** One for each call with keys; the last two would change or find something. */
    private List<Executable> callsWith(String key) {
        one.set("good", bytes("1"));
        Collection<String> bad = Arrays.asList("never", key);
        return List.of(
                () -> one.get(key, NOW),
                () -> one.await(bad, NOW),
                () -> one.set(key, new byte[0]),
                () -> one.add(key, 1),
                () -> one.delete(key));
    }

    private static void assertRefused(String reason, Executable call) {
        assertEquals(reason, assertThrows(IllegalArgumentException.class, call).getMessage());
    }

    @Test
    void nothingMayBeNull() {
        for (Executable call : callsWith(null)) {
            assertThrows(NullPointerException.class, call);
        }
        assertThrows(NullPointerException.class, () -> one.set("good", null));
        assertThrows(NullPointerException.class, () -> one.await(null, NOW));
        assertThrows(NullPointerException.class, () -> one.get("good", null));
        assertThrows(NullPointerException.class, () -> one.await(List.of("good"), null));
        assertEquals("1", text(zero.get("good", NOW)));
    }

    @Test
    void valueHasALimit() {
        assertRefused(
                "a value must have <= 65536 bytes: 65537", () -> one.set("a", new byte[Rendezvous.LONGEST_VALUE + 1]));
        assertFalse(zero.delete("a"));
    }

    @Test
    void negativeTimeoutIsRefused() {
        Duration negative = Duration.ofMillis(-1500);
        one.set("good", new byte[0]);
        assertRefused("timeout must be >= 0: -1.5 s", () -> one.get("good", negative));
        assertRefused("timeout must be >= 0: -1.5 s", () -> one.await(List.of("good"), negative));
        assertRefused("timeout must be >= 0: -1.5 s", () -> one.await(List.of(), negative));
    }

    /* The end. */

    @Test
    void closeEndsWaitsAndRefusesCallsOfThisRankOnly() throws Exception {
        Call<byte[]> get = waitingGet(one, "a");
        Call<Boolean> await = waitingAwait(one, "b", "a");
        Call<byte[]> other = waitingGet(zero, "a");
        one.close();
        for (Call<?> call : List.of(get, await)) {
            RendezvousException ended = call.failure();
            assertEquals(RendezvousException.class, ended.getClass(), ended::toString);
            assertTrue(ended.getMessage().contains("closed"), ended::getMessage);
        }
        one.close();
        for (Executable call : List.<Executable>of(
                () -> one.set("a", new byte[0]),
                () -> one.get("a", NOW),
                () -> one.await(List.of("a"), NOW),
                () -> one.await(List.of(), NOW),
                () -> one.add("a", 1),
                () -> one.delete("a"),
                one::attempts,
                () -> one.gather("g", new byte[0], NOW))) {
            assertEquals(
                    "the store is closed",
                    assertThrows(IllegalStateException.class, call).getMessage());
        }
        zero.set("a", bytes("value"));
        assertEquals("value", text(other.result()));
    }
}

package io.github.nccl4j.internal.cuda;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.nccl4j.testing.TestLog;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** When resources are released that work in a stream has used; the streams here are idle, so that nothing uses them. */
class PendingReleasesTest {
    private final NativeStream stream = NativeStream.create(NativeDevice.HOST, true);
    private final List<Integer> released = new ArrayList<>();

    @AfterEach
    void close() {
        stream.close();
        PendingReleases.poll();
    }

    /** Adds resources, numbered from the first. */
    private void add(int first, int last, long bytes) {
        for (int i = first; i <= last; i++) {
            int number = i;
            PendingReleases.add(stream, bytes, () -> released.add(number));
        }
    }

    private static List<Integer> numbers(int first, int last) {
        return IntStream.rangeClosed(first, last).boxed().toList();
    }

    @Test
    void everySixteenthAdditionReleasesWhatIsDone() {
        add(1, 15, 0);
        assertEquals(List.of(), released);
        add(16, 16, 0);
        assertEquals(numbers(1, 16), released);
        add(17, 31, 0);
        assertEquals(numbers(1, 16), released);
        add(32, 32, 0);
        assertEquals(numbers(1, 32), released);
    }

    @Test
    void largeWorkIsCheckedSooner() {
        add(1, 3, 5 << 20);
        assertEquals(List.of(), released);
        add(4, 4, 1 << 20);
        assertEquals(numbers(1, 4), released);
        add(5, 7, 5 << 20);
        assertEquals(numbers(1, 4), released);
        add(8, 8, 1 << 20);
        assertEquals(numbers(1, 8), released);
    }

    @Test
    void aPollReleasesWhatIsDone() {
        add(1, 2, 0);
        PendingReleases.poll();
        assertEquals(numbers(1, 2), released);
        add(3, 3, 0);
        PendingReleases.poll();
        PendingReleases.poll();
        assertEquals(numbers(1, 3), released);
    }

    @Test
    void theFirstAdditionToAStreamChecksTheOthers() {
        add(1, 2, 0);
        NativeStream other = NativeStream.create(NativeDevice.HOST, true);
        PendingReleases.add(other, 0, () -> released.add(3));
        assertEquals(numbers(1, 2), released);
        other.close();
        PendingReleases.poll();
        assertEquals(numbers(1, 3), released);
    }

    @Test
    void aReleaseThatFailsIsLoggedAndTheOthersFollow() {
        PendingReleases.add(stream, 0, () -> {
            throw new IllegalStateException("no release");
        });
        add(2, 2, 0);
        try (TestLog log = new TestLog()) {
            PendingReleases.poll();
            assertEquals(List.of("WARNING: a resource of work in a stream could not be released"), log.lines());
        }
        assertEquals(numbers(2, 2), released);
    }
}

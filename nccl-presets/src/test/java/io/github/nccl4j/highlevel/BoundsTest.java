package io.github.nccl4j.highlevel;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.github.nccl4j.internal.communicator.CommunicatorSettings;
import io.github.nccl4j.internal.memory.Bounds;
import io.github.nccl4j.internal.threads.Suppressed;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Ranges, addresses and small values: each limit at its last good value and at the first that is not. */
class BoundsTest {
    private static final long MAX = Long.MAX_VALUE;

    @ParameterizedTest
    @CsvSource({"0,0,0", "0,8,8", "8,0,8", "3,5,8", "0,9223372036854775807,9223372036854775807"})
    void aRangeMayEndAtTheLimit(long offset, long length, long limit) {
        assertDoesNotThrow(() -> Bounds.check("offset", offset, length, "size", limit));
    }

    @ParameterizedTest
    @CsvSource({
        "-1,0,8,offset must be >= 0: -1",
        "0,-1,8,length must be >= 0: -1",
        "3,6,8,offset + length must be <= size: 3 + 6 > 8",
        "9,0,8,offset + length must be <= size: 9 + 0 > 8",
        "1,9223372036854775807,8,offset + length must be <= size: 1 + 9223372036854775807 > 8"
    })
    void aRangeBeyondTheLimitIsNamed(long offset, long length, long limit, String message) {
        assertEquals(
                message,
                assertThrows(
                                IndexOutOfBoundsException.class,
                                () -> Bounds.check("offset", offset, length, "size", limit))
                        .getMessage());
    }

    @Test
    void rejectsAddressOutsideAProcess() {
        Bounds.checkAddress("send", 0x1000, 1);
        Bounds.checkAddress("send", 0, 0);
        Bounds.checkAddress("send", 0xfff, 0);
        Bounds.checkAddress("send", 0x1000, MAX - 0x1000);
        Bounds.checkAddress("send", MAX, 0);
        for (long[] wrong : new long[][] {{0xfff, 1}, {0, 1}, {-1, 0}, {0x1000, MAX - 0xfff}, {MAX, 1}}) {
            assertEquals(
                    "send must be the start of memory within 0x1000 to 0x7fffffffffffffff: 0x"
                            + Long.toHexString(wrong[0]) + " with " + wrong[1] + " bytes",
                    assertThrows(IllegalArgumentException.class, () -> Bounds.checkAddress("send", wrong[0], wrong[1]))
                            .getMessage());
        }
    }

    @Test
    void aRangeExcludesItsEnd() {
        assertEquals("[0x1000, 0x1040)", Bounds.range(0x1000, 0x40));
    }

    @ParameterizedTest
    @CsvSource({
        "-1,1,0,0,peer must be >= 0: -1",
        "0,0,0,0,count must be >= 1: 0",
        "0,1,-1,0,index must be >= 0: -1",
        "0,1,0,-1,context must be >= 0: -1"
    })
    void aWaitForSignalsHasItsLimits(int peer, int count, int index, int context, String message) {
        assertEquals(new SignalWait(0, 1, 0, 0), SignalWait.of(0, 1));
        assertEquals(
                message,
                assertThrows(IllegalArgumentException.class, () -> new SignalWait(peer, count, index, context))
                        .getMessage());
    }

    @Test
    void formsHaveTheirNumberOfArguments() {
        assertEquals(AlltoAllvForm.ABSENT, AlltoAllvForm.of(0));
        assertEquals(AlltoAllvForm.NINE_ARGUMENTS, AlltoAllvForm.of(9));
        assertEquals(AlltoAllvForm.TEN_ARGUMENTS, AlltoAllvForm.of(10));
        assertEquals(AlltoAllvForm.ELEVEN_ARGUMENTS, AlltoAllvForm.of(11));
        assertEquals(AlltoAllvForm.UNKNOWN, AlltoAllvForm.of(-1));
    }

    @Test
    void aVersionIsReadFromItsCode() {
        assertEquals(new Version(0, 0, 0), Version.of(0));
        assertEquals(new Version(2, 7, 8), Version.of(2708));
        assertEquals(new Version(9, 9, 99), Version.of(9999));
        assertEquals(new Version(1, 0, 0), Version.of(10000));
        assertEquals(new Version(2, 28, 3), Version.of(22803));
        assertEquals(
                "a version code must be >= 0: -1",
                assertThrows(IllegalArgumentException.class, () -> Version.of(-1))
                        .getMessage());
        assertEquals(true, new Version(2, 28, 3).isAtLeast(new Version(2, 28, 3)));
        assertEquals(false, new Version(2, 28, 3).isAtLeast(new Version(2, 28, 4)));
        assertEquals("2.28.3", new Version(2, 28, 3).toString());
    }

    @Test
    void oneSettingIsChangedAndTheOthersStay() {
        CommunicatorSettings all = CommunicatorSettings.DEFAULT
                .withDeadline(Duration.ofSeconds(7))
                .withWatchdog(false)
                .withRecorded(5);
        assertEquals(new CommunicatorSettings(Duration.ofSeconds(7), false, 5, null, null), all);
        assertEquals(all, all.withCheck(null).withRendezvous(null));
    }

    @Test
    void firstExceptionSuppressesTheOthers() {
        RuntimeException first = new IllegalStateException("first");
        RuntimeException second = new IllegalStateException("second");
        assertSame(first, Suppressed.first(null, first));
        assertSame(first, Suppressed.first(first, second));
        assertSame(second, first.getSuppressed()[0]);
        assertSame(first, Suppressed.first(first, first));
        assertEquals(1, first.getSuppressed().length);
        assertDoesNotThrow(() -> Suppressed.rethrow(null));
        assertSame(first, assertThrows(IllegalStateException.class, () -> Suppressed.rethrow(first)));
        assertNull(Suppressed.first(null, null));
    }
}

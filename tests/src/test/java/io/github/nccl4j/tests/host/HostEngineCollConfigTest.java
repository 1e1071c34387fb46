package io.github.nccl4j.tests.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.library.HostEngine;
import io.github.nccl4j.nccl.ncclCollConfig_t;
import io.github.nccl4j.nccl.ncclEncryptionConfig_t;
import io.github.nccl4j.nccl.ncclUniqueId;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import org.bytedeco.cuda.cudart.CUevent_st;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.FloatPointer;
import org.bytedeco.javacpp.LongPointer;
import org.bytedeco.javacpp.Pointer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Configurations of single collectives: what is refused, what ranks compare, and the event of the launch. */
@Timeout(value = 120, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class HostEngineCollConfigTest {
    private static final int COUNT = 100;

    /** What each collective is called with, by the name in messages. */
    private interface Call {
        int run(long data, int count, Rank self, long stream, long config);
    }

    private static Call call(String name) {
        int type = nccl.ncclFloat;
        int sum = nccl.ncclSum;
        return switch (name) {
            case "AllReduce" -> (d, n, self, s, c) -> nccl.ncclAllReduceConfig(d, d, n, type, sum, self.comm(), s, c);
            case "Broadcast" -> (d, n, self, s, c) -> nccl.ncclBroadcastConfig(d, d, n, type, 0, self.comm(), s, c);
            case "Reduce" -> (d, n, self, s, c) -> nccl.ncclReduceConfig(d, d, n, type, sum, 0, self.comm(), s, c);
            case "AllGather" ->
                (d, n, self, s, c) -> nccl.ncclAllGatherConfig(d + 4L * n * self.rank(), d, n, type, self.comm(), s, c);
            case "ReduceScatter" ->
                (d, n, self, s, c) ->
                        nccl.ncclReduceScatterConfig(d, d + 4L * n * self.rank(), n, type, sum, self.comm(), s, c);
            case "AlltoAll" -> (d, n, self, s, c) -> nccl.ncclAlltoAllConfig(d, d, n, type, self.comm(), s, c);
            case "Gather" -> (d, n, self, s, c) -> nccl.ncclGatherConfig(d, d, n, type, 0, self.comm(), s, c);
            case "Scatter" -> (d, n, self, s, c) -> nccl.ncclScatterConfig(d, d, n, type, 0, self.comm(), s, c);
            default -> throw new IllegalArgumentException(name);
        };
    }

    private static int allReduce(long data, Rank self, long stream, long config) {
        return call("AllReduce").run(data, COUNT, self, stream, config);
    }

    private static FloatPointer buffer() {
        FloatPointer data = new FloatPointer(4L * COUNT);
        Pointer.memset(data, 0, data.capacity() * data.sizeof());
        return data;
    }

    /** The result of one call with an algorithm selected, and the text of the error; the communicator works on after it. */
    private static String select(Rank self, String name, String selection, int force) {
        try (FloatPointer data = buffer();
                BytePointer text = new BytePointer(selection);
                ncclCollConfig_t config = new ncclCollConfig_t()) {
            config.algSelection(text).forceAlgSelection(force);
            int result = call(name).run(data.address(), COUNT, self, 0, config.address());
            String seen = result == nccl.ncclSuccess ? "0" : result + " " + nccl.ncclGetLastError(self.comm());
            Rank.check(allReduce(data.address(), self, 0, 0), "AllReduce");
            return seen;
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "AllReduce|ring",
                "AllReduce|tree",
                "AllReduce|Tree_LL128",
                "AllReduce|' tree , ring\t'",
                "AllReduce|ring+^ring_ll128",
                "AllReduce|^symk",
                "AllReduce|nvls,,ring,",
                "AllReduce|''",
                "Broadcast|RING_SIMPLE",
                "Reduce|r",
                "AllGather|pat,ring_ll",
                "ReduceScatter|^pat",
            })
    void selectionsThatCanBeHad(String name, String selection) throws Exception {
        assertEquals(
                List.of("0", "0"), HostEngineTest.inThreads(2, self -> select(self, name, selection, 1)), selection);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "AllReduce|rign|no algorithm's name starts with rign",
                "AllReduce|ring,railring|no algorithm's name starts with railring",
                "AllReduce|ring_simple_x|no algorithm's name starts with ring_simple_x",
                "AllReduce|^|a name is missing",
                "AllReduce|ring,+|+ leaves none",
                "AllReduce|ring+tree|ring+tree leaves none",
                "AllReduce|','|it names none",
                "AllReduce|' '|it names none",
                "AllReduce|pat|AllReduce has none of them",
                "Broadcast|tree|Broadcast has none of them",
                "Reduce|symk|Reduce has none of them",
                "AllGather|SYMK_TmaLD|AllGather has none of them",
                "AlltoAll|ring|AlltoAll has none of them",
                "AlltoAll|^symk|AlltoAll has none of them",
                "Gather|ring|Gather has none of them",
                "Scatter|ring|Scatter has none of them",
                "AllReduce|nvls|the host engine has rings and trees, and kernels for symmetric windows where both buffers are in such",
                "ReduceScatter|collnet,symk|the host engine has rings and trees, and kernels for symmetric windows where both buffers are in such",
            })
    void selectionsThatCannotBeHad(String name, String selection, String reason) throws Exception {
        String text = nccl.ncclInvalidArgument + " " + name + " : config->algSelection \"" + selection
                + "\" cannot be had: " + reason
                + " (with forceAlgSelection 0 another algorithm would be taken)";
        assertEquals(List.of(text, text), HostEngineTest.inThreads(2, self -> select(self, name, selection, 1)));
        // Preferred only, it is as if nothing was selected.
        assertEquals(List.of("0", "0"), HostEngineTest.inThreads(2, self -> select(self, name, selection, 0)));
    }

    @Test
    void aRankThatIsAloneNeedsNoAlgorithmButTheNameMustBeRight() throws Exception {
        assertEquals(List.of("0"), HostEngineTest.inThreads(1, self -> select(self, "AllReduce", "nvls", 1)));
        String wrong = HostEngineTest.inThreads(1, self -> select(self, "AllReduce", "x", 1))
                .get(0);
        assertTrue(wrong.startsWith(nccl.ncclInvalidArgument + " "), wrong);
    }

    @Test
    void ofNoElementsNothingIsSelected() throws Exception {
        HostEngineTest.inThreads(2, self -> {
            try (BytePointer text = new BytePointer("rign");
                    ncclCollConfig_t config = new ncclCollConfig_t()) {
                config.algSelection(text);
                Rank.check(call("AllReduce").run(0, 0, self, 0, config.address()), "AllReduce");
                return null;
            }
        });
    }

    /** The offset of an int or a long, its value, and the words of the refusal; none if it is taken. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "8|4|0|magic 0x0, expected 0xcafebeef",
                "0|8|56|size 56, expected at least 64",
                "0|8|0|size 0, expected at least 64",
                "48|4|2|config->forceAlgSelection is 2, but must be in 0..1",
                "48|4|-1|config->forceAlgSelection is -1, but must be in 0..1",
                "52|4|4|config->CTAPolicy is 4, but must be in 0..3",
                "52|4|-5|config->CTAPolicy is -5, but must be in 0..3",
                "52|4|3|''",
                "24|4|0|''", // NCCL ignores numbers that are out of range
                "28|4|1000|''",
                "36|4|-7|''",
                "56|8|-1|''",
                "12|4|23102|''",
                "12|4|99999|''",
            })
    void aConfigurationIsCheckedBeforeTheCall(int offset, int bytes, long value, String words) throws Exception {
        try (ncclCollConfig_t initialized = new ncclCollConfig_t();
                BytePointer config = new BytePointer(initialized.sizeof())) {
            Pointer.memcpy(config, initialized, initialized.sizeof());
            if (bytes == Long.BYTES) {
                config.putLong(offset, value);
            } else {
                config.putInt(offset, (int) value);
            }
            if (!words.isEmpty()) {
                // Before it looks at the communicator.
                assertEquals(nccl.ncclInvalidArgument, nccl.ncclAllGatherConfig(0, 0, 1, 0, 0, 0, config.address()));
                assertTrue(nccl.ncclGetLastError(0L).contains(words), nccl.ncclGetLastError(0L));
            }
            HostEngineTest.inThreads(2, self -> {
                try (FloatPointer data = buffer()) {
                    // One that is refused is not in the group.
                    Rank.check(nccl.ncclGroupStart(), "ncclGroupStart");
                    int result = allReduce(data.address(), self, 0, config.address());
                    assertEquals(words.isEmpty() ? nccl.ncclSuccess : nccl.ncclInvalidArgument, result);
                    Rank.check(allReduce(data.address(), self, 0, 0), "AllReduce");
                    Rank.check(nccl.ncclGroupEnd(), "ncclGroupEnd");
                    return null;
                }
            });
        }
    }

    /** Behind what the caller's header had, there may be anything. */
    @ParameterizedTest
    @ValueSource(ints = {64, 72, 96})
    void aConfigurationIsReadAsItsSizeSays(int size) throws Exception {
        HostEngineTest.inThreads(2, self -> {
            try (FloatPointer data = buffer();
                    ncclCollConfig_t initialized = new ncclCollConfig_t();
                    BytePointer config = new BytePointer(128)) {
                Pointer.memset(config, 0x7f, 128);
                Pointer.memcpy(config, initialized, Math.min(size, initialized.sizeof()));
                config.putLong(0, size);
                Rank.check(allReduce(data.address(), self, 0, config.address()), "AllReduce");
                return null;
            }
        });
    }

    /** What the ranks get when rank 1 has another configuration than the others. */
    private static List<String> whenRankOneDiffers(
            BiConsumer<ncclCollConfig_t, BytePointer> others, BiConsumer<ncclCollConfig_t, BytePointer> rankOne)
            throws Exception {
        return HostEngineTest.inThreads(3, self -> {
            try (FloatPointer data = buffer();
                    BytePointer text = new BytePointer("ring");
                    ncclCollConfig_t config = new ncclCollConfig_t()) {
                (self.rank() == 1 ? rankOne : others).accept(config, text);
                int result = allReduce(data.address(), self, 0, config.address());
                String seen = result + " " + nccl.ncclGetLastError(self.comm());
                nccl.ncclCommAbort(self.comm());
                return seen;
            }
        });
    }

    private static void assertNamed(
            BiConsumer<ncclCollConfig_t, BytePointer> others,
            BiConsumer<ncclCollConfig_t, BytePointer> rankOne,
            String theirs,
            String ones)
            throws Exception {
        for (String text : whenRankOneDiffers(others, rankOne)) {
            assertTrue(text.startsWith(nccl.ncclInvalidUsage + " rank "), text);
            assertTrue(
                    text.contains("called AllReduce with " + theirs
                                    + " in its configuration while rank 1 called it with " + ones)
                            || text.contains(
                                    "rank 1 called AllReduce with " + ones + " in its configuration while rank "),
                    text);
            assertTrue(text.contains(theirs), text);
        }
    }

    @Test
    void ranksThatDifferAreTold() throws Exception {
        assertNamed((c, t) -> c.minCTAs(4), (c, t) -> c.minCTAs(5), "minCTAs 4", "minCTAs 5");
        assertNamed((c, t) -> c.maxCTAs(64), (c, t) -> {}, "maxCTAs 64", "maxCTAs unset");
        assertNamed((c, t) -> {}, (c, t) -> c.nvlsCTAs(1), "nvlsCTAs unset", "nvlsCTAs 1");
        assertNamed((c, t) -> c.cgaClusterSize(0), (c, t) -> {}, "cgaClusterSize 0", "cgaClusterSize unset");
        assertNamed((c, t) -> c.CTAPolicy(2), (c, t) -> c.CTAPolicy(0), "CTAPolicy 2", "CTAPolicy 0");
        assertNamed((c, t) -> c.forceAlgSelection(0), (c, t) -> {}, "forceAlgSelection 0", "forceAlgSelection unset");
        assertNamed(
                (c, t) -> c.algSelection(t),
                (c, t) -> c.algSelection(t.putString("tree_ll,ring_simple")),
                "algSelection RING_LL,RING_LL128,RING_SIMPLE",
                "algSelection TREE_LL,TREE_LL128,RING_SIMPLE");
        assertNamed(
                (c, t) -> c.userProfilerTag(7),
                (c, t) -> c.userProfilerTag(8),
                "userProfilerTag 7",
                "userProfilerTag 8");
    }

    /** A stream and an event of the host engine. */
    private static final class StreamAndEvent implements AutoCloseable {
        final long stream;
        final long event;

        StreamAndEvent() {
            try (LongPointer cell = new LongPointer(1)) {
                Rank.check(HostEngine.streamCreate(cell.address()), "streamCreate");
                stream = cell.get();
                Rank.check(HostEngine.eventCreate(cell.address()), "eventCreate");
                event = cell.get();
            }
        }

        void putInto(ncclCollConfig_t config) {
            new LongPointer(config).put(config.offsetof("launchCompletionEvent") / Long.BYTES, event);
        }

        @Override
        public void close() {
            Rank.check(HostEngine.eventDestroy(event), "eventDestroy");
            Rank.check(HostEngine.streamDestroy(stream), "streamDestroy");
        }
    }

    @Test
    void theEventWaitsForTheLaunchAndNotForTheEnd() throws Exception {
        CountDownLatch blocked = new CountDownLatch(1);
        CountDownLatch launched = new CountDownLatch(1);
        HostEngineTest.inThreads(2, self -> {
            try (FloatPointer data = buffer();
                    StreamAndEvent mine = new StreamAndEvent();
                    ncclCollConfig_t config = new ncclCollConfig_t()) {
                mine.putInto(config);
                if (self.rank() == 0) {
                    Rank.check(nccl.ncclRecv(data.address(), 1, nccl.ncclFloat, 1, self.comm(), mine.stream), "Recv");
                    Rank.check(allReduce(data.address(), self, mine.stream, config.address()), "AllReduce");
                    assertEquals(nccl.ncclInProgress, HostEngine.eventQuery(mine.event), "something is before it");
                    blocked.countDown();
                    Rank.check(HostEngine.eventSynchronize(mine.event), "eventSynchronize");
                    assertEquals(nccl.ncclInProgress, HostEngine.streamQuery(mine.stream), "rank 1 is not in it");
                    launched.countDown();
                } else {
                    blocked.await();
                    Rank.check(nccl.ncclSend(data.address(), 1, nccl.ncclFloat, 0, self.comm(), mine.stream), "Send");
                    launched.await();
                    Rank.check(allReduce(data.address(), self, mine.stream, config.address()), "AllReduce");
                }
                Rank.check(HostEngine.streamSynchronize(mine.stream), "streamSynchronize");
                Rank.check(HostEngine.eventQuery(mine.event), "eventQuery");
                self.destroy();
                return null;
            }
        });
    }

    @Test
    void aGroupHasOneEventForEachCommunicator() throws Exception {
        List<String> texts = HostEngineTest.inThreads(2, self -> {
            try (FloatPointer data = buffer();
                    StreamAndEvent mine = new StreamAndEvent();
                    ncclCollConfig_t config = new ncclCollConfig_t()) {
                mine.putInto(config);
                Rank.check(nccl.ncclGroupStart(), "ncclGroupStart");
                Rank.check(allReduce(data.address(), self, mine.stream, config.address()), "AllReduce");
                Rank.check(allReduce(data.address(), self, mine.stream, 0), "AllReduce");
                Rank.check(nccl.ncclGroupEnd(), "ncclGroupEnd");
                Rank.check(HostEngine.eventSynchronize(mine.event), "eventSynchronize");
                Rank.check(nccl.ncclGroupStart(), "ncclGroupStart");
                Rank.check(allReduce(data.address(), self, mine.stream, config.address()), "AllReduce");
                Rank.check(allReduce(data.address(), self, mine.stream, config.address()), "AllReduce");
                String text = nccl.ncclGroupEnd() + " " + nccl.ncclGetLastError(0L);
                Rank.check(HostEngine.streamSynchronize(mine.stream), "streamSynchronize");
                self.destroy();
                return text;
            }
        });
        for (int rank = 0; rank < 2; rank++) {
            assertEquals(
                    nccl.ncclInvalidUsage + " rank " + rank
                            + " gave 2 collectives of one group a launchCompletionEvent, only 1 may have one",
                    texts.get(rank));
        }
    }

    @Test
    void anEventOnOneRankAloneIsADifference() throws Exception {
        List<String> texts = HostEngineTest.inThreads(2, self -> {
            try (FloatPointer data = buffer();
                    StreamAndEvent mine = new StreamAndEvent();
                    ncclCollConfig_t config = new ncclCollConfig_t()) {
                if (self.rank() == 1) {
                    mine.putInto(config);
                }
                int result = allReduce(data.address(), self, 0, config.address());
                String text = result + " " + nccl.ncclGetLastError(self.comm());
                nccl.ncclCommAbort(self.comm());
                return text;
            }
        });
        for (String text : texts) {
            assertTrue(text.startsWith(nccl.ncclInvalidUsage + " "), text);
            assertTrue(text.contains("a launchCompletionEvent") && text.contains("launchCompletionEvent unset"), text);
        }
    }

    @Test
    void anEventThatIsNoneIsRefused() throws Exception {
        HostEngineTest.inThreads(1, self -> {
            try (FloatPointer data = buffer();
                    ncclCollConfig_t config = new ncclCollConfig_t()) {
                config.launchCompletionEvent(new CUevent_st(data));
                assertEquals(nccl.ncclInvalidArgument, allReduce(data.address(), self, 0, config.address()));
                assertTrue(nccl.ncclGetLastError(self.comm()).contains("event"), nccl.ncclGetLastError(self.comm()));
                self.destroy();
                return null;
            }
        });
    }

    @Test
    void anEncryptionKeyComesBeforeTheFirstUniqueId() {
        Rank.check(nccl.ncclSetEncryption(0L), "ncclSetEncryption(null)");
        try (ncclUniqueId id = new ncclUniqueId()) {
            Rank.check(nccl.ncclGetUniqueId(id), "ncclGetUniqueId");
        }
        try (ncclEncryptionConfig_t config = new ncclEncryptionConfig_t();
                BytePointer shortKey = new BytePointer("k".repeat(31));
                BytePointer key = new BytePointer("k".repeat(32))) {
            Rank.check(nccl.ncclSetEncryption(config), "ncclSetEncryption of nothing");
            config.mode(nccl.NCCL_ENCRYPTION_MODE_PSK);
            assertRefused(config, nccl.ncclInvalidArgument, "config->psk has 0 characters, but must have at least 32");
            config.psk(shortKey);
            assertRefused(config, nccl.ncclInvalidArgument, "config->psk has 31 characters, but must have at least 32");
            config.psk(key);
            assertRefused(
                    config,
                    nccl.ncclInvalidUsage,
                    "SetEncryption : must be called before the first unique id and communicator of the process");
            config.mode(2);
            assertRefused(config, nccl.ncclInvalidArgument, "config->mode is 2, but must be in 0..1");
            config.magic(1);
            assertRefused(config, nccl.ncclInvalidArgument, "NCCL_ENCRYPTION_CONFIG_INITIALIZER");
        }
    }

    private static void assertRefused(ncclEncryptionConfig_t config, int result, String words) {
        assertEquals(result, nccl.ncclSetEncryption(config));
        assertTrue(nccl.ncclGetLastError(0L).contains(words), nccl.ncclGetLastError(0L));
    }
}

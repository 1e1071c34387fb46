package io.github.nccl4j.tests.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.header.Header;
import io.github.nccl4j.library.NativeLibrary;
import io.github.nccl4j.nccl.ncclComm;
import io.github.nccl4j.nccl.ncclConfig_t;
import io.github.nccl4j.nccl.ncclParamHandle;
import io.github.nccl4j.nccl.ncclUniqueId;
import io.github.nccl4j.testing.Waiting;
import io.github.nccl4j.tests.ChildJvm;
import io.github.nccl4j.tests.Cxx;
import io.github.nccl4j.tools.oracle.ElementFormat;
import io.github.nccl4j.tools.oracle.SmallFloat;
import io.github.nccl4j.tools.support.Threads;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.FloatPointer;
import org.bytedeco.javacpp.IntPointer;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.PointerPointer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The host engine's results and lifecycle. Ranks are threads of this JVM, or JVMs of their own. */
@Timeout(value = 10, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class HostEngineTest {

    /** What only kernels or NVIDIA's compute fabric have a use for: the engine has none of these. */
    private static final Set<String> FOR_KERNELS = Set.of(
            "ncclDevCommCreate",
            "ncclDevCommDestroy",
            "ncclGetCftDeviceLeInfo",
            "ncclGetMultimemDeviceLeInfo",
            "ncclGetPeerDeviceLeInfo",
            "ncclGinBarrierCreateRequirement",
            "ncclGinInboxA2ACreateRequirement",
            "ncclGinOutboxCreateRequirement",
            "ncclLLA2ACalcSlots",
            "ncclLLA2ACreateRequirement",
            "ncclLsaBarrierCreateRequirement",
            "ncclTeamCft",
            "ncclTeamCftMultimem");

    /** What a rank does with its communicator. */
    interface RankBody<T> {
        T run(Rank self) throws Exception;
    }

    /** Runs the body on each rank, a thread each; the results by rank. */
    static <T> List<T> inThreads(int count, RankBody<T> body) throws Exception {
        String id = Rank.newId();
        List<Callable<T>> ranks = new ArrayList<>();
        for (int r = 0; r < count; r++) {
            int rank = r;
            ranks.add(() -> {
                Rank self = Rank.join(id, rank, count);
                try {
                    return body.run(self);
                } catch (Throwable failure) {
                    // The other ranks must not wait for this one.
                    nccl.ncclCommAbort(self.comm());
                    throw failure;
                }
            });
        }
        return together(ranks);
    }

    static <T> List<T> together(List<Callable<T>> tasks) throws Exception {
        return Threads.together(tasks, Duration.ofMinutes(5));
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 3})
    void everyCollectiveBetweenThreads(int count) throws Exception {
        List<Integer> cases = inThreads(count, self -> {
            int run = new CollectiveSuite(self).run();
            self.destroy();
            return run;
        });
        assertEquals(1, Set.copyOf(cases).size(), cases.toString());
        assertTrue(cases.get(0) > 2000, cases.toString());
    }

    @ParameterizedTest
    @ValueSource(ints = {2, 3, 4})
    void everyCollectiveBetweenProcesses(int count) throws Exception {
        String id = Rank.newId();
        List<ChildJvm.Running> ranks = new ArrayList<>();
        for (int rank = 0; rank < count; rank++) {
            ranks.add(new ChildJvm()
                    .property("nccl4j.engine", "host")
                    .start(HostEngineScenarios.class, "suite", id, "" + rank, "" + count));
        }
        List<ChildJvm.Outcome> outcomes =
                ranks.stream().map(ChildJvm.Running::await).toList();
        for (ChildJvm.Outcome outcome : outcomes) {
            assertEquals(0, outcome.exitCode(), outcomes.toString());
            assertTrue(outcome.output().matches("(?s).*\\d{4} cases\n"), outcome.output());
        }
    }

    @Test
    void everySymbolOfTheHeaderIsExportedAndNothingElse() throws IOException {
        String symbols = Cxx.output(List.of("nm", "-D", "--defined-only", NativeLibrary.path()));
        Set<String> exported = symbols.lines()
                .map(line -> line.split(" "))
                .map(columns -> columns[columns.length - 1])
                .collect(Collectors.toCollection(TreeSet::new));
        Set<String> declared = new TreeSet<>(functionsOf("nccl.h"));
        declared.addAll(functionsOf("nccl4j_host.h"));
        // By this function a library is known to be RCCL.
        declared.removeAll(Set.of("ncclAllReduceWithBias", "pncclAllReduceWithBias"));
        Set<String> ofKernels = new TreeSet<>(functionsOf("nccl_device.h"));
        for (String function : functionsOf("nccl_device.h")) {
            if (!FOR_KERNELS.contains(function)) {
                declared.addAll(List.of(function, "p" + function));
                ofKernels.remove(function);
            }
        }
        assertEquals(FOR_KERNELS, ofKernels);
        assertEquals(declared, exported);
        String needed = Cxx.output(List.of("readelf", "-d", NativeLibrary.path()));
        Set<String> libraries = needed.lines()
                .filter(line -> line.contains("NEEDED"))
                .map(line -> line.replaceAll(".*\\[(.*)]", "$1"))
                .collect(Collectors.toSet());
        libraries.removeIf(library -> library.startsWith("ld-linux"));
        libraries.removeAll(
                Set.of("libstdc++.so.6", "libgcc_s.so.1", "libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2"));
        assertEquals(Set.of(), libraries);
    }

    private static Set<String> functionsOf(String header) throws IOException {
        try (var text = nccl.class.getResourceAsStream("/io/github/nccl4j/include/" + header)) {
            return Header.parse(new String(text.readAllBytes(), StandardCharsets.UTF_8))
                    .functions()
                    .keySet();
        }
    }

    /** Of 0 and the smallest number, it is the nearer one. */
    @Test
    void anAverageBelowTheSmallestNumberIsRounded() throws Exception {
        inThreads(3, self -> {
            try (BytePointer data = new BytePointer(3)) {
                for (int type : new int[] {nccl.ncclFloat8e4m3, nccl.ncclFloat8e5m2}) {
                    // Codes of multiples of the smallest number; two thirds of it, a third and none.
                    byte[] codes = {(byte) (self.rank() == 0 ? 2 : 0), (byte) (self.rank() == 1 ? 1 : 0), 0};
                    data.put(codes);
                    long address = data.address();
                    Rank.check(
                            nccl.ncclAllReduce(address, address, 3, type, nccl.ncclAvg, self.comm(), 0),
                            "ncclAllReduce");
                    data.get(codes);
                    assertEquals("[1, 0, 0]", Arrays.toString(codes));
                }
            }
            return null;
        });
    }

    @Test
    void extremesIgnoreNansAndOrderZeros() throws Exception {
        float nan = Float.NaN;
        inThreads(2, self -> {
            try (FloatPointer data = new FloatPointer(4)) {
                for (int op : new int[] {nccl.ncclMax, nccl.ncclMin}) {
                    data.put(self.rank() == 0 ? new float[] {nan, 5, -0f, 0} : new float[] {5, nan, 0, -0f});
                    long address = data.address();
                    Rank.check(
                            nccl.ncclAllReduce(address, address, 4, nccl.ncclFloat32, op, self.comm(), 0),
                            "ncclAllReduce");
                    float[] found = new float[4];
                    data.get(found);
                    String zero = op == nccl.ncclMax ? "0.0" : "-0.0";
                    assertEquals("[5.0, 5.0, " + zero + ", " + zero + "]", Arrays.toString(found));
                }
            }
            return null;
        });
    }

    @Test
    void aSuspendedCommunicatorRestsUntilItIsResumed() throws Exception {
        inThreads(2, self -> {
            try (FloatPointer data = new FloatPointer(1 << 20)) {
                Rank.check(allReduce(self, data, 1 << 20), "ncclAllReduce");
                long scratch = memStat(self, nccl.ncclStatGpuMemSuspend);
                long fixed = memStat(self, nccl.ncclStatGpuMemPersist);
                // Reductions read the rings in place, which need no scratch memory.
                assertEquals(0, scratch);
                assertTrue(fixed > 0, "" + fixed);
                assertEquals(scratch + fixed, memStat(self, nccl.ncclStatGpuMemTotal));
                assertEquals(0, memStat(self, nccl.ncclStatGpuMemSuspended));
                assertEquals(nccl.ncclInvalidUsage, nccl.ncclCommResume(self.comm()));
                Rank.check(nccl.ncclCommSuspend(self.comm(), 0), "ncclCommSuspend(nothing)");
                Rank.check(nccl.ncclCommSuspend(self.comm(), nccl.NCCL_SUSPEND_MEM), "ncclCommSuspend");
                assertEquals(nccl.ncclInvalidUsage, nccl.ncclCommSuspend(self.comm(), nccl.NCCL_SUSPEND_MEM));
                assertEquals(1, memStat(self, nccl.ncclStatGpuMemSuspended));
                assertEquals(fixed, memStat(self, nccl.ncclStatGpuMemTotal));
                assertEquals(nccl.ncclInvalidUsage, allReduce(self, data, 1));
                assertTrue(nccl.ncclGetLastError(0L).contains("suspended"), nccl.ncclGetLastError(0L));
                Rank.check(nccl.ncclCommResume(self.comm()), "ncclCommResume");
                Rank.check(allReduce(self, data, 1 << 20), "ncclAllReduce");
                assertInvalid(nccl.ncclCommMemStats(self.comm(), 4, new long[1]), "4");
            }
            self.destroy();
            return null;
        });
    }

    private static int allReduce(Rank self, FloatPointer data, long count) {
        return nccl.ncclAllReduce(data.address(), data.address(), count, nccl.ncclFloat, nccl.ncclSum, self.comm(), 0);
    }

    private static long memStat(Rank self, int stat) {
        long[] value = {-1};
        Rank.check(nccl.ncclCommMemStats(self.comm(), stat, value), "ncclCommMemStats");
        return value[0];
    }

    @Test
    void parametersAreThoseThatTheEngineReads() {
        String key = "NCCL4J_HOST_INIT_TIMEOUT";
        try (PointerPointer<BytePointer> text = new PointerPointer<>(1);
                PointerPointer<ncclParamHandle> handle = new PointerPointer<>(1);
                BytePointer buffer = new BytePointer(8)) {
            int[] length = new int[1];
            Rank.check(nccl.ncclParamGetParameter(key, text, length), "ncclParamGetParameter");
            assertEquals("60", text.getString(0));
            assertEquals(2, length[0]);
            assertInvalid(nccl.ncclParamGetParameter("NCCL_DEBUG", text, length), "NCCL_DEBUG");
            assertEquals(0, length[0]);

            Rank.check(nccl.ncclParamBind(handle, key), "ncclParamBind");
            assertInvalid(nccl.ncclParamBind(handle, "NCCL_DEBUG"), "NCCL_DEBUG");
            ncclParamHandle bound = handle.get(ncclParamHandle.class);
            Rank.check(nccl.ncclParamGetStr(bound, text), "ncclParamGetStr");
            assertEquals("60", text.getString(0));
            assertInvalid(nccl.ncclParamGetI64(bound, new long[1]), key, "string");
            assertInvalid(nccl.ncclParamGetU8(bound, new byte[1]), key, "string");
            try (IntPointer size = new IntPointer(1)) {
                Rank.check(nccl.ncclParamGet(bound.address(), buffer.address(), 3, size.address()), "ncclParamGet");
                assertEquals(3, size.get());
                assertEquals("60", buffer.limit(2).getString());
                assertInvalid(nccl.ncclParamGet(bound.address(), buffer.address(), 2, size.address()), "3 bytes");
                assertInvalid(nccl.ncclParamGetStr(size.address(), text.address()), "ncclParamBind");
            }
            try (PointerPointer<Pointer> table = new PointerPointer<>(1)) {
                Rank.check(nccl.ncclParamGetAllParameterKeys(table, length), "ncclParamGetAllParameterKeys");
                assertEquals(5, length[0]);
                assertEquals(key, new PointerPointer<>(table.get(Pointer.class)).getString(0));
            }
        }
    }

    @Test
    void codesAndTextsAreThoseOfNccl() {
        int[] version = new int[1];
        assertEquals(nccl.ncclSuccess, nccl.ncclGetVersion(version));
        assertEquals(nccl.NCCL_VERSION_CODE, version[0]);
        assertEquals(nccl.ncclInvalidArgument, nccl.ncclGetVersion(0L));
        assertEquals("no error", nccl.ncclGetErrorString(0));
        assertEquals("unknown result code", nccl.ncclGetErrorString(100));
        assertEquals(nccl.ncclSuccess, nccl.ncclGroupStart());
        assertEquals(nccl.ncclSuccess, nccl.ncclGroupEnd());
        assertEquals(nccl.ncclInvalidUsage, nccl.ncclGroupEnd());
        assertEquals(nccl.ncclSuccess, nccl.ncclCommDestroy(0L));
        assertEquals(nccl.ncclInvalidArgument, nccl.ncclAllReduce(0L, 0L, 1, nccl.ncclFloat, nccl.ncclSum, 0L, 0L));
        assertEquals("AllReduce : comm argument is NULL", nccl.ncclGetLastError(0L));
        try (FloatPointer notAComm = new FloatPointer(1000)) {
            assertEquals(
                    nccl.ncclInvalidArgument,
                    nccl.ncclAllReduce(0L, 0L, 1, nccl.ncclFloat, nccl.ncclSum, notAComm.address(), 0L));
            assertTrue(nccl.ncclGetLastError(0L).contains("corrupted comm object"), nccl.ncclGetLastError(0L));
        }
    }

    @Test
    void argumentsOutOfRangeAreNamedWithTheRange() throws Exception {
        inThreads(1, self -> {
            try (FloatPointer data = new FloatPointer(4)) {
                long p = data.address();
                assertInvalid(nccl.ncclAllReduce(p, p, 4, 12, nccl.ncclSum, self.comm(), 0), "12");
                assertInvalid(nccl.ncclAllReduce(p, p, 4, nccl.ncclFloat, 77, self.comm(), 0), "77");
                assertInvalid(nccl.ncclBroadcast(p, p, 4, nccl.ncclFloat, 1, self.comm(), 0), "root 1", "0..0");
                assertInvalid(nccl.ncclSend(p, 4, nccl.ncclFloat, -1, self.comm(), 0), "-1");
                assertInvalid(nccl.ncclAllReduce(0L, p, 4, nccl.ncclFloat, nccl.ncclSum, self.comm(), 0), "sendbuff");
            }
            self.destroy();
            return null;
        });
    }

    private static void assertInvalid(int result, String... words) {
        assertEquals(nccl.ncclInvalidArgument, result);
        String text = nccl.ncclGetLastError(0L);
        for (String word : words) {
            assertTrue(text.contains(word), () -> "'" + word + "' is not in: " + text);
        }
    }

    @Test
    void aCommunicatorTellsWhoItIs() throws Exception {
        List<String> ranks = inThreads(3, self -> {
            int[] value = new int[1];
            Rank.check(nccl.ncclCommCount(self.comm(), value), "ncclCommCount");
            String text = value[0] + " ";
            Rank.check(nccl.ncclCommUserRank(self.comm(), value), "ncclCommUserRank");
            text += value[0] + " ";
            Rank.check(nccl.ncclCommCuDevice(self.comm(), value), "ncclCommCuDevice");
            Rank.check(nccl.ncclCommGetAsyncError(self.comm(), value), "ncclCommGetAsyncError");
            text += value[0];
            Rank.check(nccl.ncclCommFinalize(self.comm()), "ncclCommFinalize");
            self.destroy();
            return text;
        });
        assertEquals(List.of("3 0 0", "3 1 0", "3 2 0"), ranks);
    }

    /** All ranks of a communicator in one thread: only a group can drive them, nested or not. */
    @Test
    void oneThreadDrivesAllRanks() {
        int n = 5;
        try (PointerPointer<ncclComm> cells = new PointerPointer<>(n);
                FloatPointer data = new FloatPointer(n)) {
            Rank.check(nccl.ncclCommInitAll(cells, n, (int[]) null), "ncclCommInitAll");
            Rank.check(nccl.ncclGroupStart(), "ncclGroupStart");
            for (int r = 0; r < n; r++) {
                data.put(r, r + 1);
                Rank.check(nccl.ncclGroupStart(), "ncclGroupStart");
                long element = data.address() + 4L * r;
                Rank.check(
                        nccl.ncclAllReduce(element, element, 1, nccl.ncclFloat, nccl.ncclProd, comm(cells, r), 0),
                        "ncclAllReduce");
                Rank.check(nccl.ncclGroupEnd(), "inner ncclGroupEnd");
                assertEquals(r + 1, data.get(r), "an inner group must not launch");
            }
            Rank.check(nccl.ncclGroupEnd(), "ncclGroupEnd");
            for (int r = 0; r < n; r++) {
                assertEquals(120, data.get(r));
            }
            for (int r = 0; r < n; r++) {
                Rank.check(nccl.ncclCommDestroy(comm(cells, r)), "ncclCommDestroy");
            }
        }
    }

    private static long comm(PointerPointer<ncclComm> cells, int index) {
        return cells.get(ncclComm.class, index).address();
    }

    @Test
    void communicatorsAreCreatedInsideAGroup() {
        int n = 3;
        try (PointerPointer<ncclComm> cells = new PointerPointer<>(n);
                ncclUniqueId id = new ncclUniqueId();
                ncclConfig_t config = new ncclConfig_t();
                IntPointer data = new IntPointer(n)) {
            Rank.check(nccl.ncclGetUniqueId(id), "ncclGetUniqueId");
            Rank.check(nccl.ncclGroupStart(), "ncclGroupStart");
            for (int r = 0; r < n; r++) {
                Rank.check(
                        nccl.ncclCommInitRankConfig(cells.address() + 8L * r, n, id.address(), r, config.address()),
                        "ncclCommInitRankConfig");
            }
            Rank.check(nccl.ncclGroupEnd(), "ncclGroupEnd");
            Rank.check(nccl.ncclGroupStart(), "ncclGroupStart");
            for (int r = 0; r < n; r++) {
                data.put(r, r);
                Rank.check(
                        nccl.ncclBcast(data.address() + 4L * r, 1, nccl.ncclInt32, 2, comm(cells, r), 0), "ncclBcast");
            }
            Rank.check(nccl.ncclGroupEnd(), "ncclGroupEnd");
            for (int r = 0; r < n; r++) {
                assertEquals(2, data.get(r));
                Rank.check(nccl.ncclCommDestroy(comm(cells, r)), "ncclCommDestroy");
            }
        }
    }

    @Test
    void severalIdsMakeOneCommunicator() throws Exception {
        int n = 3;
        try (ncclUniqueId ids = new ncclUniqueId(2)) {
            Rank.check(nccl.ncclGetUniqueId(ids), "ncclGetUniqueId");
            Rank.check(nccl.ncclGetUniqueId(ids.getPointer(1)), "ncclGetUniqueId");
            List<Callable<Float>> ranks = new ArrayList<>();
            for (int r = 0; r < n; r++) {
                int rank = r;
                ranks.add(() -> {
                    try (PointerPointer<ncclComm> cell = new PointerPointer<>(1)) {
                        Rank.check(
                                nccl.ncclCommInitRankScalable(cell.address(), n, rank, 2, ids.address(), 0L),
                                "ncclCommInitRankScalable");
                        return sumOfRanks(new Rank(rank, n, comm(cell, 0)));
                    }
                });
            }
            assertEquals(List.of(3f, 3f, 3f), together(ranks));
        }
    }

    private static float sumOfRanks(Rank self) {
        try (FloatPointer data = new FloatPointer((float) self.rank())) {
            Rank.check(
                    nccl.ncclAllReduce(data.address(), data.address(), 1, nccl.ncclFloat, nccl.ncclSum, self.comm(), 0),
                    "ncclAllReduce");
            self.destroy();
            return data.get();
        }
    }

    @Test
    void aCommunicatorIsSplitByColorInTheOrderOfKeys() throws Exception {
        List<String> ranks = inThreads(5, self -> {
            int color = self.rank() == 4 ? nccl.NCCL_SPLIT_NOCOLOR : self.rank() % 2;
            try (PointerPointer<ncclComm> cell = new PointerPointer<>(1)) {
                Rank.check(nccl.ncclCommSplit(self.comm(), color, -self.rank(), cell.address(), 0L), "ncclCommSplit");
                ncclComm half = cell.get(ncclComm.class);
                String text = "none";
                if (half != null) {
                    int[] rank = new int[1];
                    int[] count = new int[1];
                    Rank.check(nccl.ncclCommUserRank(half, rank), "ncclCommUserRank");
                    Rank.check(nccl.ncclCommCount(half, count), "ncclCommCount");
                    // The new communicator is independent of the old one, which goes first.
                    self.destroy();
                    text = rank[0] + " of " + count[0] + ": " + sumOfRanks(new Rank(rank[0], count[0], half.address()));
                } else {
                    self.destroy();
                }
                return text;
            }
        });
        assertEquals(List.of("1 of 2: 1.0", "1 of 2: 1.0", "0 of 2: 1.0", "0 of 2: 1.0", "none"), ranks);
    }

    @Test
    void twoCommunicatorsInOneGroupAndTwoThreadsAtOnce() throws Exception {
        String second = Rank.newId();
        List<Float> results = inThreads(3, first -> {
            Rank other = Rank.join(second, first.rank(), 3);
            try (FloatPointer data = new FloatPointer(2)) {
                for (int i = 0; i < 200; i++) {
                    data.put(0, first.rank()).put(1, first.rank());
                    Rank.check(nccl.ncclGroupStart(), "ncclGroupStart");
                    List<Rank> order = first.rank() % 2 == 0 ? List.of(first, other) : List.of(other, first);
                    for (Rank rank : order) {
                        long element = data.address() + (rank == first ? 0 : 4);
                        Rank.check(
                                nccl.ncclAllReduce(element, element, 1, nccl.ncclFloat, nccl.ncclSum, rank.comm(), 0),
                                "ncclAllReduce");
                    }
                    Rank.check(nccl.ncclGroupEnd(), "ncclGroupEnd");
                }
                first.destroy();
                other.destroy();
                return data.get(0) + data.get(1);
            }
        });
        assertEquals(List.of(6f, 6f, 6f), results);
    }

    @Test
    void nothingIsLeftOpen() throws Exception {
        long threads = nativeThreads();
        inThreads(3, HostEngineTest::sumOfRanks);
        // The thread that served the id ends soon after the creation, not with it.
        Waiting.until("end of the engine's threads", () -> nativeThreads() <= threads);
        long before = descriptors();
        for (int i = 0; i < 5; i++) {
            inThreads(3, HostEngineTest::sumOfRanks);
        }
        Waiting.value("no more descriptors than " + before, HostEngineTest::descriptors, now -> now <= before);
    }

    /** Open files, threads and memory of a process that makes and ends communicators all day. */
    @ParameterizedTest
    @ValueSource(strings = {"cycles", "regroup-cycles"})
    void nothingGrowsWithTheNumberOfCommunicators(String scenario) {
        ChildJvm.Outcome outcome = new ChildJvm()
                .property("nccl4j.engine", "host")
                // The JVM starts and ends compiler threads as it likes, which would be counted.
                .option("-XX:-UseDynamicNumberOfCompilerThreads")
                .environment("JAVA_TOOL_OPTIONS", "-Xms24m -Xmx24m -XX:+AlwaysPreTouch")
                .start(HostEngineScenarios.class, scenario, "", "0", scenario.equals("cycles") ? "10000" : "1000")
                .await();
        String last = outcome.output().strip().replaceAll("(?s).*\n", "");
        assertTrue(last.matches("-?\\d+ files, -?\\d+ threads, -?\\d+ KiB more"), outcome.output());
        List<Integer> more =
                Arrays.stream(last.split("[^-0-9]+")).map(Integer::valueOf).toList();
        assertTrue(more.get(0) <= 0 && more.get(1) <= 0 && more.get(2) < 4096, last);
    }

    /** The threads that the JVM has not named: those of the engine, and the first one. */
    static long nativeThreads() throws IOException {
        try (Stream<Path> tasks = Files.list(Path.of("/proc/self/task"))) {
            return tasks.filter(RasScenarios::isNative).count();
        }
    }

    static long descriptors() throws IOException {
        try (Stream<Path> files = Files.list(Path.of("/proc/self/fd"))) {
            // Sockets and events alone: the JVM opens jars as it likes.
            return files.filter(file -> {
                        try {
                            String target = Files.readSymbolicLink(file).toString();
                            return target.startsWith("socket:") || target.contains("event");
                        } catch (IOException closedMeanwhile) {
                            return false;
                        }
                    })
                    .count();
        }
    }

    @Test
    void memoryIsAlignedAndFreed() {
        try (PointerPointer<Pointer> cell = new PointerPointer<>(1)) {
            Rank.check(nccl.ncclMemAlloc(cell, 100_000), "ncclMemAlloc");
            long address = cell.get(Pointer.class, 0).address();
            assertNotEquals(0, address);
            assertEquals(0, address % nccl.NCCL_WIN_REQUIRED_ALIGNMENT);
            Rank.check(nccl.ncclMemFree(address), "ncclMemFree");
            Rank.check(nccl.ncclMemFree(0L), "ncclMemFree(null)");
        }
    }

    @Test
    void aBadConfigurationIsRefused() {
        try (PointerPointer<ncclComm> cell = new PointerPointer<>(1);
                ncclUniqueId id = new ncclUniqueId();
                ncclConfig_t config = new ncclConfig_t()) {
            Rank.check(nccl.ncclGetUniqueId(id), "ncclGetUniqueId");
            config.magic(0);
            assertEquals(
                    nccl.ncclInvalidArgument,
                    nccl.ncclCommInitRankConfig(cell.address(), 1, id.address(), 0, config.address()));
            assertTrue(nccl.ncclGetLastError(0L).contains("magic"), nccl.ncclGetLastError(0L));
        }
    }

    /** Size and version of the caller's header, one field by its offset, and what comes of it; behind 120 bytes all are 0x7f. */
    @ParameterizedTest
    @CsvSource({
        "96, 23007, 16, 0, ncclInProgress",
        "96, 21400, 16, 0, ncclInProgress",
        "96, 21302, 16, 0, ncclSuccess", // 2.13 had no blocking
        "96, 0, 16, 0, ncclSuccess",
        "24, 21602, 20, 99, ncclSuccess", // cgaClusterSize
        "96, 21602, 20, 99, ncclSuccess",
        "96, 21701, 20, 99, ncclSuccess",
        "96, 21701, 20, -1, ncclInvalidArgument",
        "96, 22602, 64, 99, ncclSuccess", // shrinkShare
        "96, 22703, 64, 99, ncclInvalidArgument",
        "96, 22907, 88, 0, ncclSuccess", // maxP2pPeers
        "96, 23003, 88, 0, ncclInvalidArgument",
        "96, 23004, 92, 99, ncclSuccess", // padding that became graphStreamOrdering
        "96, 23007, 92, 99, ncclInvalidArgument",
        "120, 23007, 112, 99, ncclSuccess", // nvlsHostMode
        "112, 23102, 96, 2, ncclInvalidArgument", // launchOrderImplicit
        "112, 23102, 100, -1, ncclInvalidArgument", // numRmaSig
        "112, 23102, 108, 0, ncclInvalidArgument", // hostCftMode
        "112, 23102, 108, 3, ncclSuccess",
        "120, 23203, 112, 3, ncclSuccess",
        "120, 23203, 112, 4, ncclInvalidArgument",
        "120, 23203, 112, 2147483647, ncclSuccess",
        "128, 23300, 16, 1, ncclSuccess", // newer than the engine
        "8, 23007, 16, 1, ncclInvalidArgument"
    })
    void aConfigurationIsReadAsItsHeaderSays(long size, int version, int offset, int value, String expected)
            throws Exception {
        int code = nccl.class.getField(expected).getInt(null);
        try (PointerPointer<ncclComm> cell = new PointerPointer<>(1);
                ncclUniqueId id = new ncclUniqueId();
                ncclConfig_t initialized = new ncclConfig_t();
                BytePointer config = new BytePointer(128)) {
            Pointer.memset(config, 0x7f, 128);
            Pointer.memcpy(config, initialized, initialized.size());
            config.putLong(0, size);
            config.putInt(12, version);
            config.putInt(offset, value);
            Rank.check(nccl.ncclGetUniqueId(id), "ncclGetUniqueId");
            assertEquals(code, nccl.ncclCommInitRankConfig(cell.address(), 1, id.address(), 0, config.address()));
            if (code != nccl.ncclInvalidArgument) {
                Rank.check(nccl.ncclCommAbort(comm(cell, 0)), "ncclCommAbort");
            }
        }
    }

    @Test
    void theSuiteWouldSeeAWrongElement() {
        SmallFloat half = new SmallFloat(5, 10, SmallFloat.Top.INFINITY);
        assertEquals(0x3c00, half.encode(1f));
        assertEquals(0x7bff, half.encode(65504f));
        assertEquals(0x7c00, half.encode(65520f));
        assertEquals(0x3c00, half.encode(1f + 1f / 2048), "ties go to even");
        assertEquals(0x3c02, half.encode(1f + 3f / 2048), "ties go to even");
        SmallFloat e4m3 = new SmallFloat(4, 3, SmallFloat.Top.SATURATING);
        assertEquals(0x7e, e4m3.encode(1000f));
        assertEquals(448f, e4m3.decode(0x7e));
        assertTrue(Float.isNaN(e4m3.decode(0x7f)));
        assertEquals(-2f, e4m3.decode(0xc0));
        assertTrue(Arrays.stream(ElementFormat.values())
                        .map(type -> type.code)
                        .distinct()
                        .count()
                == 12);
    }
}

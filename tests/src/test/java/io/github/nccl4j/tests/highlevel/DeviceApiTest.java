package io.github.nccl4j.tests.highlevel;

import static io.github.nccl4j.tests.highlevel.RankThreads.STREAM;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CommunicatorConfig;
import io.github.nccl4j.highlevel.CommunicatorProperties;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.GinConnection;
import io.github.nccl4j.highlevel.GinType;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.highlevel.Window;
import io.github.nccl4j.highlevel.WindowFlag;
import io.github.nccl4j.tests.ChildJvm;
import io.github.nccl4j.tests.StubLibraries;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Properties of communicators and addresses of windows: on the host engine, and on stubs of releases. */
@Timeout(value = 10, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class DeviceApiTest {
    private static final String FIRST = "10 11 12 13 true false";

    @TempDir
    static Path folder;

    private static List<String> onStub(int release, String scenario, String... environment) throws IOException {
        ChildJvm jvm = new ChildJvm().property("nccl4j.library", StubLibraries.device(folder, release));
        for (String variable : environment) {
            jvm.environment(variable, "1");
        }
        ChildJvm.Outcome outcome = jvm.run(DeviceScenarios.class, scenario);
        assertEquals(0, outcome.exitCode(), outcome.output());
        return outcome.output().lines().toList();
    }

    /** What a release does not tell is empty; of a release that is newer than nccl4j, what is told is what 2.32.3 tells. */
    @ParameterizedTest
    @ValueSource(ints = {22902, 22903, 22907, 23007, 23102, 23203, 23400})
    void propertiesAreReadInTheLayoutOfTheRelease(int release) throws IOException {
        List<String> lines = onStub(release, "properties");
        String second = release < 22907
                ? "GDAKI OptionalInt.empty Optional.empty Optional.empty"
                : "PROXY OptionalInt[6] Optional[true] Optional[UNKNOWN]";
        String third = release < 23100
                ? "OptionalLong.empty OptionalInt.empty Optional.empty Optional.empty OptionalLong.empty"
                : "OptionalLong[" + 0xabcdef0123456789L + "] OptionalInt[5] Optional[CUSTOM_STRIDE]"
                        + " Optional[[PROXY, EFA_GDA, UNKNOWN]] OptionalLong[248]";
        String fourth = release < 23200
                ? "Optional.empty Optional.empty Optional.empty"
                : "Optional[true] Optional[false] Optional[true]";
        assertEquals(List.of(FIRST, second, third, fourth), lines.subList(1, lines.size()));
        String text = "rank=10, size=11, cudaDevice=12, nvmlDevice=13, deviceApi=true, multimem=false, ginType="
                + (release < 22907 ? "GDAKI" : "PROXY, lsaTeams=6, hostRma=true, railedGinType=UNKNOWN");
        assertTrue(lines.get(0).startsWith(text), lines.get(0));
        assertEquals(release >= 23200, lines.get(0).endsWith(", cft=true, cftMulticast=false, cftCounted=true"));
    }

    @Test
    void structuresThatArePassedAsTheyAreArriveInBothForms() throws IOException {
        assertEquals(List.of("17 4 3", "170437", "170438", "16", "24"), onStub(23203, "values"));
    }

    @Test
    void structuresOfNccl228AreNotTakenForThoseOfNow() throws IOException {
        List<String> lines = onStub(22809, "old-structures");
        assertEquals(1, lines.size());
        assertTrue(
                lines.get(0)
                        .matches(
                                "ncclDevCommCreate of .*libdevice22809\\.so \\(NCCL 2\\.28\\.9\\) takes other structures"
                                        + " than that of NCCL 2\\.29\\.2 and newer, which these are made for"),
                lines.get(0));
        assertEquals(List.of("0"), onStub(22902, "old-structures"));
    }

    @Test
    void addressesThatThereAreNotAreEmpty() throws IOException {
        assertEquals(
                List.of(
                        "0",
                        "65536",
                        "none",
                        "196608",
                        "1073741824",
                        "peer must be >= 0 and < size(): -1, size 4",
                        "peer must be >= 0 and < size(): 4, size 4",
                        "window of 1024 int32 is closed",
                        "window of 1024 int32 is closed"),
                onStub(23203, "addresses"));
    }

    @Test
    void functionsThatTheLibraryLacksAreNamed() throws IOException {
        ChildJvm.Outcome outcome = new ChildJvm()
                .property("nccl4j.library", StubLibraries.device(folder, 22809))
                .run(DeviceScenarios.class, "addresses");
        assertTrue(
                outcome.output().contains("ncclGetPeerDevicePointer needs NCCL 2.29.2, loaded is host engine 2.28.9"),
                outcome.output());
    }

    @Test
    void aMulticastAddressIsWaitedForUntilTheDeadline() throws IOException {
        List<String> lines = onStub(23203, "late", "STUB_LATE");
        assertTrue(lines.get(0).contains("ncclGetLsaMultimemDevicePointer"), lines.get(0));
        assertTrue(lines.get(0).contains("0.3 s"), lines.get(0));
        assertEquals("FAILED", lines.get(lines.size() - 1));
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void ranksOfOneProcessAreOneTeam(boolean blocking) throws Exception {
        CommunicatorConfig config =
                CommunicatorConfig.builder().blocking(blocking).build();
        Set<Long> hashes = ConcurrentHashMap.newKeySet();
        RankThreads.run(3, Communicator.builder().config(config), communicator -> {
            CommunicatorProperties told = communicator.properties();
            assertEquals(communicator.rank(), told.rank());
            assertEquals(3, told.size());
            assertEquals(0, told.cudaDevice());
            assertEquals(1, told.lsaTeams().orElseThrow());
            assertTrue(!told.supportsDeviceApi() && !told.supportsMultimem());
            assertEquals(Optional.of(true), told.supportsHostRma());
            assertEquals(GinType.NONE, told.ginType());
            assertEquals(Optional.of(GinConnection.NONE), told.ginConnection());
            assertEquals(Optional.of(Set.of()), told.ginTypes());
            hashes.add(told.hash().orElseThrow());
            try (Communicator child = communicator.split(0, 0)) {
                assertNotEquals(told.hash(), child.properties().hash());
                assertEquals(1, child.properties().lsaTeams().orElseThrow());
            }
        });
        assertEquals(1, hashes.size());
    }

    @Test
    void aRankReadsAndWritesTheWindowsOfTheOthers() throws Exception {
        Map<Integer, Long> addresses = new ConcurrentHashMap<>();
        RankThreads.run(3, communicator -> {
            int rank = communicator.rank();
            try (DeviceBuffer<Int32> buffer = Device.host().allocateForWindow(ElementType.INT32, 1024);
                    Window window = communicator.registerWindow(buffer, WindowFlag.COLL_SYMMETRIC)) {
                buffer.fill((long) rank + 1);
                addresses.put(rank, buffer.address());
                meet(communicator);
                assertEquals(OptionalLong.of(buffer.address()), window.peerAddress(rank));
                for (int peer = 0; peer < 3; peer++) {
                    long address = window.peerAddress(peer).orElseThrow();
                    assertEquals(addresses.get(peer), address);
                    DeviceBuffer<Int32> theirs = DeviceBuffer.wrap(Device.host(), ElementType.INT32, address, 1024);
                    int[] read = new int[2];
                    theirs.slice(1022, 2).copyTo(read);
                    assertArrayEquals(new int[] {peer + 1, peer + 1}, read);
                    theirs.slice(rank, 1).copyFrom(new int[] {100 + rank});
                }
                assertEquals(OptionalLong.empty(), window.multimemAddress());
                meet(communicator);
                int[] mine = new int[4];
                buffer.slice(0, 4).copyTo(mine);
                assertArrayEquals(new int[] {100, 101, 102, rank + 1}, mine);
                assertThrows(IllegalArgumentException.class, () -> window.peerAddress(3));
                meet(communicator);
            }
        });
    }

    private static void meet(Communicator communicator) {
        try (DeviceBuffer<Int32> number = Device.host().allocate(ElementType.INT32, 1)) {
            communicator.allReduce(number, ReduceOp.SUM, STREAM);
        }
    }

    @Test
    void aWindowThatIsPendingHasNoAddresses() throws Exception {
        RankThreads.run(1, communicator -> {
            try (DeviceBuffer<Int32> buffer = Device.host().allocateForWindow(ElementType.INT32, 1024);
                    Group group = Group.open()) {
                Window window = communicator.registerWindow(buffer);
                for (Runnable ask : List.<Runnable>of(() -> window.peerAddress(0), window::multimemAddress)) {
                    String message =
                            assertThrows(IllegalStateException.class, ask::run).getMessage();
                    assertTrue(message.contains("pending"), message);
                }
                group.launch();
                assertEquals(OptionalLong.of(buffer.address()), window.peerAddress(0));
                window.close();
            }
        });
    }
}

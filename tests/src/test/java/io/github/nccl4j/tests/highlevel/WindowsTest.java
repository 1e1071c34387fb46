package io.github.nccl4j.tests.highlevel;

import static io.github.nccl4j.testing.Expect.fails;
import static io.github.nccl4j.tests.highlevel.RankThreads.STREAM;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CommunicatorConfig;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.PreMulSum;
import io.github.nccl4j.highlevel.Registration;
import io.github.nccl4j.highlevel.Window;
import io.github.nccl4j.highlevel.WindowFlag;
import io.github.nccl4j.tests.ChildJvm;
import io.github.nccl4j.tests.StubLibraries;
import java.io.IOException;
import java.nio.file.Path;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Windows and registrations: what they are, when they are, and who closes them; on the host engine and stub libraries. */
@Timeout(value = 10, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@SuppressWarnings("try") // Closing early and twice is what is tested.
class WindowsTest {
    private static final Device HOST = Device.host();

    private static DeviceBuffer<Int32> page() {
        return HOST.allocateForWindow(ElementType.INT32, 1024);
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void windowHasProperties(boolean blocking) throws Exception {
        CommunicatorConfig config =
                CommunicatorConfig.builder().blocking(blocking).build();
        RankThreads.run(2, Communicator.builder().config(config), communicator -> {
            try (DeviceBuffer<Int32> buffer = page();
                    Window window = communicator.registerWindow(
                            buffer, WindowFlag.COLL_SYMMETRIC, WindowFlag.STRICT_ORDERING)) {
                assertTrue(window.isOpen());
                assertEquals(buffer, window.buffer());
                assertEquals(1024, window.length());
                assertEquals(4096, window.sizeInBytes());
                assertEquals(EnumSet.of(WindowFlag.COLL_SYMMETRIC, WindowFlag.STRICT_ORDERING), window.flags());
                assertEquals(buffer.address(), window.userAddress());
                assertNotEquals(0, window.nativeHandle());
                assertEquals("window of 1024 int32", window.toString());
                assertTrue(window.contains(buffer));
                assertTrue(window.contains(buffer.slice(1000, 24)));
                assertTrue(window.contains(buffer.slice(1024, 0)));
                try (DeviceBuffer<Int32> other = page()) {
                    assertFalse(window.contains(other));
                    DeviceBuffer<Int32> longer = DeviceBuffer.wrap(HOST, ElementType.INT32, buffer.address(), 1025);
                    assertFalse(window.contains(longer));
                    DeviceBuffer<Int32> earlier = DeviceBuffer.wrap(HOST, ElementType.INT32, buffer.address() - 4, 1);
                    assertFalse(window.contains(earlier));
                }
                window.close();
                window.close();
                assertFalse(window.isOpen());
                assertEquals(1024, window.length());
                fails(IllegalStateException.class, window::nativeHandle, "window of 1024 int32 is closed");
                fails(IllegalStateException.class, window::userAddress, "is closed");
            }
        });
    }

    @Test
    void flagsAreOptional() throws Exception {
        RankThreads.run(1, communicator -> {
            try (DeviceBuffer<Int32> buffer = page();
                    Window plain = communicator.registerWindow(buffer);
                    DeviceBuffer<Int32> part = page();
                    Window named = communicator.registerWindow(part, WindowFlag.DEFAULT)) {
                assertEquals(Set.of(), plain.flags());
                assertEquals(Set.of(WindowFlag.DEFAULT), named.flags());
                assertThrows(
                        UnsupportedOperationException.class, () -> plain.flags().add(WindowFlag.DEFAULT));
            }
        });
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aWindowOfAGroupIsPendingUntilTheLaunch(boolean blocking) throws Exception {
        CommunicatorConfig config =
                CommunicatorConfig.builder().blocking(blocking).build();
        RankThreads.run(2, Communicator.builder().config(config), communicator -> {
            int peer = 1 - communicator.rank();
            try (DeviceBuffer<Int32> first = page();
                    DeviceBuffer<Int32> second = page();
                    Group group = Group.open()) {
                first.fill(communicator.rank());
                Window one = communicator.registerWindow(first, WindowFlag.COLL_SYMMETRIC);
                Window two = communicator.registerWindow(second, WindowFlag.COLL_SYMMETRIC);
                assertFalse(one.isOpen());
                assertTrue(one.contains(first));
                fails(IllegalStateException.class, one::nativeHandle, "pending", "launched");
                fails(
                        IllegalStateException.class,
                        () -> communicator.putSignal(first.slice(0, 1), one, 0, peer, STREAM),
                        "pending");
                // Discarded before it is created; the other ranks still get theirs.
                two.close();
                fails(IllegalStateException.class, two::nativeHandle, "closed");
                group.launch();
                assertTrue(one.isOpen());
                assertFalse(two.isOpen());
                communicator.putSignal(first.slice(0, 1), one, 7, peer, STREAM);
                communicator.waitSignal(peer, STREAM);
                int[] numbers = new int[8];
                first.copyTo(numbers);
                assertEquals(peer, numbers[7]);
                one.close();
            }
        });
    }

    @Test
    void discardedGroupCreatesNoWindow() throws Exception {
        RankThreads.run(1, communicator -> {
            DeviceBuffer<Int32> buffer = page();
            Window window;
            try (Group group = Group.open()) {
                window = communicator.registerWindow(buffer, WindowFlag.COLL_SYMMETRIC);
                assertTrue(Group.isOpenInThisThread());
            }
            assertFalse(window.isOpen());
            fails(IllegalStateException.class, window::nativeHandle, "closed");
            window.close();
            long address = buffer.address();
            buffer.close();
            // Nothing pins the memory any more.
            assertEquals(nccl.ncclInvalidArgument, nccl.ncclMemFree(address));
        });
    }

    @Test
    void rejectsUnsuitableMemoryBeforeTheCall() throws Exception {
        RankThreads.run(1, communicator -> {
            try (DeviceBuffer<Int32> plain = HOST.allocate(ElementType.INT32, 4096);
                    DeviceBuffer<Int32> none = HOST.allocateForWindow(ElementType.INT32, 0);
                    DeviceBuffer<Int32> buffer = page()) {
                fails(
                        IllegalArgumentException.class,
                        () -> communicator.registerWindow(plain),
                        "allocateForWindow",
                        plain.toString());
                fails(
                        IllegalArgumentException.class,
                        () -> communicator.registerWindow(plain.slice(0, 8)),
                        "allocateForWindow");
                fails(IllegalArgumentException.class, () -> communicator.registerWindow(none), "at least 1", "of 0");
                fails(
                        IllegalArgumentException.class,
                        () -> communicator.registerWindow(buffer.slice(3, 1)),
                        "multiple of 4096",
                        "% 4096 = 12");
                assertThrows(NullPointerException.class, () -> communicator.registerWindow(null));
                assertThrows(NullPointerException.class, () -> communicator.registerWindow(buffer, (WindowFlag) null));
                buffer.close();
                fails(IllegalStateException.class, () -> communicator.registerWindow(buffer), "closed");
            }
            communicator.close();
            try (DeviceBuffer<Int32> buffer = page()) {
                fails(IllegalStateException.class, () -> communicator.registerWindow(buffer), "is closed");
            }
        });
    }

    @Test
    void aSizeNeedsNoAlignmentAndForeignMemoryIsTaken() throws Exception {
        RankThreads.run(2, communicator -> {
            try (DeviceBuffer<Int32> buffer = page();
                    DeviceBuffer<Float32> foreign = DeviceBuffer.wrap(HOST, ElementType.FLOAT32, buffer.address(), 3);
                    Window window = communicator.registerWindow(foreign)) {
                assertEquals(12, window.sizeInBytes());
            }
        });
    }

    @Test
    void aWindowKeepsTheMemoryOfItsBuffer() throws Exception {
        RankThreads.run(2, communicator -> {
            DeviceBuffer<Int32> buffer = page();
            long address = buffer.address();
            DeviceBuffer<Int32> same = DeviceBuffer.wrap(HOST, ElementType.INT32, address, 1024);
            same.fill(communicator.rank() + 5);
            Window window = communicator.registerWindow(buffer, WindowFlag.COLL_SYMMETRIC);
            buffer.close();
            assertTrue(window.isOpen());
            int peer = 1 - communicator.rank();
            communicator.putSignal(same.slice(0, 512), window, 512, peer, STREAM);
            communicator.waitSignal(peer, STREAM);
            int[] numbers = new int[1024];
            same.copyTo(numbers);
            assertEquals(communicator.rank() + 5, numbers[511]);
            assertEquals(peer + 5, numbers[512]);
            // The other rank may still be reading.
            communicator.signal(peer, STREAM);
            communicator.waitSignal(peer, STREAM);
            window.close();
            assertEquals(nccl.ncclInvalidArgument, nccl.ncclMemFree(address), "the window has freed it");
        });
    }

    @Test
    void closesDerivedObjectsNewestFirst() throws Exception {
        RankThreads.run(2, communicator -> {
            try (DeviceBuffer<Int32> first = page();
                    DeviceBuffer<Int32> second = page();
                    DeviceBuffer<Int32> scalar = page()) {
                Window window = communicator.registerWindow(first);
                Registration registration = communicator.register(second);
                PreMulSum<Int32> operator = communicator.preMulSum(scalar.slice(0, 1));
                long address = first.address();
                first.close();
                communicator.close();
                assertFalse(window.isOpen());
                assertFalse(registration.isOpen());
                assertFalse(operator.isOpen());
                assertEquals(nccl.ncclInvalidArgument, nccl.ncclMemFree(address));
                window.close();
                registration.close();
                operator.close();
            }
        });
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void abortReleasesDerivedObjects(boolean inGroup) throws Exception {
        RankThreads.run(1, communicator -> {
            DeviceBuffer<Int32> buffer = page();
            long address = buffer.address();
            Window window = communicator.registerWindow(buffer);
            Registration registration = communicator.register(buffer);
            buffer.close();
            try (Group group = Group.open()) {
                if (inGroup) {
                    // Objects of an open group are released, too.
                    communicator.signal(communicator.rank(), STREAM);
                }
                communicator.abort();
                assertEquals(Communicator.State.ABORTED, communicator.state());
                assertFalse(window.isOpen());
                assertFalse(registration.isOpen());
                assertEquals(nccl.ncclInvalidArgument, nccl.ncclMemFree(address));
                window.close();
                if (inGroup) {
                    fails(IllegalStateException.class, group::launch, "aborted");
                }
            }
        });
    }

    @Test
    void rejectsCloseWhileAnotherThreadIsInside() throws Exception {
        CountDownLatch refused = new CountDownLatch(1);
        RankThreads.run(2, communicator -> {
            int peer = 1 - communicator.rank();
            try (DeviceBuffer<Int32> buffer = page();
                    Window window = communicator.registerWindow(buffer, WindowFlag.COLL_SYMMETRIC)) {
                if (communicator.rank() == 0) {
                    CompletableFuture<Void> waiting = OtherThread.startInside(
                            communicator, "waiting", () -> communicator.waitSignal(peer, STREAM));
                    fails(IllegalStateException.class, window::close, "in use by thread 'waiting'");
                    assertTrue(window.isOpen());
                    refused.countDown();
                    waiting.get();
                } else {
                    refused.await();
                    communicator.signal(peer, STREAM);
                }
            }
        });
    }

    @Test
    void windowUsedByGroupIsReleasedAfterIt() throws Exception {
        RankThreads.run(2, communicator -> {
            int peer = 1 - communicator.rank();
            DeviceBuffer<Int32> buffer = page();
            buffer.fill(communicator.rank());
            DeviceBuffer<Int32> same = DeviceBuffer.wrap(HOST, ElementType.INT32, buffer.address(), 1024);
            Window window = communicator.registerWindow(buffer, WindowFlag.COLL_SYMMETRIC);
            try (Group group = Group.open()) {
                communicator.putSignal(buffer.slice(0, 2), window, 4, peer, STREAM);
                communicator.waitSignal(peer, STREAM);
                window.close();
                buffer.close();
                assertFalse(window.isOpen());
                fails(
                        IllegalStateException.class,
                        () -> communicator.putSignal(same, window, 0, peer, STREAM),
                        "closed");
                group.launch();
            }
            assertEquals(nccl.ncclInvalidArgument, nccl.ncclMemFree(same.address()));
        });
    }

    @Test
    void registrationHasProperties() throws Exception {
        RankThreads.run(1, communicator -> {
            try (DeviceBuffer<Float32> buffer = HOST.allocate(ElementType.FLOAT32, 5);
                    DeviceBuffer<Float32> none = HOST.allocate(ElementType.FLOAT32, 0);
                    Group group = Group.open();
                    Registration registration = communicator.register(buffer)) {
                assertTrue(registration.isOpen());
                assertTrue(registration.isEffective());
                assertEquals(buffer, registration.buffer());
                assertNotEquals(0, registration.nativeHandle());
                assertEquals("registration of 5 float32", registration.toString());
                fails(IllegalArgumentException.class, () -> communicator.register(none), "at least 1");
                registration.close();
                registration.close();
                assertFalse(registration.isOpen());
                fails(IllegalStateException.class, registration::nativeHandle, "registration of 5 float32 is closed");
                group.launch();
            }
        });
    }

    /* Libraries that do other things than the host engine. */

    private static List<String> onStub(Path library, String scenario) {
        ChildJvm.Outcome outcome = new ChildJvm()
                .property("nccl4j.library", library)
                .environment("STUB_WINDOWS", scenario)
                .environment("NCCL_CUMEM_ENABLE", "0")
                .run(WindowScenarios.class, scenario);
        assertEquals(0, outcome.exitCode(), outcome.output());
        return outcome.output().lines().toList();
    }

    @ParameterizedTest
    @CsvSource({"22703, one node", "23007, GIN"})
    void missingWindowThrowsWithRequirements(int release, String word, @TempDir Path folder) throws IOException {
        List<String> lines = onStub(StubLibraries.windows(folder, release), "no-window");
        assertEquals(3, lines.size(), lines.toString());
        for (String line : lines.subList(0, 2)) {
            for (String part : List.of(
                    "NoWindowException: ncclCommWindowRegister succeeded, but created no window: communicator",
                    "NCCL_WIN_ENABLE is not set",
                    "NCCL_CUMEM_ENABLE=0",
                    "P2P",
                    word)) {
                assertTrue(line.contains(part), () -> "'" + part + "' is not in: " + line);
            }
        }
        assertEquals("freed", lines.get(2));
    }

    @Test
    void flagsAndFunctionsThatTheLibraryLacksAreNamed(@TempDir Path folder) throws IOException {
        List<String> lines = onStub(StubLibraries.windows(folder, 22703), "lacks");
        assertEquals(
                List.of(
                        "STRICT_ORDERING needs NCCL 2.29.7, loaded is host engine 2.27.3",
                        "ncclPutSignal needs NCCL 2.29.2, loaded is host engine 2.27.3",
                        "ncclSignal needs NCCL 2.29.2, loaded is host engine 2.27.3",
                        "ncclWaitSignal needs NCCL 2.29.2, loaded is host engine 2.27.3",
                        "ncclWinGetUserPtr needs NCCL 2.29.2, loaded is host engine 2.27.3"),
                lines.stream().map(line -> line.replaceFirst(" from .*", "")).toList());
    }

    @Test
    void failedDeregistrationKeepsMemory(@TempDir Path folder) throws IOException {
        assertArrayEquals(
                new String[] {
                    "ncclCommWindowDeregister failed", "closed true", "kept true", "closed again", "kept false"
                },
                onStub(StubLibraries.windows(folder, 23007), "failing-close").toArray());
    }

    @Test
    void disabledRegistrationIsNotEffective(@TempDir Path folder) throws IOException {
        assertEquals(
                List.of("effective false", "handle 0", "closed"),
                onStub(StubLibraries.windows(folder, 23007), "not-effective"));
    }

    @Test
    void lateWindowKeepsMemoryUntilAbort(@TempDir Path folder) throws IOException {
        assertEquals(
                List.of("NcclTimeoutException", "FAILED", "kept true", "kept false", "CLOSED"),
                onStub(StubLibraries.windows(folder, 23007), "late"));
    }
}

package io.github.nccl4j.tests.highlevel;

import static io.github.nccl4j.tests.highlevel.RankThreads.STREAM;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.Communicator.State;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.MemoryStatistic;
import io.github.nccl4j.highlevel.NcclTimeoutException;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.highlevel.Result;
import io.github.nccl4j.highlevel.RevokeFlag;
import io.github.nccl4j.highlevel.ShrinkFlag;
import io.github.nccl4j.highlevel.SuspendFlag;
import io.github.nccl4j.highlevel.UniqueId;
import io.github.nccl4j.highlevel.Window;
import io.github.nccl4j.highlevel.WindowFlag;
import io.github.nccl4j.tools.support.Threads;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import javax.xml.parsers.DocumentBuilderFactory;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.w3c.dom.Document;
import org.w3c.dom.Element;
import org.w3c.dom.NodeList;

/** The table of states in the comment of {@link Communicator}, cell by cell; two ranks on the host engine. */
@Timeout(value = 10, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class StatesTest {
    private static final Device HOST = Device.host();
    private static final Path PICTURE = Path.of("../docs/pictures/communicator-states.svg");
    private static final Duration SOON = Duration.ofMillis(500);

    private static Communicator shared;

    /** What a call is for; the columns of the table. */
    private enum Column {
        USE(State.OPEN),
        DIVIDE(State.OPEN, State.REVOKED),
        CHANGE(State.OPEN),
        RESUME(State.SUSPENDED),
        ASK_MEMORY(State.OPEN, State.SUSPENDED);

        private final Set<State> allowed;

        Column(State first, State... others) {
            allowed = EnumSet.of(first, others);
        }
    }

    /** A call that both ranks make, with a buffer for windows of each. */
    private interface Body {
        void run(Communicator communicator, DeviceBuffer<Int32> buffer);
    }

    private enum Call {
        ALL_REDUCE(Column.USE, (c, buffer) -> c.allReduce(buffer, ReduceOp.SUM, STREAM)),
        SEND_RECV(Column.USE, (c, buffer) -> {
            int peer = 1 - rankOf(c);
            c.sendRecv(buffer.slice(0, 1), peer, buffer.slice(1, 1), peer, STREAM);
        }),
        SIGNAL(Column.USE, (c, buffer) -> c.signal(rankOf(c), STREAM)),
        WAIT_SIGNAL(Column.USE, (c, buffer) -> {
            if (c.state() == State.OPEN) {
                c.signal(1 - rankOf(c), STREAM);
            }
            c.waitSignal(1 - rankOf(c), STREAM);
        }),
        ADDRESSES(Column.USE, (c, buffer) -> c.onAddresses()
                .broadcast(buffer.address(), buffer.address(), 1, ElementType.INT32.dataType(), 0, STREAM)),
        PLAN(Column.USE, (c, buffer) -> {
            long[] ones = {1, 1};
            long[] places = {0, 1};
            c.planAllToAllv(buffer.slice(0, 2), ones, places, buffer.slice(2, 2), ones, places)
                    .close();
        }),
        WINDOW(Column.USE, (c, buffer) -> c.registerWindow(buffer).close()),
        REGISTRATION(Column.USE, (c, buffer) -> c.register(buffer).close()),
        OPERATOR(Column.USE, (c, buffer) -> c.preMulSum(ElementType.INT32, 2).close()),
        WORK(Column.USE, (c, buffer) -> c.work(STREAM).await()),
        OWN_STREAM(Column.USE, (c, buffer) -> c.stream()),
        DEFAULT_STREAM_WAITS(Column.USE, (c, buffer) -> c.letDefaultStreamWait()),
        WAIT_FOR_DEFAULT_STREAM(Column.USE, (c, buffer) -> c.waitForDefaultStream()),
        HANDLE(Column.USE, (c, buffer) -> c.nativeHandle()),
        IN_GROUP(Column.USE, (c, buffer) -> Group.run(() -> c.allReduce(buffer, ReduceOp.SUM, STREAM))),
        SPLIT(Column.DIVIDE, (c, buffer) -> c.split(0, rankOf(c)).close()),
        SPLIT_NONE(Column.DIVIDE, (c, buffer) -> c.splitNone()),
        SHRINK(Column.DIVIDE, (c, buffer) -> c.shrink(List.of(1 - rankOf(c)), ShrinkFlag.DEFAULT)
                .close()),
        SHRINK_ABORTING(Column.DIVIDE, (c, buffer) -> c.shrink(List.of(1 - rankOf(c)), ShrinkFlag.ABORT)
                .close()),
        GROW_ID(Column.CHANGE, (c, buffer) -> {
            if (c.state() != State.OPEN || c.rank() == 0) {
                c.growId();
            }
        }),
        GROW(Column.CHANGE, (c, buffer) -> {
            CompletableFuture<Void> joined = CompletableFuture.completedFuture(null);
            if (c.state() == State.OPEN && c.rank() == 0) {
                UniqueId id = c.growId();
                joined = CompletableFuture.runAsync(
                        () -> Communicator.builder().join(id, 2, 3).close(), Threads.EACH);
            }
            c.grow(3).close();
            joined.join();
        }),
        SUSPEND(Column.CHANGE, (c, buffer) -> c.suspend(SuspendFlag.MEM)),
        REVOKE(Column.CHANGE, (c, buffer) -> c.revoke(RevokeFlag.DEFAULT)),
        FINISH(Column.CHANGE, (c, buffer) -> c.finish()),
        RESUME(Column.RESUME, (c, buffer) -> c.resume()),
        MEMORY(Column.ASK_MEMORY, (c, buffer) -> c.memory(MemoryStatistic.GPU_MEM_TOTAL));

        private final Column column;
        private final Body body;

        Call(Column column, Body body) {
            this.column = column;
            this.body = body;
        }
    }

    /** Known in all states but one. */
    private static int rankOf(Communicator communicator) {
        return communicator.state() == State.PENDING ? 0 : communicator.rank();
    }

    static List<Object[]> cells() {
        List<Object[]> cells = new ArrayList<>();
        for (State state : State.values()) {
            for (Call call : Call.values()) {
                cells.add(new Object[] {state, call});
            }
        }
        return cells;
    }

    @ParameterizedTest(name = "{0}: {1}")
    @MethodSource("cells")
    void callsFollowTheStateTable(State state, Call call) throws Exception {
        if (state == State.PENDING) {
            refusedWhilePending(call);
            return;
        }
        if (state == State.FAILED) {
            try (DeviceBuffer<Int32> buffer = HOST.allocateForWindow(ElementType.INT32, 1024)) {
                assertRefused(call, sharedGivenUp(), buffer);
            }
            return;
        }
        RankThreads.run(2, communicator -> {
            bringTo(state, communicator);
            try (DeviceBuffer<Int32> buffer = HOST.allocateForWindow(ElementType.INT32, 1024)) {
                buffer.fill(0);
                if (call.column.allowed.contains(state)) {
                    call.body.run(communicator, buffer);
                    assertEquals(stateAfter(state, call), communicator.state());
                } else {
                    assertRefused(call, communicator, buffer);
                }
            }
            // Not after a refused call: the other rank may not have reached the state yet.
            boolean ended =
                    (call == Call.REVOKE || call == Call.SHRINK_ABORTING) && call.column.allowed.contains(state);
            if (ended || state == State.REVOKED) {
                communicator.abort();
            }
        });
    }

    private static void assertRefused(Call call, Communicator communicator, DeviceBuffer<Int32> buffer) {
        State state = communicator.state();
        IllegalStateException refused =
                assertThrows(IllegalStateException.class, () -> call.body.run(communicator, buffer));
        assertTrue(refused.getMessage().startsWith(communicator.toString()), refused.getMessage());
        assertTrue(refused.getMessage().contains(wordsOf(state)), refused.getMessage());
        assertEquals(state, communicator.state());
    }

    private static void bringTo(State state, Communicator communicator) {
        switch (state) {
            case SUSPENDED -> communicator.suspend(SuspendFlag.MEM);
            case REVOKED -> communicator.revoke(RevokeFlag.DEFAULT);
            case FINISHED -> communicator.finish();
            case ABORTED -> communicator.abort();
            case CLOSED -> communicator.close();
            default -> {
                // Open from the beginning.
            }
        }
        assertEquals(state, communicator.state());
    }

    /** Rank 0 of two, whose split was not done before its deadline, since rank 1 did not come. */
    private static Communicator givenUp() throws Exception {
        for (; ; ) {
            UniqueId id = UniqueId.create();
            CompletableFuture<Communicator> other =
                    CompletableFuture.supplyAsync(() -> Communicator.create(id, 1, 2), Threads.EACH);
            try {
                Communicator communicator =
                        Communicator.builder().deadline(SOON).create(id, 0, 2);
                assertThrows(NcclTimeoutException.class, () -> communicator.split(0, 0));
                assertEquals(State.FAILED, communicator.state());
                return communicator;
            } catch (NcclTimeoutException e) {
                // On a busy machine the creation may exceed the deadline; it is then repeated.
                assertTrue(e.operation().startsWith("ncclCommInitRank"), e::getMessage);
            } finally {
                other.thenAccept(Communicator::abort);
            }
        }
    }

    /** One for all calls that are refused: making one takes as long as its deadline. */
    private static Communicator sharedGivenUp() throws Exception {
        if (shared == null) {
            shared = givenUp();
        }
        return shared;
    }

    @AfterAll
    static void abortShared() {
        if (shared != null) {
            shared.abort();
        }
    }

    private static State stateAfter(State before, Call call) {
        return switch (call) {
            case SUSPEND -> State.SUSPENDED;
            case REVOKE -> State.REVOKED;
            case FINISH -> State.FINISHED;
            case RESUME -> State.OPEN;
            default -> before;
        };
    }

    private static String wordsOf(State state) {
        return switch (state) {
            case OPEN -> "is open";
            case SUSPENDED -> "is suspended: resume it first";
            case REVOKED -> "was revoked";
            case FINISHED -> "was finished";
            case FAILED -> "has an abandoned call";
            case ABORTED -> "was aborted";
            case CLOSED -> "is closed";
            case PENDING -> "is pending";
        };
    }

    private static void refusedWhilePending(Call call) throws Exception {
        RankThreads.run(1, communicator -> {
            try (DeviceBuffer<Int32> buffer = HOST.allocateForWindow(ElementType.INT32, 1024);
                    Group group = Group.open()) {
                Communicator pending = communicator.split(0, 0);
                IllegalStateException refused =
                        assertThrows(IllegalStateException.class, () -> call.body.run(pending, buffer));
                // No work is pending while a group is open.
                String words = call == Call.WORK ? "open group" : "is pending";
                assertTrue(refused.getMessage().contains(words), refused.getMessage());
                group.launch();
                pending.close();
            }
        });
    }

    @ParameterizedTest
    @EnumSource(State.class)
    void closeAndAbortWorkInEveryState(State state) throws Exception {
        for (boolean abort : new boolean[] {false, true}) {
            if (state == State.PENDING) {
                endPending(abort);
                continue;
            }
            if (state == State.FAILED) {
                assertEnds(givenUp(), abort);
                continue;
            }
            CountDownLatch reached = new CountDownLatch(2);
            RankThreads.run(2, communicator -> {
                bringTo(state, communicator);
                // A rank that is still on its way to this state would fail because of the other's end.
                reached.countDown();
                reached.await();
                assertEnds(communicator, abort);
            });
        }
    }

    private static void assertEnds(Communicator communicator, boolean abort) {
        State state = communicator.state();
        if (abort) {
            communicator.abort();
        } else {
            communicator.close();
        }
        State expected = state == State.ABORTED || state == State.CLOSED ? state : abort ? State.ABORTED : State.CLOSED;
        assertEquals(expected, communicator.state());
        communicator.close();
        communicator.abort();
        assertEquals(expected, communicator.state());
        // Properties stay readable after the end.
        assertEquals(2, communicator.size());
        assertEquals(HOST, communicator.device());
        assertEquals("", communicator.name());
        assertThrows(IllegalStateException.class, communicator::asyncError);
    }

    private static void endPending(boolean abort) throws Exception {
        RankThreads.run(1, communicator -> {
            try (Group group = Group.open()) {
                Communicator pending = communicator.split(0, 0);
                if (abort) {
                    pending.abort();
                } else {
                    assertThrows(IllegalStateException.class, pending::close);
                }
                assertEquals(State.PENDING, pending.state());
                group.launch();
                assertEquals(State.OPEN, pending.state());
                assertEquals(Result.SUCCESS, pending.asyncError());
                pending.close();
            }
        });
    }

    /** The id tells communicators without a name apart, as in the reports of {@code analyze}. */
    @Test
    void messagesNameTheCommunicatorAndTheStatesInWords() {
        Communicator parent = Communicator.create(UniqueId.create(), 0, 1);
        Communicator child = parent.split(0, 0);
        assertTrue(
                parent.toString().matches("communicator [0-9a-f]{8} \\(rank 0 of 1 on host memory\\)"),
                parent::toString);
        assertEquals(parent.toString().replace(" (", ".0.0 ("), child.toString());
        child.close();
        parent.close();
        String message =
                assertThrows(IllegalStateException.class, child::asyncError).getMessage();
        assertEquals(child + " is closed; to be asked for errors it must not be aborted or closed", message);
    }

    /** {@code .ci/make-pictures} draws it from the table; the tests above compare the code with the same states. */
    @Test
    void pictureShowsTheChangesOfState() throws Exception {
        Set<String> expected = new TreeSet<>();
        expected.add("PENDING group launch OPEN"); // endPending
        expected.add("OPEN deadline FAILED"); // givenUp
        for (State state : State.values()) {
            for (Call call : Call.values()) {
                if (call.column.allowed.contains(state) && stateAfter(state, call) != state) {
                    expected.add(state + " " + call.name().toLowerCase(Locale.ROOT) + " " + stateAfter(state, call));
                }
            }
            if (state != State.PENDING && state != State.ABORTED && state != State.CLOSED) {
                expected.add(state + " close CLOSED"); // assertEnds
                expected.add(state + " abort ABORTED");
            }
        }
        Document picture =
                DocumentBuilderFactory.newInstance().newDocumentBuilder().parse(PICTURE.toFile());
        NodeList paths = picture.getElementsByTagName("path");
        Set<String> shown = new TreeSet<>();
        for (int i = 0; i < paths.getLength(); i++) {
            Element path = (Element) paths.item(i);
            for (String from : path.getAttribute("data-from").split(" ")) {
                shown.add(from + " " + path.getAttribute("data-call") + " " + path.getAttribute("data-to"));
            }
        }
        shown.remove("  "); // the head of the arrows
        assertEquals(expected, shown);
    }

    @Test
    void pendingCommunicatorOfDiscardedGroupIsClosed() throws Exception {
        RankThreads.run(1, communicator -> {
            Group group = Group.open();
            Communicator pending = communicator.split(0, 0);
            group.close();
            assertEquals(State.CLOSED, pending.state());
            pending.close();
            pending.abort();
        });
    }

    @Test
    void suspendedCommunicatorKeepsItsObjects() throws Exception {
        RankThreads.run(2, communicator -> {
            int peer = 1 - communicator.rank();
            DeviceBuffer<Int32> buffer = HOST.allocateForWindow(ElementType.INT32, 1024);
            buffer.fill(communicator.rank());
            Window window = communicator.registerWindow(buffer, WindowFlag.COLL_SYMMETRIC);
            communicator.suspend(SuspendFlag.MEM);
            assertEquals(1, communicator.memory(MemoryStatistic.GPU_MEM_SUSPENDED));
            assertThrows(IllegalStateException.class, window::close);
            assertTrue(window.isOpen());
            communicator.resume();
            assertEquals(0, communicator.memory(MemoryStatistic.GPU_MEM_SUSPENDED));
            communicator.putSignal(buffer.slice(0, 1), window, 1, peer, STREAM);
            communicator.waitSignal(peer, STREAM);
            int[] numbers = new int[2];
            buffer.copyTo(numbers);
            assertEquals(peer, numbers[1]);
            communicator.suspend(SuspendFlag.MEM);
            // Resumes the communicator in order to release the window.
            communicator.close();
            assertTrue(!window.isOpen());
            buffer.close();
        });
    }

    @Test
    void refusalNamesTheStateThatCausedIt() throws Exception {
        RankThreads.run(1, communicator -> {
            AtomicBoolean ended = new AtomicBoolean();
            AtomicBoolean refused = new AtomicBoolean();
            // Many races, but no more than a busy machine has time for.
            long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(5);
            Threads.together(
                    List.of(
                            () -> {
                                try {
                                    for (int i = 0; i < 1000 && System.nanoTime() < end || !refused.get(); i++) {
                                        untilItIsFree(() -> communicator.suspend(SuspendFlag.MEM));
                                        untilItIsFree(communicator::resume);
                                    }
                                } finally {
                                    ended.set(true);
                                }
                                return null;
                            },
                            () -> {
                                try (DeviceBuffer<Int32> buffer = HOST.allocate(ElementType.INT32, 1)) {
                                    while (!ended.get()) {
                                        try {
                                            communicator.allReduce(buffer, buffer, ReduceOp.SUM, STREAM);
                                        } catch (IllegalStateException e) {
                                            String message = e.getMessage();
                                            boolean suspended = message.contains("is suspended");
                                            assertTrue(suspended || isInUse(message), message);
                                            refused.set(refused.get() || suspended);
                                        }
                                    }
                                } finally {
                                    // The other thread continues until then, or until this one fails.
                                    refused.set(true);
                                }
                                return null;
                            }),
                    Duration.ofMinutes(4));
        });
    }

    private static void untilItIsFree(Runnable change) {
        for (; ; ) {
            try {
                change.run();
                return;
            } catch (IllegalStateException e) {
                assertTrue(isInUse(e.getMessage()), e::getMessage);
            }
        }
    }

    private static boolean isInUse(String message) {
        return message.contains("in use by thread");
    }
}

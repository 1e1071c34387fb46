package io.github.nccl4j.tests.highlevel;

import static io.github.nccl4j.testing.Expect.fails;
import static io.github.nccl4j.tests.highlevel.RankThreads.STREAM;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.Communicator.State;
import io.github.nccl4j.highlevel.CommunicatorConfig;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.FailurePolicy;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.NcclException;
import io.github.nccl4j.highlevel.NcclTimeoutException;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.highlevel.RevokeFlag;
import io.github.nccl4j.highlevel.ShrinkFlag;
import io.github.nccl4j.highlevel.UniqueId;
import io.github.nccl4j.tests.ChildJvm;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Communicators with fewer or more ranks than that they are made from, on the host engine. */
@Timeout(value = 10, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class RegroupTest {
    private static final Device HOST = Device.host();

    private static int sum(Communicator communicator, int mine) {
        try (DeviceBuffer<Int32> number = HOST.allocate(ElementType.INT32, 1)) {
            number.fill(mine);
            communicator.allReduce(number, ReduceOp.SUM, STREAM);
            int[] sum = new int[1];
            number.copyTo(sum);
            return sum[0];
        }
    }

    @Test
    void survivorsContinueAfterAProcessDied() {
        String id = HexFormat.of().formatHex(UniqueId.create().toBytes());
        List<ChildJvm.Running> ranks = new ArrayList<>();
        for (int rank = 0; rank < 4; rank++) {
            ranks.add(new ChildJvm()
                    .property("nccl4j.engine", "host")
                    .start(RegroupScenarios.class, id, "" + rank, "4", "2"));
        }
        List<String> outputs = new ArrayList<>();
        for (ChildJvm.Running rank : ranks) {
            ChildJvm.Outcome outcome = rank.await();
            assertEquals(outputs.size() == 2 ? 9 : 0, outcome.exitCode(), outcome.output());
            outputs.add(outcome.output());
        }
        assertEquals(
                List.of(
                        "lost rank 2 true\n0 of 3 has 4, OPEN\nclosed\n",
                        "lost rank 2 true\n1 of 3 has 4, OPEN\nclosed\n",
                        "",
                        "lost rank 2 true\n2 of 3 has 4, OPEN\nclosed\n"),
                outputs);
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void ranksKeepTheirOrderAndAllSettings(boolean blocking) throws Exception {
        CommunicatorConfig config =
                CommunicatorConfig.builder().blocking(blocking).build();
        Duration deadline = Duration.ofSeconds(50);
        RankThreads.run(4, Communicator.builder().config(config).deadline(deadline), communicator -> {
            int rank = communicator.rank();
            if (rank != 1) {
                try (Communicator rest = communicator.shrink(Set.of(1), ShrinkFlag.DEFAULT)) {
                    assertEquals(rank == 0 ? 0 : rank - 1, rest.rank());
                    assertEquals(3, rest.size());
                    assertEquals(deadline, rest.deadline());
                    assertEquals(blocking, rest.isBlocking());
                    assertEquals(5, sum(rest, rank));
                }
            }
            assertEquals(6, sum(communicator, rank), "the one that was shrunk stays");
        });
    }

    @Test
    void aShrinkOfAGroupIsPending() throws Exception {
        RankThreads.run(3, communicator -> {
            int rank = communicator.rank();
            if (rank < 2) {
                Communicator rest;
                try (Group group = Group.open()) {
                    rest = communicator.shrink(List.of(2, 2), ShrinkFlag.DEFAULT);
                    assertEquals(State.PENDING, rest.state());
                    group.launch();
                }
                assertEquals(1, sum(rest, rank));
                rest.close();
            }
            assertEquals(3, sum(communicator, rank));
        });
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aCommunicatorGrowsRankByRank(boolean blocking) throws Exception {
        int size = 4;
        CommunicatorConfig config =
                CommunicatorConfig.builder().blocking(blocking).build();
        List<CompletableFuture<UniqueId>> ids = new ArrayList<>();
        for (int i = 0; i < size; i++) {
            ids.add(new CompletableFuture<>());
        }
        List<Thread> threads = new ArrayList<>();
        List<Throwable> failures = new ArrayList<>();
        for (int r = 0; r < size; r++) {
            int rank = r;
            threads.add(new Thread(() -> {
                try {
                    Communicator current = rank == 0
                            ? Communicator.builder().config(config).create(UniqueId.create(), 0, 1)
                            : Communicator.builder()
                                    .config(config)
                                    .join(ids.get(rank).join(), rank, rank + 1);
                    assertEquals(rank * (rank + 1) / 2, sum(current, rank));
                    for (int next = current.size(); next < size; next++) {
                        // Ids are made by rank 0; the others learn of them when they grow.
                        if (rank == 0) {
                            ids.get(next).complete(current.growId());
                        }
                        ids.get(next).join();
                        Communicator more = current.grow(next + 1);
                        assertEquals(rank, more.rank());
                        assertEquals(next + 1, more.size());
                        assertEquals(blocking, more.isBlocking());
                        assertEquals(next * (next + 1) / 2, sum(more, rank));
                        current.close();
                        current = more;
                    }
                    current.close();
                } catch (Throwable failure) {
                    synchronized (failures) {
                        failures.add(failure);
                    }
                }
            }));
        }
        threads.forEach(Thread::start);
        for (Thread thread : threads) {
            thread.join();
        }
        assertEquals(List.of(), failures);
    }

    @Test
    void rejectsSecondGrowIdBeforeGrow() throws Exception {
        RankThreads.run(1, communicator -> {
            communicator.growId();
            fails(NcclException.class, communicator::growId, "ncclCommGetUniqueId");
        });
    }

    @Test
    void growingEndsAtTheDeadline() throws Exception {
        RankThreads.run(1, Communicator.builder().deadline(Duration.ofMillis(500)), communicator -> {
            communicator.growId();
            fails(NcclTimeoutException.class, () -> communicator.grow(2), "Timed out after 0.5 s in ncclCommGrow");
            assertEquals(State.FAILED, communicator.state());
        });
    }

    @Test
    void joiningEndsAtTheDeadline() {
        UniqueId nobody = UniqueId.create();
        fails(
                NcclTimeoutException.class,
                () -> Communicator.builder().deadline(Duration.ofMillis(100)).join(nobody, 1, 2),
                " in ncclCommGrow at rank ");
    }

    @Test
    void wrongRanksAreRefusedBeforeTheCall() throws Exception {
        RankThreads.run(2, communicator -> {
            int rank = communicator.rank();
            fails(
                    IllegalArgumentException.class,
                    () -> communicator.shrink(List.of(), ShrinkFlag.DEFAULT),
                    "excluded must not be empty");
            fails(
                    IllegalArgumentException.class,
                    () -> communicator.shrink(List.of(rank), ShrinkFlag.ABORT),
                    "a rank must not exclude itself: " + rank);
            fails(
                    IllegalArgumentException.class,
                    () -> communicator.shrink(List.of(2), ShrinkFlag.DEFAULT),
                    "an excluded rank",
                    "2, size 2");
            fails(
                    IllegalArgumentException.class,
                    () -> communicator.shrink(List.of(-1), ShrinkFlag.DEFAULT),
                    "-1, size 2");
            assertThrows(NullPointerException.class, () -> communicator.shrink(null, ShrinkFlag.DEFAULT));
            assertThrows(NullPointerException.class, () -> communicator.shrink(List.of(0), null));
            fails(IllegalArgumentException.class, () -> communicator.grow(2), "newSize must be > size(): 2, size 2");
            fails(IllegalArgumentException.class, () -> communicator.grow(0), "0, size 2");
            fails(IllegalArgumentException.class, () -> communicator.split(-1, 0), "color", "-1");
            UniqueId id = UniqueId.create();
            fails(IllegalArgumentException.class, () -> Communicator.builder().join(id, 2, 2), "2");
            assertThrows(
                    NullPointerException.class, () -> Communicator.builder().join(null, 1, 2));
            assertEquals(1, sum(communicator, rank));
        });
    }

    @Test
    void revokingEndsTheOperationOfAnotherThread() throws Exception {
        CyclicBarrier together = new CyclicBarrier(2);
        RankThreads.run(2, communicator -> {
            int rank = communicator.rank();
            int peer = 1 - rank;
            CompletableFuture<Void> waiting =
                    OtherThread.startInside(communicator, "waiting", () -> communicator.waitSignal(peer, STREAM));
            together.await();
            communicator.revoke(RevokeFlag.DEFAULT);
            ExecutionException ended = assertThrows(ExecutionException.class, waiting::get);
            assertInstanceOf(NcclException.class, ended.getCause());
            assertTrue(
                    ended.getCause().getMessage().contains("ncclWaitSignal"),
                    ended.getCause().getMessage());
            assertEquals(State.REVOKED, communicator.state());
            fails(IllegalStateException.class, () -> communicator.signal(peer, STREAM), "was revoked");
            together.await();
            try (Communicator next = communicator.split(0, rank)) {
                assertEquals(1, sum(next, rank));
            }
            together.await();
        });
    }

    @Test
    void inheritsFailurePolicy() throws Exception {
        List<Communicator> failed = new ArrayList<>();
        FailurePolicy policy = (communicator, failure) -> {
            synchronized (failed) {
                failed.add(communicator);
            }
            communicator.abort();
        };
        RankThreads.run(3, Communicator.builder().onFailure(policy), communicator -> {
            if (communicator.rank() == 2) {
                return;
            }
            Communicator rest = communicator.shrink(List.of(2), ShrinkFlag.DEFAULT);
            sum(rest, 1);
            if (communicator.rank() == 0) {
                rest.abort();
            } else {
                fails(NcclException.class, () -> sum(rest, 1), "ncclAllReduce");
                assertEquals(State.ABORTED, rest.state());
                assertEquals(List.of(rest), failed);
            }
            assertFalse(rest.state() == State.OPEN);
        });
    }
}

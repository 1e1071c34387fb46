package io.github.nccl4j.tests.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.NcclRemoteException;
import io.github.nccl4j.highlevel.NcclTimeoutException;
import io.github.nccl4j.highlevel.Recovery;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.launch.RendezvousTimeoutException;
import io.github.nccl4j.launch.TcpStore;
import io.github.nccl4j.testing.Waiting;
import io.github.nccl4j.tests.launch.Proxy;
import io.github.nccl4j.tests.launch.WatchedStore;
import io.github.nccl4j.tools.support.Threads;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Rank 2 is lost and comes back, and meanwhile another process ends, before each of its calls of the store in turn. The others
 * finish, and none of them waits for its patience.
 */
@Timeout(value = 5, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class EndedMembersTest {
    private static final int SIZE = 3;
    private static final int LOST = 2;
    private static final int LOST_AT = 1;
    private static final int ADMITTED_AT = 3;
    private static final int STEPS = 5;

    /** What the members do when the other process ends: they recover without rank 2, recover with it, or admit it later. */
    enum Moment {
        SHRINK,
        CREATE,
        GROW
    }

    /** What the calls of a process that has ended throw. */
    private static final class Ended extends Error {
        private static final long serialVersionUID = 1;
    }

    /** The processes of one run. */
    private static final class Run implements AutoCloseable {
        private final Moment moment;
        private final ReturningRanks ranks = new ReturningRanks(SIZE);
        private final CountDownLatch mayComeBack = new CountDownLatch(1);
        private final CountDownLatch backHasEnded = new CountDownLatch(1);

        Run(Moment moment) {
            this.moment = moment;
        }

        /** Returns the call before which the victim has ended; null if it has made all its calls. */
        String end(int victim, int calls) throws Exception {
            List<Member> members = new ArrayList<>();
            List<Future<Integer>> running = new ArrayList<>();
            for (int rank = 0; rank < SIZE; rank++) {
                members.add(new Member(this, rank, rank == victim && rank != LOST ? calls : Integer.MAX_VALUE));
                running.add(ranks.submit(members.get(rank)::run));
            }
            assertNull(result(running.get(LOST)));
            mayComeBack.await();
            members.set(LOST, new Member(this, LOST, victim == LOST ? calls : Integer.MAX_VALUE));
            running.set(LOST, ranks.submit(members.get(LOST)::run));
            for (int rank = 0; rank < SIZE; rank++) {
                String end = members.get(victim).end;
                Integer state = result(running.get(rank));
                assertEquals(members.get(rank).end == null ? STEPS : null, state, "rank " + rank + ", " + end);
            }
            return members.get(victim).end;
        }

        private static Integer result(Future<Integer> member) throws Exception {
            return member.get(ReturningRanks.PATIENCE.toSeconds() / 2, TimeUnit.SECONDS);
        }

        @Override
        public void close() {
            ranks.close();
        }
    }

    /** The documented loop of a process, whose connection to the store may end without a word. */
    private static final class Member {
        private final Run run;
        private final int rank;
        private int callsLeft;
        private boolean isBack;
        private boolean counts;
        private volatile String end;

        Member(Run run, int rank, int calls) {
            this.run = run;
            this.rank = rank;
            callsLeft = calls;
        }

        /** Returns the state, or null if this process was lost. */
        Integer run() throws Exception {
            try (Proxy proxy = new Proxy(run.ranks.port());
                    TcpStore store = ReturningRanks.open(run.ranks.rankAt(rank, proxy.port()));
                    CudaStream stream = CudaStream.nonBlocking(Device.host());
                    DeviceBuffer<Int32> state = Device.host().allocate(ElementType.INT32, 1);
                    DeviceBuffer<Int32> sum = Device.host().allocate(ElementType.INT32, 1)) {
                isBack = store.attempt() > 0;
                counts = isBack;
                Recovery recovery = Recovery.begin(
                        WatchedStore.of(store, call -> count(call, proxy)), "sums", ReturningRanks.settings());
                try {
                    return steps(recovery, store, stream, state, sum);
                } finally {
                    recovery.communicator().abort();
                }
            } catch (Ended lost) {
                return null;
            } finally {
                if (isBack) {
                    run.backHasEnded.countDown();
                }
            }
        }

        private void count(String call, Proxy proxy) {
            if (end != null || counts && callsLeft-- == 0) {
                end = end == null ? call : end;
                try {
                    proxy.cut();
                } catch (IOException e) {
                    throw new UncheckedIOException(e);
                }
                throw new Ended();
            }
        }

        private Integer steps(
                Recovery recovery,
                TcpStore store,
                CudaStream stream,
                DeviceBuffer<Int32> state,
                DeviceBuffer<Int32> sum)
                throws Exception {
            int step = 0;
            while (step < STEPS) {
                try {
                    if (step == LOST_AT && rank == LOST && !isBack) {
                        return null;
                    }
                    if (step == ADMITTED_AT && recovery.members().size() < SIZE) {
                        awaitBack(store);
                        counts |= run.moment == Moment.GROW;
                    }
                    if (recovery.admit(ReturningRanks.PATIENCE)) {
                        step = (int) recovery.broadcastState(step, stream, state);
                    }
                    counts = false;
                    sum.fill(1);
                    recovery.communicator().allReduce(sum, ReduceOp.SUM, stream);
                    recovery.communicator().work(stream).await();
                    assertEquals(recovery.members().size(), number(sum));
                    state.fill(++step);
                } catch (NcclRemoteException | NcclTimeoutException lost) {
                    if (run.moment == Moment.CREATE) {
                        awaitBack(store);
                    }
                    counts |= run.moment != Moment.GROW;
                    recovery.recover(ReturningRanks.PATIENCE);
                    counts = false;
                }
            }
            recovery.rendezvous("end").barrier("end", ReturningRanks.PATIENCE);
            return number(state);
        }

        private static int number(DeviceBuffer<Int32> buffer) {
            int[] number = new int[1];
            buffer.copyTo(number);
            return number[0];
        }

        /** Waits until rank 2 waits for its admission, or has ended again. */
        private void awaitBack(TcpStore store) throws InterruptedException {
            run.mayComeBack.countDown();
            Waiting.until(
                    "return of rank 2",
                    () -> exists(store, "sums-waits-2-1")
                            || exists(store, "sums-admitted-2-1")
                            || run.backHasEnded.getCount() == 0);
        }
    }

    private static boolean exists(TcpStore store, String key) {
        try {
            store.get(key, Duration.ZERO);
            return true;
        } catch (RendezvousTimeoutException none) {
            return false;
        }
    }

    @ParameterizedTest
    @EnumSource
    void othersFinish(Moment moment) throws Exception {
        List<Callable<Integer>> sweeps = new ArrayList<>();
        for (int victim = 0; victim < (moment == Moment.SHRINK ? LOST : SIZE); victim++) {
            int one = victim;
            sweeps.add(() -> calls(moment, one));
        }
        for (int calls : Threads.together(sweeps, Duration.ofMinutes(4))) {
            assertTrue(calls > 6, "calls: " + calls);
        }
    }

    /** Ends the victim before each of its calls in turn; returns their number. */
    private static int calls(Moment moment, int victim) throws Exception {
        for (int calls = 0; ; calls++) {
            try (Run run = new Run(moment)) {
                if (run.end(victim, calls) == null) {
                    return calls;
                }
            }
        }
    }
}

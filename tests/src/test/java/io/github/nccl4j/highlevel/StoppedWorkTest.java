package io.github.nccl4j.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.internal.failure.Reason;
import io.github.nccl4j.testing.Waiting;
import io.github.nccl4j.tools.support.Threads;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Work that a revocation or an abort stops: it ends, but is not done. */
@Timeout(value = 2, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class StoppedWorkTest {
    private static final String WORK = "ncclAllReduce of 1 int32 (operation 1)";

    /** Two ranks of this process; the second one joins no operation. */
    private List<Communicator> ranks;

    private Communicator first;
    private CudaStream stream;
    private DeviceBuffer<Int32> number;

    @BeforeEach
    void create() {
        ranks = Communicator.builder().createAll(List.of(Device.host(), Device.host()));
        first = ranks.get(0);
        stream = CudaStream.nonBlocking(Device.host());
        number = Device.host().allocate(ElementType.INT32, 1);
    }

    @AfterEach
    void end() {
        ranks.forEach(Communicator::abort);
        stream.close();
        number.close();
    }

    private void allReduce() {
        first.allReduce(number, ReduceOp.SUM, stream);
    }

    private Work pending() {
        allReduce();
        Work work = first.work(stream);
        assertFalse(work.isDone());
        return work;
    }

    /** What a thread gets that asks until the work is over. */
    private static CompletableFuture<RuntimeException> asked(Work work) {
        return CompletableFuture.supplyAsync(
                () -> {
                    try {
                        Waiting.until("end of the work", () -> work.isDone());
                        return null;
                    } catch (RuntimeException end) {
                        return end;
                    }
                },
                Threads.EACH);
    }

    private void assertLost(RuntimeException end, String how) {
        assertInstanceOf(IllegalStateException.class, end);
        assertEquals(first.core() + how + " before " + WORK + " was done", end.getMessage());
    }

    @Test
    void revokedWorkIsLost() {
        Work work = pending();
        CompletableFuture<Void> future = work.toFuture();
        first.revoke(RevokeFlag.DEFAULT);
        CompletionException end = assertThrows(CompletionException.class, future::join);
        assertLost((RuntimeException) end.getCause(), " was revoked");
        // Perhaps nobody looks at the future, so the stream tells it too.
        assertLost(assertThrows(IllegalStateException.class, stream::synchronize), " was revoked");
        assertLost(assertThrows(IllegalStateException.class, work::await), " was revoked");
        assertEquals(0, first.core().operationLog().last().done());
        // The end of the communicator changes nothing.
        first.close();
        assertThrows(IllegalStateException.class, work::isDone);
    }

    /** Also for a thread that asks while NCCL stops the work. */
    @Test
    void threadsThatAskGetNoDone() {
        for (int round = 0; round < 20; round++) {
            CompletableFuture<RuntimeException> asked = asked(pending());
            if (round % 2 == 0) {
                first.revoke(RevokeFlag.DEFAULT);
                assertLost(asked.join(), " was revoked");
            } else {
                first.abort();
                assertLost(asked.join(), " ended");
            }
            end();
            create();
        }
    }

    /** Work that was done before, although nobody asked. */
    @Test
    void workThatWasDoneStaysDone() {
        try (CudaStream other = CudaStream.nonBlocking(Device.host())) {
            Group.run(() -> {
                allReduce();
                ranks.get(1).allReduce(number, ReduceOp.SUM, other);
            });
            Work work = first.work(stream);
            stream.synchronize();
            first.revoke(RevokeFlag.DEFAULT);
            assertTrue(work.isDone());
            work.await();
        }
    }

    @Test
    void aRefusedRevocationStopsNothing() {
        nccl.ncclCommRevoke(first.core().handle(), RevokeFlag.DEFAULT.code());
        assertThrows(NcclUsageException.class, () -> first.revoke(RevokeFlag.DEFAULT));
        assertEquals(Communicator.State.OPEN, first.state());
        assertFalse(first.core().isStopped());
    }

    /** The watchdog ended a call because of a lost rank, but NCCL returned success from it. */
    @Test
    void workOfACallThatWasEndedFailsAsTheCallWould() {
        Work work = pending();
        first.core().failures().endCall(Reason.RANK_LOST);
        assertEquals(Communicator.State.REVOKED, first.state());
        NcclRemoteException failure = assertThrows(NcclRemoteException.class, work::await);
        assertTrue(failure.getMessage().startsWith(WORK + " failed at rank 0"), failure.getMessage());
        assertThrows(NcclRemoteException.class, work::isDone);
        assertRevoked();
    }

    @Test
    void theNextCallFailsAsTheCallThatWasEnded() {
        allReduce();
        first.core().failures().endCall(Reason.RANK_LOST);
        NcclRemoteException failure = assertThrows(NcclRemoteException.class, this::allReduce);
        assertTrue(failure.getMessage().startsWith(WORK + " failed at rank 0"), failure.getMessage());
        assertRevoked();
    }

    @Test
    void theNextUseFailsAsTheCallThatWasEnded() {
        allReduce();
        first.core().failures().endCall(Reason.RANK_LOST);
        assertThrows(NcclRemoteException.class, first::stream);
        assertRevoked();
    }

    @Test
    void theNextGroupFailsAsTheCallThatWasEnded() {
        allReduce();
        first.core().failures().endCall(Reason.LATE);
        NcclTimeoutException failure = assertThrows(NcclTimeoutException.class, () -> Group.run(this::allReduce));
        assertTrue(failure.getMessage().contains(WORK), failure.getMessage());
        assertRevoked();
    }

    /** The failure was thrown, so that later uses are misuses. */
    private void assertRevoked() {
        IllegalStateException refused = assertThrows(IllegalStateException.class, this::allReduce);
        assertTrue(refused.getMessage().contains("was revoked"), refused.getMessage());
        assertSame(first.failure().orElse(null), refused.getCause());
    }
}

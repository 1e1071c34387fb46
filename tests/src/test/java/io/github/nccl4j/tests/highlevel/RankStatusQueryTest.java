package io.github.nccl4j.tests.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.NcclTimeoutException;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.launch.TcpStore;
import io.github.nccl4j.tests.launch.Job;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A deadline's exception names the ranks that did not answer, and the operations of the others. */
@Timeout(value = 10, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class RankStatusQueryTest {
    private static final Duration DEADLINE = Duration.ofSeconds(2);

    private final Job job = new Job();
    private List<TcpStore> stores;

    @AfterEach
    void end() {
        job.close();
    }

    /** Does something as the last rank. */
    private interface Last {
        void run(Communicator communicator, TcpStore store) throws Exception;
    }

    /** Waits for other ranks in vain. */
    private interface Call {
        void run(Communicator communicator, DeviceBuffer<Int32> number, CudaStream stream) throws Exception;
    }

    /** What ranks get that reduce in vain, because the last one does something else. */
    private List<NcclTimeoutException> whileTheLast(int size, Last last) throws Exception {
        return whileTheLast(size, last, (communicator, number, stream) -> {
            communicator.allReduce(number, ReduceOp.SUM, stream);
            communicator.work(stream).await();
        });
    }

    private List<NcclTimeoutException> whileTheLast(int size, Last last, Call call) throws Exception {
        CountDownLatch over = new CountDownLatch(size);
        List<CompletableFuture<NcclTimeoutException>> ranks = new ArrayList<>();
        stores = job.openAll(size);
        for (TcpStore store : stores) {
            ranks.add(job.start(() -> call(store, size, last, call, over)));
        }
        List<NcclTimeoutException> all = new ArrayList<>();
        for (CompletableFuture<NcclTimeoutException> rank : ranks) {
            all.add(rank.get());
        }
        return all.subList(0, size - 1);
    }

    private static NcclTimeoutException call(TcpStore store, int size, Last last, Call call, CountDownLatch over)
            throws Exception {
        try (CudaStream stream = CudaStream.nonBlocking(Device.host());
                DeviceBuffer<Int32> number = Device.host().allocateForWindow(ElementType.INT32, 1)) {
            Communicator communicator = Communicator.builder()
                    .device(Device.host())
                    .deadline(DEADLINE)
                    .create(store.scope("all"));
            try {
                if (communicator.rank() == size - 1) {
                    last.run(communicator, store);
                    return null;
                }
                return assertThrows(NcclTimeoutException.class, () -> call.run(communicator, number, stream));
            } finally {
                // A rank that ends earlier would be reported to the others.
                over.countDown();
                over.await();
                communicator.abort();
            }
        }
    }

    @Test
    void namesRankThatDoesNotAnswer() throws Exception {
        for (NcclTimeoutException late : whileTheLast(4, (communicator, store) -> store.close())) {
            assertEquals(List.of(3), late.silentRanks(), late.getMessage());
            assertTrue(
                    late.getMessage()
                            .startsWith("Timed out after 2 s in ncclAllReduce of 1 int32 (operation 1) at rank "),
                    late.getMessage());
            assertTrue(late.getMessage().contains(". No answer from rank 3. ["), late.getMessage());
        }
    }

    @Test
    void reportsStatusOfOtherRanks() throws Exception {
        for (NcclTimeoutException late : whileTheLast(3, (communicator, store) -> {})) {
            assertEquals(List.of(), late.silentRanks(), late.getMessage());
            assertNames(late, "has not called operation 1");
        }
    }

    private static void assertNames(NcclTimeoutException late, String predicate) {
        assertTrue(
                late.getMessage().matches("(?s)[^.]*\\. Rank 2 \\([^ ]+, process \\d+\\) " + predicate + "\\. \\[.*"),
                late.getMessage());
    }

    /** A rank that has not made a call that is no operation is named, and no rank that is in the call. */
    @Test
    void reportsRankThatHasNotMadeACall() throws Exception {
        for (NcclTimeoutException late : whileTheLast(
                3, (communicator, store) -> {}, (communicator, number, stream) -> communicator.split(0, 0))) {
            assertNames(late, "has not called ncclCommSplit");
        }
    }

    @Test
    void reportsRankThatHasNotRegisteredAWindow() throws Exception {
        Call register = (communicator, number, stream) -> {
            communicator.allReduce(number, ReduceOp.SUM, stream);
            communicator.work(stream).await();
            communicator.registerWindow(number);
        };
        Last reduces = (communicator, store) -> {
            try (CudaStream stream = CudaStream.nonBlocking(Device.host());
                    DeviceBuffer<Int32> number = Device.host().allocate(ElementType.INT32, 1)) {
                communicator.allReduce(number, ReduceOp.SUM, stream);
                communicator.work(stream).await();
            }
        };
        for (NcclTimeoutException late : whileTheLast(3, reduces, register)) {
            assertNames(late, "has finished operation 1 and has not called ncclCommWindowRegister");
        }
    }

    @Test
    void reportsRankThatHasNotMadeACallInAGroup() throws Exception {
        Call register = (communicator, number, stream) -> Group.run(() -> communicator.registerWindow(number));
        for (NcclTimeoutException late : whileTheLast(3, (communicator, store) -> {}, register)) {
            assertNames(late, "has not called ncclCommWindowRegister");
        }
    }

    @Test
    void namesOperationsOfOtherCommunicatorsInTheStream() throws Exception {
        List<Communicator> others = Collections.synchronizedList(new ArrayList<>());
        Call first = (communicator, number, stream) -> {
            Communicator other = communicator.split(0, communicator.rank());
            others.add(other);
            communicator.allReduce(number, ReduceOp.SUM, stream);
            other.allReduce(number, ReduceOp.SUM, stream);
            communicator.work(stream).await();
        };
        Last second = (communicator, store) -> {
            CudaStream stream = communicator.stream();
            DeviceBuffer<Int32> number = Device.host().allocate(ElementType.INT32, 1);
            Communicator other = communicator.split(0, communicator.rank());
            others.add(other);
            other.allReduce(number, ReduceOp.SUM, stream);
            communicator.allReduce(number, ReduceOp.SUM, stream);
        };
        List<NcclTimeoutException> late = whileTheLast(2, second, first);
        others.forEach(Communicator::abort);
        for (NcclTimeoutException one : late) {
            assertTrue(
                    one.getMessage()
                            .matches(
                                    "(?s).*\nIn the same stream, not observed as done: ncclAllReduce of 1 int32 \\(operation 1\\)"
                                            + " of communicator [0-9a-f.]+\\. Operations of several communicators in one stream .*"),
                    one.getMessage());
        }
    }

    @Test
    void withoutStoreNoRankIsAsked() throws Exception {
        for (NcclTimeoutException late :
                whileTheLast(2, (communicator, store) -> stores.get(0).close())) {
            assertEquals(List.of(), late.silentRanks());
            assertFalse(late.getMessage().contains("answer"), late.getMessage());
        }
    }
}

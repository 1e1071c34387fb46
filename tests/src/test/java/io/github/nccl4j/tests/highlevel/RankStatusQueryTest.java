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
import io.github.nccl4j.highlevel.NcclTimeoutException;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.launch.TcpStore;
import io.github.nccl4j.tests.launch.Job;
import java.time.Duration;
import java.util.ArrayList;
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

    /** What ranks get that reduce in vain, because the last one does something else. */
    private List<NcclTimeoutException> whileTheLast(int size, Last last) throws Exception {
        CountDownLatch over = new CountDownLatch(size);
        List<CompletableFuture<NcclTimeoutException>> ranks = new ArrayList<>();
        stores = job.openAll(size);
        for (TcpStore store : stores) {
            ranks.add(job.start(() -> reduce(store, size, last, over)));
        }
        List<NcclTimeoutException> all = new ArrayList<>();
        for (CompletableFuture<NcclTimeoutException> rank : ranks) {
            all.add(rank.get());
        }
        return all.subList(0, size - 1);
    }

    private static NcclTimeoutException reduce(TcpStore store, int size, Last last, CountDownLatch over)
            throws Exception {
        try (CudaStream stream = CudaStream.nonBlocking(Device.host());
                DeviceBuffer<Int32> number = Device.host().allocate(ElementType.INT32, 1)) {
            Communicator communicator = Communicator.builder()
                    .device(Device.host())
                    .deadline(DEADLINE)
                    .create(store.scope("all"));
            try {
                if (communicator.rank() == size - 1) {
                    last.run(communicator, store);
                    return null;
                }
                communicator.allReduce(number, ReduceOp.SUM, stream);
                return assertThrows(
                        NcclTimeoutException.class,
                        () -> communicator.work(stream).await());
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
                    late.getMessage().startsWith("ncclAllReduce of 1 int32 (operation 1) was not done after PT2S"),
                    late.getMessage());
            assertTrue(late.getMessage().contains("\nNo answer from rank 3\n"), late.getMessage());
        }
    }

    @Test
    void reportsStatusOfOtherRanks() throws Exception {
        for (NcclTimeoutException late : whileTheLast(3, (communicator, store) -> {})) {
            assertEquals(List.of(), late.silentRanks(), late.getMessage());
            assertTrue(
                    late.getMessage().contains("\nAll ranks answered; rank 2 has called no operation\n"),
                    late.getMessage());
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

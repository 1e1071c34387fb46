package io.github.nccl4j.tests.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.testing.Ports;
import io.github.nccl4j.tests.ChildJvm;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Ranks whose shutdown hooks close their communicators, while another hook ends the store of rank 0. */
@Timeout(300)
class ExitHookTest {
    /** A rank, the second of which closes its communicator later. */
    static final class ClosingRank {
        private ClosingRank() {}

        public static void main(String[] args) {
            Communicator communicator = Communicator.builder().fromEnvironment();
            Runtime.getRuntime().addShutdownHook(new Thread(() -> close(communicator)));
            try (DeviceBuffer<Int32> numbers = communicator.device().allocate(ElementType.INT32, 1)) {
                communicator.allReduce(numbers, ReduceOp.SUM, CudaStream.defaultOf(communicator.device()));
            }
        }

        private static void close(Communicator communicator) {
            try {
                // The hook that ends the store of rank 0 begins first.
                Thread.sleep(communicator.rank() == 0 ? 200 : 500);
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
            communicator.close();
            System.out.println("closed");
        }
    }

    @Test
    void nobodyIsLostIfHooksCloseTheCommunicators() {
        int port = Ports.free();
        List<ChildJvm.Running> ranks = new ArrayList<>();
        for (int rank = 0; rank < 2; rank++) {
            ranks.add(new ChildJvm()
                    .property("nccl4j.engine", "host")
                    .environment("RANK", "" + rank)
                    .environment("WORLD_SIZE", "2")
                    .environment("MASTER_ADDR", "127.0.0.1")
                    .environment("MASTER_PORT", "" + port)
                    .start(ClosingRank.class));
        }
        for (ChildJvm.Running rank : ranks) {
            ChildJvm.Outcome outcome = rank.await();
            assertEquals("closed\n", outcome.output());
            assertEquals(0, outcome.exitCode());
        }
    }
}

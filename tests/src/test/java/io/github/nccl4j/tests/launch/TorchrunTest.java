package io.github.nccl4j.tests.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.TcpStore;
import io.github.nccl4j.testing.Ports;
import io.github.nccl4j.tests.ChildJvm;
import io.github.nccl4j.tests.ChildJvm.Outcome;
import io.github.nccl4j.tools.support.Programs;
import java.nio.file.Path;
import java.time.Duration;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Ranks that torchrun itself starts, and starts again. */
@Timeout(600)
class TorchrunTest {
    private static final int RANKS = 2;
    private static final int FAILURE = 5;

    @TempDir
    Path logs;

    /** Before each test, not before all: the report of a class that is skipped as a whole names no tests. */
    @BeforeEach
    void requireTorchrun() {
        Programs.require("torchrun", "python3-torch");
    }

    /** A rank that sums the ranks. In the attempts before a given one, the rank with the number of the attempt fails after that. */
    public static final class OneRank {
        private static final Duration DEADLINE = Duration.ofSeconds(50);

        private OneRank() {}

        public static void main(String[] args) {
            RankInfo self = RankInfo.fromEnvironment();
            try (Communicator all = Communicator.builder().deadline(DEADLINE).fromEnvironment();
                    CudaStream stream = CudaStream.nonBlocking(all.device());
                    DeviceBuffer<Int32> number = all.device().allocate(ElementType.INT32, 1)) {
                number.fill(self.rank() + 1);
                all.allReduce(number, ReduceOp.SUM, stream);
                all.work(stream).await();
                int[] sum = new int[1];
                number.copyTo(sum);
                // One write, since the ranks share the output.
                System.out.print("attempt " + self.restart() + " of '" + self.job() + "': rank " + self.rank() + " of "
                        + self.worldSize() + ", local rank " + self.localRank() + ", by " + self.source() + ", sum "
                        + sum[0] + "\n");
                System.out.flush();
                TcpStore.ofProcess(self, DEADLINE).barrier("printed", DEADLINE);
                if (self.restart() < Integer.parseInt(args[0]) && self.rank() == self.restart()) {
                    Runtime.getRuntime().halt(FAILURE);
                }
                // The others wait for it.
                all.allReduce(number, ReduceOp.SUM, stream);
                all.work(stream).await();
            }
        }
    }

    private Outcome torchrun(int restarts, int failures) {
        return new ChildJvm()
                .property("nccl4j.engine", "host")
                .limit(Duration.ofMinutes(3))
                .by(
                        "torchrun",
                        "--no_python",
                        "--nproc_per_node=" + RANKS,
                        "--max_restarts=" + restarts,
                        "--monitor_interval=0.2",
                        "--rdzv_id=the job",
                        // For a rank that does not exist. Without these, PyTorch 1.13 fails with Python 3.11.
                        "--redirects=" + RANKS + ":3",
                        "--tee=" + RANKS + ":3",
                        "--log_dir=" + logs,
                        "--master_addr=127.0.0.1",
                        "--master_port=" + Ports.free())
                .run(OneRank.class, "" + failures);
    }

    private static void assertAttempt(int attempt, Outcome outcome) {
        for (int rank = 0; rank < RANKS; rank++) {
            String line = "attempt " + attempt + " of 'the job': rank " + rank + " of " + RANKS + ", local rank " + rank
                    + ", by torchrun, sum 3\n";
            assertTrue(outcome.output().contains(line), line + outcome.output());
        }
    }

    /** Rank 0, which keeps the store, fails first, and then rank 1. torchrun starts both ranks again each time. */
    @Test
    void restartsAreTheNextAttempts() {
        Outcome outcome = torchrun(2, 2);
        assertEquals(0, outcome.exitCode(), outcome.output());
        for (int attempt = 0; attempt <= 2; attempt++) {
            assertAttempt(attempt, outcome);
        }
    }

    @Test
    void failureAfterTheLastRestartEndsTheRun() {
        Outcome outcome = torchrun(0, 1);
        assertNotEquals(0, outcome.exitCode(), outcome.output());
        assertAttempt(0, outcome);
        assertTrue(outcome.output().matches("(?s).*exitcode *: " + FAILURE + "\\b.*"), outcome.output());
    }
}

package io.github.nccl4j.tests.conformance;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaGraph;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.tests.highlevel.Checks;
import java.time.Duration;

/** Collectives of one rank that are captured in a graph; for communicators that block, on GPUs. */
final class GraphSuite {
    private static final Duration SOON = Duration.ofSeconds(120);

    private final Checks checks = new Checks();
    private final Crew crew;
    private final Member self;
    private final Communicator communicator;

    GraphSuite(Crew crew) {
        this.crew = crew;
        self = crew.members().get(0);
        communicator = self.communicator;
    }

    void run() {
        if (!self.isOnHost() && communicator.isBlocking()) {
            crew.checkWith("ncclCommInitRank", "graphs", this::launchedWithNewNumbers);
        }
    }

    private void launchedWithNewNumbers() {
        int size = self.size();
        int rank = self.rank();
        DeviceBuffer<Int32> number = self.number(rank);
        try (CudaGraph graph =
                CudaGraph.capture(self.stream, () -> communicator.allReduce(number, ReduceOp.SUM, self.stream))) {
            checks.equal(rank, Member.valueOf(number), "captured, not run");
            for (int step = 0; step < 5; step++) {
                number.fill((long) (step + rank));
                graph.launch(self.stream);
                self.stream.synchronize(SOON);
                checks.equal(size * step + size * (size - 1) / 2, Member.valueOf(number), "sum of step " + step);
            }
        }
        checks.equal(size, self.sum(communicator, 1), "sum without a graph");
    }
}

package io.github.nccl4j.tools.conformance;

import io.github.nccl4j.highlevel.CollectiveConfig;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaEvent;
import io.github.nccl4j.highlevel.CudaGraph;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.tools.support.Checks;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/** Collectives of one rank that are captured in a graph; for communicators that block. */
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
        if (communicator.isBlocking()) {
            crew.checkWith(
                    "ncclCommInitRank",
                    "graphs",
                    () -> launchedWithNewNumbers(number -> communicator.allReduce(number, ReduceOp.SUM, self.stream)));
            for (Tuning tuning : Tuning.values()) {
                asConfigured("graphs as configured: " + tuning, tuning);
            }
            everyOperation();
        }
    }

    /** By itself and in a group, with types and operators in turn. VCCL's all-to-all-v can't be captured. */
    private void everyOperation() {
        long seed = 0;
        for (int count : new int[] {0, 1, 7, 1025}) {
            List<Case> cases = new ArrayList<>();
            for (Operation operation : Operation.values()) {
                if (!operation.goesInGroups() || operation.name().startsWith("ALL_TO_ALL_V")) {
                    continue;
                }
                for (Form form : operation.forms()) {
                    seed++;
                    List<ElementType<?>> types = ElementType.values();
                    Operator[] operators = Operator.values();
                    Case one = new Case(
                            operation,
                            new Case.Elements(
                                    types.get((int) (seed % types.size())),
                                    operation.reduces() ? operators[(int) (seed % operators.length)] : null,
                                    count),
                            form,
                            (int) (seed % self.size()),
                            seed,
                            null);
                    crew.check(
                            "captured operations",
                            one.toString(),
                            member -> new CapturedTrial(DataTrial.of(one, member), member.stream));
                    cases.add(one);
                }
            }
            crew.check(
                    "a captured group",
                    cases.toString(),
                    member -> new CapturedTrial(
                            new GroupTrial(cases.stream()
                                    .map(one -> DataTrial.of(one, member))
                                    .toList()),
                            member.stream));
        }
    }

    private void asConfigured(String subject, Tuning tuning) {
        String problem = tuning.problem(self);
        if (problem != null) {
            crew.skip(subject, problem);
            return;
        }
        crew.checkWith("ncclAllReduceConfig", subject, () -> {
            try (CudaEvent event = tuning.hasEvent() ? CudaEvent.create(self.device()) : null) {
                CollectiveConfig config = tuning.make(event);
                launchedWithNewNumbers(
                        number -> communicator.allReduce(number, number, ReduceOp.SUM, self.stream, config));
            }
        });
    }

    private void launchedWithNewNumbers(Consumer<DeviceBuffer<Int32>> call) {
        int size = self.size();
        int rank = self.rank();
        DeviceBuffer<Int32> number = self.number(rank);
        try (CudaGraph graph = CudaGraph.capture(self.stream, () -> call.accept(number))) {
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

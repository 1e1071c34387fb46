package io.github.nccl4j.tools.conformance;

import io.github.nccl4j.highlevel.CudaGraph;
import io.github.nccl4j.highlevel.CudaStream;

/** A trial whose operations are captured in a graph, which is launched once. */
final class CapturedTrial implements Trial {
    private final Trial trial;
    private final CudaStream stream;
    private CudaGraph graph;

    CapturedTrial(Trial trial, CudaStream stream) {
        this.trial = trial;
        this.stream = stream;
    }

    @Override
    public void prepare() {
        trial.prepare();
    }

    @Override
    public void call() {
        graph = CudaGraph.capture(stream, trial::call);
        graph.launch(stream);
    }

    @Override
    public void verify() {
        trial.verify();
    }

    @Override
    public void close() {
        if (graph != null) {
            graph.close();
        }
        trial.close();
    }
}

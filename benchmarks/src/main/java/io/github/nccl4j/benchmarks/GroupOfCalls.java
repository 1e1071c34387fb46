package io.github.nccl4j.benchmarks;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.ReduceOp;
import java.util.concurrent.TimeUnit;
import org.bytedeco.cuda.cudart.CUstream_st;
import org.bytedeco.javacpp.FloatPointer;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/** Several calls of {@code ncclAllReduce} in a group, each as in {@link AllReduceCall}. For JMH, which runs one thread. */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class GroupOfCalls {
    /** For JMH. */
    public GroupOfCalls() {}

    /** The arguments of all ways. */
    @State(Scope.Thread)
    public static class Arguments {
        /** The number of calls in the group. */
        @Param({"1", "16", "256", "1024"})
        public int calls;

        private final Target target = Target.get();
        private final long send = target.send.address();
        private final long receive = target.receive.address();
        private final long comm = target.comm();
        private final long stream = target.stream.nativeHandle();

        /** For JMH. */
        public Arguments() {}
    }

    /** Arguments as objects of JavaCPP Presets CUDA. */
    @State(Scope.Thread)
    public static class PresetsArguments {
        private final FloatPointer send;
        private final FloatPointer receive;
        private final org.bytedeco.cuda.nccl.ncclComm comm;
        private final CUstream_st stream;

        /** For JMH. */
        public PresetsArguments() {
            Target target = Target.get();
            send = new FloatPointer(Target.at(target.send.address()));
            receive = new FloatPointer(Target.at(target.receive.address()));
            comm = new org.bytedeco.cuda.nccl.ncclComm(Target.at(target.comm()));
            stream = new CUstream_st(Target.at(target.stream.nativeHandle()));
        }

        /** Makes the first call. */
        @Setup
        public void check() {
            Target.checkReached(org.bytedeco.cuda.global.nccl.ncclAllReduce(
                    send, receive, 1, nccl.ncclFloat, nccl.ncclAvg, comm, stream));
        }
    }

    /**
     * The raw-address form of the bindings.
     *
     * @param a the arguments
     * @return the results
     */
    @Benchmark
    @Way(value = "nccl4j, addresses", alsoWithoutBarrier = true)
    public int addresses(Arguments a) {
        int result = nccl.ncclGroupStart();
        for (int i = 0; i < a.calls; i++) {
            result |= nccl.ncclAllReduce(a.send, a.receive, 1, nccl.ncclFloat, nccl.ncclSum, a.comm, a.stream);
        }
        return result | nccl.ncclGroupEnd();
    }

    /**
     * The calls of most programs, with all checks.
     *
     * @param a the arguments
     */
    @Benchmark
    @Way(value = "nccl4j highlevel, buffers", alsoWithoutBarrier = true)
    public void highlevel(Arguments a) {
        Target target = a.target;
        try (Group group = Group.open()) {
            for (int i = 0; i < a.calls; i++) {
                target.communicator.allReduce(target.send, target.receive, ReduceOp.SUM, target.stream);
            }
            group.launch();
        }
    }

    /**
     * JavaCPP Presets CUDA.
     *
     * @param a the number of calls
     * @param p the arguments
     * @return the results
     */
    @Benchmark
    @Way(AllReduceCall.PRESETS)
    public int presets(Arguments a, PresetsArguments p) {
        int result = org.bytedeco.cuda.global.nccl.ncclGroupStart();
        for (int i = 0; i < a.calls; i++) {
            result |= org.bytedeco.cuda.global.nccl.ncclAllReduce(
                    p.send, p.receive, 1, nccl.ncclFloat, nccl.ncclSum, p.comm, p.stream);
        }
        return result | org.bytedeco.cuda.global.nccl.ncclGroupEnd();
    }
}

package io.github.nccl4j.benchmarks;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.CollectiveConfig;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.DataType;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.NcclResultException;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.library.NativeLibrary;
import io.github.nccl4j.nccl.ncclComm;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.bytedeco.cuda.cudart.CUstream_st;
import org.bytedeco.javacpp.FloatPointer;
import org.bytedeco.javacpp.Pointer;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/**
 * One call of {@code ncclAllReduce} with its seven arguments, on a {@link Target}. Each method is one way to make the
 * call; its state makes a first call, whose result shows that the call reached the library.
 *
 * <p>For JMH, which runs one thread.
 */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class AllReduceCall {
    /** The name of a way with which the others are also compared. */
    static final String PRESETS = "JavaCPP Presets CUDA, FloatPointer";

    private static final long COUNT = 1;

    /** The position of a pointer that does not begin at its element 0. */
    private static final long POSITION = 3;

    /** For JMH. */
    public AllReduceCall() {}

    /** The arguments as addresses. */
    @State(Scope.Thread)
    public static class Addresses {
        private final long send = Target.get().send.address();
        private final long receive = Target.get().receive.address();
        private final long comm = Target.get().comm();
        private final long stream = Target.get().stream.nativeHandle();

        /** For JMH. */
        public Addresses() {}

        /** Makes the first call. */
        @Setup
        public void check() {
            Target.checkReached(nccl.ncclAllReduce(send, receive, COUNT, nccl.ncclFloat, nccl.ncclAvg, comm, stream));
        }
    }

    /** The arguments as objects of the bindings. */
    @State(Scope.Thread)
    public static class Pointers {
        private final FloatPointer send =
                new FloatPointer(Target.at(Target.get().send.address()));
        private final FloatPointer receive =
                new FloatPointer(Target.at(Target.get().receive.address()));
        private final FloatPointer sendPart =
                new FloatPointer(Target.at(Target.get().send.address() - POSITION * Float.BYTES)).position(POSITION);
        private final FloatPointer receivePart =
                new FloatPointer(Target.at(Target.get().receive.address() - POSITION * Float.BYTES)).position(POSITION);
        private final Pointer plainSend = new Pointer(send);
        private final Pointer plainReceive = new Pointer(receive);
        private final ncclComm comm = new ncclComm(Target.at(Target.get().comm()));
        private final CUstream_st stream =
                new CUstream_st(Target.at(Target.get().stream.nativeHandle()));

        /** For JMH. */
        public Pointers() {}

        /** Makes the first call. */
        @Setup
        public void check() {
            Target.checkReached(nccl.ncclAllReduce(send, receive, COUNT, nccl.ncclFloat, nccl.ncclAvg, comm, stream));
        }
    }

    /** The arguments as objects of highlevel. */
    @State(Scope.Thread)
    public static class HighlevelObjects {
        private final DeviceBuffer<Float32> send = Target.get().send;
        private final DeviceBuffer<Float32> receive = Target.get().receive;
        private final Communicator communicator = Target.get().communicator;
        private final CudaStream stream = Target.get().stream;
        private final long sendAddress = send.address();
        private final long receiveAddress = receive.address();

        /** For JMH. */
        public HighlevelObjects() {}

        /** Makes the first call, with an operator whose value the stub library returns as an error. */
        @Setup
        public void check() {
            int reached = 0;
            try {
                communicator.allReduce(send, receive, ReduceOp.AVG, stream);
            } catch (NcclResultException e) {
                reached = e.result().code();
            }
            Target.checkReached(reached);
        }
    }

    /** The arguments of highlevel, with a configuration: needs NCCL 2.31.2 or newer. */
    @State(Scope.Thread)
    public static class ConfiguredObjects {
        private final DeviceBuffer<Float32> send = Target.get().send;
        private final DeviceBuffer<Float32> receive = Target.get().receive;
        private final Communicator communicator = Target.get().communicator;
        private final CudaStream stream = Target.get().stream;
        private final CollectiveConfig config =
                CollectiveConfig.builder().profilerTag(1).build();

        /** For JMH. */
        public ConfiguredObjects() {}

        /** Makes the first call. */
        @Setup
        public void check() {
            int reached = 0;
            try {
                communicator.allReduce(send, receive, ReduceOp.AVG, stream, config);
            } catch (NcclResultException e) {
                reached = e.result().code();
            }
            Target.checkReached(reached);
        }
    }

    /** The arguments as objects of JavaCPP Presets CUDA. */
    @State(Scope.Thread)
    public static class PresetsPointers {
        private final FloatPointer send =
                new FloatPointer(Target.at(Target.get().send.address()));
        private final FloatPointer receive =
                new FloatPointer(Target.at(Target.get().receive.address()));
        private final org.bytedeco.cuda.nccl.ncclComm comm =
                new org.bytedeco.cuda.nccl.ncclComm(Target.at(Target.get().comm()));
        private final CUstream_st stream =
                new CUstream_st(Target.at(Target.get().stream.nativeHandle()));

        /** For JMH. */
        public PresetsPointers() {}

        /** Makes the first call. */
        @Setup
        public void check() {
            Target.checkReached(org.bytedeco.cuda.global.nccl.ncclAllReduce(
                    send, receive, COUNT, nccl.ncclFloat, nccl.ncclAvg, comm, stream));
        }
    }

    /** The arguments as addresses, and the method handle that takes them. */
    @State(Scope.Thread)
    public static class ForeignAddresses {
        private static final MethodHandle ALL_REDUCE = ForeignFunction.allReduce(Path.of(NativeLibrary.path()));

        private final long send = Target.get().send.address();
        private final long receive = Target.get().receive.address();
        private final long comm = Target.get().comm();
        private final long stream = Target.get().stream.nativeHandle();

        /** For JMH. */
        public ForeignAddresses() {}

        /**
         * Makes the first call.
         *
         * @throws Throwable never
         */
        @Setup
        public void check() throws Throwable {
            Target.checkReached(
                    (int) ALL_REDUCE.invokeExact(send, receive, COUNT, nccl.ncclFloat, nccl.ncclAvg, comm, stream));
        }
    }

    /**
     * The raw-address form of the bindings.
     *
     * @param a the arguments
     * @return the result
     */
    @Benchmark
    @Way(value = "nccl4j, addresses", alsoWithoutBarrier = true)
    public int addresses(Addresses a) {
        return nccl.ncclAllReduce(a.send, a.receive, COUNT, nccl.ncclFloat, nccl.ncclSum, a.comm, a.stream);
    }

    /**
     * The call of most programs, with all checks.
     *
     * @param a the arguments
     */
    @Benchmark
    @Way(value = "nccl4j highlevel, buffers", alsoWithoutBarrier = true)
    public void highlevel(HighlevelObjects a) {
        a.communicator.allReduce(a.send, a.receive, ReduceOp.SUM, a.stream);
    }

    /**
     * The call of buffers, in place.
     *
     * @param a the arguments
     */
    @Benchmark
    @Way(value = "nccl4j highlevel, a buffer in place", alsoWithoutBarrier = true)
    public void highlevelInPlace(HighlevelObjects a) {
        a.communicator.allReduce(a.send, ReduceOp.SUM, a.stream);
    }

    /**
     * The operations of highlevel on plain addresses.
     *
     * @param a the arguments
     */
    @Benchmark
    @Way(value = "nccl4j highlevel, addresses", alsoWithoutBarrier = true)
    public void highlevelAddresses(HighlevelObjects a) {
        a.communicator
                .onAddresses()
                .allReduce(a.sendAddress, a.receiveAddress, COUNT, DataType.FLOAT32, ReduceOp.SUM, a.stream);
    }

    /**
     * The call of buffers, with a configuration.
     *
     * @param a the arguments
     */
    @Benchmark
    @Way("nccl4j highlevel, buffers, as configured")
    public void highlevelConfigured(ConfiguredObjects a) {
        a.communicator.allReduce(a.send, a.receive, ReduceOp.SUM, a.stream, a.config);
    }

    /**
     * The Pointer form, with a pointer that has no element type.
     *
     * @param a the arguments
     * @return the result
     */
    @Benchmark
    @Way("nccl4j, Pointer")
    public int plainPointers(Pointers a) {
        return nccl.ncclAllReduce(a.plainSend, a.plainReceive, COUNT, nccl.ncclFloat, nccl.ncclSum, a.comm, a.stream);
    }

    /**
     * The Pointer form, as programs use it.
     *
     * @param a the arguments
     * @return the result
     */
    @Benchmark
    @Way("nccl4j, FloatPointer")
    public int pointers(Pointers a) {
        return nccl.ncclAllReduce(a.send, a.receive, COUNT, nccl.ncclFloat, nccl.ncclSum, a.comm, a.stream);
    }

    /**
     * The Pointer form, at a position: the address depends on the size of an element.
     *
     * @param a the arguments
     * @return the result
     */
    @Benchmark
    @Way("nccl4j, FloatPointer at a position")
    public int pointersAtPosition(Pointers a) {
        return nccl.ncclAllReduce(a.sendPart, a.receivePart, COUNT, nccl.ncclFloat, nccl.ncclSum, a.comm, a.stream);
    }

    /**
     * JavaCPP Presets CUDA.
     *
     * @param a the arguments
     * @return the result
     */
    @Benchmark
    @Way(PRESETS)
    public int presets(PresetsPointers a) {
        return org.bytedeco.cuda.global.nccl.ncclAllReduce(
                a.send, a.receive, COUNT, nccl.ncclFloat, nccl.ncclSum, a.comm, a.stream);
    }

    /**
     * The foreign function API of Java, without bindings.
     *
     * @param a the arguments
     * @return the result
     * @throws Throwable never
     */
    @Benchmark
    @Way(value = "java.lang.foreign, addresses", since = 22)
    public int foreign(ForeignAddresses a) throws Throwable {
        return (int) ForeignAddresses.ALL_REDUCE.invokeExact(
                a.send, a.receive, COUNT, nccl.ncclFloat, nccl.ncclSum, a.comm, a.stream);
    }
}

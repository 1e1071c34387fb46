package io.github.nccl4j.benchmarks;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.DataType;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.NcclResultException;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.nccl.ncclComm;
import java.lang.invoke.MethodHandle;
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
 * One call of {@code ncclAllReduce} with its seven arguments, into a library that does nothing. Each method is one way;
 * its state makes a first call whose result shows that it reached that library.
 *
 * <p>For JMH, which runs one thread.
 */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class AllReduceCall {
    /** The name of the way that others are compared with, too. */
    static final String PRESETS = "JavaCPP Presets CUDA, FloatPointer";

    private static final long COUNT = 1;

    /** For JMH. */
    public AllReduceCall() {}

    /** Addresses, none of which the library looks at. */
    @State(Scope.Thread)
    public static class Addresses {
        private final FloatPointer memory = new FloatPointer(4);
        private final long send = memory.address();
        private final long receive = send + Float.BYTES;
        private final long comm = send;
        private final long stream = send;

        /** For JMH. */
        public Addresses() {}

        /** Makes the first call. */
        @Setup
        public void check() {
            StubLibraries.checkReached(
                    nccl.ncclAllReduce(send, receive, COUNT, nccl.ncclFloat, nccl.ncclAvg, comm, stream));
        }
    }

    /** The same as objects. */
    @State(Scope.Thread)
    public static class Pointers {
        private final FloatPointer send = new FloatPointer(4);
        private final FloatPointer receive = new FloatPointer(4);
        private final FloatPointer sendPart = new FloatPointer(send).position(3);
        private final FloatPointer receivePart = new FloatPointer(receive).position(3);
        private final Pointer plainSend = new Pointer(send);
        private final Pointer plainReceive = new Pointer(receive);
        private final ncclComm comm = new ncclComm(send);
        private final CUstream_st stream = new CUstream_st(send);

        /** For JMH. */
        public Pointers() {}

        /** Makes the first call. */
        @Setup
        public void check() {
            StubLibraries.checkReached(
                    nccl.ncclAllReduce(send, receive, COUNT, nccl.ncclFloat, nccl.ncclAvg, comm, stream));
        }
    }

    /** The same for highlevel: a communicator that it was given, and buffers on the one device. */
    @State(Scope.Thread)
    public static class HighlevelObjects {
        static {
            StubLibraries.load();
        }

        private final FloatPointer memory = new FloatPointer(4);
        private final Device device = Device.cuda(0);
        private final DeviceBuffer<Float32> send = DeviceBuffer.wrap(device, ElementType.FLOAT32, memory, COUNT);
        private final DeviceBuffer<Float32> receive =
                DeviceBuffer.wrap(device, ElementType.FLOAT32, memory.address() + Float.BYTES, COUNT);
        private final Communicator communicator = Communicator.wrap(memory.address(), device);
        private final CudaStream stream = CudaStream.wrap(device, memory.address());
        private final long sendAddress = send.address();
        private final long receiveAddress = receive.address();

        /** For JMH. */
        public HighlevelObjects() {}

        /** Makes the first call, with an operator that is an error as a result. */
        @Setup
        public void check() {
            int reached = 0;
            try {
                communicator.allReduce(send, receive, ReduceOp.AVG, stream);
            } catch (NcclResultException e) {
                reached = e.result().code();
            }
            StubLibraries.checkReached(reached);
        }
    }

    /** The same for JavaCPP Presets CUDA. */
    @State(Scope.Thread)
    public static class PresetsPointers {
        static {
            StubLibraries.load();
        }

        private final FloatPointer send = new FloatPointer(4);
        private final FloatPointer receive = new FloatPointer(4);
        private final org.bytedeco.cuda.nccl.ncclComm comm = new org.bytedeco.cuda.nccl.ncclComm(send);
        private final CUstream_st stream = new CUstream_st(send);

        /** For JMH. */
        public PresetsPointers() {}

        /** Makes the first call. */
        @Setup
        public void check() {
            StubLibraries.checkReached(org.bytedeco.cuda.global.nccl.ncclAllReduce(
                    send, receive, COUNT, nccl.ncclFloat, nccl.ncclAvg, comm, stream));
        }
    }

    /** Addresses once more, and the handle that takes them. */
    @State(Scope.Thread)
    public static class ForeignAddresses {
        private static final MethodHandle ALL_REDUCE = ForeignFunction.allReduce(StubLibraries.nccl());

        private final FloatPointer memory = new FloatPointer(4);
        private final long send = memory.address();
        private final long receive = send + Float.BYTES;
        private final long comm = send;
        private final long stream = send;

        /** For JMH. */
        public ForeignAddresses() {}

        /**
         * Makes the first call.
         *
         * @throws Throwable never
         */
        @Setup
        public void check() throws Throwable {
            StubLibraries.checkReached(
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
    @Way("nccl4j, addresses")
    public int addresses(Addresses a) {
        return nccl.ncclAllReduce(a.send, a.receive, COUNT, nccl.ncclFloat, nccl.ncclSum, a.comm, a.stream);
    }

    /**
     * What most programs call: with all checks.
     *
     * @param a the arguments
     */
    @Benchmark
    @Way("nccl4j highlevel, buffers")
    public void highlevel(HighlevelObjects a) {
        a.communicator.allReduce(a.send, a.receive, ReduceOp.SUM, a.stream);
    }

    /**
     * The same in place.
     *
     * @param a the arguments
     */
    @Benchmark
    @Way("nccl4j highlevel, a buffer in place")
    public void highlevelInPlace(HighlevelObjects a) {
        a.communicator.allReduce(a.send, ReduceOp.SUM, a.stream);
    }

    /**
     * The raw-address overload of highlevel.
     *
     * @param a the arguments
     */
    @Benchmark
    @Way("nccl4j highlevel, addresses")
    public void highlevelAddresses(HighlevelObjects a) {
        a.communicator.allReduce(a.sendAddress, a.receiveAddress, COUNT, DataType.FLOAT32, ReduceOp.SUM, a.stream);
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
     * The Pointer form, where the size of an element is needed.
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
     * The other bindings by JavaCPP.
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
     * Java's own way to C, without any bindings.
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

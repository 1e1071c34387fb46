package io.github.nccl4j.interop;

import com.microsoft.ml.lightgbm.SWIGTYPE_p_void;
import com.microsoft.ml.lightgbm.lightgbmlib;
import com.sun.jna.Callback;
import com.sun.jna.CallbackReference;
import com.sun.jna.Function;
import com.sun.jna.Pointer;
import io.github.nccl4j.highlevel.AddressOperations;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.DataType;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int8;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.Group;
import java.util.function.IntConsumer;

/** LightGBM's network over a communicator of host memory, for the thread that trains. */
final class LightGbmNetwork implements AutoCloseable {
    /** C's AllgatherFunction. */
    interface AllGather extends Callback {
        void invoke(Pointer in, int size, Pointer starts, Pointer sizes, int blocks, Pointer out, int all);
    }

    /** C's ReduceScatterFunction; the reducer is a pointer to a function pointer. */
    interface ReduceScatter extends Callback {
        void invoke(
                Pointer in,
                int all,
                int type,
                Pointer starts,
                Pointer sizes,
                int blocks,
                Pointer out,
                int size,
                Pointer reducer);
    }

    private static final class Address extends SWIGTYPE_p_void {
        Address(Callback callback) {
            super(Pointer.nativeValue(CallbackReference.getFunctionPointer(callback)), false);
        }
    }

    private final Communicator communicator;
    private final AddressOperations operations;
    private final CudaStream stream;
    private final int rank;
    // LightGBM keeps their addresses, so they must not be collected.
    private final AllGather allGather = this::allGather;
    private final ReduceScatter reduceScatter = this::reduceScatter;
    private DeviceBuffer<Int8> parts;

    LightGbmNetwork(Communicator communicator) {
        this.communicator = communicator;
        operations = communicator.onAddresses();
        stream = CudaStream.defaultOf(communicator.device());
        rank = communicator.rank();
        parts = communicator.device().allocate(ElementType.INT8, 1 << 20);
        lightgbmlib.LGBM_NetworkInitWithFunctions(
                communicator.size(), rank, new Address(reduceScatter), new Address(allGather));
    }

    private void allGather(Pointer in, int size, Pointer starts, Pointer sizes, int blocks, Pointer out, int all) {
        long own = starts.getInt(4L * rank);
        // Both may be one buffer.
        out.getByteBuffer(own, size).put(in.getByteBuffer(0, size));
        exchange(peer -> {
            operations.send(Pointer.nativeValue(out) + own, size, DataType.INT8, peer, stream);
            operations.recv(
                    Pointer.nativeValue(out) + starts.getInt(4L * peer),
                    sizes.getInt(4L * peer),
                    DataType.INT8,
                    peer,
                    stream);
        });
    }

    private void reduceScatter(
            Pointer in,
            int all,
            int type,
            Pointer starts,
            Pointer sizes,
            int blocks,
            Pointer out,
            int length,
            Pointer reducer) {
        int size = sizes.getInt(4L * rank);
        if (parts.length() < (long) size * blocks) {
            parts.close();
            parts = communicator.device().allocate(ElementType.INT8, (long) size * blocks);
        }
        Pointer part = new Pointer(parts.address());
        part.getByteBuffer((long) rank * size, size).put(in.getByteBuffer(starts.getInt(4L * rank), size));
        exchange(peer -> {
            operations.send(
                    Pointer.nativeValue(in) + starts.getInt(4L * peer),
                    sizes.getInt(4L * peer),
                    DataType.INT8,
                    peer,
                    stream);
            operations.recv(parts.address() + (long) peer * size, size, DataType.INT8, peer, stream);
        });
        // In the order of the ranks: the same sums in every run.
        Function reduce = Function.getFunction(reducer.getPointer(0));
        for (int peer = 1; peer < blocks; peer++) {
            reduce.invokeVoid(new Object[] {part.share((long) peer * size), part, type, size});
        }
        out.getByteBuffer(0, size).put(part.getByteBuffer(0, size));
    }

    /** Operations in the default stream of host memory are done when the group has been launched. */
    private void exchange(IntConsumer withPeer) {
        try {
            Group.run(() -> {
                for (int peer = 0; peer < communicator.size(); peer++) {
                    if (peer != rank) {
                        withPeer.accept(peer);
                    }
                }
            });
        } catch (RuntimeException failure) {
            // LightGBM would continue with wrong numbers.
            failure.printStackTrace();
            Runtime.getRuntime().halt(1);
        }
    }

    @Override
    public void close() {
        lightgbmlib.LGBM_NetworkFree();
        parts.close();
    }
}

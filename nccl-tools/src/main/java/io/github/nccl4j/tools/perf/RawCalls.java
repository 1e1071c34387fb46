package io.github.nccl4j.tools.perf;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Uint8;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.library.StructInitializers;
import io.github.nccl4j.nccl.ncclCollConfig_t;
import io.github.nccl4j.nccl.ncclComm;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.IntPointer;
import org.bytedeco.javacpp.Loader;

/** Calls of NCCL's functions with raw addresses, like those of a C program. */
final class RawCalls {
    private RawCalls() {}

    static Call of(Collective collective, Arguments a) {
        long comm = a.member().communicator.nativeHandle();
        long stream = a.member().stream.nativeHandle();
        long send = a.send();
        long recv = a.recv();
        long count = a.count();
        int type = a.type().nativeCode();
        int root = a.root();
        if (a.config() != null) {
            return asConfigured(collective, a, comm, stream);
        }
        return switch (collective) {
            case ALL_REDUCE ->
                reducing(a, comm, op -> nccl.ncclAllReduce(send, recv, count, type, op, comm, stream), "ncclAllReduce");
            case REDUCE ->
                reducing(a, comm, op -> nccl.ncclReduce(send, recv, count, type, op, root, comm, stream), "ncclReduce");
            case REDUCE_SCATTER ->
                reducing(
                        a,
                        comm,
                        op -> nccl.ncclReduceScatter(send, recv, count, type, op, comm, stream),
                        "ncclReduceScatter");
            case ALL_GATHER -> () -> check(nccl.ncclAllGather(send, recv, count, type, comm, stream), "ncclAllGather");
            case BROADCAST ->
                () -> check(nccl.ncclBroadcast(send, recv, count, type, root, comm, stream), "ncclBroadcast");
            case ALLTOALL -> allToAll(a, comm, stream);
            case GATHER -> gather(a, comm, stream);
            case SCATTER -> scatter(a, comm, stream);
            case ALLTOALLV -> allToAllv(a, comm, stream);
            case SENDRECV -> sendRecv(a, comm, stream);
            case HYPERCUBE -> hypercube(a, comm, stream);
        };
    }

    /** Of the collectives that have algorithms. */
    private static Call asConfigured(Collective collective, Arguments a, long comm, long stream) {
        long send = a.send();
        long recv = a.recv();
        long count = a.count();
        int type = a.type().nativeCode();
        int root = a.root();
        ncclCollConfig_t config = structOf(a.config().values().get("algSelection"));
        String function = collective.configFunction();
        // Each call asks for the address, which keeps the memory.
        return switch (collective) {
            case ALL_REDUCE ->
                reducing(
                        a,
                        comm,
                        op -> nccl.ncclAllReduceConfig(send, recv, count, type, op, comm, stream, config.address()),
                        function);
            case REDUCE ->
                reducing(
                        a,
                        comm,
                        op -> nccl.ncclReduceConfig(send, recv, count, type, op, root, comm, stream, config.address()),
                        function);
            case REDUCE_SCATTER ->
                reducing(
                        a,
                        comm,
                        op -> nccl.ncclReduceScatterConfig(send, recv, count, type, op, comm, stream, config.address()),
                        function);
            case ALL_GATHER ->
                () -> check(
                        nccl.ncclAllGatherConfig(send, recv, count, type, comm, stream, config.address()), function);
            case BROADCAST ->
                () -> check(
                        nccl.ncclBroadcastConfig(send, recv, count, type, root, comm, stream, config.address()),
                        function);
            default -> throw new IllegalArgumentException(collective + " has no algorithms: " + a.config());
        };
    }

    /** In one buffer, with the text behind the struct. */
    private static ncclCollConfig_t structOf(Object selection) {
        byte[] text = selection.toString().getBytes(StandardCharsets.UTF_8);
        int size = Loader.sizeof(ncclCollConfig_t.class);
        ByteBuffer memory = ByteBuffer.allocateDirect(size + text.length + 1);
        memory.put(size, text);
        BytePointer begin = new BytePointer(memory);
        StructInitializers.collConfig(begin.address());
        return new ncclCollConfig_t(begin).algSelection(begin.getPointer(size));
    }

    private interface Reducing {
        int call(int op);
    }

    private static Call reducing(Arguments a, long comm, Reducing call, String function) {
        if (a.operator().builtIn != null) {
            int op = a.operator().builtIn.code();
            return () -> check(call.call(op), function);
        }
        // As in nccl-tests, each call creates and destroys its operator.
        byte[] bytes = Elements.encode(a.type(), Operator.scalar(a.rank()));
        BytePointer scalar = new BytePointer(ByteBuffer.allocateDirect(bytes.length));
        scalar.put(bytes);
        IntPointer op = new IntPointer(ByteBuffer.allocateDirect(Integer.BYTES)
                .order(ByteOrder.nativeOrder())
                .asIntBuffer());
        int type = a.type().nativeCode();
        return () -> {
            check(
                    nccl.ncclRedOpCreatePreMulSum(
                            op.address(), scalar.address(), type, nccl.ncclScalarHostImmediate, comm),
                    "ncclRedOpCreatePreMulSum");
            check(call.call(op.get()), function);
            check(nccl.ncclRedOpDestroy(op.get(), comm), "ncclRedOpDestroy");
        };
    }

    private static Call allToAll(Arguments a, long comm, long stream) {
        long count = a.count();
        int type = a.type().nativeCode();
        if (NcclLibrary.get().provides("ncclAlltoAll")) {
            return () -> check(nccl.ncclAlltoAll(a.send(), a.recv(), count, type, comm, stream), "ncclAlltoAll");
        }
        long bytes = count * a.type().sizeInBytes();
        int ranks = a.ranks();
        return grouped(() -> {
            for (int peer = 0; peer < ranks; peer++) {
                check(nccl.ncclSend(a.send() + peer * bytes, count, type, peer, comm, stream), "ncclSend");
                check(nccl.ncclRecv(a.recv() + peer * bytes, count, type, peer, comm, stream), "ncclRecv");
            }
        });
    }

    private static Call gather(Arguments a, long comm, long stream) {
        long count = a.count();
        int type = a.type().nativeCode();
        int root = a.root();
        if (count == 0) {
            return () -> {};
        }
        if (NcclLibrary.get().provides("ncclGather")) {
            return () -> check(nccl.ncclGather(a.send(), a.recv(), count, type, root, comm, stream), "ncclGather");
        }
        long bytes = count * a.type().sizeInBytes();
        int ranks = a.ranks();
        boolean isRoot = a.rank() == root;
        return grouped(() -> {
            check(nccl.ncclSend(a.send(), count, type, root, comm, stream), "ncclSend");
            for (int peer = 0; isRoot && peer < ranks; peer++) {
                check(nccl.ncclRecv(a.recv() + peer * bytes, count, type, peer, comm, stream), "ncclRecv");
            }
        });
    }

    private static Call scatter(Arguments a, long comm, long stream) {
        long count = a.count();
        int type = a.type().nativeCode();
        int root = a.root();
        if (count == 0) {
            return () -> {};
        }
        if (NcclLibrary.get().provides("ncclScatter")) {
            return () -> check(nccl.ncclScatter(a.send(), a.recv(), count, type, root, comm, stream), "ncclScatter");
        }
        long bytes = count * a.type().sizeInBytes();
        int ranks = a.ranks();
        boolean isRoot = a.rank() == root;
        return grouped(() -> {
            for (int peer = 0; isRoot && peer < ranks; peer++) {
                check(nccl.ncclSend(a.send() + peer * bytes, count, type, peer, comm, stream), "ncclSend");
            }
            check(nccl.ncclRecv(a.recv(), count, type, root, comm, stream), "ncclRecv");
        });
    }

    private static Call allToAllv(Arguments a, long comm, long stream) {
        int size = a.type().sizeInBytes();
        int type = a.type().nativeCode();
        int ranks = a.ranks();
        long[] sends = a.traffic().sends(a.rank(), ranks, a.total(), size);
        long[] receives = a.traffic().receives(a.rank(), ranks, a.total(), size);
        long[] sendPlaces = Traffic.displacements(sends);
        long[] recvPlaces = Traffic.displacements(receives);
        return grouped(() -> {
            for (int peer = 0; peer < ranks; peer++) {
                if (sends[peer] > 0) {
                    long from = a.send() + sendPlaces[peer] * size;
                    check(nccl.ncclSend(from, sends[peer], type, peer, comm, stream), "ncclSend");
                }
                if (receives[peer] > 0) {
                    long to = a.recv() + recvPlaces[peer] * size;
                    check(nccl.ncclRecv(to, receives[peer], type, peer, comm, stream), "ncclRecv");
                }
            }
        });
    }

    private static Call sendRecv(Arguments a, long comm, long stream) {
        long count = a.count();
        int type = a.type().nativeCode();
        int to = Math.floorMod(a.rank() + 1, a.ranks());
        int from = Math.floorMod(a.rank() - 1, a.ranks());
        return grouped(() -> {
            check(nccl.ncclSend(a.send(), count, type, to, comm, stream), "ncclSend");
            check(nccl.ncclRecv(a.recv(), count, type, from, comm, stream), "ncclRecv");
        });
    }

    /** An all-gather in log2(ranks) exchanges, each of twice as many elements as the previous one. */
    private static Call hypercube(Arguments a, long comm, long stream) {
        long count = a.count();
        int type = a.type().nativeCode();
        long bytes = count * a.type().sizeInBytes();
        int rank = a.rank();
        int ranks = a.ranks();
        Runnable own = ownBlock(a, bytes);
        return () -> {
            own.run();
            for (int distance = 1; distance < ranks; distance *= 2) {
                int mine = rank & -distance;
                int theirs = mine ^ distance;
                check(nccl.ncclGroupStart(), "ncclGroupStart");
                long blocks = count * distance;
                int peer = rank ^ distance;
                check(nccl.ncclSend(a.recv() + mine * bytes, blocks, type, peer, comm, stream), "ncclSend");
                check(nccl.ncclRecv(a.recv() + theirs * bytes, blocks, type, peer, comm, stream), "ncclRecv");
                check(nccl.ncclGroupEnd(), "ncclGroupEnd");
            }
        };
    }

    /** Copies a rank's own block into the gathered data, in stream order; does nothing if it is already there. */
    static Runnable ownBlock(Arguments a, long bytes) {
        long own = a.recv() + a.rank() * bytes;
        if (bytes == 0 || own == a.send()) {
            return () -> {};
        }
        Device device = a.member().communicator.device();
        CudaStream stream = a.member().stream;
        DeviceBuffer<Uint8> from = DeviceBuffer.wrap(device, ElementType.UINT8, a.send(), bytes);
        DeviceBuffer<Uint8> to = DeviceBuffer.wrap(device, ElementType.UINT8, own, bytes);
        return () -> to.copyFromAsync(from, stream);
    }

    private static Call grouped(Call calls) {
        return () -> {
            groupStart();
            calls.enqueue();
            groupEnd();
        };
    }

    static void groupStart() {
        check(nccl.ncclGroupStart(), "ncclGroupStart");
    }

    static void groupEnd() {
        check(nccl.ncclGroupEnd(), "ncclGroupEnd");
    }

    private static void check(int result, String function) {
        if (result != nccl.ncclSuccess) {
            throw new PerfException(function + ": "
                    + nccl.ncclGetErrorString(result) + " (" + result + "); "
                    + nccl.ncclGetLastError((ncclComm) null));
        }
    }
}

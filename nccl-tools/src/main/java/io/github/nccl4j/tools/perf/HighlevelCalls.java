package io.github.nccl4j.tools.perf;

import io.github.nccl4j.highlevel.AllToAllvPlan;
import io.github.nccl4j.highlevel.CollectiveConfig;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.PreMulSum;
import io.github.nccl4j.highlevel.ReduceOp;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/** Calls of the highlevel package, like those of an application. */
final class HighlevelCalls<T extends Element> {
    private final Collective collective;
    private final Arguments a;
    private final ElementType<T> type;
    private final Communicator communicator;
    private final CudaStream stream;

    private HighlevelCalls(Collective collective, Arguments a, ElementType<T> type) {
        this.collective = collective;
        this.a = a;
        this.type = type;
        communicator = a.member().communicator;
        stream = a.member().stream;
    }

    /** Creates a call. Collective, because creating a plan is. */
    static Call of(Collective collective, Arguments arguments) {
        return of(collective, arguments, arguments.type());
    }

    private static <T extends Element> Call of(Collective collective, Arguments arguments, ElementType<T> type) {
        return new HighlevelCalls<>(collective, arguments, type).make();
    }

    private DeviceBuffer<T> at(long address, long length) {
        return DeviceBuffer.wrap(communicator.device(), type, address, length);
    }

    private Call make() {
        DeviceBuffer<T> send = at(a.send(), a.sizes().send());
        DeviceBuffer<T> recv = at(a.recv(), a.sizes().recv());
        int root = a.root();
        boolean isRoot = a.rank() == root;
        if (a.count() == 0 && (collective == Collective.GATHER || collective == Collective.SCATTER)) {
            // Do nothing, as nccl-tests.
            return () -> {};
        }
        if (a.config() != null) {
            return asConfigured(send, recv, a.config());
        }
        return switch (collective) {
            case ALL_REDUCE -> reducing(op -> communicator.allReduce(send, recv, op, stream));
            case REDUCE -> reducing(op -> communicator.reduce(send, recv, op, root, stream));
            case REDUCE_SCATTER -> reducing(op -> communicator.reduceScatter(send, recv, op, stream));
            case ALL_GATHER -> () -> communicator.allGather(send, recv, stream);
            case BROADCAST -> () -> communicator.broadcast(send, recv, root, stream);
            case ALLTOALL -> () -> communicator.allToAll(send, recv, stream);
            case GATHER ->
                isRoot
                        ? () -> communicator.gather(send, recv, root, stream)
                        : () -> communicator.gather(send, root, stream);
            case SCATTER ->
                isRoot
                        ? () -> communicator.scatter(send, recv, root, stream)
                        : () -> communicator.scatter(recv, root, stream);
            case SENDRECV -> sendRecv(send, recv);
            case ALLTOALLV -> allToAllv(send, recv);
            case HYPERCUBE -> hypercube();
        };
    }

    /** Of the collectives that have algorithms. */
    private Call asConfigured(DeviceBuffer<T> send, DeviceBuffer<T> recv, CollectiveConfig config) {
        int root = a.root();
        return switch (collective) {
            case ALL_REDUCE -> reducing(op -> communicator.allReduce(send, recv, op, stream, config));
            case REDUCE -> reducing(op -> communicator.reduce(send, recv, op, root, stream, config));
            case REDUCE_SCATTER -> reducing(op -> communicator.reduceScatter(send, recv, op, stream, config));
            case ALL_GATHER -> () -> communicator.allGather(send, recv, stream, config);
            case BROADCAST -> () -> communicator.broadcast(send, recv, root, stream, config);
            default -> throw new IllegalArgumentException(collective + " has no algorithms: " + config);
        };
    }

    private Call reducing(Consumer<ReduceOp> call) {
        if (a.operator().builtIn != null) {
            ReduceOp op = a.operator().builtIn;
            return () -> call.accept(op);
        }
        int scalar = Operator.scalar(a.rank());
        return () -> {
            try (PreMulSum<T> op = communicator.preMulSum(type, scalar)) {
                call.accept(op);
            }
        };
    }

    private Call sendRecv(DeviceBuffer<T> send, DeviceBuffer<T> recv) {
        int to = Math.floorMod(a.rank() + 1, a.ranks());
        int from = Math.floorMod(a.rank() - 1, a.ranks());
        return () -> communicator.sendRecv(send, to, recv, from, stream);
    }

    /** Uses a plan, which calls VCCL's ncclAlltoAllv if possible. */
    private Call allToAllv(DeviceBuffer<T> send, DeviceBuffer<T> recv) {
        long[] sends = a.traffic().sends(a.rank(), a.ranks(), a.total(), type.sizeInBytes());
        long[] receives = a.traffic().receives(a.rank(), a.ranks(), a.total(), type.sizeInBytes());
        AllToAllvPlan<T> plan = communicator.planAllToAllv(
                send, sends, Traffic.displacements(sends), recv, receives, Traffic.displacements(receives));
        return new Call() {
            @Override
            public void enqueue() {
                communicator.allToAllv(plan, stream);
            }

            @Override
            public void close() {
                plan.close();
            }
        };
    }

    private Call hypercube() {
        long count = a.count();
        int rank = a.rank();
        DeviceBuffer<T> all = at(a.recv(), count * a.ranks());
        Runnable own = RawCalls.ownBlock(a, count * type.sizeInBytes());
        List<Call> steps = new ArrayList<>();
        for (int distance = 1; distance < a.ranks(); distance *= 2) {
            int mine = rank & -distance;
            int theirs = mine ^ distance;
            int peer = rank ^ distance;
            DeviceBuffer<T> send = all.slice(mine * count, count * distance);
            DeviceBuffer<T> recv = all.slice(theirs * count, count * distance);
            steps.add(() -> communicator.sendRecv(send, peer, recv, peer, stream));
        }
        return () -> {
            own.run();
            steps.forEach(Call::enqueue);
        };
    }
}

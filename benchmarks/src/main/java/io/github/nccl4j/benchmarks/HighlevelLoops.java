package io.github.nccl4j.benchmarks;

import io.github.nccl4j.highlevel.AllToAllvPlan;
import io.github.nccl4j.highlevel.CollectiveConfig;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.ReduceOp;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.LongStream;

/** Loops of calls of the highlevel package. */
final class HighlevelLoops {
    private static final int ROOT = LoopArguments.ROOT;

    private HighlevelLoops() {}

    static Loop of(LoopOperation operation, LoopArguments arguments) {
        Communicator communicator = arguments.communicator();
        CudaStream stream = arguments.stream();
        DeviceBuffer<Float32> send = arguments.send();
        DeviceBuffer<Float32> recv = arguments.recv();
        return switch (operation) {
            case ALL_REDUCE ->
                calls -> {
                    for (int i = 0; i < calls; i++) {
                        communicator.allReduce(send, recv, ReduceOp.SUM, stream);
                    }
                    return 0;
                };
            case ALL_GATHER ->
                calls -> {
                    for (int i = 0; i < calls; i++) {
                        communicator.allGather(send, recv, stream);
                    }
                    return 0;
                };
            case REDUCE_SCATTER ->
                calls -> {
                    for (int i = 0; i < calls; i++) {
                        communicator.reduceScatter(send, recv, ReduceOp.SUM, stream);
                    }
                    return 0;
                };
            case BROADCAST ->
                calls -> {
                    for (int i = 0; i < calls; i++) {
                        communicator.broadcast(send, recv, ROOT, stream);
                    }
                    return 0;
                };
            case REDUCE ->
                calls -> {
                    for (int i = 0; i < calls; i++) {
                        communicator.reduce(send, recv, ReduceOp.SUM, ROOT, stream);
                    }
                    return 0;
                };
            case ALLTOALL ->
                calls -> {
                    for (int i = 0; i < calls; i++) {
                        communicator.allToAll(send, recv, stream);
                    }
                    return 0;
                };
            case GATHER -> gather(arguments.rank() == ROOT, communicator, send, recv, stream);
            case SCATTER -> scatter(arguments.rank() == ROOT, communicator, send, recv, stream);
            case SENDRECV -> sendRecv(arguments, communicator, send, recv, stream);
            case ALLTOALLV -> allToAllv(arguments, communicator, stream);
            case HYPERCUBE -> hypercube(arguments, communicator, stream);
        };
    }

    /** The loop with a configuration that changes nothing, of the operations that take one. */
    static Loop asConfigured(LoopOperation operation, LoopArguments arguments) {
        Communicator communicator = arguments.communicator();
        CudaStream stream = arguments.stream();
        DeviceBuffer<Float32> send = arguments.send();
        DeviceBuffer<Float32> recv = arguments.recv();
        CollectiveConfig config = CollectiveConfig.builder().profilerTag(1).build();
        return switch (operation) {
            case ALL_REDUCE ->
                calls -> {
                    for (int i = 0; i < calls; i++) {
                        communicator.allReduce(send, recv, ReduceOp.SUM, stream, config);
                    }
                    return 0;
                };
            case ALL_GATHER ->
                calls -> {
                    for (int i = 0; i < calls; i++) {
                        communicator.allGather(send, recv, stream, config);
                    }
                    return 0;
                };
            case REDUCE_SCATTER ->
                calls -> {
                    for (int i = 0; i < calls; i++) {
                        communicator.reduceScatter(send, recv, ReduceOp.SUM, stream, config);
                    }
                    return 0;
                };
            case BROADCAST ->
                calls -> {
                    for (int i = 0; i < calls; i++) {
                        communicator.broadcast(send, recv, ROOT, stream, config);
                    }
                    return 0;
                };
            case REDUCE ->
                calls -> {
                    for (int i = 0; i < calls; i++) {
                        communicator.reduce(send, recv, ReduceOp.SUM, ROOT, stream, config);
                    }
                    return 0;
                };
            case ALLTOALL ->
                calls -> {
                    for (int i = 0; i < calls; i++) {
                        communicator.allToAll(send, recv, stream, config);
                    }
                    return 0;
                };
            case GATHER ->
                calls -> {
                    for (int i = 0; i < calls; i++) {
                        communicator.gather(send, recv, ROOT, stream, config);
                    }
                    return 0;
                };
            case SCATTER ->
                calls -> {
                    for (int i = 0; i < calls; i++) {
                        communicator.scatter(send, recv, ROOT, stream, config);
                    }
                    return 0;
                };
            default -> throw new IllegalArgumentException(operation + " takes no configuration");
        };
    }

    /** All-reduces in groups; a remainder of calls that fills no group is omitted. */
    static Loop inGroups(LoopArguments arguments, int size) {
        Communicator communicator = arguments.communicator();
        CudaStream stream = arguments.stream();
        DeviceBuffer<Float32> send = arguments.send();
        DeviceBuffer<Float32> recv = arguments.recv();
        return calls -> {
            for (int groups = calls / size; groups > 0; groups--) {
                try (Group group = Group.open()) {
                    for (int i = 0; i < size; i++) {
                        communicator.allReduce(send, recv, ReduceOp.SUM, stream);
                    }
                    group.launch();
                }
            }
            return 0;
        };
    }

    private static Loop gather(
            boolean isRoot,
            Communicator communicator,
            DeviceBuffer<Float32> send,
            DeviceBuffer<Float32> recv,
            CudaStream stream) {
        if (isRoot) {
            return calls -> {
                for (int i = 0; i < calls; i++) {
                    communicator.gather(send, recv, ROOT, stream);
                }
                return 0;
            };
        }
        return calls -> {
            for (int i = 0; i < calls; i++) {
                communicator.gather(send, ROOT, stream);
            }
            return 0;
        };
    }

    private static Loop scatter(
            boolean isRoot,
            Communicator communicator,
            DeviceBuffer<Float32> send,
            DeviceBuffer<Float32> recv,
            CudaStream stream) {
        if (isRoot) {
            return calls -> {
                for (int i = 0; i < calls; i++) {
                    communicator.scatter(send, recv, ROOT, stream);
                }
                return 0;
            };
        }
        return calls -> {
            for (int i = 0; i < calls; i++) {
                communicator.scatter(recv, ROOT, stream);
            }
            return 0;
        };
    }

    private static Loop sendRecv(
            LoopArguments arguments,
            Communicator communicator,
            DeviceBuffer<Float32> send,
            DeviceBuffer<Float32> recv,
            CudaStream stream) {
        int next = arguments.next();
        int previous = arguments.previous();
        return calls -> {
            for (int i = 0; i < calls; i++) {
                communicator.sendRecv(send, next, recv, previous, stream);
            }
            return 0;
        };
    }

    private static Loop allToAllv(LoopArguments arguments, Communicator communicator, CudaStream stream) {
        long[] counts = new long[arguments.size()];
        Arrays.fill(counts, arguments.count());
        long[] places = LongStream.range(0, arguments.size())
                .map(peer -> peer * arguments.count())
                .toArray();
        AllToAllvPlan<Float32> plan =
                communicator.planAllToAllv(arguments.send(), counts, places, arguments.recv(), counts, places);
        return new Loop() {
            @Override
            public int run(int calls) {
                for (int i = 0; i < calls; i++) {
                    communicator.allToAllv(plan, stream);
                }
                return 0;
            }

            @Override
            public void close() {
                plan.close();
            }
        };
    }

    private static Loop hypercube(LoopArguments arguments, Communicator communicator, CudaStream stream) {
        int size = arguments.size();
        int rank = arguments.rank();
        List<DeviceBuffer<Float32>> mine = new ArrayList<>();
        List<DeviceBuffer<Float32>> theirs = new ArrayList<>();
        for (int distance = 1; distance < size; distance *= 2) {
            int first = rank & -distance;
            long count = arguments.count();
            mine.add(arguments.recv().slice(first * count, distance * count));
            theirs.add(arguments.recv().slice((first ^ distance) * count, distance * count));
        }
        return calls -> {
            for (int i = 0; i < calls; i++) {
                for (int step = 0; step < mine.size(); step++) {
                    int peer = rank ^ (1 << step);
                    communicator.sendRecv(mine.get(step), peer, theirs.get(step), peer, stream);
                }
            }
            return 0;
        };
    }
}

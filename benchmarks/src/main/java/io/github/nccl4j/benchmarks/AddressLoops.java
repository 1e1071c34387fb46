package io.github.nccl4j.benchmarks;

import io.github.nccl4j.global.nccl;

/** Loops of calls by the bindings' addresses. */
final class AddressLoops {
    private static final int TYPE = nccl.ncclFloat;
    private static final int SUM = nccl.ncclSum;
    private static final int ROOT = LoopArguments.ROOT;

    private AddressLoops() {}

    static Loop of(LoopOperation operation, LoopArguments arguments) {
        long send = arguments.send().address();
        long recv = arguments.recv().address();
        long count = arguments.count();
        long comm = arguments.communicator().nativeHandle();
        long stream = arguments.stream().nativeHandle();
        return switch (operation) {
            case ALL_REDUCE ->
                calls -> {
                    int results = 0;
                    for (int i = 0; i < calls; i++) {
                        results |= nccl.ncclAllReduce(send, recv, count, TYPE, SUM, comm, stream);
                    }
                    return results;
                };
            case ALL_GATHER ->
                calls -> {
                    int results = 0;
                    for (int i = 0; i < calls; i++) {
                        results |= nccl.ncclAllGather(send, recv, count, TYPE, comm, stream);
                    }
                    return results;
                };
            case REDUCE_SCATTER ->
                calls -> {
                    int results = 0;
                    for (int i = 0; i < calls; i++) {
                        results |= nccl.ncclReduceScatter(send, recv, count, TYPE, SUM, comm, stream);
                    }
                    return results;
                };
            case BROADCAST ->
                calls -> {
                    int results = 0;
                    for (int i = 0; i < calls; i++) {
                        results |= nccl.ncclBroadcast(send, recv, count, TYPE, ROOT, comm, stream);
                    }
                    return results;
                };
            case REDUCE ->
                calls -> {
                    int results = 0;
                    for (int i = 0; i < calls; i++) {
                        results |= nccl.ncclReduce(send, recv, count, TYPE, SUM, ROOT, comm, stream);
                    }
                    return results;
                };
            case ALLTOALL ->
                calls -> {
                    int results = 0;
                    for (int i = 0; i < calls; i++) {
                        results |= nccl.ncclAlltoAll(send, recv, count, TYPE, comm, stream);
                    }
                    return results;
                };
            case GATHER ->
                calls -> {
                    int results = 0;
                    for (int i = 0; i < calls; i++) {
                        results |= nccl.ncclGather(send, recv, count, TYPE, ROOT, comm, stream);
                    }
                    return results;
                };
            case SCATTER ->
                calls -> {
                    int results = 0;
                    for (int i = 0; i < calls; i++) {
                        results |= nccl.ncclScatter(send, recv, count, TYPE, ROOT, comm, stream);
                    }
                    return results;
                };
            case SENDRECV -> sendRecv(arguments, send, recv, comm, stream);
            case ALLTOALLV -> allToAllv(arguments, send, recv, comm, stream);
            case HYPERCUBE -> hypercube(arguments, recv, comm, stream);
        };
    }

    /** All-reduces in groups; a remainder of calls that fills no group is omitted. */
    static Loop inGroups(LoopArguments arguments, int size) {
        long send = arguments.send().address();
        long recv = arguments.recv().address();
        long count = arguments.count();
        long comm = arguments.communicator().nativeHandle();
        long stream = arguments.stream().nativeHandle();
        return calls -> {
            int results = 0;
            for (int groups = calls / size; groups > 0; groups--) {
                results |= nccl.ncclGroupStart();
                for (int i = 0; i < size; i++) {
                    results |= nccl.ncclAllReduce(send, recv, count, TYPE, SUM, comm, stream);
                }
                results |= nccl.ncclGroupEnd();
            }
            return results;
        };
    }

    private static Loop sendRecv(LoopArguments arguments, long send, long recv, long comm, long stream) {
        long count = arguments.count();
        int next = arguments.next();
        int previous = arguments.previous();
        return calls -> {
            int results = 0;
            for (int i = 0; i < calls; i++) {
                results |= nccl.ncclGroupStart();
                results |= nccl.ncclSend(send, count, TYPE, next, comm, stream);
                results |= nccl.ncclRecv(recv, count, TYPE, previous, comm, stream);
                results |= nccl.ncclGroupEnd();
            }
            return results;
        };
    }

    private static Loop allToAllv(LoopArguments arguments, long send, long recv, long comm, long stream) {
        long count = arguments.count();
        long bytes = count * Float.BYTES;
        int size = arguments.size();
        return calls -> {
            int results = 0;
            for (int i = 0; i < calls; i++) {
                results |= nccl.ncclGroupStart();
                for (int peer = 0; peer < size; peer++) {
                    results |= nccl.ncclSend(send + peer * bytes, count, TYPE, peer, comm, stream);
                    results |= nccl.ncclRecv(recv + peer * bytes, count, TYPE, peer, comm, stream);
                }
                results |= nccl.ncclGroupEnd();
            }
            return results;
        };
    }

    private static Loop hypercube(LoopArguments arguments, long recv, long comm, long stream) {
        long count = arguments.count();
        long bytes = count * Float.BYTES;
        int size = arguments.size();
        int rank = arguments.rank();
        return calls -> {
            int results = 0;
            for (int i = 0; i < calls; i++) {
                for (int distance = 1; distance < size; distance *= 2) {
                    int mine = rank & -distance;
                    int theirs = mine ^ distance;
                    int peer = rank ^ distance;
                    results |= nccl.ncclGroupStart();
                    results |= nccl.ncclSend(recv + mine * bytes, count * distance, TYPE, peer, comm, stream);
                    results |= nccl.ncclRecv(recv + theirs * bytes, count * distance, TYPE, peer, comm, stream);
                    results |= nccl.ncclGroupEnd();
                }
            }
            return results;
        };
    }
}

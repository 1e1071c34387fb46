package io.github.nccl4j.benchmarks;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.ReduceOp;

/** Loops of all-reduces in groups; they make as many groups as there are whole ones in the calls that they are to make. */
final class GroupLoops {
    private GroupLoops() {}

    static Loop addresses(LoopArguments arguments, int size) {
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
                    results |= nccl.ncclAllReduce(send, recv, count, nccl.ncclFloat, nccl.ncclSum, comm, stream);
                }
                results |= nccl.ncclGroupEnd();
            }
            return results;
        };
    }

    static Loop highlevel(LoopArguments arguments, int size) {
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
}

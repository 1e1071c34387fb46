package io.github.nccl4j.benchmarks;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.library.NativeLibrary;
import org.bytedeco.cuda.cudart.CUstream_st;
import org.bytedeco.cuda.nccl.ncclComm;
import org.bytedeco.javacpp.FloatPointer;

/** Loops of all-reduces by JavaCPP Presets CUDA, which a machine without CUDA can't load. */
final class PresetsLoops {
    private final FloatPointer send;
    private final FloatPointer recv;
    private final long count;
    private final ncclComm comm;
    private final CUstream_st stream;

    PresetsLoops(LoopArguments arguments) {
        // Also loaded by its name, so that JavaCPP Presets CUDA gets the same library.
        System.load(NativeLibrary.path());
        send = new FloatPointer(Target.at(arguments.send().address()));
        recv = new FloatPointer(Target.at(arguments.recv().address()));
        count = arguments.count();
        comm = new ncclComm(Target.at(arguments.communicator().nativeHandle()));
        stream = new CUstream_st(Target.at(arguments.stream().nativeHandle()));
    }

    Loop single() {
        FloatPointer from = send;
        FloatPointer to = recv;
        long elements = count;
        ncclComm on = comm;
        CUstream_st in = stream;
        return checked(1, calls -> {
            int results = 0;
            for (int i = 0; i < calls; i++) {
                results |= org.bytedeco.cuda.global.nccl.ncclAllReduce(
                        from, to, elements, nccl.ncclFloat, nccl.ncclSum, on, in);
            }
            return results;
        });
    }

    /** All-reduces in groups; a remainder of calls that fills no group is omitted. */
    Loop inGroups(int size) {
        FloatPointer from = send;
        FloatPointer to = recv;
        long elements = count;
        ncclComm on = comm;
        CUstream_st in = stream;
        return checked(size, calls -> {
            int results = 0;
            for (int groups = calls / size; groups > 0; groups--) {
                results |= org.bytedeco.cuda.global.nccl.ncclGroupStart();
                for (int i = 0; i < size; i++) {
                    results |= org.bytedeco.cuda.global.nccl.ncclAllReduce(
                            from, to, elements, nccl.ncclFloat, nccl.ncclSum, on, in);
                }
                results |= org.bytedeco.cuda.global.nccl.ncclGroupEnd();
            }
            return results;
        });
    }

    private static Loop checked(int calls, Loop loop) {
        loop.run(calls);
        Target.requireOneLibrary();
        return loop;
    }
}

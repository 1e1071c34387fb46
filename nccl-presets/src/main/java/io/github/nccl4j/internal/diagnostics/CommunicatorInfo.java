package io.github.nccl4j.internal.diagnostics;

import io.github.nccl4j.highlevel.NcclException;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.internal.cuda.NativeDevice;
import io.github.nccl4j.internal.operation.OperationLog;

/** The properties of a communicator that records, events and answers to other ranks contain. For any thread, also after its end. */
public interface CommunicatorInfo {
    NcclLibrary library();

    NativeDevice device();

    /** The name from the configuration; empty if there is none. */
    String name();

    /** A text that identifies the communicator on all its ranks. Does not reveal the unique id. */
    String identity();

    /** The rank, also before the communicator is created; 0 if not known yet. */
    int expectedRank();

    /** The size, also before the communicator is created; 0 if not known yet. */
    int expectedSize();

    /** The rank in the communicator from which this one was derived first; -1 if not known. */
    int worldRank();

    /** The state, as text. */
    Enum<?> state();

    /** The function, other than an operation, in which this rank waits for other ranks; empty if there is none. */
    String waitsIn();

    /** The time since which it waits there, in milliseconds since 1970. */
    long waitsSince();

    /** The first failure, or null. */
    NcclException failure();

    OperationLog operationLog();
}

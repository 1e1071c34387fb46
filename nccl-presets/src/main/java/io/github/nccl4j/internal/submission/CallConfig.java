package io.github.nccl4j.internal.submission;

import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.internal.config.FaultyAlgorithm;
import io.github.nccl4j.internal.cuda.NativeEvent;

/** The configuration of a collective, in {@code CollectiveConfig}. Immutable; its {@code toString} is for messages. */
public interface CallConfig {
    /** Returns the address of the native configuration, valid while this object is reachable. */
    long struct(NcclLibrary library);

    /** Returns the configuration without an algorithm, the same object in every call. */
    CallConfig excluding(FaultyAlgorithm algorithm);

    /** The event that the call records; null if there is none. */
    NativeEvent launchCompletionEvent();

    /** Null if it is not set. */
    Integer cgaClusterSize();

    /** The fields that must be equal on all ranks. */
    String signature();
}

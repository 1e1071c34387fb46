package io.github.nccl4j.launch.store;

import io.github.nccl4j.launch.wire.Wire;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/** The requests of one rank to a store. */
interface StoreRequests {
    int rank();

    /** Throws an IllegalStateException if this rank has closed the store. */
    void requireOpen();

    /** Returns the ranks that are lost or have left. */
    List<Integer> gone(long timeoutNanos);

    /** Sends a request. */
    CompletableFuture<ByteBuffer> requestAsync(Wire.Operation operation, Wire.Frame request);

    /** Waits for the response to a request and returns its content; cancels the request if this fails. */
    byte[] awaitResponse(CompletableFuture<ByteBuffer> response, String subject, long timeoutNanos);

    /** Sends a request and waits for the response. The subject is for messages. */
    default byte[] request(Wire.Operation operation, Wire.Frame request, String subject, long timeoutNanos) {
        return awaitResponse(requestAsync(operation, request), subject, timeoutNanos);
    }
}

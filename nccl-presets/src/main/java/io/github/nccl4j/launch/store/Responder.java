package io.github.nccl4j.launch.store;

import java.util.List;

/** Sends the response to one request; does nothing if the connection has ended. One of its methods is called, once. */
interface Responder {
    void succeed(byte[] content);

    void fail(String reason);

    /** The missing ranks are empty if they are not known. */
    void timeOut(String reason, List<Integer> missing);
}

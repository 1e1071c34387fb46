package io.github.nccl4j.launch;

import java.util.List;

/** Where the answer to a request goes; nowhere if who asked is gone. */
interface Responder {
    void ok(byte[] content);

    void failed(String reason);

    /** The missing ranks are empty if it is not known who they are. */
    void timedOut(String reason, List<Integer> missing);
}

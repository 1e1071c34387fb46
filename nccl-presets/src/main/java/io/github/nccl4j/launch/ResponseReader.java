package io.github.nccl4j.launch;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/** Reads what the store answers. */
final class ResponseReader {
    private ResponseReader() {}

    /** What an answer holds, if it is no failure. */
    static byte[] content(ByteBuffer answer, int rank) {
        try {
            return Wire.read(answer, frame -> read(frame, rank));
        } catch (IOException wrong) {
            throw new RendezvousException("the store answered rank " + rank + " with nonsense", wrong);
        }
    }

    private static byte[] read(ByteBuffer answer, int rank) throws IOException {
        byte status = answer.get();
        if (status == Wire.OK) {
            byte[] content = new byte[answer.remaining()];
            answer.get(content);
            return content;
        }
        String reason = Wire.text(answer);
        if (status == Wire.TIMED_OUT) {
            throw new RendezvousTimeoutException(reason, Wire.numbers(answer));
        }
        throw new RendezvousException(reason);
    }

    static List<byte[]> values(byte[] content, int count) {
        ByteBuffer answer = ByteBuffer.wrap(content);
        try {
            List<byte[]> values = new ArrayList<>(count);
            for (int i = 0; i < count; i++) {
                values.add(Wire.read(answer, Wire::bytes));
            }
            return values;
        } catch (IOException wrong) {
            throw new RendezvousException("the store answered with fewer than " + count + " values", wrong);
        }
    }
}

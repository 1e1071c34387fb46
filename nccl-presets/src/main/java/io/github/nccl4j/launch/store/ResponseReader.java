package io.github.nccl4j.launch.store;

import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.RendezvousTimeoutException;
import io.github.nccl4j.launch.wire.Wire;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/** Reads responses of the store. */
final class ResponseReader {
    private ResponseReader() {}

    /** Returns the content of a response to a rank; throws the failure that the response has instead. */
    static byte[] content(ByteBuffer response, int rank) {
        try {
            return Wire.read(response, ResponseReader::read);
        } catch (IOException invalid) {
            throw new RendezvousException("the store sent rank " + rank + " an invalid response", invalid);
        }
    }

    private static byte[] read(ByteBuffer response) throws IOException {
        byte status = response.get();
        if (status == Wire.OK) {
            byte[] content = new byte[response.remaining()];
            response.get(content);
            return content;
        }
        String reason = Wire.text(response);
        if (status == Wire.TIMED_OUT) {
            throw new RendezvousTimeoutException(reason, Wire.numbers(response));
        }
        throw new RendezvousException(reason);
    }

    /** Splits the content of a response into one value for each rank. */
    static List<byte[]> values(byte[] content, int count) {
        ByteBuffer response = ByteBuffer.wrap(content);
        List<byte[]> values = new ArrayList<>(count);
        try {
            for (int i = 0; i < count; i++) {
                values.add(Wire.read(response, Wire::bytes));
            }
            return values;
        } catch (IOException invalid) {
            throw new RendezvousException(
                    "the response of the store must have " + count + " values: it has " + values.size(), invalid);
        }
    }
}

package ai.rapids.cudf;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.bytedeco.javacpp.BytePointer;

/** Stand-in for the class of this name, in host memory. */
public class BaseDeviceMemoryBuffer {
    final ByteBuffer memory;

    BaseDeviceMemoryBuffer(int bytes) {
        memory = ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder());
    }

    public final long getAddress() {
        return new BytePointer(memory).address();
    }

    public final long getLength() {
        return memory.capacity();
    }
}

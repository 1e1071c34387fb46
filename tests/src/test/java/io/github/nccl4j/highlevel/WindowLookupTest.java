package io.github.nccl4j.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.internal.cuda.NativeDevice;
import org.junit.jupiter.api.Test;

/** Which window a buffer lies in. */
class WindowLookupTest {
    private static final Device HOST = Device.host();

    private static DeviceBuffer<Int32> page() {
        return HOST.allocateForWindow(ElementType.INT32, 1024);
    }

    @Test
    void theSymmetricWindowThatCoversABufferIsFound() {
        try (Communicator communicator = Communicator.create(UniqueId.create(), 0, 1);
                DeviceBuffer<Int32> first = page();
                DeviceBuffer<Int32> second = page();
                DeviceBuffer<Int32> third = page()) {
            Window symmetric = communicator.registerWindow(first, WindowFlag.COLL_SYMMETRIC);
            Window plain = communicator.registerWindow(second);
            Window part = communicator.registerWindow(third.slice(0, 100), WindowFlag.COLL_SYMMETRIC);
            assertEquals(symmetric.nativeWindow, communicator.windows.symmetricWindowOf(first.nativeBuffer));
            assertEquals(
                    symmetric.nativeWindow, communicator.windows.symmetricWindowOf(first.slice(1023, 1).nativeBuffer));
            assertNull(communicator.windows.symmetricWindowOf(second.nativeBuffer));
            assertNull(communicator.windows.symmetricWindowOf(third.nativeBuffer));
            assertEquals(part.nativeWindow, communicator.windows.symmetricWindowOf(third.slice(50, 50).nativeBuffer));
            assertNull(communicator.windows.symmetricWindowOf(third.slice(50, 51).nativeBuffer));
            assertTrue(plain.nativeWindow.covers(second.address(), 4096));
            assertFalse(plain.nativeWindow.covers(second.address(), 4097));
            assertFalse(plain.nativeWindow.covers(second.address() - 1, 1));
            assertFalse(plain.nativeWindow.covers(second.address(), Long.MAX_VALUE));
            DeviceBuffer<Int32> elsewhere =
                    DeviceBuffer.wrap(new Device(new NativeDevice(0, 0)), ElementType.INT32, first.address(), 1024);
            assertFalse(symmetric.contains(elsewhere), "the same address on another device");
            symmetric.close();
            assertNull(communicator.windows.symmetricWindowOf(first.nativeBuffer));
            assertEquals(part.nativeWindow, communicator.windows.symmetricWindowOf(third.slice(0, 1).nativeBuffer));
        }
    }
}

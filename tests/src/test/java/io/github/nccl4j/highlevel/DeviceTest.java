package io.github.nccl4j.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.internal.cuda.NativeDevice;
import io.github.nccl4j.internal.operation.Operator;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Host memory as a device, devices that are not there, and operators by their codes. */
class DeviceTest {
    private static final Device HOST = Device.host();

    @Test
    void hostMemoryIsNoGpu() {
        assertSame(HOST, Device.host());
        assertTrue(HOST.isHost());
        assertFalse(HOST.isCuda());
        assertEquals("host memory", HOST.toString());
        assertEquals(
                "host memory has no device index",
                assertThrows(IllegalStateException.class, HOST::index).getMessage());
        assertEquals(HOST, Device.host());
        assertFalse(HOST.equals(null));
        assertFalse(HOST.equals("host memory"));
        assertNotEquals(0, HOST.hashCode());
        assertEquals(0, HOST.nativeDevice.code());
        assertEquals("CUDA device 3", NativeDevice.nameOf(3));
    }

    @Test
    void hostMemoryIsCurrentDeviceOfHostEngine() {
        assertSame(HOST, Device.current());
    }

    @Test
    void deviceOfALocalRankIsHostMemoryOnTheHostEngine() {
        assertSame(HOST, Device.ofLocalRank(0));
        assertSame(HOST, Device.ofLocalRank(17));
        assertEquals(
                "localRank must be >= 0: -1",
                assertThrows(IllegalArgumentException.class, () -> Device.ofLocalRank(-1))
                        .getMessage());
    }

    @Test
    void rejectsMissingDeviceWithDeviceCount() {
        int count = Device.cudaCount();
        String range = "index must be >= 0 and < the number of CUDA devices that this process sees: ";
        assertEquals(
                range + "-1 < 0",
                assertThrows(IndexOutOfBoundsException.class, () -> Device.cuda(-1))
                        .getMessage());
        assertEquals(
                range + count + " >= " + count,
                assertThrows(IndexOutOfBoundsException.class, () -> Device.cuda(count))
                        .getMessage());
    }

    @Test
    void buffersBelongToTheirDevice() {
        try (DeviceBuffer<Element.Int32> plain = HOST.allocate(ElementType.INT32, 3);
                DeviceBuffer<Element.Int32> window = HOST.allocateForWindow(ElementType.INT32, 4);
                DeviceBuffer<Element.Int32> pinned = HOST.allocatePinned(ElementType.INT32, 5)) {
            assertEquals(List.of(3L, 4L, 5L), List.of(plain.length(), window.length(), pinned.length()));
            assertSame(HOST, plain.device());
            assertSame(HOST, window.device());
        }
    }

    @Test
    void operatorsAreKnownByTheirCode() {
        List<ReduceOp> all = ReduceOp.builtIn();
        for (ReduceOp op : all) {
            assertEquals(op.toString(), Operator.nameOf(op.code()));
            assertTrue(op.operator.isBuiltIn());
            assertEquals(op == ReduceOp.AVG, op.operator.isScaled());
        }
        assertEquals("PreMulSum", Operator.nameOf(all.size()));
        assertEquals("PreMulSum", Operator.nameOf(-1));
    }

    @Test
    void releasesOfFourDigitsEndAtTenThousand() {
        assertEquals(new Version(9, 9, 99), Version.of(9999));
        assertEquals(new Version(1, 0, 0), Version.of(10_000));
    }

    @Test
    void gpusAreKnownByTheirIndex() {
        Device gpu = new Device(new NativeDevice(2, 7));
        assertTrue(gpu.isCuda());
        assertFalse(gpu.isHost());
        assertEquals(2, gpu.index());
        assertEquals(7, gpu.nativeDevice.context());
        assertEquals("CUDA device 2", gpu.toString());
        assertEquals(new Device(new NativeDevice(2, 7)), gpu);
        assertNotEquals(new Device(new NativeDevice(3, 7)), gpu);
        assertNotEquals(HOST, gpu);
        assertEquals(0, HOST.nativeDevice.context());
        // The low bits are for the type of elements.
        assertEquals(3 << 5, gpu.nativeDevice.code());
        assertNotEquals(gpu.nativeDevice.code(), new NativeDevice(3, 7).code());
    }

    @Test
    void kindsOfGinAreKnownByTheirCode() {
        for (GinType type : GinType.values()) {
            assertSame(type, GinType.of(type.code()));
        }
        for (GinConnection connection : GinConnection.values()) {
            assertSame(connection, GinConnection.of(connection.code()));
        }
        assertSame(GinType.UNKNOWN, GinType.of(99));
        assertSame(GinConnection.UNKNOWN, GinConnection.of(99));
    }
}

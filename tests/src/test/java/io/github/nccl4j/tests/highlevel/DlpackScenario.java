package io.github.nccl4j.tests.highlevel;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Dlpack;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.tools.support.Checks;
import java.util.Arrays;
import org.bytedeco.javacpp.LongPointer;

/** Tensors to and from another library, which stands behind NCCL's functions: see {@code StubLibraries.tensors}. */
final class DlpackScenario {
    private static final Checks CHECKS = new Checks();

    private DlpackScenario() {}

    public static void main(String... args) {
        for (Dlpack form : Dlpack.values()) {
            exported(form);
            taken(form);
            back(form);
        }
        refused();
        System.out.println("done");
    }

    private static int major(Dlpack form) {
        return form == Dlpack.VERSIONED ? 1 : 0;
    }

    /** The consumer writes into the buffer's memory, and deletes the tensor when the buffer is closed or before. */
    private static void exported(Dlpack form) {
        try (DeviceBuffer<Int32> buffer = Device.host().allocate(ElementType.INT32, 3)) {
            buffer.copyFrom(new int[] {1, 2, 3});
            long tensor = form.export(buffer.slice(1, 2));
            CHECKS.isTrue(Arrays.equals(form.shape(tensor), new long[] {2}), "its shape");
            CHECKS.isTrue(nccl.ncclReduce(tensor, 0L, major(form), 0, 0, 0, 0L, 0L) == 0, "the consumer understood it");
            int[] numbers = new int[3];
            buffer.copyTo(numbers);
            CHECKS.isTrue(Arrays.equals(numbers, new int[] {1, 4, 6}), Arrays.toString(numbers));
        }
        DeviceBuffer<Int32> closedFirst = Device.host().allocate(ElementType.INT32, 100);
        closedFirst.fill(5);
        long tensor = form.export(closedFirst);
        closedFirst.close();
        CHECKS.isTrue(!closedFirst.isOpen(), "closed");
        CHECKS.isTrue(nccl.ncclReduce(tensor, 0L, major(form), 0, 0, 0, 0L, 0L) == 0, "the memory was still there");
        // Looks for what consumers are done with; a second look must not find it again.
        Device.host().allocate(ElementType.INT32, 1).close();
        Device.host().allocate(ElementType.INT32, 1).close();
    }

    private static long foreign(Dlpack form, int change) {
        return foreign(major(form), change);
    }

    private static long foreign(int major, int change) {
        try (LongPointer cell = new LongPointer(1)) {
            CHECKS.isTrue(nccl.ncclRecv(cell.address(), major, change, 0, 0L, 0L) == 0, "a tensor");
            return cell.get();
        }
    }

    private static int deleted() {
        int[] count = new int[1];
        nccl.ncclCommCount(0L, count);
        return count[0];
    }

    private static void taken(Dlpack form) {
        for (int change : new int[] {0, 4}) {
            int before = deleted();
            long tensor = foreign(form, change);
            CHECKS.isTrue(Arrays.equals(form.shape(tensor), new long[] {2, 3}), "its shape");
            DeviceBuffer<Float32> buffer = form.take(tensor, ElementType.FLOAT32);
            CHECKS.isTrue(buffer.isOwner() && buffer.device().isHost(), buffer.toString());
            float[] numbers = new float[6];
            buffer.copyTo(numbers);
            CHECKS.isTrue(Arrays.equals(numbers, new float[] {1, 2, 3, 4, 5, 6}), Arrays.toString(numbers));
            CHECKS.isTrue(deleted() == before, "not deleted while it is open");
            buffer.close();
            buffer.close();
            CHECKS.isTrue(deleted() == before + 1, "deleted once");
        }
        int before = deleted();
        form.delete(foreign(form, 0));
        CHECKS.isTrue(deleted() == before + 1, "given up");
    }

    /** One of ours that comes back: the same memory, which the last of both frees. */
    private static void back(Dlpack form) {
        DeviceBuffer<Int32> first = Device.host().allocate(ElementType.INT32, 4);
        DeviceBuffer<Int32> second = form.take(form.export(first), ElementType.INT32);
        CHECKS.isTrue(second.address() == first.address() && second.length() == 4, second.toString());
        first.close();
        second.fill(7);
        second.close();
    }

    private static void refused() {
        for (Dlpack form : Dlpack.values()) {
            refused(
                    form,
                    foreign(form, 0),
                    ElementType.INT32,
                    "must be of type int32 (code 0, 32 bits): code 2, 32 bits");
            refused(form, foreign(form, 2), ElementType.FLOAT32, "shape [2, 3], strides [1, 2]");
            refused(form, foreign(form, 3), ElementType.FLOAT32, "(DLPack's device types 1, 2, 3, 13): 10");
            refused(form, 0, ElementType.FLOAT32, "address must not be 0");
        }
        refused(Dlpack.VERSIONED, foreign(2, 0), ElementType.FLOAT32, "must be of DLPack 1.x: 2.1");
        refused(Dlpack.VERSIONED, foreign(1, 1), ElementType.FLOAT32, "must not be read-only");
    }

    /** It stays the caller's. */
    private static void refused(Dlpack form, long tensor, ElementType<?> type, String part) {
        int before = deleted();
        CHECKS.fails(IllegalArgumentException.class, () -> form.take(tensor, type), part);
        CHECKS.isTrue(deleted() == before, "not deleted");
        if (tensor != 0) {
            form.delete(tensor);
        }
    }
}

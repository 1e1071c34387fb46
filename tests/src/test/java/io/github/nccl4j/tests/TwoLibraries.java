package io.github.nccl4j.tests;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.highlevel.UniqueId;
import io.github.nccl4j.library.NativeLibrary;
import java.util.Arrays;
import org.bytedeco.javacpp.Loader;

/**
 * A process with two copies of NCCL: {@code main(before|after, local|global, OTHER [, CHOSEN])} loads OTHER, a path, before or
 * after the one that the settings or CHOSEN name. Prints what answers then; all-reduces if there is a GPU. Exits with 1 if not
 * the chosen library answers, or wrongly.
 *
 * <p>On a machine with GPUs and PyTorch, OTHER is the libnccl.so.2 of its packages, and NCCL4J_LIBRARY the system's.
 */
final class TwoLibraries {
    private TwoLibraries() {}

    public static void main(String... args) {
        if (args.length > 3) {
            NativeLibrary.use(args[3]);
        }
        if (args[0].equals("before")) {
            load(args[1], args[2]);
        }
        NcclLibrary library = NcclLibrary.get();
        if (args[0].equals("after")) {
            load(args[1], args[2]);
        }
        int[] version = new int[1];
        nccl.ncclGetVersion(version);
        int[] inner = new int[1];
        nccl.pncclGetVersion(inner);
        System.out.println("chosen " + library);
        System.out.println("others " + NativeLibrary.otherCopies());
        System.out.println("versions " + version[0] + " " + inner[0]);
        boolean right = version[0] == NativeLibrary.versionCode() && inner[0] == version[0];
        if (Device.cudaCount() > 0) {
            right &= allReduces();
        }
        System.out.flush();
        // Of two copies, the exit handlers are not what is looked at.
        Runtime.getRuntime().halt(right ? 0 : 1);
    }

    private static void load(String scope, String path) {
        if (scope.equals("global")) {
            Loader.loadGlobal(path);
        } else {
            System.load(path);
        }
    }

    private static boolean allReduces() {
        Device device = Device.cuda(0);
        try (Communicator communicator = Communicator.builder().device(device).create(UniqueId.create(), 0, 1);
                CudaStream stream = CudaStream.nonBlocking(device);
                DeviceBuffer<Float32> from = device.allocate(ElementType.FLOAT32, 4);
                DeviceBuffer<Float32> to = device.allocate(ElementType.FLOAT32, 4)) {
            float[] values = {1, 2, 3, 4};
            from.copyFrom(values);
            communicator.allReduce(from, to, ReduceOp.SUM, stream);
            communicator.work(stream).await();
            float[] sums = new float[4];
            to.copyTo(sums);
            System.out.println("all-reduce " + Arrays.toString(sums));
            return Arrays.equals(values, sums);
        }
    }
}

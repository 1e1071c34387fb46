package io.github.nccl4j.tests;

import io.github.nccl4j.highlevel.AllToAllvPlan;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.Window;
import io.github.nccl4j.highlevel.WindowFlag;
import java.util.List;

/** An all-to-all-v of one rank between symmetric windows: prints the form of ncclAlltoAllv and whether it was used. */
final class AlltoAllvScenario {
    private AlltoAllvScenario() {}

    public static void main(String... args) throws Exception {
        Device device = Device.host();
        long[] counts = {64};
        long[] displacements = {0};
        int[] elements = new int[64];
        boolean isNative;
        try (Communicator communicator = Communicator.createAll(List.of(device)).get(0);
                CudaStream stream = CudaStream.nonBlocking(device);
                DeviceBuffer<Int32> send = device.allocateForWindow(ElementType.INT32, 64);
                DeviceBuffer<Int32> recv = device.allocateForWindow(ElementType.INT32, 64);
                Window from = communicator.registerWindow(send, WindowFlag.COLL_SYMMETRIC);
                Window to = communicator.registerWindow(recv, WindowFlag.COLL_SYMMETRIC)) {
            send.fill(7);
            try (AllToAllvPlan<Int32> plan =
                    communicator.planAllToAllv(send, counts, displacements, recv, counts, displacements)) {
                isNative = plan.usesNativeCall();
                communicator.allToAllv(plan, stream);
                communicator.work(stream).await();
            }
            recv.copyTo(elements);
            if (elements[63] != 7 || !from.isOpen() || !to.isOpen()) {
                throw new AssertionError("expected 7, got " + elements[63]);
            }
        }
        System.out.println(NcclLibrary.get().alltoAllvForm() + " native " + isNative);
    }
}

package io.github.nccl4j.tests.highlevel;

import static io.github.nccl4j.tests.highlevel.RankThreads.STREAM;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CommunicatorConfig;
import io.github.nccl4j.highlevel.CudaEvent;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.HeldMemory;
import io.github.nccl4j.highlevel.MemoryStatistic;
import io.github.nccl4j.highlevel.PreMulSum;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.highlevel.Registration;
import io.github.nccl4j.highlevel.SignalWait;
import io.github.nccl4j.highlevel.Window;
import io.github.nccl4j.highlevel.WindowFlag;
import io.github.nccl4j.tools.support.Checks;
import java.util.List;
import org.bytedeco.javacpp.LongPointer;

/** Uses what needs native memory, in a process in which JavaCPP allocates none. */
final class MemoryLimitScenario {
    private static final Device HOST = Device.host();
    private static final String NAME = "beyond";

    private final Checks checks = new Checks();

    private MemoryLimitScenario() {}

    public static void main(String... args) throws Exception {
        MemoryLimitScenario scenario = new MemoryLimitScenario();
        scenario.checks.fails(OutOfMemoryError.class, () -> new LongPointer(1), "new LongPointer(1)");
        CommunicatorConfig config = CommunicatorConfig.builder()
                .commName(NAME)
                .netName("Socket")
                .minCtas(1)
                .maxCtas(2)
                .build();
        RankThreads.run(2, Communicator.builder().config(config), scenario::rank);
        CommunicatorConfig inBackground =
                CommunicatorConfig.builder().blocking(false).build();
        RankThreads.run(2, Communicator.builder().config(inBackground), scenario::rank);
        List<Communicator> all = Communicator.createAll(List.of(HOST, HOST));
        Group.run(() -> all.forEach(Communicator::close));
        // Names of communicators are kept.
        scenario.checks.equal(NAME.length() + 1L, HeldMemory.bytes(), "bytes of native memory");
        System.out.println("all done beyond the limit");
    }

    private void rank(Communicator communicator) throws Exception {
        try (DeviceBuffer<Int32> send = HOST.allocateForWindow(ElementType.INT32, 1024);
                DeviceBuffer<Int32> recv = HOST.allocateForWindow(ElementType.INT32, 1024);
                CudaStream stream = CudaStream.nonBlocking(HOST);
                CudaEvent event = CudaEvent.create(HOST)) {
            send.fill(1 + communicator.rank());
            sums(communicator, send, recv, stream);
            event.record(stream);
            event.synchronize();
            blocks(communicator, send, recv);
            signals(communicator, recv);
            others(communicator, send);
            if (communicator.isBlocking()) {
                try (Group group = Group.open()) {
                    communicator.allReduce(send, recv, ReduceOp.SUM, STREAM);
                    checks.isTrue(!group.simulate().isNegative(), "the time of a simulation");
                }
            }
            checks.isTrue(communicator.memory(MemoryStatistic.GPU_MEM_TOTAL) >= 0, "a statistic");
        }
    }

    private static int at(DeviceBuffer<Int32> buffer, int index) {
        int[] elements = new int[1024];
        buffer.copyTo(elements);
        return elements[index];
    }

    private void sums(Communicator communicator, DeviceBuffer<Int32> send, DeviceBuffer<Int32> recv, CudaStream stream)
            throws Exception {
        communicator.allReduce(send, recv, ReduceOp.SUM, stream);
        communicator.work(stream).await();
        checks.equal(3, at(recv, 1023), "a sum");
        try (PreMulSum<Int32> doubled = communicator.preMulSum(ElementType.INT32, 2);
                Registration registered = communicator.register(recv)) {
            Group.run(() -> communicator.allReduce(send, recv, doubled, stream));
            communicator.work(stream).await();
            checks.equal(6, at(recv, 0), "a sum of products, in " + registered);
        }
    }

    private void blocks(Communicator communicator, DeviceBuffer<Int32> send, DeviceBuffer<Int32> recv)
            throws Exception {
        long[] counts = {512, 512};
        long[] displacements = {0, 512};
        try (Window from = communicator.registerWindow(send, WindowFlag.COLL_SYMMETRIC);
                Window to = communicator.registerWindow(recv, WindowFlag.COLL_SYMMETRIC);
                var plan = communicator.planAllToAllv(send, counts, displacements, recv, counts, displacements)) {
            checks.isTrue(plan.usesNativeCall(), "VCCL's call between " + from + " and " + to);
            checks.isTrue(from.userAddress() == send.address(), "the address of a window");
            communicator.allToAllv(plan, STREAM);
            communicator.work(STREAM).await();
            checks.equal(1, at(recv, 0), "a block of rank 0");
            checks.equal(2, at(recv, 512), "a block of rank 1");
        }
    }

    private void signals(Communicator communicator, DeviceBuffer<Int32> memory) throws Exception {
        int other = 1 - communicator.rank();
        try (Window window = communicator.registerWindow(memory, WindowFlag.COLL_SYMMETRIC)) {
            communicator.signal(other, STREAM);
            communicator.waitSignal(STREAM, SignalWait.of(other, 1));
            communicator.signal(other, STREAM);
            Group.run(() -> communicator.waitSignal(STREAM, SignalWait.of(other, 1)));
            communicator.work(STREAM).await();
            checks.isTrue(window.isOpen(), "an open window");
        }
    }

    private void others(Communicator communicator, DeviceBuffer<Int32> buffer) {
        try (Communicator half = communicator.split(communicator.rank(), 0)) {
            checks.equal(1, half.size(), "ranks of a part");
            half.allReduce(buffer, ReduceOp.SUM, STREAM);
            half.growId();
        }
        if (communicator.rank() == 0) {
            communicator.splitNone();
        } else {
            communicator.split(0, 0).close();
        }
    }
}

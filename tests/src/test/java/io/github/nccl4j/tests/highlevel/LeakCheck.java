package io.github.nccl4j.tests.highlevel;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CommunicatorConfig;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.PreMulSum;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.tests.Held;
import io.github.nccl4j.tools.support.Checks;
import java.util.ArrayList;
import java.util.List;

/**
 * Makes and closes communicators and what belongs to them, over and over: {@code LeakCheck CYCLES}. Then open files,
 * threads and native memory must be as they were after the first tenth.
 */
final class LeakCheck {
    private LeakCheck() {}

    public static void main(String... args) throws Exception {
        int cycles = Integer.parseInt(args[0]);
        run(0, cycles / 10);
        Held before = Held.now();
        run(cycles / 10, cycles);
        Held after = Held.now();
        // What has nothing left to do may take its time to end.
        for (int i = 0; i < 25 && !leftSince(before, after).isEmpty(); i++) {
            after = Held.now();
        }
        System.out.println(before);
        System.out.println(after);
        Checks checks = new Checks();
        checks.equal(List.of(), leftSince(before, after), "what is left");
        System.out.println(cycles + " cycles left nothing");
    }

    private static List<String> leftSince(Held before, Held after) {
        List<String> left = new ArrayList<>(after.grownSince(before));
        if (left.isEmpty() && after.threads() > before.threads()) {
            left.add("threads: " + before.threads() + ", then " + after.threads());
        }
        return left;
    }

    private static void run(int from, int to) throws Exception {
        for (int i = from; i < to; i++) {
            cycle(i);
        }
    }

    private static void cycle(int number) throws Exception {
        int ranks = 1 + number % 2;
        boolean blocking = number % 3 != 0;
        List<Device> devices = new ArrayList<>();
        for (int rank = 0; rank < ranks; rank++) {
            devices.add(Device.host());
        }
        List<Communicator> all = Communicator.builder()
                .config(CommunicatorConfig.builder().blocking(blocking).build())
                .createAll(devices);
        List<Communicator> children = new ArrayList<>();
        try (DeviceBuffer<Float32> buffer = Device.host().allocate(ElementType.FLOAT32, 1000);
                DeviceBuffer<Float32> scalar = Device.host().allocate(ElementType.FLOAT32, 1);
                CudaStream stream = CudaStream.nonBlocking(Device.host())) {
            if (number % 4 == 0) {
                Group.run(() -> all.forEach(one -> children.add(one.split(0, one.rank()))));
            }
            List<PreMulSum<Float32>> operators = new ArrayList<>();
            all.forEach(one -> operators.add(one.preMulSum(ElementType.FLOAT32, 0.5)));
            // Left to the communicator.
            all.forEach(one -> one.preMulSum(scalar));
            Group.run(() -> {
                for (int rank = 0; rank < ranks; rank++) {
                    all.get(rank).allReduce(buffer.slice(100 * rank, 100), operators.get(rank), stream);
                }
            });
            givenUp(all, buffer, stream);
            all.get(0).work(stream).await();
            operators.get(0).close();
        }
        end(number, children);
        end(number, all);
    }

    private static void givenUp(List<Communicator> all, DeviceBuffer<Float32> buffer, CudaStream stream) {
        Group group = Group.open();
        try {
            all.forEach(one -> one.allReduce(buffer, ReduceOp.SUM, stream));
            all.get(0).split(0, 0);
        } finally {
            group.close();
        }
    }

    private static void end(int number, List<Communicator> all) throws Exception {
        if (number % 5 == 0) {
            all.forEach(Communicator::abort);
            return;
        }
        List<Thread> others = new ArrayList<>();
        for (Communicator one : all.subList(Math.min(1, all.size()), all.size())) {
            Thread thread = new Thread(one::close);
            thread.start();
            others.add(thread);
        }
        if (!all.isEmpty()) {
            all.get(0).close();
        }
        for (Thread thread : others) {
            thread.join();
        }
    }
}

package io.github.nccl4j.tests.highlevel;

import static io.github.nccl4j.tests.highlevel.RankThreads.STREAM;

import io.github.nccl4j.highlevel.CollectiveConfig;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CommunicatorConfig;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.ProfiledOperation;
import io.github.nccl4j.highlevel.Profiler;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.testing.Waiting;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;

/** Programs that use the profiler, on the host engine. A process decides once whether NCCL loads the plugin. */
final class ProfilerScenarios {
    private ProfilerScenarios() {}

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "operations" -> operations();
            case "switched" -> switched();
            case "ending" -> ending();
            case "jfr" -> jfr();
            case "late" -> late();
            case "plain" -> run(ProfilerScenarios::work);
            case "many" -> many();
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    private static void run(RankThreads.Body body) throws Exception {
        RankThreads.run(
                2,
                Communicator.builder()
                        .config(CommunicatorConfig.builder()
                                .commName("profiled")
                                .build()),
                body);
    }

    private static void work(Communicator communicator) {
        int other = 1 - communicator.rank();
        try (DeviceBuffer<Float32> numbers = Device.host().allocate(ElementType.FLOAT32, 1000);
                DeviceBuffer<Float32> more = Device.host().allocate(ElementType.FLOAT32, 2000)) {
            communicator.allReduce(numbers, ReduceOp.SUM, STREAM);
            communicator.broadcast(numbers, 1, STREAM);
            communicator.allGather(numbers, more, STREAM);
            Group.run(() -> {
                communicator.send(numbers, other, STREAM);
                communicator.recv(more.slice(0, 1000), other, STREAM);
            });
            communicator.allReduce(
                    numbers,
                    numbers,
                    ReduceOp.MAX,
                    STREAM,
                    CollectiveConfig.builder().profilerTag(42).build());
            communicator.work(STREAM).await();
        }
    }

    private static String describe(ProfiledOperation operation) {
        if (operation.kernelTime().isEmpty()
                || operation.kernelTime().get().isZero()
                || operation.queued().isEmpty()
                || operation.busBandwidth().getAsDouble() <= 0
                || operation.communicator() == 0) {
            throw new AssertionError(operation);
        }
        return String.join(
                " ",
                operation.function(),
                operation.name(),
                operation.rank() + "/" + operation.size() + "/" + operation.nodes(),
                "sequence " + operation.sequence().orElse(-1),
                "number " + operation.number(),
                operation.count() + " " + operation.type() + " " + operation.bytes(),
                "peer " + operation.peer(),
                operation.algorithm() + " " + operation.protocol() + " " + operation.channels(),
                "tag " + operation.tag());
    }

    private static void operations() throws Exception {
        Profiler.start();
        List<ProfiledOperation> all = Collections.synchronizedList(new ArrayList<>());
        Profiler.subscribe(operation -> {
            throw new IllegalStateException("a faulty subscriber");
        });
        Profiler.Subscription subscription = Profiler.subscribe(all::add);
        run(ProfilerScenarios::work);
        Profiler.stop();
        subscription.close();
        all.stream()
                .filter(operation -> operation.rank() == 0)
                .map(ProfilerScenarios::describe)
                .forEach(System.out::println);
        System.out.println(Profiler.statistics());
        // Not recorded.
        run(ProfilerScenarios::work);
        Profiler.flush();
        System.out.println("later: " + Profiler.statistics().operations());
    }

    /** Prepared by a setting, and switched on after some operations. */
    private static void switched() throws Exception {
        List<ProfiledOperation> all = Collections.synchronizedList(new ArrayList<>());
        Profiler.subscribe(all::add);
        run(communicator -> {
            try (DeviceBuffer<Float32> numbers = Device.host().allocate(ElementType.FLOAT32, 1)) {
                for (int i = 1; i <= 7; i++) {
                    communicator.allReduce(numbers, ReduceOp.SUM, STREAM);
                    communicator.broadcast(numbers, 0, STREAM);
                    communicator.work(STREAM).await();
                    if (communicator.rank() == 0 && i == 3) {
                        Profiler.start();
                        System.out.println(Profiler.isRecording());
                    } else if (communicator.rank() == 0 && i == 5) {
                        Profiler.stop();
                    }
                }
            }
        });
        all.stream()
                .filter(operation -> operation.rank() == 0)
                .map(ProfilerScenarios::describe)
                .forEach(System.out::println);
    }

    /** The recording stops while a kernel waits for the other rank; nobody flushes after that. */
    private static void ending() throws Exception {
        List<ProfiledOperation> all = Collections.synchronizedList(new ArrayList<>());
        CountDownLatch stopped = new CountDownLatch(1);
        Profiler.start();
        Profiler.subscribe(all::add);
        run(communicator -> {
            try (CudaStream stream = CudaStream.nonBlocking(Device.host());
                    DeviceBuffer<Float32> numbers = Device.host().allocate(ElementType.FLOAT32, 1)) {
                if (communicator.rank() == 1) {
                    stopped.await();
                }
                communicator.allReduce(numbers, ReduceOp.SUM, stream);
                if (communicator.rank() == 0) {
                    Waiting.until(
                            "a kernel under way", () -> Profiler.statistics().pending() > 0);
                    Profiler.stop();
                    System.out.println("at the stop: " + all.size());
                    stopped.countDown();
                }
                communicator.work(stream).await();
            }
        });
        Waiting.until("an operation after the stop", () -> !all.isEmpty(), Duration.ofSeconds(30));
        all.stream().map(ProfilerScenarios::describe).forEach(System.out::println);
    }

    private static void jfr() throws Exception {
        Profiler.start();
        Path file = Files.createTempFile("profile", ".jfr");
        try (Recording recording = new Recording()) {
            recording.start();
            run(ProfilerScenarios::work);
            Profiler.stop();
            recording.stop();
            recording.dump(file);
        }
        List<RecordedEvent> events = RecordingFile.readAllEvents(file);
        Files.delete(file);
        for (RecordedEvent event : events) {
            if (event.getEventType().getName().equals("nccl4j.Kernel") && event.getInt("rank") == 1) {
                System.out.println("kernel " + event.getString("function") + " " + event.getLong("sequence"));
                if (event.getDuration("kernelTime").isNegative()
                        || event.getDuration("queued").isNegative()
                        || !event.getString("communicator").equals("profiled")) {
                    throw new AssertionError(event);
                }
            } else if (event.getEventType().getName().equals("nccl4j.Operation") && event.getInt("rank") == 1) {
                System.out.println("call " + event.getString("function") + " " + event.getLong("sequence"));
            }
        }
    }

    private static void late() throws Exception {
        run(ProfilerScenarios::work);
        try {
            Profiler.start();
        } catch (IllegalStateException expected) {
            System.out.println(expected.getMessage());
        }
        System.out.println(Profiler.statistics());
    }

    /** Many operations: all are recorded, and nothing is left over. */
    private static void many() throws Exception {
        Profiler.start();
        run(communicator -> {
            try (DeviceBuffer<Float32> numbers = Device.host().allocate(ElementType.FLOAT32, 1)) {
                for (int i = 0; i < 20_000; i++) {
                    communicator.allReduce(numbers, ReduceOp.SUM, STREAM);
                    if (i % 500 == 0) {
                        // The thread of the profiler may be late on a busy machine.
                        Profiler.flush();
                    }
                }
                communicator.work(STREAM).await();
            }
        });
        Profiler.stop();
        System.out.println(Profiler.statistics());
    }
}

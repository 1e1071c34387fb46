package io.github.nccl4j.tests.highlevel;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CommunicatorConfig;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.NcclLog;
import io.github.nccl4j.highlevel.NcclResultException;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.highlevel.UniqueId;
import io.github.nccl4j.testing.TestLog;
import io.github.nccl4j.testing.Waiting;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.logging.Level;
import java.util.logging.Logger;

/** What the tests of the log do in a JVM of its own: {@code main(scenario)}. Prints what it saw. */
final class LogScenarios {
    private static final Logger LOGGER = Logger.getLogger(NcclLog.LOGGER);

    private LogScenarios() {}

    public static void main(String... args) throws Exception {
        LOGGER.setUseParentHandlers(false);
        LOGGER.setLevel(Level.ALL);
        switch (args[0]) {
            case "failure" -> failure(Integer.parseInt(args[1]));
            case "slow" -> slow(Integer.parseInt(args[1]));
            case "late" -> late();
            case "old" -> old();
            case "unique-id" -> uniqueId();
            default -> throw new IllegalArgumentException(args[0]);
        }
        System.out.flush();
    }

    /** Returns the lines as soon as there are so many. */
    private static List<String> awaitLines(TestLog log, int lines) throws InterruptedException {
        return Waiting.value(lines + " lines of the log", log::lines, now -> now.size() >= lines);
    }

    /** An operation fails; what is logged and what the exception carries. */
    private static void failure(int lines) throws InterruptedException {
        TestLog log = new TestLog(NcclLog.LOGGER);
        if (System.getProperty("nccl4j.log") == null && lines > 0) {
            NcclLog.start(NcclLog.Level.INFO);
        }
        CommunicatorConfig config = CommunicatorConfig.builder()
                .commName("train")
                .ignoreUnsupported()
                .build();
        try (Communicator communicator = Communicator.builder()
                        .config(config)
                        .device(Device.host())
                        .create(UniqueId.create(), 1, 2);
                DeviceBuffer<Float32> buffer = Device.host().allocate(ElementType.FLOAT32, 1)) {
            communicator.allReduce(buffer, ReduceOp.SUM, CudaStream.defaultOf(Device.host()));
        } catch (NcclResultException e) {
            System.out.println(e.getMessage());
            e.warnings().forEach(line -> System.out.println("carried: " + line));
        }
        awaitLines(log, lines).forEach(line -> System.out.println("logged: " + line));
    }

    /** NCCL writes while the logger takes nothing; then the logger gets all of it. */
    private static void slow(int lines) throws InterruptedException {
        CountDownLatch open = new CountDownLatch(1);
        LOGGER.setFilter(line -> {
            try {
                open.await();
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
            return true;
        });
        TestLog log = new TestLog(NcclLog.LOGGER);
        NcclLog.start(NcclLog.Level.WARN);
        Communicator communicator = Communicator.builder().device(Device.host()).create(UniqueId.create(), 0, 2);
        try (DeviceBuffer<Float32> buffer = Device.host().allocate(ElementType.FLOAT32, 1)) {
            communicator.broadcast(buffer, 0, CudaStream.defaultOf(Device.host()));
        }
        System.out.println("last warning while the logger waits: "
                + NcclLog.warnings().get(15).text().split(" 0")[0]);
        open.countDown();
        // The version, which this library always writes, too.
        List<String> logged = awaitLines(log, lines + 1);
        boolean inOrder = true;
        for (int i = 0; i < lines; i++) {
            inOrder &= logged.get(i + 1).startsWith("WARNING: rank 0: line " + i + " 0");
        }
        System.out.println(logged.size() - 1 + " lines, in order: " + inOrder);
        communicator.abort();
    }

    /**
     * NCCL warns in a call that succeeds, before a communicator is made, which is when its text is looked at; later a call
     * fails without a word, and one twice with the same words.
     */
    private static void old() throws InterruptedException {
        NcclLog.start(NcclLog.Level.WARN);
        CudaStream stream = CudaStream.defaultOf(Device.host());
        Communicator communicator = Communicator.builder().device(Device.host()).create(UniqueId.create(), 0, 2);
        try (DeviceBuffer<Float32> buffer = Device.host().allocate(ElementType.FLOAT32, 1)) {
            communicator.broadcast(buffer, 0, stream);
            communicator.work(stream).await();
            Communicator.builder()
                    .device(Device.host())
                    .create(UniqueId.create(), 0, 2)
                    .abort();
            Thread.sleep(500);
            List<Runnable> failing = List.of(
                    () -> communicator.reduce(buffer, ReduceOp.SUM, 0, stream),
                    () -> communicator.allReduce(buffer, ReduceOp.SUM, stream),
                    () -> communicator.allReduce(buffer, ReduceOp.SUM, stream));
            for (Runnable call : failing) {
                try {
                    call.run();
                } catch (NcclResultException e) {
                    System.out.println(e.operation() + ": '" + e.lastError() + "' "
                            + e.warnings().stream().map(NcclLog.Line::text).toList());
                }
            }
        }
        System.out.println("in all: " + NcclLog.warnings().size());
        communicator.abort();
    }

    private static void late() {
        NcclLibrary.get();
        UniqueId.create();
        try {
            NcclLog.start(NcclLog.Level.WARN);
            System.out.println("started: " + NcclLog.isStarted());
            NcclLog.start(NcclLog.Level.INFO);
        } catch (IllegalStateException e) {
            System.out.println(e.getMessage());
        }
    }

    /** A failure that a real library has without a GPU: no interface to meet by. */
    private static void uniqueId() {
        NcclLog.start(NcclLog.Level.WARN);
        try {
            UniqueId.create();
            System.out.println("created");
        } catch (NcclResultException e) {
            e.warnings()
                    .forEach(line -> System.out.println(line.level() + "\t" + line.place() + "\t" + line.text() + "\t"
                            + e.lastError().equals(line.text())));
        }
        System.out.flush();
        // Releases before 2.22 keep a lock for ever now.
        Runtime.getRuntime().exit(0);
    }
}

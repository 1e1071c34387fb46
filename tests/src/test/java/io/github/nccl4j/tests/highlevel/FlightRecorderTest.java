package io.github.nccl4j.tests.highlevel;

import static io.github.nccl4j.tests.highlevel.RankThreads.STREAM;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CommunicatorConfig;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.FlightRecorder;
import io.github.nccl4j.highlevel.FlightRecorder.Operation;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.NcclRemoteException;
import io.github.nccl4j.highlevel.PreMulSum;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.testing.TestLog;
import io.github.nccl4j.testing.Waiting;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.OptionalInt;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What is recorded of operations, and how it is told; on the host engine. */
@Timeout(value = 10, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class FlightRecorderTest {
    private static final String DUMP = "nccl4j.recorder.dump";

    @TempDir
    Path folder;

    @AfterEach
    void noDumps() {
        System.clearProperty(DUMP);
    }

    private static Communicator alone() {
        return Communicator.createAll(List.of(Device.host())).get(0);
    }

    private static DeviceBuffer<Int32> numbers(int count) {
        return Device.host().allocate(ElementType.INT32, count);
    }

    @Test
    void everyOperationIsRecorded() {
        try (Communicator communicator = alone();
                DeviceBuffer<Int32> one = numbers(4);
                DeviceBuffer<Int32> other = numbers(4)) {
            assertEquals(List.of(), communicator.flightRecorder().operations());
            communicator.allReduce(one, ReduceOp.MAX, STREAM);
            communicator.broadcast(one, 0, STREAM);
            try (PreMulSum<Int32> twice = communicator.preMulSum(ElementType.INT32, 2)) {
                communicator.reduce(one, twice, 0, STREAM);
            }
            communicator.sendRecv(one, 0, other, 0, STREAM);
            communicator.signal(0, STREAM);
            communicator.waitSignal(0, STREAM);
            Group.run(() -> communicator.allGather(one, other, STREAM));
            List<Operation> all = communicator.flightRecorder().operations();
            assertEquals(
                    List.of(
                            "1 ncclAllReduce 4 int32 MAX",
                            "2 ncclBroadcast 4 int32 rank 0",
                            "3 ncclReduce 4 int32 PreMulSum rank 0",
                            "4 ncclSend 4 int32 rank 0 group 1",
                            "5 ncclRecv 4 int32 rank 0 group 1",
                            "6 ncclSignal 0 rank 0",
                            "7 ncclWaitSignal 1 rank 0",
                            "8 ncclAllGather 4 int32 group 2"),
                    all.stream().map(FlightRecorderTest::text).toList());
            assertEquals(8, communicator.flightRecorder().recorded());
            assertTrue(all.stream().allMatch(each -> each.enqueued().isPresent()));
            assertTrue(all.stream().allMatch(each -> each.done().isEmpty()), "nobody has asked");
            communicator.work(STREAM).await();
            assertTrue(communicator.flightRecorder().operations().stream()
                    .allMatch(each -> each.done().isPresent()));
        }
    }

    private static String text(Operation operation) {
        return operation.sequence() + " " + operation.function() + " " + operation.count()
                + operation.type().map(type -> " " + type).orElse("")
                + operation.op().map(op -> " " + op).orElse("")
                + text(" rank ", operation.peer())
                + text(" group ", operation.group());
    }

    private static String text(String what, OptionalInt number) {
        return number.isPresent() ? what + number.getAsInt() : "";
    }

    @Test
    void aGroupHasOneNumberInEachOfItsCommunicators() {
        List<Communicator> communicators =
                Stream.generate(FlightRecorderTest::alone).limit(6).toList();
        try (DeviceBuffer<Int32> one = numbers(4)) {
            Group.run(() -> {
                communicators.forEach(each -> each.allReduce(one, ReduceOp.SUM, STREAM));
                communicators.forEach(each -> each.broadcast(one, 0, STREAM));
            });
            Communicator first = communicators.get(0);
            Group.run(() -> first.reduce(one, ReduceOp.MIN, 0, STREAM));
            List<String> both =
                    List.of("1 ncclAllReduce 4 int32 SUM group 1", "2 ncclBroadcast 4 int32 rank 0 group 1");
            for (Communicator each : communicators.subList(1, 6)) {
                assertEquals(both, texts(each));
            }
            assertEquals(both, texts(first).subList(0, 2));
            assertEquals("3 ncclReduce 4 int32 MIN rank 0 group 2", texts(first).get(2));
        } finally {
            communicators.forEach(Communicator::close);
        }
    }

    private static List<String> texts(Communicator communicator) {
        return communicator.flightRecorder().operations().stream()
                .map(FlightRecorderTest::text)
                .toList();
    }

    @Test
    void doesNotRecordDiscardedOperations() {
        try (Communicator communicator = alone();
                DeviceBuffer<Int32> one = numbers(4)) {
            Group group = Group.open();
            communicator.allReduce(one, ReduceOp.SUM, STREAM);
            group.close();
            assertThrows(IllegalArgumentException.class, () -> communicator.broadcast(one, 1, STREAM));
            assertEquals(0, communicator.flightRecorder().recorded());
        }
    }

    @Test
    void theCallInWhichAThreadWaitsIsTold() throws Exception {
        List<Communicator> both = Communicator.createAll(List.of(Device.host(), Device.host()));
        Instant before = Instant.now().truncatedTo(ChronoUnit.MILLIS);
        FutureTask<Communicator> split = new FutureTask<>(() -> both.get(0).split(0, 0));
        try {
            String idle = both.get(0).flightRecorder().toJson();
            assertFalse(idle.contains("\"call\""), idle);
            new Thread(split).start();
            String waits = Waiting.value(
                    "a call that waits",
                    () -> both.get(0).flightRecorder().toJson(),
                    json -> json.contains("\"call\": \"ncclCommSplit\""));
            Matcher called = Pattern.compile("\"called\": \"([^\"]+)\"").matcher(waits);
            assertTrue(called.find(), waits);
            Instant time = Instant.parse(called.group(1));
            assertFalse(time.isBefore(before) || time.isAfter(Instant.now()), time + " is not after " + before);
            both.get(1).split(0, 0).close();
            split.get(1, TimeUnit.MINUTES).close();
            idle = both.get(0).flightRecorder().toJson();
            assertFalse(idle.contains("\"call\""), idle);
        } finally {
            both.forEach(Communicator::abort);
        }
    }

    @Test
    void keepsTheConfiguredNumber() {
        try (Communicator communicator = Communicator.builder()
                        .flightRecorder(3)
                        .createAll(List.of(Device.host()))
                        .get(0);
                DeviceBuffer<Int32> one = numbers(4)) {
            for (int i = 0; i < 10; i++) {
                communicator.allReduce(one, ReduceOp.SUM, STREAM);
            }
            assertEquals(
                    List.of(8L, 9L, 10L),
                    communicator.flightRecorder().operations().stream()
                            .map(Operation::sequence)
                            .toList());
            // A derived communicator keeps the same number.
            try (Communicator part = communicator.split(0, 0)) {
                for (int i = 0; i < 10; i++) {
                    part.allReduce(one, ReduceOp.SUM, STREAM);
                }
                assertEquals(3, part.flightRecorder().operations().size());
            }
        }
    }

    /** Each check of the watchdog takes the processor from a rank, and sets the clock. */
    @Test
    void theClockIsSetAboutTenTimesASecondWhileOperationsAreCalled() throws Exception {
        int calls = 200;
        try (Communicator communicator = alone();
                DeviceBuffer<Int32> one = numbers(4)) {
            for (int i = 0; i < calls; i++) {
                communicator.allReduce(one, ReduceOp.SUM, STREAM);
                Thread.sleep(5);
            }
            List<Operation> all = communicator.flightRecorder().operations();
            assertEquals(calls, all.size());
            long first = all.get(0).enqueued().orElseThrow().toEpochMilli();
            long last = all.get(calls - 1).enqueued().orElseThrow().toEpochMilli();
            long times = all.stream().map(Operation::enqueued).distinct().count();
            assertTrue(times > 1 && times <= 5 + (last - first) / 50, times + " times in " + (last - first) + " ms");
        }
    }

    @Test
    void dumpContainsAllFields() throws Exception {
        Path file = folder.resolve("record.json");
        try (Communicator communicator = Communicator.builder()
                        .config(CommunicatorConfig.builder()
                                .commName("a \"name\"\n")
                                .build())
                        .createAll(List.of(Device.host()))
                        .get(0);
                DeviceBuffer<Int32> one = numbers(4)) {
            assertTrue(communicator.flightRecorder().toJson().contains("\"recorded\": 0, \"collectives\": 0,"));
            communicator.reduce(one, ReduceOp.SUM, 0, STREAM);
            communicator.flightRecorder().dump(file);
            String json = Files.readString(file);
            assertTrue(json.startsWith("{\"format\": \"nccl4j flight recorder 1\", "), json);
            assertTrue(json.contains("\"name\": \"a \\\"name\\\"\\n\", \"rank\": 0, \"size\": 1,"), json);
            assertTrue(
                    json.contains("\"state\": \"OPEN\", \"failure\": null, \"recorded\": 1, \"collectives\": 1,"),
                    json);
            assertTrue(json.contains("\"size\": 1, \"world\": 0, \"device\""), json);
            assertTrue(
                    json.contains(
                            "\n{\"sequence\": 1, \"group\": null, \"function\": \"ncclReduce\", \"count\": 4,"
                                    + " \"type\": \"int32\", \"op\": \"SUM\", \"peer\": 0, \"stream\": \"0x0\", \"enqueued\": \"2"),
                    json);
            assertTrue(json.endsWith("\"done\": null}\n]}"), json);
            List<Path> files = FlightRecorder.dumpAll(folder.resolve("all"));
            assertEquals(1, files.size());
            assertTrue(Files.readString(files.get(0)).contains("\"recorded\": 1"));
        }
        assertEquals(List.of(), FlightRecorder.dumpAll(folder.resolve("none")));
    }

    /** Rank 1 leaves; rank 0 gets an exception. */
    private static String failureOfRank0() throws Exception {
        String[] message = new String[1];
        RankThreads.run(2, communicator -> {
            try (DeviceBuffer<Int32> one = numbers(4)) {
                communicator.allReduce(one, ReduceOp.SUM, STREAM);
                communicator.work(STREAM).await();
                if (communicator.rank() == 0) {
                    NcclRemoteException failure = assertThrows(
                            NcclRemoteException.class, () -> communicator.allReduce(one, ReduceOp.MAX, STREAM));
                    message[0] = failure.getMessage();
                }
                communicator.abort();
            }
        });
        return message[0];
    }

    @Test
    void failureListsLastOperations() throws Exception {
        String message = failureOfRank0();
        assertTrue(message.contains("\nLast operations of this rank:\n"), message);
        assertTrue(message.contains("ncclAllReduce of 4 int32 (operation 1), called "), message);
        // Must end within the limit of the test.
        assertTrue(message.matches("(?s).*, called [0-9]{1,2}\\.[0-9] s ago, done\n.*"), message);
        assertTrue(message.contains(" ago, done\n"), message);
        assertTrue(message.contains("ncclAllReduce of 4 int32 (operation 2), called "), message);
        assertTrue(message.endsWith(" ago, not observed as done"), message);
    }

    @Test
    void failureWritesFileIfConfigured() throws Exception {
        System.setProperty(DUMP, folder.resolve("new").toString());
        String message;
        String other;
        try (Communicator open = alone()) {
            message = failureOfRank0();
            other = id(open);
        }
        try (Stream<Path> files = Files.list(folder.resolve("new"))) {
            Path file = files.filter(each -> each.toString().contains(other))
                    .findFirst()
                    .orElseThrow();
            assertTrue(Files.readString(file).contains("\"state\": \"OPEN\", \"failure\": null,"), file::toString);
            // That of the failure is found without it.
            Files.delete(file);
        }
        try (Stream<Path> files = Files.list(folder.resolve("new"))) {
            Path file = files.filter(each -> each.toString().endsWith("-rank0.json"))
                    .findFirst()
                    .orElseThrow();
            assertTrue(message.endsWith("\nFlight recorder: " + file), message);
            String json = Files.readString(file);
            assertTrue(json.contains("\"failure\": \"ncclAllReduce of 4 int32: ncclRemoteError (6)\""), json);
            assertTrue(json.contains("\"sequence\": 2"), json);
        }
    }

    @Test
    void reportsFileThatCannotBeWritten() throws Exception {
        System.setProperty(DUMP, Files.createFile(folder.resolve("file")) + "/in-a-file");
        try (TestLog log = new TestLog()) {
            String message = failureOfRank0();
            assertTrue(message.contains("could not be written"), message);
            String warning = "WARNING: the flight recorder could not write " + folder.resolve("file");
            assertTrue(log.lines().stream().anyMatch(line -> line.startsWith(warning)), () -> "" + log.lines());
        }
    }

    @Test
    void allRanksHaveTheSameId() throws Exception {
        String[] ids = new String[2];
        RankThreads.run(2, communicator -> {
            try (Communicator part = communicator.split(0, 0);
                    Communicator next = communicator.split(0, 0)) {
                ids[part.rank()] = id(part) + " " + id(next);
            }
        });
        assertEquals(ids[0], ids[1]);
        assertTrue(ids[0].matches("([0-9a-f]{8})\\.0\\.0 \\1\\.1\\.0"), ids[0]);
    }

    private static String id(Communicator communicator) {
        return communicator.flightRecorder().toJson().replaceFirst("(?s).*\"id\": \"([^\"]*)\".*", "$1");
    }
}

package io.github.nccl4j.tests.highlevel;

import static io.github.nccl4j.tests.highlevel.RankThreads.STREAM;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CommunicatorConfig;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.NcclRemoteException;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.tests.ChildJvm;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Events for JDK Flight Recorder, and a runtime that has none; on the host engine. */
@Timeout(value = 10, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class JfrTest {
    /** All-reduces once by itself and once in a group, then loses the other rank. */
    private static void work(Communicator communicator) {
        try (DeviceBuffer<Int32> numbers = Device.host().allocate(ElementType.INT32, 5)) {
            communicator.allReduce(numbers, ReduceOp.MAX, STREAM);
            Group.run(() -> communicator.broadcast(numbers, 1, STREAM));
            communicator.work(STREAM).await();
            if (communicator.rank() == 0) {
                assertThrows(NcclRemoteException.class, () -> communicator.allReduce(numbers, ReduceOp.SUM, STREAM));
            }
            communicator.abort();
        }
    }

    private static void run() throws Exception {
        RankThreads.run(
                2,
                Communicator.builder()
                        .config(CommunicatorConfig.builder()
                                .commName("observed")
                                .build()),
                JfrTest::work);
    }

    private static List<RecordedEvent> ofRank0(List<RecordedEvent> events, String name) {
        return events.stream()
                .filter(event -> event.getEventType().getName().equals(name) && event.getInt("rank") == 0)
                .toList();
    }

    @Test
    void eventsDescribeOperations(@TempDir Path folder) throws Exception {
        List<RecordedEvent> events;
        try (Recording recording = new Recording()) {
            recording.start();
            run();
            recording.stop();
            recording.dump(folder.resolve("recording.jfr"));
            events = RecordingFile.readAllEvents(folder.resolve("recording.jfr")).stream()
                    .filter(event -> event.getEventType().getName().startsWith("nccl4j."))
                    .toList();
        }
        List<RecordedEvent> operations = ofRank0(events, "nccl4j.Operation");
        assertEquals(3, operations.size(), events::toString);
        RecordedEvent reduce = operations.get(0);
        assertEquals("observed", reduce.getString("communicator"));
        assertEquals(2, reduce.getInt("size"));
        assertEquals("ncclAllReduce", reduce.getString("function"));
        assertEquals(1, reduce.getLong("sequence"));
        assertEquals(0, reduce.getInt("group"));
        assertEquals(5, reduce.getLong("count"));
        assertEquals("int32", reduce.getString("type"));
        assertEquals("MAX", reduce.getString("op"));
        assertEquals(-1, reduce.getInt("peer"));
        RecordedEvent broadcast = operations.get(1);
        assertEquals("ncclBroadcast", broadcast.getString("function"));
        assertEquals(1, broadcast.getInt("group"));
        assertEquals(1, broadcast.getInt("peer"));
        assertEquals(2, count(events, "nccl4j.Group"));
        assertEquals(1, ofRank0(events, "nccl4j.Wait").size());
        assertEquals(
                "ncclCommInitRankConfig",
                ofRank0(events, "nccl4j.Creation").get(0).getString("function"));
        RecordedEvent failure = ofRank0(events, "nccl4j.Failure").get(0);
        // Of the call, or what the watchdog has found before it.
        assertTrue(
                failure.getString("message")
                        .matches("(?s).* failed at rank 0 of communicator 'observed': ncclRemoteError .*"),
                failure::toString);
        // Nobody records any more.
        run();
    }

    private static long count(List<RecordedEvent> events, String name) {
        return events.stream()
                .filter(event -> event.getEventType().getName().equals(name))
                .count();
    }

    @Test
    void worksWithoutJfrModule() {
        ChildJvm.Outcome outcome = new ChildJvm()
                .property("nccl4j.engine", "host")
                .option("--limit-modules=java.base,java.logging,jdk.net,jdk.unsupported")
                .run(Without.class);
        assertEquals(0, outcome.exitCode(), outcome.output());
        assertTrue(outcome.output().contains("without: 1 operation"), outcome::output);
    }

    /** In a runtime without the module. */
    static final class Without {
        private Without() {}

        public static void main(String[] args) {
            if (ModuleLayer.boot().findModule("jdk.jfr").isPresent()) {
                throw new AssertionError("the runtime has it");
            }
            try (Communicator communicator =
                            Communicator.createAll(List.of(Device.host())).get(0);
                    DeviceBuffer<Int32> numbers = Device.host().allocate(ElementType.INT32, 5)) {
                communicator.allReduce(numbers, ReduceOp.MAX, STREAM);
                communicator.work(STREAM).await();
                System.out.println("without: " + communicator.flightRecorder().recorded() + " operation");
            }
        }
    }
}

package io.github.nccl4j.highlevel;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.internal.diagnostics.FlightRecord;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The log to which a report of the profiler belongs, and the files of communicators that fail one after the other. */
class RecorderOfACommunicatorTest {
    private final List<Communicator> created = new ArrayList<>();

    private Communicator create(String name) {
        Communicator communicator = Communicator.builder()
                .device(Device.host())
                .config(CommunicatorConfig.builder().commName(name).build())
                .create(UniqueId.create(), 0, 1);
        created.add(communicator);
        return communicator;
    }

    @AfterEach
    void close() {
        created.forEach(Communicator::close);
    }

    private static void found(Communicator expected, long after) {
        assertSame(expected.core().operationLog(), FlightRecord.logOf("reported", 0, 1, after));
    }

    @Test
    void itIsTheNextOneAfterTheTime() {
        List<Long> times = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
            times.add(System.nanoTime());
            create("reported");
        }
        for (int i = 0; i < 8; i++) {
            found(created.get(i), times.get(i));
        }
        assertNull(FlightRecord.logOf("reported", 0, 1, System.nanoTime()));
    }

    @Test
    void itHasTheNameTheRankAndTheSize() {
        long time = System.nanoTime();
        create("reported");
        assertNull(FlightRecord.logOf("other", 0, 1, time));
        assertNull(FlightRecord.logOf("reported", 1, 1, time));
        assertNull(FlightRecord.logOf("reported", 0, 2, time));
        found(created.get(0), time);
    }

    /** The profiler reports later than the communicator ends. */
    @Test
    void theLastOnesThatHaveEndedAreFound() {
        long time = System.nanoTime();
        Communicator ended = create("reported");
        ended.close();
        found(ended, time);
        for (int i = 0; i < 63; i++) {
            create("next").close();
        }
        found(ended, time);
        create("next").close();
        assertNull(FlightRecord.logOf("reported", 0, 1, time));
    }

    /** What ends an operation may be that the program or the watchdog has given up the communicator that failed first. */
    @Test
    void anOperationThatWaitedAtTheFirstFailureWaitsInTheFile(@TempDir Path folder) throws IOException {
        System.setProperty("nccl4j.recorder.dump", folder.toString());
        try (DeviceBuffer<Int32> buffer = Device.host().allocate(ElementType.INT32, 4)) {
            Communicator first = create("first");
            Communicator other = create("other");
            CudaStream stream = CudaStream.defaultOf(Device.host());
            other.allReduce(buffer, ReduceOp.SUM, stream);
            first.core().recorder().dumpFor("is lost");
            other.work(stream).await();
            String waited = failed(other, "is lost, too");
            assertTrue(waited.contains("\"failure\": \"is lost, too\""), waited);
            assertTrue(waited.endsWith("\"done\": null}\n]}"), waited);
            other.allReduce(buffer, ReduceOp.SUM, stream);
            other.work(stream).await();
            String later = failed(other, "is lost later");
            assertFalse(later.contains("\"done\": null"), later);
        } finally {
            System.clearProperty("nccl4j.recorder.dump");
        }
    }

    private static String failed(Communicator communicator, String failure) throws IOException {
        return Files.readString(
                Path.of(communicator.core().recorder().dumpFor(failure).replace("Flight recorder: ", "")));
    }
}

package io.github.nccl4j.highlevel;

import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** The log to which a report of the profiler belongs, which has the properties of the communicator but no handle. */
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
        assertSame(expected.core().operationLog(), FlightRecorder.logOf("reported", 0, 1, after));
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
        assertNull(FlightRecorder.logOf("reported", 0, 1, System.nanoTime()));
    }

    @Test
    void itHasTheNameTheRankAndTheSize() {
        long time = System.nanoTime();
        create("reported");
        assertNull(FlightRecorder.logOf("other", 0, 1, time));
        assertNull(FlightRecorder.logOf("reported", 1, 1, time));
        assertNull(FlightRecorder.logOf("reported", 0, 2, time));
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
        assertNull(FlightRecorder.logOf("reported", 0, 1, time));
    }
}

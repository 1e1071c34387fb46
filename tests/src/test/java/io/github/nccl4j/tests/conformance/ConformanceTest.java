package io.github.nccl4j.tests.conformance;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.UniqueId;
import io.github.nccl4j.tests.ChildJvm;
import io.github.nccl4j.tests.oracle.ElementFormat;
import io.github.nccl4j.tests.oracle.Reduction;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The conformance suite on the host engine, the ranks in this JVM. */
@Timeout(value = 120, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class ConformanceTest {
    @TempDir
    Path folder;

    private static void assertAllPassed(Report report) {
        assertEquals(List.of(), report.failures());
        assertEquals(0, report.skipped(), "the host engine has everything");
        assertTrue(report.passed() > 6000, report.passed() + " passed");
    }

    @ParameterizedTest
    @CsvSource({"2, true", "3, false", "4, true"})
    void ranksInThreads(int size, boolean blocking) throws Exception {
        assertAllPassed(new Ranks(blocking, ConformanceCheck::suite).inThreads(size));
    }

    @ParameterizedTest
    @CsvSource({"2, false", "3, true"})
    void allRanksInOneThread(int size, boolean blocking) {
        assertAllPassed(new Ranks(blocking, ConformanceCheck::suite).inOneThread(size));
    }

    @Test
    void memoryInWindows() throws Exception {
        assertAllPassed(new Ranks(true, ConformanceCheck::suiteInWindows).inThreads(3));
        assertAllPassed(new Ranks(false, ConformanceCheck::suiteInWindows).inOneThread(2));
    }

    @Test
    void ranksInProcesses() {
        Path file = folder.resolve("id");
        List<ChildJvm.Running> ranks = new ArrayList<>();
        for (int rank = 0; rank < 2; rank++) {
            ranks.add(new ChildJvm()
                    .property("nccl4j.engine", "host")
                    .start(
                            ConformanceCheck.class,
                            "--rank",
                            "" + rank,
                            "--size",
                            "2",
                            "--id-file",
                            file.toString(),
                            "blocking",
                            "plain"));
        }
        for (ChildJvm.Running rank : ranks) {
            ChildJvm.Outcome outcome = rank.await();
            assertEquals(0, outcome.exitCode(), outcome.output());
            assertTrue(outcome.output().matches("(?s).*\\d{4} passed, 0 failed, 0 skipped\n"), outcome.output());
        }
    }

    @Test
    void aWrongElementAndOneBeyondTheBufferAreSeen() {
        List<ByteBuffer> inputs = List.of(floats(1, 2, 4), floats(0.1f, 0, 0));
        Expectation exact = new Expectation(ElementFormat.FLOAT32, inputs, floats(9, 9), true);
        exact.reduced(Reduction.SUM, 0, 1, 1);
        exact.compare(floats(9, 1.1f));
        assertThrows(AssertionError.class, () -> exact.compare(floats(9, Math.nextUp(1.1f))));
        assertThrows(AssertionError.class, () -> exact.compare(floats(8, 1.1f)));
        Expectation near = new Expectation(ElementFormat.FLOAT32, inputs, floats(9, 9), false);
        near.reduced(Reduction.SUM, 0, 1, 1);
        near.compare(floats(9, Math.nextUp(1.1f)));
        assertThrows(AssertionError.class, () -> near.compare(floats(9, 1.10001f)));
        assertThrows(AssertionError.class, () -> near.compare(floats(Math.nextUp(9f), 1.1f)));
        try (Communicator alone = Communicator.create(UniqueId.create(), 0, 1);
                Member member = new Member(alone)) {
            Zone<Float32> zone = new Zone<>(member, 0, ElementType.FLOAT32, floats(1, 2), true);
            assertEquals(floats(1, 2), zone.content());
            zone.part(0, 3).fill(7.0);
            assertThrows(AssertionError.class, zone::content);
        }
    }

    private static ByteBuffer floats(float... values) {
        ByteBuffer buffer = ByteBuffer.allocate(values.length * Float.BYTES).order(ByteOrder.nativeOrder());
        buffer.asFloatBuffer().put(values);
        return buffer;
    }
}

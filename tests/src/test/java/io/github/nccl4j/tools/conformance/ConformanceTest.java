package io.github.nccl4j.tools.conformance;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.highlevel.UniqueId;
import io.github.nccl4j.tests.ChildJvm;
import io.github.nccl4j.tools.Main;
import io.github.nccl4j.tools.oracle.ElementFormat;
import io.github.nccl4j.tools.oracle.Reduction;
import io.github.nccl4j.tools.support.RankDevices;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The conformance suite on the host engine, the ranks in this JVM. */
@Timeout(value = 10, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class ConformanceTest {
    private static void assertAllPassed(Report report) {
        assertEquals(List.of(), report.failures());
        assertEquals(0, report.skipped(), "the host engine has everything");
        assertTrue(report.passed() > 6000, report.passed() + " passed");
    }

    @ParameterizedTest
    @CsvSource({"3, false", "4, true"})
    void ranksInThreads(int size, boolean blocking) throws Exception {
        assertAllPassed(new Ranks(blocking, ConformanceCommand::suite).inThreads(RankDevices.of(0, size)));
    }

    @ParameterizedTest
    @CsvSource({"2, false", "3, true"})
    void allRanksInOneThread(int size, boolean blocking) {
        assertAllPassed(new Ranks(blocking, ConformanceCommand::suite).inOneThread(RankDevices.of(0, size)));
    }

    @Test
    void anExpressionThatMatchesNoCheckIsRefused() {
        ChildJvm.Outcome outcome = new ChildJvm()
                .environment("NCCL4J_ENGINE", "host")
                .run(
                        Main.class,
                        "conformance",
                        "-n",
                        "2",
                        "--threads",
                        "--blocking",
                        "--plain",
                        "--only",
                        "ALL_REDUSE");
        assertEquals(2, outcome.exitCode(), outcome.output());
        assertTrue(
                outcome.output().contains("nccl4j: no check has a line that matches --only: ALL_REDUSE\n"),
                outcome.output());
    }

    @Test
    void memoryInWindows() throws Exception {
        assertAllPassed(new Ranks(true, ConformanceCommand::suiteInWindows).inThreads(RankDevices.of(0, 3)));
        assertAllPassed(new Ranks(false, ConformanceCommand::suiteInWindows).inOneThread(RankDevices.of(0, 2)));
    }

    @Test
    void eachOperationMeetsEachTypeOperatorFormAndConfiguration() {
        List<String> checks = new ArrayList<>();
        new Ranks(true, ConformanceCommand::suite, ProgressWatch.NONE, what -> {
                    checks.add(what);
                    return false;
                })
                .inThisProcess(UniqueId.create(), 0, 1, Device.host());
        List<String> expected = new ArrayList<>();
        for (Operation operation : Operation.values()) {
            for (ElementType<?> type : ElementType.values()) {
                for (Operator operator : operation.reduces() ? Operator.values() : new Operator[1]) {
                    for (Form form : operation.forms()) {
                        for (int count : new int[] {0, 1, 7}) {
                            expected.add(operation + ": " + operation + " of " + count + " " + type
                                    + (operator == null ? "" : " " + operator) + " " + form + " root 0");
                        }
                    }
                }
            }
        }
        assertEquals(List.of(), missing(expected, checks));
        expected.clear();
        for (Tuning tuning : Tuning.values()) {
            for (Operation operation : Operation.values()) {
                for (Form form : Tuning.isTakenBy(operation) && tuning.suits(operation)
                        ? operation.formsAsConfigured()
                        : List.<Form>of()) {
                    for (int count : new int[] {0, 1, 7, 1025, 1024, 100_003}) {
                        expected.add("as configured: " + tuning + ": " + operation + " of " + count + " * " + form
                                + " root 0 as configured: " + tuning);
                    }
                }
            }
        }
        // Types and operators come in turn.
        List<String> ofAnyType = checks.stream()
                .map(check -> check.replaceFirst("( of \\d+) .* (\\S+ root )", "$1 * $2"))
                .toList();
        assertEquals(List.of(), missing(expected, ofAnyType));
    }

    private static List<String> missing(List<String> expected, List<String> checks) {
        assertFalse(expected.isEmpty());
        Set<String> there = new HashSet<>(checks);
        return expected.stream().filter(check -> !there.contains(check)).toList();
    }

    @Test
    void aCommunicatorThatCannotBeClosedIsAFailure() {
        List<Communicator> communicators = new ArrayList<>();
        List<Group> open = new ArrayList<>();
        Report report;
        try (DeviceBuffer<Float32> element = Device.host().allocate(ElementType.FLOAT32, 1)) {
            report = new Ranks(true, crew -> {
                        Communicator communicator = crew.members().get(0).communicator;
                        communicators.add(communicator);
                        open.add(Group.open());
                        communicator.allReduce(element, ReduceOp.SUM, CudaStream.defaultOf(Device.host()));
                    })
                    .inThisProcess(UniqueId.create(), 0, 1, Device.host());
            open.forEach(Group::close);
            communicators.forEach(Communicator::close);
        }
        assertEquals(1, report.failures().size(), () -> report.failures().toString());
        String failure = report.failures().get(0).toString();
        assertTrue(failure.matches(".*close.*IllegalStateException: .*takes part in an open group.*"), failure);
    }

    @Test
    void theCommandRunsProcessesAndThreadsAndAddsThemUp() {
        ChildJvm.Outcome outcome = new ChildJvm()
                .limit(Duration.ofMinutes(5))
                .run(
                        Main.class,
                        "conformance",
                        "-n",
                        "2",
                        "--engine",
                        "host",
                        "--processes",
                        "--threads",
                        "--blocking",
                        "--plain",
                        ChildJvm.QUICK_RANKS);
        assertEquals(0, outcome.exitCode(), outcome.output());
        Matcher sums = Pattern.compile("(?m)^(?:\\[0\\] )?(\\d+) passed, 0 failed, 0 skipped$")
                .matcher(outcome.output());
        List<Integer> passed = new ArrayList<>();
        while (sums.find()) {
            passed.add(Integer.valueOf(sums.group(1)));
        }
        // The processes, the threads, and both.
        assertEquals(3, passed.size(), outcome.output());
        assertTrue(passed.get(0) > 1000, outcome.output());
        assertEquals(passed.get(0), passed.get(1), outcome.output());
        assertEquals(passed.get(0) + passed.get(1), passed.get(2), outcome.output());
        assertTrue(outcome.output().contains("ALL_REDUCE"), outcome.output());
        assertTrue(outcome.output().contains("\n\n" + NcclLibrary.get() + "\n"), outcome.output());
        assertTrue(outcome.output().contains("\n\n2 ranks in threads, blocking:\n"), outcome.output());
    }

    /** What can't be created is one failure on each rank, and not a table without any. */
    @Test
    void theCommandFailsWithTheRanks() {
        ChildJvm.Outcome outcome = new ChildJvm()
                .run(Main.class, "conformance", "-n", "2", "--library", "/none/libnccl.so", "--processes");
        assertEquals(1, outcome.exitCode(), outcome.output());
        assertTrue(outcome.output().contains("/none/libnccl.so"), outcome.output());
        assertTrue(outcome.output().endsWith("\n0 passed, 3 failed, 0 skipped\n"), outcome.output());
    }

    @ParameterizedTest
    @ValueSource(strings = {"--processes", "--threads", "--one-thread"})
    void theCommandEndsAtItsTimeout(String ranks) {
        ChildJvm.Outcome outcome = new ChildJvm()
                .limit(Duration.ofMinutes(1))
                .run(Main.class, "conformance", "-n", "2", "--engine", "host", ranks, "--timeout", "2");
        assertEquals(124, outcome.exitCode(), outcome.output());
        assertTrue(outcome.output().contains("timed out after 2 s"), outcome.output());
    }

    @Test
    void aRankThatStallsIsShownWithItsStack() throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        CountDownLatch stalled = new CountDownLatch(1);
        ProgressWatch watch = new ProgressWatch(
                Duration.ofMillis(100), new PrintStream(out, true, StandardCharsets.UTF_8), stalled::countDown);
        Thread rank = new Thread(
                () -> {
                    watch.at("the call that never ends");
                    assertDoesNotThrow(() -> stalled.await());
                    watch.done();
                },
                "rank 7");
        rank.start();
        watch.start();
        rank.join();
        String text = out.toString(StandardCharsets.UTF_8);
        assertTrue(text.matches("(?s).*\"rank 7\" has been for \\d.*at: the call that never ends\n.*"), text);
        assertTrue(text.contains("java.util.concurrent.CountDownLatch.await"), text);
    }

    @Test
    void aWrongElementAndOneBeyondTheBufferAreSeen() {
        List<ByteBuffer> inputs = List.of(floats(1, 2, 4), floats(0.1f, 0, 0));
        Expectation exact = new Expectation(ElementFormat.FLOAT32, inputs, floats(9, 9), true);
        exact.reduced(Reduction.SUM, 0, 1, 1, 0);
        exact.compare(floats(9, 1.1f));
        assertThrows(AssertionError.class, () -> exact.compare(floats(9, Math.nextUp(1.1f))));
        assertThrows(AssertionError.class, () -> exact.compare(floats(8, 1.1f)));
        Expectation near = new Expectation(ElementFormat.FLOAT32, inputs, floats(9, 9), false);
        near.reduced(Reduction.SUM, 0, 1, 1, 0);
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

    @Test
    void aReductionEndsWithTheLastRankOrWithAny() {
        // The first sum is 1 if rank 2 is the last, else 0; the second one is always 6.
        List<ByteBuffer> inputs = List.of(floats(1e8f, 2), floats(-1e8f, 2), floats(1, 2));
        for (int last = 0; last < inputs.size(); last++) {
            Expectation result = new Expectation(ElementFormat.FLOAT32, inputs, floats(9), true);
            result.reduced(Reduction.SUM, 0, 1, 0, last);
            ByteBuffer right = floats(last == 2 ? 1 : 0);
            ByteBuffer other = floats(last == 2 ? 0 : 1);
            result.compare(right);
            assertThrows(AssertionError.class, () -> result.compare(other));
        }
        Expectation any = new Expectation(ElementFormat.FLOAT32, inputs, floats(9, 9, 9, 9), true);
        any.reduced(Reduction.SUM, 0, 2, 1, Expectation.ANY);
        any.compare(floats(9, 0, 6, 9));
        any.compare(floats(9, 1, 6, 9));
        assertThrows(AssertionError.class, () -> any.compare(floats(9, 2, 6, 9)));
        assertThrows(AssertionError.class, () -> any.compare(floats(1, 1, 6, 9)));
        assertThrows(AssertionError.class, () -> any.compare(floats(9, 1, 6, 1)));
    }

    /** 16-bit floats are rounded after each step, 8-bit floats after a product, too. */
    @Test
    void eachStepOfAReductionIsRounded() {
        assertEquals(Double.POSITIVE_INFINITY, reduced(ElementFormat.FLOAT16, Reduction.SUM, 0, -65504, 65504, 65504));
        assertEquals(65504, reduced(ElementFormat.FLOAT16, Reduction.SUM, 1, -65504, 65504, 65504));
        assertEquals(256, reduced(ElementFormat.BFLOAT16, Reduction.SUM, 2, 256, 1, 1));
        assertEquals(258, reduced(ElementFormat.BFLOAT16, Reduction.SUM, 0, 256, 1, 1));
        // A third is 0.3125, a third of 7 is 2.
        assertEquals(6, reduced(ElementFormat.FLOAT8E5M2, Reduction.AVG, 2, 7, 7, 7));
    }

    private static double reduced(ElementFormat type, Reduction reduction, int last, double... elements) {
        List<ByteBuffer> inputs = new ArrayList<>();
        for (double element : elements) {
            ByteBuffer input = ByteBuffer.allocate(type.size).order(ByteOrder.nativeOrder());
            type.putNumber(input, 0, element);
            inputs.add(input);
        }
        ByteBuffer result = ByteBuffer.allocate(type.size).order(ByteOrder.nativeOrder());
        reduction.put(type, inputs, 0, last, result, 0);
        return type.number(result, 0);
    }

    @Test
    void eachTypeRepresentsTheScalarsOfManyRanks() {
        ByteBuffer element = ByteBuffer.allocate(8).order(ByteOrder.nativeOrder());
        for (ElementFormat format : ElementFormat.values()) {
            for (int rank = 0; rank < 100 && !format.isInteger(); rank++) {
                int scalar = Reduction.scalar(rank);
                format.putNumber(element, 0, scalar);
                assertEquals(scalar, format.number(element, 0), format + ", rank " + rank);
            }
        }
    }

    private static ByteBuffer floats(float... values) {
        ByteBuffer buffer = ByteBuffer.allocate(values.length * Float.BYTES).order(ByteOrder.nativeOrder());
        buffer.asFloatBuffer().put(values);
        return buffer;
    }
}

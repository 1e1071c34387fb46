package io.github.nccl4j.tests.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.testing.TestLog;
import io.github.nccl4j.testing.Waiting;
import io.github.nccl4j.tests.ChildJvm;
import io.github.nccl4j.tests.Held;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.logging.LogRecord;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What is closed leaves nothing behind, and what is dropped is told. */
class LeakTest {
    private final TestLog log = new TestLog();

    @AfterEach
    void removeListener() {
        log.close();
    }

    /** The property {@code leak.cycles} makes it longer. */
    @Test
    @Timeout(value = 11, unit = TimeUnit.MINUTES)
    void closingLeaksNothing() {
        ChildJvm jvm = new ChildJvm();
        Held.FIXED_HEAP.forEach(jvm::option);
        ChildJvm.Outcome outcome = jvm.property("nccl4j.engine", "host")
                .environment("MALLOC_ARENA_MAX", Held.ARENAS)
                .limit(Duration.ofMinutes(10))
                .run(LeakCheck.class, System.getProperty("leak.cycles", "1000"));
        assertEquals(0, outcome.exitCode(), outcome.output());
        assertTrue(outcome.output().contains(" cycles left nothing"), outcome::output);
        assertFalse(outcome.output().contains("was dropped"), outcome::output);
    }

    private static void dropOne() {
        Communicator.createAll(List.of(Device.host()));
    }

    private static void dropOneOfAGroup() {
        Communicator parent = Communicator.createAll(List.of(Device.host())).get(0);
        Group group = Group.open();
        splitHere(parent);
        group.launch();
        parent.close();
    }

    private static void splitHere(Communicator parent) {
        parent.split(0, 0);
    }

    /** Collects garbage until there is one more report than before. */
    private void assertReported(String method, int before) {
        Waiting.until("a report of a dropped communicator", () -> {
            System.gc();
            return log.records().size() > before;
        });
        assertEquals(before + 1, log.records().size(), () -> log.lines().toString());
        LogRecord report = log.records().get(before);
        assertTrue(
                report.getMessage()
                        .matches(
                                "communicator [0-9a-f]{8}(\\.0\\.0)? \\(rank 0 of 1 on host memory\\) was dropped without being"
                                        + " closed; its resources are lost"),
                report::getMessage);
        StringWriter stack = new StringWriter();
        report.getThrown().printStackTrace(new PrintWriter(stack));
        assertTrue(stack.toString().contains("LeakTest." + method + "("), stack::toString);
    }

    @Test
    void aDroppedCommunicatorIsReportedWithItsCreation() {
        dropOne();
        assertReported("dropOne", 0);
    }

    @Test
    void reportsCommunicatorOfGroupWithItsCall() {
        dropOneOfAGroup();
        assertReported("splitHere", 0);
    }

    @Test
    void doesNotReportClosedOrAborted() {
        Communicator.createAll(List.of(Device.host())).get(0).close();
        Communicator.createAll(List.of(Device.host())).get(0).abort();
        // Both would be collected with the third one at the latest, and reported before the fourth one.
        dropOne();
        assertReported("dropOne", 0);
        dropOne();
        assertReported("dropOne", 1);
    }
}

package io.github.nccl4j.tests.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.tests.ChildJvm;
import io.github.nccl4j.tests.Held;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What is closed leaves nothing behind, and what is dropped is told. */
class LeakTest {
    private final Logger logger = Logger.getLogger("io.github.nccl4j");
    private final BlockingQueue<LogRecord> records = new LinkedBlockingQueue<>();
    private final Handler handler = new Handler() {
        @Override
        public void publish(LogRecord entry) {
            records.add(entry);
        }

        @Override
        public void flush() {}

        @Override
        public void close() {}
    };

    @BeforeEach
    void listen() {
        logger.addHandler(handler);
        logger.setUseParentHandlers(false);
    }

    @AfterEach
    void removeListener() {
        logger.setUseParentHandlers(true);
        logger.removeHandler(handler);
    }

    /** The property {@code leak.cycles} makes it longer. */
    @Test
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

    private LogRecord nextReport() throws InterruptedException {
        for (int i = 0; i < 200; i++) {
            System.gc();
            LogRecord next = records.poll(50, TimeUnit.MILLISECONDS);
            if (next != null) {
                return next;
            }
        }
        throw new AssertionError("no report after 200 collections");
    }

    private void assertReported(LogRecord report, String method) {
        assertEquals(
                "communicator (rank 0 of 1 on host memory) was dropped without being closed; its resources are lost",
                report.getMessage());
        StringWriter stack = new StringWriter();
        report.getThrown().printStackTrace(new PrintWriter(stack));
        assertTrue(stack.toString().contains("LeakTest." + method + "("), stack::toString);
    }

    @Test
    void aDroppedCommunicatorIsReportedWithItsCreation() throws InterruptedException {
        dropOne();
        assertReported(nextReport(), "dropOne");
    }

    @Test
    void reportsCommunicatorOfGroupWithItsCall() throws InterruptedException {
        dropOneOfAGroup();
        assertReported(nextReport(), "splitHere");
    }

    @Test
    void doesNotReportClosedOrAborted() throws InterruptedException {
        Communicator.createAll(List.of(Device.host())).get(0).close();
        Communicator.createAll(List.of(Device.host())).get(0).abort();
        // Both would be reported before the third one.
        dropOne();
        assertReported(nextReport(), "dropOne");
        System.gc();
        assertEquals(null, records.poll(200, TimeUnit.MILLISECONDS));
    }
}

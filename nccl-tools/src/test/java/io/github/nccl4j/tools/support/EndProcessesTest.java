package io.github.nccl4j.tools.support;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.tools.launch.ChildProcesses;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;

/** Processes of a test method end after it; processes of the test class do not. */
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
class EndProcessesTest {
    private static Process ofTheClass;
    private static Process ofATest;

    private static Process sleep() throws Exception {
        return ChildProcesses.start(new ProcessBuilder("sleep", "1000"));
    }

    @BeforeAll
    static void start() throws Exception {
        ofTheClass = sleep();
    }

    @Test
    @Order(1)
    void leaveAProcess() throws Exception {
        ofATest = sleep();
        assertTrue(ofATest.isAlive());
    }

    @Test
    @Order(2)
    void processOfPreviousTestHasEnded() {
        assertFalse(ofATest.isAlive());
        assertTrue(ofTheClass.isAlive());
    }

    @AfterAll
    static void end() {
        assertTrue(ofTheClass.isAlive());
        ChildProcesses.kill(ofTheClass);
    }
}

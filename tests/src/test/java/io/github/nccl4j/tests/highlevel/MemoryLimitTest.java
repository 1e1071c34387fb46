package io.github.nccl4j.tests.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.nccl4j.tests.ChildJvm;
import org.junit.jupiter.api.Test;

/** JavaCPP refuses to allocate when the process is large, as every process with a GPU is. */
class MemoryLimitTest {
    @Test
    void worksBeyondJavaCppMemoryLimit() {
        ChildJvm.Outcome outcome = new ChildJvm()
                .property("nccl4j.engine", "host")
                .property("org.bytedeco.javacpp.maxPhysicalBytes", 1)
                // Without waiting for the collector ten times.
                .property("org.bytedeco.javacpp.maxRetries", 0)
                .run(MemoryLimitScenario.class);
        assertEquals(0, outcome.exitCode(), outcome.output());
        assertEquals("all done beyond the limit\n", outcome.output());
    }
}

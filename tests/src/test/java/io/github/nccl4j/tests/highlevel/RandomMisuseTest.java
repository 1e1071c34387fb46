package io.github.nccl4j.tests.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.tests.ChildJvm;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/**
 * A short run of {@link RandomMisuse}; the properties {@code misuse.calls} and {@code misuse.seed} make it another one.
 */
class RandomMisuseTest {
    @Test
    void everyOutcomeIsADocumentedOne() {
        ChildJvm.Outcome outcome = new ChildJvm()
                .property("nccl4j.engine", "host")
                .environment("NCCL4J_HOST_INIT_TIMEOUT", "1")
                .limit(Duration.ofMinutes(10))
                .run(
                        RandomMisuse.class,
                        "--calls",
                        System.getProperty("misuse.calls", "3000"),
                        "--seed",
                        System.getProperty("misuse.seed", "20260801"));
        assertEquals(0, outcome.exitCode(), outcome.output());
        assertTrue(outcome.output().contains("0 kinds of wrong outcomes, 0 crashes, 0 threads stuck"), outcome::output);
        System.out.println(outcome.output());
    }
}

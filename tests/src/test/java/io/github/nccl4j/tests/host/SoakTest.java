package io.github.nccl4j.tests.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.tests.ChildJvm;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/** A short {@link Soak}; the properties {@code soak.seconds} and {@code soak.seed} make it another one. */
class SoakTest {
    @Test
    void randomCallsAndDeathsLeaveEveryElementRight() {
        int seconds = Integer.getInteger("soak.seconds", 15);
        ChildJvm.Outcome outcome = new ChildJvm()
                .property("nccl4j.engine", "host")
                .limit(Duration.ofSeconds(seconds + 120L))
                .run(Soak.class, "--seconds", "" + seconds, "--seed", System.getProperty("soak.seed", "20261121"));
        assertEquals(0, outcome.exitCode(), outcome.output());
        assertTrue(outcome.output().contains(" 0 wrong or stuck"), outcome::output);
        System.out.println(
                outcome.output().lines().reduce((first, second) -> second).orElseThrow());
    }
}

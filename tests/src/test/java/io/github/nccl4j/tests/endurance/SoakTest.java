package io.github.nccl4j.tests.endurance;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.tests.ChildJvm;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/** A short soak; the command makes longer ones. */
class SoakTest {
    private static ChildJvm.Outcome soak(String... arguments) {
        return new ChildJvm().limit(Duration.ofSeconds(180)).run(SoakCommand.class, arguments);
    }

    /** The seed has a death in the first call of all, which is a split. */
    @Test
    void randomCallsAndDeathsLeaveEveryElementRightAndNothingElse() {
        ChildJvm.Outcome outcome = soak("--seconds", "10", "--seed", "3252");
        assertEquals(0, outcome.exitCode(), outcome.output());
        assertTrue(
                outcome.output().contains(" deaths, 0 wrong or stuck, nothing has grown, seed 3252, "),
                outcome::output);
    }

    @Test
    void lostMemoryIsNoticed() {
        ChildJvm.Outcome outcome =
                soak("-n", "2", "--seconds", "1", "--settle", "0", "--seed", "1", "--lose", "1000000");
        assertEquals(1, outcome.exitCode(), outcome.output());
        assertTrue(outcome.output().matches("(?s).*GROWN: .*\\d+ bytes of other memory, seed 1, .*"), outcome::output);
    }
}

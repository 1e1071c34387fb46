package io.github.nccl4j.tests.endurance;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.tests.ChildJvm;
import java.time.Duration;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
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

    /** Of what was lost, which is more than a few rounds take to warm up. */
    @Test
    void lostMemoryIsNoticed() {
        long lost = 4_000_000;
        ChildJvm.Outcome outcome =
                soak("-n", "2", "--seconds", "1", "--warm", "5", "--settle", "0", "--seed", "1", "--lose", "" + lost);
        assertEquals(1, outcome.exitCode(), outcome.output());
        Matcher grown = Pattern.compile("GROWN: .*?(\\d+) bytes of other memory, seed 1, ")
                .matcher(outcome.output());
        assertTrue(grown.find(), outcome::output);
        assertTrue(Long.parseLong(grown.group(1)) > 4 * lost, outcome::output);
    }
}

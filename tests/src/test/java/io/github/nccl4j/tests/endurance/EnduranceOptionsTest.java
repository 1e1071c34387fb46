package io.github.nccl4j.tests.endurance;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.tests.ChildJvm;
import io.github.nccl4j.tools.Main;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What the commands of {@link EnduranceTest} refuse, beside which other tests may run. */
class EnduranceOptionsTest {
    private static ChildJvm.Outcome run(Class<?> command, String... arguments) {
        return new ChildJvm().limit(Duration.ofSeconds(100)).run(command, arguments);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "Cycles | -n 0 | -n must be at least 1: 0",
                "Cycles | -n 2 -c 0 | -c must be at least 10: 0",
                "Cycles | -n 2 --timeout 0 | --timeout must be at least 1: 0",
                "Cycles | -n 2147483647 | at most 64 ranks per processor are allowed: 2147483647 ranks,",
                "Main | survival -n 1 | -n must be at least 2, since one is killed: 1",
                "Main | survival -n two | Invalid value for option '--ranks': 'two' is not an int",
                "Main | survival -n 2 -c -1 | -r, -d and -c must be at least 1: 20, 10, -1",
                "Main | survival -n 2 --spare | --spare needs --return",
                "Main | survival -n 2 --pause gc --stop | --pause cannot be combined with --return, --stop or --exchange",
                "Main | survival -n 2 --pause long | --pause must be stop, gc or busy: long",
                "Main | survival -n 2 --victim 1 | --victim must be random or in-turn: 1",
                "Soak | -n 2147483647 | at most 64 ranks per processor are allowed: 2147483647 ranks,",
                "Soak | -n 2 -s 0 | -n must be at least 2, -s at least 1, --lose and --warm at least 0: 2, 0, 0, 20",
            })
    void wrongNumbersAreRefused(String name, String arguments, String message) throws ClassNotFoundException {
        Class<?> command =
                name.equals("Main") ? Main.class : Class.forName(getClass().getPackageName() + "." + name + "Command");
        ChildJvm.Outcome outcome = run(command, arguments.split(" "));
        assertEquals(2, outcome.exitCode(), outcome.output());
        assertTrue(outcome.output().startsWith("nccl4j: " + message), outcome.output());
        assertEquals(2, outcome.output().lines().count(), outcome.output());
    }

    @Test
    void aLibraryThatIsNotThereIsNamed() {
        ChildJvm.Outcome outcome = run(Main.class, "survival", "--library", "/none/libnccl.so", "-n", "2", "-r", "1");
        assertEquals(1, outcome.exitCode(), outcome.output());
        assertTrue(outcome.output().contains("/none/libnccl.so"), outcome.output());
    }
}

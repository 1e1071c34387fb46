package io.github.nccl4j.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.tools.support.MarkedProcesses;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class CxxTest {
    @Test
    void commandThatDoesNotEndIsKilledAndNamed() throws Exception {
        MarkedProcesses marked = new MarkedProcesses();
        String mark = MarkedProcesses.VARIABLE + "=" + marked.value();
        List<String> command = List.of("env", mark, "/bin/sh", "-c", "sleep 1000; true");
        String failure = assertThrows(AssertionError.class, () -> Cxx.output(null, command, Duration.ofSeconds(1)))
                .getMessage();
        assertTrue(failure.contains("[env, " + mark), failure);
        assertTrue(failure.endsWith(" has not ended within PT1S: "), failure);
        marked.assertNoneLeft();
    }

    /** The child has the output open for longer. */
    @Test
    void childThatIsLeftIsNotWaitedFor() throws Exception {
        assertEquals("done\n", Cxx.output(List.of("/bin/sh", "-c", "sleep 1000 & echo done")));
    }
}

package io.github.nccl4j.tools.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.testing.Waiting;
import io.github.nccl4j.tools.support.MarkedProcesses;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@Timeout(600)
class ChildProcessesTest {
    /** A shell script that exits and leaves an orphan. */
    private static final String LEAVES_ORPHAN = "sleep 1000 >/dev/null 2>&1 & exit 0";

    /** Starts children that do not watch their parent: a running one, a stopped one, one with a child, and an orphan. */
    public static final class Parent {
        private Parent() {}

        public static void main(String[] args) throws Exception {
            ChildProcesses.start(new ProcessBuilder("sleep", "1000"));
            Process stopped = ChildProcesses.start(new ProcessBuilder("sleep", "1000"));
            Signals.send("STOP", stopped.pid());
            ChildProcesses.start(new ProcessBuilder("/bin/sh", "-c", "sleep 1000; true"));
            ChildProcesses.start(new ProcessBuilder("/bin/sh", "-c", LEAVES_ORPHAN))
                    .waitFor();
            for (int i = 0; i < 100; i++) {
                ChildProcesses.start(new ProcessBuilder("true")).waitFor();
            }
            if (args[0].equals("exit")) {
                System.in.read();
                System.exit(0);
            }
            Thread.sleep(1_000_000);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"killed", "exit"})
    void childrenEndWithTheirParent(String how) throws Exception {
        MarkedProcesses marked = new MarkedProcesses();
        List<String> command = JavaCommand.of(List.of(), Parent.class.getName(), List.of(how));
        Process parent = ChildProcesses.start(marked.mark(new ProcessBuilder(command)));
        // The parent, its guard, and five descendants.
        marked.await(7);
        if (how.equals("killed")) {
            parent.destroyForcibly();
        } else {
            parent.getOutputStream().close();
        }
        assertTrue(parent.waitFor(20, TimeUnit.SECONDS));
        marked.assertNoneLeft();
    }

    @Test
    void runningOmitsEndedProcesses() throws Exception {
        Process ended = ChildProcesses.start(new ProcessBuilder("true"));
        Process waiting = ChildProcesses.start(new ProcessBuilder("/bin/sh", "-c", "sleep 1000; true"));
        assertEquals(0, ended.waitFor());
        Waiting.until("end of " + ended, () -> !ChildProcesses.running().contains(ended));
        assertTrue(ChildProcesses.running().contains(waiting));
        ChildProcesses.kill(waiting);
        assertEquals(137, waiting.exitValue());
        assertFalse(ChildProcesses.descendants().anyMatch(ProcessHandle::isAlive));
    }

    @Test
    void killEndsOrphans() throws Exception {
        MarkedProcesses marked = new MarkedProcesses();
        Process parent = ChildProcesses.start(marked.mark(new ProcessBuilder("/bin/sh", "-c", LEAVES_ORPHAN)));
        Process other = ChildProcesses.start(new ProcessBuilder("sleep", "1000"));
        assertEquals(0, parent.waitFor());
        marked.await(1);
        ChildProcesses.kill(parent);
        assertEquals(List.of(), marked.running());
        assertTrue(other.isAlive());
    }

    @Test
    void killCompletesDespiteAnInterrupt() throws Exception {
        MarkedProcesses marked = new MarkedProcesses();
        Process parent = ChildProcesses.start(marked.mark(new ProcessBuilder("/bin/sh", "-c", LEAVES_ORPHAN)));
        Process waiting = ChildProcesses.start(marked.mark(new ProcessBuilder("sleep", "1000")));
        assertEquals(0, parent.waitFor());
        marked.await(2);
        Thread.currentThread().interrupt();
        ChildProcesses.kill(List.of(parent, waiting));
        assertTrue(Thread.interrupted());
        assertEquals(List.of(), marked.running());
    }

    /** The process id of an ended child may belong to another process by then. */
    @Test
    void guardSparesEndedChildren() throws Exception {
        Process first = ChildProcesses.start(new ProcessBuilder("sleep", "1000"));
        Process second = ChildProcesses.start(new ProcessBuilder("sleep", "1000"));
        Process guard =
                ChildProcesses.start(new ProcessBuilder("/bin/sh", "-c", ChildProcesses.script(), "guard", "no mark"));
        String input = String.format(Locale.ROOT, "+ %1$d\n+ %2$d\n+ %1$d\n- %1$d\n", first.pid(), second.pid());
        try (OutputStream lines = guard.getOutputStream()) {
            lines.write(input.getBytes(StandardCharsets.US_ASCII));
        }
        assertEquals(0, guard.waitFor());
        assertEquals(137, second.waitFor());
        assertTrue(first.isAlive());
    }
}

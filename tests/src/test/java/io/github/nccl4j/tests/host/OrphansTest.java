package io.github.nccl4j.tests.host;

import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.tests.ChildJvm;
import io.github.nccl4j.tests.Cxx;
import io.github.nccl4j.tools.launch.ChildProcesses;
import io.github.nccl4j.tools.launch.Signals;
import io.github.nccl4j.tools.support.MarkedProcesses;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(600)
class OrphansTest {
    /** Starts what tests start: ranks that wait in native code for one that never comes, one of them stopped, and a program in C++. */
    public static final class Parent {
        private Parent() {}

        private static ChildJvm.Running rank() {
            return new ChildJvm()
                    .property("nccl4j.engine", "host")
                    .start(HostEngineScenarios.class, "join", Rank.newId(), "0", "2");
        }

        public static void main(String[] args) throws Exception {
            rank();
            ChildJvm.Running stopped = rank();
            Signals.send("STOP", stopped.process().pid());
            Path program = Cxx.program(Path.of(args[0]), "waits", """
                    #include <unistd.h>
                    int main() { for (;;) pause(); }
                    """);
            ChildProcesses.start(new ProcessBuilder(program.toString()));
            System.out.println("started");
            Thread.sleep(1_000_000);
        }
    }

    /** As when a build is killed. */
    @Test
    void whatATestHasStartedEndsWithItsJvm(@TempDir Path folder) throws Exception {
        MarkedProcesses marked = new MarkedProcesses();
        ChildJvm.Running parent = new ChildJvm()
                .property("nccl4j.engine", "host")
                .environment(MarkedProcesses.VARIABLE, marked.value())
                .start(Parent.class, folder.toString());
        parent.awaitText("started");
        // The parent, its guard, two ranks in two JVMs, and the program.
        marked.await(5);
        parent.process().destroyForcibly();
        assertTrue(parent.process().waitFor(20, TimeUnit.SECONDS));
        marked.assertNoneLeft();
    }
}

package io.github.nccl4j.tools.perf;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.nccl4j.highlevel.CallInterceptor;
import io.github.nccl4j.highlevel.CommunicatorConfig;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.UniqueId;
import io.github.nccl4j.tools.launch.ChildProcesses;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import picocli.CommandLine;

@Timeout(60)
class MembersTest {
    /** Six ranks of three threads; {@code threads} is the number of threads that create communicators. */
    @ParameterizedTest
    @CsvSource({"0, 1", "1, 3"})
    void eachThreadCreatesItsCommunicatorsWithParallelInit(String parallel, int threads) throws Exception {
        // In its own JVM, because a process chooses its library only once.
        ProcessBuilder builder = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "--enable-native-access=ALL-UNNAMED",
                        "-Dnccl4j.engine=host",
                        "-cp",
                        System.getProperty("java.class.path"),
                        Scenario.class.getName(),
                        parallel)
                .redirectErrorStream(true);
        Process process = ChildProcesses.start(builder);
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertEquals(0, process.waitFor(), output);
        assertEquals("ranks [0, 1, 2, 3, 4, 5], threads " + threads, output.strip());
    }

    /** Creates the ranks, with or without -p, and prints the number of threads that did. */
    static final class Scenario {
        public static void main(String[] arguments) throws Exception {
            Settings settings = CommandLine.populateCommand(
                    new Settings(), "-t", "3", "-g", "2", "-b", "8", "-e", "1K", "-R", "2", "-p", arguments[0]);
            Set<Thread> made = Collections.newSetFromMap(new ConcurrentHashMap<>());
            CallInterceptor watching = new CallInterceptor() {
                @Override
                public void before(Call call) {
                    if (call.function().startsWith("ncclCommInitRank")) {
                        made.add(Thread.currentThread());
                    }
                }
            };
            Members.World world = new Members.World(
                    UniqueId.create(), 6, CommunicatorConfig.builder().build(), Duration.ofSeconds(30));
            NcclLibrary.intercept(watching);
            try (Members members = new Members(settings, null)) {
                members.create(world, 0, Collections.nCopies(6, Device.host()));
                List<Integer> ranks = members.all().stream().map(Member::rank).toList();
                System.out.println("ranks " + ranks + ", threads " + made.size());
            }
        }
    }
}

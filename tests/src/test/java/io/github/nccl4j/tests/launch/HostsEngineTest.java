package io.github.nccl4j.tests.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int64;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.NcclEncryption;
import io.github.nccl4j.highlevel.NcclRemoteException;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.TcpStore;
import io.github.nccl4j.tests.ChildJvm;
import io.github.nccl4j.tests.ChildJvm.Outcome;
import io.github.nccl4j.tests.ChildJvm.Running;
import io.github.nccl4j.tests.Cxx;
import io.github.nccl4j.tools.Main;
import io.github.nccl4j.tools.launch.ChildProcesses;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.BiConsumer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The host engine between hosts, which are network namespaces: ranks of one of them share memory, those of two connect by TCP. */
@Timeout(600)
@Tag("alone")
class HostsEngineTest {
    private static final Duration LIMIT = Duration.ofMinutes(9);
    private static final Pattern SENT_BY_PLUGIN = Pattern.compile("test network plugin 12: (\\d+) bytes sent");

    @TempDir
    Path folder;

    /** Before each test, not before all: the report of a class that is skipped as a whole names no tests. */
    @BeforeEach
    void requireHosts() {
        Hosts.require();
    }

    private static List<ChildJvm> ranks(Hosts hosts, List<Integer> hostOfRank) {
        List<ChildJvm> ranks = new ArrayList<>();
        for (int rank = 0; rank < hostOfRank.size(); rank++) {
            int host = hostOfRank.get(rank);
            List<Integer> before = hostOfRank.subList(0, rank);
            ranks.add(new ChildJvm()
                    .by(hosts.on(host))
                    .limit(LIMIT)
                    .option("-XX:TieredStopAtLevel=1")
                    .property("nccl4j.engine", "host")
                    .environment("RANK", "" + rank)
                    .environment("WORLD_SIZE", "" + hostOfRank.size())
                    .environment("LOCAL_RANK", "" + count(before, host))
                    .environment("LOCAL_WORLD_SIZE", "" + count(hostOfRank, host))
                    .environment("MASTER_ADDR", Hosts.address(0))
                    .environment("MASTER_PORT", "29500"));
        }
        return ranks;
    }

    /** Sets a key, as a system without OpenSSL 3 cannot. */
    public static final class KeySetting {
        private KeySetting() {}

        public static void main(String[] args) {
            NcclEncryption.enable("0123456789abcdef0123456789abcdef".getBytes(StandardCharsets.US_ASCII));
        }
    }

    private static void requireOpenSsl() {
        Outcome outcome = new ChildJvm().property("nccl4j.engine", "host").run(KeySetting.class);
        assumeFalse(outcome.output().contains("libssl.so.3 cannot be loaded"), outcome.output());
    }

    private static long count(List<Integer> hosts, int host) {
        return hosts.stream().filter(one -> one == host).count();
    }

    private static List<Integer> numbers(String text) {
        return Stream.of(text.split(" ")).map(Integer::valueOf).toList();
    }

    @ParameterizedTest
    @CsvSource({"0 0 1 1, , 1, false", "0 1 2, eth, 0, false", "0 0 1, , 1, true"})
    void everyOperationIsRight(String hostOfRank, String interfaces, int sharedMemory, boolean encrypted)
            throws IOException {
        if (encrypted) {
            requireOpenSsl();
        }
        Path key = Files.writeString(folder.resolve("key"), "0123456789abcdef0123456789abcdef");
        Files.setPosixFilePermissions(key, PosixFilePermissions.fromString("rw-------"));
        runConformance(numbers(hostOfRank), (rank, host) -> {
            rank.environment("NCCL4J_HOST_SHARED_MEMORY", "" + sharedMemory);
            if (interfaces != null) {
                rank.environment("NCCL_SOCKET_IFNAME", interfaces);
            }
            if (encrypted) {
                rank.environment("NCCL4J_ENCRYPTION_KEY_FILE", key.toString());
            }
        });
    }

    @Test
    void everyOperationIsRightByANetworkPlugin() throws IOException {
        Path plugin = folder.resolve("libnccl-net-test.so");
        Path sources = Path.of("../nccl-host/src").toAbsolutePath();
        Cxx.output(List.of(
                System.getProperty("nccl4j.test.cxx", "g++"),
                "-std=c++17",
                "-O1",
                "-fPIC",
                "-shared",
                "-DNET_VERSION=12",
                "-I" + sources.resolve("main/cpp"),
                "-I" + sources.resolve("test/cpp"),
                sources.resolve("test/cpp/test-net-plugin.cpp").toString(),
                "-o",
                plugin.toString()));
        List<Outcome> outcomes = runConformance(List.of(0, 0, 1), (rank, host) -> {
            rank.environment("NCCL_NET_PLUGIN", plugin.toString());
            rank.environment("TEST_NET_ADDRESS", Hosts.address(host));
            rank.environment("TEST_NET_REPORT", "1");
        });
        for (Outcome outcome : outcomes) {
            Matcher sent = SENT_BY_PLUGIN.matcher(outcome.output());
            long most = 0;
            while (sent.find()) {
                most = Math.max(most, Long.parseLong(sent.group(1)));
            }
            assertTrue(most > 1 << 20, outcome.output());
        }
    }

    /** Runs the conformance suite on ranks of these hosts, each with its own environment. */
    private static List<Outcome> runConformance(List<Integer> hostOf, BiConsumer<ChildJvm, Integer> environment)
            throws IOException {
        try (Hosts hosts =
                Hosts.connected(1 + hostOf.stream().max(Integer::compare).orElseThrow())) {
            List<ChildJvm> ranks = ranks(hosts, hostOf);
            List<Running> running = new ArrayList<>();
            for (int rank = 0; rank < ranks.size(); rank++) {
                environment.accept(ranks.get(rank), hostOf.get(rank));
                running.add(ranks.get(rank).start(Main.class, "conformance", "--engine", "host"));
            }
            List<Outcome> outcomes = new ArrayList<>();
            for (Running rank : running) {
                Outcome outcome = rank.await();
                assertEquals(0, outcome.exitCode(), outcome.output());
                outcomes.add(outcome);
            }
            return outcomes;
        }
    }

    /** Adds until another rank is lost. */
    public static final class AddingRank {
        private AddingRank() {}

        public static void main(String[] args) {
            try (TcpStore store = TcpStore.open(RankInfo.fromEnvironment());
                    Communicator communicator =
                            Communicator.builder().device(Device.host()).create(store);
                    CudaStream stream = CudaStream.nonBlocking(Device.host());
                    DeviceBuffer<Int64> sum = Device.host().allocate(ElementType.INT64, 1000)) {
                System.out.println("process " + ProcessHandle.current().pid());
                while (true) {
                    communicator.allReduce(sum, ReduceOp.MAX, stream);
                    communicator.work(stream).await();
                }
            } catch (NcclRemoteException lost) {
                // The engine or the store notices it first, and names the rank in another line.
                String message = lost.getMessage().replace('\n', ' ');
                System.out.println("at " + System.currentTimeMillis() + " lost: " + message);
                System.exit(3);
            }
        }
    }

    @Test
    void theDeathOfAProcessOnAnotherHostIsNoticedAtOnce() throws IOException {
        try (Hosts hosts = Hosts.connected(2)) {
            List<Running> running = new ArrayList<>();
            for (ChildJvm rank : ranks(hosts, List.of(0, 0, 1))) {
                running.add(rank.start(AddingRank.class));
            }
            running.forEach(rank -> rank.awaitText("process "));
            ChildProcesses.kill(running.get(2).process());
            long killed = System.currentTimeMillis();
            for (Running rank : running.subList(0, 2)) {
                Outcome outcome = rank.await();
                assertEquals(3, outcome.exitCode(), outcome.output());
                long millis = CutLinksTest.millis(outcome, killed, "lost: .*rank 2");
                assertTrue(millis < 1000, millis + " ms");
            }
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void theStatusServiceAsksTheProcessesOfAllHosts(boolean encrypted) throws IOException {
        if (encrypted) {
            requireOpenSsl();
        }
        Path key = Files.writeString(folder.resolve("key"), "0123456789abcdef0123456789abcdef");
        Files.setPosixFilePermissions(key, PosixFilePermissions.fromString("rw-------"));
        try (Hosts hosts = Hosts.connected(3)) {
            List<Running> running = new ArrayList<>();
            for (ChildJvm rank : ranks(hosts, List.of(0, 0, 1, 2))) {
                rank.environment("NCCL_RAS_ADDR", "localhost:28028");
                if (encrypted) {
                    rank.environment("NCCL4J_ENCRYPTION_KEY_FILE", key.toString());
                }
                running.add(rank.start(AddingRank.class));
            }
            running.forEach(rank -> rank.awaitText("process "));
            for (int host : new int[] {0, 2}) {
                Outcome outcome = new ChildJvm()
                        .by(hosts.on(host))
                        .property("nccl4j.engine", "host")
                        .run(Main.class, "ras", "--force", "--json");
                assertEquals(0, outcome.exitCode(), outcome.output());
                Set<String> ranks = new TreeSet<>();
                Matcher rank = Pattern.compile("\"rank\": (\\d+)").matcher(outcome.output());
                while (rank.find()) {
                    ranks.add(rank.group(1));
                }
                assertEquals(Set.of("0", "1", "2", "3"), ranks, outcome.output());
                assertTrue(outcome.output().contains("\"missing_ranks_count\": 0"), outcome.output());
            }
            Outcome text = new ChildJvm()
                    .by(hosts.on(1))
                    .property("nccl4j.engine", "host")
                    .run(Main.class, "ras", "--force");
            assertTrue(text.output().contains("      3        1-2            1          4        4"), text.output());
            running.forEach(rank -> ChildProcesses.kill(rank.process()));
            running.forEach(Running::await);
        }
    }
}

package io.github.nccl4j.tools.status;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.TcpStore;
import io.github.nccl4j.launch.TcpStoreServer;
import io.github.nccl4j.testing.Waiting;
import io.github.nccl4j.tools.launch.JavaCommand;
import io.github.nccl4j.tools.launch.Launcher;
import java.io.BufferedWriter;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Predicate;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import picocli.CommandLine;

/** {@code nccl4j status} against jobs on the host engine. */
@Timeout(600)
class StatusCommandTest {
    private record Outcome(int code, String out, String err) {}

    private static Outcome status(String... arguments) {
        return status(new StatusCommand(), new StringWriter(), arguments);
    }

    private static Outcome status(StatusCommand status, StringWriter out, String... arguments) {
        StringWriter err = new StringWriter();
        CommandLine command = new CommandLine(status).setOut(new PrintWriter(new BufferedWriter(out)));
        command.setErr(new PrintWriter(err));
        return new Outcome(command.execute(arguments), out.toString(), err.toString());
    }

    /** Looks until the report has the wanted property. */
    private static Outcome await(Predicate<Outcome> wanted, String... arguments) throws InterruptedException {
        return Waiting.value("the wanted report", () -> status(arguments), wanted);
    }

    @Test
    void namesStoppedRankOfFour() throws Exception {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        PrintStream print = new PrintStream(bytes, true, StandardCharsets.UTF_8);
        List<String> options = List.of("-Dnccl4j.engine=host", "-XX:TieredStopAtLevel=1");
        // The store of the ranks, whose address the launcher chooses, is found as a user finds it.
        Launcher launcher = new Launcher(
                JavaCommand.of(options, ObservedRank.class.getName(), List.of()),
                4,
                Map.of("NCCL4J_JOB", "observed"),
                Duration.ofMinutes(4),
                print,
                print);
        Thread running = new Thread(() -> {
            try {
                launcher.run();
            } catch (IOException | InterruptedException ended) {
                // The test ends the job.
            }
        });
        running.start();
        try {
            String store = awaitStore();
            Outcome outcome = await(
                    one -> one.out().startsWith("Rank 2 (127.0.0.1, process ")
                            && one.out().contains("(operation 4)"),
                    "--store",
                    store);
            List<String> lines = outcome.out().lines().toList();
            assertEquals(1, outcome.code(), outcome::toString);
            assertTrue(lines.get(0).contains(") has been silent for "), outcome::toString);
            assertTrue(
                    lines.get(0).endsWith(" s: its process is stopped, or can't be reached [NCCL4J-0301]"),
                    outcome::toString);
            assertEquals("3 of 4 ranks of job 'observed' answered.", lines.get(1), outcome::toString);
            System.out.println(outcome.out());
            // Two communicators of each rank that answered, and a line for rank 2.
            assertEquals(3 + 1 + 1 + 2 * 3 + 2, lines.size(), outcome::toString);
            assertEquals("nccl4j explain 0301 says more.", lines.get(lines.size() - 1));
            checkJson(store);
        } finally {
            running.interrupt();
            running.join();
        }
    }

    private static String awaitStore() throws InterruptedException {
        Set<String> found = Waiting.value("a store", StatusCommandTest::ofChildren, now -> !now.isEmpty());
        assertEquals(1, found.size(), found::toString);
        return found.iterator().next();
    }

    /** The store that the environments of this process's children name. */
    private static Set<String> ofChildren() {
        Set<String> found = new java.util.TreeSet<>();
        ProcessHandle.current().children().forEach(child -> {
            found.addAll(StoreFinder.ofProcess(Path.of("/proc/" + child.pid())).keySet());
        });
        return found;
    }

    private static void checkJson(String store) {
        Outcome outcome = status("--store", store, "--json");
        assertEquals(1, outcome.out().lines().count());
        JsonObject look = JsonParser.parseString(outcome.out()).getAsJsonObject();
        assertEquals("nccl4j status 1", look.get("format").getAsString());
        assertEquals(store, look.get("store").getAsString());
        JsonObject job = look.getAsJsonArray("jobs").get(0).getAsJsonObject();
        assertEquals("observed", job.get("job").getAsString());
        assertEquals(3, job.get("answered").getAsInt());
        JsonObject finding = job.getAsJsonArray("findings").get(0).getAsJsonObject();
        assertEquals("rank.silent", finding.get("id").getAsString());
        assertEquals(2, finding.getAsJsonArray("ranks").get(0).getAsInt());
        JsonArray ranks = job.getAsJsonArray("ranks");
        assertEquals("silent", ranks.get(2).getAsJsonObject().get("state").getAsString());
        JsonArray communicators = ranks.get(3).getAsJsonObject().getAsJsonArray("communicators");
        assertEquals(2, communicators.size());
        for (JsonElement element : communicators) {
            JsonObject one = element.getAsJsonObject();
            boolean isWhole = one.get("size").getAsInt() == 4;
            assertEquals(isWhole ? 4 : 1, one.get("collectives").getAsInt(), one::toString);
            assertEquals(isWhole ? 3 : 1, one.get("done").getAsInt(), one::toString);
            assertEquals("ncclAllReduce of 64 int32", one.get("doneOperation").getAsString());
            assertEquals(isWhole, one.has("operation") && !one.get("operation").isJsonNull(), one::toString);
            assertEquals(0, one.get("behind").getAsInt(), one::toString);
            assertTrue(one.get("process").getAsLong() > 0);
        }
    }

    @Test
    void ranksThatAreBehindComeFirst() {
        try (TcpStoreServer server = TcpStoreServer.start(InetAddress.getLoopbackAddress(), 0);
                TcpStore front = open(server, 0);
                TcpStore behind = open(server, 1)) {
            String common =
                    "{\"format\": \"nccl4j communicator 1\", \"id\": \"abc\", \"size\": 2, \"host\": \"h\\u001b[2J\\u009b2J\\u202e\","
                            + " \"process\": 7, \"state\": \"OPEN\", \"recorded\": 9, ";
            front.status(
                    "c",
                    () -> common
                            + "\"rank\": 0, \"collectives\": 9, \"at\": 9, \"operation\": \"ncclAllGather of 8 int8\","
                            + " \"seconds\": 4.25}");
            behind.status(
                    "c",
                    () -> common + "\"rank\": 1, \"collectives\": 7, \"done\": 7, \"doneOperation\": \"x\","
                            + " \"doneSeconds\": 5.0}");
            behind.status("epoch", () -> "3 of 90");
            Outcome outcome = status("--store", server.address());
            List<String> lines = outcome.out().lines().toList();
            assertEquals(1, outcome.code(), outcome::toString);
            assertEquals(
                    "Rank 1 is 2 collectives behind in communicator abc, in which rank 0 waits in ncclAllGather of 8 int8"
                            + " (operation 9) for 4.3 s [NCCL4J-0306]",
                    lines.get(0).replace("4.2 s", "4.3 s"));
            assertEquals("2 of 2 ranks answered.", lines.get(1));
            assertTrue(
                    lines.get(4).matches(" +1 .* 2 +operation 7, 5\\.0 s ago +nothing under way"), outcome::toString);
            assertTrue(lines.get(5).endsWith(" epoch: 3 of 90"), outcome::toString);
            assertTrue(lines.get(6).matches(" +0 .* 0 +- +ncclAllGather of 8 int8 .*"), outcome::toString);
            for (String printed : List.of(
                    outcome.out(), status("--store", server.address(), "--json").out())) {
                assertFalse(
                        printed.matches("(?s).*[\\p{Cc}\\p{Cf}&&[^\n]].*"),
                        "a rank must not send commands to the terminal");
            }
        }
    }

    private static TcpStore open(TcpStoreServer server, int rank) {
        return open(server, rank, 2);
    }

    private static TcpStore open(TcpStoreServer server, int rank, int size) {
        return TcpStore.builder()
                .withoutServer()
                .open(new RankInfo(
                        rank, size, rank, size, "127.0.0.1", server.port(), "", 0, RankInfo.Source.PROPERTIES));
    }

    @Test
    void watchEndsWithTheJob() throws Exception {
        try (TcpStoreServer server = TcpStoreServer.start(InetAddress.getLoopbackAddress(), 0)) {
            TcpStore one = open(server, 0);
            AtomicInteger looks = new AtomicInteger();
            one.status("look", () -> {
                // The rank leaves at the second look: the answer to the first one has arrived.
                if (looks.incrementAndGet() == 2) {
                    new Thread(one::close).start();
                }
                return "seen";
            });
            Outcome outcome = status("--store", server.address(), "--watch", "1", "--json");
            assertTrue(outcome.out().contains("\"seen\""), outcome::toString);
            assertEquals("nccl4j: the job has ended\n", outcome.err());
            // The other rank of two never came.
            assertEquals(1, outcome.code());
        }
    }

    /** A watch in a thread of its own, after its first report. */
    private static final class Watching {
        private final StringWriter out = new StringWriter();
        private final CompletableFuture<Outcome> outcome = new CompletableFuture<>();
        private final Thread thread;

        Watching(String... arguments) throws InterruptedException {
            thread = new Thread(() -> outcome.complete(status(new StatusCommand(), out, arguments)));
            thread.start();
            Waiting.until("a pause of the command", () -> sleeps() || outcome.isDone());
        }

        private boolean sleeps() {
            StackTraceElement[] stack = thread.getStackTrace();
            return stack.length > 1
                    && IntStream.range(1, stack.length)
                            .anyMatch(i -> stack[i].getClassName().equals(StatusCommand.class.getName())
                                    && stack[i - 1].getClassName().equals(Thread.class.getName())
                                    && stack[i - 1].getMethodName().equals("sleep"));
        }
    }

    @Test
    void watchWaitsForItsPeriod() throws Exception {
        try (TcpStoreServer server = TcpStoreServer.start(InetAddress.getLoopbackAddress(), 0);
                TcpStore front = open(server, 0);
                TcpStore behind = open(server, 1)) {
            AtomicInteger looks = new AtomicInteger();
            front.status("look", () -> "look " + looks.incrementAndGet());
            behind.status("look", () -> "seen");
            Watching watching = new Watching("--store", server.address(), "--watch", "3600");
            // Long enough for many looks without a period.
            watching.outcome.completeOnTimeout(null, 300, TimeUnit.MILLISECONDS).join();
            watching.thread.interrupt();
            watching.thread.join();
            assertEquals(1, looks.get(), watching.out::toString);
            assertTrue(watching.out.toString().contains("look 1"), watching.out::toString);
            assertFalse(watching.out.toString().contains("\u001b"), "the report goes to no terminal");
        }
    }

    @Test
    void watchEndsWithTheStore() throws Exception {
        TcpStoreServer server = TcpStoreServer.start(InetAddress.getLoopbackAddress(), 0);
        try (TcpStore one = open(server, 0)) {
            one.status("look", () -> "seen");
            Watching watching = new Watching("--store", server.address(), "--watch", "1");
            server.close();
            Outcome outcome = watching.outcome.get(30, TimeUnit.SECONDS);
            assertTrue(outcome.out().contains("seen"), outcome::toString);
            assertTrue(outcome.err().startsWith("nccl4j: "), outcome::toString);
            assertEquals(1, outcome.err().lines().count(), outcome::toString);
            assertEquals(1, outcome.code(), outcome::toString);
        }
    }

    @Test
    void jobThatIsWellHasNoFinding() {
        try (TcpStoreServer server = TcpStoreServer.start(InetAddress.getLoopbackAddress(), 0);
                TcpStore first = open(server, 0);
                TcpStore second = open(server, 1)) {
            first.status("epoch", () -> "3");
            second.status("epoch", () -> "3");
            Outcome outcome = status("--store", server.address());
            assertEquals(0, outcome.code(), outcome::toString);
            assertTrue(outcome.out().startsWith("2 of 2 ranks answered."), outcome::toString);
        }
    }

    @Test
    void allRanksAreListedOnRequest() {
        try (TcpStoreServer server = TcpStoreServer.start(InetAddress.getLoopbackAddress(), 0);
                TcpStore one = open(server, 0, 40)) {
            assertEquals(40, one.size());
            String few = status("--store", server.address()).out();
            assertTrue(few.contains("\n8 more ranks: --all lists them.\n"), few);
            String all = status("--store", server.address(), "--all").out();
            assertFalse(all.contains("more ranks"), all);
            assertEquals(8, all.lines().count() - few.lines().count() + 1, all);
        }
    }

    @Test
    void storeIsFoundByVariablesOrProcesses(@TempDir Path proc) throws IOException {
        try (TcpStoreServer server = TcpStoreServer.start(InetAddress.getLoopbackAddress(), 0)) {
            String noJob = "nccl4j: the store at " + server.address() + " has no job\n";
            assertEquals(
                    new Outcome(2, "", noJob),
                    find(Map.of("NCCL4J_STORE_ADDRESS", server.address()), proc.resolve("none")));
            assertEquals(
                    new Outcome(
                            2,
                            "",
                            "nccl4j: no job of this user runs on this machine, and no variable names a store: give its"
                                    + " address by --store, or set NCCL4J_STORE_ADDRESS\n"),
                    find(Map.of(), proc));
            write(proc.resolve("12"), "RANK=0\0NCCL4J_STORE_ADDRESS=" + server.address() + "\0");
            assertEquals(new Outcome(2, "", noJob), find(Map.of(), proc));
            write(proc.resolve("13"), "RANK=0\0NCCL4J_STORE_ADDRESS=b:2\0");
            Outcome several = find(Map.of(), proc);
            assertEquals(2, several.code());
            assertTrue(
                    several.err().startsWith("nccl4j: several jobs run on this machine: choose one by --store "),
                    several::toString);
            assertTrue(several.err().contains("--store b:2"), several::toString);
            assertTrue(several.err().contains(" or --store "), several::toString);
            assertTrue(several.err().contains("--store " + server.address()), several::toString);
        }
    }

    private static Outcome find(Map<String, String> environment, Path proc, String... arguments) {
        return status(new StatusCommand(environment, proc), new StringWriter(), arguments);
    }

    /** The secret of a store that a launcher keeps is known to its ranks only. */
    @Test
    void secretIsThatOfARank(@TempDir Path proc) throws IOException {
        String secret = "0123456789abcdef";
        try (TcpStoreServer server =
                TcpStoreServer.start(InetAddress.getLoopbackAddress(), 0, secret.getBytes(StandardCharsets.UTF_8))) {
            String address = server.address();
            String variables = "RANK=0\0NCCL4J_STORE_ADDRESS=" + address + "\0NCCL4J_STORE_SECRET=";
            write(proc.resolve("11"), variables);
            write(proc.resolve("12"), variables + secret + "\0");
            write(proc.resolve("13"), variables);
            Outcome joined = new Outcome(2, "", "nccl4j: the store at " + address + " has no job\n");
            assertEquals(joined, find(Map.of(), proc));
            assertEquals(joined, find(Map.of(), proc, "--store", address));
            assertEquals(joined, find(Map.of("NCCL4J_STORE_ADDRESS", address), proc));
            Outcome unknown = find(Map.of(), proc.resolve("none"), "--store", address);
            assertTrue(unknown.err().contains("the store has a secret, and this process has none"), unknown::toString);
        }
    }

    @ParameterizedTest
    @CsvSource({
        "--timeout, 0, from 1 to 60",
        "--timeout, 61, from 1 to 60",
        "--watch, 0, from 1 to 3600",
        "--watch, 3601, from 1 to 3600"
    })
    void numbersOutOfRangeAreRefused(String option, String number, String range) {
        Outcome refused = status("--store", "127.0.0.1:1", option, number);
        assertEquals(2, refused.code());
        assertTrue(refused.err().startsWith(option + " must be " + range + ": " + number), refused::toString);
    }

    @ParameterizedTest
    @CsvSource({"1, 1", "60, 3600"})
    void numbersInRangeAreAccepted(String timeout, String watch) throws IOException {
        String address;
        try (ServerSocket closed = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            address = "127.0.0.1:" + closed.getLocalPort();
        }
        Outcome refused = status("--store", address, "--timeout", timeout, "--watch", watch);
        assertTrue(refused.err().startsWith("nccl4j: no store responds at " + address), refused::toString);
    }

    @Test
    void missingStoreOrJobIsReported() throws Exception {
        int port;
        try (ServerSocket closed = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            port = closed.getLocalPort();
        }
        Outcome refused = status("--store", "127.0.0.1:" + port);
        assertEquals(2, refused.code());
        assertTrue(
                refused.err().startsWith("nccl4j: no store responds at 127.0.0.1:" + port + ": "), refused::toString);
        try (TcpStoreServer server = TcpStoreServer.start(InetAddress.getLoopbackAddress(), 0)) {
            Outcome outcome = status("--store", server.address());
            assertEquals(2, outcome.code());
            assertEquals("nccl4j: the store at " + server.address() + " has no job\n", outcome.err());
        }
    }

    /** The artifact is not on the class path of these tests. */
    @Test
    void missingArtifactOfAKindOfStoreIsNamed() {
        Outcome outcome = status("--store", "zookeeper://zk1:2181,zk2:2181");
        assertEquals(2, outcome.code());
        assertTrue(
                outcome.err()
                        .startsWith("a store with an address zookeeper://... can be observed only with the artifact"
                                + " nccl-zookeeper and its dependencies on the class path"),
                outcome::toString);
    }

    @Test
    void findsStoreByVariables(@TempDir Path proc) throws IOException {
        assertEquals("node0:7", StoreFinder.address(Map.of("NCCL4J_STORE_ADDRESS", "node0:7", "MASTER_ADDR", "x")));
        assertEquals("node0:29500", StoreFinder.address(Map.of("MASTER_ADDR", "node0")));
        assertEquals(
                "zookeeper://zk1:2181,zk2:2181/jobs",
                StoreFinder.address(Map.of("NCCL4J_ZOOKEEPER", "zk1:2181,zk2:2181/jobs", "MASTER_ADDR", "node0")));
        assertEquals("[::1]:8", StoreFinder.address(Map.of("MASTER_ADDR", "::1", "MASTER_PORT", "8")));
        // A shell that Slurm has started is no rank.
        assertEquals(
                "node0:29500",
                StoreFinder.address(Map.of("MASTER_ADDR", "node0", "SLURM_PROCID", "0", "SLURM_NTASKS", "1")));
        assertEquals(
                "node0:9",
                StoreFinder.address(Map.of(
                        "RANK",
                        "1",
                        "WORLD_SIZE",
                        "4",
                        "MASTER_ADDR",
                        "node0",
                        "MASTER_PORT",
                        "8",
                        "NCCL4J_STORE_PORT",
                        "9")));
        assertEquals(null, StoreFinder.address(Map.of()));
        write(proc.resolve("12"), "RANK=0\0NCCL4J_STORE_ADDRESS=a:1\0");
        write(proc.resolve("13"), "RANK=1\0NCCL4J_STORE_ADDRESS=a:1\0");
        write(proc.resolve("14"), "NCCL4J_STORE_ADDRESS=shell:1\0");
        write(proc.resolve("15"), "RANK=0\0NCCL4J_STORE_ADDRESS=b:2\0=x\0y\0");
        Files.createDirectories(proc.resolve("16"));
        assertEquals(Set.of("a:1", "b:2"), StoreFinder.ofProcesses(proc).keySet());
        assertNotNull(StoreFinder.ofProcesses(Path.of("/proc")));
    }

    private static void write(Path process, String environment) throws IOException {
        Files.createDirectories(process);
        Files.writeString(process.resolve("environ"), environment);
    }
}

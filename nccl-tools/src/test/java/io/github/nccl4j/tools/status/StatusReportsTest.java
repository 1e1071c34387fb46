package io.github.nccl4j.tools.status;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.launch.JobStatus;
import io.github.nccl4j.launch.RankStatus;
import io.github.nccl4j.launch.RankStatus.State;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Whole reports of {@code nccl4j status} on made answers, compared with files. With the system property {@code reports.write}
 * the files are written anew, to be read before they are committed.
 */
class StatusReportsTest {
    private static final Path REPORTS = Path.of("src/test/resources/io/github/nccl4j/tools/status/reports");
    private static final Duration TIMEOUT = Duration.ofMillis(1500);

    private final List<RankStatus> ranks = new ArrayList<>();

    private static String communicator(String id, String fields) {
        return "{\"format\": \"nccl4j communicator 1\", \"id\": \"" + id + "\"" + fields + "}";
    }

    /** A rank that has called some collectives, and is in one of them. */
    private static String waits(String id, int collectives, double seconds) {
        return communicator(
                id,
                ", \"name\": \"model\", \"rank\": 1, \"size\": 4, \"host\": \"node0\", \"process\": 77, \"device\": "
                        + "\"GPU 3\", \"state\": \"OPEN\", \"recorded\": 9, \"collectives\": " + collectives
                        + ", \"at\": 4, \"operation\": \"ncclAllReduce of 64 int32\", \"seconds\": " + seconds
                        + ", \"done\": 3, \"doneOperation\": \"ncclBroadcast\", \"doneSeconds\": 12.25");
    }

    private static String idle(String id, int collectives) {
        return communicator(id, ", \"recorded\": " + collectives + ", \"collectives\": " + collectives);
    }

    private void answers(String... texts) {
        Map<String, String> map = new TreeMap<>();
        for (String text : texts) {
            map.put("topic" + map.size(), text);
        }
        add(State.ANSWERED, Duration.ZERO, map, 0);
    }

    private void add(State state, Duration silence, Map<String, String> texts, int omitted) {
        int rank = ranks.size();
        String process =
                state == State.MISSING ? "" : rank % 2 == 0 ? "10.0.0.1, process " + (100 + rank) : "elsewhere";
        ranks.add(new RankStatus(rank, state, process, silence, texts, omitted));
    }

    private JobView view(String name, int restart) {
        return new JobView(new JobStatus(name, restart, ranks), TIMEOUT);
    }

    private void assertReport(String name, JobView view, int limit) throws IOException {
        String json = JsonReport.of("node0:29500", List.of(view)).replaceFirst("\"time\":\"[^\"]*\"", "\"time\":\"T\"");
        String found =
                TextReport.of(view, limit) + "\n" + json.replace(",{", ",\n{").replace("],", "],\n") + "\n";
        Path file = REPORTS.resolve(name + ".txt");
        if (System.getProperty("reports.write") != null) {
            Files.createDirectories(REPORTS);
            Files.writeString(file, found);
        }
        assertEquals(Files.readString(file), found);
    }

    /** One rank is two collectives behind those that wait for it; the longest wait is reported. */
    @Test
    void rankThatIsBehind() throws IOException {
        answers(waits("b", 5, 2), waits("a", 1, 1), "epoch 3");
        answers(waits("b", 5, 3.5));
        answers(idle("b", 3), "17 \u001b[2J");
        answers(waits("b", 4, 9));
        answers(waits("b", 5, 1));
        assertReport("behind", view("train", 2), 4);
    }

    private static String waitsInStream(String id, String stream, double seconds) {
        return communicator(
                id,
                ", \"state\": \"OPEN\", \"recorded\": 2, \"collectives\": 2, \"at\": 2, \"operation\": \"ncclAllGather\", \"stream\": \""
                        + stream + "\", \"seconds\": " + seconds);
    }

    /** Operations of two communicators wait in one stream; those of a third communicator in another one, and those of a fourth briefly. */
    @Test
    void ordersInOneStream() throws IOException {
        for (int rank = 0; rank < 3; rank++) {
            answers(
                    waitsInStream("a", "0x1", 4),
                    waitsInStream("b", "0x1", 3),
                    waitsInStream("c", "0x2", 4),
                    waitsInStream("d", "0x1", 0.5));
        }
        assertReport("orders", view("", 0), 99);
    }

    /** Two ranks wait in a call that is no operation; one has not made it, one has failed, and one is in another call. */
    @Test
    void rankThatHasNotMadeACall() throws IOException {
        String open = ", \"state\": \"OPEN\", \"recorded\": 3, \"collectives\": 3";
        answers(communicator("b", open + ", \"call\": \"ncclCommSplit\", \"callSeconds\": 3.2"));
        answers(communicator("b", open + ", \"call\": \"ncclCommSplit\""));
        answers(communicator("b", open));
        answers(communicator("b", open + ", \"failure\": \"boom\""));
        answers(communicator("b", open + ", \"call\": \"ncclCommShrink\", \"callSeconds\": 1"));
        assertReport("calls", view("train", 0), 99);
    }

    @Test
    void onlyRankThatIsBehind() throws IOException {
        answers(waits("b", 5, 2));
        answers(idle("b", 4));
        assertReport("one-behind", view("", 0), 99);
    }

    /** A rank that is behind is no finding if no other rank waits in the communicator. */
    @Test
    void ranksAtWork() throws IOException {
        answers(idle("b", 5));
        answers(idle("b", 4));
        answers(communicator("b", ", \"recorded\": 3, \"name\": \"\""));
        answers(communicator("c", ", \"recorded\": 0, \"state\": \"OPEN\""));
        answers();
        assertReport("at-work", view("train", 0), 5);
    }

    @Test
    void everyStateOfRanks() throws IOException {
        for (int round = 0; round < 2; round++) {
            answers();
            add(State.SILENT, Duration.ofMillis(4200), Map.of(), 0);
            add(State.NO_ANSWER, Duration.ZERO, Map.of(), 0);
            add(State.LOST, Duration.ZERO, Map.of(), 0);
            add(State.LEFT, Duration.ZERO, Map.of(), 0);
            add(State.MISSING, Duration.ZERO, Map.of(), 0);
            assertReport(round == 0 ? "states" : "states-of-two", view("train", 0), 99);
        }
    }

    @Test
    void failedCommunicators() throws IOException {
        answers(communicator("b", ", \"state\": \"FAILED\", \"failure\": \"ncclRemoteError\", \"name\": \"model\""));
        answers(communicator("b", ", \"state\": \"OPEN\", \"failure\": \"not done\", \"name\": \"model\""));
        answers(communicator("c", ", \"state\": \"CLOSED\""));
        answers(communicator("d", ", \"at\": 7, \"operation\": \"ncclSend\""));
        add(State.ANSWERED, Duration.ZERO, Map.of("topic", "text"), 3);
        assertReport("failed", view("train", 0), 99);
    }

    @Test
    void moreFindingsThanAreListed() throws IOException {
        for (int i = 0; i < 12; i++) {
            add(State.LOST, Duration.ZERO, Map.of(), 0);
        }
        assertReport("many", view("train", 0), 2);
        ranks.subList(10, 12).clear();
        assertTrue(!TextReport.of(view("train", 0), 10).contains(" more "));
    }

    @Test
    void textThatIsNoCommunicatorIsShown() {
        assertNull(CommunicatorView.read("{\"format\": \"nccl4j communicator 2\", \"id\": \"a\"}"));
        assertNull(CommunicatorView.read("{\"format\": \"nccl4j communicator 1\"}"));
        assertNull(CommunicatorView.read("{\"format\": \"nccl4j communicator 1\", \"id\": {}"));
        assertEquals("a", CommunicatorView.read(communicator("a", "")).label());
        assertEquals(
                "'m' (a)",
                CommunicatorView.read(communicator("a", ", \"name\": \"m\"")).label());
        assertEquals(
                "a",
                CommunicatorView.read(communicator("a", ", \"name\": \"\"")).label());
    }

    /* The addresses of stores. */

    private static String address(String... pairs) {
        Map<String, String> environment = new TreeMap<>();
        for (int i = 0; i < pairs.length; i += 2) {
            environment.put(pairs[i], pairs[i + 1]);
        }
        return StoreFinder.address(environment);
    }

    @Test
    void addressIsThatOfTheRanks() {
        assertEquals("keeper", address("NCCL4J_STORE_ADDRESS", " keeper ", "MASTER_ADDR", "node0"));
        assertNull(address("NCCL4J_STORE_ADDRESS", " ", "MASTER_ADDR", " "));
        assertEquals("node0:29500", address("MASTER_ADDR", " node0 "));
        assertEquals("node0:4711", address("MASTER_ADDR", "node0", "MASTER_PORT", " 4711 "));
        assertEquals("node0:5", address("MASTER_ADDR", "node0", "MASTER_PORT", "4711", "NCCL4J_STORE_PORT", "5"));
        assertEquals("node0:29500", address("MASTER_ADDR", "node0", "MASTER_PORT", " "));
        assertEquals("[::1]:29500", address("MASTER_ADDR", "::1"));
        assertEquals("[::1]:29500", address("MASTER_ADDR", "[::1]"));
        assertEquals("node0:6", address("MASTER_ADDR", "node0", "MASTER_PORT", "6", "RANK", "1", "WORLD_SIZE", "2"));
        assertNull(address("MASTER_ADDR", "node0", "MASTER_PORT", "6", "RANK", "0", "WORLD_SIZE", "1"));
        assertEquals("node0:6", address("MASTER_ADDR", "node0", "MASTER_PORT", "6", "RANK", "x"));
        // torchrun's own store is at the port, and that of the ranks at the next one.
        assertEquals(
                "node0:7",
                address(
                        "MASTER_ADDR",
                        "node0",
                        "MASTER_PORT",
                        "6",
                        "RANK",
                        "1",
                        "WORLD_SIZE",
                        "2",
                        "LOCAL_RANK",
                        "1",
                        "LOCAL_WORLD_SIZE",
                        "2",
                        "TORCHELASTIC_USE_AGENT_STORE",
                        "True"));
    }

    @Test
    void processesThatAreRanksNameTheirStore(@TempDir Path proc) throws IOException {
        write(proc, "1", "RANK=0\0WORLD_SIZE=2\0MASTER_ADDR=node1\0MASTER_PORT=6\0=broken\0alone\0");
        write(proc, "2", "RANK=1\0WORLD_SIZE=2\0MASTER_ADDR=node1\0MASTER_PORT=6");
        write(proc, "3", "MASTER_ADDR=shell");
        write(proc, "4", "RANK=1");
        write(proc, "5", "RANK=0\0NCCL4J_STORE_ADDRESS=keeper:4");
        write(proc, "self", "RANK=0\0NCCL4J_STORE_ADDRESS=no");
        Files.createDirectories(proc.resolve("6"));
        assertEquals(
                List.of("keeper:4", "node1:6"),
                List.copyOf(StoreFinder.ofProcesses(proc).keySet()));
        assertEquals(
                List.of(),
                List.copyOf(StoreFinder.ofProcesses(proc.resolve("none")).keySet()));
        assertEquals(Map.of(), StoreFinder.ofProcess(proc.resolve("3")));
    }

    private static void write(Path proc, String process, String environment) throws IOException {
        Files.writeString(Files.createDirectories(proc.resolve(process)).resolve("environ"), environment);
    }
}

package io.github.nccl4j.tests.host;

import static io.github.nccl4j.testing.Expect.assertContains;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.github.nccl4j.ras.RasClient;
import io.github.nccl4j.ras.RasEvents;
import io.github.nccl4j.ras.RasException;
import io.github.nccl4j.ras.RasFormat;
import io.github.nccl4j.testing.Ports;
import io.github.nccl4j.testing.Waiting;
import io.github.nccl4j.tests.ChildJvm;
import io.github.nccl4j.tools.launch.ChildProcesses;
import io.github.nccl4j.tools.launch.Signals;
import io.github.nccl4j.tools.ras.RasCommand;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import picocli.CommandLine;

/** The status service of the host engine, asked by the client that asks NCCL's. */
@Timeout(value = 5, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class HostEngineRasTest {
    private static final int RANKS = 3;
    private static final Duration LONG = Duration.ofSeconds(60);
    private static final Duration SECOND = Duration.ofSeconds(1);

    private final String address = "127.0.0.1:" + Ports.free();
    private final List<ChildJvm.Running> ranks = new ArrayList<>();

    @AfterEach
    void endRanks() {
        for (ChildJvm.Running rank : ranks) {
            ChildProcesses.kill(rank.process());
        }
    }

    private ChildJvm jvm() {
        return new ChildJvm().property("nccl4j.engine", "host").environment("NCCL_RAS_ADDR", address);
    }

    private void start(String scenario) throws InterruptedException {
        String id = Rank.newId();
        for (int rank = 0; rank < RANKS; rank++) {
            ranks.add(jvm().start(RasScenarios.class, scenario, id, "" + rank, "" + RANKS));
        }
        for (ChildJvm.Running rank : ranks) {
            rank.awaitText("ready");
        }
    }

    private long pid(int rank) {
        return ranks.get(rank).process().pid();
    }

    /** Stops a rank, and waits until all its threads are stopped. */
    private void stop(int rank) throws IOException, InterruptedException {
        Signals.send("STOP", pid(rank));
        List<Path> threads;
        try (Stream<Path> all = Files.list(Path.of("/proc/" + pid(rank) + "/task"))) {
            threads = all.toList();
        }
        for (Path thread : threads) {
            Waiting.until("stop of " + thread, () -> Files.readAllLines(thread.resolve("status")).stream()
                    .anyMatch(line -> line.startsWith("State:\tT")));
        }
    }

    private String status(RasFormat format, Duration timeout) {
        try (RasClient client = RasClient.connect(address, LONG)) {
            return client.status(format, timeout);
        }
    }

    @Test
    void twoCommunicatorsOfAHealthyJob() throws Exception {
        start("wait");
        String text = status(RasFormat.TEXT, LONG);
        // One node, three processes; the communicator of all, the two of its halves.
        assertTrue(text.matches("(?s).*\n +1 +3 +1 +3 +3\n.*"), text);
        assertTrue(text.matches("(?s).*\n +0 +1 +1 +3 +3 +3 +RUNNING +OK\n.*"), text);
        assertTrue(text.matches("(?s).*\n +1 +1 +1 +2 +2 +2 +RUNNING +OK\n.*"), text);
        assertTrue(text.matches("(?s).*\n +2 +1 +1 +1 +1 +1 +RUNNING +OK\n.*"), text);
        assertTrue(text.endsWith("\nErrors\n======\n\nWarnings\n========\n\n"), text);

        JsonObject json = JsonParser.parseString(status(RasFormat.JSON, LONG)).getAsJsonObject();
        assertEquals("2.32.3", json.get("nccl_version").getAsString());
        assertEquals(0, json.getAsJsonObject("ras").get("timeouts_count").getAsInt());
        JsonArray communicators = json.getAsJsonArray("communicators");
        assertEquals(3, communicators.size());
        for (var element : communicators) {
            JsonObject communicator = element.getAsJsonObject();
            boolean all = communicator.get("size").getAsInt() == RANKS;
            assertEquals(0, communicator.getAsJsonArray("missing_ranks").size());
            for (var member : communicator.getAsJsonArray("ranks")) {
                JsonObject rank = member.getAsJsonObject();
                JsonObject counts = rank.getAsJsonObject("collective_counts");
                assertEquals(all ? 3 : 0, counts.get("AllReduce").getAsInt());
                assertEquals(all ? 0 : 1, counts.get("Broadcast").getAsInt());
                assertEquals(9, counts.size());
                if (all) {
                    assertEquals(
                            pid(rank.get("rank").getAsInt()), rank.get("pid").getAsLong());
                }
            }
        }
    }

    @Test
    void clientsThatSayNothingDoNotKeepOthersOut() {
        ChildJvm.Outcome outcome = jvm().run(RasScenarios.class, "silent");
        assertEquals("an answer\nthe first silent client is disconnected\n", outcome.output());
    }

    @Test
    void aStoppedRankIsNamedAfterTheTimeout() throws Exception {
        start("wait");
        stop(1);
        String text = status(RasFormat.TEXT, SECOND);
        assertContains(
                text, "INCOMPLETE\n  1 process of the job gave no answer within the timeout\n  Process " + pid(1));
        assertContains(text, " INCOMPLETE\n  No data of 1 rank\n  Rank 1 -- GPU 0 managed by process " + pid(1));
        JsonObject json = JsonParser.parseString(status(RasFormat.JSON, SECOND)).getAsJsonObject();
        assertEquals(1, json.getAsJsonObject("ras").get("timeouts_count").getAsInt());
        assertContains(
                json.toString(),
                "\"pid\":" + pid(1)
                        + ",\"cuda_dev\":0,\"nvml_dev\":0,\"status\":{\"unresponsive\":true,\"considered_dead\":false}");
        Signals.send("CONT", pid(1));
        assertContains(status(RasFormat.TEXT, LONG), "\nErrors\n======\n\nWarnings\n========\n\n");
    }

    @Test
    void aKilledRankIsDead() throws Exception {
        start("wait");
        ChildProcesses.kill(ranks.get(2).process());
        assertContains(
                status(RasFormat.TEXT, LONG), "DEAD\n  1 process of the job ended without notice\n  Process " + pid(2));
    }

    @Test
    void numbersOfOperationsThatDifferAreShown() throws Exception {
        start("differ");
        String expected =
                "  The number of AllReduce operations differs between ranks\n  2 ranks have launched 4\n  Rank 2 has launched 3"
                        + " -- GPU 0 managed by process " + pid(2);
        // The ranks have said that they are about to call it.
        Waiting.value(expected, () -> status(RasFormat.TEXT, LONG), text -> text.contains(expected));
    }

    @Test
    void theCommandKnowsTheReleaseOfTheEngine() throws Exception {
        start("wait");
        StringWriter out = new StringWriter();
        CommandLine command =
                new CommandLine(new RasCommand()).setOut(new PrintWriter(out)).setErr(new PrintWriter(out));
        assertEquals(0, command.execute(address), out::toString);
        assertContains(out.toString(), "NCCL version 2.32.3, host engine of nccl4j\n");
        assertContains(out.toString(), "RUNNING      OK\n");
    }

    @Test
    void eventsTellOfProcesses() throws Exception {
        start("wait");
        // Rank 0 answers, and stays.
        stop(1);
        stop(2);
        BlockingQueue<String> lines = new LinkedBlockingQueue<>();
        CompletableFuture<Void> monitoring;
        try (RasClient client = RasClient.connect(address, LONG)) {
            Signals.send("CONT", pid(1));
            Signals.send("CONT", pid(2));
            CompletableFuture<Thread> thread = new CompletableFuture<>();
            monitoring = CompletableFuture.runAsync(() -> {
                thread.complete(Thread.currentThread());
                client.monitor(RasFormat.TEXT, Set.of(RasEvents.LIFECYCLE), lines::add);
            });
            awaitMonitor(thread.get());
            // The events tell of changes since the first collection, which precedes that of a later client.
            status(RasFormat.TEXT, LONG);
            assertEquals(List.of(), List.copyOf(lines));
            ChildProcesses.kill(ranks.get(2).process());
            String event = lines.poll(60, TimeUnit.SECONDS);
            assertContains(event, "] PEER_DEAD: Process " + pid(2) + " on node ");
        }
        monitoring.join();
    }

    /** Returns when the service has accepted the request, and the thread reads events. */
    private static void awaitMonitor(Thread thread) {
        Waiting.until("a client that reads events", () -> {
            List<String> calls = Arrays.stream(thread.getStackTrace())
                    .filter(call -> call.getClassName().equals(RasClient.class.getName()))
                    .map(StackTraceElement::getMethodName)
                    .toList();
            return calls.size() > 1 && calls.indexOf("monitor") == calls.lastIndexOf("readLine") + 1;
        });
    }

    private String converse(byte[] bytes, boolean closeHalf) throws IOException {
        try (Socket socket = new Socket(
                InetAddress.getLoopbackAddress(), Integer.parseInt(address.substring(address.indexOf(':') + 1)))) {
            socket.setSoTimeout(30_000);
            OutputStream out = socket.getOutputStream();
            out.write(bytes);
            if (closeHalf) {
                socket.shutdownOutput();
            }
            return new String(socket.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        }
    }

    @Test
    void wrongCommandsAndGarbageDoNoHarm() throws Exception {
        start("wait");
        assertEquals(
                "SERVER PROTOCOL 2\nERROR: Unknown command HELLO\nERROR: Invalid timeout value -1\nERROR: Invalid format xml\n"
                        + "ERROR: Invalid event group 'x'\n",
                converse(
                        "CLIENT PROTOCOL 2\r\nHELLO\nTIMEOUT -1\nSET FORMAT xml\nMONITOR x\nSTAT"
                                .getBytes(StandardCharsets.US_ASCII),
                        true));
        assertTrue(
                converse("STATUS\n".getBytes(StandardCharsets.US_ASCII), true).endsWith("Warnings\n========\n\n"));
        byte[] garbage = new byte[5000];
        Arrays.fill(garbage, (byte) 0xf7);
        assertEquals("", converse(garbage, false));
        List<Socket> silent = new ArrayList<>();
        for (int i = 0; i < 40; i++) {
            Socket socket = new Socket(
                    InetAddress.getLoopbackAddress(), Integer.parseInt(address.substring(address.indexOf(':') + 1)));
            silent.add(socket);
            socket.getOutputStream().write("VERBOSE".getBytes(StandardCharsets.US_ASCII));
            if (i % 2 == 0) {
                socket.setSoLinger(true, 0);
                socket.close();
            }
        }
        assertContains(status(RasFormat.VERBOSE_TEXT, LONG), "RUNNING      OK\n");
        for (Socket socket : silent) {
            socket.close();
        }
    }

    @Test
    void nothingIsLeftAfterTheLastCommunicator() {
        ChildJvm.Outcome outcome = jvm().run(RasScenarios.class, "end");
        assertEquals(0, outcome.exitCode(), outcome.output());
        assertContains(outcome.output(), "asked: true\nasked: true\nasked: true\nasked: true\nleft: []\nnone\n");
    }

    @Test
    void aTimeoutHasTheReportIfTheProgramWantsIt() {
        ChildJvm.Outcome outcome = jvm().property("nccl4j.ras", true).run(RasScenarios.class, "timeout");
        assertContains(outcome.output(), "RAS reports:\nNCCL version ");
        assertContains(outcome.output(), "Rank 0 has launched 1");
    }

    @Test
    void theServiceIsOffUnlessTheEnvironmentEnablesIt() throws Exception {
        ranks.add(new ChildJvm()
                .property("nccl4j.engine", "host")
                .start(RasScenarios.class, "wait", Rank.newId(), "0", "1"));
        ranks.add(jvm().environment("NCCL_RAS_ENABLE", "0").start(RasScenarios.class, "wait", Rank.newId(), "0", "1"));
        for (ChildJvm.Running rank : ranks) {
            rank.awaitText("ready");
        }
        assertThrows(RasException.class, () -> RasClient.connect(address, SECOND));
        ChildJvm.Outcome wrong = new ChildJvm()
                .property("nccl4j.engine", "host")
                .environment("NCCL_RAS_ADDR", "node0")
                .run(RasScenarios.class, "wait", Rank.newId(), "0", "1");
        assertContains(wrong.output(), "NCCL_RAS_ADDR must be HOST:PORT, with a port from 1 to 65535: 'node0'");
    }
}

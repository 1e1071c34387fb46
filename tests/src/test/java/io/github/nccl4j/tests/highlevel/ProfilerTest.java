package io.github.nccl4j.tests.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.github.nccl4j.tests.ChildJvm;
import io.github.nccl4j.tests.StubLibraries;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The way of an operation from the host engine through the plugin to a program. */
class ProfilerTest {
    private static final String OFF = "Statistics[operations=0, incomplete=0, pending=0, dropped=0]";

    @TempDir
    Path folder;

    private static ChildJvm jvm() {
        return new ChildJvm().property("nccl4j.engine", "host");
    }

    private static List<String> run(ChildJvm jvm, String scenario) {
        ChildJvm.Outcome outcome = jvm.run(ProfilerScenarios.class, scenario);
        assertEquals(0, outcome.exitCode(), outcome.output());
        return outcome.output().lines().toList();
    }

    private static String line(String function, int sequence, int number, String count, int peer, int tag) {
        boolean message = function.equals("ncclSend") || function.equals("ncclRecv");
        return function + " profiled 0/2/1 sequence " + sequence + " number " + number + " " + count + " peer " + peer
                + (message ? "   1" : " DIRECT HOST 1") + " tag " + tag;
    }

    @Test
    void subscribersGetOperations() {
        List<String> lines = run(jvm(), "operations");
        String count = "1000 ncclFloat32 4000";
        List<String> expected = List.of(
                line("ncclAllReduce", 1, 0, count, 0, 0),
                line("ncclBroadcast", 2, 0, count, 1, 0),
                line("ncclAllGather", 3, 0, count, 0, 0),
                line("ncclSend", -1, 0, count, 1, 0),
                line("ncclRecv", -1, 1, count, 1, 0),
                line("ncclAllReduce", 6, 1, count, 0, 42));
        List<String> found =
                lines.stream().filter(line -> line.contains(" profiled ")).toList();
        assertEquals(expected, found);
        assertTrue(lines.contains("Statistics[operations=12, incomplete=0, pending=0, dropped=0]"), lines::toString);
        assertTrue(lines.contains("later: 12"), lines::toString);
        assertEquals(
                12,
                lines.stream()
                        .filter(line -> line.contains("a faulty subscriber"))
                        .count(),
                lines::toString);
    }

    @Test
    void recordingIsSwitchedWhileCommunicatorsExist() {
        List<String> lines = run(jvm().property("nccl4j.profile", "ready"), "switched");
        assertEquals("true", lines.get(0));
        // The other rank does not wait for the switch, so the operations at the edges may be recorded or not.
        List<String> found = lines.subList(1, lines.size());
        for (int i = 4; i <= 5; i++) {
            String reduce = line("ncclAllReduce", 2 * i - 1, i - 1, "1 ncclFloat32 4", 0, 0);
            String broadcast = line("ncclBroadcast", 2 * i, i - 1, "1 ncclFloat32 4", 0, 0);
            assertTrue(found.containsAll(List.of(reduce, broadcast)), () -> reduce + " is not in " + found);
        }
        assertEquals(4, found.size(), found::toString);
    }

    @Test
    void aKernelThatEndsAfterTheRecordingIsGivenToSubscribers() {
        assertEquals(
                List.of("at the stop: 0", line("ncclAllReduce", 1, 0, "1 ncclFloat32 4", 0, 0)), run(jvm(), "ending"));
    }

    @Test
    void flightRecorderEventsHaveTheSameSequenceNumbers() {
        List<String> lines = run(jvm(), "jfr");
        List<String> collectives = List.of("ncclAllReduce 1", "ncclBroadcast 2", "ncclAllGather 3");
        for (String collective : collectives) {
            assertTrue(lines.containsAll(List.of("kernel " + collective, "call " + collective)), lines::toString);
        }
        assertTrue(lines.containsAll(List.of("kernel ncclAllReduce 6", "call ncclAllReduceConfig 6")), lines::toString);
        assertTrue(lines.containsAll(List.of("kernel ncclSend 0", "kernel ncclRecv 0")), lines::toString);
    }

    @Test
    void fileHasInspectorsFormat() throws IOException {
        Path out = folder.resolve("new/profile");
        run(jvm().property("nccl4j.profile", out), "plain");
        List<Path> files;
        try (Stream<Path> all = Files.list(out)) {
            files = all.toList();
        }
        assertEquals(1, files.size(), files::toString);
        assertTrue(files.get(0).getFileName().toString().matches(".+-pid\\d+\\.log"), files::toString);
        List<String> names = new ArrayList<>();
        for (String line : Files.readAllLines(files.get(0))) {
            JsonObject object = JsonParser.parseString(line).getAsJsonObject();
            JsonObject header = object.getAsJsonObject("header");
            assertTrue(header.get("id").getAsString().matches("0x[0-9a-f]+"), line);
            assertEquals("profiled", header.get("comm_name").getAsString());
            assertEquals(2, header.get("n_ranks").getAsInt());
            assertEquals(1, header.get("nnodes").getAsInt());
            JsonObject metadata = object.getAsJsonObject("metadata");
            assertEquals("v4.0", metadata.get("inspector_output_format_version").getAsString());
            for (String name : List.of("git_rev", "rec_mechanism", "dump_timestamp_us", "hostname", "pid")) {
                assertTrue(metadata.has(name), line);
            }
            String kind = object.has("coll_perf") ? "coll" : "p2p";
            JsonObject perf = object.getAsJsonObject(kind + "_perf");
            assertEquals(4000, perf.get(kind + "_msg_size_bytes").getAsInt());
            assertEquals("kernel_gpu", perf.get(kind + "_timing_source").getAsString());
            double nanoseconds =
                    object.getAsJsonObject("nccl4j").get("kernel_ns").getAsDouble();
            assertEquals(nanoseconds / 1000, perf.get(kind + "_exec_time_us").getAsInt(), 0.5001);
            String function = perf.get(kind).getAsString();
            double bytes = function.equals("AllGather") ? 8000 : 4000;
            double algorithm = perf.get(kind + "_algobw_gbs").getAsDouble();
            assertEquals(bytes / nanoseconds, algorithm, algorithm * 1e-9);
            double factor = function.equals("AllGather") ? 0.5 : 1;
            assertEquals(algorithm * factor, perf.get(kind + "_busbw_gbs").getAsDouble(), algorithm * 1e-9);
            if (header.get("rank").getAsInt() == 0) {
                names.add(function + " " + perf.get(kind + "_sn").getAsLong()
                        + (kind.equals("p2p") ? " " + perf.get("p2p_peer") : ""));
            }
        }
        // In the order in which they are done, which a send and a receive of a group do not have.
        names.subList(3, 5).sort(Comparator.reverseOrder());
        assertEquals(
                List.of("AllReduce 0", "Broadcast 0", "AllGather 0", "Send 0 1", "Recv 1 1", "AllReduce 1"), names);
    }

    @Test
    void manyOperationsLeaveNothing() {
        List<String> output = run(jvm(), "many");
        assertTrue(
                output.contains("Statistics[operations=40000, incomplete=0, pending=0, dropped=0]"), output.toString());
    }

    @Test
    void isOffWithoutSetting() {
        assertEquals(List.of(), run(jvm(), "plain"));
    }

    @Test
    void startAfterTheFirstCommunicatorIsRefused() {
        List<String> lines = run(jvm(), "late");
        assertTrue(
                lines.get(0)
                        .matches(
                                "the profiler must be prepared before the first communicator: ncclCommInitRankConfig was"
                                        + " called, and NCCL looks for plugins once"),
                lines::toString);
        assertEquals(OFF, lines.get(1));
    }

    @Test
    void settingThatCannotBeFulfilledIsLogged() throws IOException {
        Path file = Files.createFile(folder.resolve("file"));
        List<String> lines = run(jvm().property("nccl4j.profile", file), "plain");
        assertTrue(
                lines.stream()
                        .anyMatch(line -> line.contains("nccl4j.profile (NCCL4J_PROFILE) is '" + file
                                + "': cannot write the profile to " + file)),
                lines::toString);
    }

    @Test
    void olderLibraryIsRefused() throws IOException {
        ChildJvm.Outcome outcome = new ChildJvm()
                .property("nccl4j.library", StubLibraries.small(folder, 22602))
                .run(ProfilerScenarios.class, "operations");
        assertEquals(1, outcome.exitCode(), outcome.output());
        assertTrue(
                outcome.output().contains("the profiler needs NCCL 2.27.3, loaded is NCCL 2.26.2 from "),
                outcome::output);
    }

    /** A plugin of the user gets the events as well. */
    @Test
    void otherPluginOfTheUserIsPassedOn() throws IOException {
        ChildJvm.Outcome outcome = jvm().environment("NCCL_PROFILER_PLUGIN", "/nowhere/plugin.so")
                .run(ProfilerScenarios.class, "operations");
        assertEquals(0, outcome.exitCode(), outcome.output());
        assertTrue(
                outcome.output()
                        .contains(
                                "nccl4j: can't load the profiler plugin /nowhere/plugin.so: No such file or directory"),
                outcome::output);
        assertTrue(outcome.output().contains("operations=12"), outcome::output);
    }
}

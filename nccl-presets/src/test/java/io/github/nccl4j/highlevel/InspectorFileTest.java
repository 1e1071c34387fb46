package io.github.nccl4j.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.internal.diagnostics.InspectorFile;
import io.github.nccl4j.internal.log.HostName;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests of {@link InspectorFile} and of the bandwidths of {@link ProfiledOperation}. */
class InspectorFileTest {
    private static final Duration KERNEL = Duration.ofNanos(10_500);

    @TempDir
    Path folder;

    private Path file() {
        return folder.resolve(
                "profile/" + HostName.get() + "-pid" + ProcessHandle.current().pid() + ".log");
    }

    private static ProfiledOperation operation(
            String function, String name, OptionalLong sequence, long bytes, Optional<Duration> kernel) {
        boolean message = function.equals("ncclSend") || function.equals("ncclRecv");
        return new ProfiledOperation(
                0xabcdL,
                name,
                1,
                4,
                2,
                function,
                sequence,
                7,
                1000,
                "ncclFloat32",
                bytes,
                3,
                message ? "" : "RING",
                message ? "" : "LL",
                24,
                16,
                42,
                Instant.parse("2026-11-25T12:00:00.123456789Z"),
                kernel.map(time -> Duration.ofNanos(2500)),
                kernel);
    }

    private List<String> written(ProfiledOperation... operations) throws IOException {
        InspectorFile file = new InspectorFile(folder.resolve("profile"));
        for (ProfiledOperation one : operations) {
            file.write(one);
        }
        file.flush();
        List<String> lines = Files.readAllLines(file());
        file.close();
        file.close();
        file.flush();
        file.write(operations[0]);
        assertEquals(lines, Files.readAllLines(file()));
        return lines.stream()
                .map(line -> line.replaceFirst("(\"dump_timestamp_us\": )\\d{16},", "$1T,")
                        .replace("\"hostname\": \"" + HostName.get() + "\"", "\"hostname\": \"HOST\"")
                        .replace("\"pid\": " + ProcessHandle.current().pid() + "}", "\"pid\": PID}"))
                .toList();
    }

    @Test
    void collectiveHasTheFieldsOfInspectorAndOurs() throws IOException {
        assertEquals(
                List.of("{\"header\": {\"id\": \"0xabcd\", \"comm_name\": \"model\", \"rank\": 1, \"n_ranks\": 4,"
                        + " \"nnodes\": 2}, \"metadata\": {\"inspector_output_format_version\": \"v4.0\", \"git_rev\":"
                        + " \"nccl4j\", \"rec_mechanism\": \"nccl_profiler_interface\", \"dump_timestamp_us\": T,"
                        + " \"hostname\": \"HOST\", \"pid\": PID}, \"coll_perf\": {\"coll\": \"AllReduce\", \"coll_sn\": 7,"
                        + " \"coll_msg_size_bytes\": 5250, \"coll_exec_time_us\": 11, \"coll_timing_source\": \"kernel_gpu\","
                        + " \"coll_algobw_gbs\": 0.5, \"coll_busbw_gbs\": 0.75}, \"nccl4j\": {\"sequence\": 5,"
                        + " \"launched_us\": 1795608000123456, \"queued_ns\": 2500, \"kernel_ns\": 10500, \"count\": 1000,"
                        + " \"type\": \"ncclFloat32\", \"algorithm\": \"RING\", \"protocol\": \"LL\", \"channels\": 24,"
                        + " \"tag\": 42}}"),
                written(operation("ncclAllReduce", "model", OptionalLong.of(5), 5250, Optional.of(KERNEL))));
    }

    @Test
    void messageHasAPeer() throws IOException {
        for (String function : List.of("ncclSend", "ncclRecv")) {
            String line = written(operation(function, "", OptionalLong.empty(), 0, Optional.of(KERNEL)))
                    .get(0);
            String name = function.substring(4);
            assertTrue(line.contains("\"comm_name\": \"unknown\""), line);
            assertTrue(
                    line.contains("\"p2p_perf\": {\"p2p\": \"" + name + "\", \"p2p_sn\": 7, \"p2p_peer\": 3, "
                            + "\"p2p_msg_size_bytes\": 0, \"p2p_exec_time_us\": 11, \"p2p_timing_source\": \"kernel_gpu\", "
                            + "\"p2p_algobw_gbs\": 0"),
                    line);
            assertTrue(line.contains("\"nccl4j\": {\"sequence\": null,"), line);
        }
    }

    @Test
    void operationWithoutKernelIsOmitted() throws IOException {
        List<String> lines = written(
                operation("ncclAllReduce", "", OptionalLong.of(1), 4, Optional.empty()),
                operation("ncclAllGather", "", OptionalLong.of(2), 4, Optional.of(KERNEL)),
                operation("ncclAlltoAll", "", OptionalLong.of(3), 4, Optional.of(KERNEL)));
        assertEquals(2, lines.size());
        assertTrue(lines.get(0).contains("\"coll\": \"AllGather\""), lines.get(0));
        assertTrue(lines.get(1).contains("\"coll\": \"AlltoAll\""), lines.get(1));
    }

    @Test
    void folderThatCanNotBeCreatedIsNamed() throws IOException {
        Path taken = Files.writeString(folder.resolve("taken"), "");
        String message = assertThrows(UncheckedIOException.class, () -> new InspectorFile(taken))
                .getMessage();
        assertTrue(message.startsWith("cannot write the profile to " + taken + ": "), message);
    }

    @Test
    void bandwidthsCountWhatRanksMove() {
        double base = 4200 / 10_500.0;
        assertBandwidth("ncclAllReduce", base, base * 6 / 4);
        assertBandwidth("ncclAllGather", base * 4, base * 3);
        assertBandwidth("ncclReduceScatter", base * 4, base * 3);
        assertBandwidth("ncclAlltoAllv", base, base * 3 / 4);
        assertBandwidth("ncclBroadcast", base, base);
        for (Optional<Duration> time : List.of(Optional.<Duration>empty(), Optional.of(Duration.ZERO))) {
            ProfiledOperation none = operation("ncclAllReduce", "", OptionalLong.of(1), 4200, time);
            assertFalse(none.algorithmBandwidth().isPresent());
            assertFalse(none.busBandwidth().isPresent());
        }
        assertFalse(operation("ncclAllReduce", "", OptionalLong.of(1), 0, Optional.of(KERNEL))
                .algorithmBandwidth()
                .isPresent());
    }

    private static void assertBandwidth(String function, double algorithm, double bus) {
        ProfiledOperation operation = operation(function, "", OptionalLong.of(1), 4200, Optional.of(KERNEL));
        assertEquals(algorithm, operation.algorithmBandwidth().orElseThrow(), 1e-9);
        assertEquals(bus, operation.busBandwidth().orElseThrow(), 1e-9);
    }

    @Test
    void elementsHaveTheSizeOfTheirType() {
        assertEquals(4, ProfiledOperation.elementSize("ncclFloat32"));
        assertEquals(2, ProfiledOperation.elementSize("ncclBfloat16"));
        assertEquals(1, ProfiledOperation.elementSize("ncclFloat8e4m3"));
        assertEquals(0, ProfiledOperation.elementSize("ncclUnknown"));
    }
}

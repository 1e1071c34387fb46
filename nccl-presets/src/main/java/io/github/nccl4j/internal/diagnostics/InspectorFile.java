package io.github.nccl4j.internal.diagnostics;

import io.github.nccl4j.highlevel.ProfiledOperation;
import io.github.nccl4j.internal.log.HostName;
import io.github.nccl4j.internal.log.Json;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;

/**
 * A file in the format of NCCL Inspector: a line of JSON for each operation whose kernel was reported. The object "nccl4j" of a
 * line has the values that Inspector lacks; its programs ignore it. For the thread of the profiler.
 */
public final class InspectorFile {
    private final BufferedWriter out;
    private final String host = HostName.get();
    private final long process = ProcessHandle.current().pid();
    private boolean closed;

    /** Creates the file {@code <host>-pid<process>.log} in a folder, which is created if it does not exist. */
    public InspectorFile(Path folder) {
        try {
            Files.createDirectories(folder);
            out = Files.newBufferedWriter(folder.resolve(host + "-pid" + process + ".log"));
        } catch (IOException e) {
            throw new UncheckedIOException("cannot write the profile to " + folder + ": " + e.getMessage(), e);
        }
    }

    public synchronized void write(ProfiledOperation operation) {
        if (closed || operation.kernelTime().isEmpty()) {
            return;
        }
        try {
            out.write(line(operation));
            out.newLine();
        } catch (IOException e) {
            // One message is enough: the next operation would fail as well.
            closed = true;
            throw new UncheckedIOException("the profile ends here: " + e.getMessage(), e);
        }
    }

    private String line(ProfiledOperation operation) {
        boolean message =
                operation.function().equals("ncclSend") || operation.function().equals("ncclRecv");
        String kind = message ? "p2p" : "coll";
        long kernel = operation.kernelTime().orElse(Duration.ZERO).toNanos();
        Json json = new Json().begin();
        json.object("header")
                .field("id", "0x" + Long.toHexString(operation.communicator()))
                .field("comm_name", operation.name().isEmpty() ? "unknown" : operation.name())
                .field("rank", operation.rank())
                .field("n_ranks", operation.size())
                .field("nnodes", operation.nodes())
                .end();
        json.object("metadata")
                .field("inspector_output_format_version", "v4.0")
                .field("git_rev", "nccl4j")
                .field("rec_mechanism", "nccl_profiler_interface")
                .field("dump_timestamp_us", System.currentTimeMillis() * 1000)
                .field("hostname", host)
                .field("pid", process)
                .end();
        json.object(kind + "_perf")
                .field(kind, operation.function().replaceFirst("^nccl", ""))
                .field(kind + "_sn", operation.number());
        if (message) {
            json.field("p2p_peer", operation.peer());
        }
        json.field(kind + "_msg_size_bytes", operation.bytes())
                .field(kind + "_exec_time_us", (kernel + 500) / 1000)
                .field(kind + "_timing_source", "kernel_gpu")
                .field(kind + "_algobw_gbs", operation.algorithmBandwidth().orElse(0))
                .field(kind + "_busbw_gbs", operation.busBandwidth().orElse(0))
                .end();
        json.object("nccl4j")
                .field(
                        "sequence",
                        operation.sequence().isPresent() ? operation.sequence().getAsLong() : null)
                .field("launched_us", micros(operation))
                .field("queued_ns", operation.queued().orElse(Duration.ZERO).toNanos())
                .field("kernel_ns", kernel)
                .field("count", operation.count())
                .field("type", operation.type())
                .field("algorithm", operation.algorithm())
                .field("protocol", operation.protocol())
                .field("channels", operation.channels())
                .field("tag", operation.tag())
                .end();
        return json.end().toString();
    }

    private static long micros(ProfiledOperation operation) {
        return operation.launched().getEpochSecond() * 1_000_000
                + operation.launched().getNano() / 1000;
    }

    public synchronized void flush() {
        try {
            if (!closed) {
                out.flush();
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    public synchronized void close() {
        try {
            if (!closed) {
                closed = true;
                out.close();
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}

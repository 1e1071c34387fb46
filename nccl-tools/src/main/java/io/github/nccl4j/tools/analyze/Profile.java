package io.github.nccl4j.tools.analyze;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;

/** The files that the profiler wrote to a folder, in the format of NCCL Inspector. Lines of other programs have no kernels here. */
final class Profile {
    private static final String UNNAMED = "unknown";

    private final Map<Key, Kernel> byOperation = new HashMap<>();
    private final Map<Key, String> communicators = new HashMap<>();
    /** Two communicators without a name of one process: their operations can't be told apart. */
    private final Set<Key> ambiguous = new HashSet<>();

    private final List<Kernel> kernels = new ArrayList<>();

    /** An operation as the recorder numbers it, or a communicator if the sequence number is 0. */
    private record Key(String host, String process, String name, int rank, long sequence) {}

    /**
     * Kernels of one function and size.
     *
     * @param function the C function
     * @param bytes the size
     * @param count the number of kernels
     * @param median the median of their times, in nanoseconds
     * @param longest the longest time
     * @param busBandwidth the bandwidth of the median, in 10^9 bytes per second
     */
    record Summary(String function, long bytes, int count, long median, long longest, double busBandwidth) {}

    static boolean isProfile(String fileName) {
        return fileName.matches(".+-pid\\d+\\.log");
    }

    /** Adds the lines of a file; a last line that is not complete is ignored. */
    void read(BufferedReader content) throws IOException {
        int number = 0;
        for (String line = content.readLine(); line != null; line = content.readLine()) {
            number++;
            try {
                JsonElement element = JsonParser.parseString(line);
                if (!element.isJsonNull()) {
                    add(element.getAsJsonObject());
                }
            } catch (RuntimeException damaged) {
                boolean cut = damaged instanceof JsonParseException && content.readLine() == null;
                if (!cut) {
                    throw new IOException("line " + number + " is not one that the profiler writes", damaged);
                }
            }
        }
    }

    private void add(JsonObject line) {
        JsonObject more = line.getAsJsonObject("nccl4j");
        if (more == null) {
            return;
        }
        String kind = line.has("coll_perf") ? "coll" : "p2p";
        JsonObject header = line.getAsJsonObject("header");
        JsonObject metadata = line.getAsJsonObject("metadata");
        JsonObject performance = line.getAsJsonObject(kind + "_perf");
        String given = Limits.text(header.get("comm_name").getAsString());
        String name = given.equals(UNNAMED) ? "" : given;
        String id = header.get("id").getAsString();
        Kernel kernel = new Kernel(
                Limits.text("nccl" + performance.get(kind).getAsString()),
                performance.get(kind + "_msg_size_bytes").getAsLong(),
                header.get("rank").getAsInt(),
                new Kernel.Times(
                        more.get("launched_us").getAsLong(),
                        more.get("queued_ns").getAsLong(),
                        more.get("kernel_ns").getAsLong()),
                finite(performance.get(kind + "_busbw_gbs").getAsDouble()),
                new Kernel.Choice(
                        Limits.text(more.get("algorithm").getAsString() + " "
                                        + more.get("protocol").getAsString())
                                .strip(),
                        more.get("channels").getAsInt()),
                more.get("tag").getAsLong());
        kernels.add(kernel);
        Key communicator = new Key(
                Limits.text(metadata.get("hostname").getAsString()),
                Limits.text(metadata.get("pid").getAsString()),
                name,
                kernel.rank(),
                0);
        String other = communicators.putIfAbsent(communicator, id);
        if (other != null && !other.equals(id)) {
            ambiguous.add(communicator);
        }
        JsonElement sequence = more.get("sequence");
        if (!sequence.isJsonNull()) {
            byOperation.put(
                    new Key(communicator.host(), communicator.process(), name, kernel.rank(), sequence.getAsLong()),
                    kernel);
        }
    }

    private static double finite(double value) {
        if (!Double.isFinite(value)) {
            throw new NumberFormatException("not a finite number: " + value);
        }
        return value;
    }

    /** The kernel of a recorded operation. */
    Optional<Kernel> of(RankRecord record, Call call) {
        RankRecord.Header header = record.header();
        if (ambiguous.contains(new Key(header.host, header.process, header.name, header.rank, 0))) {
            return Optional.empty();
        }
        return Optional.ofNullable(byOperation.get(
                        new Key(header.host, header.process, header.name, header.rank, call.sequence())))
                .filter(kernel -> kernel.function().equals(call.plainFunction()));
    }

    /** The kernels by function and size, those with the longest total time first. */
    List<Summary> summaries() {
        Map<String, List<Kernel>> groups = new TreeMap<>();
        kernels.forEach(
                kernel -> groups.computeIfAbsent(kernel.function() + " " + kernel.bytes(), one -> new ArrayList<>())
                        .add(kernel));
        List<Summary> all = new ArrayList<>();
        for (List<Kernel> group : groups.values()) {
            group.sort(Comparator.comparingLong(Kernel::duration));
            Kernel middle = group.get(group.size() / 2);
            all.add(new Summary(
                    middle.function(),
                    middle.bytes(),
                    group.size(),
                    middle.duration(),
                    group.get(group.size() - 1).duration(),
                    middle.busBandwidth()));
        }
        all.sort(Comparator.comparingLong(one -> -one.median() * one.count()));
        return all;
    }
}

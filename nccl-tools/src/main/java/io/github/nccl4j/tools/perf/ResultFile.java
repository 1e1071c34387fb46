package io.github.nccl4j.tools.perf;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.JsonParser;
import io.github.nccl4j.highlevel.Version;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * The results in a JSON file of {@code nccl4j perf} or nccl-tests, or of one program in a comparison, for a plot: times in
 * microseconds and bus bandwidths in GB/s, by size in bytes.
 */
record ResultFile(String name, Map<Long, Double> micros, Map<Long, Double> bus) {
    /** In what nccl-tests prints. */
    private static final Pattern LIBRARY = Pattern.compile("NCCL version ([\\d.]+)");

    /** The end of the name of their results in a comparison. */
    private static final String THEIRS = ", nccl-tests";

    /** Reads the out-of-place or in-place results of a file. For a size with several results, the last one counts. */
    static ResultFile read(Path file, boolean inPlace) throws IOException {
        String key = inPlace ? "in_place" : "out_of_place";
        Map<Long, Double> micros = new TreeMap<>();
        Map<Long, Double> bus = new TreeMap<>();
        try {
            JsonObject json = parse(file);
            for (JsonElement element : results(json)) {
                JsonObject result = element.getAsJsonObject();
                long size = result.get("size").getAsLong();
                JsonElement measured = result.get(key);
                if (size == 0 || measured == null || measured.isJsonNull()) {
                    continue;
                }
                JsonObject numbers = measured.getAsJsonObject();
                JsonElement time = numbers.has("time") ? numbers.get("time") : numbers.get("cpu_time");
                micros.put(size, time.getAsDouble());
                bus.put(size, numbers.get("bus_bw").getAsDouble());
            }
        } catch (RuntimeException e) {
            throw noResults(file, e);
        }
        if (micros.isEmpty()) {
            throw new IOException(file + " has no results " + key.replace('_', ' '));
        }
        String name = file.getFileName().toString();
        return new ResultFile(name.endsWith(".json") ? name.substring(0, name.length() - 5) : name, micros, bus);
    }

    /**
     * As {@link #read}. For a file of {@code --against}, reads the results of both programs: medians of their runs; for one of
     * {@code nccl4j gradients}, a line for each way over the sizes of buckets; for one of {@code nccl4j benchmark-host}, a line for
     * each program.
     */
    static List<ResultFile> readAll(Path file, boolean inPlace) throws IOException {
        try {
            JsonObject json = parse(file);
            if (json.has("gradients")) {
                return gradients(json);
            }
            if (json.has("programs")) {
                return programs(json);
            }
            if (json.has("theirs")) {
                return List.of(side(json, "theirs_us", inPlace, THEIRS), side(json, "ours_us", inPlace, ", nccl4j"));
            }
        } catch (RuntimeException e) {
            throw noResults(file, e);
        }
        return List.of(read(file, inPlace));
    }

    /** The times of nccl4j divided by those of nccl-tests, by size. */
    record Ratios(String name, Map<Long, Double> bySize) {}

    /** Reads the ratios of a file of {@code --against}. */
    static Ratios readRatios(Path file, boolean inPlace) throws IOException {
        List<ResultFile> both = readAll(file, inPlace);
        String name = both.get(0).name();
        if (both.size() != 2 || !name.endsWith(THEIRS)) {
            throw new IOException(file + " is not a file of results of nccl4j perf --against");
        }
        Map<Long, Double> ratios = new TreeMap<>();
        both.get(0)
                .micros()
                .forEach((size, time) -> ratios.put(size, both.get(1).micros().get(size) / time));
        return new Ratios(name.substring(0, name.length() - THEIRS.length()), ratios);
    }

    /**
     * The subject of a file, for the title of a plot: collective, ranks, devices, library, day; values that the file
     * lacks are omitted.
     */
    static List<String> subject(Path file) throws IOException {
        try {
            return subject(parse(file));
        } catch (RuntimeException e) {
            throw noResults(file, e);
        }
    }

    private static IOException noResults(Path file, RuntimeException reason) {
        // The parser's own messages advise to parse less strictly.
        String text = reason instanceof JsonParseException ? "it is not JSON" : reason.getMessage();
        return new IOException(file + " is not a file of results of nccl4j perf or nccl-tests: " + text, reason);
    }

    private static List<String> subject(JsonObject json) {
        List<String> subject = new ArrayList<>();
        if (json.has("gradients")) {
            long mebibytes = json.get("bytes").getAsLong() >> 20;
            subject.add(json.get("gradients").getAsInt() + " gradients of " + mebibytes + " MiB by size of buckets");
            subject.add(json.get("ranks").getAsInt() + " ranks");
            subject.add(json.get("device").getAsString());
        }
        JsonArray devices = json.has("config") ? json.getAsJsonObject("config").getAsJsonArray("devices") : null;
        if (json.has("collective")) {
            subject.add(json.get("collective").getAsString());
            subject.add(json.get("ranks").getAsInt() + " ranks");
            for (String line : texts(json, "nccl_tests")) {
                Matcher version = LIBRARY.matcher(line);
                if (version.find()) {
                    subject.add("NCCL " + version.group(1));
                }
            }
        } else {
            texts(json, "args").stream()
                    .map(word -> word.substring(word.lastIndexOf('/') + 1).replaceFirst("_perf$", ""))
                    .filter(word -> Stream.of(Collective.values())
                            .anyMatch(collective -> collective.label().equals(word)))
                    .findFirst()
                    .ifPresent(subject::add);
            if (devices != null && !devices.isEmpty()) {
                subject.add(devices.size() + (devices.size() == 1 ? " rank" : " ranks"));
                JsonElement name = devices.get(0).getAsJsonObject().get("name");
                if (name != null) {
                    subject.add(name.getAsString());
                }
            }
            if (json.has("nccl_version")) {
                subject.add("NCCL " + Version.of(json.get("nccl_version").getAsInt()));
            }
        }
        for (String field : List.of("time", "start_time")) {
            if (json.has(field)) {
                subject.add(json.get(field).getAsString().split(" ", 2)[0]);
            }
        }
        return subject;
    }

    private static List<String> texts(JsonObject json, String field) {
        List<String> texts = new ArrayList<>();
        if (json.has(field)) {
            json.getAsJsonArray(field).forEach(text -> texts.add(text.getAsString()));
        }
        return texts;
    }

    private static ResultFile side(JsonObject json, String key, boolean inPlace, String program) {
        Collective collective =
                new PerfCommand.Names().convert(json.get("collective").getAsString());
        int ranks = json.get("ranks").getAsInt();
        Map<Long, Double> micros = new TreeMap<>();
        Map<Long, Double> bus = new TreeMap<>();
        for (JsonElement element : results(json)) {
            JsonObject result = element.getAsJsonObject();
            long size = result.get("size").getAsLong();
            if (size > 0 && result.get("in_place").getAsBoolean() == inPlace) {
                double time = SideBySide.median(numbers(result, key));
                long moved = collective == Collective.HYPERCUBE ? size / ranks * (ranks - 1) : size;
                micros.put(size, time);
                bus.put(size, moved / time / 1e3 * collective.busFactor(ranks));
            }
        }
        return new ResultFile(collective.label() + ", " + ranks + " ranks" + program, micros, bus);
    }

    /** As many lines as there are colors. Ways without buckets have the same values at the least and at the largest size. */
    private static List<ResultFile> gradients(JsonObject json) {
        TreeSet<Long> sizes = new TreeSet<>();
        for (JsonElement element : results(json)) {
            sizes.add(element.getAsJsonObject().get("size").getAsLong());
        }
        sizes.remove(0L);
        List<ResultFile> lines = new ArrayList<>();
        for (GradientExchange.Way way : GradientExchange.Way.values()) {
            ResultFile alone = new ResultFile(way.label, new TreeMap<>(), new TreeMap<>());
            ResultFile behind = new ResultFile(way.label + ", after a backward pass", new TreeMap<>(), new TreeMap<>());
            for (JsonElement element : results(json)) {
                JsonObject result = element.getAsJsonObject();
                long size = result.get("size").getAsLong();
                if (result.get("way").getAsString().equals(way.label)) {
                    for (long at : size > 0 ? List.of(size) : List.of(sizes.first(), sizes.last())) {
                        alone.micros.put(at, result.get("time").getAsDouble());
                        alone.bus.put(at, result.get("bus_bw").getAsDouble());
                        behind.micros.put(at, result.get("behind_us").getAsDouble());
                    }
                }
            }
            if (way != GradientExchange.Way.VIEWS) {
                lines.add(alone);
                if (way != GradientExchange.Way.ONE_GROUP) {
                    lines.add(behind);
                }
            }
        }
        return lines;
    }

    private static List<ResultFile> programs(JsonObject json) {
        Map<String, ResultFile> lines = new LinkedHashMap<>();
        String subject =
                json.get("collective").getAsString() + ", " + json.get("ranks").getAsInt() + " ranks, ";
        for (String program : texts(json, "programs")) {
            lines.put(program, new ResultFile(subject + program, new TreeMap<>(), new TreeMap<>()));
        }
        for (JsonElement element : results(json)) {
            JsonObject result = element.getAsJsonObject();
            ResultFile line = lines.get(result.get("program").getAsString());
            long size = result.get("size").getAsLong();
            line.micros.put(size, result.get("time").getAsDouble());
            line.bus.put(size, result.get("bus_bw").getAsDouble());
        }
        return List.copyOf(lines.values());
    }

    private static List<Double> numbers(JsonObject result, String key) {
        List<Double> numbers = new ArrayList<>();
        result.getAsJsonArray(key).forEach(number -> numbers.add(number.getAsDouble()));
        return numbers;
    }

    private static JsonObject parse(Path file) throws IOException {
        if (Files.isDirectory(file)) {
            throw new IOException(file + " is a folder, not a file of results");
        }
        String text = new String(Files.readAllBytes(file), StandardCharsets.UTF_8);
        return JsonParser.parseString(text).getAsJsonObject();
    }

    private static List<JsonElement> results(JsonObject json) {
        List<JsonElement> results = new ArrayList<>();
        json.getAsJsonArray("results").forEach(results::add);
        return results;
    }
}

package io.github.nccl4j.tools.perf;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * The results in a JSON file of {@code nccl4j perf} or nccl-tests, or of one program in a comparison, for a plot: times in
 * microseconds and bus bandwidths in GB/s, by size in bytes.
 */
record ResultFile(String name, Map<Long, Double> micros, Map<Long, Double> bus) {
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
            throw new IOException(file + " is not a file of results of nccl4j perf or nccl-tests: " + e, e);
        }
        if (micros.isEmpty()) {
            throw new IOException(file + " has no results " + key.replace('_', ' '));
        }
        String name = file.getFileName().toString();
        return new ResultFile(name.endsWith(".json") ? name.substring(0, name.length() - 5) : name, micros, bus);
    }

    /** As {@link #read}, and for a file of {@code --against} reads the results of both programs: medians of their runs. */
    static List<ResultFile> readAll(Path file, boolean inPlace) throws IOException {
        try {
            JsonObject json = parse(file);
            if (json.has("theirs")) {
                return List.of(
                        side(json, "theirs_us", inPlace, "nccl-tests"), side(json, "ours_us", inPlace, "nccl4j"));
            }
        } catch (RuntimeException e) {
            throw new IOException(file + " is not a file of results of nccl4j perf or nccl-tests: " + e, e);
        }
        return List.of(read(file, inPlace));
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
        return new ResultFile(collective.label() + ", " + ranks + " ranks, " + program, micros, bus);
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

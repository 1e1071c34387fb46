package io.github.nccl4j.samples.perf;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * What a picture shows of a file of results, ours or one of nccl-tests: by the size in bytes, the microseconds and the bus
 * bandwidth in GB/s.
 */
record ResultFile(String name, Map<Long, Double> micros, Map<Long, Double> bus) {
    /** Reads a file, and from it the results out of place, or in place. A size that was measured again counts once. */
    static ResultFile read(Path file, boolean inPlace) throws IOException {
        String key = inPlace ? "in_place" : "out_of_place";
        Map<Long, Double> micros = new TreeMap<>();
        Map<Long, Double> bus = new TreeMap<>();
        try {
            JsonObject json = JsonParser.parseString(Files.readString(file)).getAsJsonObject();
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
        } catch (JsonParseException | IllegalStateException | NullPointerException | NumberFormatException e) {
            throw new IOException(file + " is not a file of results of nccl4j perf or nccl-tests: " + e, e);
        }
        if (micros.isEmpty()) {
            throw new IOException(file + " has no results " + key.replace('_', ' '));
        }
        String name = file.getFileName().toString();
        return new ResultFile(name.endsWith(".json") ? name.substring(0, name.length() - 5) : name, micros, bus);
    }

    private static List<JsonElement> results(JsonObject json) {
        List<JsonElement> results = new ArrayList<>();
        json.getAsJsonArray("results").forEach(results::add);
        return results;
    }
}

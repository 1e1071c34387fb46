package io.github.nccl4j.tools.analyze;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.gson.Strictness;
import com.google.gson.stream.JsonReader;
import java.io.IOException;
import java.io.Reader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Reads a dump of torch's flight recorder in JSON: the operations of all process groups of one rank. */
final class TorchDump {
    private static final Pattern LAST_NUMBER = Pattern.compile(".*?(\\d+)(\\.json)?$");
    private static final Pattern PEER = Pattern.compile("(\\d+)(?:->|<-)(\\d+)");

    private static final String DEFAULT_GROUP = "0";

    private final Path file;
    private final Map<String, JsonObject> groups = new LinkedHashMap<>();
    private final Map<String, List<Call>> calls = new LinkedHashMap<>();
    private boolean found;
    private int operations;

    private TorchDump(Path file) {
        this.file = file;
    }

    /**
     * Reads a dump. Returns no records if the file is one of another program.
     *
     * @throws IOException if the dump is not whole, or if the name of the file does not end with the number of the rank
     */
    static List<RankRecord> read(Path file, Reader content) throws IOException {
        TorchDump dump = new TorchDump(file);
        try (JsonReader json = new JsonReader(content)) {
            json.setStrictness(Strictness.LENIENT);
            dump.read(json);
        } catch (IOException | RuntimeException damaged) {
            if (dump.found) {
                String reason = damaged instanceof IOException ? ": " + damaged.getMessage() : "";
                throw new IOException("not a whole dump of torch" + reason, damaged);
            }
        }
        return dump.found ? dump.records() : List.of();
    }

    private void read(JsonReader json) throws IOException {
        json.beginObject();
        while (json.hasNext()) {
            switch (json.nextName()) {
                case "pg_config" -> {
                    found = true;
                    // Gloo's groups are all described under an empty name: their ranks are not known.
                    JsonParser.parseReader(json).getAsJsonObject().entrySet().stream()
                            .filter(group -> !group.getKey().isEmpty())
                            .forEach(group ->
                                    groups.put(group.getKey(), group.getValue().getAsJsonObject()));
                }
                case "entries" -> {
                    found = true;
                    json.beginArray();
                    while (json.hasNext()) {
                        add(JsonParser.parseReader(json).getAsJsonObject());
                        Limits.operations(++operations);
                    }
                    json.endArray();
                }
                default -> json.skipValue();
            }
        }
        json.endObject();
    }

    private List<RankRecord> records() throws IOException {
        Matcher name = LAST_NUMBER.matcher(file.getFileName().toString());
        if (!name.matches()) {
            throw new IOException("the name of a dump of torch must end with the rank, as in dump_3.json");
        }
        int rank = Limits.rank("the rank at the end of its name", Long.parseLong(name.group(1)));
        groups.putIfAbsent(DEFAULT_GROUP, new JsonObject());
        calls.keySet().forEach(group -> groups.putIfAbsent(group, new JsonObject()));
        List<RankRecord> records = new ArrayList<>();
        for (Map.Entry<String, JsonObject> group : groups.entrySet()) {
            List<Call> called = calls.getOrDefault(group.getKey(), List.of());
            records.add(new RankRecord(file, header(group.getKey(), group.getValue(), rank), called, false));
        }
        return records;
    }

    private static RankRecord.Header header(String group, JsonObject config, int rank) throws IOException {
        String ranks = config.has("ranks") ? config.get("ranks").getAsString().replaceAll("[^0-9,]", "") : "";
        List<String> members = ranks.isEmpty() ? List.of() : List.of(ranks.split(","));
        RankRecord.Header header = new RankRecord.Header();
        // The same name may be that of another group on another rank.
        header.communicator = Limits.text(group) + (ranks.isEmpty() ? "" : "." + ranks);
        header.derived = !group.equals(DEFAULT_GROUP);
        header.name = header.derived ? Limits.text("group " + group) : "the default group";
        header.size = Limits.rank("size", members.size());
        int own = members.indexOf(Integer.toString(rank));
        header.rank = own < 0 ? rank : own;
        header.world = rank;
        header.process = "rank " + rank;
        return header;
    }

    private void add(JsonObject entry) throws IOException {
        String group = entry.getAsJsonArray("process_group").get(0).getAsString();
        String profiled = text(entry, "profiling_name");
        String[] words = profiled.substring(profiled.indexOf(':') + 1).split(" ");
        boolean single = entry.has("is_p2p") && entry.get("is_p2p").getAsBoolean();
        String sequence = single ? "p2p_seq_id" : "collective_seq_id";
        long number = Limits.number(sequence, number(entry, sequence));
        boolean scatters = words[0].equals("scatter");
        long done = Limits.micros(number(entry, "time_discovered_completed_ns"));
        boolean completed = text(entry, "state").equals("completed");
        calls.computeIfAbsent(group, one -> new ArrayList<>())
                .add(new Call(
                        number,
                        single ? 0 : number,
                        new Call.Operation(
                                words[0],
                                words[0].startsWith("all_to_all")
                                        ? -1
                                        : elements(entry, scatters ? "output_sizes" : "input_sizes"),
                                type(entry, scatters ? "output_dtypes" : "input_dtypes"),
                                "",
                                peer(words)),
                        "",
                        0,
                        Limits.micros(number(entry, "time_created_ns")),
                        completed && done == 0 ? 1 : done));
    }

    /** The other rank of "send 1->2" and of "recv 2<-1". */
    private static int peer(String[] words) {
        Matcher ranks = PEER.matcher(words.length > 1 ? words[1] : "");
        return ranks.matches() ? Integer.parseInt(ranks.group(2)) : -1;
    }

    private static long elements(JsonObject entry, String field) {
        long sum = 0;
        for (JsonElement sizes : array(entry, field)) {
            long product = 1;
            for (JsonElement size : sizes.getAsJsonArray()) {
                product *= size.getAsLong();
            }
            sum += product;
        }
        return sum;
    }

    private static String type(JsonObject entry, String field) {
        JsonArray types = array(entry, field);
        return types.isEmpty() ? "" : Limits.text(types.get(0).getAsString());
    }

    private static JsonArray array(JsonObject entry, String field) {
        return entry.has(field) ? entry.getAsJsonArray(field) : new JsonArray();
    }

    private static String text(JsonObject object, String field) {
        JsonElement value = object.get(field);
        return value == null || value.isJsonNull() ? "" : Limits.text(value.getAsString());
    }

    private static long number(JsonObject object, String field) {
        JsonElement value = object.get(field);
        return value == null || value.isJsonNull() ? 0 : value.getAsLong();
    }
}

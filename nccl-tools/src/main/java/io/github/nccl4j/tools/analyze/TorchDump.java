package io.github.nccl4j.tools.analyze;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.JsonParser;
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
    private final int rank;
    private final Map<String, RankRecord.Header> groups = new LinkedHashMap<>();
    private final Map<String, List<Call>> calls = new LinkedHashMap<>();

    private TorchDump(Path file, int rank) {
        this.file = file;
        this.rank = rank;
    }

    /**
     * Reads a dump.
     *
     * @throws IOException if the file is not such a dump, or if its name does not end with the number of the rank
     */
    static List<RankRecord> read(Path file, Reader content) throws IOException {
        Matcher name = LAST_NUMBER.matcher(file.getFileName().toString());
        if (!name.matches()) {
            throw new IOException(file + ": the name of a dump of torch must end with the rank, as in dump_3.json");
        }
        try {
            return new TorchDump(file, Integer.parseInt(name.group(1)))
                    .read(JsonParser.parseReader(content).getAsJsonObject());
        } catch (JsonParseException | IllegalStateException | NumberFormatException damaged) {
            throw new IOException(file + ": not a whole dump of torch: " + damaged.getMessage(), damaged);
        }
    }

    private List<RankRecord> read(JsonObject dump) {
        JsonObject config = dump.has("pg_config") ? dump.getAsJsonObject("pg_config") : new JsonObject();
        // Gloo's groups are all described under an empty name: their ranks are not known.
        config.entrySet().stream()
                .filter(group -> !group.getKey().isEmpty())
                .forEach(group -> begin(group.getKey(), group.getValue().getAsJsonObject()));
        if (!groups.containsKey(DEFAULT_GROUP)) {
            begin(DEFAULT_GROUP, new JsonObject());
        }
        if (dump.has("entries")) {
            dump.getAsJsonArray("entries").forEach(entry -> add(entry.getAsJsonObject()));
        }
        List<RankRecord> records = new ArrayList<>();
        groups.forEach((group, header) -> records.add(new RankRecord(file, header, calls.get(group), false)));
        return records;
    }

    private void begin(String group, JsonObject config) {
        String ranks = text(config, "ranks").replaceAll("[\\[\\] ]", "");
        List<String> members = ranks.isEmpty() ? List.of() : List.of(ranks.split(","));
        RankRecord.Header header = new RankRecord.Header();
        // The same name may be that of another group on another rank.
        header.communicator = ranks.isEmpty() ? group : group + "." + ranks;
        header.derived = !group.equals(DEFAULT_GROUP);
        header.name = header.derived ? "group " + group : "the default group";
        header.size = members.size();
        int own = members.indexOf(Integer.toString(rank));
        header.rank = own < 0 ? rank : own;
        header.world = rank;
        header.process = "rank " + rank;
        groups.put(group, header);
        calls.put(group, new ArrayList<>());
    }

    private void add(JsonObject entry) {
        String group = entry.getAsJsonArray("process_group").get(0).getAsString();
        if (!groups.containsKey(group)) {
            begin(group, new JsonObject());
        }
        RankRecord.Header header = groups.get(group);
        String profiled = text(entry, "profiling_name");
        String[] words = profiled.substring(profiled.indexOf(':') + 1).split(" ");
        boolean single = entry.has("is_p2p") && entry.get("is_p2p").getAsBoolean();
        long number = number(entry, single ? "p2p_seq_id" : "collective_seq_id");
        boolean scatters = words[0].equals("scatter");
        long done = number(entry, "time_discovered_completed_ns") / 1000;
        boolean completed = text(entry, "state").equals("completed");
        calls.get(group)
                .add(new Call(
                        number,
                        single ? 0 : number,
                        words[0],
                        words[0].startsWith("all_to_all")
                                ? -1
                                : elements(entry, scatters ? "output_sizes" : "input_sizes"),
                        type(entry, scatters ? "output_dtypes" : "input_dtypes"),
                        "",
                        peer(words),
                        number(entry, "time_created_ns") / 1000,
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
        return types.isEmpty() ? "" : types.get(0).getAsString();
    }

    private static JsonArray array(JsonObject entry, String field) {
        return entry.has(field) ? entry.getAsJsonArray(field) : new JsonArray();
    }

    private static String text(JsonObject object, String field) {
        JsonElement value = object.get(field);
        return value == null || value.isJsonNull() ? "" : value.getAsString();
    }

    private static long number(JsonObject object, String field) {
        JsonElement value = object.get(field);
        return value == null || value.isJsonNull() ? 0 : value.getAsLong();
    }
}

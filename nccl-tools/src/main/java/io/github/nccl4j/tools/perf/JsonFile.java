package io.github.nccl4j.tools.perf;

import com.google.gson.stream.JsonWriter;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.LocalDateTime;
import java.time.ZoneId;
import java.time.format.DateTimeFormatter;
import java.util.List;
import java.util.Locale;
import java.util.TreeMap;

/**
 * Writes results to a JSON file in the format of nccl-tests, version 3. Keeps an existing file, and adds a number to the name of
 * the new file. Not thread-safe.
 */
final class JsonFile implements Results, AutoCloseable {
    static final DateTimeFormatter TIME = DateTimeFormatter.ofPattern("yyyy-MM-dd HH:mm:ss", Locale.ROOT);

    private static final int VERSION = 3;

    private final Path path;
    private final JsonWriter json;
    private final Settings settings;

    JsonFile(Path wanted, Settings settings) throws IOException {
        this.settings = settings;
        Path free = wanted;
        JsonWriter writer = null;
        for (int i = 0; writer == null; i++) {
            try {
                writer = new JsonWriter(
                        Files.newBufferedWriter(free, StandardCharsets.UTF_8, StandardOpenOption.CREATE_NEW));
            } catch (FileAlreadyExistsException e) {
                free = wanted.resolveSibling(wanted.getFileName() + "." + i);
            }
        }
        path = free;
        json = writer;
    }

    Path path() {
        return path;
    }

    /** Writes the fields before the results. */
    void begin(List<String> arguments, int ncclVersion, List<RankDevice> devices) throws IOException {
        json.beginObject();
        json.name("version").value(VERSION);
        json.name("start_time").value(LocalDateTime.now(ZoneId.systemDefault()).format(TIME));
        json.name("args").beginArray();
        for (String argument : arguments) {
            json.value(argument);
        }
        json.endArray();
        json.name("env").beginArray();
        // Unlike nccl-tests, not the whole environment, which may contain secrets: users share result files.
        for (var variable : new TreeMap<>(System.getenv()).entrySet()) {
            if (variable.getKey().startsWith("NCCL") || variable.getKey().startsWith("CUDA")) {
                json.value(variable.getKey() + "=" + variable.getValue());
            }
        }
        json.endArray();
        json.name("nccl_version").value(ncclVersion);
        json.name("config").beginObject();
        config();
        json.name("devices").beginArray();
        for (RankDevice device : devices) {
            device.write(json);
        }
        json.endArray();
        json.endObject();
        json.name("results").beginArray();
    }

    private void config() throws IOException {
        json.name("nthreads").value(settings.threads);
        json.name("ngpus").value(settings.gpus);
        json.name("minimum_bytes").value(settings.minBytes);
        json.name("maximum_bytes").value(settings.maxBytes);
        if (settings.stepFactor > 1) {
            json.name("step_factor").value(settings.stepFactor);
        } else {
            json.name("step_bytes").value(settings.stepBytes);
        }
        json.name("warmup_iters").value(settings.warmup);
        json.name("iterations").value(settings.iterations);
        json.name("aggregated_iterations").value(settings.aggregated);
        json.name("validation").value(settings.checks);
        json.name("graph").value(settings.graphLaunches);
        // As in nccl-tests, booleans are strings.
        json.name("blocking_collectives").value(Boolean.toString(settings.blocking != 0));
        json.name("per_iter_timing").value(Boolean.toString(settings.perIteration != 0));
        json.name("per_iter_skip").value(settings.skipped);
        json.name("parallel_init").value(Boolean.toString(settings.parallelInit != 0));
    }

    @Override
    public void add(Row row) {
        try {
            json.beginObject();
            json.name("size").value(row.bytes());
            json.name("count").value(row.count());
            json.name("type").value(row.type());
            json.name("redop").value(row.operator());
            json.name("root").value(String.format(Locale.ROOT, "%6d", row.root()));
            write("out_of_place", row.outOfPlace());
            write("in_place", row.inPlace());
            json.name("actual_iterations").value(settings.iterations);
            json.name("experiment_name").value("");
            json.endObject();
            json.flush();
        } catch (IOException e) {
            throw new UncheckedIOException("can't write " + path, e);
        }
    }

    private void write(String name, Measurement measurement) throws IOException {
        json.name(name).beginObject();
        json.name(settings.cpuTime != 0 ? "cpu_time" : "time").value(measurement.micros());
        json.name("alg_bw").value(measurement.algorithm());
        json.name("bus_bw").value(measurement.bus());
        json.name("nwrong");
        if (measurement.wrong() == null) {
            json.nullValue();
        } else {
            json.value(measurement.wrong());
        }
        json.endObject();
        if (measurement.iterations() != null) {
            json.name(name + "_per_iter");
            measurement.iterations().write(json);
        }
    }

    /** Writes the fields after the results. */
    void end(int wrongResults, double averageBus, boolean bandwidthChecked, boolean bandwidthFine) throws IOException {
        json.endArray();
        json.name("out_of_bounds").beginObject();
        json.name("count").value(wrongResults);
        json.name("okay").value(Boolean.toString(wrongResults == 0));
        json.endObject();
        json.name("average_bus_bandwidth").beginObject();
        json.name("bandwidth").value(averageBus);
        json.name("okay").value(bandwidthChecked ? Boolean.toString(bandwidthFine) : "unchecked");
        json.endObject();
        json.name("errors").beginArray().endArray();
        json.name("end_time").value(LocalDateTime.now(ZoneId.systemDefault()).format(TIME));
        json.endObject();
    }

    @Override
    public void close() throws IOException {
        json.close();
    }
}

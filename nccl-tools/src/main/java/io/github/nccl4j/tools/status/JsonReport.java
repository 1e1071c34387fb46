package io.github.nccl4j.tools.status;

import com.google.gson.stream.JsonWriter;
import io.github.nccl4j.tools.support.Printable;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.time.Instant;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** The report as one JSON object in one line. */
final class JsonReport {
    private static final double NANOS = 1e9;

    private JsonReport() {}

    static String of(String store, List<JobView> jobs) {
        StringWriter text = new StringWriter();
        try (JsonWriter json = new JsonWriter(text)) {
            json.beginObject();
            json.name("format").value("nccl4j status 1");
            json.name("time").value(Instant.now().toString());
            json.name("store").value(store);
            json.name("jobs").beginArray();
            for (JobView job : jobs) {
                write(json, job);
            }
            json.endArray();
            json.endObject();
        } catch (IOException impossible) {
            throw new UncheckedIOException(impossible);
        }
        return Printable.json(text.toString());
    }

    private static void write(JsonWriter json, JobView view) throws IOException {
        json.beginObject();
        json.name("job").value(view.job().job());
        json.name("attempt").value(view.job().restart());
        json.name("size").value(view.rows().size());
        json.name("answered").value(view.answered());
        json.name("findings").beginArray();
        for (JobView.Finding finding : view.findings()) {
            json.beginObject();
            json.name("id").value(finding.id());
            json.name("help").value(finding.helpId());
            json.name("ranks").beginArray();
            for (int rank : finding.ranks()) {
                json.value(rank);
            }
            json.endArray();
            json.name("text").value(finding.text());
            json.endObject();
        }
        json.endArray();
        json.name("ranks").beginArray();
        for (JobView.Row row : view.rows()) {
            write(json, view, row);
        }
        json.endArray();
        json.endObject();
    }

    private static void write(JsonWriter json, JobView view, JobView.Row row) throws IOException {
        json.beginObject();
        json.name("rank").value(row.rank());
        json.name("state").value(row.status().state().name().toLowerCase(Locale.ROOT));
        json.name("process").value(row.status().process());
        json.name("silentSeconds").value(row.status().silence().toNanos() / NANOS);
        json.name("omitted").value(row.status().omitted());
        json.name("communicators").beginArray();
        for (CommunicatorView one : row.communicators()) {
            json.beginObject();
            json.name("id").value(one.id);
            json.name("name").value(one.name);
            json.name("rank").value(one.rank);
            json.name("size").value(one.size);
            json.name("host").value(one.host);
            json.name("process").value(one.process);
            json.name("device").value(one.device);
            json.name("state").value(one.state);
            json.name("failure").value(one.failure);
            json.name("called").value(one.recorded);
            json.name("collectives").value(one.collectives);
            json.name("behind").value(view.behind(one));
            json.name("at").value(one.operation == null ? null : (Long) one.at);
            json.name("operation").value(one.operation);
            json.name("seconds").value(one.seconds);
            json.name("stream").value(one.stream);
            json.name("call").value(one.call);
            json.name("callSeconds").value(one.callSeconds);
            json.name("done").value(one.doneOperation == null ? null : (Long) one.done);
            json.name("doneOperation").value(one.doneOperation);
            json.name("doneSeconds").value(one.doneSeconds);
            json.endObject();
        }
        json.endArray();
        json.name("texts").beginObject();
        for (Map.Entry<String, String> text : row.texts().entrySet()) {
            json.name(text.getKey()).value(text.getValue());
        }
        json.endObject();
        json.endObject();
    }
}

package io.github.nccl4j.tools.analyze;

import com.google.gson.stream.JsonWriter;
import io.github.nccl4j.tools.support.Printable;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;

/** The analysis as one JSON object in one line. */
final class JsonReport {
    private JsonReport() {}

    static String of(Analysis analysis) {
        StringWriter text = new StringWriter();
        try (JsonWriter json = new JsonWriter(text)) {
            json.beginObject();
            json.name("format").value("nccl4j analysis 1");
            json.name("status").value(analysis.findings().isEmpty() ? "ok" : "finding");
            findings(json, analysis);
            json.name("consequences").value(analysis.consequences());
            json.name("ranks").value(analysis.job().members());
            json.name("operations").value(analysis.job().operations());
            json.name("olderRecords").value(analysis.job().olderRecords());
            json.name("omitted").beginArray();
            for (String reason : analysis.omitted()) {
                json.value(reason);
            }
            json.endArray();
            stragglers(json, analysis);
            json.name("clocks").beginObject();
            for (String host : analysis.job().hosts()) {
                json.name(host).value(analysis.clocks().getOrDefault(host, 0L) / 1e6);
            }
            json.endObject();
            communicators(json, analysis);
            json.endObject();
        } catch (IOException impossible) {
            throw new UncheckedIOException(impossible);
        }
        return Printable.json(text.toString());
    }

    private static void findings(JsonWriter json, Analysis analysis) throws IOException {
        json.name("findings").beginArray();
        for (Finding finding : analysis.findings()) {
            json.beginObject();
            json.name("id").value(finding.id());
            json.name("help").value(finding.helpId());
            json.name("ranks").beginArray();
            for (int rank : finding.ranks()) {
                json.value(rank);
            }
            json.endArray();
            json.name("communicator").value(finding.communicator());
            json.name("operation").value(finding.operation());
            json.name("text").value(finding.text());
            json.name("reason").value(finding.reason());
            NextStep step = NextStep.of(finding, analysis.job());
            json.name("places").beginArray();
            for (NextStep.Place place : step.places()) {
                json.beginObject().name("rank").value(place.rank());
                json.name("host").value(place.host());
                json.name("process").value(place.process()).endObject();
            }
            json.endArray();
            json.name("next").value(step.text());
            json.endObject();
        }
        json.endArray();
    }

    private static void stragglers(JsonWriter json, Analysis analysis) throws IOException {
        json.name("stragglers").beginArray();
        for (Lateness.Straggler one : analysis.stragglers()) {
            json.beginObject();
            json.name("rank").value(one.rank());
            json.name("last").value(one.late());
            json.name("measured").value(one.measured());
            json.name("medianSeconds").value(one.median() / 1e6);
            json.name("longestSeconds").value(one.longest() / 1e6);
            json.name("totalSeconds").value(one.total() / 1e6);
            json.endObject();
        }
        json.endArray();
    }

    private static void communicators(JsonWriter json, Analysis analysis) throws IOException {
        json.name("communicators").beginArray();
        for (CommunicatorRecords communicator : analysis.job().communicators()) {
            json.beginObject();
            json.name("id").value(communicator.id());
            json.name("name").value(communicator.label());
            json.name("size").value(communicator.size());
            json.name("records").beginArray();
            for (RankRecord record : communicator.records()) {
                json.beginObject();
                json.name("rank").value(record.rank());
                json.name("jobRank").value(record.jobRank());
                json.name("file").value(record.file().toString());
                json.name("host").value(record.header().host);
                json.name("process").value(record.header().process);
                json.name("state").value(record.header().state);
                json.name("failure").value(record.header().failure);
                json.name("collectives").value(record.lastNumber());
                json.name("cut").value(record.isCut());
                json.endObject();
            }
            json.endArray();
            json.endObject();
        }
        json.endArray();
    }
}

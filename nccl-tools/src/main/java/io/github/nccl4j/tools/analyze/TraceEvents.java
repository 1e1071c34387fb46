package io.github.nccl4j.tools.analyze;

import com.google.gson.stream.JsonWriter;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;

/**
 * The operations in the trace event format of Chrome: each rank is a process, each of its communicators a thread. Operations without
 * a time get their number in milliseconds. The kernels of a profile are in a thread of their own, below that of their communicator.
 */
final class TraceEvents {
    private final Analysis analysis;
    private final Lanes lanes;
    private final JsonWriter json;

    private TraceEvents(Analysis analysis, JsonWriter json) {
        this.analysis = analysis;
        this.json = json;
        lanes = Lanes.of(analysis);
    }

    static void write(Analysis analysis, Path file) throws IOException {
        try (JsonWriter json = new JsonWriter(Files.newBufferedWriter(file))) {
            new TraceEvents(analysis, json).write();
        }
    }

    private void write() throws IOException {
        List<CommunicatorRecords> communicators = analysis.job().communicators();
        json.beginObject()
                .name("displayTimeUnit")
                .value("ms")
                .name("traceEvents")
                .beginArray();
        for (Lanes.Lane lane : lanes.all()) {
            name(
                    "process_name",
                    lane.rank(),
                    0,
                    "rank " + lane.rank() + (lane.culprit() ? " !" : "") + ", " + lane.place());
            for (RankRecord record : lane.records()) {
                int thread = 0;
                while (communicators.get(thread).of(record.rank()) != record) {
                    thread++;
                }
                name(
                        "thread_name",
                        lane.rank(),
                        thread,
                        "communicator " + communicators.get(thread).label());
                for (Call call : record.calls()) {
                    event(lane.rank(), thread, record, call);
                }
                kernels(
                        lane.rank(),
                        communicators.size() + thread,
                        communicators.get(thread).label(),
                        record);
            }
        }
        for (Finding finding : analysis.findings()) {
            for (int rank : finding.jobRanks()) {
                begin("i", finding.text(), rank, 0).name("ts").value(Math.max(0, lanes.end() - lanes.begin()));
                json.name("s").value("p").name("args").beginObject();
                json.name("reason").value(finding.reason()).name("id").value(finding.id());
                json.endObject().endObject();
            }
        }
        json.endArray().endObject();
    }

    private void kernels(int rank, int thread, String label, RankRecord record) throws IOException {
        boolean named = false;
        for (Call call : record.calls()) {
            Optional<Kernel> found = analysis.profile().of(record, call);
            if (found.isEmpty()) {
                continue;
            }
            if (!named) {
                named = true;
                name("thread_name", rank, thread, "kernels of communicator " + label);
            }
            Kernel kernel = found.get();
            double start = kernel.times().launched() + kernel.times().queued() / 1000.0 - lanes.begin();
            begin("X", call.arguments(), rank, thread).name("ts").value(Math.max(0, start));
            json.name("dur").value(kernel.duration() / 1000.0).name("cat").value("kernel");
            json.name("args").beginObject().name("operation").value(call.sequence());
            json.name("algorithm")
                    .value(kernel.choice().algorithm())
                    .name("channels")
                    .value(kernel.choice().channels());
            json.name("queued us").value(kernel.times().queued() / 1000.0);
            json.name("bus GB/s").value(kernel.busBandwidth()).endObject().endObject();
        }
    }

    private JsonWriter begin(String phase, String name, int process, int thread) throws IOException {
        json.beginObject().name("ph").value(phase).name("name").value(name);
        return json.name("pid").value(process).name("tid").value(thread);
    }

    private void name(String kind, int process, int thread, String name) throws IOException {
        begin("M", kind, process, thread)
                .name("args")
                .beginObject()
                .name("name")
                .value(name);
        json.endObject().endObject();
    }

    private void event(int rank, int thread, RankRecord record, Call call) throws IOException {
        boolean timed = call.enqueued() > 0;
        long start = timed ? call.enqueued() - lanes.begin() : call.sequence() * 1000;
        long end = !timed
                ? start + 900
                : call.done() > 1 ? call.done() - lanes.begin() : record.header().written - lanes.begin();
        begin("X", call.arguments(), rank, thread).name("ts").value(start);
        json.name("dur")
                .value(Math.max(1, end - start))
                .name("cat")
                .value(call.isDone() ? "done" : "not observed as done");
        json.name("args").beginObject().name("operation").value(call.sequence());
        json.name("collective").value(call.number()).endObject().endObject();
    }
}

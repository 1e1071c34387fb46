package io.github.nccl4j.tools.analyze;

import com.google.gson.stream.JsonWriter;
import io.github.nccl4j.tools.support.ErrorsPage;
import java.io.IOException;
import java.io.InputStream;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** A page that shows the operations of all ranks over time. It needs no network: the page contains its data and its program. */
final class HtmlPage {
    private static final String PAGE = "page.html";
    private static final String DATA = "\"DATA\"";
    private static final String HELP = "\"HELP\"";

    private final Analysis analysis;
    private final Lanes lanes;

    /** The distinct texts of the operations and kernels. */
    private final Map<String, Long> texts = new LinkedHashMap<>();

    private HtmlPage(Analysis analysis) {
        this.analysis = analysis;
        lanes = Lanes.of(analysis);
    }

    static String of(Analysis analysis) throws IOException {
        return of(analysis, ErrorsPage.home());
    }

    /** Makes a page that links to the documentation at a home. */
    static String of(Analysis analysis, String home) throws IOException {
        try (InputStream page = HtmlPage.class.getResourceAsStream(PAGE)) {
            return new String(page.readAllBytes(), StandardCharsets.UTF_8)
                    .replace(HELP, help(analysis, home))
                    .replace(DATA, new HtmlPage(analysis).data());
        }
    }

    /** By id: the address of its section, or the section itself if the project has no home. */
    private static String help(Analysis analysis, String home) throws IOException {
        StringWriter text = new StringWriter();
        JsonWriter json = new JsonWriter(text);
        json.setHtmlSafe(true);
        json.beginObject();
        for (String id :
                analysis.findings().stream().map(Finding::helpId).distinct().toList()) {
            ErrorsPage.Section section = ErrorsPage.find(id).orElseThrow();
            json.name(id).beginObject();
            Optional<String> url = section.url(home);
            if (url.isPresent()) {
                json.name("url").value(url.get());
            } else {
                json.name("text").value(String.join("\n", section.lines()));
            }
            json.endObject();
        }
        json.endObject();
        json.close();
        return text.toString();
    }

    private String data() throws IOException {
        StringWriter text = new StringWriter();
        JsonWriter json = new JsonWriter(text);
        json.setHtmlSafe(true);
        json.beginObject();
        json.name("begin").value(lanes.begin() / 1000);
        json.name("length").value((lanes.end() - lanes.begin()) / 1000);
        json.name("operations").value(analysis.job().operations());
        json.name("communicators").beginArray();
        for (CommunicatorRecords communicator : analysis.job().communicators()) {
            json.value(communicator.label());
        }
        json.endArray();
        findings(json);
        json.name("lanes").beginArray();
        for (Lanes.Lane lane : lanes.all()) {
            json.beginObject().name("rank").value(lane.rank()).name("place").value(lane.place());
            json.name("culprit").value(lane.culprit());
            json.name("calls").beginArray();
            for (long number : calls(lane)) {
                json.value(number);
            }
            json.endArray().endObject();
        }
        json.endArray();
        json.name("texts").beginArray();
        for (String one : texts.keySet()) {
            json.value(one);
        }
        json.endArray();
        json.endObject();
        json.close();
        return text.toString();
    }

    private void findings(JsonWriter json) throws IOException {
        json.name("findings").beginArray();
        for (Finding finding : analysis.findings()) {
            json.beginObject().name("text").value(finding.text()).name("reason").value(finding.reason());
            NextStep step = NextStep.of(finding, analysis.job());
            json.name("next").value(step.where() + step.next());
            json.name("help").value(finding.helpId()).name("ranks").beginArray();
            for (int rank : finding.jobRanks()) {
                json.value(rank);
            }
            json.endArray().endObject();
        }
        json.endArray();
    }

    /**
     * The operations of a rank, eight numbers each: communicator, text, sequence number, number of the collective, start and end in
     * milliseconds after the beginning (-1 if unknown), 1 if done, text of the kernel (-1 if unknown).
     */
    private List<Long> calls(Lanes.Lane lane) {
        List<Long> numbers = new ArrayList<>();
        List<CommunicatorRecords> communicators = analysis.job().communicators();
        for (int communicator = 0; communicator < communicators.size(); communicator++) {
            for (RankRecord record : lane.records()) {
                if (communicators.get(communicator).of(record.rank()) != record) {
                    continue;
                }
                for (Call call : record.calls()) {
                    numbers.add((long) communicator);
                    numbers.add(text(call.arguments()));
                    numbers.add(call.sequence());
                    numbers.add(call.number());
                    numbers.add(milliseconds(call.enqueued()));
                    numbers.add(milliseconds(call.done()));
                    numbers.add(call.isDone() ? 1L : 0L);
                    numbers.add(analysis.profile()
                            .of(record, call)
                            .map(kernel -> text(kernel.describe()))
                            .orElse(-1L));
                }
            }
        }
        return numbers;
    }

    private long text(String text) {
        return texts.computeIfAbsent(text, one -> (long) texts.size());
    }

    private long milliseconds(long time) {
        return time <= 1 ? -1 : (time - lanes.begin()) / 1000;
    }
}

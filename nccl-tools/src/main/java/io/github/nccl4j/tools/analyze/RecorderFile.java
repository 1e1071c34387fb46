package io.github.nccl4j.tools.analyze;

import com.google.gson.stream.JsonReader;
import com.google.gson.stream.JsonToken;
import com.google.gson.stream.MalformedJsonException;
import java.io.EOFException;
import java.io.IOException;
import java.io.Reader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Reads a file of nccl4j's flight recorder, also one that ends early. Used once. */
final class RecorderFile {
    /** The names that the recorder gives to its files: process, id and rank. */
    static final Pattern NAME = Pattern.compile("nccl4j-(\\d+)-(.+)-rank(\\d+)\\.json");

    private final Path file;
    private final RankRecord.Header header = new RankRecord.Header();
    private final List<Call> calls = new ArrayList<>();

    private RecorderFile(Path file) {
        this.file = file;
    }

    /**
     * Reads a record.
     *
     * @throws IOException if the file can't be read, or if neither its content nor its name contains the rank
     */
    static RankRecord read(Path file, Reader content) throws IOException {
        return new RecorderFile(file).read(content);
    }

    private RankRecord read(Reader content) throws IOException {
        Matcher name = NAME.matcher(file.getFileName().toString());
        if (name.matches()) {
            header.process = Limits.text(name.group(1));
            header.communicator = Limits.text(name.group(2));
            header.rank = Limits.rank("the rank in its name", Long.parseLong(name.group(3)));
        }
        boolean cut = false;
        try (JsonReader json = new JsonReader(content)) {
            json.beginObject();
            while (json.hasNext()) {
                field(json);
            }
            json.endObject();
        } catch (EOFException | MalformedJsonException | IllegalStateException | NumberFormatException damaged) {
            cut = true;
        }
        if (header.rank < 0) {
            throw new IOException("it ends before the rank, and its name has no rank");
        }
        if (header.size > 0 && header.rank >= header.size) {
            throw new IOException("rank must be < size: " + header.rank + ", size " + header.size);
        }
        if (header.recorded >= 0 && header.collectives > header.recorded) {
            throw new IOException("collectives must be <= recorded: " + header.collectives + ", " + header.recorded);
        }
        header.derived = header.communicator.contains(".");
        boolean exact = header.collectives >= 0 && !cut;
        return new RankRecord(
                file,
                header,
                exact ? CollectiveNumbers.upTo(header.collectives, calls) : CollectiveNumbers.of(calls),
                cut);
    }

    private void field(JsonReader json) throws IOException {
        String name = json.nextName();
        if (json.peek() == JsonToken.NULL) {
            json.nextNull();
            return;
        }
        switch (name) {
            case "time" -> header.written = Limits.micros(json.nextString());
            case "process" -> header.process = Limits.text(json.nextString());
            case "host" -> header.host = Limits.text(json.nextString());
            case "id" -> header.communicator = Limits.text(json.nextString());
            case "name" -> header.name = Limits.text(json.nextString());
            case "rank" -> header.rank = Limits.rank("rank", json.nextLong());
            case "size" -> header.size = Limits.rank("size", json.nextLong());
            case "world" -> header.world = Limits.rank("world", json.nextLong());
            case "device" -> header.device = Limits.text(json.nextString());
            case "state" -> header.state = Limits.text(json.nextString());
            case "failure" -> header.failure = Limits.text(json.nextString());
            case "call" -> header.call = Limits.text(json.nextString());
            case "called" -> header.called = Limits.micros(json.nextString());
            case "recorded" -> header.recorded = Limits.number("recorded", json.nextLong());
            case "collectives" -> header.collectives = Limits.number("collectives", json.nextLong());
            case "operations" -> {
                json.beginArray();
                while (json.hasNext()) {
                    calls.add(call(json));
                    Limits.operations(calls.size());
                }
                json.endArray();
            }
            default -> json.skipValue();
        }
    }

    private static Call call(JsonReader json) throws IOException {
        long sequence = 0;
        String function = "";
        long count = -1;
        String type = "";
        String op = "";
        int peer = -1;
        String stream = "";
        long group = 0;
        long enqueued = 0;
        long done = 0;
        json.beginObject();
        while (json.hasNext()) {
            String name = json.nextName();
            if (json.peek() == JsonToken.NULL) {
                json.nextNull();
                continue;
            }
            switch (name) {
                case "sequence" -> sequence = Limits.number("sequence", json.nextLong());
                case "function" -> function = Limits.text(json.nextString());
                case "count" -> count = json.nextLong();
                case "type" -> type = Limits.text(json.nextString());
                case "op" -> op = Limits.text(json.nextString());
                case "peer" -> peer = json.nextInt();
                case "stream" -> stream = Limits.text(json.nextString());
                case "group" -> group = json.nextLong();
                case "enqueued" -> enqueued = Limits.micros(json.nextString());
                case "done" -> done = Limits.micros(json.nextString());
                default -> json.skipValue();
            }
        }
        json.endObject();
        boolean differs = function.equals("ncclAlltoAllv");
        Call.Operation operation = new Call.Operation(function, differs ? -1 : count, type, op, peer);
        return new Call(sequence, 0, operation, stream, group, enqueued, done);
    }
}

package io.github.nccl4j.tools.analyze;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** A record in the recorder's format, made by a test: the operations of one rank, one second after another. */
final class MadeRecord {
    static final Instant BEGIN = Instant.parse("2026-11-24T12:00:00Z");

    private final String id;
    private final int rank;
    private final int size;
    private final List<String> operations = new ArrayList<>();
    private int process;
    private String host = "node0";
    private Instant clock = BEGIN;
    private String failure = "null";
    private String name = "";
    private String state = "OPEN";
    private boolean timed = true;
    private int shift;
    private long dropped;
    private long collectives;
    private long sequence;
    private String stream = "0x0";
    private int group;
    private String call = "";

    MadeRecord(String id, int rank, int size) {
        this.id = id;
        this.rank = rank;
        this.size = size;
        process = 100 + rank;
    }

    MadeRecord process(int number) {
        process = number;
        return this;
    }

    /** Sets the host, and the milliseconds by which its clock is ahead. */
    MadeRecord host(String name, long ahead) {
        host = name;
        clock = BEGIN.plusMillis(ahead);
        return this;
    }

    MadeRecord name(String text) {
        name = text;
        return this;
    }

    MadeRecord state(String text) {
        state = text;
        return this;
    }

    /** The following operations have no times. */
    MadeRecord untimed() {
        timed = false;
        return this;
    }

    /** The rank waits in a call that is no operation. */
    MadeRecord in(String function) {
        call = function;
        return this;
    }

    /** The stream of the following operations. */
    MadeRecord stream(String text) {
        stream = text;
        return this;
    }

    /** The group of the following operations; 0 for none. */
    MadeRecord group(int number) {
        group = number;
        return this;
    }

    /** As {@link #waits}, called some milliseconds late. */
    MadeRecord waits(String call, long delay) {
        return add(call, delay, false);
    }

    /** The record is written some seconds after the last operation began, instead of 30. */
    MadeRecord written(int seconds) {
        shift = seconds - 30;
        return this;
    }

    MadeRecord failed(String text) {
        failure = "\"" + text + "\"";
        return this;
    }

    /** The record no longer has its first operations. */
    MadeRecord drop(int number) {
        dropped = number;
        return this;
    }

    /** A finished call; the function may be followed by the count, the type, the operator and the peer. */
    MadeRecord done(String call) {
        return add(call, 0, true);
    }

    /** As {@link #done}, called some milliseconds late. */
    MadeRecord late(String call, long delay) {
        return add(call, delay, true);
    }

    MadeRecord waits(String call) {
        return add(call, 0, false);
    }

    private MadeRecord add(String call, long delay, boolean isDone) {
        String[] words = (call + " - - - -").split(" ");
        sequence++;
        collectives += words[0].matches("ncclSend|ncclRecv") ? 0 : 1;
        Instant start = clock.plusSeconds(sequence).plusMillis(delay);
        operations.add(String.format(
                Locale.ROOT,
                "{\"sequence\": %d, \"group\": %s, \"function\": \"%s\", \"count\": %s, \"type\": %s, \"op\": %s, \"peer\": %s, "
                        + "\"stream\": \"%s\", \"enqueued\": %s, \"done\": %s}",
                sequence,
                group == 0 ? "null" : Integer.toString(group),
                words[0],
                words[1],
                words[2].equals("-") ? "null" : "\"" + words[2] + "\"",
                words[3].equals("-") ? "null" : "\"" + words[3] + "\"",
                words[4].equals("-") ? "null" : words[4],
                stream,
                timed ? "\"" + start + "\"" : "null",
                isDone ? "\"" + clock.plusSeconds(sequence).plusMillis(900) + "\"" : "null"));
        return this;
    }

    String json() {
        return "{\"format\": \"nccl4j flight recorder 1\", \"time\": \"" + clock.plusSeconds(sequence + 30 + shift)
                + "\", \"process\": "
                + process + ", \"host\": \"" + host + "\", \"library\": \"NCCL\", \"id\": \"" + id
                + "\", \"name\": \"" + name + "\", \"rank\": "
                + rank + ", \"size\": " + size + ", \"world\": " + (process - 100)
                + ", \"device\": \"host\", \"state\": \"" + state + "\", "
                + "\"failure\": " + failure + ", "
                + (call.isEmpty()
                        ? ""
                        : "\"call\": \"" + call + "\", \"called\": \"" + clock.plusSeconds(sequence + 1) + "\", ")
                + "\"recorded\": " + sequence + ", \"collectives\": " + collectives
                + ", \"operations\": [\n"
                + String.join(",\n", operations.subList((int) dropped, operations.size())) + "\n]}";
    }

    Path write(Path folder) throws IOException {
        return Files.writeString(folder.resolve("nccl4j-" + process + "-" + id + "-rank" + rank + ".json"), json());
    }
}

package io.github.nccl4j.internal.log;

import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Parser for lines of NCCL's log. Up to 2.23: "host:pid:thread [device] file:line NCCL WARN text"; later also a time at
 * the beginning, in a format that a variable sets, and the function after the file and line.
 */
public final class LogParser {
    private static final Pattern LINE = Pattern.compile("(?<time>.*?)(?<host>[^\\s:]+):(?<pid>\\d+):(?<thread>\\d+)"
            + " (?:\\[(?<device>-?\\d+)] )?(?:[\\d.]+ )?(?:(?<place>[^\\s:]+:\\d+(?: \\([^)]*\\))?) )?"
            + "NCCL (?<level>WARN|INFO|TRACE|CALL) ?(?<text>.*)");

    /** NCCL's name of a communicator: the handle that the program got. */
    private static final Pattern COMMUNICATOR = Pattern.compile("\\bcomm 0x([0-9a-f]+)\\b");

    private static final Pattern RANK = Pattern.compile("\\brank (\\d+)\\b");

    private LogParser() {}

    /**
     * A line of the log.
     *
     * @param level WARN, INFO or TRACE
     * @param thread the operating system's id of the thread that wrote the line; -1 if unknown
     * @param device the CUDA device of that thread; -1 if unknown
     * @param place the position in NCCL's sources; empty if unknown
     * @param rank the rank to which the line applies; -1 if unknown
     * @param communicator the name of the communicator; empty if it has no name or is unknown
     */
    public record Parsed(
            String level, long thread, int device, String place, String text, int rank, String communicator) {}

    /**
     * Parses a line. A line without this form, such as the version at the start or the second line of a text, gets
     * level INFO.
     *
     * @return the line; empty if another process wrote it
     */
    public static Optional<Parsed> parse(String line, long pid) {
        Matcher parts = LINE.matcher(line);
        if (!parts.matches()) {
            return Optional.of(new Parsed("INFO", -1, -1, "", line, -1, ""));
        }
        if (Long.parseLong(parts.group("pid")) != pid) {
            return Optional.empty();
        }
        String text = parts.group("text");
        int device = parts.group("device") == null ? -1 : Integer.parseInt(parts.group("device"));
        Optional<KnownCommunicators.Member> member = member(text, device);
        return Optional.of(new Parsed(
                level(parts.group("level")),
                Long.parseLong(parts.group("thread")),
                device,
                parts.group("place") == null ? "" : parts.group("place"),
                text,
                member.map(KnownCommunicators.Member::rank).orElseGet(() -> rank(text)),
                member.map(KnownCommunicators.Member::name).orElse("")));
    }

    /** Returns true if a text names a communicator other than this one. */
    public static boolean namesAnother(String text, long communicator) {
        Matcher named = COMMUNICATOR.matcher(text);
        return communicator != 0 && named.find() && Long.parseUnsignedLong(named.group(1), 16) != communicator;
    }

    private static String level(String word) {
        return word.equals("CALL") ? "TRACE" : word;
    }

    /** Returns the communicator that the text names, else the only one on the device. */
    private static Optional<KnownCommunicators.Member> member(String text, int device) {
        Matcher named = COMMUNICATOR.matcher(text);
        return named.find()
                ? KnownCommunicators.of(Long.parseUnsignedLong(named.group(1), 16))
                : KnownCommunicators.onlyOneOn(device);
    }

    private static int rank(String text) {
        Matcher rank = RANK.matcher(text);
        return COMMUNICATOR.matcher(text).find() && rank.find() ? Integer.parseInt(rank.group(1)) : -1;
    }
}

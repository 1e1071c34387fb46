package io.github.nccl4j.zookeeper;

import io.github.nccl4j.launch.Rendezvous;
import java.math.BigDecimal;
import java.net.InetAddress;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.net.UnknownHostException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.stream.Collectors;

/**
 * Checks of arguments, and texts of messages and of nodes. Checks and messages are those of the TCP store, whose module does not export
 * its own.
 */
final class Text {
    private static final String SLASH = "/";

    /** 73 years: its sum with {@link System#nanoTime()} can be compared without overflow. */
    private static final long MAX_NANOSECONDS = Long.MAX_VALUE / 4;

    private static final int MAX_NAMED = 16;

    private static final int MAX_KEY = 1024;

    private Text() {}

    static String require(String argument, String text) {
        if (text.isEmpty()) {
            throw new IllegalArgumentException(argument + " must not be empty");
        }
        if (text.contains(SLASH)) {
            throw new IllegalArgumentException(argument + " must not contain a slash: " + text);
        }
        return text;
    }

    /** Returns a key with the prefix of its scope. */
    static String requireKey(String prefix, String key) {
        String full = prefix + require("a key", key);
        int length = bytes(full).length;
        if (length > MAX_KEY) {
            throw new IllegalArgumentException("a key with its scopes must have <= " + MAX_KEY + " bytes: " + length);
        }
        return full;
    }

    static byte[] requireValue(byte[] value) {
        if (value.length > Rendezvous.LONGEST_VALUE) {
            throw new IllegalArgumentException(
                    "a value must have <= " + Rendezvous.LONGEST_VALUE + " bytes: " + value.length);
        }
        return value;
    }

    static long nanoseconds(Duration timeout) {
        if (timeout.isNegative()) {
            throw new IllegalArgumentException("timeout must be >= 0: " + seconds(timeout));
        }
        return timeout.compareTo(Duration.ofNanos(MAX_NANOSECONDS)) > 0 ? MAX_NANOSECONDS : timeout.toNanos();
    }

    /** Milliseconds that fit an int. */
    static int millis(Duration time) {
        return (int) Math.min(Integer.MAX_VALUE, nanoseconds(time) / 1_000_000);
    }

    /** A duration of a caller, in seconds. */
    static String seconds(Duration time) {
        BigDecimal seconds = BigDecimal.valueOf(time.getSeconds()).add(BigDecimal.valueOf(time.getNano(), 9));
        return (seconds.signum() == 0 ? BigDecimal.ZERO : seconds.stripTrailingZeros()).toPlainString() + " s";
    }

    /** A time that was measured or waited, cut to milliseconds. */
    static String seconds(long nanoseconds) {
        long milliseconds = nanoseconds / 1_000_000;
        return milliseconds % 1000 == 0 ? milliseconds / 1000 + " s" : milliseconds / 1000.0 + " s";
    }

    /** "rank 3", "ranks 3, 5", "ranks 1, 2, ..., and 4070 more" */
    static String ranks(List<Integer> ranks) {
        String named = ranks.stream().limit(MAX_NAMED).map(String::valueOf).collect(Collectors.joining(", "));
        return (ranks.size() == 1 ? "rank " : "ranks ")
                + named
                + (ranks.size() > MAX_NAMED ? ", and " + (ranks.size() - MAX_NAMED) + " more" : "");
    }

    /** The name of a node for any text: a node must not be named "." and must not contain a slash. */
    static String node(String text) {
        return "-" + URLEncoder.encode(text, StandardCharsets.UTF_8);
    }

    /** The text of which {@link #node} has made a name. */
    static String ofNode(String node) {
        return URLDecoder.decode(node.substring(1), StandardCharsets.UTF_8);
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static String text(byte[] bytes) {
        return new String(bytes, StandardCharsets.UTF_8);
    }

    /** The host and id of this process, such as "node0, process 4711". */
    static String process() {
        String host;
        try {
            host = InetAddress.getLocalHost().getHostName();
        } catch (UnknownHostException nameless) {
            host = "a host without a name";
        }
        return host + ", process " + ProcessHandle.current().pid();
    }
}

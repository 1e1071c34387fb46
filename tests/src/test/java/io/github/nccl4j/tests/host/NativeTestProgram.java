package io.github.nccl4j.tests.host;

import io.github.nccl4j.tests.Cxx;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Runs programs of GoogleTest. */
final class NativeTestProgram {
    private static final Pattern PASSED = Pattern.compile("\\[ RUN      ] (.*)\n\\[       OK ] \\1 .*\n");

    /** A test that has begun, and no line with its result. */
    private static final Pattern RUNNING = Pattern.compile("\\[ RUN      ] (.*)\n(?!(?s:.*)] \\1[ ,])");

    private NativeTestProgram() {}

    /** What a program of GoogleTest prints. A failure names the test that did not end, and leaves out those that passed. */
    static String output(List<String> command, Duration limit) throws IOException {
        try {
            return Cxx.output(null, command, limit);
        } catch (AssertionError e) {
            String failure = PASSED.matcher(e.getMessage()).replaceAll("");
            Matcher running = RUNNING.matcher(failure);
            throw new AssertionError(
                    running.find() ? running.group(1) + " did not end: " + failure : failure, e.getCause());
        }
    }
}

package io.github.nccl4j.tools.doctor;

import java.util.Arrays;
import java.util.List;

/**
 * The output of a {@link Probe}. Immutable.
 *
 * @param lines the lines, each a name followed by values
 * @param death the failure of the process, or empty if it succeeded
 */
record ProbeAnswer(List<List<String>> lines, String death) {

    static ProbeAnswer of(Commands.Result result) {
        List<List<String>> lines = result.out()
                .lines()
                .map(line ->
                        Arrays.stream(line.split("\t", -1)).map(Probe::unescape).toList())
                .toList();
        return new ProbeAnswer(lines, result.code() == 0 ? "" : result.failure());
    }

    /** The values of all lines with a name. */
    List<List<String>> all(String name) {
        return lines.stream()
                .filter(line -> line.get(0).equals(name))
                .map(line -> line.subList(1, line.size()))
                .toList();
    }

    /** The first value of the first line with a name, or empty if there is none. */
    String first(String name) {
        List<List<String>> found = all(name);
        return found.isEmpty() ? "" : found.get(0).get(0);
    }
}

package io.github.nccl4j.tools.analyze;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.TreeSet;

/** Names of ranks in messages. */
public final class Ranks {
    private Ranks() {}

    /**
     * Names ranks at the beginning of a sentence.
     *
     * @param ranks the ranks
     * @return "Rank 3", or "Ranks 0, 2-5 and 9"
     */
    public static String title(Collection<Integer> ranks) {
        String text = list(ranks);
        return (text.matches("\\d+") ? "Rank " : "Ranks ") + text;
    }

    /**
     * Names ranks within a sentence.
     *
     * @param ranks the ranks
     * @return "rank 3", or "ranks 0, 2-5 and 9"
     */
    public static String text(Collection<Integer> ranks) {
        String title = title(ranks);
        return Character.toLowerCase(title.charAt(0)) + title.substring(1);
    }

    private static String list(Collection<Integer> ranks) {
        List<String> ranges = new ArrayList<>();
        Integer first = null;
        Integer last = null;
        for (int rank : new TreeSet<>(ranks)) {
            if (last != null && rank != last + 1) {
                add(ranges, first, last);
                first = rank;
            }
            first = first == null ? Integer.valueOf(rank) : first;
            last = rank;
        }
        if (last != null) {
            add(ranges, first, last);
        }
        int end = ranges.size() - 1;
        return end < 1
                ? String.join("", ranges)
                : String.join(", ", ranges.subList(0, end)) + " and " + ranges.get(end);
    }

    private static void add(List<String> ranges, int first, int last) {
        if (last - first > 1) {
            ranges.add(first + "-" + last);
        } else {
            ranges.add("" + first);
            if (last > first) {
                ranges.add("" + last);
            }
        }
    }
}

package io.github.nccl4j.header;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;

/** Collects differences. A difference that both the parser and the compiler find counts once. */
final class Differences {
    private final Release release;
    private final boolean isNewer;
    private final Set<Difference> found = new LinkedHashSet<>();

    /**
     * Creates an empty collection.
     *
     * @param ours the release of our header
     * @param theirs the release of the other header
     */
    Differences(Release ours, Release theirs) {
        release = theirs;
        isNewer = theirs.compareTo(ours) > 0;
    }

    /** The release of the other header. */
    Release release() {
        return release;
    }

    /** Adds an addition of the other header, which is a fault unless that header is of a newer release. */
    void addAddition(String text) {
        found.add(new Difference(isNewer ? Difference.Kind.NEWER : Difference.Kind.DIFFERENT, text));
    }

    void addDifferent(String text) {
        found.add(new Difference(Difference.Kind.DIFFERENT, text));
    }

    void addUnequal(String name, String ours, String theirs) {
        addDifferent(String.format(Locale.ROOT, "%s: ours %s, theirs %s", name, ours, theirs));
    }

    List<Difference> list() {
        return new ArrayList<>(found);
    }
}

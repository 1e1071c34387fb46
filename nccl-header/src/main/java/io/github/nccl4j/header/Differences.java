package io.github.nccl4j.header;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;

/** Collects differences; the same one found twice, by parser and by compiler, counts once. */
final class Differences {
    private final Release release;
    private final boolean newer;
    private final Set<Difference> found = new LinkedHashSet<>();

    /**
     * None yet.
     *
     * @param ours the release that our header describes
     * @param theirs the release of the header that is compared with it
     */
    Differences(Release ours, Release theirs) {
        release = theirs;
        newer = theirs.compareTo(ours) > 0;
    }

    /** The release of their header. */
    Release release() {
        return release;
    }

    /** Something that a newer release may add, and any other may not. */
    void addition(String text) {
        found.add(new Difference(newer ? Difference.Kind.NEWER : Difference.Kind.DIFFERENT, text));
    }

    void different(String text) {
        found.add(new Difference(Difference.Kind.DIFFERENT, text));
    }

    void unequal(String what, String ours, String theirs) {
        different(String.format(Locale.ROOT, "%s: ours %s, theirs %s", what, ours, theirs));
    }

    List<Difference> list() {
        return new ArrayList<>(found);
    }
}

package io.github.nccl4j.header;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;

/**
 * Compares our {@code nccl.h} with that of another NCCL release or of VCCL, our {@code nccl_device.h} with the host part of
 * the other one, and our headers of {@link Extension}s with others.
 *
 * <p>Every declaration of the other header must be in ours with the same types, values and offsets. Declarations that only our
 * header has must belong to a newer release, according to their comments, or to VCCL.
 *
 * <pre>{@code
 * Report report = new HeaderCheck(ourHeader, shim, "g++").check(Path.of("/usr/include/nccl.h"));
 * report.lines().forEach(System.out::println);
 * }</pre>
 *
 * <p>A generated C++ program compares layouts and values. Without a compiler this part is omitted, and the report says so.
 *
 * <p>Not thread-safe.
 */
public final class HeaderCheck {
    private static final String NCCL = "nccl.h";
    private static final String DEVICE = "nccl_device.h";

    private final Path file;
    private final Header header;
    private final Release release;
    private final Layout layout;
    /** The layout of our headers, computed for the first comparison. */
    private Map<String, String> ourLayout;

    private Map<String, String> ourDeviceLayout;

    /**
     * The result of a check. Immutable.
     *
     * @param file the name of the header
     * @param release the release of the other header
     * @param compared the number of declarations that both headers have
     * @param differences all differences
     * @param note the reason why layouts were not compared, or empty
     */
    public record Report(String file, Release release, int compared, List<Difference> differences, String note) {
        /**
         * Copies the list.
         *
         * @param file the name of the header
         * @param release the release of the other header
         * @param compared the number of declarations that both headers have
         * @param differences all differences
         * @param note the reason why layouts were not compared, or empty
         */
        public Report {
            differences = List.copyOf(differences);
        }

        /**
         * Returns true if the headers agree. Additions of a newer release than ours do not count as differences.
         *
         * @return true if there is no difference
         */
        public boolean passed() {
            return count(Difference.Kind.DIFFERENT) == 0;
        }

        private long count(Difference.Kind kind) {
            return differences.stream().filter(d -> d.kind() == kind).count();
        }

        /**
         * Formats the report.
         *
         * @return a line per difference and a summary
         */
        public List<String> lines() {
            List<String> lines = new ArrayList<>();
            differences.forEach(difference -> lines.add(file + " " + release + ": " + difference));
            if (!note.isEmpty()) {
                lines.add(file + " " + release + ": layouts not compared: " + note);
            }
            long newer = count(Difference.Kind.NEWER);
            lines.add(String.format(
                    Locale.ROOT,
                    "%s %s: %d differences, %d declarations compared%s",
                    file,
                    release,
                    count(Difference.Kind.DIFFERENT),
                    compared,
                    newer == 0 ? "" : ", " + newer + " newer than nccl4j"));
            return lines;
        }
    }

    /**
     * Creates a check.
     *
     * @param ours our header
     * @param shim the folder with the substitutes for CUDA's headers
     * @param compiler the C++ compiler
     * @throws IOException if the header can't be read
     */
    public HeaderCheck(Path ours, Path shim, String compiler) throws IOException {
        file = ours;
        header = Header.parse(ours);
        release = releaseOf(header, ours);
        layout = new Layout(compiler, shim);
    }

    private static Release releaseOf(Header header, Path file) {
        return header.release()
                .orElseThrow(() -> new IllegalArgumentException(
                        file + " must define NCCL_MAJOR, NCCL_MINOR and NCCL_PATCH as numbers"));
    }

    /**
     * Compares each header of a folder that we have, too: {@code nccl.h} with {@code nccl_device.h}, and those of the
     * {@link Extension}s. Compares one header if the path is that of a file, but {@code nccl.h} with the
     * {@code nccl_device.h} in the same folder.
     *
     * @param path a header, or a folder with at least one
     * @return a report for each header
     * @throws IOException if a header can't be read
     * @throws IllegalArgumentException if a header does not have the form of NCCL's headers, or lacks the macros of the release
     */
    public List<Report> checkAll(Path path) throws IOException {
        List<Report> reports = new ArrayList<>();
        for (Extension extension : Extension.values()) {
            Path header = Files.isDirectory(path) ? path.resolve(extension.file()) : path;
            if (Files.isRegularFile(header) && header.endsWith(extension.file())) {
                reports.add(new ExtensionCheck(extension, file.toAbsolutePath().getParent(), layout).check(header));
            }
        }
        if (reports.isEmpty() || Files.exists(path.resolve(NCCL))) {
            reports.add(0, check(path));
            checkDevice(path).ifPresent(report -> reports.add(1, report));
        }
        return reports;
    }

    /**
     * Compares a header with ours.
     *
     * @param path an {@code nccl.h}, or a folder with one
     * @return the report
     * @throws IOException if the file can't be read
     * @throws IllegalArgumentException if the file does not have the form of NCCL's headers, or lacks the macros of the release
     */
    public Report check(Path path) throws IOException {
        Path other = Files.isDirectory(path) ? path.resolve(NCCL) : path;
        Header theirs = Header.parse(other);
        Differences differences = new Differences(release, releaseOf(theirs, other));
        int compared = new DeclarationComparison(header, theirs, differences).run();
        String note = "";
        try {
            if (ourLayout == null) {
                ourLayout = layout.of(file, header, header);
            }
            new LayoutComparison(ourLayout, layout.of(other, theirs, header), differences).run(header, theirs);
        } catch (Layout.NoCompilerException e) {
            note = e.getMessage();
        } catch (IllegalStateException e) {
            differences.addDifferent("does not compile: " + e.getMessage());
        }
        return new Report(NCCL, differences.release(), compared, differences.list(), note);
    }

    /**
     * Compares the host functions of an installation's {@code nccl_device.h}, and their types, with ours. Needs a compiler; without
     * one nothing is compared, and the report says so.
     *
     * @param path an {@code nccl.h}, or a folder with one
     * @return the report, or empty if there is no {@code nccl_device.h} in the same folder
     * @throws IOException if a header can't be read
     * @throws IllegalArgumentException if {@code nccl.h} does not have the form of NCCL's headers, or lacks the macros of the
     *     release
     */
    public Optional<Report> checkDevice(Path path) throws IOException {
        Path nccl = Files.isDirectory(path) ? path.resolve(NCCL) : path;
        Path folder = nccl.toAbsolutePath().getParent();
        if (!Files.exists(folder.resolve(DEVICE))) {
            return Optional.empty();
        }
        Release theirRelease = releaseOf(Header.parse(nccl), nccl);
        Differences differences = new Differences(release, theirRelease);
        int compared = 0;
        String note = "";
        try {
            compared = compareDevice(folder, theirRelease, differences);
        } catch (Layout.NoCompilerException e) {
            note = e.getMessage();
        } catch (IllegalStateException e) {
            differences.addDifferent("does not compile: " + e.getMessage());
        }
        return Optional.of(new Report(DEVICE, theirRelease, compared, differences.list(), note));
    }

    private int compareDevice(Path folder, Release theirRelease, Differences differences)
            throws IOException, Layout.NoCompilerException {
        Path ourFile = file.resolveSibling(DEVICE);
        Header parsed = Header.parse(ourFile);
        Set<String> left = new TreeSet<>(Known.DECLARED_FOR_WINDOWS);
        left.addAll(Known.NOT_EXPORTED);
        left.addAll(Known.OPAQUE);
        if (theirRelease.compareTo(Known.NEW_BEGINNING) < 0) {
            left.add(Known.BEGUN_ANEW);
        }
        List<Path> folders = List.of(folder);
        String text = layout.preprocessed(DeviceHeader.INCLUDES, folders);
        Header all = DeviceHeader.parse(text, folder, parsed);
        Header ours = DeviceHeader.without(DeviceHeader.plain(parsed, parsed), left);
        Header theirs = DeviceHeader.without(all, left);
        int compared = new DeclarationComparison(ours, theirs, differences).run();
        if (ourDeviceLayout == null) {
            ourDeviceLayout = layout.of(
                    "#include \"" + ourFile.toAbsolutePath() + "\"\n",
                    List.of(file.toAbsolutePath().getParent()),
                    parsed,
                    parsed);
        }
        Map<String, String> ourValues = ourDeviceLayout;
        Map<String, String> theirValues = new LinkedHashMap<>(layout.of(DeviceHeader.INCLUDES, folders, all, parsed));
        if (theirRelease.compareTo(Known.WIDE_TYPE) < 0) {
            Known.SMALL_TYPE.forEach((name, value) -> theirValues.computeIfPresent(
                    name, (key, their) -> their.equals(value) ? ourValues.get(name) : their));
        }
        Known.OPAQUE.forEach(type -> compareSize(type, ourValues, theirValues, differences));
        new LayoutComparison(compared(ourValues, left), compared(theirValues, left), differences).run(ours, theirs);
        return compared;
    }

    /**
     * Compares the size of an opaque structure. Programs allocate it by our header, and the library fills it; theirs must not be
     * larger.
     */
    private static void compareSize(
            String type, Map<String, String> ours, Map<String, String> theirs, Differences differences) {
        String size = "sizeof " + type;
        String our = ours.get(size);
        String their = theirs.getOrDefault(size, "0");
        if (Long.parseLong(their) > Long.parseLong(our)) {
            differences.addAddition(size + " is " + their + ", more than ours, " + our);
        }
    }

    /** The values without those of some structures. */
    private static Map<String, String> compared(Map<String, String> values, Set<String> left) {
        Map<String, String> rest = new LinkedHashMap<>(values);
        rest.keySet().removeIf(name -> left.stream()
                .anyMatch(type -> name.endsWith(" " + type) || name.contains(" " + type + ".")));
        return rest;
    }
}

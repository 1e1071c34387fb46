package io.github.nccl4j.header;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;

/**
 * Compares our {@code nccl.h} with that of any NCCL release or VCCL: all that the other header declares must be in ours
 * with the same types, values and offsets; what only ours has must be newer, as its comments tell, or VCCL's.
 *
 * <pre>{@code
 * Report report = new HeaderCheck(ourHeader).check(Path.of("/usr/include/nccl.h"));
 * report.lines().forEach(System.out::println);
 * }</pre>
 *
 * Layouts and values are compared by a small C++ program; without a compiler that part is left out, and the report says so.
 * For use by one thread.
 */
public final class HeaderCheck {
    private static final Path OURS = Path.of("nccl-presets/src/main/native/include/nccl.h");

    private final Path file;
    private final Header header;
    private final Release release;
    private final Layout layout;
    private Map<String, String> ourLayout;

    /**
     * What a check found.
     *
     * @param release the release of the other header
     * @param compared how many declarations both headers have
     * @param differences all differences
     * @param note why layouts were not compared; empty if they were
     */
    public record Report(Release release, int compared, List<Difference> differences, String note) {
        /**
         * Copies the list.
         *
         * @param release the release of the other header
         * @param compared how many declarations both headers have
         * @param differences all differences
         * @param note why layouts were not compared; empty if they were
         */
        public Report {
            differences = List.copyOf(differences);
        }

        /**
         * Whether the headers agree. Additions of a release that is newer than ours are no disagreement.
         *
         * @return true if nothing is different
         */
        public boolean passed() {
            return count(Difference.Kind.DIFFERENT) == 0;
        }

        private long count(Difference.Kind kind) {
            return differences.stream().filter(d -> d.kind() == kind).count();
        }

        /**
         * The report for people.
         *
         * @return one line per difference and a closing line
         */
        public List<String> lines() {
            List<String> lines = new ArrayList<>();
            differences.forEach(difference -> lines.add("nccl.h " + release + ": " + difference));
            if (!note.isEmpty()) {
                lines.add("nccl.h " + release + ": layouts not compared: " + note);
            }
            long newer = count(Difference.Kind.NEWER);
            lines.add(String.format(
                    Locale.ROOT,
                    "nccl.h %s: %d differences, %d declarations compared%s",
                    release,
                    count(Difference.Kind.DIFFERENT),
                    compared,
                    newer == 0 ? "" : ", " + newer + " newer than nccl4j"));
            return lines;
        }
    }

    /**
     * A check that compiles with {@code NCCL4J_CXX}, or g++, and the stand-ins for CUDA's headers beside our header.
     *
     * @param ours our header
     * @throws IOException if it can't be read
     */
    public HeaderCheck(Path ours) throws IOException {
        this(
                ours,
                ours.toAbsolutePath().resolveSibling("../shim").normalize(),
                Objects.requireNonNullElse(System.getenv("NCCL4J_CXX"), "g++"));
    }

    /**
     * A check.
     *
     * @param ours our header
     * @param shim the folder with the stand-ins for CUDA's headers
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
                .orElseThrow(() -> new IllegalArgumentException(file + " does not say of which release it is"));
    }

    /**
     * Runs it: {@code PATH... [--ours FILE]}, a path being an {@code nccl.h} or the folder with it. Ends with exit status 1
     * if any of them is different from ours.
     *
     * @param args the command line
     * @throws IOException if a header can't be read
     */
    public static void main(String... args) throws IOException {
        Path ours = OURS;
        List<Path> others = new ArrayList<>();
        for (int i = 0; i < args.length; i++) {
            if (args[i].equals("--ours") && i + 1 < args.length) {
                ours = Path.of(args[++i]);
            } else {
                others.add(Path.of(args[i]));
            }
        }
        if (others.isEmpty()) {
            System.err.println("usage: HeaderCheck PATH... [--ours FILE]");
            System.exit(2);
        }
        HeaderCheck check = new HeaderCheck(ours);
        boolean passed = true;
        for (Path other : others) {
            Report report = check.check(other);
            report.lines().forEach(System.out::println);
            passed &= report.passed();
        }
        if (!passed) {
            System.exit(1);
        }
    }

    /**
     * Compares one header with ours.
     *
     * @param path an {@code nccl.h}, or the folder with it
     * @return what was found
     * @throws IOException if it can't be read
     * @throws IllegalArgumentException if it is no {@code nccl.h} with a release in it
     */
    public Report check(Path path) throws IOException {
        Path other = Files.isDirectory(path) ? path.resolve("nccl.h") : path;
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
            differences.different("does not compile: " + e.getMessage());
        }
        return new Report(differences.release(), compared, differences.list(), note);
    }
}

package io.github.nccl4j.header;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Compares our header of an extension with that of an installation. The latter has several files, and macros that make
 * declarations, so that a compiler preprocesses it; without one nothing is compared.
 */
final class ExtensionCheck {
    private static final Pattern LINE_MARKER = Pattern.compile("# \\d+ \"([^\"]*)\".*");

    private final Extension extension;
    private final Path file;
    private final Layout layout;
    private final Header header;
    private final Release release;

    /**
     * Creates a check.
     *
     * @param folder the folder with our headers
     */
    ExtensionCheck(Extension extension, Path folder, Layout layout) throws IOException {
        this.extension = extension;
        this.layout = layout;
        file = folder.resolve(extension.file());
        header = Header.parse(file);
        release = releaseOf(Files.readString(file), file);
    }

    /** The release by the macros in the text: not parsed, because a header may have what only a compiler understands. */
    private Release releaseOf(String text, Path path) {
        List<String> numbers = new ArrayList<>();
        for (String part : List.of("MAJOR", "MINOR", "PATCH")) {
            String macro = extension.macroPrefix() + part;
            Matcher definition =
                    Pattern.compile("#\\s*define\\s+" + macro + "\\s+(\\d+)").matcher(text);
            if (!definition.find()) {
                throw new IllegalArgumentException(path + " must define " + macro + " as a number");
            }
            numbers.add(definition.group(1));
        }
        return Release.of(String.join(".", numbers)).orElseThrow();
    }

    /** Compares a header with ours. */
    HeaderCheck.Report check(Path path) throws IOException {
        Release theirRelease = releaseOf(Files.readString(path), path);
        Differences differences = new Differences(release, theirRelease);
        int compared = 0;
        String note = "";
        try {
            compared = compare(path.toAbsolutePath().normalize(), differences);
        } catch (Layout.NoCompilerException e) {
            note = e.getMessage();
        } catch (IllegalStateException e) {
            differences.addDifferent("does not compile: " + e.getMessage());
        }
        return new HeaderCheck.Report(extension.file(), theirRelease, compared, differences.list(), note);
    }

    private int compare(Path path, Differences differences) throws Layout.NoCompilerException {
        // Their nccl.h and CUDA may be missing: ours and the shim replace them.
        List<Path> folders = List.of(file.toAbsolutePath().getParent());
        String include = "#include <cuda_runtime.h>\n#include \"" + path + "\"\n";
        Header parsed = Header.parse(ownText(layout.preprocessed(include, folders), path));
        Header theirs = withoutHelpers(parsed);
        Map<String, String> ourLayout =
                layout.of("#include \"" + file.toAbsolutePath() + "\"\n", folders, header, header);
        Map<String, String> theirLayout = layout.of(include, folders, theirs, header);
        int compared = new DeclarationComparison(
                        evaluated(header, ourLayout), evaluated(theirs, theirLayout), differences)
                .run();
        new LayoutComparison(ourLayout, theirLayout, differences).run(header, theirs);
        return compared;
    }

    /** The text of the header's own files, with definitions of macros. */
    private String ownText(String text, Path path) {
        Path folder = path.resolveSibling(extension.folder());
        StringBuilder own = new StringBuilder();
        boolean reading = false;
        for (String line : text.split("\n")) {
            Matcher marker = LINE_MARKER.matcher(line);
            if (marker.matches()) {
                Path from = Path.of(marker.group(1)).toAbsolutePath().normalize();
                reading = from.equals(path) || from.startsWith(folder);
            } else if (reading) {
                own.append(line).append('\n');
            }
        }
        return own.toString();
    }

    private Header withoutHelpers(Header theirs) {
        Map<String, Macro> macros = new LinkedHashMap<>(theirs.macros());
        macros.values().removeIf(macro -> !header.macros().containsKey(macro.name()) && Known.isHelper(macro));
        return with(theirs, macros);
    }

    /** The header with the values of constants instead of expressions. */
    private static Header evaluated(Header header, Map<String, String> layout) {
        Map<String, Macro> macros = new LinkedHashMap<>(header.macros());
        macros.replaceAll((name, macro) -> {
            String value = layout.get("constant " + name);
            return value == null ? macro : new Macro(name, value, false, macro.since());
        });
        return with(header, macros);
    }

    private static Header with(Header header, Map<String, Macro> macros) {
        return new Header(header.functions(), macros, header.enums(), header.structs(), header.aliases());
    }
}

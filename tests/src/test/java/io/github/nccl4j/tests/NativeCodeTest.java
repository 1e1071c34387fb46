package io.github.nccl4j.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.github.nccl4j.header.Release;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** What the native code in the classifier jars needs of a machine: no more than the pages say. */
class NativeCodeTest {
    private static final Pattern JAR = Pattern.compile("nccl(-host)?-\\d.*-(linux-[a-z0-9_]+)\\.jar");
    private static final Pattern JAVACPP = Pattern.compile("javacpp-\\d.*-(linux-[a-z0-9_]+)\\.jar");
    private static final String JAVACPP_LIBRARY = "libjnijavacpp.so";
    private static final Map<String, String> MACHINES =
            Map.of("linux-x86_64", "Advanced Micro Devices X86-64", "linux-arm64", "AArch64");

    /** RHEL 8 has these. */
    private static final Map<String, String> NEWEST =
            Map.of("GLIBC", "2.28", "GLIBCXX", "3.4.25", "CXXABI", "1.3.11", "GCC", "7.0.0");

    /**
     * Debian 12 has these, the newest of the systems that the README names. Newer ones give code what those lack: glibc
     * 2.38 has another strtol. So this is a check of releases, not of a build on a newer system.
     */
    private static final int GLIBC_OF_RELEASES = 36;

    private static final int GCC_OF_RELEASES = 12;

    private static final Set<String> LIBRARIES = Set.of(
            "libc.so.6",
            "libdl.so.2",
            "libpthread.so.0",
            "libstdc++.so.6",
            "libgcc_s.so.1",
            "libm.so.6",
            "ld-linux-x86-64.so.2",
            "ld-linux-aarch64.so.1");

    @TempDir
    Path folder;

    static List<Path> jars() {
        return jars(JAR);
    }

    static List<Path> jarsOfJavaCpp() {
        return jars(JAVACPP);
    }

    private static List<Path> jars(Pattern pattern) {
        return Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator))
                .map(Path::of)
                .filter(jar -> pattern.matcher(jar.getFileName().toString()).matches())
                .toList();
    }

    private static String platform(Path jar) {
        Matcher name = JAR.matcher(jar.getFileName().toString());
        assertTrue(name.matches());
        return name.group(2);
    }

    @Test
    void bothArtifactsHaveTheSamePlatforms() {
        Map<String, Long> platforms =
                jars().stream().collect(Collectors.groupingBy(NativeCodeTest::platform, Collectors.counting()));
        assertTrue(platforms.size() >= 1, platforms.toString());
        assertEquals(Set.of(2L), Set.copyOf(platforms.values()), platforms.toString());
    }

    @ParameterizedTest
    @MethodSource("jars")
    void isForItsMachineAndNeedsStandardLibrariesAlone(Path jar) throws IOException {
        Path library = library(jar);
        String text = Cxx.output(List.of("readelf", "-W", "-h", "-d", library.toString()));
        String machine = MACHINES.get(platform(jar));
        assertTrue(text.contains(machine), () -> jar + " is not for " + machine + ": " + text);

        Set<String> needed = Pattern.compile("\\(NEEDED\\).*\\[(.*)\\]")
                .matcher(text)
                .results()
                .map(found -> found.group(1))
                .filter(name -> !LIBRARIES.contains(name))
                .collect(Collectors.toSet());
        assertEquals(Set.of(), needed);
    }

    /** For libraries that a program loads, glibc reserves 512 bytes and more; see ofthread.h. */
    @ParameterizedTest
    @MethodSource("jars")
    void takesLittleStaticTls(Path jar) throws IOException {
        String text =
                Cxx.output(List.of("readelf", "-W", "-l", "-d", library(jar).toString()));
        Matcher segment =
                Pattern.compile(" TLS( +0x\\p{XDigit}+){4} +0x(\\p{XDigit}+)").matcher(text);
        int bytes = segment.find() ? Integer.parseInt(segment.group(2), 16) : 0;
        assertTrue(bytes <= 128 || !text.contains("STATIC_TLS"), () -> jar + " takes " + bytes + " bytes");
    }

    @ParameterizedTest
    @MethodSource("jars")
    void runsWhereTheReadmeSays(Path jar) throws IOException {
        Optional<String> newer = newerThanReleases(Cxx.predefined());
        // A release must not be made on a newer system.
        assumeTrue(newer.isEmpty() || Boolean.getBoolean("nccl4j.test.release"), () -> newer.orElse(""));
        Path library = library(jar);
        needs(library)
                .forEach((name, version) -> assertTrue(
                        version.compareTo(release(NEWEST.get(name))) <= 0,
                        () -> library.getFileName() + " needs " + name + "_" + version + ", newer than "
                                + NEWEST.get(name)));
    }

    /** The table has what Debian 12 makes; a compiler that is older may need less. */
    @ParameterizedTest
    @MethodSource("jars")
    void thePageNamesTheVersions(Path jar) throws IOException {
        String macros = Cxx.predefined();
        Optional<String> newer = newerThanReleases(macros);
        assumeTrue(newer.isEmpty(), () -> newer.orElse(""));
        Path library = library(jar);
        Map<String, Release> needs = needs(library);
        Map<String, Release> named = named(library.getFileName().toString(), platform(jar));
        if (macro(macros, "__GLIBC_MINOR__") == GLIBC_OF_RELEASES && macro(macros, "__GNUC__") == GCC_OF_RELEASES) {
            assertEquals(needs, named, () -> "needed by " + jar + ", and named in the table of docs/compatibility.md");
        }
        needs.forEach((name, version) -> assertTrue(
                version.compareTo(named.get(name)) <= 0,
                () -> library.getFileName() + " needs " + name + "_" + version + ", newer than " + named.get(name)));
    }

    /** The highest versions of symbols that a library needs, such as GLIBC 2.28. */
    private static Map<String, Release> needs(Path library) throws IOException {
        String text = Cxx.output(List.of("readelf", "-W", "-V", library.toString()));
        Map<String, Release> needs = new TreeMap<>();
        Pattern.compile("Name: ([A-Z]+)_([0-9.]+)")
                .matcher(text)
                .results()
                .forEach(found -> needs.merge(
                        found.group(1),
                        release(found.group(2)),
                        (one, other) -> one.compareTo(other) < 0 ? other : one));
        assertTrue(needs.containsKey("GLIBC"), text);
        return needs;
    }

    /** The same from the table of the page. */
    private static Map<String, Release> named(String library, String platform) throws IOException {
        String page = Files.readString(Path.of("../docs/compatibility.md"));
        Matcher row = Pattern.compile("\\| `" + library + "` \\| " + platform
                        + " \\| ([0-9.]+) \\| ([0-9.]+) \\| ([0-9.]+) \\| ([0-9.]+) \\|")
                .matcher(page);
        assertTrue(row.find(), () -> "no row of " + library + " for " + platform + " in docs/compatibility.md");
        return new TreeMap<>(Map.of(
                "GLIBC", release(row.group(1)),
                "GLIBCXX", release(row.group(2)),
                "CXXABI", release(row.group(3)),
                "GCC", release(row.group(4))));
    }

    /** Why what a compiler makes may need a newer system than the README says, by its macros; empty if it can't. */
    private static Optional<String> newerThanReleases(String macros) {
        int glibc = 100 * (macro(macros, "__GLIBC__") - 2) + macro(macros, "__GLIBC_MINOR__");
        int gcc = macro(macros, "__GNUC__");
        return glibc <= GLIBC_OF_RELEASES && gcc <= GCC_OF_RELEASES
                ? Optional.empty()
                : Optional.of(String.format(
                        Locale.ROOT,
                        "a check of releases, which are built with glibc 2.%d and GCC %d or older: 2.%d and %d",
                        GLIBC_OF_RELEASES,
                        GCC_OF_RELEASES,
                        glibc,
                        gcc));
    }

    private static int macro(String macros, String name) {
        Matcher definition = Pattern.compile("^#define " + name + " (\\d+)$", Pattern.MULTILINE)
                .matcher(macros);
        assertTrue(definition.find(), () -> "no " + name + " in " + macros);
        return Integer.parseInt(definition.group(1));
    }

    @Test
    void buildsOnNewerSystemsAreNoReleases() {
        String macros = "#define __GNUC__ %d\n#define __GLIBC__ 2\n#define __GLIBC_MINOR__ %d\n";
        assertEquals(Optional.empty(), newerThanReleases(String.format(Locale.ROOT, macros, 12, 36)));
        assertEquals(Optional.empty(), newerThanReleases(String.format(Locale.ROOT, macros, 11, 35)));
        String reason = "a check of releases, which are built with glibc 2.36 and GCC 12 or older: ";
        assertEquals(
                Optional.of(reason + "2.41 and 14"), newerThanReleases(String.format(Locale.ROOT, macros, 14, 41)));
        assertEquals(
                Optional.of(reason + "2.36 and 13"), newerThanReleases(String.format(Locale.ROOT, macros, 13, 36)));
        assertEquals(
                Optional.of(reason + "2.39 and 12"), newerThanReleases(String.format(Locale.ROOT, macros, 12, 39)));
    }

    private static Release release(String version) {
        // GLIBC_2.34 has two parts only.
        return Release.of(version.chars().filter(c -> c == '.').count() == 1 ? version + ".0" : version)
                .orElseThrow(() -> new AssertionError(version));
    }

    private Path library(Path jar) throws IOException {
        try (JarFile file = new JarFile(jar.toFile())) {
            List<JarEntry> libraries = file.stream()
                    .filter(entry -> entry.getName().endsWith(".so"))
                    .toList();
            assertEquals(1, libraries.size(), libraries.toString());
            JarEntry entry = libraries.get(0);
            assertEquals(
                    platform(jar),
                    Path.of(entry.getName()).getParent().getFileName().toString());
            Path library = folder.resolve(Path.of(entry.getName()).getFileName());
            try (var content = file.getInputStream(entry)) {
                Files.copy(content, library);
            }
            return library;
        }
    }

    /** What JavaCPP publishes needs more than ours, so that it is what the README names. */
    @ParameterizedTest
    @MethodSource("jarsOfJavaCpp")
    void theReadmeNamesTheFloor(Path jar) throws IOException {
        Matcher name = JAVACPP.matcher(jar.getFileName().toString());
        assertTrue(name.matches());
        Path library = folder.resolve(JAVACPP_LIBRARY);
        try (JarFile file = new JarFile(jar.toFile())) {
            JarEntry entry = file.getJarEntry("org/bytedeco/javacpp/" + name.group(1) + "/" + JAVACPP_LIBRARY);
            try (var content = file.getInputStream(entry)) {
                Files.copy(content, library);
            }
        }
        Release glibc = needs(library).get("GLIBC");
        assertTrue(glibc.compareTo(release(NEWEST.get("GLIBC"))) >= 0, () -> "ours needs more than " + glibc);
        String floor = glibc.toString().replaceAll("\\.0$", "");
        String page = Files.readString(Path.of("../docs/compatibility.md"));
        String row = "| `" + JAVACPP_LIBRARY + "`, of JavaCPP | " + name.group(1) + " | " + floor + " |";
        assertTrue(page.contains(row), row);
        String readme = Files.readString(Path.of("../README.md"));
        assertTrue(readme.contains("glibc " + floor), "glibc " + floor);
    }
}

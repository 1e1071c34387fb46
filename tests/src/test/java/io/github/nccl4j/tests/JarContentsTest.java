package io.github.nccl4j.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.Set;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Every jar that the build has made holds what belongs into it, and nothing else. */
class JarContentsTest {
    private static final String OURS = "io/github/nccl4j/";
    private static final String NAME = "[A-Za-z0-9_$-]+";
    private static final String OBSERVERS = "META-INF/services/io\\.github\\.nccl4j\\.launch\\.ObserverProvider";
    private static final String NOTICES = "META-INF/THIRD-PARTY\\.txt";
    private static final String ABOUT = "META-INF/(MANIFEST\\.MF|maven/io\\.github\\.nccl4j/%s/pom\\.(xml|properties))";

    /** What a jar may hold, and how much of it must be there. */
    private record Rule(Pattern jar, String artifact, int least, String... contents) {
        Rule(String jar, String artifact, int least, String... contents) {
            this(Pattern.compile(jar), artifact, least, contents);
        }

        boolean allows(String entry) {
            return entry.matches(String.format(Locale.ROOT, ABOUT, artifact))
                    || Stream.of(contents).anyMatch(entry::matches);
        }
    }

    private static final String VERSION = "\\d[^-]*(-SNAPSHOT)?";

    /** The first whose name matches. */
    private static final List<Rule> RULES = List.of(
            new Rule(
                    "nccl-" + VERSION + "-(linux-\\w+)\\.jar",
                    "nccl",
                    2,
                    OURS + "linux-\\w+/libjninccl4j\\.so",
                    "module-info\\.class"),
            new Rule(
                    "nccl-host-" + VERSION + "-(linux-\\w+)\\.jar",
                    "nccl-host",
                    1,
                    OURS + "host/linux-\\w+/libnccl4j_host\\.so",
                    "module-info\\.class"),
            new Rule(
                    "nccl-host-" + VERSION + "-(sources|javadoc)\\.jar",
                    "nccl-host",
                    20,
                    "[a-z]+/" + NAME + "\\.(cpp|h|map)"),
            new Rule("nccl-host-" + VERSION + "\\.jar", "nccl-host", 0),
            new Rule("nccl-platform-" + VERSION + "(-sources|-javadoc)?\\.jar", "nccl-platform", 0, "README\\.md"),
            new Rule(
                    ".*-javadoc\\.jar",
                    "none",
                    10,
                    ".*\\.(html|js|css|svg|png|gif)",
                    "(element|package)-list",
                    "legal/.*",
                    "(?:.*/)?jquery.*"),
            new Rule(
                    "nccl-" + VERSION + "-sources\\.jar",
                    "nccl",
                    50,
                    OURS + "(global|highlevel|internal/[a-z]+|launch(/[a-z]+)?|library|nccl|nccl_device|presets|ras)/"
                            + NAME + "\\.java",
                    OURS + "(include|shim)/" + NAME + "\\.h",
                    "META-INF/native-image/.*\\.json"),
            new Rule(
                    "nccl-micrometer-" + VERSION + "(-sources)?\\.jar",
                    "nccl-micrometer",
                    2,
                    OURS + "micrometer/" + NAME + "\\.(class|java)"),
            new Rule(
                    "nccl-extensions-" + VERSION + "(-sources)?\\.jar",
                    "nccl-extensions",
                    30,
                    OURS + "extensions/((global|library|nccl_ep|nccl_m2n|presets)/)?" + NAME + "\\.(class|java)",
                    OURS + "extensions/include/nccl_(ep|m2n)\\.h",
                    "META-INF/native-image/io\\.github\\.nccl4j/nccl-extensions/(jni|reflect|resource)-config\\.json",
                    "module-info\\.class",
                    OURS + "extensions/linux-\\w+/libjninccl4jextensions\\.so"),
            new Rule(
                    ".*-sources\\.jar",
                    "[a-z0-9_.-]+",
                    5,
                    OURS + "(header|pytorch|spark|tools|zookeeper)/.*\\.(html|java|md|properties|sh)",
                    NOTICES,
                    OBSERVERS),
            new Rule(
                    "nccl-" + VERSION + "\\.jar",
                    "nccl",
                    100,
                    OURS + "(global|highlevel|internal/[a-z]+|launch(/[a-z]+)?|library|nccl|nccl_device|presets|ras)/"
                            + NAME + "\\.class",
                    OURS + "(include|shim)/" + NAME + "\\.h",
                    "META-INF/native-image/io\\.github\\.nccl4j/(nccl|highlevel)/(jni|reflect|resource)-config\\.json",
                    "module-info\\.class"),
            new Rule("nccl-header-" + VERSION + "\\.jar", "nccl-header", 20, OURS + "header/" + NAME + "\\.class"),
            new Rule(
                    "nccl-tools-" + VERSION + "\\.jar",
                    "nccl-tools",
                    20,
                    OURS + "tools/.*\\.(class|html|md|properties|sh)",
                    NOTICES),
            new Rule(
                    "nccl-samples-" + VERSION + "\\.jar",
                    "nccl-samples",
                    10,
                    OURS + "samples/" + NAME + "\\.class",
                    OURS + "samples/(samples\\.txt|with_python\\.py)"),
            new Rule("nccl-" + VERSION + "-tests\\.jar", "nccl", 3, OURS + "testing/.*\\.class"),
            new Rule(
                    "nccl-tools-" + VERSION + "-tests\\.jar",
                    "nccl-tools",
                    3,
                    OURS + "tools/support/.*\\.class",
                    "META-INF/services/org\\.junit\\.jupiter\\.api\\.extension\\.Extension"),
            new Rule("nccl-pytorch-" + VERSION + "\\.jar", "nccl-pytorch", 5, OURS + "pytorch/" + NAME + "\\.class"),
            new Rule(
                    "nccl-spark_2\\.13-" + VERSION + "\\.jar",
                    "nccl-spark_2.13",
                    5,
                    OURS + "spark/" + NAME + "\\.class"),
            new Rule(
                    "nccl-zookeeper-" + VERSION + "\\.jar",
                    "nccl-zookeeper",
                    5,
                    OURS + "zookeeper/" + NAME + "\\.class",
                    OBSERVERS),
            new Rule(
                    "nccl4j-samples\\.jar",
                    "[a-z-]+",
                    100,
                    OURS + ".*\\.(class|h|so|py|txt)",
                    "org/bytedeco/javacpp/.*\\.(class|so|properties)",
                    "org/bytedeco/cuda/(cudart/|global/cudart|presets/cudart).*\\.class",
                    "org/bytedeco/cuda/linux-\\w+/libjnicudart\\.so",
                    "META-INF/maven/org\\.bytedeco/.*/pom\\.(properties|xml)"),
            new Rule(
                    "nccl4j-tools\\.jar",
                    "[a-z-]+",
                    100,
                    OURS + ".*\\.(class|h|html|md|properties|so|py|sh|txt)",
                    NOTICES,
                    "org/bytedeco/javacpp/.*\\.(class|so|properties)",
                    "org/bytedeco/cuda/(cudart/|global/cudart|presets/cudart).*\\.class",
                    "org/bytedeco/cuda/linux-\\w+/libjnicudart\\.so",
                    "picocli/.*\\.class",
                    "com/google/gson/.*\\.class",
                    "META-INF/proguard/gson\\.pro",
                    "META-INF/maven/(org\\.bytedeco|info\\.picocli|com\\.google\\.code\\.gson)/.*/pom\\.(properties|xml)"));

    static List<Path> jars() throws IOException {
        List<Path> jars = new ArrayList<>();
        for (Path module : Modules.ofUsers()) {
            Path target = module.resolve("target");
            if (Files.isDirectory(target)) {
                try (Stream<Path> files = Files.list(target)) {
                    files.filter(file -> file.toString().endsWith(".jar")).forEach(jars::add);
                }
            }
        }
        assertTrue(jars.size() >= 6, jars.toString());
        return jars;
    }

    @ParameterizedTest
    @MethodSource("jars")
    void holdsWhatBelongsIntoIt(Path jar) throws IOException {
        String name = jar.getFileName().toString();
        Optional<Rule> rule =
                RULES.stream().filter(one -> one.jar.matcher(name).matches()).findFirst();
        assertTrue(rule.isPresent(), () -> "no rule for " + jar);
        List<String> strange = new ArrayList<>();
        int contents = 0;
        try (JarFile file = new JarFile(jar.toFile())) {
            for (JarEntry entry :
                    file.stream().filter(one -> !one.isDirectory()).toList()) {
                if (!rule.get().allows(entry.getName())) {
                    strange.add(entry.getName());
                } else if (!entry.getName().startsWith("META-INF/")) {
                    contents++;
                }
            }
        }
        assertEquals(List.of(), strange);
        int found = contents;
        assertTrue(found >= rule.get().least, () -> name + " has " + found + " files");
        Matcher classifier = Pattern.compile(".*-(linux-\\w+)\\.jar").matcher(name);
        if (classifier.matches()) {
            // A build for one platform after another one must not mix them.
            assertEquals(2, found, name);
            try (JarFile file = new JarFile(jar.toFile())) {
                assertTrue(
                        file.stream().anyMatch(entry -> entry.getName().contains("/" + classifier.group(1) + "/lib")));
            }
        }
    }

    /** A tool that rewrites a jar must not leave one that only its owner can read. */
    @ParameterizedTest
    @MethodSource("jars")
    void isAsReadableAsItsFolder(Path jar) throws IOException {
        assertEquals(
                readers(Files.getPosixFilePermissions(jar.toAbsolutePath().getParent())),
                readers(Files.getPosixFilePermissions(jar)));
    }

    private static Set<PosixFilePermission> readers(Set<PosixFilePermission> permissions) {
        Set<PosixFilePermission> readers = EnumSet.of(
                PosixFilePermission.OWNER_READ, PosixFilePermission.GROUP_READ, PosixFilePermission.OTHERS_READ);
        readers.retainAll(permissions);
        return readers;
    }
}

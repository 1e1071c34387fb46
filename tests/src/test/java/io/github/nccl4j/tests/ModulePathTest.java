package io.github.nccl4j.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.github.nccl4j.tools.launch.ChildProcesses;
import java.io.File;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.module.ModuleDescriptor;
import java.lang.module.ModuleFinder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.function.Predicate;
import java.util.spi.ToolProvider;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.tools.JavaCompiler;
import org.bytedeco.javacpp.Loader;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The jars on a module path: what a module sees of them, and that it runs with them. */
class ModulePathTest {
    private static final String MODULE = "io.github.nccl4j";

    /** Prints the library, or why there is none. */
    private static final String PRINT_LIBRARY = """
            package app;
            import io.github.nccl4j.highlevel.*;
            import io.github.nccl4j.library.*;
            public class Main {
                public static void main(String[] args) {
                    try {
                        System.out.println(NcclLibrary.get());
                    } catch (NcclLibraryException e) {
                        System.out.println("NcclLibraryException: " + e.getMessage());
                    }
                }
            }
            """;

    @TempDir
    private Path folder;

    private static List<Path> jars() {
        return Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator))
                .map(Path::of)
                .filter(jar -> jar.getFileName()
                        .toString()
                        .matches("(nccl|nccl-host|nccl-extensions|javacpp|cuda)-[0-9].*\\.jar"))
                .toList();
    }

    private static String modulePath() {
        return jars().stream().map(Path::toString).collect(Collectors.joining(File.pathSeparator));
    }

    private static Set<String> exportsOf(String name) {
        ModuleDescriptor module = ModuleFinder.of(jars().toArray(Path[]::new))
                .find(name)
                .orElseThrow()
                .descriptor();
        assertFalse(module.isAutomatic(), name);
        return module.exports().stream().map(ModuleDescriptor.Exports::source).collect(Collectors.toSet());
    }

    @Test
    void theModuleExportsWhatProgramsUse() {
        assertEquals(
                Set.of(
                        MODULE + ".highlevel",
                        MODULE + ".launch",
                        MODULE + ".ras",
                        MODULE + ".global",
                        MODULE + ".library",
                        MODULE + ".nccl",
                        MODULE + ".nccl_device",
                        MODULE + ".presets"),
                exportsOf(MODULE));
    }

    @Test
    void theModuleOfTheExtensionsExportsAllPackages() throws IOException {
        Set<String> packages;
        try (Stream<Path> files = Files.walk(Path.of("../nccl-extensions/src/main/java"))) {
            packages = files.filter(file -> file.endsWith("package-info.java"))
                    .map(file -> Path.of("../nccl-extensions/src/main/java").relativize(file.getParent()))
                    .map(name -> name.toString().replace('/', '.'))
                    .collect(Collectors.toSet());
        }
        assertEquals(packages, exportsOf(MODULE + ".extensions"));
    }

    @Test
    void aModuleUsesTheExtensions() throws IOException {
        compile("module app { requires io.github.nccl4j.extensions; }", """
                package app;
                import io.github.nccl4j.extensions.*;
                import io.github.nccl4j.extensions.global.nccl_m2n;
                import io.github.nccl4j.extensions.nccl_m2n.ncclM2nConfig_t;
                import io.github.nccl4j.highlevel.*;
                public class Main {
                    public static void main(String[] args) {
                        System.out.println(Mesh.class.getModule() + " " + Mesh.of("data", 2).by("model", 3).size());
                        try (ncclM2nConfig_t config = new ncclM2nConfig_t()) {
                            System.out.println(config.magic() == nccl_m2n.NCCL_M2N_API_MAGIC);
                            nccl_m2n.ncclM2nGroupStart();
                        } catch (NcclLibraryException e) {
                            System.out.println(e.getMessage());
                        }
                    }
                }
                """);
        ChildJvm.Outcome outcome = new ChildJvm()
                .property("nccl4j.engine", "host")
                .modulePath(modulePath() + File.pathSeparator + folder.resolve("classes"))
                .run("app/app.Main");
        assertTrue(
                outcome.output()
                        .startsWith(
                                "module io.github.nccl4j.extensions 6\ntrue\nNCCL M2N could not be loaded: it needs"),
                outcome.output());
    }

    @Test
    void aModuleRunsAnOperationOnTheHostEngine() throws IOException {
        compile("module app { requires io.github.nccl4j; }", """
                package app;
                import io.github.nccl4j.highlevel.*;
                public class Main {
                    public static void main(String[] args) {
                        try (Communicator communicator = Communicator.create(UniqueId.create(), 0, 1);
                                DeviceBuffer<Element.Float32> buffer =
                                        communicator.device().allocate(ElementType.FLOAT32, 4)) {
                            buffer.fill(2.5);
                            communicator.allReduce(buffer, ReduceOp.SUM, CudaStream.defaultOf(communicator.device()));
                            float[] sums = new float[4];
                            buffer.copyTo(sums);
                            System.out.println(Communicator.class.getModule() + ": " + sums[3]);
                        }
                    }
                }
                """);
        ChildJvm.Outcome outcome = new ChildJvm()
                .property("nccl4j.engine", "host")
                .modulePath(modulePath() + File.pathSeparator + folder.resolve("classes"))
                .run("app/app.Main");
        assertEquals(0, outcome.exitCode(), outcome.output());
        assertTrue(outcome.output().contains("module io.github.nccl4j: 2.5"), outcome.output());
    }

    /** jlink takes only jars that have a descriptor. */
    @Test
    void anImageOfJlinkRunsWithTheModulesOfNativeCode() throws IOException, InterruptedException {
        ToolProvider jlink = ToolProvider.findFirst("jlink").orElse(null);
        assumeTrue(jlink != null, "needs jlink");
        // The extensions are in the image, too: it takes no jar without a descriptor.
        compile("module app { requires io.github.nccl4j; requires io.github.nccl4j.extensions; }", PRINT_LIBRARY);
        String platform = Loader.getPlatform().replace('-', '.');
        String natives =
                MODULE + "." + platform + "," + MODULE + ".host." + platform + ",org.bytedeco.javacpp." + platform;
        Path image = folder.resolve("image");
        StringWriter messages = new StringWriter();
        int code = jlink.run(
                new PrintWriter(messages),
                new PrintWriter(messages),
                "-p",
                modulePath() + File.pathSeparator + folder.resolve("classes"),
                "--add-modules",
                "app," + natives,
                "--output",
                image.toString());
        assertEquals(0, code, messages.toString());
        assertTrue(run(image, "--add-modules", "ALL-SYSTEM").startsWith("host engine "));
        assertTrue(run(image)
                .contains("; in an image of jlink, its module, and the option --add-modules ALL-SYSTEM at run time"));
    }

    private String run(Path image, String... options) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of(
                image.resolve("bin/java").toString(),
                "-XX:TieredStopAtLevel=1",
                "-Dnccl4j.engine=host",
                "-Dorg.bytedeco.javacpp.cachedir=" + folder.resolve("cache")));
        command.addAll(List.of(options));
        command.addAll(List.of("-m", "app/app.Main"));
        Process process = ChildProcesses.start(new ProcessBuilder(command).redirectErrorStream(true));
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertEquals(0, process.waitFor(), output);
        return output;
    }

    /** As without the option {@code --add-modules}. */
    @Test
    void withoutTheNativeJarsTheOptionIsNamed() throws IOException {
        String output =
                load(new ChildJvm(), path -> !path.getFileName().toString().contains("linux"));
        assertTrue(
                output.contains("NcclLibraryException: nccl4j's native code for linux-")
                        && output.contains("; with a module path, add the option --add-modules ALL-MODULE-PATH, too: "),
                output);
    }

    @Test
    void whereJavaRefusesNativeCodeTheOptionIsNamed() throws IOException {
        assumeTrue(Runtime.version().feature() >= 24, "older Java does not refuse it");
        String output = load(new ChildJvm().option("--illegal-native-access=deny"), path -> true);
        assertTrue(
                output.contains("NcclLibraryException: Java does not let nccl4j load native code (")
                        && output.contains("): start it with the option"
                                + " --enable-native-access=io.github.nccl4j,org.bytedeco.javacpp,org.bytedeco.cuda\n"),
                output);
    }

    /** Loads the host engine in a module, with some of the jars. */
    private String load(ChildJvm jvm, Predicate<Path> jars) throws IOException {
        compile("module app { requires io.github.nccl4j; }", PRINT_LIBRARY);
        String path = jars().stream().filter(jars).map(Path::toString).collect(Collectors.joining(File.pathSeparator));
        return jvm.property("nccl4j.engine", "host")
                .modulePath(path + File.pathSeparator + folder.resolve("classes"))
                .run("app/app.Main")
                .output();
    }

    private void compile(String module, String main) throws IOException {
        Path moduleFile = Files.writeString(folder.resolve("module-info.java"), module);
        Path mainFile =
                Files.writeString(Files.createDirectory(folder.resolve("app")).resolve("Main.java"), main);
        JavaCompiler compiler = javax.tools.ToolProvider.getSystemJavaCompiler();
        StringWriter messages = new StringWriter();
        boolean done = compiler.getTask(
                        messages,
                        null,
                        null,
                        List.of(
                                "-p",
                                modulePath(),
                                "-d",
                                folder.resolve("classes").toString()),
                        null,
                        compiler.getStandardFileManager(null, null, null).getJavaFileObjects(moduleFile, mainFile))
                .call();
        assertTrue(done, messages.toString());
    }
}

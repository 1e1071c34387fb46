package io.github.nccl4j.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jetbrains.kotlin.cli.common.ExitCode;
import org.jetbrains.kotlin.cli.jvm.K2JVMCompiler;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * The program of docs/interop.md in Kotlin compiles, and Kotlin knows where null is allowed. The files of docs/gpu-setup.md
 * for Gradle are Kotlin.
 */
class KotlinTest {
    private static final Path PAGE = Path.of("../../docs/interop.md");

    /** The part of Gradle's language that the files use. */
    private static final String GRADLE = """
            class Plugins { fun id(name: String) {} }
            fun plugins(block: Plugins.() -> Unit) {}
            class Repositories { fun mavenLocal() {}; fun mavenCentral() {} }
            fun repositories(block: Repositories.() -> Unit) {}
            class Dependencies { fun implementation(notation: Any) {}; fun runtimeOnly(notation: Any) {} }
            fun dependencies(block: Dependencies.() -> Unit) {}
            class Strategy { fun force(vararg notations: Any) {} }
            class Configuration { val resolutionStrategy = Strategy() }
            object configurations { fun all(block: Configuration.() -> Unit) {} }
            class Property { fun set(value: String) {} }
            class Application { val mainClass = Property() }
            fun application(block: Application.() -> Unit) {}
            fun script() {
            """;

    @TempDir
    Path folder;

    private String program() throws IOException {
        Matcher block = Pattern.compile("```kotlin\\R(.*?)```", Pattern.DOTALL).matcher(Files.readString(PAGE));
        assertTrue(block.find());
        return block.group(1);
    }

    /** Returns the compiler's messages. */
    private String compile(String program, ExitCode expected) throws IOException {
        Path file = Files.writeString(folder.resolve("Program.kt"), program);
        ByteArrayOutputStream messages = new ByteArrayOutputStream();
        ExitCode code = new K2JVMCompiler()
                .exec(
                        new PrintStream(messages, true, StandardCharsets.UTF_8),
                        file.toString(),
                        "-d",
                        folder.resolve("classes").toString(),
                        "-classpath",
                        System.getProperty("java.class.path"),
                        "-no-stdlib",
                        "-no-reflect");
        String text = messages.toString(StandardCharsets.UTF_8);
        assertEquals(expected, code, text);
        return text;
    }

    @Test
    void theProgramCompiles() throws IOException {
        compile(program(), ExitCode.OK);
    }

    @Test
    void gradleFilesCompile() throws IOException {
        List<String> files = Pattern.compile("```kotlin\\R(.*?)```", Pattern.DOTALL)
                .matcher(Files.readString(Path.of("../../docs/gpu-setup.md")))
                .results()
                .map(block -> block.group(1))
                .toList();
        assertEquals(2, files.size());
        for (String file : files) {
            compile(GRADLE + file + "}\n", ExitCode.OK);
        }
    }

    @Test
    void nullIsRefused() throws IOException {
        String program = program().replace("ReduceOp.SUM, stream)", "null, stream)");
        String messages = compile(program, ExitCode.COMPILATION_ERROR);
        assertTrue(messages.contains("null cannot be a value of a non-null type 'ReduceOp'"), messages);
    }
}

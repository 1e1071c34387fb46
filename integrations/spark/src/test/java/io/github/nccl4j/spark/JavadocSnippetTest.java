package io.github.nccl4j.spark;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.tools.JavaCompiler;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The program in the class comment of {@link NcclRdd} compiles. */
class JavadocSnippetTest {
    private static final Path SOURCE = Path.of("src/main/java/io/github/nccl4j/spark/NcclRdd.java");

    @TempDir
    Path folder;

    @Test
    void compiles() throws IOException {
        Matcher block = Pattern.compile("<pre>\\{@code\\R(.*?)\\R \\* }</pre>", Pattern.DOTALL)
                .matcher(Files.readString(SOURCE));
        assertTrue(block.find());
        Path file = Files.writeString(
                folder.resolve("Snippet.java"),
                String.format(Locale.ROOT, """
                import io.github.nccl4j.highlevel.*;
                import io.github.nccl4j.highlevel.Element.Float32;
                import io.github.nccl4j.spark.*;
                import java.time.Duration;
                import java.util.List;
                import org.apache.spark.api.java.JavaRDD;
                class Snippet {
                    void run(JavaRDD<Float> rdd) {
                        %s
                    }
                }
                """, block.group(1).replaceAll("(?m)^ \\* ?", "")));
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        StringWriter messages = new StringWriter();
        List<String> options =
                List.of("-proc:none", "-d", folder.toString(), "-cp", System.getProperty("java.class.path"));
        boolean compiled = compiler.getTask(
                        messages,
                        null,
                        null,
                        options,
                        null,
                        compiler.getStandardFileManager(null, null, null).getJavaFileObjects(file))
                .call();
        assertTrue(compiled, messages.toString());
    }
}

package io.github.nccl4j.zookeeper;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.regex.Pattern;
import javax.tools.JavaCompiler;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The programs of the page and of the class comment compile. */
class SnippetsTest {
    private static final String BODY = """
            import io.github.nccl4j.highlevel.*;
            import io.github.nccl4j.highlevel.Element.Float32;
            import io.github.nccl4j.launch.*;
            import io.github.nccl4j.zookeeper.*;
            import java.nio.file.Files;
            import java.nio.file.Path;
            abstract class Snippet {
                abstract void train(Recovery recovery);
                CudaStream stream;
                DeviceBuffer<Float32> buffer;
                void run() throws Exception {
                    %s
                }
            }
            """;

    @TempDir
    Path folder;

    @ParameterizedTest
    @CsvSource({
        "../../docs/zookeeper.md, '<!-- zookeeper -->\\R```java\\R(.*?)```'",
        "src/main/java/io/github/nccl4j/zookeeper/ZooKeeperStore.java, '<pre>\\{@code\\R(.*?)\\R \\* }</pre>'"
    })
    void compiles(Path page, String pattern) throws IOException {
        List<String> blocks = Pattern.compile(pattern, Pattern.DOTALL)
                .matcher(Files.readString(page))
                .results()
                .map(block -> block.group(1).replaceAll("(?m)^ \\* ?", ""))
                .toList();
        assertEquals(1, blocks.size(), page.toString());
        Path file = Files.writeString(folder.resolve("Snippet.java"), String.format(Locale.ROOT, BODY, blocks.get(0)));
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

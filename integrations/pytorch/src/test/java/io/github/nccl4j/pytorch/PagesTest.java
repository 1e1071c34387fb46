package io.github.nccl4j.pytorch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.tools.launch.Launcher;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import javax.tools.JavaCompiler;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The programs of docs/pytorch.md and of class comments compile, and the page's training program does what the page says. */
@Timeout(300)
class PagesTest {
    private static final Path PAGE = Path.of("../../docs/pytorch.md");
    private static final Path SOURCES = Path.of("src/main/java/io/github/nccl4j/pytorch");

    private static final String BODY = """
            import io.github.nccl4j.highlevel.*;
            import io.github.nccl4j.highlevel.Element.Float32;
            import io.github.nccl4j.pytorch.*;
            import java.time.Duration;
            import java.util.List;
            import org.bytedeco.pytorch.Module;
            import org.bytedeco.pytorch.SGD;
            import org.bytedeco.pytorch.Tensor;
            import org.bytedeco.pytorch.global.torch;
            abstract class Snippet%d {
                abstract Tensor loss(int batch);
                abstract Tensor forward(Module model, Tensor inputs);
                Communicator communicator;
                CudaStream stream;
                Recovery recovery;
                Module model;
                SGD optimizer;
                DistributedDataParallel parallel;
                Tensor tensor, first, second, inputs, targets, weight, bias;
                int step;
                void run() {
                    %s
                }
            }
            """;

    @TempDir
    Path folder;

    private static List<String> blocks(Path file, String pattern) throws IOException {
        List<String> blocks = Pattern.compile(pattern, Pattern.DOTALL)
                .matcher(Files.readString(file))
                .results()
                .map((MatchResult match) -> match.group(1))
                .toList();
        assertTrue(!blocks.isEmpty(), file.toString());
        return blocks;
    }

    private static List<String> blocksOfPage() throws IOException {
        return blocks(PAGE, "<!-- pytorch -->\\R```java\\R(.*?)```");
    }

    private void compile(String name, String text) throws IOException {
        Path file = Files.writeString(folder.resolve(name + ".java"), text);
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

    @Test
    void snippetsCompile() throws IOException {
        int number = 0;
        for (String block : blocksOfPage()) {
            if (!block.contains("public class")) {
                compile("Snippet" + number, String.format(Locale.ROOT, BODY, number++, block));
            }
        }
        assertEquals(3, number);
        for (String source : List.of("TensorBuffer", "TensorCollectives", "DistributedDataParallel")) {
            for (String block : blocks(SOURCES.resolve(source + ".java"), "<pre>\\{@code\\R(.*?)\\R \\* }</pre>")) {
                String body = block.replaceAll("(?m)^ \\* ?", "");
                compile("Snippet" + number, String.format(Locale.ROOT, BODY, number++, body));
            }
        }
    }

    /** On a machine on which PyTorch is used for the first time: a rank that loaded half of a file would crash. */
    @Test
    void theTrainingProgramFindsTheLine() throws Exception {
        String program = blocksOfPage().stream()
                .filter(block -> block.contains("public class Training"))
                .findFirst()
                .get();
        compile("Training", program);
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        PrintStream out = new PrintStream(bytes, true, StandardCharsets.UTF_8);
        String path = folder + ":" + System.getProperty("java.class.path");
        List<String> command = new ArrayList<>(List.of(
                System.getProperty("java.home") + "/bin/java",
                "-XX:-UsePerfData",
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1",
                "--enable-native-access=ALL-UNNAMED",
                "-Duser.language=en",
                "-Dnccl4j.engine=host",
                "-cp",
                path,
                "Training"));
        command.add(1, "-Dorg.bytedeco.javacpp.cachedir=" + folder.resolve("cache"));
        int code = new Launcher(command, 2, Map.of(), Duration.ofMinutes(2), out, out).run();
        String output = bytes.toString(StandardCharsets.UTF_8);
        assertEquals(0, code, output);
        assertTrue(output.contains("[0] y = 3.0 x + 1.0"), output);
        assertTrue(output.contains("[1] y = 3.0 x + 1.0"), output);
        assertTrue(Files.readString(PAGE).contains("prints `y = 3.0 x + 1.0` on every rank."));
    }
}

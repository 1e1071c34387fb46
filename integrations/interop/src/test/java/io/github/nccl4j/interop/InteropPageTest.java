package io.github.nccl4j.interop;

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
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The lines of docs/interop.md for other libraries compile. */
class InteropPageTest {
    private static final String PROGRAM = """
            package io.github.nccl4j.interop;
            import ai.djl.ndarray.NDArray;
            import ai.onnxruntime.*;
            import io.github.nccl4j.highlevel.*;
            import io.github.nccl4j.highlevel.Element.Float32;
            import java.nio.*;
            import java.util.Map;
            import jcuda.Pointer;
            import jcuda.driver.CUstream;
            import jcuda.runtime.cudaStream_t;
            import org.nd4j.linalg.api.ndarray.INDArray;
            class Snippet {
                Communicator communicator;
                INDArray array;
                NDArray ndArray;
                Pointer pointer;
                cudaStream_t jcudaStream;
                OrtEnvironment environment;
                OrtSession session;
                OnnxTensor input;
                void run() throws Exception {
                    %s
                }
            }
            """;

    @TempDir
    Path folder;

    private String compile(String lines) throws IOException {
        Path file = Files.writeString(folder.resolve("Snippet.java"), String.format(Locale.ROOT, PROGRAM, lines));
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
        return compiled ? "" : messages.toString();
    }

    @Test
    void linesCompile() throws IOException {
        List<String> blocks = Pattern.compile("<!-- interop -->\\R```java\\R(.*?)```", Pattern.DOTALL)
                .matcher(Files.readString(Path.of("../../docs/interop.md")))
                .results()
                .map(block -> block.group(1))
                .filter(block -> !block.startsWith("import "))
                .toList();
        assertEquals(6, blocks.size());
        for (String block : blocks) {
            assertEquals("", compile(block), block);
        }
        assertTrue(compile(blocks.get(0).replace("addressPointer", "adressPointer"))
                .contains("adressPointer"));
    }

    /** The program of LightGbmTest. */
    @Test
    void pageHasTheNetworkOfLightGbm() throws IOException {
        String program = Files.readString(Path.of("src/test/java/io/github/nccl4j/interop/LightGbmNetwork.java"));
        String shown = program.substring(program.indexOf("import "));
        assertTrue(Files.readString(Path.of("../../docs/interop.md")).contains("```java\n" + shown + "```"));
    }
}

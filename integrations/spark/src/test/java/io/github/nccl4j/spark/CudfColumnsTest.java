package io.github.nccl4j.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import ai.rapids.cudf.ColumnVector;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.ReduceOp;
import java.io.File;
import java.io.IOException;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import javax.tools.JavaCompiler;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaSparkContext;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * The recipe for columns of cuDF: compiled against the sources of cuDF, and run with stand-ins of its classes, in package {@code
 * ai.rapids.cudf} of these tests, since cuDF needs a GPU.
 */
@Timeout(300)
class CudfColumnsTest {
    @TempDir
    Path folder;

    /** The sum over the tasks, in the memory of each task's column. */
    private static Iterator<String> sum(Communicator communicator, Iterator<Float> rows) {
        float first = rows.next();
        try (ColumnVector column = ColumnVector.fromFloats(first, 10 * first, 100 * first)) {
            try (CudaStream stream = CudaStream.nonBlocking(communicator.device());
                    DeviceBuffer<Float32> buffer =
                            CudfColumns.buffer(column, ElementType.FLOAT32, communicator.device())) {
                communicator.allReduce(buffer, ReduceOp.SUM, stream);
                communicator.work(stream).await();
            }
            return List.of(Arrays.toString(column.floats())).iterator();
        }
    }

    @Test
    void columnsAreReducedInPlaceInABarrierStage() {
        SparkConf conf = new SparkConf()
                .setAppName("CudfColumnsTest")
                .setMaster("local[2]")
                .set("spark.ui.enabled", "false");
        try (JavaSparkContext spark = new JavaSparkContext(conf)) {
            assertEquals(
                    List.of("[3.0, 30.0, 300.0]", "[3.0, 30.0, 300.0]"),
                    NcclRdd.of(spark.parallelize(List.of(1f, 2f), 2))
                            .mapPartitions(CudfColumnsTest::sum)
                            .collect());
        }
    }

    private static void refused(String message, ColumnVector column, ElementType<?> type) {
        assertEquals(
                message,
                assertThrows(IllegalArgumentException.class, () -> CudfColumns.buffer(column, type, Device.host())
                                .close())
                        .getMessage());
    }

    @Test
    void unsuitableColumnsAreRefused() {
        refused(
                "column must not have nulls, which replaceNulls removes: 1 of 3 rows",
                ColumnVector.fromBoxedFloats(1f, null, 3f),
                ElementType.FLOAT32);
        refused("column must be of type int64: FLOAT32", ColumnVector.fromFloats(1), ElementType.INT64);
        refused("column must be of type bfloat16: FLOAT32", ColumnVector.fromFloats(1), ElementType.BFLOAT16);
        refused("column must have rows: 0", ColumnVector.fromFloats(), ElementType.FLOAT32);
    }

    private static final String PROGRAM = """
            import ai.rapids.cudf.*;
            import io.github.nccl4j.highlevel.*;
            import io.github.nccl4j.highlevel.Element.Float32;
            class Snippet {
                void run(ColumnView column, Communicator communicator, CudaStream stream) {
                    %s
                }
            }
            """;

    private String compile(Path file) {
        List<String> path = List.of(System.getProperty("java.class.path").split(File.pathSeparator));
        String sources = path.stream()
                .filter(entry -> entry.matches(".*/cudf-[\\d.]+-sources\\.jar"))
                .findFirst()
                .orElseThrow();
        // Without the folder of the stand-ins.
        String jars = path.stream()
                .filter(entry -> !entry.endsWith("test-classes") && !entry.equals(sources))
                .collect(Collectors.joining(File.pathSeparator));
        List<String> options = List.of(
                "-proc:none",
                "-nowarn",
                "-implicit:none",
                "-d",
                folder.toString(),
                "-cp",
                jars,
                "-sourcepath",
                sources);
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        StringWriter messages = new StringWriter();
        StandardJavaFileManager files = compiler.getStandardFileManager(null, null, null);
        boolean compiled = compiler.getTask(messages, null, null, options, null, files.getJavaFileObjects(file))
                .call();
        return compiled ? "" : messages.toString();
    }

    @Test
    void theRecipeCompilesAgainstCudf() {
        assertEquals("", compile(Path.of("src/test/java/io/github/nccl4j/spark/CudfColumns.java")));
    }

    @Test
    void theLinesOfThePageCompileAgainstCudf() throws IOException {
        Matcher block = Pattern.compile("<!-- spark -->\\R```java\\R(.*?)```", Pattern.DOTALL)
                .matcher(Files.readString(Path.of("../../docs/spark.md")));
        assertTrue(block.find());
        String program = String.format(Locale.ROOT, PROGRAM, block.group(1));
        assertEquals("", compile(Files.writeString(folder.resolve("Snippet.java"), program)));
        String wrong = program.replace("getRowCount()", "getRows()");
        assertTrue(
                compile(Files.writeString(folder.resolve("Snippet.java"), wrong))
                        .contains("getRows"),
                "cuDF has no such method");
    }
}

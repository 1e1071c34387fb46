package io.github.nccl4j.examples;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Programs in Scala and Clojure, which check their results. */
@Timeout(300)
class OtherLanguagesTest {
    private static final String QUICK = "-XX:TieredStopAtLevel=1";

    private static void isRightOnTwoRanks(String... program) throws Exception {
        List<String> arguments = new ArrayList<>(List.of("-n", "2", "--", NcclRun.JAVA, QUICK, NcclRun.CACHE, "-cp"));
        arguments.addAll(List.of(program));
        NcclRun run = NcclRun.of(arguments);
        assertEquals(0, run.code(), run.output());
        for (int rank = 0; rank < 2; rank++) {
            assertTrue(run.output().contains("rank " + rank + " of 2: error "), run.output());
        }
    }

    @Test
    void scala(@TempDir Path classes) throws Exception {
        Process compiler = new ProcessBuilder(
                        NcclRun.JAVA,
                        QUICK,
                        "-cp",
                        NcclRun.CLASSES,
                        "dotty.tools.dotc.Main",
                        "-usejavacp",
                        "-d",
                        classes.toString(),
                        "src/main/scala/LeastSquares.scala")
                .redirectErrorStream(true)
                .start();
        String output = new String(compiler.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertEquals(0, compiler.waitFor(), output);
        isRightOnTwoRanks(classes + File.pathSeparator + NcclRun.CLASSES, "leastSquares");
    }

    @Test
    void clojure() throws Exception {
        isRightOnTwoRanks(NcclRun.CLASSES, "clojure.main", "src/main/clojure/least_squares.clj");
    }
}

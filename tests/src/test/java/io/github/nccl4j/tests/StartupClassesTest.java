package io.github.nccl4j.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.tests.ChildJvm.Outcome;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/**
 * What a rank loads until its first result. Unlike times, classes do not depend on the machine. A rank waits 0.1 to 0.3 ms for
 * each, and up to 75 ms for the first use of some parts of Java.
 */
class StartupClassesTest {
    /** Raise it only with a measured reason. */
    private static final int MOST_OWN_CLASSES = 215;

    /** The first classes of parts of Java that take long to start: security providers, ciphers, logging. */
    private static final List<String> EXPENSIVE =
            List.of("java.security.Provider", "javax.crypto.", "java.util.logging.LogManager");

    @Test
    void aRankLoadsFewClassesBeforeItsFirstResult() {
        Outcome outcome = new ChildJvm()
                .option("-Xlog:class+load")
                .property("nccl4j.engine", "host")
                .environment("RANK", "0")
                .environment("WORLD_SIZE", "1")
                .run("io.github.nccl4j.tools.StartupRank");
        assertEquals(0, outcome.exitCode(), outcome.output());
        List<String> loaded = outcome.output()
                .lines()
                .takeWhile(line -> !line.startsWith("FIRST"))
                .filter(line -> line.contains(" source: "))
                .map(line -> line.replaceFirst("^(\\[[^]]*])+ +", ""))
                .toList();
        assertEquals(List.of(), startingWith(loaded, EXPENSIVE).toList());
        long own = startingWith(loaded, List.of("io.github.nccl4j.")).count();
        assertTrue(own > 50 && own <= MOST_OWN_CLASSES, own + " classes of io.github.nccl4j");
    }

    private static Stream<String> startingWith(List<String> classes, List<String> prefixes) {
        return classes.stream().filter(one -> prefixes.stream().anyMatch(one::startsWith));
    }
}

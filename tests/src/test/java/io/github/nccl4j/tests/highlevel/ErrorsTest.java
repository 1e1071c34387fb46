package io.github.nccl4j.tests.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.tests.ChildJvm;
import io.github.nccl4j.tests.StubLibraries;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Locale;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What programs see when a function of NCCL returns an error. */
class ErrorsTest {
    @TempDir
    static Path folder;

    private static String createWith(int result, Path library) {
        ChildJvm.Outcome outcome = new ChildJvm()
                .property("nccl4j.library", library)
                .environment("STUB_RESULT", Integer.toString(result))
                .run(HighlevelScenarios.class, "fail");
        assertEquals(0, outcome.exitCode(), outcome.output());
        return outcome.output();
    }

    @Test
    void messageNamesAllProperties() throws IOException {
        Path library = StubLibraries.failing(folder, 22703);
        assertEquals(String.format(Locale.ROOT, """
                NcclResultException
                ncclSystemError (2), ncclGetUniqueId, -1, '', %1$s, 2.27.3, no interface is up
                ncclGetUniqueId failed: ncclSystemError (2), a call of the operating system failed. \
                NCCL says: no interface is up [NCCL 2.27.3 from %1$s]
                Check network interfaces, firewalls, /dev/shm and limits; NCCL_DEBUG=WARN shows the call.
                """, library), createWith(2, library));
        assertEquals("created\n", createWith(0, library));
    }

    @ParameterizedTest
    @CsvSource({
        "1, NcclResultException",
        "3, NcclResultException",
        "4, NcclUsageException",
        "5, NcclUsageException",
        "6, NcclRemoteException",
        "7, NcclResultException",
        "8, NcclTimeoutException",
        "99, NcclResultException",
        "-5, NcclResultException"
    })
    void everyResultHasItsClass(int result, String name) throws IOException {
        Path library = StubLibraries.failing(folder, 23003);
        assertEquals(name, createWith(result, library).lines().findFirst().orElse(""));
    }

    /** The engine has a text for each thread, and another one makes the call than waits for it. */
    @Test
    void firstCallQuotesTheHostEngine() {
        ChildJvm.Outcome outcome = new ChildJvm()
                .property("nccl4j.engine", "host")
                .environment("NCCL4J_HOST_INIT_TIMEOUT", "1")
                .run(HighlevelScenarios.class, "create-alone");
        assertTrue(
                outcome.output()
                        .matches(
                                "(?s)NcclTimeoutException: .* at rank 1\\b.* NCCL says: waited \\d+\\.\\d s for rank 0 of 2 .*"),
                outcome.output());
    }
}

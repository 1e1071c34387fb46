package io.github.nccl4j.tests.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.tests.ChildJvm;
import io.github.nccl4j.tests.StubLibraries;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Keys for NCCL's connections: to libraries that encrypt, in the right form, once, and never in an output. */
class NcclEncryptionTest {
    private static final String TLS = "failed to open libssl.so.3";
    private static final String NO_TLS = "NCCL was built without TLS support but a pre-shared key was configured";

    @TempDir
    Path folder;

    private Path log;

    @BeforeEach
    void noCallsYet() {
        log = folder.resolve("calls");
    }

    private Path library(String text) throws IOException {
        return StubLibraries.encrypting(folder, "encrypting", text);
    }

    private String run(ChildJvm jvm, String... words) {
        ChildJvm.Outcome outcome = jvm.environment("STUB_LOG", log.toString()).run(EncryptionScenario.class, words);
        assertEquals(0, outcome.exitCode(), outcome.output());
        assertFalse(outcome.output().contains("kk"), outcome.output());
        return outcome.output();
    }

    private String run(Path library, String... words) {
        return run(new ChildJvm().property("nccl4j.library", library), words);
    }

    private String calls() throws IOException {
        return Files.exists(log) ? Files.readString(log, StandardCharsets.ISO_8859_1) : "";
    }

    private static String lines(String... lines) {
        return String.join("\n", lines) + "\n";
    }

    @Test
    void aBuildWithTlsGetsTheKeyAndNothingKeepsIt() throws IOException {
        assertEquals(
                lines("enabled: false", "support: TLS", "key: done", "enabled: true", "log: 0", "unique-id: 128 bytes"),
                run(library(TLS), "enabled", "support", "key", "enabled", "log", "unique-id"));
        assertEquals(lines("32 cafebeef 23203 1 " + "k".repeat(64), "0 bytes are left"), calls());
    }

    @Test
    void aFileGivesTheKeyWithoutItsLineEnd() throws IOException {
        assertEquals(
                lines(
                        "no-file: NoSuchFileException",
                        "short-file: the key in FILE must have at least 32 bytes: it has 31",
                        "file: done",
                        "log: 0"),
                run(library(TLS), "no-file", "short-file", "file", "log"));
        assertEquals(lines("32 cafebeef 23203 1 " + "k".repeat(64), "0 bytes are left"), calls());
    }

    @Test
    void aKeyIsLongEnoughAndHasNoZeroByte() throws IOException {
        assertEquals(
                lines(
                        "short: IllegalArgumentException key must have at least 32 bytes: it has 31",
                        "zero: IllegalArgumentException key must not have a zero byte: byte 40 is one",
                        "loaded: false",
                        "shortest: done"),
                run(library(TLS), "short", "zero", "loaded", "shortest"));
        assertEquals(lines("32 cafebeef 23203 1 " + "k".repeat(32)), calls());
    }

    @Test
    void allOtherBytesAreTheKey() throws IOException {
        assertEquals(lines("any: done"), run(library(TLS), "any"));
        assertEquals("32 cafebeef 23203 1 " + "\u00ff\n %s".repeat(8) + "\n", calls());
    }

    @Test
    void aBuildWithoutTlsIsRefused() throws IOException {
        // Also if a text of OpenSSL is in it.
        Path library = library(NO_TLS + "\\0" + TLS);
        String refused =
                "NcclLibraryException NCCL 2.32.3 from " + library + " can't encrypt its connections: it was built"
                        + " without TLS. NCCL's sources are built with it by make TLS_BACKEND=OPENSSL3";
        assertEquals(
                lines("support: BUILT_WITHOUT_TLS", "key: " + refused, "enabled: false"),
                run(library, "support", "key", "enabled"));
        assertEquals("", calls());
    }

    @Test
    void aLibraryThatDoesNotShowItsTlsIsRefused() throws IOException {
        Path library = library("some text");
        String refused = "NcclLibraryException encryption was refused: NCCL 2.32.3 from " + library
                + " takes a key, but does not show that it was built with TLS";
        assertEquals(lines("support: UNKNOWN", "key: " + refused), run(library, "support", "key"));
        assertEquals("", calls());
    }

    @Test
    void anOlderLibraryIsRefused() throws IOException {
        Path library = StubLibraries.small(folder, 23102);
        assertEquals(
                lines(
                        "support: NO_FUNCTION",
                        "key: NcclLibraryException ncclSetEncryption needs NCCL 2.32.3, loaded is NCCL 2.31.2 from "
                                + library),
                run(library, "support", "key"));
    }

    @Test
    void theHostEngineIsRefused() {
        ChildJvm jvm = new ChildJvm().property("nccl4j.engine", "host");
        String output = run(jvm, "support", "key");
        assertEquals(
                lines(
                        "support: BUILT_WITHOUT_TLS",
                        "key: NcclLibraryException host engine 2.32.3 from PATH can't encrypt its connections: it was built"
                                + " without TLS"),
                output.replaceFirst("from \\S+", "from PATH"));
    }

    @Test
    void aKeyComesBeforeTheFirstUniqueIdAndOnce() throws IOException {
        String late = "IllegalStateException a key must be set before the first unique id and communicator:"
                + " ncclGetUniqueId was called";
        assertEquals(
                lines("version: 0", "unique-id: 128 bytes", "key: " + late),
                run(library(TLS), "version", "unique-id", "key"));
        assertEquals(
                lines(
                        "version: 0",
                        "key: done",
                        "key: IllegalStateException this process has a key already, which can't be changed"),
                run(library(TLS), "version", "key", "key"));
        assertEquals(lines("32 cafebeef 23203 1 " + "k".repeat(64)), calls());
    }

    @Test
    void whatNcclRefusesIsNoKey() throws IOException {
        ChildJvm jvm = new ChildJvm().property("nccl4j.library", library(TLS)).environment("STUB_RESULT", "4");
        String output = run(jvm, "key", "enabled", "log");
        assertEquals(
                "key: NcclUsageException",
                output.lines().findFirst().orElseThrow().substring(0, 23));
        assertTrue(output.contains("ncclSetEncryption") && output.contains("no key for you"), output);
        assertTrue(output.contains("enabled: false\nlog: 0\n"), output);
        assertEquals("0 bytes are left", calls().lines().skip(1).findFirst().orElseThrow());
    }
}

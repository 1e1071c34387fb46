package io.github.nccl4j.tests.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import io.github.nccl4j.tests.ChildJvm;
import io.github.nccl4j.tests.StubLibraries;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
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
    void theHostEngineEncrypts() {
        ChildJvm jvm = new ChildJvm().property("nccl4j.engine", "host");
        String output = run(jvm, "support", "key", "enabled", "unique-id", "key");
        // A system without OpenSSL 3 cannot encrypt.
        assumeFalse(output.contains("libssl.so.3 cannot be loaded"), output);
        assertEquals(
                lines(
                        "support: TLS",
                        "key: done",
                        "enabled: true",
                        "unique-id: 128 bytes",
                        "key: IllegalStateException this process has a key already, which can't be changed"),
                output);
    }

    @Test
    void theHostEngineNeedsOpenSsl() throws IOException {
        // A library of this name that is none, before the system's.
        Files.writeString(folder.resolve("libssl.so.3"), "no library");
        ChildJvm jvm =
                new ChildJvm().property("nccl4j.engine", "host").environment("LD_LIBRARY_PATH", folder.toString());
        String output = run(jvm, "key", "enabled");
        assertTrue(output.startsWith("key: NcclResultException"), output);
        assertTrue(output.contains("encryption needs OpenSSL 3, whose libssl.so.3 cannot be loaded: "), output);
        assertTrue(output.contains("enabled: false"), output);
    }

    @Test
    void aVariableNamesTheFile() throws IOException {
        Path key = folder.resolve("variable.key");
        Files.writeString(key, "v".repeat(40) + "\n");
        Files.setPosixFilePermissions(key, PosixFilePermissions.fromString("rw-------"));
        ChildJvm jvm = new ChildJvm()
                .property("nccl4j.library", library(TLS))
                .environment("NCCL4J_ENCRYPTION_KEY_FILE", key.toString());
        assertEquals(
                lines("enabled: false", "unique-id: 128 bytes", "enabled: true", "unique-id: 128 bytes"),
                run(jvm, "enabled", "unique-id", "enabled", "unique-id"));
        assertEquals(lines("32 cafebeef 23203 1 " + "v".repeat(40)), calls());
        // A rank must not go on without the encryption that was asked for.
        Files.setPosixFilePermissions(key, PosixFilePermissions.fromString("rw-r--r--"));
        String readable = run(jvm, "unique-id", "enabled");
        assertTrue(readable.startsWith("unique-id: IllegalArgumentException "), readable);
        assertTrue(readable.contains("enabled: false"), readable);
        Files.delete(key);
        String missing = run(jvm, "unique-id", "enabled");
        assertTrue(
                missing.startsWith("unique-id: IllegalArgumentException NCCL4J_ENCRYPTION_KEY_FILE can't be read: "),
                missing);
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

package io.github.nccl4j.launch.store;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests of {@link Secret} and {@link Seal}: sources of the secret, proofs, sealed frames. */
class SecretTest {
    private static final String TEXT = "0123456789abcdef";
    private static final byte[] SERVER_NONCE = new byte[32];
    private static final byte[] CLIENT_NONCE = new byte[32];

    static {
        Arrays.fill(CLIENT_NONCE, (byte) 7);
    }

    private static Secret of(String text) {
        return new Secret(text.getBytes(StandardCharsets.UTF_8), "the secret");
    }

    private static byte[] proof(Secret secret) {
        return secret.proof(false, SERVER_NONCE, CLIENT_NONCE);
    }

    @Test
    void readsSecretFromEnvironmentOrFile(@TempDir Path folder) throws IOException {
        assertNull(Secret.of(Map.of("NCCL4J_STORE_SECRET", "")));
        byte[] expected = proof(of(TEXT));
        assertArrayEquals(expected, proof(Secret.of(Map.of("NCCL4J_STORE_SECRET", TEXT))));
        Path file = privateFile(folder);
        for (String end : new String[] {"", "\n", "\r\n"}) {
            Files.writeString(file, TEXT + end);
            assertArrayEquals(expected, proof(Secret.of(Map.of("NCCL4J_STORE_SECRET_FILE", file.toString()))));
        }
    }

    @Test
    void rejectsInvalidSecretSettings(@TempDir Path folder) throws IOException {
        assertEquals(
                "NCCL4J_STORE_SECRET must have at least 16 bytes: it has 5",
                failure(Map.of("NCCL4J_STORE_SECRET", "short")));
        Path file = Files.writeString(privateFile(folder), "0123456789abcde\n");
        assertEquals(
                file + " (NCCL4J_STORE_SECRET_FILE) must have at least 16 bytes: it has 15",
                failure(Map.of("NCCL4J_STORE_SECRET_FILE", file.toString())));
        assertTrue(failure(Map.of("NCCL4J_STORE_SECRET_FILE", folder + "/none"))
                .startsWith("NCCL4J_STORE_SECRET_FILE can't be read: "));
        assertEquals(
                "NCCL4J_STORE_SECRET and NCCL4J_STORE_SECRET_FILE must not both be set",
                failure(Map.of("NCCL4J_STORE_SECRET", TEXT, "NCCL4J_STORE_SECRET_FILE", file.toString())));
    }

    @Test
    void rejectsFileWithLineEndsOnly(@TempDir Path folder) throws IOException {
        Path file = Files.writeString(privateFile(folder), "\r\n\n");
        assertEquals(
                file + " (NCCL4J_STORE_SECRET_FILE) must have at least 16 bytes: it has 0",
                failure(Map.of("NCCL4J_STORE_SECRET_FILE", file.toString())));
    }

    private static Path privateFile(Path folder) throws IOException {
        return Files.createFile(
                folder.resolve("secret"),
                PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
    }

    @Test
    void rejectsFileThatOthersCanRead(@TempDir Path folder) throws IOException {
        Path file = Files.writeString(privateFile(folder), TEXT);
        Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-r--r--"));
        String refused = failure(Map.of("NCCL4J_STORE_SECRET_FILE", file.toString()));
        assertTrue(refused.endsWith(": " + file + " has mode 644"), refused);
    }

    private static String failure(Map<String, String> environment) {
        return assertThrows(IllegalArgumentException.class, () -> Secret.of(environment))
                .getMessage();
    }

    /** An HMAC-SHA256 implementation other than Java's computed the expected value. */
    @Test
    void proofMatchesReferenceValue() {
        assertEquals(
                "e446fd281f7c6f68c4fe3710d6b46d97c34664b64ab78a0c48cf62a650ff39a0",
                HexFormat.of().formatHex(proof(of(TEXT))));
    }

    @Test
    void proofIsBoundToEndNoncesAndSecret() {
        Secret secret = of(TEXT);
        byte[] proof = proof(secret);
        assertTrue(secret.isProof(proof, false, SERVER_NONCE, CLIENT_NONCE));
        assertFalse(secret.isProof(proof, true, SERVER_NONCE, CLIENT_NONCE));
        assertFalse(secret.isProof(proof, false, CLIENT_NONCE, SERVER_NONCE));
        assertFalse(secret.isProof(proof, false, SERVER_NONCE, SERVER_NONCE));
        assertFalse(of(TEXT + "g").isProof(proof, false, SERVER_NONCE, CLIENT_NONCE));
        assertFalse(secret.isProof(Arrays.copyOf(proof, 31), false, SERVER_NONCE, CLIENT_NONCE));
    }

    @Test
    void rejectsProofWithAnyChangedByte() {
        Secret secret = of(TEXT);
        byte[] proof = proof(secret);
        for (int i = 0; i < proof.length; i++) {
            byte[] changed = proof.clone();
            changed[i] ^= 1;
            assertFalse(secret.isProof(changed, false, SERVER_NONCE, CLIENT_NONCE), "byte " + i);
        }
    }

    @Test
    void opensFramesOnceInOrderAtOtherEndOnly() throws IOException {
        Secret secret = of(TEXT);
        Seal server = secret.seal(true, SERVER_NONCE, CLIENT_NONCE);
        Seal client = secret.seal(false, SERVER_NONCE, CLIENT_NONCE);
        byte[] plain = "the same frame".getBytes(StandardCharsets.UTF_8);
        byte[] first = client.seal(plain);
        byte[] second = client.seal(plain);
        assertEquals(plain.length + Seal.OVERHEAD, first.length);
        assertNotEquals(HexFormat.of().formatHex(first), HexFormat.of().formatHex(second));
        assertArrayEquals(plain, server.open(first));
        assertThrows(IOException.class, () -> server.open(first), "a frame was repeated");
        // The refused frame has advanced the number of received frames, so each case needs a new seal.
        Seal other = secret.seal(true, SERVER_NONCE, CLIENT_NONCE);
        assertThrows(IOException.class, () -> other.open(second), "a frame was dropped");
        Seal third = secret.seal(true, SERVER_NONCE, CLIENT_NONCE);
        assertThrows(IOException.class, () -> third.open(third.seal(plain)), "a frame was reflected");
        for (int bit : new int[] {0, 8 * plain.length, 8 * first.length - 1}) {
            byte[] changed = first.clone();
            changed[bit / 8] ^= (byte) (1 << bit % 8);
            Seal fresh = secret.seal(true, SERVER_NONCE, CLIENT_NONCE);
            assertThrows(IOException.class, () -> fresh.open(changed));
        }
        Seal next = secret.seal(true, CLIENT_NONCE, CLIENT_NONCE);
        assertThrows(IOException.class, () -> next.open(first), "a frame of another connection");
    }

    @Test
    void sealsFramesInBothDirections() throws IOException {
        Secret secret = of(TEXT);
        Seal server = secret.seal(true, SERVER_NONCE, CLIENT_NONCE);
        Seal client = secret.seal(false, SERVER_NONCE, CLIENT_NONCE);
        for (byte i = 0; i < 3; i++) {
            byte[] plain = {i};
            assertArrayEquals(plain, server.open(client.seal(plain)));
            assertArrayEquals(plain, client.open(server.seal(plain)));
        }
    }

    /** Implementations other than Java's computed the expected values. They must not change: releases must stay compatible. */
    @Test
    void sealedFramesMatchReferenceValues() throws IOException {
        Seal client = of(TEXT).seal(false, SERVER_NONCE, CLIENT_NONCE);
        byte[] plain = "frame".getBytes(StandardCharsets.UTF_8);
        assertEquals(
                "db88b5411ce5f006c25bad37fac35eebc7f731f64f", HexFormat.of().formatHex(client.seal(plain)));
        assertEquals(
                "8d95da7b46909e7d341c6602ae1187d0b43da530a6", HexFormat.of().formatHex(client.seal(plain)));
    }
}

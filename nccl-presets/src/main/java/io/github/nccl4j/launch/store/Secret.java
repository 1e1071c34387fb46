package io.github.nccl4j.launch.store;

import io.github.nccl4j.library.SecretFile;
import io.github.nccl4j.library.SystemText;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.InvalidPathException;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.Map;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * The secret that the ranks of a job share. It is never sent: each end proves its knowledge by HMAC-SHA256 over fresh nonces
 * of both ends. The keys of the {@link Seal} are derived in the same way. Thread-safe.
 */
public final class Secret {
    /** Minimum length: a shorter secret can be guessed offline from an observed proof. */
    static final int MIN_BYTES = 16;

    static final String VARIABLE = "NCCL4J_STORE_SECRET";
    static final String FILE_VARIABLE = "NCCL4J_STORE_SECRET_FILE";

    private static final String ALGORITHM = "HmacSHA256";
    private static final int KEY_BYTES = 16;

    private final Mac mac;

    public Secret(byte[] bytes, String name) {
        if (bytes.length < MIN_BYTES) {
            throw new IllegalArgumentException(
                    name + " must have at least " + MIN_BYTES + " bytes: it has " + bytes.length);
        }
        try {
            mac = Mac.getInstance(ALGORITHM);
            mac.init(new SecretKeySpec(bytes, ALGORITHM));
        } catch (GeneralSecurityException missing) {
            throw new IllegalStateException("this Java has no " + ALGORITHM, missing);
        }
    }

    /** Returns the secret that the environment sets; null if there is none. */
    public static Secret of(Map<String, String> environment) {
        String text = environment.getOrDefault(VARIABLE, "");
        String file = environment.getOrDefault(FILE_VARIABLE, "");
        if (!text.isEmpty() && !file.isEmpty()) {
            throw new IllegalArgumentException(VARIABLE + " and " + FILE_VARIABLE + " must not both be set");
        }
        if (!text.isEmpty()) {
            return new Secret(text.getBytes(StandardCharsets.UTF_8), VARIABLE);
        }
        return file.isEmpty() ? null : new Secret(read(file), file + " (" + FILE_VARIABLE + ")");
    }

    private static byte[] read(String file) {
        try {
            return SecretFile.read(SystemText.path(file));
        } catch (IOException | InvalidPathException unreadable) {
            throw new IllegalArgumentException(FILE_VARIABLE + " can't be read: " + unreadable, unreadable);
        }
    }

    /** The proof of one end that it knows the secret. */
    byte[] proof(boolean ofServer, byte[] serverNonce, byte[] clientNonce) {
        return derive(ofServer ? "server proves" : "client proves", serverNonce, clientNonce);
    }

    boolean isProof(byte[] given, boolean ofServer, byte[] serverNonce, byte[] clientNonce) {
        return MessageDigest.isEqual(given, proof(ofServer, serverNonce, clientNonce));
    }

    Seal seal(boolean ofServer, byte[] serverNonce, byte[] clientNonce) {
        byte[] toServer = Arrays.copyOf(derive("key to server", serverNonce, clientNonce), KEY_BYTES);
        byte[] toClient = Arrays.copyOf(derive("key to client", serverNonce, clientNonce), KEY_BYTES);
        return ofServer ? new Seal(toClient, toServer) : new Seal(toServer, toClient);
    }

    /** The labels prevent that a proof is reflected to its sender or that a value serves two purposes. */
    private synchronized byte[] derive(String label, byte[] serverNonce, byte[] clientNonce) {
        mac.update(("nccl4j store 1, " + label + "\0").getBytes(StandardCharsets.UTF_8));
        mac.update(serverNonce);
        return mac.doFinal(clientNonce);
    }
}

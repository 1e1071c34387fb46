package io.github.nccl4j.launch.store;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;

/**
 * Encryption and authentication of the frames of one connection, with AES-GCM. Each direction has its own key, and the number
 * of a frame is its nonce: without the secret, frames can't be read, changed, repeated, dropped, reordered or reflected.
 * Not thread-safe.
 */
final class Seal {
    /** Bytes that sealing adds to a frame: the tag. */
    static final int OVERHEAD = 16;

    private static final int TAG_BITS = 8 * OVERHEAD;
    private static final int NONCE_BYTES = 12;

    /** Limit per key, far below that of NIST SP 800-38D for deterministic nonces. */
    private static final long MAX_FRAMES = 1L << 32;

    private final Cipher cipher;
    private final SecretKeySpec sending;
    private final SecretKeySpec receiving;
    private long sent;
    private long received;

    Seal(byte[] sending, byte[] receiving) {
        try {
            cipher = Cipher.getInstance("AES/GCM/NoPadding");
        } catch (GeneralSecurityException missing) {
            throw new IllegalStateException("this Java has no AES-GCM", missing);
        }
        this.sending = new SecretKeySpec(sending, "AES");
        this.receiving = new SecretKeySpec(receiving, "AES");
    }

    byte[] seal(byte[] plain) throws IOException {
        return run(Cipher.ENCRYPT_MODE, sending, sent++, plain);
    }

    byte[] open(byte[] sealed) throws IOException {
        return run(Cipher.DECRYPT_MODE, receiving, received++, sealed);
    }

    private byte[] run(int mode, SecretKeySpec key, long number, byte[] input) throws IOException {
        if (number >= MAX_FRAMES) {
            throw new IOException(
                    "a connection must carry <= " + MAX_FRAMES + " frames each way: " + number + " were carried");
        }
        try {
            byte[] nonce = ByteBuffer.allocate(NONCE_BYTES)
                    .putLong(NONCE_BYTES - Long.BYTES, number)
                    .array();
            cipher.init(mode, key, new GCMParameterSpec(TAG_BITS, nonce));
            return cipher.doFinal(input);
        } catch (GeneralSecurityException forged) {
            throw new IOException("a frame failed authentication", forged);
        }
    }
}

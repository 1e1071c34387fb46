package io.github.nccl4j.launch;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;

/**
 * Encrypts and authenticates the frames of one connection, with AES-GCM. Each direction has a key of its own, and the number
 * of a frame is its nonce, so that none can be read, changed, repeated, left out or sent back by who does not know the
 * secret.
 */
final class Seal {
    /** How much longer a frame becomes. */
    static final int OVERHEAD = 16;

    private static final int TAG_BITS = 8 * OVERHEAD;
    private static final int NONCE_BYTES = 12;
    /** With one key, by NIST SP 800-38D for nonces that are counted; far below. */
    private static final long MOST_FRAMES = 1L << 32;

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
        if (number >= MOST_FRAMES) {
            throw new IOException("this connection has carried " + number + " frames: open another");
        }
        try {
            byte[] nonce = ByteBuffer.allocate(NONCE_BYTES)
                    .putLong(NONCE_BYTES - Long.BYTES, number)
                    .array();
            cipher.init(mode, key, new GCMParameterSpec(TAG_BITS, nonce));
            return cipher.doFinal(input);
        } catch (GeneralSecurityException changed) {
            throw new IOException("a frame was not sealed by the other end", changed);
        }
    }
}

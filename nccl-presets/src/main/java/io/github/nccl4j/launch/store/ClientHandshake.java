package io.github.nccl4j.launch.store;

import io.github.nccl4j.launch.wire.Wire;
import java.io.IOException;
import java.nio.ByteBuffer;

/** The client's part of the handshake: checks the frames of the store, and creates the responses. Not thread-safe. */
final class ClientHandshake {
    private final Secret secret;
    private final String storeName;
    private final String client;
    private final byte[] nonce = new byte[Wire.NONCE_BYTES];
    private byte[] serverNonce;

    /**
     * Creates the handshake of one connection.
     *
     * @param secret the shared secret, or null
     * @param storeName names the store in messages
     * @param client names this end in messages
     */
    ClientHandshake(Secret secret, String storeName, String client) {
        this.secret = secret;
        this.storeName = storeName;
        this.client = client;
    }

    /** The store refuses this end, or this end refuses the store. */
    static final class RefusedException extends IOException {
        private static final long serialVersionUID = 1L;
        /**
         * True if another store, for this rank, may start at the same address later, or if a process that does not have the
         * secret may have refused.
         */
        private final boolean retryable;

        RefusedException(String reason, boolean retryable) {
            super(reason);
            this.retryable = retryable;
        }

        boolean isRetryable() {
            return retryable;
        }
    }

    /** The exception before the store has proven that it has the secret: it may be any process. */
    private RefusedException unproven(String reason) {
        return new RefusedException(reason, secret != null);
    }

    /** True after the greeting. */
    boolean hasBegun() {
        return serverNonce != null;
    }

    /** True if a greeting is that of a store of another version. */
    static boolean isOfAnotherVersion(ByteBuffer greeting) {
        return greeting.remaining() > Long.BYTES
                && greeting.getLong(0) == Wire.MAGIC
                && greeting.get(Long.BYTES) != Wire.VERSION;
    }

    /** In place of the hello to a store of another version; all versions understand it. */
    static byte[] introduction(int rank) {
        return new Wire.Frame()
                .number64(Wire.MAGIC)
                .number8(Wire.VERSION)
                .number32(rank)
                .text(Wire.RELEASE)
                .toBytes();
    }

    /** Checks the greeting and returns the hello. */
    byte[] hello(ByteBuffer greeting) throws IOException {
        if (greeting.getLong() != Wire.MAGIC) {
            throw new IOException("another service listens at this address");
        }
        byte version = greeting.get();
        if (version != Wire.VERSION) {
            throw unproven("versions of the store's protocol must be equal: " + storeName + " has " + version + ", "
                    + client + " has " + Wire.VERSION + " (nccl4j " + Wire.RELEASE + ")");
        }
        boolean serverHasSecret = greeting.get() == Wire.WITH_SECRET;
        byte[] received = new byte[Wire.NONCE_BYTES];
        greeting.get(received);
        if (serverHasSecret != (secret != null)) {
            throw unproven(storeName + " has " + (serverHasSecret ? "a" : "no") + " secret, and " + client + " has "
                    + (serverHasSecret ? "none" : "one") + ": set " + Secret.VARIABLE + " or " + Secret.FILE_VARIABLE
                    + " for all ranks or for none");
        }
        serverNonce = received;
        Wire.Frame hello = new Wire.Frame()
                .number64(Wire.MAGIC)
                .number8(Wire.VERSION)
                .number8(serverHasSecret ? Wire.WITH_SECRET : Wire.WITHOUT_SECRET);
        if (serverHasSecret) {
            ServerConnection.Random.SOURCE.nextBytes(nonce);
        }
        hello.raw(nonce);
        if (serverHasSecret) {
            hello.raw(secret.proof(false, serverNonce, nonce));
        }
        return hello.toBytes();
    }

    /** Checks the proof of the store and returns the seal of all further frames; null without a secret. */
    Seal verify(ByteBuffer frame) throws IOException {
        byte status = frame.get();
        if (status != Wire.OK) {
            throw unproven(Wire.text(frame));
        }
        byte[] proof = new byte[Wire.PROOF_BYTES];
        frame.get(proof);
        if (secret != null && !secret.isProof(proof, true, serverNonce, nonce)) {
            throw unproven("the store does not prove that it has the secret of " + client);
        }
        return secret == null ? null : secret.seal(false, serverNonce, nonce);
    }

    /** Throws if the response to a join, or to an observer, is a refusal. */
    static void throwIfRefused(ByteBuffer frame) throws IOException {
        byte status = frame.get();
        if (status != Wire.OK) {
            throw new RefusedException(Wire.text(frame), status == Wire.ANOTHER_JOB);
        }
    }
}

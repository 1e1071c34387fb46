package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.library.NcclLibraryException;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.HexFormat;

/**
 * Names a communicator that is to be created: one rank makes it, and hands its bytes to the others in any way it likes.
 *
 * <pre>{@code
 * byte[] bytes = rank == 0 ? UniqueId.create().toBytes() : receiveFromRank0();
 * UniqueId id = UniqueId.of(bytes);
 * }</pre>
 *
 * <p>Who knows the bytes can take part in the communicator, so they are shown nowhere: {@link #toString} gives a
 * fingerprint. An id serves one communicator only.
 *
 * <p>Instances are immutable, and equal if their bytes are.
 */
public final class UniqueId {
    /** The length of an id, in bytes. */
    public static final int BYTES = nccl.NCCL_UNIQUE_ID_BYTES;

    private final byte[] bytes;

    private UniqueId(byte[] bytes) {
        this.bytes = bytes;
    }

    /**
     * Makes a new id. Not collective: one rank calls it. NCCL then waits in this process for the other ranks, on a port
     * of its own, so the process must live until the communicator exists.
     *
     * @return the id
     * @throws NcclLibraryException if no library can be loaded
     * @throws NcclResultException if NCCL fails, for example for want of a network interface
     * @see <a href="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api/comms.html">ncclGetUniqueId</a>
     */
    public static UniqueId create() {
        // The first call of NCCL may be this one, and a setting may ask for its log.
        NcclLibrary.get();
        try (NativeMemory id = new NativeMemory(BYTES)) {
            Status.check(nccl.ncclGetUniqueId(id.address()), "ncclGetUniqueId");
            byte[] bytes = new byte[BYTES];
            id.buffer().get(bytes);
            return new UniqueId(bytes);
        }
    }

    /**
     * The id that another rank made.
     *
     * @param bytes what {@link #toBytes} gave there; copied
     * @return the id
     * @throws IllegalArgumentException if these are not {@value #BYTES} bytes
     */
    public static UniqueId of(byte[] bytes) {
        if (bytes.length != BYTES) {
            throw new IllegalArgumentException("a unique id has " + BYTES + " bytes, not " + bytes.length);
        }
        return new UniqueId(bytes.clone());
    }

    /**
     * The bytes, to be handed to the other ranks over a way that strangers cannot read.
     *
     * @return a new array of {@value #BYTES} bytes
     */
    public byte[] toBytes() {
        return bytes.clone();
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof UniqueId id && MessageDigest.isEqual(bytes, id.bytes);
    }

    @Override
    public int hashCode() {
        return Arrays.hashCode(bytes);
    }

    /** A fingerprint, the same for equal ids, from which the bytes cannot be found. */
    @Override
    public String toString() {
        return "UniqueId[" + fingerprint() + "]";
    }

    /** What is in {@link #toString}. */
    String fingerprint() {
        try {
            byte[] digest = MessageDigest.getInstance("SHA-256").digest(bytes);
            return HexFormat.of().formatHex(digest, 0, 4);
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every JDK has SHA-256", e);
        }
    }
}

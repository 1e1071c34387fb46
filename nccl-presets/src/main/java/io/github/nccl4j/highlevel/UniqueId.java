package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.internal.failure.Status;
import io.github.nccl4j.internal.memory.NativeMemory;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.zip.CRC32C;

/**
 * The id of a communicator that is to be created. One rank creates the id and passes its bytes to the other ranks by
 * any means.
 *
 * <pre>{@code
 * byte[] bytes = rank == 0 ? UniqueId.create().toBytes() : receiveFromRank0();
 * UniqueId id = UniqueId.of(bytes);
 * }</pre>
 *
 * <p>The bytes allow a process to join the communicator, so they are never shown: {@link #toString} returns a
 * fingerprint. An id is valid for one communicator.
 *
 * <p>Instances are immutable, and equal if their bytes are.
 *
 * @since 0.1
 */
public final class UniqueId {
    /** The length of an id, in bytes. */
    public static final int BYTES = nccl.NCCL_UNIQUE_ID_BYTES;

    private final byte[] bytes;

    private UniqueId(byte[] bytes) {
        this.bytes = bytes;
    }

    /**
     * Creates a new id. Not collective: one rank makes the call. NCCL then waits in this process for the other ranks,
     * on a port of its own; the process must live until the communicator exists.
     *
     * @return the id
     * @throws NcclLibraryException if no library can be loaded
     * @throws NcclResultException if NCCL fails, for example because there is no network interface
     * @throws IllegalArgumentException if NCCL4J_ENCRYPTION_KEY_FILE names no file with a key: see
     *     {@link NcclEncryption}
     * @see <a href="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api/comms.html">ncclGetUniqueId</a>
     */
    public static UniqueId create() {
        // May be the first use of NCCL, before which a setting may start its log.
        NcclLibrary.get();
        if (System.getenv(NcclEncryption.FILE_VARIABLE) != null) {
            NcclEncryption.enableFromEnvironment();
        }
        try (NativeMemory id = new NativeMemory(BYTES)) {
            Status.check(nccl.ncclGetUniqueId(id.address()), "ncclGetUniqueId");
            byte[] bytes = new byte[BYTES];
            id.buffer().get(bytes);
            return new UniqueId(bytes);
        }
    }

    /**
     * Returns the id that another rank created.
     *
     * @param bytes the result of {@link #toBytes} on that rank; copied
     * @return the id
     * @throws IllegalArgumentException if the length is not {@value #BYTES}
     */
    public static UniqueId of(byte[] bytes) {
        if (bytes.length != BYTES) {
            throw new IllegalArgumentException("a unique id has " + BYTES + " bytes, not " + bytes.length);
        }
        return new UniqueId(bytes.clone());
    }

    /**
     * Returns the bytes. Pass them to the other ranks by a channel that no other process can read.
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

    /** Returns a fingerprint, the same for equal ids. It reveals 32 bits of an id, which has 64 random bits or more. */
    @Override
    public String toString() {
        return "UniqueId[" + fingerprint() + "]";
    }

    /**
     * Returns the fingerprint of {@link #toString}. A checksum, because the first use of a digest loads Java's security
     * providers, which takes 30 ms of a start.
     */
    String fingerprint() {
        CRC32C checksum = new CRC32C();
        checksum.update(bytes);
        return HexFormat.of().toHexDigits((int) checksum.getValue());
    }
}

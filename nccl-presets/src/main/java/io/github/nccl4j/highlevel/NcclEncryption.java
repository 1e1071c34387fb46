package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.internal.binding.LibraryTexts;
import io.github.nccl4j.internal.failure.Status;
import io.github.nccl4j.internal.memory.Address;
import io.github.nccl4j.internal.memory.NativeMemory;
import io.github.nccl4j.library.NativeLibrary;
import io.github.nccl4j.library.SecretFile;
import io.github.nccl4j.library.StructInitializers;
import io.github.nccl4j.library.SystemText;
import io.github.nccl4j.nccl.ncclEncryptionConfig_t;
import java.io.IOException;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.Loader;

/**
 * Encrypts NCCL's own TCP connections with TLS 1.3 and a key that all processes of a job share.
 *
 * <pre>{@code
 * if (NcclEncryption.support() == NcclEncryption.Support.TLS) {
 *     NcclEncryption.enable(Path.of("/run/secrets/nccl.key")); // before the first unique id and communicator
 * }
 * }</pre>
 *
 * <p><b>Without code.</b> If the environment variable {@value #FILE_VARIABLE} names a file, {@link UniqueId#create} and
 * the first creation of a communicator call {@link #enable(Path)}, and throw its exceptions.
 *
 * <p><b>Scope.</b> NCCL encrypts the connections by which ranks find each other, and data on its own socket network.
 * NCCL does not encrypt data on InfiniBand and RoCE, NVLink, shared memory, and networks of plugins. The host engine
 * encrypts all connections between hosts. The program transfers the unique id; the store of
 * {@link io.github.nccl4j.launch.TcpStore} encrypts with a secret of its own.
 *
 * <p><b>Builds without TLS.</b> The host engine has TLS. NCCL has TLS only if it was built with OpenSSL 3. A build without TLS also accepts the
 * key, and fails at the first connection. Therefore {@link #enable(byte[])} reads the library's file, and refuses a
 * library that was built without TLS or whose file does not show it. NVIDIA's package nvidia-nccl-cu13 2.32.3 was
 * built without TLS.
 *
 * <p><b>The key.</b> A key has at least {@value #SHORTEST_KEY} bytes and no zero byte, since C reads it as a string.
 * No message, log or record of nccl4j contains the key. {@code enable} fills the arrays and the native memory with the
 * key with zeros before it returns, also when it throws. NCCL keeps a copy for the life of the process, the host engine a
 * SHA-256 digest.
 *
 * <p><b>Threads.</b> All methods may be called from any thread. A program must call {@code enable} once, before other
 * threads use NCCL.
 *
 * <p>Since NCCL 2.32.3.
 *
 * @see <a href="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api/comms.html">ncclSetEncryption</a>
 * @since 0.1
 */
@Incubating
public final class NcclEncryption {
    /** The length of the shortest key, in bytes. */
    public static final int SHORTEST_KEY = 32;

    /** The environment variable with the path of a file that has the key. */
    static final String FILE_VARIABLE = "NCCL4J_ENCRYPTION_KEY_FILE";

    private static final String FUNCTION = "ncclSetEncryption";

    /** Part of messages that only a build without TLS contains. */
    private static final String WITHOUT_TLS = "without TLS support";

    /** The library that a build with TLS opens at the first connection. */
    private static final String WITH_TLS = "libssl.so";

    /** The functions that start networking; NCCL reads the key only then. */
    private static final List<String> FIRST_CALLS = List.of(
            "ncclGetUniqueId",
            "ncclCommInitRank",
            "ncclCommInitRankConfig",
            "ncclCommInitRankScalable",
            "ncclCommInitAll");

    private static boolean enabled;

    /** States of a library's support for encryption. */
    public enum Support {
        /** The library was built with TLS. */
        TLS,

        /** The library accepts a key, but was built without TLS. */
        BUILT_WITHOUT_TLS,

        /** The library accepts a key; its file does not show whether it was built with TLS. */
        UNKNOWN,

        /** The library lacks ncclSetEncryption, which NCCL 2.32.3 added. */
        NO_FUNCTION
    }

    private NcclEncryption() {}

    /**
     * Returns the support of this process's library for encryption. Loads the library and reads about a megabyte of its
     * file. Calls no function of NCCL for encryption.
     *
     * @return the state of the support
     * @throws NcclLibraryException if no library can be loaded
     */
    public static Support support() {
        NcclLibrary library = NcclLibrary.get();
        if (!library.provides(FUNCTION)) {
            return Support.NO_FUNCTION;
        }
        if (library.flavor() == NcclLibrary.Flavor.HOST) {
            return Support.TLS;
        }
        try {
            return LibraryTexts.of(library.path()).map(NcclEncryption::shownBy).orElse(Support.UNKNOWN);
        } catch (IOException unreadable) {
            // The file may have been removed after it was loaded.
            return Support.UNKNOWN;
        }
    }

    private static Support shownBy(LibraryTexts texts) {
        if (texts.contain(WITHOUT_TLS)) {
            return Support.BUILT_WITHOUT_TLS;
        }
        return texts.contain(WITH_TLS) ? Support.TLS : Support.UNKNOWN;
    }

    /**
     * Encrypts all future connections of this process. Not collective, but all processes of a job must pass the same
     * key: a connection between a process with a key and a process without a key fails.
     *
     * <p>NCCL loads OpenSSL 3 ({@code libssl.so.3}, {@code libcrypto.so.3}) at the first connection; without OpenSSL
     * 3, the creation of a communicator fails. The host engine loads OpenSSL 3 in this call, and fails here.
     *
     * <p>C function: {@code ncclSetEncryption}, since NCCL 2.32.3.
     *
     * @param key the key; filled with zeros, also if this method throws
     * @throws IllegalArgumentException if the key is shorter than {@value #SHORTEST_KEY} bytes, or has a zero byte
     * @throws IllegalStateException if the process has created a unique id or a communicator, or already has a key
     * @throws NcclLibraryException if the library lacks the function, was built without TLS, or does not show how it
     *     was built
     * @throws NcclResultException if NCCL refuses the key, or the host engine finds no OpenSSL 3
     */
    public static void enable(byte[] key) {
        Objects.requireNonNull(key, "key");
        try {
            check(key, "key");
            set(key);
        } finally {
            Arrays.fill(key, (byte) 0);
        }
    }

    /**
     * As {@link #enable(byte[])} with the bytes of a file, without trailing line ends. Does not change the file.
     *
     * @param file the file
     * @throws IllegalArgumentException also if other users can read or change the file: see {@link SecretFile#read}
     * @throws IOException if the file can't be read
     */
    public static void enable(Path file) throws IOException {
        byte[] key = SecretFile.read(file);
        try {
            check(key, "the key in " + file);
            set(key);
        } finally {
            Arrays.fill(key, (byte) 0);
        }
    }

    /** {@return true if this process has given NCCL a key} */
    public static boolean isEnabled() {
        synchronized (NcclEncryption.class) {
            return enabled;
        }
    }

    /** Sets the key of {@value #FILE_VARIABLE}, once. Comes before each unique id and communicator. */
    static void enableFromEnvironment() {
        String file = System.getenv(FILE_VARIABLE);
        if (file.isEmpty() || isEnabled()) {
            return;
        }
        try {
            synchronized (NcclEncryption.class) {
                // Another thread may have been faster.
                if (!enabled) {
                    enable(SystemText.path(file));
                }
            }
        } catch (IOException | InvalidPathException unreadable) {
            throw new IllegalArgumentException(FILE_VARIABLE + " can't be read: " + unreadable, unreadable);
        }
    }

    private static void check(byte[] key, String name) {
        if (key.length < SHORTEST_KEY) {
            throw new IllegalArgumentException(
                    name + " must have at least " + SHORTEST_KEY + " bytes: it has " + key.length);
        }
        for (int i = 0; i < key.length; i++) {
            if (key[i] == 0) {
                // NCCL would read only the bytes before the zero byte.
                throw new IllegalArgumentException(name + " must not have a zero byte: byte " + i + " is one");
            }
        }
    }

    private static void set(byte[] key) {
        synchronized (NcclEncryption.class) {
            if (enabled) {
                throw new IllegalStateException("this process has a key already, which can't be changed");
            }
            for (String function : FIRST_CALLS) {
                for (String name : List.of(function, "p" + function)) {
                    if (NativeLibrary.wasCalled(name)) {
                        throw new IllegalStateException(
                                "a key must be set before the first unique id and communicator: " + name
                                        + " was called");
                    }
                }
            }
            requireTls();
            Status.check(call(key), FUNCTION);
            enabled = true;
        }
    }

    private static void requireTls() {
        NcclLibrary library = NcclLibrary.get();
        library.require(FUNCTION);
        switch (support()) {
            case BUILT_WITHOUT_TLS ->
                throw new NcclLibraryException(library + " can't encrypt its connections: it was built without TLS."
                        + " NCCL's sources are built with it by make TLS_BACKEND=OPENSSL3");
            case UNKNOWN ->
                throw new NcclLibraryException("encryption was refused: " + library
                        + " takes a key, but does not show that it was built with TLS");
            default -> {}
        }
    }

    private static int call(byte[] key) {
        try (NativeMemory text = new NativeMemory(key.length + 1);
                NativeMemory memory = new NativeMemory(Loader.sizeof(ncclEncryptionConfig_t.class))) {
            try {
                text.buffer().put(0, key);
                StructInitializers.encryptionConfig(memory.address());
                ncclEncryptionConfig_t config = new ncclEncryptionConfig_t(new Address(memory.address()));
                config.mode(nccl.NCCL_ENCRYPTION_MODE_PSK);
                config.psk(new BytePointer(new Address(text.address())));
                return nccl.ncclSetEncryption(memory.address());
            } finally {
                text.clear();
            }
        }
    }
}

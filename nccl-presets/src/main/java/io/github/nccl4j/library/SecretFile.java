package io.github.nccl4j.library;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;

/**
 * Files with a secret, such as the one that {@code NCCL4J_STORE_SECRET_FILE} names. All methods may be called from any thread.
 *
 * @since 0.1
 */
public final class SecretFile {
    /** Permissions of other users to read or write: of the group and of all. */
    private static final int OF_OTHERS = 0066;

    /** A file of root may be readable for its group: Kubernetes gives a container without root its secrets in this way. */
    private static final int READ_BY_GROUP = 0040;

    private static final int PERMISSIONS = 0777;

    private SecretFile() {}

    /**
     * Reads a secret. Editors append a line end to a file, and tools that mount secrets do not: line ends at the end do not
     * belong to the secret.
     *
     * @param file the file
     * @return the secret
     * @throws IllegalArgumentException if other users can read or change the file: if its mode is not 600 or less, or 640 or less
     *     for a file of root
     * @throws IOException if the file can't be read
     */
    public static byte[] read(Path file) throws IOException {
        requirePrivate(file);
        byte[] bytes = Files.readAllBytes(file);
        int length = bytes.length;
        while (length > 0 && (bytes[length - 1] == '\n' || bytes[length - 1] == '\r')) {
            length--;
        }
        byte[] secret = Arrays.copyOf(bytes, length);
        Arrays.fill(bytes, (byte) 0);
        return secret;
    }

    private static void requirePrivate(Path file) throws IOException {
        Map<String, Object> attributes;
        try {
            attributes = Files.readAttributes(file, "unix:mode,uid");
        } catch (UnsupportedOperationException noModes) {
            return;
        }
        int mode = (Integer) attributes.get("mode") & PERMISSIONS;
        boolean isOfRoot = (Integer) attributes.get("uid") == 0;
        if ((mode & OF_OTHERS & ~(isOfRoot ? READ_BY_GROUP : 0)) != 0) {
            throw new IllegalArgumentException("a file with a secret must have mode 600 or less"
                    + (isOfRoot ? ", or 640 for root" : "") + ", so that other users can't read it: " + file
                    + " has mode "
                    + Integer.toOctalString(mode));
        }
    }
}

package io.github.nccl4j.internal.log;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** The name of this host. */
public final class HostName {
    private static final Path FILE = Path.of("/proc/sys/kernel/hostname");

    private HostName() {}

    /** Reads the kernel's name of the host: InetAddress would ask a name server, which can be slow. */
    public static String get() {
        try {
            return Files.readString(FILE).strip();
        } catch (IOException nameless) {
            return "this host";
        }
    }
}

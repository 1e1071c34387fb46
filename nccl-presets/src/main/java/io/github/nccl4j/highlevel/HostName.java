package io.github.nccl4j.highlevel;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** The name of this host. */
final class HostName {
    private static final Path FILE = Path.of("/proc/sys/kernel/hostname");

    private HostName() {}

    /** Reads the kernel's name of the host: InetAddress would ask a name server, which can be slow. */
    static String get() {
        try {
            return Files.readString(FILE).strip();
        } catch (IOException nameless) {
            return "this host";
        }
    }
}

package io.github.nccl4j.header;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** The headers of nccl4j's bindings. */
final class OurHeader {
    static final Path FILE = Path.of("../nccl-presets/src/main/native/include/nccl.h")
            .toAbsolutePath()
            .normalize();
    static final Path DEVICE = FILE.resolveSibling("nccl_device.h");
    static final Path SHIM =
            Path.of("../nccl-presets/src/main/native/shim").toAbsolutePath().normalize();

    private static HeaderCheck check;

    private OurHeader() {}

    /** Returns one check for all tests, which compiles our headers once. */
    static synchronized HeaderCheck check() throws IOException {
        if (check == null) {
            check = check("g++");
        }
        return check;
    }

    static HeaderCheck check(String compiler) throws IOException {
        return new HeaderCheck(FILE, SHIM, compiler);
    }

    static String text() throws IOException {
        return Files.readString(FILE);
    }

    /** The header with {@code old} replaced; throws unless it occurs exactly once. */
    static String with(String old, String replacement) throws IOException {
        String text = text();
        int at = text.indexOf(old);
        if (at < 0 || text.indexOf(old, at + 1) >= 0) {
            throw new IllegalArgumentException("must occur exactly once in the header: " + old);
        }
        return text.replace(old, replacement);
    }
}

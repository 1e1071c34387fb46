package io.github.nccl4j.tools.ras;

import io.github.nccl4j.tools.support.LibraryCopies;
import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.OptionalInt;
import java.util.Set;
import java.util.stream.Stream;

/** Finds, in {@code /proc}, the release of NCCL of the processes of this machine that listen at a port. */
final class ServiceProcess {
    /** The text before the release in the library's own message. */
    private static final byte[] BANNER = "NCCL version ".getBytes(StandardCharsets.US_ASCII);

    /** The state "listening" in /proc/net/tcp. */
    private static final String LISTENING = "0A";

    private static final int HEX = 16;

    private final Path proc;

    ServiceProcess(Path proc) {
        this.proc = proc;
    }

    /** The oldest release of the processes that listen at a port; empty if one of them can't be looked at, or none listens. */
    OptionalInt release(int port) {
        Set<String> sockets = listening(port);
        int oldest = Integer.MAX_VALUE;
        Set<String> found = new HashSet<>();
        try (DirectoryStream<Path> processes = Files.newDirectoryStream(proc, "[0-9]*")) {
            for (Path process : processes) {
                Set<String> own = sockets(process);
                own.retainAll(sockets);
                if (!own.isEmpty()) {
                    found.addAll(own);
                    oldest = Math.min(oldest, releaseOf(process));
                }
            }
        } catch (IOException noProc) {
            return OptionalInt.empty();
        }
        return sockets.isEmpty() || !found.equals(sockets) || oldest == 0
                ? OptionalInt.empty()
                : OptionalInt.of(oldest);
    }

    /** The sockets that listen at a port, as links of file descriptors name them. */
    private Set<String> listening(int port) {
        Set<String> sockets = new HashSet<>();
        for (String table : new String[] {"net/tcp", "net/tcp6"}) {
            try (Stream<String> lines = Files.lines(proc.resolve(table))) {
                lines.map(line -> line.strip().split("\\s+")).forEach(fields -> {
                    // Number, local address, remote address, state, ..., inode.
                    if (fields.length > 9
                            && fields[3].equals(LISTENING)
                            && Integer.parseInt(fields[1].substring(fields[1].indexOf(':') + 1), HEX) == port) {
                        sockets.add("socket:[" + fields[9] + "]");
                    }
                });
            } catch (IOException noTable) {
                // A kernel without IPv6.
            }
        }
        return sockets;
    }

    private static Set<String> sockets(Path process) {
        Set<String> sockets = new HashSet<>();
        try (DirectoryStream<Path> descriptors = Files.newDirectoryStream(process.resolve("fd"))) {
            for (Path descriptor : descriptors) {
                sockets.add(target(descriptor));
            }
        } catch (IOException notReadable) {
            // A process of another user, or one that has just ended.
        }
        return sockets;
    }

    private static String target(Path descriptor) {
        try {
            return Files.readSymbolicLink(descriptor).toString();
        } catch (IOException closed) {
            return "";
        }
    }

    /** The oldest release among the copies of NCCL in a process; 0 if there is none that can be read. */
    private static int releaseOf(Path process) {
        int oldest = Integer.MAX_VALUE;
        try (Stream<String> maps = Files.lines(process.resolve("maps"))) {
            for (String copy : LibraryCopies.withHostEngine(maps)) {
                // The path as the process sees it.
                oldest = Math.min(oldest, releaseIn(process.resolve("root" + copy)));
            }
        } catch (IOException notReadable) {
            return 0;
        }
        return oldest == Integer.MAX_VALUE ? 0 : oldest;
    }

    /** The release that the file of a library contains, such as 22803; 0 if there is none. */
    static int releaseIn(Path library) throws IOException {
        try (InputStream in = new BufferedInputStream(Files.newInputStream(library), 1 << 16)) {
            int matched = 0;
            for (int next = in.read(); next >= 0; next = in.read()) {
                if (next == BANNER[matched]) {
                    matched++;
                    if (matched == BANNER.length) {
                        int release = parse(in);
                        if (release > 0) {
                            return release;
                        }
                        matched = 0;
                    }
                } else {
                    // No proper prefix of the banner is its suffix but "N".
                    matched = next == BANNER[0] ? 1 : 0;
                }
            }
        }
        return 0;
    }

    /** Reads "2.28.3", and the character after it; returns 0 if something else is there. */
    private static int parse(InputStream in) throws IOException {
        int release = 0;
        int number = 0;
        int digits = 0;
        int dots = 0;
        while (true) {
            int next = in.read();
            if (next >= '0' && next <= '9' && digits < 2) {
                number = number * 10 + next - '0';
                digits++;
            } else if (digits == 0 || dots == 2 || next != '.') {
                return digits == 0 || dots < 2 ? 0 : release * 100 + number;
            } else {
                release = release * 100 + number;
                number = 0;
                digits = 0;
                dots++;
            }
        }
    }
}

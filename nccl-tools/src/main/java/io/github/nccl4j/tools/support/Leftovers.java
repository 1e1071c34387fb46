package io.github.nccl4j.tools.support;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Files and sockets of NCCL and of the host engine that could be left behind. */
public final class Leftovers {
    /** The index of the number in a line of /proc/net/unix. */
    private static final int INODE = 6;

    private Leftovers() {}

    /** Files of all processes, and sockets of this process and its children. A socket does not outlive its process. */
    public static Set<String> now() throws IOException {
        Set<String> found = new TreeSet<>();
        for (Path folder : List.of(Path.of(System.getProperty("java.io.tmpdir")), Path.of("/dev/shm"))) {
            try (Stream<Path> files = Files.list(folder)) {
                found.addAll(files.map(Path::toString)
                        .filter(name -> name.contains("nccl") && !name.contains("nccl4j-header"))
                        .collect(Collectors.toSet()));
            }
        }
        Set<String> own = ownSockets();
        Files.readAllLines(Path.of("/proc/net/unix")).stream()
                .filter(line -> line.contains("nccl") && own.contains(line.split(" +")[INODE]))
                .map(line -> line.substring(line.lastIndexOf(' ') + 1))
                .forEach(found::add);
        return found;
    }

    private static Set<String> ownSockets() throws IOException {
        Set<String> inodes = new TreeSet<>();
        List<ProcessHandle> processes = Stream.concat(
                        Stream.of(ProcessHandle.current()),
                        ProcessHandle.current().descendants())
                .toList();
        for (ProcessHandle process : processes) {
            try (Stream<Path> open = Files.list(Path.of("/proc/" + process.pid() + "/fd"))) {
                for (Path descriptor : open.toList()) {
                    String target = target(descriptor);
                    if (target.startsWith("socket:[")) {
                        inodes.add(target.substring("socket:[".length(), target.length() - 1));
                    }
                }
            } catch (NoSuchFileException ended) {
                continue;
            }
        }
        return inodes;
    }

    private static String target(Path descriptor) throws IOException {
        try {
            return Files.readSymbolicLink(descriptor).toString();
        } catch (NoSuchFileException closed) {
            return "";
        }
    }

    /** The files and sockets that did not exist before, and still exist after up to 10 seconds. */
    public static Set<String> since(Set<String> before) throws IOException, InterruptedException {
        Set<String> after = now();
        after.removeAll(before);
        // Files and sockets of other programs come and go.
        for (int i = 0; i < 20 && !after.isEmpty(); i++) {
            Thread.sleep(500);
            after.retainAll(now());
        }
        return after;
    }
}

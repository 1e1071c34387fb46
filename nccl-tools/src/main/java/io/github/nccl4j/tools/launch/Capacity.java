package io.github.nccl4j.tools.launch;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The number of processors and the free memory of a machine, which limit the number of ranks. Immutable.
 *
 * @param processors the number of processors that this process may use
 * @param memory the available memory in bytes, or empty if unknown
 */
public record Capacity(int processors, OptionalLong memory) {

    /** With more ranks than this per processor, starting them takes longer than the ranks wait for each other. */
    public static final int RANKS_PER_PROCESSOR = 64;

    /** Memory of a JVM with the host engine and small buffers, without the pages that all JVMs share. */
    public static final long BYTES_PER_PROCESS = 48L << 20;

    /** Reads {@code /proc} and {@code /sys} below {@code root}. */
    static Capacity of(Path root, int processors) {
        OptionalLong free = readNumber(root.resolve("proc/meminfo"), "(?s).*MemAvailable:\\s+(\\d+) kB.*");
        Path group = root.resolve("sys/fs/cgroup");
        OptionalLong limit = readNumber(group.resolve("memory.max"), "(\\d+)\\s*");
        OptionalLong used = readNumber(group.resolve("memory.current"), "(\\d+)\\s*");
        long least = free.isPresent() ? free.getAsLong() << 10 : Long.MAX_VALUE;
        if (limit.isPresent() && used.isPresent()) {
            least = Math.min(least, Math.max(0, limit.getAsLong() - used.getAsLong()));
        }
        return new Capacity(processors, least == Long.MAX_VALUE ? OptionalLong.empty() : OptionalLong.of(least));
    }

    /** {@return the capacity of the machine, or of the container, in which this process runs} */
    public static Capacity ofMachine() {
        return of(Path.of("/"), Runtime.getRuntime().availableProcessors());
    }

    private static OptionalLong readNumber(Path file, String pattern) {
        try {
            Matcher matcher = Pattern.compile(pattern).matcher(Files.readString(file));
            return matcher.matches() ? OptionalLong.of(Long.parseLong(matcher.group(1))) : OptionalLong.empty();
        } catch (IOException | NumberFormatException e) {
            return OptionalLong.empty();
        }
    }

    /**
     * Compares the needs of ranks with this capacity.
     *
     * @param processes the number of processes to start
     * @param ranksPerProcess the number of ranks of each process
     * @return a message that names the limit and both values if the ranks exceed the capacity, else empty
     */
    public Optional<String> shortage(int processes, int ranksPerProcess) {
        long ranks = (long) processes * ranksPerProcess;
        if (ranks > (long) processors * RANKS_PER_PROCESSOR) {
            return Optional.of("at most " + RANKS_PER_PROCESSOR + " ranks per processor are allowed: " + ranks
                    + " ranks, " + processors + (processors == 1 ? " processor" : " processors"));
        }
        long bytes = processes * BYTES_PER_PROCESS;
        if (memory.isPresent() && bytes > memory.getAsLong()) {
            return Optional.of(processes + " processes need about " + (bytes >> 20) + " MiB of memory, but only "
                    + (memory.getAsLong() >> 20) + " MiB are available");
        }
        return Optional.empty();
    }
}

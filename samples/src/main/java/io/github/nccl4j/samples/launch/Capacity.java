package io.github.nccl4j.samples.launch;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * How many ranks a machine has room for.
 *
 * @param processors the processors of this process
 * @param memory the bytes of memory that are available, or empty if they are not known
 */
public record Capacity(int processors, OptionalLong memory) {

    /** Above, starting the ranks takes longer than they wait for each other. */
    public static final int RANKS_PER_PROCESSOR = 64;

    /** Of a JVM with the host engine and small buffers, not counting the pages that all JVMs share; 41 to 48 MiB measured. */
    public static final long BYTES_PER_PROCESS = 48L << 20;

    /** The files that say so, by the root of the file system. */
    static Capacity of(Path root, int processors) {
        OptionalLong free = number(root.resolve("proc/meminfo"), "(?s).*MemAvailable:\\s+(\\d+) kB.*");
        Path group = root.resolve("sys/fs/cgroup");
        OptionalLong limit = number(group.resolve("memory.max"), "(\\d+)\\s*");
        OptionalLong used = number(group.resolve("memory.current"), "(\\d+)\\s*");
        long least = free.isPresent() ? free.getAsLong() << 10 : Long.MAX_VALUE;
        if (limit.isPresent() && used.isPresent()) {
            least = Math.min(least, Math.max(0, limit.getAsLong() - used.getAsLong()));
        }
        return new Capacity(processors, least == Long.MAX_VALUE ? OptionalLong.empty() : OptionalLong.of(least));
    }

    /** {@return that of the machine, or of the container, in which this process runs} */
    public static Capacity ofMachine() {
        return of(Path.of("/"), Runtime.getRuntime().availableProcessors());
    }

    private static OptionalLong number(Path file, String form) {
        try {
            Matcher matcher = Pattern.compile(form).matcher(Files.readString(file));
            return matcher.matches() ? OptionalLong.of(Long.parseLong(matcher.group(1))) : OptionalLong.empty();
        } catch (IOException | NumberFormatException unknown) {
            return OptionalLong.empty();
        }
    }

    /**
     * Compares what ranks need with what the machine has.
     *
     * @param processes the number of processes to start
     * @param ranksPerProcess the number of ranks in each
     * @return why they are too many, with both values; empty if they are not
     */
    public Optional<String> refuse(int processes, int ranksPerProcess) {
        long ranks = (long) processes * ranksPerProcess;
        if (ranks > (long) processors * RANKS_PER_PROCESSOR) {
            return Optional.of(ranks + " ranks are more than " + RANKS_PER_PROCESSOR + " for each of " + processors
                    + (processors == 1 ? " processor" : " processors"));
        }
        long bytes = processes * BYTES_PER_PROCESS;
        if (memory.isPresent() && bytes > memory.getAsLong()) {
            return Optional.of(processes + " processes need about " + (bytes >> 20) + " MiB of memory, and "
                    + (memory.getAsLong() >> 20) + " MiB are available");
        }
        return Optional.empty();
    }
}

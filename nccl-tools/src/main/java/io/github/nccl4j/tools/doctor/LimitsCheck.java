package io.github.nccl4j.tools.doctor;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Reports the size of {@code /dev/shm} and the limits of this process. */
final class LimitsCheck implements Check {
    private static final long ENOUGH_SHARED_MEMORY = 1L << 30;
    private static final long ENOUGH_FILES = 4096;
    private static final Pattern SIZE = Pattern.compile("(?:.*,)?size=(\\d+)([kmg]?)(?:,.*)?");

    private final Machine machine;

    LimitsCheck(Machine machine) {
        this.machine = machine;
    }

    @Override
    public String name() {
        return "limits";
    }

    @Override
    public List<Finding> run() {
        List<Finding> findings = new ArrayList<>();
        findings.add(sharedMemory());
        limit("Max open files").ifPresent(files -> findings.add(openFiles(files)));
        limit("Max locked memory")
                .ifPresent(bytes -> findings.add(Finding.ok(
                        "limits.memlock", "locked memory: " + (bytes == Long.MAX_VALUE ? "unlimited" : size(bytes)))));
        return findings;
    }

    private Finding sharedMemory() {
        List<String[]> mounts = machine.read("/proc/mounts")
                .orElse("")
                .lines()
                .map(line -> line.split(" "))
                .filter(mount -> mount.length > 3 && mount[1].equals("/dev/shm"))
                .toList();
        if (mounts.isEmpty()) {
            return Finding.problem(
                    "limits.shm",
                    "/dev/shm is not mounted",
                    "Ranks of one machine exchange data and handles there.",
                    "Mount a tmpfs at /dev/shm");
        }
        // The last mount hides earlier ones.
        String options = mounts.get(mounts.size() - 1)[3];
        if (options.equals("ro") || options.startsWith("ro,")) {
            return Finding.problem(
                    "limits.shm",
                    "/dev/shm is read-only",
                    "Ranks of one machine exchange data and handles there.",
                    "Mount /dev/shm writable");
        }
        OptionalLong bytes = size(options, machine.read("/proc/meminfo").orElse(""));
        if (bytes.isEmpty()) {
            return Finding.ok("limits.shm", "/dev/shm is mounted; its size is unknown");
        }
        String text = "/dev/shm has " + size(bytes.getAsLong());
        return bytes.getAsLong() >= ENOUGH_SHARED_MEMORY
                ? Finding.ok("limits.shm", text)
                : Finding.warning(
                        "limits.shm",
                        text,
                        "Eight ranks on one machine may need more; then NCCL fails with 'No space left on device'.",
                        "Start the container with --shm-size=1g or --ipc=host; in Kubernetes, mount an emptyDir with"
                                + " medium Memory at /dev/shm");
    }

    /** The size of a tmpfs by its mount options; the default is half of the memory. */
    private static OptionalLong size(String options, String meminfo) {
        Matcher size = SIZE.matcher(options);
        if (size.matches()) {
            int shift =
                    switch (size.group(2)) {
                        case "k" -> 10;
                        case "m" -> 20;
                        case "g" -> 30;
                        default -> 0;
                    };
            return OptionalLong.of(Long.parseLong(size.group(1)) << shift);
        }
        Matcher total = Pattern.compile("MemTotal:\\s+(\\d+) kB").matcher(meminfo);
        return total.find() ? OptionalLong.of(Long.parseLong(total.group(1)) * 512) : OptionalLong.empty();
    }

    private Finding openFiles(long files) {
        String text = "open files: " + (files == Long.MAX_VALUE ? "unlimited" : Long.toString(files));
        return files >= ENOUGH_FILES
                ? Finding.ok("limits.files", text)
                : Finding.warning(
                        "limits.files",
                        text,
                        "NCCL opens several files per peer and channel; hundreds of ranks need thousands.",
                        "ulimit -n 65536");
    }

    /** The soft limit; Long.MAX_VALUE if it is unlimited, empty if it is unknown. */
    private Optional<Long> limit(String name) {
        return machine.read("/proc/self/limits")
                .orElse("")
                .lines()
                .filter(line -> line.startsWith(name))
                .map(line -> line.substring(name.length()).strip().split("\\s+")[0])
                .map(value -> value.equals("unlimited") ? Long.MAX_VALUE : Long.parseLong(value))
                .findFirst();
    }

    private static String size(long bytes) {
        String[] units = {"bytes", "KiB", "MiB", "GiB", "TiB"};
        int unit = 0;
        double size = bytes;
        while (size >= 1024 && unit < units.length - 1) {
            size /= 1024;
            unit++;
        }
        return (size == Math.rint(size) ? Long.toString((long) size) : String.format(Locale.ROOT, "%.1f", size)) + " "
                + units[unit];
    }
}

package io.github.nccl4j.tests;

import io.github.nccl4j.highlevel.HeldMemory;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryUsage;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.management.JMException;
import javax.management.ObjectName;
import org.bytedeco.javacpp.Pointer;

/**
 * What this process holds while nothing goes on in it. Memory is told apart by who would have to free it, since the resident
 * memory of a JVM grows for long without a leak: methods are compiled, and malloc keeps what threads have freed for threads
 * that come later.
 *
 * @param files open ones
 * @param threads of Java and of others
 * @param mappings of memory that the host engine's ranks share
 * @param pointers bytes of JavaCPP's pointers
 * @param own bytes that the highlevel package has allocated for itself
 * @param heap bytes of Java objects that can be reached
 * @param code bytes of compiled code and of classes
 * @param memory resident bytes of all other memory, without those that malloc gives back when it is told to
 * @param resident all resident bytes, before malloc was told to
 */
public record Held(
        long files,
        long threads,
        long mappings,
        long pointers,
        long own,
        long heap,
        long code,
        long memory,
        long resident) {
    /** For a JVM whose memory is to be told apart: all of its heap is resident from its start on. */
    public static final List<String> FIXED_HEAP =
            List.of("-Xms128m", "-Xmx128m", "-XX:+AlwaysPreTouch", "-XX:SoftRefLRUPolicyMSPerMB=0");

    /** Its MALLOC_ARENA_MAX: of several arenas malloc cannot give back all that is free. */
    public static final String ARENAS = "1";

    /** Compilers have more or fewer threads, as there is to do. */
    private static final long MORE_THREADS = 2;

    private static final long MORE_POINTERS = 1024;
    private static final long MORE_HEAP = 1 << 20;
    private static final long MORE_CODE = 8 << 20;
    private static final long MORE_MEMORY = 4 << 20;

    public static Held now() throws InterruptedException {
        MemoryUsage heap = null;
        long resident = 0;
        // Twice: native memory of dropped pointers goes by way of a queue, and looking takes memory when it is done
        // first.
        for (int i = 0; i < 2; i++) {
            System.gc();
            Thread.sleep(100);
            heap = ManagementFactory.getMemoryMXBean().getHeapMemoryUsage();
            resident = residentBytes();
            giveBackFreeMemory();
        }
        long code = ManagementFactory.getMemoryMXBean().getNonHeapMemoryUsage().getUsed();
        return new Held(
                entries("/proc/self/fd"),
                entries("/proc/self/task"),
                lines("/proc/self/maps")
                        .filter(line -> line.contains("/memfd:nccl4j"))
                        .count(),
                Pointer.totalBytes(),
                HeldMemory.bytes(),
                heap.getUsed(),
                code,
                residentBytes() - heap.getCommitted() - code,
                resident);
    }

    /** As {@link #toLine} wrote it. */
    public static Held ofLine(String line) {
        return of(Stream.of(line.split(" ")).map(Long::parseLong).toList());
    }

    /** For another process. */
    public String toLine() {
        return numbers().stream().map(String::valueOf).collect(Collectors.joining(" "));
    }

    private static Held of(List<Long> numbers) {
        if (numbers.size() != 9) {
            throw new IllegalArgumentException("expected 9 numbers: " + numbers);
        }
        return new Held(
                numbers.get(0),
                numbers.get(1),
                numbers.get(2),
                numbers.get(3),
                numbers.get(4),
                numbers.get(5),
                numbers.get(6),
                numbers.get(7),
                numbers.get(8));
    }

    private List<Long> numbers() {
        return List.of(files, threads, mappings, pointers, own, heap, code, memory, resident);
    }

    /** What there is more than before; less than 0 where there is less. */
    public Held since(Held before) {
        List<Long> more = new ArrayList<>();
        for (int i = 0; i < numbers().size(); i++) {
            more.add(numbers().get(i) - before.numbers().get(i));
        }
        return of(more);
    }

    /** Of what there is so much more than before that it must be a leak. */
    public List<String> grownSince(Held before) {
        Held more = since(before);
        List<String> grown = new ArrayList<>();
        add(grown, more.files, 0, "files");
        add(grown, more.threads, MORE_THREADS, "threads");
        add(grown, more.mappings, 0, "mappings");
        add(grown, more.pointers, MORE_POINTERS, "bytes of pointers");
        add(grown, more.own, 0, "bytes of the highlevel package");
        add(grown, more.heap, MORE_HEAP, "bytes of objects");
        add(grown, more.code, MORE_CODE, "bytes of code and classes");
        add(grown, more.memory, MORE_MEMORY, "bytes of other memory");
        return grown;
    }

    private static void add(List<String> grown, long more, long tolerance, String what) {
        if (more > tolerance) {
            grown.add(more + " " + what);
        }
    }

    @Override
    public String toString() {
        return String.format(
                Locale.ROOT,
                "%d files, %d threads, %d mappings; KiB: %d pointers, %d highlevel, %d objects, %d code and classes, "
                        + "%d other memory; %d resident",
                files,
                threads,
                mappings,
                pointers >> 10,
                own >> 10,
                heap >> 10,
                code >> 10,
                memory >> 10,
                resident >> 10);
    }

    /** Has malloc return the pages that hold nothing. A JVM of before 17.0.9 cannot; then less is told apart. */
    private static void giveBackFreeMemory() {
        try {
            var server = ManagementFactory.getPlatformMBeanServer();
            var commands = new ObjectName("com.sun.management:type=DiagnosticCommand");
            String trim = "systemTrimNativeHeap";
            if (Stream.of(server.getMBeanInfo(commands).getOperations())
                    .anyMatch(operation -> operation.getName().equals(trim))) {
                server.invoke(commands, trim, new Object[0], new String[0]);
            }
        } catch (JMException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Without those of files, which can be read again. */
    private static long residentBytes() {
        return lines("/proc/self/status")
                .filter(line -> line.startsWith("RssAnon:") || line.startsWith("RssShmem:"))
                .mapToLong(line -> Long.parseLong(line.replaceAll("[^0-9]", "")) << 10)
                .sum();
    }

    private static Stream<String> lines(String file) {
        try {
            return Files.readAllLines(Path.of(file)).stream();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static long entries(String folder) {
        try (Stream<Path> all = Files.list(Path.of(folder))) {
            return all.count();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}

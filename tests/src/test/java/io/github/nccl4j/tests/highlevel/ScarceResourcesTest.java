package io.github.nccl4j.tests.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.NcclTimeoutException;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.highlevel.UniqueId;
import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.TcpStore;
import io.github.nccl4j.launch.TcpStoreServer;
import io.github.nccl4j.tests.ChildJvm;
import io.github.nccl4j.tests.Cxx;
import io.github.nccl4j.tools.support.Checks;
import io.github.nccl4j.tools.support.Threads;
import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A process that has no thread or no memory for a time: its deadlines hold, and its threads serve afterwards. */
@Timeout(300)
class ScarceResourcesTest {
    private static final Duration DEADLINE = Duration.ofSeconds(2);
    private static final Duration LIMIT = Duration.ofSeconds(60);
    private static final Checks CHECKS = new Checks();
    private static final CudaStream STREAM = CudaStream.defaultOf(Device.host());

    /** While a file exists, the process gets no thread. */
    private static final String NO_THREADS = """
            #include <cerrno>
            #include <cstdlib>
            #include <dlfcn.h>
            #include <pthread.h>
            #include <unistd.h>
            extern "C" int pthread_create(
                    pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*), void* argument) {
                using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
                static const auto create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
                const char* file = std::getenv("NO_THREADS");
                return file != nullptr && access(file, F_OK) == 0 ? EAGAIN : create(thread, attributes, body, argument);
            }
            """;

    @TempDir
    Path folder;

    private static List<Communicator> pair() throws Exception {
        UniqueId id = UniqueId.create();
        return Threads.together(List.<Callable<Communicator>>of(() -> create(id, 0, 2), () -> create(id, 1, 2)), LIMIT);
    }

    private static Communicator create(UniqueId id, int rank, int size) {
        return Communicator.builder().device(Device.host()).deadline(DEADLINE).create(id, rank, size);
    }

    /** The second rank does not call. */
    private static void requireDeadline(List<Communicator> pair, DeviceBuffer<Int32> numbers) {
        long start = System.nanoTime();
        CHECKS.fails(
                NcclTimeoutException.class,
                () -> pair.get(0).allReduce(numbers, ReduceOp.SUM, STREAM),
                "Timed out after " + DEADLINE.toSeconds() + " s in ncclAllReduce");
        Duration took = Duration.ofNanos(System.nanoTime() - start);
        CHECKS.isTrue(took.compareTo(DEADLINE.multipliedBy(5)) < 0, "the call took " + took);
        pair.forEach(Communicator::abort);
    }

    private static void requireUsable(List<Communicator> pair) throws Exception {
        Threads.together(
                        pair.stream()
                                .<Callable<Integer>>map(one -> () -> sum(one))
                                .toList(),
                        LIMIT)
                .forEach(sum -> CHECKS.equal(2, sum, "the sum"));
        pair.forEach(Communicator::abort);
    }

    private static int sum(Communicator communicator) {
        try (DeviceBuffer<Int32> one = Device.host().allocate(ElementType.INT32, 1)) {
            one.fill(1);
            communicator.allReduce(one, ReduceOp.SUM, STREAM);
            int[] sum = new int[1];
            one.copyTo(sum);
            return sum[0];
        }
    }

    private static void run(ChildJvm jvm, Class<?> main) {
        ChildJvm.Outcome outcome =
                jvm.property("nccl4j.engine", "host").limit(LIMIT).run(main);
        assertEquals(0, outcome.exitCode(), outcome.output());
        assertTrue(outcome.output().contains("serves again"), outcome.output());
    }

    /** Has no thread for its watchdog to handle a failure, and to abort and create communicators. */
    static final class WithoutThreads {
        private WithoutThreads() {}

        public static void main(String[] args) throws Exception {
            List<Communicator> pair = pair();
            DeviceBuffer<Int32> numbers = Device.host().allocate(ElementType.INT32, 1);
            UniqueId next = UniqueId.create();
            Path file = Files.createFile(Path.of(System.getenv("NO_THREADS")));
            requireDeadline(pair, numbers);
            CHECKS.fails(
                    IllegalStateException.class,
                    () -> create(next, 0, 1),
                    "the thread 'nccl4j ncclCommInitRank' cannot be started: unable to create native thread",
                    "ulimit -u");
            Files.delete(file);
            requireUsable(pair());
            System.out.println("serves again");
        }
    }

    @Test
    void deadlineHoldsWithoutThreads() throws Exception {
        Path library = Cxx.library(folder, "nothreads", NO_THREADS, "-ldl");
        run(
                new ChildJvm()
                        .environment("LD_PRELOAD", library.toString())
                        .environment("NO_THREADS", folder.resolve("now").toString()),
                WithoutThreads.class);
    }

    /** Fills its heap while a store and communicators are open. */
    static final class WithoutMemory {
        private static final long SECONDS = 2;

        private WithoutMemory() {}

        private record Filling(Filling other, byte[] bytes) {}

        public static void main(String[] args) throws Exception {
            try (TcpStoreServer server = TcpStoreServer.start(InetAddress.getLoopbackAddress(), 0);
                    TcpStore open = open(server, "first")) {
                List<Communicator> pair = pair();
                DeviceBuffer<Int32> numbers = Device.host().allocate(ElementType.INT32, 1);
                fill();
                requireDeadline(pair, numbers);
                requireUsable(pair());
                // Its connection may have ended, but not the threads of the store.
                CHECKS.equal(1, open.size(), "the ranks of the store");
                try (TcpStore next = open(server, "second")) {
                    next.set("key", new byte[] {7});
                    CHECKS.equal(7, (int) next.get("key", DEADLINE)[0], "the value");
                }
            }
            System.out.println("serves again");
        }

        private static TcpStore open(TcpStoreServer server, String job) {
            return TcpStore.builder()
                    .withoutSecret()
                    .withoutServer()
                    .open(new RankInfo(0, 1, 0, 1, "127.0.0.1", server.port(), job, 0, RankInfo.Source.PROPERTIES));
        }

        private static void fill() {
            Filling all = null;
            int size = 1 << 16;
            long start = System.nanoTime();
            while (System.nanoTime() - start < TimeUnit.SECONDS.toNanos(SECONDS)) {
                try {
                    all = new Filling(all, new byte[size]);
                } catch (OutOfMemoryError full) {
                    size = Math.max(16, size / 2);
                }
            }
        }
    }

    @Test
    void threadsOutliveALackOfMemory() {
        run(new ChildJvm().option("-Xmx32m").option("-XX:+UseSerialGC"), WithoutMemory.class);
    }
}

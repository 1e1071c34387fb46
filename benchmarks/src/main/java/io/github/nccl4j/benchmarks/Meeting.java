package io.github.nccl4j.benchmarks;

import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.TcpStore;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/**
 * The time that ranks take to meet at the store: threads of one process, which open it at the same moment, set a key of their own,
 * and get the id of 128 bytes that rank 0 sets. If PyTorch is installed, its TCPStore is measured with the same exchange.
 */
@Command(
        name = "nccl4j meeting",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description = {
            "Measures how long ranks take to meet at the store. The ranks are threads of one process; each sets a key and gets an "
                    + "id of 128 bytes. The time ends when the last rank has the id. Measured without a secret, with a secret, "
                    + "and with PyTorch's TCPStore if it is installed.",
            "",
            "Each rank needs two file descriptors and a thread.",
            ""
        })
public final class Meeting implements Callable<Integer> {
    private static final byte[] ID = new byte[128];
    private static final byte[] SECRET = new byte[32];
    private static final Duration TIMEOUT = Duration.ofSeconds(120);
    private static final int STACK_BYTES = 1 << 18;
    private static final String SCRIPT = "meeting.py";

    @Option(
            names = "-n",
            split = ",",
            paramLabel = "N",
            defaultValue = "64,256,1024,4096",
            description = "Numbers of ranks. Default: ${DEFAULT-VALUE}.")
    private List<Integer> worlds;

    @Option(
            names = "-r",
            paramLabel = "N",
            defaultValue = "7",
            description = "Number of rounds; the table shows medians and ranges. Default: ${DEFAULT-VALUE}.")
    private int rounds;

    @Spec
    private CommandSpec spec;

    private Meeting() {}

    /**
     * Measures.
     *
     * @param args see {@code --help}
     */
    public static void main(String[] args) {
        System.exit(Options.execute(new Meeting(), args));
    }

    @Override
    public Integer call() throws Exception {
        for (int world : worlds) {
            Options.atLeast(spec, 1, "-n", world);
        }
        Options.atLeast(spec, 1, "-r", rounds);
        System.out.println(Runtime.getRuntime().availableProcessors() + " processors, Java " + Runtime.version() + ", "
                + rounds + " rounds; seconds: median (least..most)");
        System.out.println("| ranks | no secret | secret | PyTorch's TCPStore |");
        System.out.println("|---:|---:|---:|---:|");
        for (int world : worlds) {
            double[] open = new double[rounds];
            double[] secret = new double[rounds];
            for (int round = 0; round < rounds; round++) {
                open[round] = meet(world, TcpStore.builder().withoutSecret());
                secret[round] = meet(world, TcpStore.builder().secret(SECRET));
            }
            System.out.println("| " + world + " | " + text(open) + " | " + text(secret) + " | " + torch(world) + " |");
        }
        return 0;
    }

    private static String text(double[] times) {
        Arrays.sort(times);
        return String.format(
                Locale.ROOT, "%.3f (%.3f..%.3f)", times[times.length / 2], times[0], times[times.length - 1]);
    }

    private static double meet(int world, TcpStore.Builder settings) throws Exception {
        int port;
        try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))) {
            port = free.getLocalPort();
        }
        settings.timeout(TIMEOUT);
        CountDownLatch ready = new CountDownLatch(world);
        CountDownLatch go = new CountDownLatch(1);
        CountDownLatch met = new CountDownLatch(world);
        CountDownLatch end = new CountDownLatch(1);
        ConcurrentLinkedQueue<Throwable> failures = new ConcurrentLinkedQueue<>();
        List<Thread> threads = new ArrayList<>();
        for (int rank = 0; rank < world; rank++) {
            RankInfo self =
                    new RankInfo(rank, world, rank, world, "127.0.0.1", port, "", 0, RankInfo.Source.PROPERTIES);
            Runnable body = () -> {
                try {
                    ready.countDown();
                    go.await();
                    try (TcpStore store = settings.open(self)) {
                        meet(store);
                        met.countDown();
                        end.await();
                    }
                } catch (Exception | Error failure) {
                    failures.add(failure);
                    met.countDown();
                }
            };
            Thread thread = new Thread(null, body, "rank-" + rank, STACK_BYTES);
            // A daemon, so that ranks that wait for one that could not be started end with this process.
            thread.setDaemon(true);
            try {
                thread.start();
            } catch (OutOfMemoryError limit) {
                throw new IllegalStateException(
                        world + " ranks need a thread each, but only " + rank + " could be started: "
                                + limit.getMessage(),
                        limit);
            }
            threads.add(thread);
        }
        ready.await();
        long start = System.nanoTime();
        go.countDown();
        met.await();
        double seconds = (System.nanoTime() - start) / 1e9;
        end.countDown();
        for (Thread thread : threads) {
            thread.join(TimeUnit.SECONDS.toMillis(TIMEOUT.toSeconds()));
        }
        if (!failures.isEmpty()) {
            throw new IllegalStateException(
                    failures.size() + " of " + world + " ranks failed, the first with " + failures.peek(),
                    failures.peek());
        }
        return seconds;
    }

    private static void meet(TcpStore store) {
        store.set("rank-" + store.rank(), new byte[Integer.BYTES]);
        if (store.rank() == 0) {
            store.set("id", ID);
        }
        int length = store.get("id", TIMEOUT).length;
        if (length != ID.length) {
            throw new IllegalStateException("an id of " + length + " bytes");
        }
    }

    private String torch(int world) throws IOException {
        Path folder = Files.createTempDirectory("nccl4j-meeting");
        Path script = folder.resolve(SCRIPT);
        try (InputStream text = Meeting.class.getResourceAsStream(SCRIPT)) {
            Files.copy(text, script);
            String output = CommandLine.output(folder, List.of("python3", SCRIPT, "" + world, "" + rounds));
            if (output.startsWith("no ")) {
                return output.strip();
            }
            return text(output.lines().mapToDouble(Double::parseDouble).toArray());
        } finally {
            Files.deleteIfExists(script);
            Files.delete(folder);
        }
    }
}

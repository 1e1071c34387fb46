package io.github.nccl4j.zookeeper;

import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.testing.Ports;
import io.github.nccl4j.testing.Waiting;
import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.apache.curator.test.InstanceSpec;
import org.apache.curator.test.TestingCluster;
import org.apache.zookeeper.ZooKeeper;

/** An ensemble of three servers in this process, and threads for ranks. */
final class Ensemble implements AutoCloseable {
    static final Duration LIMIT = Duration.ofSeconds(60);

    /** Short enough for a test that waits for the end of a session. */
    static final Duration SHORT_SESSION = Duration.ofSeconds(3);

    private static final int TICK_MILLIS = 500;

    final TestingCluster servers;
    private final ExecutorService threads = Executors.newCachedThreadPool();
    private int jobs;

    Ensemble() throws Exception {
        List<InstanceSpec> specs = IntStream.range(0, 3)
                // ZooKeeper ends the JVM if a port is taken: none of those that the system gives to other sockets.
                .mapToObj(server -> new InstanceSpec(
                        null,
                        Ports.free(),
                        Ports.free(),
                        Ports.free(),
                        true,
                        -1,
                        TICK_MILLIS,
                        -1,
                        // Nothing here needs to survive a crash of the machine.
                        Map.of("syncEnabled", "false"),
                        "127.0.0.1"))
                .toList();
        servers = new TestingCluster(specs);
        servers.start();
        Waiting.until("a leader", () -> leader() != null);
    }

    String addresses() {
        return servers.getConnectString();
    }

    /** The server that leads the ensemble, by its own word; null while none does. */
    InstanceSpec leader() {
        return servers.getInstances().stream()
                .filter(server -> modeOf(server.getPort()).equals("Mode: leader"))
                .findFirst()
                .orElse(null);
    }

    /** True if a server follows or leads. */
    boolean isServing(InstanceSpec server) {
        return !modeOf(server.getPort()).isEmpty();
    }

    private static String modeOf(int port) {
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
            socket.getOutputStream().write("srvr".getBytes(StandardCharsets.US_ASCII));
            String answer = new String(socket.getInputStream().readAllBytes(), StandardCharsets.US_ASCII);
            return answer.lines()
                    .filter(line -> line.startsWith("Mode: "))
                    .findFirst()
                    .orElse("");
        } catch (IOException notRunning) {
            return "";
        }
    }

    /** A job that no other test uses. */
    synchronized String job() {
        return "job " + jobs++ + "/" + System.nanoTime();
    }

    static RankInfo rank(String job, int rank, int size) {
        return new RankInfo(rank, size, rank, size, "127.0.0.1", 29500, job, 0, RankInfo.Source.PROPERTIES);
    }

    ZooKeeperStore.Builder builder() {
        return ZooKeeperStore.builder(addresses()).timeout(LIMIT);
    }

    ZooKeeperStore open(String job, int rank, int size) {
        return builder().open(rank(job, rank, size));
    }

    <T> Future<T> submit(Callable<T> task) {
        return threads.submit(task);
    }

    static <T> T result(Future<T> task) throws Exception {
        return task.get(LIMIT.toSeconds() * 2, TimeUnit.SECONDS);
    }

    /** What a rank does with its store. */
    interface OfRank<T> {
        T run(ZooKeeperStore store) throws Exception;
    }

    /** Runs all ranks of a job, and returns what they return. */
    <T> List<T> run(String job, int size, OfRank<T> task) throws Exception {
        List<Future<T>> running = new ArrayList<>();
        for (int rank = 0; rank < size; rank++) {
            int self = rank;
            running.add(submit(() -> {
                try (ZooKeeperStore store = open(job, self, size)) {
                    return task.run(store);
                }
            }));
        }
        List<T> results = new ArrayList<>();
        for (Future<T> rank : running) {
            results.add(result(rank));
        }
        return results;
    }

    /** Ends the session of a store at the ensemble, as its timeout does: Curator's KillSession only pretends that to the client. */
    void endSession(ZooKeeperStore store) throws Exception {
        ZooKeeper session = store.session().client().getZookeeperClient().getZooKeeper();
        CountDownLatch connected = new CountDownLatch(1);
        ZooKeeper same = new ZooKeeper(
                addresses(),
                session.getSessionTimeout(),
                event -> connected.countDown(),
                session.getSessionId(),
                session.getSessionPasswd());
        try {
            if (!connected.await(LIMIT.toSeconds(), TimeUnit.SECONDS)) {
                throw new AssertionError("not connected: " + same);
            }
        } finally {
            same.close();
        }
    }

    @Override
    public void close() throws IOException {
        threads.shutdownNow();
        servers.close();
    }
}

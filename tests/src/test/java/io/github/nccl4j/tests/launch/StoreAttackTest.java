package io.github.nccl4j.tests.launch;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.TcpStore;
import io.github.nccl4j.launch.wire.Wire;
import io.github.nccl4j.testing.Waiting;
import io.github.nccl4j.tests.ChildJvm;
import java.io.IOException;
import java.io.InputStream;
import java.lang.management.ManagementFactory;
import java.net.InetAddress;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Connects 32 ranks to a store while clients without the secret attack it. {@code -Dstore.attack} is the number of their
 * connections, 1000 by default. The heap of the store's process is limited to 24 MiB.
 */
@Timeout(600)
class StoreAttackTest {
    private static final int CONNECTIONS = Integer.getInteger("store.attack", 1000);
    private static final int WORLD = 32;
    private static final int ATTACKERS = 8;
    private static final int HELD = 200;
    private static final int GREETING = 46;
    private static final byte[] SECRET = "a secret of more than sixteen bytes".getBytes(StandardCharsets.UTF_8);
    private static final byte[] VALUE = "a value that only the ranks may read".getBytes(StandardCharsets.UTF_8);

    private final ConcurrentLinkedQueue<Socket> held = new ConcurrentLinkedQueue<>();
    private final AtomicInteger made = new AtomicInteger();
    private final AtomicInteger refusedByKernel = new AtomicInteger();
    private final AtomicLong longest = new AtomicLong();
    private volatile boolean over;
    private TcpStore first;

    /** Rank 0, whose process runs the store. */
    public static final class Root {
        private Root() {}

        public static void main(String[] args) throws Exception {
            RankInfo self = rank(0, Integer.parseInt(args[0]));
            try (TcpStore store = Job.settings().secret(SECRET).open(self)) {
                store.set("value", VALUE);
                store.broadcast("id", 0, VALUE::clone, Job.LONG);
                store.barrier("all have joined", Job.LONG);
                store.barrier("end", Job.LONG);
                if (!Arrays.equals(VALUE, store.get("value", Job.SHORT))) {
                    throw new AssertionError("the value was changed");
                }
                System.out.println(
                        "threads: " + ManagementFactory.getThreadMXBean().getPeakThreadCount());
            }
        }
    }

    private static RankInfo rank(int rank, int port) {
        return new RankInfo(rank, WORLD, rank, WORLD, "127.0.0.1", port, "job", 0, RankInfo.Source.PROPERTIES);
    }

    @Test
    void ranksConnectUnderAttack() throws Exception {
        try (Job job = new Job()) {
            ChildJvm.Running root = new ChildJvm().option("-Xmx24m").start(Root.class, "" + job.port());
            byte[] recording = recordConnection(job);
            List<CompletableFuture<Void>> attackers = new ArrayList<>();
            for (int i = 0; i < ATTACKERS; i++) {
                Random random = new Random(i);
                attackers.add(job.start(() -> {
                    attack(job.port(), random, recording);
                    return null;
                }));
            }
            attackers.add(job.start(() -> {
                trickle(List.copyOf(attackers.subList(0, ATTACKERS)));
                return null;
            }));
            long start = System.nanoTime();
            List<CompletableFuture<TcpStore>> ranks = new ArrayList<>();
            for (int r = 2; r < WORLD; r++) {
                // Connects while the attack is under way, not before it.
                int before = r * CONNECTIONS / WORLD;
                Waiting.until(
                        before + " connections",
                        () -> made.get() >= before || attackers.stream().allMatch(CompletableFuture::isDone));
                RankInfo self = rank(r, job.port());
                ranks.add(job.start(() -> {
                    TcpStore store = job.open(self, Job.settings().secret(SECRET));
                    assertArrayEquals(VALUE, store.broadcast("id", 0, () -> null, Job.LONG));
                    store.barrier("all have joined", Job.LONG);
                    return store;
                }));
            }
            List<TcpStore> stores =
                    new ArrayList<>(ranks.stream().map(CompletableFuture::join).toList());
            double met = (System.nanoTime() - start) / 1e9;
            attackers.forEach(CompletableFuture::join);
            over = true;
            stores.add(first);
            List<CompletableFuture<Object>> ends = new ArrayList<>();
            for (TcpStore store : stores) {
                ends.add(job.start(() -> {
                    store.barrier("end", Job.LONG);
                    return null;
                }));
            }
            ends.forEach(CompletableFuture::join);
            ChildJvm.Outcome outcome = root.await();
            assertEquals(0, outcome.exitCode(), outcome::output);
            assertTrue(outcome.output().matches("(?s).*threads: [0-9]{1,2}\\s.*"), outcome::output);
            assertTrue(longest.get() < GREETING + 200, () -> "an attacker got " + longest + " bytes");
            System.out.printf(
                    Locale.ROOT,
                    "store under attack: %d connections (%d not accepted), 32 ranks met in %.1f s, %s%n",
                    made.get(),
                    refusedByKernel.get(),
                    met,
                    outcome.output().strip().replaceAll("(?s).*threads", "threads"));
        } finally {
            for (Socket socket : held) {
                socket.close();
            }
        }
    }

    /** Opens the store of rank 1 through a proxy, sets a key, and returns the bytes that rank 1 has sent. */
    private byte[] recordConnection(Job job) throws IOException {
        try (Proxy proxy = new Proxy(job.port())) {
            CompletableFuture<TcpStore> opening =
                    job.openAsync(rank(1, proxy.port()), Job.settings().secret(SECRET));
            first = opening.join();
            first.set("recorded", new byte[1]);
            assertArrayEquals(VALUE, first.broadcast("id", 0, () -> null, Job.LONG));
            job.start(() -> {
                first.barrier("all have joined", Job.LONG);
                return null;
            });
            return proxy.toStore();
        }
    }

    private void attack(int port, Random random, byte[] recording) throws Exception {
        while (!over && made.incrementAndGet() <= CONNECTIONS) {
            Socket socket;
            try {
                socket = new Socket(InetAddress.getByName("127.0.0.1"), port);
            } catch (IOException full) {
                refusedByKernel.incrementAndGet();
                continue;
            }
            try {
                attack(socket, random, recording);
            } catch (IOException closed) {
                // The store has closed the connection, as it should.
            }
            if (!held.contains(socket)) {
                socket.close();
            }
        }
    }

    private void attack(Socket socket, Random random, byte[] recording) throws IOException {
        socket.setSoTimeout(200);
        switch (random.nextInt(7)) {
            case 0 -> {
                byte[] noise = new byte[random.nextInt(2000)];
                random.nextBytes(noise);
                sendAndReadResponse(socket, noise);
            }
            case 1 -> keepOpen(socket);
            case 2 -> {
                // The beginning of a hello; trickle() sends single bytes later.
                socket.getOutputStream().write(recording, 0, 1 + random.nextInt(20));
                keepOpen(socket);
            }
            case 3 ->
                sendAndReadResponse(
                        socket,
                        ByteBuffer.allocate(4 + 4000)
                                .putInt(random.nextBoolean() ? Integer.MAX_VALUE : random.nextInt())
                                .array());
            case 4 -> sendAndReadResponse(socket, recording);
            case 5 -> sendAndReadResponse(socket, hello((byte) 0, random));
            default -> sendAndReadResponse(socket, hello((byte) 1, random));
        }
    }

    /** Sends single bytes on the open connections while the other attackers run. */
    private void trickle(List<CompletableFuture<Void>> others) throws InterruptedException {
        while (!others.stream().allMatch(CompletableFuture::isDone)) {
            for (Socket slow : held) {
                try {
                    slow.getOutputStream().write(0);
                } catch (IOException closed) {
                    // The store has closed the connection, as it should.
                }
            }
            Thread.sleep(10);
        }
    }

    /** A hello of the right length with a random nonce and proof. */
    private static byte[] hello(byte mode, Random random) {
        byte[] rest = new byte[64];
        random.nextBytes(rest);
        return ByteBuffer.allocate(4 + 74)
                .putInt(74)
                .putLong(0x6e63636c346a5354L)
                .put(Wire.VERSION)
                .put(mode)
                .put(rest)
                .array();
    }

    private void keepOpen(Socket socket) throws IOException {
        held.add(socket);
        if (held.size() > HELD) {
            held.remove().close();
        }
    }

    private void sendAndReadResponse(Socket socket, byte[] bytes) throws IOException {
        socket.getOutputStream().write(bytes);
        InputStream in = socket.getInputStream();
        long got = 0;
        try {
            for (int count = in.read(new byte[4096]); count >= 0; count = in.read(new byte[4096])) {
                got += count;
            }
        } catch (SocketTimeoutException waiting) {
            // The store waits for the rest of a frame.
        } finally {
            longest.accumulateAndGet(got, Math::max);
        }
    }
}

package io.github.nccl4j.tests.launch;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.TcpStore;
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
 * 32 ranks meet while strangers do to the store what they can. {@code -Dstore.attack=10000} is the number of their
 * connections, 1000 unless set. The store's process has 24 MB.
 */
@Timeout(600)
class StoreAttackTest {
    private static final int CONNECTIONS = Integer.getInteger("store.attack", 1000);
    private static final int WORLD = 32;
    private static final int ATTACKERS = 8;
    private static final int HELD = 200;
    private static final int GREETING = 46;
    private static final byte[] SECRET = "a secret of more than sixteen bytes".getBytes(StandardCharsets.UTF_8);
    private static final byte[] TREASURE = "what only the ranks may read".getBytes(StandardCharsets.UTF_8);

    private final ConcurrentLinkedQueue<Socket> held = new ConcurrentLinkedQueue<>();
    private final AtomicInteger made = new AtomicInteger();
    private final AtomicInteger refusedByKernel = new AtomicInteger();
    private final AtomicLong longest = new AtomicLong();
    private volatile boolean over;
    private TcpStore first;

    /** Rank 0, which has the store. */
    public static final class Root {
        private Root() {}

        public static void main(String[] args) throws Exception {
            RankInfo self = rank(0, Integer.parseInt(args[0]));
            try (TcpStore store = Job.settings().secret(SECRET).open(self)) {
                store.set("treasure", TREASURE);
                store.broadcast("id", 0, TREASURE::clone, Job.LONG);
                store.barrier("all are here", Job.LONG);
                store.barrier("end", Job.LONG);
                if (!Arrays.equals(TREASURE, store.get("treasure", Job.SHORT))) {
                    throw new AssertionError("the treasure was changed");
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
    void allRanksMeetAndNobodyElse() throws Exception {
        try (Job job = new Job()) {
            ChildJvm.Running root = new ChildJvm().option("-Xmx24m").start(Root.class, "" + job.port());
            byte[] conversation = conversation(job);
            List<CompletableFuture<Void>> attackers = new ArrayList<>();
            for (int i = 0; i < ATTACKERS; i++) {
                Random random = new Random(i);
                attackers.add(job.start(() -> {
                    attack(job.port(), random, conversation);
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
                // Among the attackers, not before them.
                while (made.get() < r * CONNECTIONS / WORLD
                        && !attackers.stream().allMatch(CompletableFuture::isDone)) {
                    Thread.sleep(1);
                }
                RankInfo self = rank(r, job.port());
                ranks.add(job.start(() -> {
                    TcpStore store = job.open(self, Job.settings().secret(SECRET));
                    assertArrayEquals(TREASURE, store.broadcast("id", 0, () -> null, Job.LONG));
                    store.barrier("all are here", Job.LONG);
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
            assertTrue(longest.get() < GREETING + 200, () -> "a stranger got " + longest + " bytes");
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

    /** What rank 1 says while it joins and sets a key, as somebody between it and the store has it. */
    private byte[] conversation(Job job) throws IOException {
        try (Proxy proxy = new Proxy(job.port())) {
            CompletableFuture<TcpStore> opening =
                    job.opening(rank(1, proxy.port()), Job.settings().secret(SECRET));
            first = opening.join();
            first.set("said", new byte[1]);
            assertArrayEquals(TREASURE, first.broadcast("id", 0, () -> null, Job.LONG));
            job.start(() -> {
                first.barrier("all are here", Job.LONG);
                return null;
            });
            return proxy.toStore();
        }
    }

    private void attack(int port, Random random, byte[] conversation) throws Exception {
        while (!over && made.incrementAndGet() <= CONNECTIONS) {
            Socket socket;
            try {
                socket = new Socket(InetAddress.getByName("127.0.0.1"), port);
            } catch (IOException full) {
                refusedByKernel.incrementAndGet();
                continue;
            }
            try {
                attack(socket, random, conversation);
            } catch (IOException closed) {
                // As it should be.
            }
            if (!held.contains(socket)) {
                socket.close();
            }
        }
    }

    private void attack(Socket socket, Random random, byte[] conversation) throws IOException {
        socket.setSoTimeout(200);
        switch (random.nextInt(7)) {
            case 0 -> {
                byte[] noise = new byte[random.nextInt(2000)];
                random.nextBytes(noise);
                say(socket, noise);
            }
            case 1 -> hold(socket);
            case 2 -> {
                // And a byte now and then.
                socket.getOutputStream().write(conversation, 0, 1 + random.nextInt(20));
                hold(socket);
            }
            case 3 ->
                say(
                        socket,
                        ByteBuffer.allocate(4 + 4000)
                                .putInt(random.nextBoolean() ? Integer.MAX_VALUE : random.nextInt())
                                .array());
            case 4 -> say(socket, conversation);
            case 5 -> say(socket, hello((byte) 0, random));
            default -> say(socket, hello((byte) 1, random));
        }
    }

    /** Some say a byte now and then, as long as the others go on. */
    private void trickle(List<CompletableFuture<Void>> others) throws InterruptedException {
        while (!others.stream().allMatch(CompletableFuture::isDone)) {
            for (Socket slow : held) {
                try {
                    slow.getOutputStream().write(0);
                } catch (IOException closed) {
                    // As it should be.
                }
            }
            Thread.sleep(10);
        }
    }

    /** The right form with the wrong content. */
    private static byte[] hello(byte mode, Random random) {
        byte[] rest = new byte[64];
        random.nextBytes(rest);
        return ByteBuffer.allocate(4 + 74)
                .putInt(74)
                .putLong(0x6e63636c346a5354L)
                .put((byte) 2)
                .put(mode)
                .put(rest)
                .array();
    }

    private void hold(Socket socket) throws IOException {
        held.add(socket);
        if (held.size() > HELD) {
            held.remove().close();
        }
    }

    private void say(Socket socket, byte[] bytes) throws IOException {
        socket.getOutputStream().write(bytes);
        InputStream in = socket.getInputStream();
        long got = 0;
        try {
            for (int count = in.read(new byte[4096]); count >= 0; count = in.read(new byte[4096])) {
                got += count;
            }
        } catch (SocketTimeoutException patient) {
            // The store waits for more; it gets none.
        } finally {
            longest.accumulateAndGet(got, Math::max);
        }
    }
}

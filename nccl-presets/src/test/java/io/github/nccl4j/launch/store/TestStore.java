package io.github.nccl4j.launch.store;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.nccl4j.launch.RankStatus.State;
import io.github.nccl4j.launch.env.Launcher;
import io.github.nccl4j.launch.env.RankValues;
import io.github.nccl4j.launch.wire.MessageText;
import io.github.nccl4j.launch.wire.Notice;
import io.github.nccl4j.launch.wire.Wire;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/** A server whose time a test sets, and connections to it that may send anything. */
final class TestStore implements AutoCloseable {
    static final long SECOND = TestTime.SECOND;
    static final String PROCESS = "process 7";

    private static final long LIMIT_SECONDS = 20;
    private static final long STEP = SECOND / 4;

    /** Begins shortly before it wraps. */
    private final AtomicLong now = new AtomicLong(Long.MAX_VALUE - 5 * SECOND);

    private final StoreServer server;
    private final Secret secret;
    private final List<Client> clients = new ArrayList<>();

    private TestStore(RankValues self, Secret secret) {
        this.secret = secret;
        server = StoreServer.start(self, InetAddress.getLoopbackAddress(), 0, secret, now::get);
    }

    /** A store of a job, in the process of its rank 0. */
    static TestStore ofJob(int worldSize, Secret secret) {
        return new TestStore(
                new RankValues(
                        new RankValues.Numbers(0, worldSize, 0, worldSize),
                        "127.0.0.1",
                        1,
                        "job",
                        0,
                        Launcher.PROPERTIES),
                secret);
    }

    static TestStore ofAnyJob() {
        return new TestStore(null, null);
    }

    StoreServer server() {
        return server;
    }

    /** Runs the timers that are due after some time, all at that time. */
    void advance(long nanos) throws Exception {
        // What the clients have sent was sent earlier.
        settle();
        now.addAndGet(nanos);
        settle();
    }

    /** As {@link #advance}, for a time after which the server ends: this does not wait. */
    void advanceToEnd(long nanos) throws Exception {
        settle();
        now.addAndGet(nanos);
        server.loop().execute(() -> {});
    }

    /** Lets pass some time in steps of the period in which the server checks for silence. */
    void pass(long nanos) throws Exception {
        for (long left = nanos; left > 0; left -= STEP) {
            advance(Math.min(left, STEP));
        }
    }

    /** True if no rank has to read more before the server can send the rest. */
    boolean hasSentAll() throws Exception {
        CompletableFuture<Boolean> result = new CompletableFuture<>();
        server.loop().execute(() -> result.complete(server.hasSentAll()));
        return result.get(LIMIT_SECONDS, TimeUnit.SECONDS);
    }

    /** Returns when the server has read what it can read, and has run its timers. */
    void settle() throws Exception {
        settle(server.loop());
    }

    /** Returns when a loop has read what it can read, and has run its timers. */
    static void settle(EventLoop loop) throws Exception {
        // The second time, the loop has looked for input since the call.
        for (int i = 0; i < 2; i++) {
            CompletableFuture<Void> done = new CompletableFuture<>();
            // A timer: the loop runs the tasks first, and then all timers that are due.
            loop.execute(() -> loop.timers().schedule(loop.now(), () -> done.complete(null)));
            done.get(LIMIT_SECONDS, TimeUnit.SECONDS);
        }
    }

    /** Connects, and does not read the greeting. */
    Client connect() throws IOException {
        return new Client();
    }

    /** Connects, and does all that precedes the join. */
    Client greet() throws IOException {
        Client client = connect();
        client.greet();
        return client;
    }

    /** Connects as a rank without heartbeats. */
    Client join(int rank, int worldSize) throws IOException {
        Client client = greet();
        client.join(client.claim(rank, worldSize, 0, 0));
        assertEquals(Wire.OK, client.receive().get());
        return client;
    }

    /** Connects as an observer. */
    Client observe() throws IOException {
        Client client = greet();
        client.send(new Wire.Frame().number32(Wire.OBSERVER));
        ByteBuffer response = client.receive();
        assertEquals(Wire.OK, response.get());
        assertEquals(0, response.remaining());
        return client;
    }

    @Override
    public void close() throws IOException {
        for (Client client : clients) {
            client.close();
        }
        server.close(Duration.ZERO);
    }

    /** A connection to the server. */
    final class Client extends TestPeer {
        private int number;

        private Client() throws IOException {
            super(open());
            clients.add(this);
        }

        /** Reads a notice of the store that this rank's connection ends, and its end; returns the reason. */
        String closeNotice(byte status) throws IOException {
            ByteBuffer notice = receive();
            assertEquals(Wire.CLOSE_NOTICE, notice.getInt());
            assertEquals(status, notice.get());
            String reason = Wire.text(notice);
            assertEquals(0, notice.remaining());
            requireEnd();
            return reason;
        }

        /** Reads the greeting, and proves the secret of the store. */
        private void greet() throws IOException {
            ClientHandshake handshake = new ClientHandshake(secret, "the store", "this test");
            send(new Wire.Frame().raw(handshake.hello(receive())));
            seal(handshake.verify(receive()));
        }

        /** The part of a join before the heartbeats. */
        Wire.Frame claim(int rank, int worldSize, String job, int restart) {
            return new Wire.Frame()
                    .number32(rank)
                    .number32(worldSize)
                    .number32(restart)
                    .number8(1)
                    .text("its local rank")
                    .text(job)
                    .text(PROCESS);
        }

        Wire.Frame claim(int rank, int worldSize, long interval, long patience) {
            return claim(rank, worldSize, "job", 0).number64(interval).number64(patience);
        }

        void join(Wire.Frame claim) throws IOException {
            send(claim);
        }

        /** Sends a request; returns its number. */
        int request(Wire.Operation operation, Wire.Frame arguments) throws IOException {
            number++;
            send(new Wire.Frame().number32(number).operation(operation).raw(arguments.toBytes()));
            return number;
        }

        /** Reads the question of the store for the status of this rank. */
        void requireQuestion() throws IOException {
            ByteBuffer question = receive();
            assertEquals(Wire.QUESTION, question.getInt());
            assertEquals(0, question.remaining());
        }

        /** Enters a group; returns the next notice about another member, which is about the keeper of the store if it has entered before. */
        ByteBuffer enter(String group, int number) throws IOException {
            int asked =
                    request(Wire.Operation.ENTER, new Wire.Frame().text(group).number32(number));
            ByteBuffer first = receive();
            ByteBuffer second = receive();
            assertEquals(asked, second.getInt());
            assertEquals(Wire.OK, second.get());
            return first;
        }

        /** Begins a look; returns its number. */
        int beginLook(long timeout) throws IOException {
            number++;
            send(new Wire.Frame().number32(number).number64(timeout));
            return number;
        }

        /** Reads the parts of a look up to its end. */
        List<Job> readLook(int begun) throws IOException {
            List<Job> jobs = new ArrayList<>();
            while (true) {
                ByteBuffer part = receive();
                assertEquals(begun, part.getInt());
                switch (Wire.Look.read(part)) {
                    case JOB -> jobs.add(new Job(Wire.text(part), part.getInt(), part.getInt(), new ArrayList<>()));
                    case RANK ->
                        jobs.get(part.getInt())
                                .ranks
                                .add(part.getInt() + " " + State.values()[part.get()] + " (" + Wire.text(part) + ") "
                                        + part.getLong() / 1_000_000 + " ms, "
                                        + new String(Wire.bytes(part), StandardCharsets.UTF_8));
                    case END -> {
                        return jobs;
                    }
                }
            }
        }

        /** Looks without a wait for the ranks. */
        List<Job> look() throws IOException {
            return readLook(beginLook(0));
        }

        /** Sends a request; returns the status and the rest of the response, which must be the next frame. */
        ByteBuffer ask(Wire.Operation operation, Wire.Frame arguments) throws IOException {
            int asked = request(operation, arguments);
            ByteBuffer response = receive();
            assertEquals(asked, response.getInt());
            return response;
        }
    }

    /** A notice in words. */
    static String notice(ByteBuffer frame) throws IOException {
        assertEquals(Wire.NOTICE, frame.getInt());
        Notice notice = Notice.read(frame);
        String who = "rank " + notice.number() + " (" + notice.process() + ") ";
        return who
                + switch (notice.kind()) {
                    case LOST -> "is lost: " + notice.reason();
                    case SILENT -> "is silent for " + MessageText.seconds(notice.nanos());
                    case HEARD -> "is heard";
                    case KEEPER -> "keeps the store";
                };
    }

    /** A job that an observer has seen, with a line for each of its ranks. */
    record Job(String name, int restart, int size, List<String> ranks) {}

    private Socket open() throws IOException {
        InetSocketAddress address = server.address();
        return new Socket(address.getAddress(), address.getPort());
    }
}

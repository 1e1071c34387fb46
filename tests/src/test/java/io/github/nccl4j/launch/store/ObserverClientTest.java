package io.github.nccl4j.launch.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.launch.JobStatus;
import io.github.nccl4j.launch.RankStatus.State;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.wire.Wire;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests of {@link ObserverClient} against a store of this test, which may send anything. */
@Timeout(60)
class ObserverClientTest {
    private static final Duration LONG = Duration.ofSeconds(30);

    private static void send(DataOutputStream out, byte[] frame) throws IOException {
        out.writeInt(frame.length);
        out.write(frame);
    }

    private static byte[] receive(DataInputStream in) throws IOException {
        return in.readNBytes(in.readInt());
    }

    /** Greets one client, and answers each of its looks with the parts. */
    private static Thread serve(ServerSocket server, List<Wire.Frame> parts) {
        Thread store = new Thread(() -> {
            try (Socket client = server.accept()) {
                DataInputStream in = new DataInputStream(client.getInputStream());
                DataOutputStream out = new DataOutputStream(client.getOutputStream());
                send(
                        out,
                        new Wire.Frame()
                                .number64(Wire.MAGIC)
                                .number8(Wire.VERSION)
                                .number8(Wire.WITHOUT_SECRET)
                                .raw(new byte[Wire.NONCE_BYTES])
                                .toBytes());
                receive(in);
                send(
                        out,
                        new Wire.Frame()
                                .number8(Wire.OK)
                                .raw(new byte[Wire.PROOF_BYTES])
                                .toBytes());
                assertEquals(Wire.OBSERVER, ByteBuffer.wrap(receive(in)).getInt());
                send(out, new Wire.Frame().number8(Wire.OK).toBytes());
                for (int number = 1; ; number++) {
                    assertEquals(number, ByteBuffer.wrap(receive(in)).getInt());
                    for (Wire.Frame part : parts) {
                        send(
                                out,
                                new Wire.Frame()
                                        .number32(number)
                                        .raw(part.toBytes())
                                        .toBytes());
                    }
                }
            } catch (IOException closed) {
                // The client has ended the connection.
            }
        });
        store.start();
        return store;
    }

    private static Wire.Frame job(int size) {
        return new Wire.Frame()
                .number8(Wire.Look.JOB.ordinal())
                .text("job")
                .number32(2)
                .number32(size);
    }

    private static Wire.Frame rank(int job, int rank, int state, int report) {
        return new Wire.Frame()
                .number8(Wire.Look.RANK.ordinal())
                .number32(job)
                .number32(rank)
                .number8(state)
                .text("process")
                .number64(-7)
                .bytes(new byte[report]);
    }

    private static List<JobStatus> look(List<Wire.Frame> parts) throws Exception {
        List<Wire.Frame> all = new ArrayList<>(parts);
        all.add(new Wire.Frame().number8(Wire.Look.END.ordinal()));
        try (ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            Thread store = serve(server, all);
            try (ObserverClient client = ObserverClient.connect("127.0.0.1", server.getLocalPort(), null, LONG)) {
                List<JobStatus> first = client.look(LONG);
                assertEquals(first, client.look(LONG));
                return first;
            } finally {
                store.join();
            }
        }
    }

    private static String failure(Wire.Frame... parts) {
        String message = assertThrows(RendezvousException.class, () -> look(List.of(parts)))
                .getMessage();
        return message.replaceFirst(".* has ended: ", "");
    }

    @Test
    void ranksThatTheStoreDoesNotNameAreMissing() throws Exception {
        JobStatus job =
                look(List.of(job(3), rank(0, 1, State.LOST.ordinal(), 0))).get(0);
        assertEquals("job", job.job());
        assertEquals(2, job.restart());
        assertEquals(
                List.of(State.MISSING, State.LOST, State.MISSING),
                job.ranks().stream().map(one -> one.state()).toList());
        assertEquals(Duration.ZERO, job.ranks().get(1).silence());
        assertEquals(List.of(), look(List.of()));
        assertEquals(0, look(List.of(job(0))).get(0).ranks().size());
    }

    @Test
    void invalidPartsAreRefused() {
        assertEquals("invalid job: 0, -1 ranks", failure(job(-1)));
        assertEquals("invalid job: 0, 1048577 ranks", failure(job((1 << 20) + 1)));
        assertEquals("job of a rank must be < 0: 0", failure(rank(0, 0, 0, 0)));
        assertEquals("job of a rank must be < 1: 1", failure(job(1), rank(1, 0, 0, 0)));
        assertEquals("job of a rank must be < 1: -1", failure(job(1), rank(-1, 0, 0, 0)));
        int states = State.values().length;
        assertEquals(
                "state of a rank must be from 0 to " + (states - 1) + ": " + states,
                failure(job(1), rank(0, 0, states, 0)));
        assertEquals("state of a rank must be from 0 to " + (states - 1) + ": -1", failure(job(1), rank(0, 0, -1, 0)));
    }

    @Test
    void numberOfJobsHasALimit() throws Exception {
        List<Wire.Frame> jobs = new ArrayList<>();
        for (int i = 0; i < 1024; i++) {
            jobs.add(job(0));
        }
        assertEquals(1024, look(jobs).size());
        jobs.add(job(0));
        assertEquals("invalid job: 1024, 0 ranks", failure(jobs.toArray(Wire.Frame[]::new)));
    }

    @Test
    void frameHasALimit() {
        String refused =
                failure(new Wire.Frame().raw(new byte[Wire.MAX_REPORT + Wire.LOOK_HEADER_BYTES + Seal.OVERHEAD]));
        assertTrue(refused.startsWith("another service listens at this address, or a frame is too long: "), refused);
    }
}

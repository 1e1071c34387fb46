package io.github.nccl4j.launch.store;

import io.github.nccl4j.launch.store.PendingCollective.Signature;
import io.github.nccl4j.launch.wire.Arguments;
import io.github.nccl4j.launch.wire.MessageText;
import io.github.nccl4j.launch.wire.Notice;
import io.github.nccl4j.launch.wire.Wire;
import java.io.EOFException;
import java.io.IOException;
import java.lang.System.Logger.Level;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/** Server end of a connection: runs the handshake, then serves the requests of one rank. */
final class ServerConnection extends Connection implements MemberGroups.Member, Observer.Rank {
    /** Limit for requests of one rank without a response. */
    private static final int MAX_PENDING_REQUESTS = 4096;

    private final StoreServer server;
    /** Null until the rank has joined, like {@link #state}. */
    private StoreJob job;

    private StoreState state;
    private final byte[] nonce = new byte[Wire.NONCE_BYTES];
    private TimerQueue.Timer handshakeTimer;
    private boolean proven;
    /** Negative until the rank has joined. */
    private int rank = -1;

    /** The rank that a client which has not joined claims to be. */
    private int claimedRank = Refusals.UNKNOWN;

    /** The number of earlier processes of this rank. */
    private int attempt;

    /** Null unless the client is an observer. */
    private Observer observer;
    /** Observers that wait for the status of the rank. */
    private final Set<Observer> askers = new LinkedHashSet<>();
    /** True while the rank has yet to answer the question for its status. */
    private boolean asked;

    private boolean leaving;
    private int pendingRequests;

    /** Nanoseconds between two heartbeats of the rank; 0 if it sends none. */
    private long interval;
    /** Nanoseconds of silence after which the rank is lost; 0 if it never is. */
    private long patience;

    private final Silence silence = new Silence();
    private boolean silent;

    ServerConnection(StoreServer server, SocketChannel channel) {
        super(server.loop(), channel, Wire.MAX_HELLO);
        this.server = server;
    }

    /** The address of the peer, for messages. */
    String remoteAddress() {
        try {
            InetSocketAddress address = (InetSocketAddress) channel().getRemoteAddress();
            return address == null ? "no address" : address.getAddress().getHostAddress();
        } catch (IOException closed) {
            return "a closed connection";
        }
    }

    void sendGreeting() {
        handshakeTimer = loop().timers()
                .schedule(
                        server.handshakeDeadline(), () -> close(new IOException("the handshake was not done in time")));
        boolean withSecret = server.secret() != null;
        if (withSecret) {
            Random.SOURCE.nextBytes(nonce);
        }
        send(new Wire.Frame()
                .number64(Wire.MAGIC)
                .number8(Wire.VERSION)
                .number8(withSecret ? Wire.WITH_SECRET : Wire.WITHOUT_SECRET)
                .raw(nonce)
                .toBytes());
    }

    /** A class of its own, so that only a store with a secret initializes a secure generator. */
    static final class Random {
        static final SecureRandom SOURCE = new SecureRandom();

        private Random() {}
    }

    @Override
    void handleFrame(ByteBuffer frame) throws IOException {
        if (rank >= 0) {
            markHeard();
            Wire.read(frame, this::handleRequest);
        } else if (observer != null) {
            Wire.read(frame, observer::handleRequest);
        } else if (proven) {
            Wire.read(frame, this::handleJoin);
        } else {
            try {
                Wire.read(frame, this::handleHello);
            } catch (IOException refused) {
                server.logRefusal(this, refused.getMessage());
                server.refusals().add(claimedRank, remoteAddress(), refused.getMessage());
                throw refused;
            }
        }
    }

    private Void handleHello(ByteBuffer frame) throws IOException {
        if (frame.getLong() != Wire.MAGIC) {
            throw new IOException("the client does not use the store's protocol");
        }
        byte version = frame.get();
        if (version != Wire.VERSION) {
            int introduced = frame.getInt();
            String release = Wire.text(frame);
            claimedRank = Math.max(introduced, Refusals.UNKNOWN);
            throw new IOException("protocol " + version + " (nccl4j " + release + "), this store speaks " + Wire.VERSION
                    + " (nccl4j " + Wire.RELEASE + ")");
        }
        Secret secret = server.secret();
        boolean clientHasSecret = frame.get() == Wire.WITH_SECRET;
        byte[] clientNonce = new byte[Wire.NONCE_BYTES];
        frame.get(clientNonce);
        if (secret == null || !clientHasSecret) {
            if (clientHasSecret || secret != null) {
                refuse(
                        Wire.FAILED,
                        server.name() + " has " + (secret == null ? "no" : "a") + " secret, and this rank has "
                                + (clientHasSecret ? "one" : "none"));
                throw new IOException(
                        clientHasSecret
                                ? "the client has a secret, the store has none"
                                : "the client has no secret, the store has one");
            }
            send(new Wire.Frame()
                    .number8(Wire.OK)
                    .raw(new byte[Wire.PROOF_BYTES])
                    .toBytes());
        } else {
            byte[] proof = new byte[Wire.PROOF_BYTES];
            frame.get(proof);
            if (!secret.isProof(proof, false, nonce, clientNonce)) {
                refuse(Wire.FAILED, "the secret of this rank differs from that of " + server.name());
                throw new IOException("the secret of the client differs from that of the store");
            }
            send(new Wire.Frame()
                    .number8(Wire.OK)
                    .raw(secret.proof(true, nonce, clientNonce))
                    .toBytes());
        }
        enableSeal(secret == null ? null : secret.seal(true, nonce, clientNonce), Wire.MAX_JOIN);
        proven = true;
        return null;
    }

    private void refuse(byte status, String reason) {
        send(new Wire.Frame().number8(status).text(reason).toBytes());
    }

    private Void handleJoin(ByteBuffer frame) throws IOException {
        claimedRank = frame.getInt();
        if (claimedRank == Wire.OBSERVER) {
            observe();
            return null;
        }
        int worldSize = frame.getInt();
        int restart = frame.getInt();
        boolean hasLocalRank = frame.get() != 0;
        String local = Wire.text(frame);
        String name = Wire.text(frame);
        String process = remoteAddress() + ", " + Wire.text(frame);
        readHeartbeat(frame);
        StoreJob.Claim claim = new StoreJob.Claim(claimedRank, worldSize, hasLocalRank, local, process);
        StoreJob found = server.job(new StoreJob.Key(name, restart), claim);
        if (found == null) {
            refuse(Wire.ANOTHER_JOB, server.describeJob() + "; this rank is in job '" + name + "', attempt " + restart);
            server.refusals().add(claimedRank, remoteAddress(), "it is in job '" + name + "', attempt " + restart);
            throw new IOException("the client is in another job or attempt");
        }
        String refusal = found.join(this, claim);
        if (refusal != null) {
            refuse(Wire.FAILED, refusal);
            server.refusals().add(claimedRank, remoteAddress(), refusal);
            server.forgetIfOver(found);
            throw new IOException(refusal);
        }
        server.markJoined(this);
        job = found;
        state = found.state();
        rank = claimedRank;
        loop().timers().cancel(handshakeTimer);
        setMaxFrameBytes(Wire.REQUEST_HEADER_BYTES
                + Wire.MAX_KEY
                + Arguments.LONGEST_VALUE
                + 2 * Integer.BYTES * worldSize
                + Seal.OVERHEAD);
        attempt = state.attempt(rank);
        send(new Wire.Frame().number8(Wire.OK).number32(attempt).toBytes());
        return null;
    }

    private void observe() throws IOException {
        String refusal = server.addObserver(this);
        if (refusal != null) {
            refuse(Wire.FAILED, refusal);
            throw new IOException(refusal);
        }
        loop().timers().cancel(handshakeTimer);
        setMaxFrameBytes(Wire.REQUEST_HEADER_BYTES + Seal.OVERHEAD);
        observer = new Observer(loop().timers(), server::observedJobs, new Observer.Output() {
            @Override
            public void send(byte[] frame) {
                ServerConnection.this.send(frame);
            }

            @Override
            public boolean hasSentAll() {
                return ServerConnection.this.hasSentAll();
            }
        });
        send(new Wire.Frame().number8(Wire.OK).toBytes());
    }

    @Override
    void handleEnd(IOException why) {
        loop().timers().cancel(handshakeTimer);
        if (observer != null) {
            server.removeObserver(this);
            observer.close();
        } else if (job == null) {
            server.removeHandshake(this);
        } else {
            takeAskers().forEach(asker -> asker.lose(this, leaving));
            job.remove(this, rank, leaving ? null : describeEnd(why));
            server.forgetIfOver(job);
        }
    }

    private static String describeEnd(IOException why) {
        return why instanceof SilenceException
                ? why.getMessage()
                : "its connection to the store has ended"
                        + (why instanceof EOFException ? "" : " (" + MessageText.reason(why) + ")");
    }

    /**
     * Tells the client that the store closes, and why.
     *
     * @param keeperIsLost true if the rank that keeps the store ends while it is a member of a group
     */
    void sendCloseNotice(String reason, boolean keeperIsLost) {
        sendCloseNotice(reason, keeperIsLost ? Wire.KEEPER_LOST : Wire.FAILED);
    }

    private void sendCloseNotice(String reason, byte status) {
        send(new Wire.Frame()
                .number32(Wire.CLOSE_NOTICE)
                .number8(status)
                .text(reason)
                .toBytes());
    }

    /* Groups. */

    @Override
    public String process() {
        return state.process(rank);
    }

    @Override
    public boolean isKeeper() {
        return server.isKeptBy(rank);
    }

    @Override
    public void send(Notice notice) {
        send(notice.toBytes());
    }

    /* Observers. */

    @Override
    public int rank() {
        return rank;
    }

    @Override
    public long silence() {
        return silent ? silence.nanos(loop().now()) : 0;
    }

    @Override
    public void ask(Observer asker) {
        askers.add(asker);
        if (!asked) {
            asked = true;
            send(new Wire.Frame().number32(Wire.QUESTION).toBytes());
        }
    }

    @Override
    public void forget(Observer asker) {
        askers.remove(asker);
    }

    private List<Observer> takeAskers() {
        List<Observer> all = List.copyOf(askers);
        askers.clear();
        return all;
    }

    private void report(byte[] report) throws IOException {
        if (!asked || report.length > Wire.MAX_REPORT) {
            throw new IOException("a status must be asked for, and have <= " + Wire.MAX_REPORT + " bytes: "
                    + report.length + " bytes of rank " + rank);
        }
        asked = false;
        takeAskers().forEach(asker -> asker.report(this, report));
    }

    /* Heartbeats. */

    /** The rank was silent for longer than its patience. */
    private static final class SilenceException extends IOException {
        private static final long serialVersionUID = 1L;

        SilenceException(String message) {
            super(message);
        }
    }

    private void readHeartbeat(ByteBuffer frame) throws IOException {
        interval = frame.getLong();
        patience = frame.getLong();
        if (interval < 0
                || interval > Arguments.MAX_NANOSECONDS
                || patience < 0
                || patience > Arguments.MAX_NANOSECONDS) {
            throw new IOException("interval and patience must be from 0 to " + Arguments.MAX_NANOSECONDS + " ns: "
                    + interval + ", " + patience);
        }
        silence.end(loop().now());
        if (interval > 0) {
            server.startChecks();
        }
    }

    private void markHeard() {
        silence.end(loop().now());
        if (silent) {
            silent = false;
            log(Level.INFO, "continues");
            job.groups().markHeard(this);
        }
    }

    /**
     * Reports that the rank is silent, and closes the connection if its patience is over.
     *
     * @param due the time at which this check was due
     * @param now the time
     */
    void checkSilence(long due, long now) {
        long nanos = silence.check(due, now);
        if (interval == 0 || nanos <= Heartbeat.SILENT_AFTER * interval) {
            return;
        }
        if (!silent) {
            silent = true;
            log(Level.WARNING, "has been silent for " + MessageText.seconds(nanos));
            job.groups().markSilent(this, nanos);
        }
        if (patience > 0 && nanos > patience) {
            String reason = "it was silent for " + MessageText.seconds(nanos);
            sendCloseNotice("rank " + rank + " was declared lost: " + reason, Wire.DECLARED_LOST);
            close(new SilenceException(reason));
        }
    }

    private void log(Level level, String what) {
        System.getLogger("io.github.nccl4j").log(level, "rank " + rank + " (" + process() + ") " + what);
    }

    /* Requests. */

    private Void handleRequest(ByteBuffer frame) throws IOException {
        int number = frame.getInt();
        if (pendingRequests >= MAX_PENDING_REQUESTS) {
            throw new IOException(
                    "pending requests of a rank must be <= " + MAX_PENDING_REQUESTS + ": " + (pendingRequests + 1));
        }
        pendingRequests++;
        Responder responder = new RequestResponder(number);
        switch (Wire.Operation.read(frame)) {
            case SET -> {
                String key = Wire.text(frame);
                state.set(key, Wire.bytes(frame), responder);
            }
            case GET -> {
                long timeout = readTimeout(frame);
                state.await(List.of(Wire.text(frame)), true, timeout, responder);
            }
            case AWAIT -> await(frame, responder);
            case ADD -> {
                String key = Wire.text(frame);
                state.add(key, frame.getLong(), responder);
            }
            case DELETE -> state.delete(Wire.text(frame), responder);
            case COLLECTIVE -> arrive(frame, responder);
            case ABORT -> {
                String prefix = Wire.text(frame);
                state.abort(prefix, "rank " + rank + " has aborted: " + Wire.text(frame));
                responder.succeed(new byte[0]);
            }
            case GONE ->
                responder.succeed(new Wire.Frame()
                        .numbers(state.gone())
                        .numbers(state.laterAttempts())
                        .toBytes());
            case LEAVE -> {
                leaving = true;
                job.groups().leave(this);
                responder.succeed(new byte[0]);
            }
            case ENTER -> enter(Wire.text(frame), frame.getInt(), responder);
            case EXIT -> {
                job.groups().exit(this, Wire.text(frame));
                responder.succeed(new byte[0]);
            }
            case HEARTBEAT -> responder.succeed(new byte[0]);
            case REPORT -> {
                report(Wire.bytes(frame));
                responder.succeed(new byte[0]);
            }
        }
        return null;
    }

    private void enter(String group, int number, Responder responder) throws IOException {
        if (group.length() > Wire.MAX_KEY || number < 0) {
            throw new IOException("invalid membership of rank " + rank + ": number " + number);
        }
        String refusal = job.groups().enter(this, group, number);
        if (refusal == null) {
            responder.succeed(new byte[0]);
        } else {
            responder.fail(refusal);
        }
    }

    private static long readTimeout(ByteBuffer frame) throws IOException {
        long timeout = frame.getLong();
        if (timeout < 0 || timeout > Arguments.MAX_NANOSECONDS) {
            throw new IOException("timeout must be from 0 to " + Arguments.MAX_NANOSECONDS + " ns: " + timeout);
        }
        return timeout;
    }

    private void await(ByteBuffer frame, Responder responder) throws IOException {
        long timeout = readTimeout(frame);
        int count = frame.getInt();
        int max = frame.remaining() / Integer.BYTES;
        if (count < 0 || count > max) {
            throw new IOException("number of keys must be from 0 to " + max + ": " + count);
        }
        List<String> keys = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            keys.add(Wire.text(frame));
        }
        state.await(keys, false, timeout, responder);
    }

    private void arrive(ByteBuffer frame, Responder responder) throws IOException {
        long timeout = readTimeout(frame);
        int kind = frame.get();
        int root = frame.getInt();
        List<Integer> ranks = Wire.numbers(frame);
        List<Integer> attempts = Wire.numbers(frame);
        String key = Wire.text(frame);
        byte[] value = Wire.bytes(frame);
        if (ranks.isEmpty()) {
            ranks = state.allRanks();
        }
        int index = ranks == state.allRanks() ? rank : ranks.indexOf(rank);
        int size = state.allRanks().size();
        boolean validRanks = ranks == state.allRanks()
                || ranks.stream().allMatch(one -> one >= 0 && one < size)
                        && ranks.stream().distinct().count() == ranks.size();
        if (kind < 0
                || kind >= PendingCollective.Kind.values().length
                || index < 0
                || root < 0
                || root >= ranks.size()
                || !attempts.isEmpty() && attempts.size() != ranks.size()
                || !validRanks) {
            throw new IOException(
                    "invalid collective of rank " + rank + ": kind " + kind + ", root " + root + ", ranks " + ranks);
        }
        Signature signature = new Signature(PendingCollective.Kind.values()[kind], ranks, attempts, root);
        if (signature.attempt(index) != attempt) {
            responder.fail(
                    "'" + key + "': rank " + rank + " has taken the place of a process that was lost, as attempt "
                            + attempt + ", and this call is one of attempt " + signature.attempt(index)
                            + "; Recovery.begin lets the other ranks admit it");
            return;
        }
        state.arrive(key, signature, index, value, timeout, responder);
    }

    /** Sends the response to a request of this connection. */
    private final class RequestResponder implements Responder {
        private final int number;

        RequestResponder(int number) {
            this.number = number;
        }

        private Wire.Frame header(byte status) {
            pendingRequests--;
            return new Wire.Frame().number32(number).number8(status);
        }

        @Override
        public void succeed(byte[] content) {
            send(header(Wire.OK).raw(content).toBytes());
        }

        @Override
        public void fail(String reason) {
            send(header(Wire.FAILED).text(reason).toBytes());
        }

        @Override
        public void timeOut(String reason, List<Integer> missing) {
            send(header(Wire.TIMED_OUT).text(reason).numbers(missing).toBytes());
        }
    }
}

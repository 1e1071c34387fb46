package io.github.nccl4j.launch.store;

import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.RendezvousTimeoutException;
import io.github.nccl4j.launch.env.Endpoint;
import io.github.nccl4j.launch.env.RankValues;
import io.github.nccl4j.launch.wire.Arguments;
import io.github.nccl4j.launch.wire.MessageText;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * Opens the connection of a rank to the store: tries to connect and join until the deadline. A refusal ends the attempts, unless
 * another store may be meant: one of another job, or one that has not proven that it has the secret.
 *
 * @param server the server of this process, or null
 * @param deadline a time of {@link System#nanoTime()}, made from the timeout of the settings
 * @param logAfter the nanoseconds after which a line is logged
 */
record StoreConnector(
        RankValues self, StoreSession.Settings settings, StoreServer server, long deadline, long logAfter) {
    private static final long MIN_PAUSE_MILLIS = 5;
    private static final long MAX_PAUSE_MILLIS = 500;
    private static final long MAX_ATTEMPT_MILLIS = 20_000;

    /** Returns a client that has joined. The caller closes it and calls {@link EventLoop#releaseByClient}. */
    StoreClient connect() {
        EventLoop loop;
        try {
            loop = EventLoop.acquireForClient();
        } catch (IOException noSelector) {
            throw new RendezvousException(
                    "rank " + self.rank() + " can't create the thread of its store: " + noSelector, noSelector);
        }
        boolean done = false;
        try {
            StoreClient client = join(loop);
            done = true;
            return client;
        } finally {
            if (!done) {
                EventLoop.releaseByClient();
            }
        }
    }

    /** The address of the store, such as "node0:29500". */
    String address() {
        return server == null
                ? Endpoint.format(self.masterAddress(), self.masterPort())
                : Endpoint.format(self.masterAddress(), server.address().getPort());
    }

    private StoreClient join(EventLoop loop) {
        WaitLog log = new WaitLog(System.nanoTime(), logAfter);
        IOException last = null;
        long pause = MIN_PAUSE_MILLIS;
        while (true) {
            if (millisLeft() <= 0) {
                throw new RendezvousTimeoutException(
                        "rank " + self.rank() + " could not reach " + settings.storeName() + " at " + address()
                                + " within "
                                + MessageText.seconds(Arguments.nanoseconds(settings.timeout()))
                                + (last == null ? "" : ": " + MessageText.reason(last)),
                        isKeptByRank() ? List.of(0) : List.of());
            }
            IOException inRound = null;
            try {
                for (InetSocketAddress address : addresses()) {
                    try {
                        long millis = Math.max(1, Math.min(millisLeft(), MAX_ATTEMPT_MILLIS));
                        return attempt(loop, address, millis, log, last);
                    } catch (IOException failure) {
                        // The failure of a complete attempt is more useful than the failure of an attempt that the
                        // deadline has cut short, and a refusal more useful than an address at which nobody listens.
                        boolean cutShort = millisLeft() <= 0 && failure.getCause() instanceof TimeoutException;
                        if (cutShort ? last == null : !(inRound instanceof ClientHandshake.RefusedException)) {
                            last = failure;
                            inRound = failure;
                        }
                    }
                }
                logIfDue(log, last);
                // Random, so that ranks that failed at the same time do not retry at the same time.
                Thread.sleep(Math.max(
                        0, Math.min(millisLeft(), ThreadLocalRandom.current().nextLong(pause / 2, pause + 1))));
                pause = Math.min(2 * pause, MAX_PAUSE_MILLIS);
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
                throw new RendezvousException(
                        "rank " + self.rank() + " was interrupted while it waited for " + settings.storeName(),
                        interrupted);
            }
        }
    }

    private void logIfDue(WaitLog log, IOException last) {
        log.logIfDue(
                System.nanoTime(),
                nanos -> "rank " + self.rank() + " waits for " + settings.storeName() + " at " + address() + ": "
                        + (last == null ? "no response" : MessageText.reason(last)) + " (" + MessageText.seconds(nanos)
                        + " so far)");
    }

    private boolean isKeptByRank() {
        return settings.ofRank();
    }

    private long millisLeft() {
        return TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime());
    }

    /** Resolves the name for each attempt, because the name may be registered only after rank 0 has started. */
    private List<InetSocketAddress> addresses() {
        if (server != null) {
            InetSocketAddress own = server.address();
            return List.of(
                    own.getAddress().isAnyLocalAddress()
                            ? new InetSocketAddress(InetAddress.getLoopbackAddress(), own.getPort())
                            : own);
        }
        try {
            return Arrays.stream(InetAddress.getAllByName(self.masterAddress()))
                    .map(address -> new InetSocketAddress(address, self.masterPort()))
                    .toList();
        } catch (UnknownHostException notYet) {
            return List.of(InetSocketAddress.createUnresolved(self.masterAddress(), self.masterPort()));
        }
    }

    private StoreClient attempt(
            EventLoop loop, InetSocketAddress address, long timeoutMillis, WaitLog log, IOException last)
            throws IOException, InterruptedException {
        if (address.isUnresolved()) {
            throw new UnknownHostException("the host name " + address.getHostString() + " can't be resolved");
        }
        StoreClient client =
                StoreClient.connect(loop, address, self, settings.secret(), settings.storeName(), settings.heartbeat());
        boolean joined = false;
        try {
            long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeoutMillis);
            while (!joined) {
                long now = System.nanoTime();
                try {
                    client.joined().get(Math.min(end - now, log.left(now)), TimeUnit.NANOSECONDS);
                    joined = true;
                } catch (TimeoutException silent) {
                    if (System.nanoTime() - end >= 0) {
                        throw new IOException(
                                "no response within " + MessageText.seconds(timeoutMillis * 1_000_000), silent);
                    }
                    logIfDue(log, last);
                }
            }
            return client;
        } catch (ExecutionException failure) {
            if (failure.getCause() instanceof ClientHandshake.RefusedException refused && !refused.isRetryable()) {
                throw new RendezvousException(
                        "rank " + self.rank() + " can't join the store at " + address() + ": " + refused.getMessage(),
                        refused);
            }
            throw failure.getCause() instanceof IOException cause ? cause : new IOException(failure.getCause());
        } finally {
            if (!joined) {
                client.abandon();
            }
        }
    }
}

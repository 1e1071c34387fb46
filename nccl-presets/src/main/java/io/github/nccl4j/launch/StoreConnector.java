package io.github.nccl4j.launch;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** The way into a store: attempts until the deadline. */
record StoreConnector(RankInfo self, Secret secret, StoreServer server, long deadline, Duration timeout) {
    private static final long FIRST_PAUSE_MILLIS = 5;
    private static final long LONGEST_PAUSE_MILLIS = 500;
    private static final long LONGEST_ATTEMPT_MILLIS = 20_000;

    /** Joins, as the only user of the result. */
    StoreClient enter() {
        EventLoop loop;
        try {
            loop = EventLoop.acquireForClient();
        } catch (IOException noSelector) {
            throw new RendezvousException("rank " + self.rank() + ": " + noSelector, noSelector);
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

    String place() {
        return server == null
                ? Endpoint.format(self.masterAddress(), self.masterPort())
                : Endpoint.format(self.masterAddress(), server.address().getPort());
    }

    private StoreClient join(EventLoop loop) {
        IOException last = null;
        long pause = FIRST_PAUSE_MILLIS;
        while (true) {
            if (left() <= 0) {
                throw new RendezvousTimeoutException(
                        "rank " + self.rank() + " could not reach rank 0 at " + place() + " within "
                                + MessageText.seconds(Arguments.nanoseconds(timeout))
                                + (last == null ? "" : ": " + MessageText.reason(last)),
                        List.of(0));
            }
            try {
                for (InetSocketAddress address : addresses()) {
                    try {
                        return attempt(loop, address, Math.max(1, Math.min(left(), LONGEST_ATTEMPT_MILLIS)));
                    } catch (IOException failure) {
                        // That the deadline cut an attempt short says less than why those before it failed.
                        boolean cutShort = left() <= 0 && failure.getCause() instanceof TimeoutException;
                        last = last != null && cutShort ? last : failure;
                    }
                }
                // Many that fail together should not come again together.
                Thread.sleep(
                        Math.max(0, Math.min(left(), ThreadLocalRandom.current().nextLong(pause / 2, pause + 1))));
                pause = Math.min(2 * pause, LONGEST_PAUSE_MILLIS);
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
                throw new RendezvousException(
                        "rank " + self.rank() + " was interrupted while it waited for rank 0", interrupted);
            }
        }
    }

    /** In milliseconds. */
    private long left() {
        return TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime());
    }

    /** Looked up each time: a name may become known only when rank 0 has started. */
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

    private StoreClient attempt(EventLoop loop, InetSocketAddress address, long patienceMillis)
            throws IOException, InterruptedException {
        if (address.isUnresolved()) {
            throw new UnknownHostException("the name " + address.getHostString() + " is not known");
        }
        StoreClient client = StoreClient.connect(loop, address, self, secret);
        boolean joined = false;
        try {
            client.joined().get(patienceMillis, TimeUnit.MILLISECONDS);
            joined = true;
            return client;
        } catch (TimeoutException silent) {
            throw new IOException("no answer within " + MessageText.seconds(patienceMillis * 1_000_000), silent);
        } catch (ExecutionException failure) {
            if (failure.getCause() instanceof StoreClient.RefusedException refused && !refused.isForNow()) {
                throw new RendezvousException(
                        "rank " + self.rank() + " can't join at " + place() + ": " + refused.getMessage(), refused);
            }
            throw failure.getCause() instanceof IOException cause ? cause : new IOException(failure.getCause());
        } finally {
            if (!joined) {
                client.abandon();
            }
        }
    }
}

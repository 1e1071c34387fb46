package io.github.nccl4j.launch.store;

import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.env.Endpoint;
import io.github.nccl4j.launch.env.RankValues;
import java.io.IOException;
import java.lang.System.Logger.Level;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.net.UnknownHostException;

/** Chooses the address at which rank 0 listens, starts the server, and warns about an address that is unsafe or unreachable. */
final class StoreServerStarter {
    private StoreServerStarter() {}

    /** Starts the server. The address is that of the master if {@code bind} is null; a single rank ignores it. */
    static StoreServer start(RankValues self, InetAddress bind, Secret secret) {
        // A single rank must not occupy a port that another job may need.
        boolean single = self.worldSize() == 1;
        InetAddress address = single ? InetAddress.getLoopbackAddress() : bind == null ? masterAddress(self) : bind;
        StoreServer server = StoreServer.start(self, address, single ? 0 : self.masterPort(), secret);
        warn(self, address, secret, bind == null);
        return server;
    }

    /** Returns the first address of the master that belongs to this host. */
    private static InetAddress masterAddress(RankValues self) {
        try {
            for (InetAddress address : InetAddress.getAllByName(self.masterAddress())) {
                if (NetworkInterface.getByInetAddress(address) != null) {
                    return address;
                }
            }
        } catch (UnknownHostException unknown) {
            throw new RendezvousException(
                    "MASTER_ADDR must be a name that rank 0 can resolve: " + self.masterAddress(), unknown);
        } catch (IOException failure) {
            throw new RendezvousException(
                    "rank 0 can't check whether its host has the address " + self.masterAddress() + " (MASTER_ADDR): "
                            + failure,
                    failure);
        }
        throw new RendezvousException("MASTER_ADDR must be an address of the host of rank 0: " + self.masterAddress()
                + "; if a service or a router forwards to this host, set NCCL4J_STORE_BIND to the address that it forwards"
                + " to, or to 0.0.0.0");
    }

    /**
     * True if ranks may be on other hosts. Without local ranks this is not known; then a loopback address as the master's
     * address means a single host.
     */
    private static boolean mayHaveOtherHosts(RankValues self) {
        return self.hasLocalRank() ? !self.isOnOneHost() : !self.masterAddress().matches("localhost|127\\..*|::1");
    }

    /** Warns if a store without a secret listens in a network. */
    static void warnIfExposed(String endpoint, InetAddress address, Secret secret) {
        if (!address.isLoopbackAddress() && secret == null) {
            System.getLogger("io.github.nccl4j")
                    .log(
                            Level.WARNING,
                            "the store at " + endpoint + " has no secret: any process that can reach it can read and"
                                    + " change the values of the ranks, including the unique ids of communicators. Set "
                                    + Secret.VARIABLE + " or " + Secret.FILE_VARIABLE + " for all ranks");
        }
    }

    private static void warn(RankValues self, InetAddress address, Secret secret, boolean isMasterAddress) {
        String endpoint = Endpoint.format(address.getHostAddress(), self.masterPort());
        warnIfExposed(endpoint, address, secret);
        if (address.isLoopbackAddress() && isMasterAddress && mayHaveOtherHosts(self)) {
            System.getLogger("io.github.nccl4j")
                    .log(
                            Level.WARNING,
                            "the store listens at the loopback address " + endpoint
                                    + ", to which this host resolves the name "
                                    + self.masterAddress()
                                    + ": ranks on other hosts can't reach it. Set MASTER_ADDR or NCCL4J_STORE_BIND to an"
                                    + " address of the network");
        }
    }
}

package io.github.nccl4j.launch;

import java.io.IOException;
import java.lang.System.Logger.Level;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.net.UnknownHostException;

/** Where rank 0 listens. */
final class StoreServerStarter {
    private StoreServerStarter() {}

    static StoreServer start(RankInfo self, InetAddress bind, Secret secret) {
        // One who is alone needs no port that others know, and must not be in their way.
        boolean alone = self.worldSize() == 1;
        InetAddress address = alone ? InetAddress.getLoopbackAddress() : bind == null ? ofMaster(self) : bind;
        StoreServer server = StoreServer.start(self, address, alone ? 0 : self.masterPort(), secret);
        warn(self, address, secret, bind == null);
        return server;
    }

    /** The master's address, if it is one of this host. */
    private static InetAddress ofMaster(RankInfo self) {
        try {
            for (InetAddress address : InetAddress.getAllByName(self.masterAddress())) {
                if (NetworkInterface.getByInetAddress(address) != null) {
                    return address;
                }
            }
        } catch (UnknownHostException unknown) {
            throw new RendezvousException(
                    "rank 0 is to listen at " + self.masterAddress() + " (MASTER_ADDR), and does not know this name",
                    unknown);
        } catch (IOException failure) {
            throw new RendezvousException(
                    "rank 0 can't tell whether " + self.masterAddress() + " is its own address: " + failure, failure);
        }
        throw new RendezvousException("rank 0 is to listen at " + self.masterAddress()
                + " (MASTER_ADDR), which is no address of its host; if a service or a router forwards to this host, set"
                + " NCCL4J_STORE_BIND to the address that it forwards to, or to 0.0.0.0");
    }

    /** A loopback address that was given as such is for ranks of one host, if their launcher does not say otherwise. */
    private static boolean mayHaveOtherHosts(RankInfo self) {
        return self.hasLocalRank() ? !self.isOnOneHost() : !self.masterAddress().matches("localhost|127\\..*|::1");
    }

    private static void warn(RankInfo self, InetAddress address, Secret secret, boolean byMaster) {
        String place = Endpoint.format(address.getHostAddress(), self.masterPort());
        if (!address.isLoopbackAddress() && secret == null) {
            System.getLogger("io.github.nccl4j")
                    .log(
                            Level.WARNING,
                            "the store at " + place + " has no secret: everyone who can reach it can read and"
                                    + " change what the ranks tell each other, the unique ids of communicators too. Set "
                                    + Secret.VARIABLE + " or " + Secret.FILE_VARIABLE + " for all ranks");
        }
        if (address.isLoopbackAddress() && byMaster && mayHaveOtherHosts(self)) {
            System.getLogger("io.github.nccl4j")
                    .log(
                            Level.WARNING,
                            "the store listens at " + place + ", which is what this host knows by the name "
                                    + self.masterAddress()
                                    + ": ranks of other hosts can't reach it. Set MASTER_ADDR to an"
                                    + " address of the network, or NCCL4J_STORE_BIND");
        }
    }
}

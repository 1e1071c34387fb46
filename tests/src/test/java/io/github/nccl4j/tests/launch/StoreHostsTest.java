package io.github.nccl4j.tests.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.launch.TcpStore;
import io.github.nccl4j.tests.ChildJvm;
import io.github.nccl4j.tests.ChildJvm.Outcome;
import io.github.nccl4j.tests.ChildJvm.Running;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests of a store with ranks on several hosts, which are network namespaces. */
@Timeout(600)
class StoreHostsTest {
    private static final int HOSTS = 3;
    private static final int PER_HOST = 2;
    private static final int WORLD = HOSTS * PER_HOST;

    /** Before each test, not before all: the report of a class that is skipped as a whole names no tests. */
    @BeforeEach
    void requireHosts() {
        Hosts.require();
    }

    /** A rank with the environment of Slurm. Its optional argument is an address that it tries to connect to. */
    public static final class OneRank {
        private OneRank() {}

        public static void main(String[] args) throws IOException {
            RankInfo self = RankInfo.fromEnvironment();
            try (TcpStore store = TcpStore.open(self)) {
                byte[] id = store.broadcast("id", 0, () -> new byte[] {42}, store.timeout());
                int sum = store.gather("ranks", new byte[] {(byte) self.rank()}, store.timeout()).stream()
                        .mapToInt(value -> value[0])
                        .sum();
                if (args.length > 0 && self.rank() == WORLD - 1) {
                    try (Socket other = new Socket()) {
                        other.connect(new InetSocketAddress(args[0], self.masterPort()), 5000);
                        System.out.println("the store listens at " + args[0]);
                    } catch (IOException refused) {
                        System.out.println("no store listens at " + args[0]);
                    }
                }
                store.barrier("end", Rendezvous.DEFAULT_TIMEOUT);
                System.out.println(self + " got " + id[0] + " and " + sum);
            }
        }
    }

    private static List<Outcome> run(Hosts hosts, String master, String... arguments) {
        List<Running> running = new ArrayList<>();
        for (int rank = WORLD - 1; rank >= 0; rank--) {
            int host = rank / PER_HOST;
            ChildJvm jvm = new ChildJvm()
                    .by(hosts.on(host))
                    .environment("SLURM_PROCID", "" + rank)
                    .environment("SLURM_STEP_ID", "0")
                    .environment("SLURM_JOB_ID", "4711")
                    .environment("SLURM_STEP_NUM_TASKS", "" + WORLD)
                    .environment("SLURM_LOCALID", "" + rank % PER_HOST)
                    .environment("SLURM_NODEID", "" + host)
                    .environment("SLURM_STEP_TASKS_PER_NODE", PER_HOST + "(x" + HOSTS + ")")
                    .environment("SLURM_STEP_NODELIST", "10.77.0.[1-3]")
                    .environment("NCCL4J_STORE_SECRET", "a secret of more than sixteen bytes");
            if (!master.isEmpty()) {
                jvm.environment("MASTER_ADDR", master);
            }
            running.add(jvm.start(OneRank.class, arguments));
        }
        return running.stream().map(Running::await).toList();
    }

    private static void assertConnected(List<Outcome> ranks, String address) {
        for (Outcome rank : ranks) {
            assertEquals(0, rank.exitCode(), rank::output);
            assertTrue(rank.output().contains("meeting at " + address + ":"), rank::output);
            assertTrue(rank.output().contains(", by Slurm got 42 and 15"), rank::output);
        }
    }

    /** The master address is the first host of Slurm's list, or set, by IPv6 with and without brackets. */
    @ParameterizedTest
    @ValueSource(strings = {"", "fd77::1", "[fd77::1]"})
    void connectsRanksOfSeveralHosts(String master) throws IOException {
        try (Hosts hosts = Hosts.connected(HOSTS)) {
            assertConnected(run(hosts, master), master.isEmpty() ? "10.77.0.1" : "[fd77::1]");
        }
    }

    @Test
    void rankZeroListensAtMasterAddressOnly() throws IOException {
        try (Hosts hosts = Hosts.connected(HOSTS)) {
            hosts.addAddress(0, "10.77.0.101/24");
            List<Outcome> ranks = run(hosts, "10.77.0.1", "10.77.0.101");
            assertConnected(ranks, "10.77.0.1");
            assertTrue(ranks.get(0).output().contains("no store listens at 10.77.0.101"), ranks.get(0)::output);
        }
    }
}

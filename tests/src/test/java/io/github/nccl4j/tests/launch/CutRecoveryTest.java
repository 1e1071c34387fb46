package io.github.nccl4j.tests.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int64;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.NcclRemoteException;
import io.github.nccl4j.highlevel.NcclTimeoutException;
import io.github.nccl4j.highlevel.Recovery;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.TcpStore;
import io.github.nccl4j.tests.ChildJvm;
import io.github.nccl4j.tests.ChildJvm.Outcome;
import io.github.nccl4j.tests.ChildJvm.Running;
import io.github.nccl4j.tests.launch.CutLinksTest.Cut;
import io.github.nccl4j.tools.launch.ChildProcesses;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Ranks of a communicator on several hosts, which are network namespaces, and a link that is cut: the side of the store continues
 * alone.
 */
@Timeout(600)
@Tag("alone")
class CutRecoveryTest {
    private static final Duration LIMIT = Duration.ofSeconds(60);
    private static final Disturbance DISTURBANCE = new Disturbance(50, 20, 1);

    @TempDir
    Path folder;

    /** Before each test, not before all: the report of a class that is skipped as a whole names no tests. */
    @BeforeEach
    void requireHosts() {
        Hosts.require();
    }

    /** A rank that adds in steps. Its argument is the number of ranks with which it ends. */
    public static final class AddingRank {
        private static final int ELEMENTS = 100_000;
        private static final int STEPS = 20;

        private AddingRank() {}

        public static void main(String[] args) {
            RankInfo self = RankInfo.fromEnvironment();
            Device device = Device.host();
            try (TcpStore store = TcpStore.open(self);
                    CudaStream stream = CudaStream.nonBlocking(device);
                    DeviceBuffer<Int64> sum = device.allocate(ElementType.INT64, ELEMENTS);
                    DeviceBuffer<Int64> state = device.allocate(ElementType.INT64, ELEMENTS);
                    Recovery recovery = Recovery.begin(
                            store,
                            "adding",
                            Communicator.builder().device(device).deadline(LIMIT))) {
                run(store, recovery, Integer.parseInt(args[0]), sum, state, stream);
            }
        }

        /** Prints before the resources are closed: to close a communicator whose links are cut takes up to a second. */
        private static void run(
                TcpStore store,
                Recovery recovery,
                int last,
                DeviceBuffer<Int64> sum,
                DeviceBuffer<Int64> state,
                CudaStream stream) {
            try {
                add(store, recovery, last, sum, state, stream);
            } catch (RendezvousException failure) {
                print("has lost: " + failure.getMessage());
            }
        }

        private static void add(
                TcpStore store,
                Recovery recovery,
                int last,
                DeviceBuffer<Int64> sum,
                DeviceBuffer<Int64> state,
                CudaStream stream) {
            long step = 0;
            int right = 0;
            while (recovery.members().size() > last || right < STEPS) {
                try {
                    if (recovery.admit(LIMIT)) {
                        step = recovery.broadcastState(step, stream, state);
                        require(state, step, "the state");
                    }
                    sum.fill(store.rank() + 1L);
                    recovery.communicator().allReduce(sum, ReduceOp.SUM, stream);
                    recovery.communicator().work(stream).await();
                    require(
                            sum,
                            recovery.members().stream()
                                    .mapToLong(rank -> rank + 1)
                                    .sum(),
                            "the sum of " + recovery.members());
                    step++;
                    right++;
                    state.fill(step);
                    if (right == STEPS) {
                        print("adds with " + recovery.members());
                    }
                } catch (NcclRemoteException | NcclTimeoutException lost) {
                    print("fails: " + lost);
                    right = 0;
                    recovery.recover(LIMIT);
                    print("continues with " + recovery.members());
                }
            }
            store.among("end", recovery.members()).barrier("end", LIMIT);
            print("ends with " + recovery.members());
        }

        private static void require(DeviceBuffer<Int64> buffer, long expected, String what) {
            long[] elements = new long[ELEMENTS];
            buffer.copyTo(elements);
            for (long element : elements) {
                if (element != expected) {
                    throw new IllegalStateException(what + " must be " + expected + ": " + element);
                }
            }
        }

        private static void print(String text) {
            System.out.println("at " + System.currentTimeMillis() + " " + text.replace('\n', ' '));
        }
    }

    private List<Running> start(Hosts hosts, List<Integer> hostOfRank, int last) {
        List<Running> ranks = new ArrayList<>();
        for (int rank = 0; rank < hostOfRank.size(); rank++) {
            ChildJvm jvm = CutLinksTest.rank(hosts, hostOfRank.get(rank), rank, hostOfRank.size())
                    .property("nccl4j.engine", "host")
                    .environment("NCCL_SOCKET_IFNAME", "eth0");
            ranks.add(jvm.start(AddingRank.class, "" + last));
        }
        return ranks;
    }

    /** The store is on host 0; a host is cut off, then perhaps another one. */
    @ParameterizedTest
    @CsvSource({"0 0 1 1, 1, false", "0 1 1 1, 1, false", "0 0 1 2, 2 1, false", "0 0 1, 1, true", "0 0 1 2, 2 1, true"
    })
    void theSideOfTheStoreContinuesAlone(String hostOfRank, String cuts, boolean disturbed) throws Exception {
        List<Integer> hostOf = numbers(hostOfRank);
        int count = hostOf.get(hostOf.size() - 1) + 1;
        int last = (int)
                hostOf.stream().filter(host -> !numbers(cuts).contains(host)).count();
        try (Hosts hosts = disturbed ? Hosts.disturbed(count, DISTURBANCE, folder) : Hosts.connected(count)) {
            Running store = CutLinksTest.store(hosts);
            List<Running> ranks = start(hosts, hostOf, last);
            List<Integer> left = IntStream.range(0, hostOf.size()).boxed().toList();
            String what = count + " hosts, ranks at " + hostOfRank + (disturbed ? ", " + DISTURBANCE : "");
            for (int host : numbers(cuts)) {
                List<Integer> lost =
                        left.stream().filter(rank -> hostOf.get(rank) == host).toList();
                for (int rank : left) {
                    ranks.get(rank).awaitText("adds with " + left);
                }
                long moment = CutLinksTest.cut(hosts, Cut.LINK, host);
                left = left.stream().filter(rank -> !lost.contains(rank)).toList();
                for (int rank : left) {
                    ranks.get(rank).awaitText("continues with " + left);
                    String told = "fails: .*The store reports: rank (" + alternatives(lost) + ") \\("
                            + Pattern.quote(Hosts.address(host)) + ", process \\d+\\) is lost: it was silent for";
                    CutLinksTest.assertInTime(
                            what + ": rank " + rank + " is told", millis(ranks.get(rank), moment, told));
                }
                for (int rank : lost) {
                    assertHasLost(what, rank, ranks.get(rank).await(), moment);
                }
            }
            for (int rank : left) {
                Outcome outcome = ranks.get(rank).await();
                assertEquals(0, outcome.exitCode(), outcome.output());
                CutLinksTest.millis(outcome, 0, Pattern.quote("ends with " + left));
            }
            ChildProcesses.kill(store.process());
        }
    }

    /** A rank that is cut off is told so in its operation, or in its call at the store if it is making one; it can't recover. */
    private static void assertHasLost(String what, int rank, Outcome outcome, long moment) {
        assertEquals(0, outcome.exitCode(), outcome.output());
        String store = "its connection to the store at " + Pattern.quote(Hosts.address(0)) + ":\\d+";
        String hasLost = "has lost: rank " + rank + " has lost " + store + ": it was silent for";
        String fails = "fails: .*This rank is lost: rank " + rank + " \\(this process\\) is lost: " + store
                + " has ended \\(it was silent for .*\\), and the other ranks count it as lost";
        CutLinksTest.assertInTime(
                what + ": rank " + rank + ", which is cut off, is told",
                CutLinksTest.millis(outcome, moment, "(" + fails + "|" + hasLost + ")"));
        CutLinksTest.millis(outcome, moment, hasLost);
        assertFalse(outcome.output().contains("ends with"), outcome.output());
    }

    private static long millis(Running rank, long moment, String text) {
        return CutLinksTest.millis(new Outcome(0, rank.soFar().toString()), moment, text);
    }

    private static String alternatives(List<Integer> ranks) {
        return String.join("|", ranks.stream().map(String::valueOf).toList());
    }

    private static List<Integer> numbers(String text) {
        return Stream.of(text.split(" ")).map(Integer::valueOf).toList();
    }
}

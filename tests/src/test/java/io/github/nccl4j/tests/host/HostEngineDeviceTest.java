package io.github.nccl4j.tests.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.global.nccl_device;
import io.github.nccl4j.nccl_device.ncclCommProperties_t;
import io.github.nccl4j.nccl_device.ncclMultimemHandle_t;
import io.github.nccl4j.nccl_device.ncclTeam_t;
import io.github.nccl4j.tests.ChildJvm;
import io.github.nccl4j.tools.support.Threads;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.IntPointer;
import org.bytedeco.javacpp.LongPointer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The host engine's part of the device API: teams, properties, and addresses of windows. */
@Timeout(value = 10, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class HostEngineDeviceTest {
    private static final int BYTES = 4096;

    private static String text(ncclTeam_t team) {
        try (team) {
            return team.rank() + "/" + team.nRanks() + "*" + team.stride();
        }
    }

    /** "world lsa rail teams: what the ranks' windows hold", of one whose ranks all call this. */
    static String reached(Rank self) {
        StringBuilder text = new StringBuilder();
        for (ncclTeam_t team : List.of(
                nccl_device.ncclTeamWorld(self.comm()),
                nccl_device.ncclTeamLsa(self.comm()),
                nccl_device.ncclTeamRail(self.comm()))) {
            text.append(text(team)).append(' ');
        }
        try (ncclCommProperties_t told = new ncclCommProperties_t();
                OneSided mine = OneSided.open(self, BYTES);
                LongPointer cell = new LongPointer(1)) {
            Rank.check(nccl_device.ncclCommQueryProperties(self.comm(), told.address()), "ncclCommQueryProperties");
            assertEquals(self.rank(), told.rank());
            assertEquals(self.count(), told.nRanks());
            text.append(told.nLsaTeams()).append(':');
            mine.bytes().fill(self.rank() + 1);
            barrier(self);
            for (int peer = 0; peer < self.count(); peer++) {
                Rank.check(
                        nccl_device.ncclGetPeerDevicePointer(mine.window(), 7, peer, cell.address()),
                        "ncclGetPeerDevicePointer");
                text.append(' ')
                        .append(
                                cell.get() == 0
                                        ? "-"
                                        : ""
                                                + OneSided.at(cell.get(), BYTES - 7)
                                                        .get(BYTES - 8));
            }
            barrier(self);
        }
        return text.toString();
    }

    private static void barrier(Rank self) {
        try (IntPointer data = new IntPointer(1)) {
            Rank.check(
                    nccl.ncclAllReduce(data.address(), data.address(), 1, nccl.ncclInt, nccl.ncclSum, self.comm(), 0),
                    "ncclAllReduce");
        }
    }

    @Test
    void ranksOfOneProcessReachEachOther() throws Exception {
        List<String> ranks = HostEngineTest.inThreads(3, self -> {
            String text = reached(self);
            self.destroy();
            return text;
        });
        assertEquals(
                List.of("0/3*1 0/3*1 0/1*3 1: 1 2 3", "1/3*1 1/3*1 0/1*3 1: 1 2 3", "2/3*1 2/3*1 0/1*3 1: 1 2 3"),
                ranks);
    }

    /** Two ranks in each process; and where no size of a team but 1 fits, since the first or the last is alone. */
    @Test
    void ranksOfOtherProcessesAreNotReached() throws Exception {
        assertEquals(
                List.of(
                        "0/4*1 0/2*1 0/2*2 2: 1 2 - -",
                        "1/4*1 1/2*1 0/2*2 2: 1 2 - -",
                        "2/4*1 0/2*1 1/2*2 2: - - 3 4",
                        "3/4*1 1/2*1 1/2*2 2: - - 3 4"),
                inProcesses(2, 4));
        assertEquals(
                List.of("0/3*1 0/1*1 0/3*1 3: 1 - -", "1/3*1 0/1*1 1/3*1 3: - 2 -", "2/3*1 0/1*1 2/3*1 3: - - 3"),
                inProcesses(2, 3));
        assertEquals(
                List.of(
                        "0/5*1 0/1*1 0/5*1 5: 1 - - - -",
                        "1/5*1 0/1*1 1/5*1 5: - 2 - - -",
                        "2/5*1 0/1*1 2/5*1 5: - - 3 - -",
                        "3/5*1 0/1*1 3/5*1 5: - - - 4 -",
                        "4/5*1 0/1*1 4/5*1 5: - - - - 5"),
                inProcesses(1, 5));
    }

    /** The first ranks are threads here, the others of processes with two each. */
    private static List<String> inProcesses(int first, int count) throws Exception {
        String id = Rank.newId();
        List<ChildJvm.Running> others = new ArrayList<>();
        for (int rank = first; rank < count; rank += 2) {
            others.add(new ChildJvm()
                    .property("nccl4j.engine", "host")
                    .start(HostEngineScenarios.class, "two-ranks", id, "" + rank, "" + count));
        }
        List<String> all = new ArrayList<>(inThreads(id, 0, first, count));
        for (ChildJvm.Running other : others) {
            ChildJvm.Outcome outcome = other.await();
            assertEquals(0, outcome.exitCode(), outcome.output());
            all.addAll(outcome.output().lines().toList());
        }
        return all;
    }

    private static List<String> inThreads(String id, int from, int to, int count) throws Exception {
        List<Callable<String>> ranks = new ArrayList<>();
        for (int r = from; r < to; r++) {
            int rank = r;
            ranks.add(() -> run(id, rank, count));
        }
        return Threads.together(ranks, Duration.ofMinutes(5));
    }

    private static String run(String id, int rank, int count) {
        Rank self = Rank.join(id, rank, count);
        String text = reached(self);
        self.destroy();
        return text;
    }

    /** A rank and the next, if there is one, as threads; prints what each has seen. */
    static void runTwo(String id, int first, int count) throws Exception {
        inThreads(id, first, Math.min(first + 2, count), count).forEach(System.out::println);
    }

    @Test
    void ranksOfTeamsAreTranslated() throws Exception {
        HostEngineTest.inThreads(4, self -> {
            try (ncclTeam_t team = new ncclTeam_t()) {
                // Every second rank, of which this is the first or second.
                team.nRanks(2).rank(self.rank() / 2).stride(2);
                for (int i = 0; i < 2; i++) {
                    int expected = self.rank() % 2 + 2 * i;
                    assertEquals(expected, nccl_device.ncclTeamRankToWorld(self.comm(), team.address(), i));
                    assertEquals(expected, nccl_device.ncclTeamRankToLsa(self.comm(), team.address(), i));
                }
            }
            self.destroy();
            return null;
        });
    }

    @Test
    void structuresOfEachReleaseGetTheirLayoutAndNoByteMore() throws Exception {
        HostEngineTest.inThreads(1, self -> {
            for (int[] release :
                    new int[][] {{22902, 40}, {22903, 40}, {22907, 56}, {23007, 56}, {23102, 144}, {23203, 152}}) {
                try (ncclCommProperties_t told = new ncclCommProperties_t();
                        BytePointer bytes = new BytePointer(told).capacity(152)) {
                    told.version(release[0]);
                    bytes.position(release[1]).fill(0x55);
                    bytes.position(0);
                    Rank.check(nccl_device.ncclCommQueryProperties(self.comm(), told.address()), "" + release[0]);
                    assertEquals(152, told.size());
                    assertEquals(release[0], told.version());
                    assertEquals(1, told.nRanks());
                    for (int i = release[1]; i < 152; i++) {
                        assertEquals(0x55, bytes.get(i), "byte " + i + " of " + release[0]);
                    }
                    if (release[0] < 22907) {
                        assertEquals(nccl_device.NCCL_GIN_TYPE_NONE, bytes.get(34));
                    } else {
                        assertEquals(1, told.nLsaTeams());
                    }
                }
            }
            self.destroy();
            return null;
        });
    }

    private static void fails(int code, int result, String part) {
        assertEquals(code, result, part);
        assertTrue(nccl.ncclGetLastError(0L).contains(part), nccl.ncclGetLastError(0L));
    }

    @Test
    void wrongArgumentsAreNamed() throws Exception {
        HostEngineTest.inThreads(1, self -> {
            int usage = nccl.ncclInvalidUsage;
            int argument = nccl.ncclInvalidArgument;
            try (ncclCommProperties_t told = new ncclCommProperties_t();
                    ncclMultimemHandle_t none = new ncclMultimemHandle_t();
                    OneSided mine = OneSided.open(self, BYTES);
                    LongPointer cell = new LongPointer(1)) {
                fails(argument, nccl_device.ncclCommQueryProperties(0L, told.address()), "comm argument is NULL");
                fails(argument, nccl_device.ncclCommQueryProperties(self.comm(), 0L), "props argument is NULL");
                told.version(nccl.NCCL_VERSION_CODE + 1);
                fails(usage, nccl_device.ncclCommQueryProperties(self.comm(), told.address()), "newer than this");
                told.version(22809);
                fails(usage, nccl_device.ncclCommQueryProperties(self.comm(), told.address()), "22809, older than");
                told.magic(1);
                fails(usage, nccl_device.ncclCommQueryProperties(self.comm(), told.address()), "magic 0x1");
                long window = mine.window();
                long to = cell.address();
                fails(argument, nccl_device.ncclGetPeerDevicePointer(0L, 0, 0, to), "window argument is NULL");
                fails(argument, nccl_device.ncclGetPeerDevicePointer(window, 0, 0, 0L), "outPtr argument is NULL");
                fails(argument, nccl_device.ncclGetPeerDevicePointer(12345L, 0, 0, to), "is no window of a live");
                fails(argument, nccl_device.ncclGetPeerDevicePointer(window, 0, 1, to), "invalid peer 1");
                fails(argument, nccl_device.ncclGetPeerDevicePointer(window, 0, -1, to), "invalid peer -1");
                fails(argument, nccl_device.ncclGetLsaDevicePointer(window, 0, 1, to), "invalid lsaRank 1");
                fails(argument, nccl_device.ncclGetLsaDevicePointer(window, BYTES, 0, to), "offset 4096 is not within");
                Rank.check(nccl_device.ncclGetLsaDevicePointer(window, BYTES - 1, 0, to), "the last byte");
                assertEquals(mine.memory() + BYTES - 1, cell.get());
                fails(
                        argument,
                        nccl_device.ncclGetMultimemDevicePointer(window, 0, none.address(), to),
                        "mcBasePtr is NULL");
                none.mcBasePtr(cell);
                Rank.check(nccl_device.ncclGetMultimemDevicePointer(window, 0, none.address(), to), "no multicast");
                assertEquals(0, cell.get());
            }
            self.destroy();
            try (ncclTeam_t team = nccl_device.ncclTeamWorld(self.comm())) {
                assertEquals(0, team.nRanks());
                assertEquals(-1, nccl_device.ncclTeamRankToWorld(self.comm(), team.address(), 0));
            }
            return null;
        });
    }
}

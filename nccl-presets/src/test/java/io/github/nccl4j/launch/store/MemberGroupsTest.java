package io.github.nccl4j.launch.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.launch.wire.Notice;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Tests of {@link MemberGroups}: the notices that members get. */
class MemberGroupsTest {
    private final MemberGroups groups = new MemberGroups();
    private final Rank keeper = new Rank("keeper", true);
    private final Rank one = new Rank("one", false);
    private final Rank two = new Rank("two", false);

    /** Records the notices that it gets. */
    private static final class Rank implements MemberGroups.Member {
        private final String process;
        private final boolean isKeeper;
        private final List<String> notices = new ArrayList<>();

        Rank(String process, boolean isKeeper) {
            this.process = process;
            this.isKeeper = isKeeper;
        }

        @Override
        public String process() {
            return process;
        }

        @Override
        public boolean isKeeper() {
            return isKeeper;
        }

        @Override
        public void send(Notice notice) {
            notices.add(notice.kind() + " " + notice.group() + " " + notice.number() + " " + notice.process() + " "
                    + notice.reason() + " " + notice.nanos());
        }

        List<String> takeNotices() {
            List<String> all = List.copyOf(notices);
            notices.clear();
            return all;
        }
    }

    private void enter(Rank rank, String group, int number) {
        assertNull(groups.enter(rank, group, number));
    }

    @Test
    void otherMembersAreToldOfLossOnce() {
        enter(one, "g", 1);
        enter(two, "g", 2);
        enter(two, "h", 7);
        groups.markLost(one, "no heartbeat");
        assertEquals(List.of("LOST g 1 one no heartbeat 0"), two.takeNotices());
        assertEquals(List.of(), one.takeNotices());
        assertFalse(groups.isMember(one));
        assertTrue(groups.isMember(two));
        groups.markLost(one, "again");
        assertEquals(List.of(), two.takeNotices());
    }

    @Test
    void laterMemberGetsEarlierNotices() {
        enter(keeper, "g", 0);
        enter(one, "g", 1);
        assertEquals(List.of("KEEPER g 0 keeper  0"), one.takeNotices());
        assertEquals(List.of(), keeper.takeNotices());
        groups.markLost(one, "gone");
        enter(two, "g", 2);
        assertEquals(List.of("KEEPER g 0 keeper  0", "LOST g 1 one gone 0"), two.takeNotices());
    }

    @Test
    void keeperThatEntersLaterIsAnnounced() {
        enter(one, "g", 1);
        enter(keeper, "g", 0);
        assertEquals(List.of("KEEPER g 0 keeper  0"), one.takeNotices());
        enter(two, "h", 2);
        assertEquals(List.of(), two.takeNotices());
    }

    @Test
    void memberThatExitsGetsAndCausesNoNotice() {
        enter(one, "g", 1);
        enter(one, "h", 1);
        enter(two, "g", 2);
        enter(two, "h", 2);
        groups.exit(one, "g");
        assertTrue(groups.isMember(one));
        groups.markLost(two, "gone");
        assertEquals(List.of("LOST h 2 two gone 0"), one.takeNotices());
        groups.exit(one, "h");
        assertFalse(groups.isMember(one));
        groups.exit(one, "h");
        groups.exit(two, "g");
        groups.markLost(one, "late");
        assertEquals(List.of(), two.takeNotices());
    }

    @Test
    void leavingIsNoLoss() {
        enter(one, "g", 1);
        enter(one, "h", 1);
        enter(two, "g", 2);
        groups.leave(one);
        groups.leave(one);
        groups.markLost(one, "late");
        assertEquals(List.of(), two.takeNotices());
        assertFalse(groups.isMember(one));
        groups.markLost(two, "gone");
        assertEquals(List.of(), one.takeNotices());
    }

    /** The next group of that name knows nothing of the last one. */
    @Test
    void groupEndsWithItsLastMember() {
        enter(keeper, "exit", 0);
        groups.exit(keeper, "exit");
        enter(keeper, "leave", 0);
        groups.leave(keeper);
        enter(keeper, "loss", 0);
        groups.markLost(keeper, "gone");
        for (String group : List.of("exit", "leave", "loss")) {
            enter(one, group, 1);
        }
        assertEquals(List.of(), one.takeNotices());
    }

    @Test
    void silenceIsToldToOthersOfEachGroup() {
        enter(one, "g", 1);
        enter(one, "h", 5);
        enter(two, "g", 2);
        enter(two, "h", 6);
        enter(keeper, "other", 0);
        groups.markSilent(one, 42);
        assertEquals(
                List.of("SILENT g 1 one  42", "SILENT h 5 one  42"),
                two.takeNotices().stream().sorted().toList());
        groups.markHeard(one);
        assertEquals(
                List.of("HEARD g 1 one  0", "HEARD h 5 one  0"),
                two.takeNotices().stream().sorted().toList());
        assertEquals(List.of(), one.takeNotices());
        assertEquals(List.of(), keeper.takeNotices());
        groups.leave(one);
        groups.markSilent(one, 43);
        assertEquals(List.of(), two.takeNotices());
    }

    @Test
    void refusesTooManyGroupsOfOneRank() {
        for (int i = 0; i < MemberGroups.MAX_GROUPS; i++) {
            enter(one, "g" + i, i);
        }
        assertEquals("a rank must be a member of <= 4096 groups: 4097", groups.enter(one, "more", 1));
        enter(two, "more", 2);
        groups.exit(one, "g0");
        enter(one, "more", 1);
        groups.markLost(one, "gone");
        assertEquals(List.of("LOST more 1 one gone 0"), two.takeNotices());
    }
}

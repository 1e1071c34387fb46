package io.github.nccl4j.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.github.nccl4j.launch.RankInfo.Source;
import io.github.nccl4j.launch.wire.LocalRanks;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;

/** Tests of what a scope and the default methods of {@link Rendezvous} pass on. */
class ScopeTest {
    private static final Duration TIMEOUT = Duration.ofSeconds(5);

    /** One of two ranks, of which both send the same. */
    private static final class Recorder implements Rendezvous, Inquiry {
        private final List<String> calls = new ArrayList<>();
        private final Membership membership = new Membership() {
            @Override
            public Map<Integer, Duration> silent() {
                return Map.of();
            }

            @Override
            public void close() {}
        };
        private final StatusEntry status = () -> {};
        private Supplier<byte[]> answer;

        @Override
        public int rank() {
            return 1;
        }

        @Override
        public int size() {
            return 2;
        }

        @Override
        public List<byte[]> gather(String key, byte[] value, Duration timeout) {
            calls.add("gather " + key);
            return List.of(value, value);
        }

        @Override
        public Optional<Inquiry> inquiry(String topic, Supplier<byte[]> given) {
            calls.add("inquiry " + topic);
            answer = given;
            return Optional.of(this);
        }

        @Override
        public Optional<Membership> membership(String group, int number, Consumer<LostRank> onLoss) {
            calls.add("membership " + group + " " + number);
            return Optional.of(membership);
        }

        @Override
        public Optional<StatusEntry> status(String topic, Supplier<String> text) {
            calls.add("status " + topic + " " + text.get());
            return Optional.of(status);
        }

        @Override
        public void abort(String reason) {
            calls.add("abort " + reason);
        }

        @Override
        public Map<Integer, byte[]> ask(Duration timeout) {
            return Map.of();
        }

        @Override
        public void close() {
            calls.add("close");
        }
    }

    private static RankInfo rank(int rank, int size, int localRank, int localSize) {
        return new RankInfo(rank, size, localRank, localSize, "node0", 29500, "job", 0, Source.SLURM);
    }

    @Test
    void aScopePassesOnItsCallsButNotItsEnd() {
        Recorder whole = new Recorder();
        Rendezvous scope = whole.scope("outer").scope("inner");
        assertEquals(1, scope.rank());
        assertEquals(2, scope.size());
        byte[] value = {7};
        assertSame(value, scope.gather("key", value, TIMEOUT).get(1));
        Supplier<byte[]> answer = () -> value;
        assertSame(whole, scope.inquiry("topic", answer).orElseThrow());
        assertSame(answer, whole.answer);
        scope.abort("no memory");
        scope.close();
        assertEquals(List.of("gather outer/inner/key", "inquiry outer/inner/topic", "abort no memory"), whole.calls);
    }

    @Test
    void aScopePassesOnGroupsAndTexts() {
        Recorder whole = new Recorder();
        Rendezvous scope = whole.scope("outer");
        assertSame(whole.membership, scope.membership("group", 4, lost -> {}).orElseThrow());
        assertSame(whole.status, scope.status("topic", () -> "text").orElseThrow());
        assertEquals(List.of("membership outer/group 4", "status outer/topic text"), whole.calls);
    }

    @Test
    void failuresHaveTheirPagesAndTexts() {
        assertEquals("NCCL4J-0011", new RendezvousException("message").helpId());
        assertEquals("NCCL4J-0012", new RendezvousTimeoutException("message", List.of(2)).helpId());
        assertEquals(List.of(2, 3), new RendezvousTimeoutException("message", List.of(2, 3)).missing());
        assertEquals(
                "rank 2 (node0, process 7) is lost: no heartbeat",
                new LostRank(2, "node0, process 7", "no heartbeat").toString());
    }

    @Test
    void aRootThatIsNoRankIsRefusedBeforeAnyCall() {
        Recorder whole = new Recorder();
        for (int root : new int[] {-1, 2}) {
            assertThrows(
                    IllegalArgumentException.class, () -> whole.broadcast("key", root, () -> new byte[0], TIMEOUT));
        }
        assertEquals(List.of(), whole.calls);
    }

    @Test
    void ranksAreLocatedByTheirHosts() {
        Recorder whole = new Recorder();
        RankInfo known = rank(1, 2, 1, 2);
        assertSame(known, whole.locate(known, TIMEOUT));
        assertEquals(List.of(), whole.calls);
        // Both ranks send the same host.
        RankInfo located = whole.locate(rank(1, 2, RankInfo.UNKNOWN, RankInfo.UNKNOWN), TIMEOUT);
        assertEquals(known, located);
        assertEquals(List.of("gather " + LocalRanks.KEY), whole.calls);
        for (RankInfo other : List.of(rank(0, 2, 0, 2), rank(1, 3, 1, 2))) {
            IllegalArgumentException refused =
                    assertThrows(IllegalArgumentException.class, () -> whole.locate(other, TIMEOUT));
            assertEquals("self must be this rank of the rendezvous, rank 1 of 2: " + other, refused.getMessage());
            assertNull(refused.getCause());
        }
    }
}

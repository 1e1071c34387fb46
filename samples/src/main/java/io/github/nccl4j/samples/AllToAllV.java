package io.github.nccl4j.samples;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.library.NativeLibrary;
import io.github.nccl4j.samples.support.CountMatrix;
import io.github.nccl4j.samples.support.Pattern;
import io.github.nccl4j.samples.support.RankSession;
import io.github.nccl4j.samples.support.WindowMemory;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/**
 * Sends each rank a different number of elements, also none.
 *
 * <p>Uses VCCL's {@code ncclAlltoAllv} where the library has it, and otherwise what does the same on every NCCL: sends and receives in
 * one group.
 */
@Command(
        name = "03-all-to-all-v",
        aliases = {"03", "3", "all-to-all-v"},
        sortOptions = false,
        description = {
            "Sends every rank a different number of elements, also none (VCCL's AlltoAllv), checked element by element.",
            "",
            "VCCL's ncclAlltoAllv is used where the library has it, on a GPU with symmetric windows; else sends and receives in "
                    + "one group.",
            ""
        })
final class AllToAllV extends Sample {

    private static final int POISON = 0xff;
    private static final int SHORT_FORM = 10;
    private static final int LONG_FORM = 11;

    @Option(
            names = {"-c", "--count"},
            paramLabel = "N",
            defaultValue = "10000",
            description =
                    "Scale of the counts: a rank sends 0 to 3 times as many elements to another, and a few. Default: ${DEFAULT-VALUE}.")
    private int scale;

    @Option(names = "--send-recv", description = "Use sends and receives even where the library has ncclAlltoAllv.")
    private boolean sendRecv;

    @Override
    void validate() {
        if (scale < 1) {
            throw invalid("-c must be at least 1: " + scale);
        }
    }

    @Override
    void run(RankSession session) {
        int ranks = session.self().worldSize();
        int form = sendRecv ? 0 : NativeLibrary.alltoAllvArguments();
        boolean direct = form == SHORT_FORM || form == LONG_FORM;
        try (CountMatrix counts = new CountMatrix(ranks, this::count);
                WindowMemory memory = WindowMemory.open(session, direct, counts.largestBuffer() * Float.BYTES)) {
            fill(session, counts, memory);
            direct &= memory.registered();
            if (direct) {
                call(session, counts, memory, form);
            } else {
                group(session, counts, memory);
            }
            session.device().synchronize();
            long checked = verify(session, counts, memory);
            System.out.println("rank " + session.self().rank() + " got " + checked + " elements from " + ranks
                    + " ranks by "
                    + (direct ? "ncclAlltoAllv with " + form + " arguments" : "sends and receives in one group")
                    + ", every element checked");
            session.barrier();
        }
    }

    /** Uneven, not symmetric, and zero for some pairs, also for a rank and itself. */
    private long count(int from, int to) {
        int times = (from + 2 * to + 1) % 4;
        return times == 0 ? 0 : (long) times * scale + from + 3L * to;
    }

    private static Pattern pattern(int from, int to) {
        return Pattern.of(from * 131L + to * 17L);
    }

    private static void fill(RankSession session, CountMatrix counts, WindowMemory memory) {
        int self = session.self().rank();
        session.device().set(memory.receive(), POISON, memory.bytes());
        for (int peer = 0; peer < counts.ranks(); peer++) {
            long at = memory.send() + counts.sendDisplacement(self, peer) * Float.BYTES;
            session.device().write(at, pattern(self, peer), 0, counts.sent(self, peer));
        }
        // With ncclAlltoAllv others write into this rank's memory: nobody may begin while one is still filling.
        session.barrier();
    }

    private static void call(RankSession session, CountMatrix counts, WindowMemory memory, int form) {
        long stream = session.device().stream();
        int result = form == LONG_FORM
                ? nccl.ncclAlltoAllv(
                        memory.send(),
                        counts.sendCounts(),
                        counts.sendDisplacements(),
                        memory.receive(),
                        counts.receiveCounts(),
                        counts.receiveDisplacements(),
                        0,
                        0,
                        nccl.ncclFloat,
                        session.comm(),
                        stream)
                : nccl.ncclAlltoAllv(
                        memory.send(),
                        counts.sendCounts(),
                        counts.sendDisplacements(),
                        memory.receive(),
                        counts.receiveCounts(),
                        counts.receiveDisplacements(),
                        0,
                        nccl.ncclFloat,
                        session.comm(),
                        stream);
        session.check(result, "ncclAlltoAllv");
    }

    private static void group(RankSession session, CountMatrix counts, WindowMemory memory) {
        int self = session.self().rank();
        long stream = session.device().stream();
        session.check(nccl.ncclGroupStart(), "ncclGroupStart");
        for (int peer = 0; peer < counts.ranks(); peer++) {
            if (counts.sent(self, peer) > 0) {
                long at = memory.send() + counts.sendDisplacement(self, peer) * Float.BYTES;
                session.check(
                        nccl.ncclSend(at, counts.sent(self, peer), nccl.ncclFloat, peer, session.comm(), stream),
                        "ncclSend to rank " + peer);
            }
            if (counts.sent(peer, self) > 0) {
                long at = memory.receive() + counts.receiveDisplacement(self, peer) * Float.BYTES;
                session.check(
                        nccl.ncclRecv(at, counts.sent(peer, self), nccl.ncclFloat, peer, session.comm(), stream),
                        "ncclRecv from rank " + peer);
            }
        }
        session.check(nccl.ncclGroupEnd(), "ncclGroupEnd");
    }

    private static long verify(RankSession session, CountMatrix counts, WindowMemory memory) {
        int self = session.self().rank();
        long checked = 0;
        for (int peer = 0; peer < counts.ranks(); peer++) {
            long count = counts.sent(peer, self);
            long at = memory.receive() + counts.receiveDisplacement(self, peer) * Float.BYTES;
            check(
                    session.device().compare(at, pattern(peer, self), 0, count),
                    session,
                    count + " floats from rank " + peer);
            checked += count;
        }
        return checked;
    }
}

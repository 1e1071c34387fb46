package io.github.nccl4j.samples;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.samples.support.Pattern;
import io.github.nccl4j.samples.support.RankSession;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** Passes arrays round a ring: each rank sends to the next and receives from the previous one, both in one group. */
@Command(
        name = "02-send-recv",
        aliases = {"02", "2", "send-recv"},
        sortOptions = false,
        description = {
            "Passes arrays round a ring of ranks with send and receive in one group, checked element by element.",
            ""
        })
final class SendRecv extends Sample {

    private static final int POISON = 0xff;
    private static final long STEP = 8;

    @Option(
            names = {"-e", "--maxbytes"},
            paramLabel = "SIZE",
            defaultValue = "4M",
            converter = SizeConverter.class,
            description =
                    "Largest size in bytes, with K, M or G; sizes grow eightfold from 4 bytes. Default: ${DEFAULT-VALUE}.")
    private long maxBytes;

    @Override
    void validate() {
        if (maxBytes < Float.BYTES) {
            throw invalid("-e must be at least the size of one float, " + Float.BYTES + ": " + maxBytes);
        }
    }

    @Override
    void run(RankSession session) {
        long largest = maxBytes / Float.BYTES;
        long send = session.device().allocate(largest * Float.BYTES);
        long receive = session.device().allocate(largest * Float.BYTES);
        int sizes = 0;
        for (long count = 1; ; count = Math.min(largest, count * STEP)) {
            exchange(session, send, receive, count);
            sizes++;
            if (count == largest) {
                break;
            }
        }
        System.out.println(
                "rank " + session.self().rank() + " sent to rank " + next(session) + " and received from rank "
                        + previous(session) + ": " + sizes + " sizes from 4 to " + largest * Float.BYTES
                        + " bytes, every element checked");
    }

    private static int next(RankSession session) {
        return (session.self().rank() + 1) % session.self().worldSize();
    }

    private static int previous(RankSession session) {
        return (session.self().rank() + session.self().worldSize() - 1)
                % session.self().worldSize();
    }

    private static void exchange(RankSession session, long send, long receive, long count) {
        var device = session.device();
        device.write(send, pattern(session.self().rank(), count), 0, count);
        device.set(receive, POISON, count * Float.BYTES);
        session.check(nccl.ncclGroupStart(), "ncclGroupStart");
        session.check(
                nccl.ncclSend(send, count, nccl.ncclFloat, next(session), session.comm(), device.stream()),
                "ncclSend to rank " + next(session));
        session.check(
                nccl.ncclRecv(receive, count, nccl.ncclFloat, previous(session), session.comm(), device.stream()),
                "ncclRecv from rank " + previous(session));
        session.check(nccl.ncclGroupEnd(), "ncclGroupEnd");
        device.synchronize();
        check(
                device.compare(receive, pattern(previous(session), count), 0, count),
                session,
                count + " floats from rank " + previous(session));
    }

    private static Pattern pattern(int rank, long count) {
        return Pattern.of(rank * 37L + count);
    }
}

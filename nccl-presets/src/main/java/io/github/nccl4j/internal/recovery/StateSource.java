package io.github.nccl4j.internal.recovery;

import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.wire.Wire;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/**
 * The rank that broadcasts a program's state.
 *
 * @param rank the rank
 * @param step the number of steps that its state has completed
 */
public record StateSource(int rank, long step) {
    /** The state of a rank. The buffers are described in words. */
    private record Offer(boolean hasState, long step, List<String> buffers) {
        byte[] bytes() {
            Wire.Frame frame =
                    new Wire.Frame().number8(hasState ? 1 : 0).number64(step).number32(buffers.size());
            buffers.forEach(frame::text);
            return frame.toBytes();
        }

        static Offer of(byte[] bytes) {
            ByteBuffer frame = ByteBuffer.wrap(bytes);
            try {
                return Wire.read(frame, content -> {
                    boolean hasState = content.get() != 0;
                    long step = content.getLong();
                    int count = content.getInt();
                    List<String> buffers = new ArrayList<>();
                    for (int i = 0; i < count; i++) {
                        buffers.add(Wire.text(content));
                    }
                    return new Offer(hasState, step, buffers);
                });
            } catch (IOException invalid) {
                throw new RendezvousException("a rank sent an invalid description of its state", invalid);
            }
        }
    }

    /**
     * Finds the source: the first rank with a state. Collective.
     *
     * @param buffers the buffers of this rank, described in words
     * @throws IllegalArgumentException on every rank, if the buffers of a rank differ from those of the source
     * @throws RendezvousException on every rank, if no rank has a state
     */
    public static StateSource find(
            Rendezvous members, boolean hasState, long step, List<String> buffers, Duration deadline) {
        List<Offer> offers = members.gather("state", new Offer(hasState, step, buffers).bytes(), deadline).stream()
                .map(Offer::of)
                .toList();
        int source = 0;
        while (source < offers.size() && !offers.get(source).hasState) {
            source++;
        }
        if (source == offers.size()) {
            throw new RendezvousException("none of the " + source + " remaining ranks has the state: the last rank with"
                    + " it was lost while it sent the state; restore a checkpoint");
        }
        for (int rank = 0; rank < offers.size(); rank++) {
            requireSame(rank, offers.get(rank).buffers, source, offers.get(source).buffers);
        }
        return new StateSource(source, offers.get(source).step);
    }

    private static void requireSame(int rank, List<String> buffers, int source, List<String> expected) {
        if (buffers.size() != expected.size()) {
            throw new IllegalArgumentException("the state must have the same buffers on all ranks: rank " + rank
                    + " has " + buffers.size() + ", rank " + source + " has " + expected.size());
        }
        for (int i = 0; i < buffers.size(); i++) {
            if (!buffers.get(i).equals(expected.get(i))) {
                throw new IllegalArgumentException("buffer " + i + " of the state must be the same on all ranks: rank "
                        + rank + " has " + buffers.get(i) + ", rank " + source + " has " + expected.get(i));
            }
        }
    }
}

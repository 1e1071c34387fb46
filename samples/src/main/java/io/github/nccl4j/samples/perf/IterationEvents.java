package io.github.nccl4j.samples.perf;

import io.github.nccl4j.highlevel.CudaEvent;
import java.util.ArrayList;
import java.util.List;

/**
 * Events between the iterations of one thread's ranks, for -I: the time from one to the next is that of an iteration. The same
 * events are recorded for one measurement after the other.
 */
final class IterationEvents implements AutoCloseable {
    private final List<Member> members;
    private final List<List<CudaEvent>> ofMembers = new ArrayList<>();
    private final boolean paired;

    /**
     * Creates the events.
     *
     * @param most the most iterations that are recorded
     * @param paired true for an event before and one after each iteration, so that a barrier between two does not count
     */
    IterationEvents(List<Member> members, int most, boolean paired) {
        this.members = members;
        this.paired = paired;
        try {
            for (Member member : members) {
                List<CudaEvent> events = new ArrayList<>();
                ofMembers.add(events);
                for (int i = 0; i < (paired ? 2 * most : most + 1); i++) {
                    events.add(CudaEvent.timing(member.communicator.device()));
                }
            }
        } catch (RuntimeException e) {
            close();
            throw e;
        }
    }

    /** Before the calls of an iteration. */
    void begin(int iteration) {
        record(paired ? 2 * iteration : iteration);
    }

    /** When the calls of an iteration are done, before a barrier. */
    void end(int iteration) {
        if (paired) {
            record(2 * iteration + 1);
        }
    }

    /** After the calls of the last iteration. */
    void finish(int iterations) {
        if (!paired) {
            record(iterations);
        }
    }

    private void record(int index) {
        for (int m = 0; m < members.size(); m++) {
            ofMembers.get(m).get(index).record(members.get(m).stream);
        }
    }

    /**
     * How long the iterations took, which must be done.
     *
     * @param aggregated how many calls an iteration has
     * @return microseconds per call, by iteration, of the slowest rank of this thread
     */
    double[] micros(int iterations, int aggregated) {
        double[] slowest = new double[iterations];
        for (List<CudaEvent> events : ofMembers) {
            for (int i = 0; i < iterations; i++) {
                int start = paired ? 2 * i : i;
                double micros =
                        events.get(start + 1).elapsedSince(events.get(start)).toNanos() / 1e3;
                slowest[i] = Math.max(slowest[i], micros / aggregated);
            }
        }
        return slowest;
    }

    @Override
    public void close() {
        ofMembers.forEach(events -> events.forEach(CudaEvent::close));
    }
}

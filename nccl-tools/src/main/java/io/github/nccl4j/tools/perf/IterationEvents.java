package io.github.nccl4j.tools.perf;

import io.github.nccl4j.highlevel.CudaEvent;
import java.util.ArrayList;
import java.util.List;

/**
 * CUDA events that measure the iterations of a thread's ranks, for -I: the time between two events is that of an iteration. All
 * measurements of a thread reuse the same events. Not thread-safe.
 */
final class IterationEvents implements AutoCloseable {
    private final List<Member> members;
    private final List<List<CudaEvent>> ofMembers = new ArrayList<>();
    private final boolean paired;

    /**
     * Creates the events.
     *
     * @param most the maximum number of iterations
     * @param paired true for an event before and after each iteration, which excludes a barrier between iterations
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

    /** Call before the calls of an iteration. */
    void begin(int iteration) {
        record(paired ? 2 * iteration : iteration);
    }

    /** Call when the calls of an iteration are complete, before the barrier. */
    void end(int iteration) {
        if (paired) {
            record(2 * iteration + 1);
        }
    }

    /** Call after the calls of the last iteration. */
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
     * Returns the times of the iterations, which must be complete.
     *
     * @param aggregated the number of calls per iteration
     * @return by iteration, the time of a call on the slowest rank of this thread, in microseconds
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

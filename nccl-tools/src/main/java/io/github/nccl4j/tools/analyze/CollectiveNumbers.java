package io.github.nccl4j.tools.analyze;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;

/**
 * Numbers the collectives of a record. The sequence numbers of ranks that make different numbers of sends and receives differ; the
 * number of a collective does not.
 */
final class CollectiveNumbers {
    private static final Set<String> OTHERS =
            Set.of("ncclSend", "ncclRecv", "ncclPutSignal", "ncclSignal", "ncclWaitSignal");

    private CollectiveNumbers() {}

    static boolean isCollective(String function) {
        return !OTHERS.contains(function);
    }

    /** Numbers the collectives if the last one has a known number. */
    static List<Call> upTo(long last, List<Call> calls) {
        List<Call> numbered = new ArrayList<>();
        long number = last;
        for (int i = calls.size() - 1; i >= 0; i--) {
            Call call = calls.get(i);
            numbered.add(isCollective(call.function()) ? with(call, number--) : call);
        }
        Collections.reverse(numbered);
        return numbered;
    }

    /**
     * Numbers the collectives if only the sequence numbers are known. This is exact if the record begins with the first operation or
     * the rank made no other operations before it.
     */
    static List<Call> of(List<Call> calls) {
        List<Call> numbered = new ArrayList<>();
        long others = 0;
        for (Call call : calls) {
            if (isCollective(call.function())) {
                numbered.add(with(call, call.sequence() - others));
            } else {
                others++;
                numbered.add(call);
            }
        }
        return numbered;
    }

    private static Call with(Call call, long number) {
        return new Call(
                call.sequence(), number, call.operation(), call.stream(), call.group(), call.enqueued(), call.done());
    }
}

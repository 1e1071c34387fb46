package io.github.nccl4j.tests.conformance;

import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.Version;
import java.util.ArrayList;
import java.util.List;

/** Every operation with every type, operator and form, with several counts, by itself and in groups. */
final class DataSuite {
    private static final int[] COUNTS = {0, 1, 7};
    private static final int THOUSAND = 1025;
    /** A multiple of all that a library may want. */
    private static final int ROUND = 1024;
    /** Larger than a socket's buffer, and no multiple of anything. */
    private static final int LARGE = 100_003;
    /** Larger than what the host engine reduces at a time. */
    private static final int HUGE = 2_000_003;

    private final Crew crew;
    private final KnownFaults faults;
    private long seed;

    /**
     * The suite.
     *
     * @param inWindows whether the members take their memory from symmetric windows
     */
    DataSuite(Crew crew, boolean inWindows) {
        this.crew = crew;
        faults = new KnownFaults(crew.size(), inWindows);
    }

    void run() {
        for (ElementType<?> type : ElementType.values()) {
            for (Operation operation : Operation.values()) {
                for (Operator operator : operators(operation)) {
                    for (int count : COUNTS) {
                        operation.forms().forEach(form -> check(operation, type, operator, count, form));
                    }
                    check(operation, type, operator, THOUSAND, next(operation.forms()));
                    check(operation, type, operator, ROUND, next(operation.forms()));
                }
            }
            groups(type);
        }
        for (Operation operation : Operation.values()) {
            Operator operator = operators(operation).get(0);
            check(operation, next(ElementType.values()), operator, LARGE, next(operation.forms()));
        }
        check(Operation.ALL_REDUCE, ElementType.FLOAT32, Operator.SUM, HUGE, Form.OUT_OF_PLACE);
        check(Operation.BROADCAST, ElementType.INT64, null, HUGE, Form.IN_PLACE);
    }

    private static List<Operator> operators(Operation operation) {
        List<Operator> none = new ArrayList<>();
        none.add(null);
        return operation.reduces() ? List.of(Operator.values()) : none;
    }

    /** One after the other, as the cases go. */
    private <E> E next(List<E> all) {
        return all.get((int) (seed % all.size()));
    }

    private Case make(Operation operation, ElementType<?> type, Operator operator, int count, Form form) {
        seed++;
        return new Case(operation, type, operator, count, form, (int) (seed % crew.size()), seed);
    }

    private void check(Operation operation, ElementType<?> type, Operator operator, int count, Form form) {
        Case one = make(operation, type, operator, count, form);
        if (crew.drivesSeveralRanks() && !operation.goesInGroups() || !isKnown(type, operation.name())) {
            return;
        }
        String fault = faults.of(one);
        if (fault != null) {
            crew.skip(operation.name(), fault);
            return;
        }
        crew.check(operation.name(), one.toString(), member -> DataTrial.of(one, member));
    }

    private boolean isKnown(ElementType<?> type, String subject) {
        Version since = type.dataType().since();
        if (NcclLibrary.get().version().isAtLeast(since)) {
            return true;
        }
        crew.skip(subject, type + " needs NCCL " + since);
        return false;
    }

    /** All operations in one group, and pairs of them; each has its own buffers. */
    private void groups(ElementType<?> type) {
        for (int count : new int[] {1, 7, THOUSAND}) {
            List<Case> all = new ArrayList<>();
            for (Operation operation : Operation.values()) {
                if (operation.goesInGroups()) {
                    all.add(make(operation, type, next(operators(operation)), count, next(operation.forms())));
                }
            }
            group("several operations in one group", all);
            for (int i = 0; i + 1 < all.size(); i += 2) {
                group("two operations in one group", all.subList(i, i + 2));
            }
        }
    }

    private void group(String subject, List<Case> all) {
        if (!isKnown(all.get(0).type(), subject)) {
            return;
        }
        if (faults.ofGroups() != null) {
            crew.skip(subject, faults.ofGroups());
            return;
        }
        List<Case> cases = all.stream().filter(one -> faults.of(one) == null).toList();
        if (!cases.isEmpty()) {
            crew.check(
                    subject,
                    cases.toString(),
                    member -> new GroupTrial(
                            cases.stream().map(one -> DataTrial.of(one, member)).toList()));
        }
    }
}

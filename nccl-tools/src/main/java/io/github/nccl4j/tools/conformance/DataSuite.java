package io.github.nccl4j.tools.conformance;

import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.Version;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Every operation with every type, operator and form, with several counts, by itself and in groups. */
final class DataSuite {
    private static final int[] COUNTS = {0, 1, 7};
    private static final int THOUSAND = 1025;
    /** A multiple of every alignment that a library may need. */
    private static final int ROUND = 1024;
    /** Larger than a socket's buffer, and no multiple of anything. */
    private static final int LARGE = 100_003;
    /** Larger than a block that the host engine reduces at a time. */
    private static final int HUGE = 2_000_003;

    private final Crew crew;
    private final KnownFaults faults;
    private long seed;

    /**
     * The suite.
     *
     * @param inWindows true if the members take their memory from symmetric windows
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
        for (Tuning tuning : Tuning.values()) {
            asConfigured(tuning);
        }
    }

    /** All operations that take a configuration, with types and operators in turn. */
    private void asConfigured(Tuning tuning) {
        String subject = "as configured: " + tuning;
        String problem = tuning.problem(crew.members().get(0));
        if (problem != null) {
            crew.skip(subject, problem);
            return;
        }
        List<Operation> operations = Arrays.stream(Operation.values())
                .filter(Tuning::isTakenBy)
                .filter(tuning::suits)
                .toList();
        for (Operation operation : operations) {
            for (Form form : operation.formsAsConfigured()) {
                for (int count : new int[] {0, 1, 7, THOUSAND, ROUND, LARGE}) {
                    check(subject, asConfigured(operation, form, count, tuning));
                }
            }
        }
        for (int count : new int[] {1, 7, THOUSAND}) {
            List<Case> all = new ArrayList<>();
            for (Operation operation : operations) {
                // A group has one event for each communicator; the others of it are not configured.
                boolean plain = tuning.hasEvent() && !all.isEmpty();
                all.add(asConfigured(operation, next(operation.formsAsConfigured()), count, plain ? null : tuning));
            }
            group(subject + ", in a group", all);
        }
    }

    private Case asConfigured(Operation operation, Form form, int count, Tuning tuning) {
        // Types that every library with configurations has, in an order that differs from that of the operators.
        ElementType<?> type =
                ElementType.values().get((int) (5 * seed % ElementType.values().size()));
        return make(operation, type, next(operators(operation)), count, form, tuning);
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
        return make(operation, type, operator, count, form, null);
    }

    private Case make(
            Operation operation, ElementType<?> type, Operator operator, int count, Form form, Tuning tuning) {
        seed++;
        Case.Elements elements = new Case.Elements(type, operator, count);
        return new Case(operation, elements, form, (int) (seed % crew.size()), seed, tuning);
    }

    private void check(Operation operation, ElementType<?> type, Operator operator, int count, Form form) {
        Case one = make(operation, type, operator, count, form);
        if (!crew.drivesSeveralRanks() || operation.goesInGroups()) {
            check(operation.name(), one);
        }
    }

    private void check(String subject, Case one) {
        if (!isKnown(one.type(), subject)) {
            return;
        }
        String fault = faults.of(one);
        if (fault != null) {
            crew.skip(subject, fault);
            return;
        }
        crew.check(subject, one.toString(), member -> DataTrial.of(one, member));
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

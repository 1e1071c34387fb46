package io.github.nccl4j.tools.conformance;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.Result;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import java.util.function.Predicate;

/** The ranks that one thread drives: mostly one rank, or all ranks of a communicator. Keeps the report. */
final class Crew implements AutoCloseable {
    /** Thrown after a reported failure that makes the communicator unusable for more checks. */
    static final class Unusable extends RuntimeException {
        private static final long serialVersionUID = 1L;

        private Unusable(Throwable cause) {
            super(cause);
        }
    }

    private final List<Member> members = new ArrayList<>();
    private final Report report = new Report();
    private final ProgressWatch watch;
    private final Predicate<String> wanted;

    Crew(List<Communicator> communicators, ProgressWatch watch, Predicate<String> wanted) {
        this.watch = watch;
        this.wanted = wanted;
        communicators.forEach(communicator -> members.add(new Member(communicator)));
    }

    Report report() {
        return report;
    }

    int size() {
        return members.get(0).size();
    }

    List<Member> members() {
        return members;
    }

    boolean drivesSeveralRanks() {
        return members.size() > 1;
    }

    /** Creates each rank's trial, launches them together, and checks the results. */
    void check(String subject, String what, Function<Member, Trial> trial) {
        check(subject, what, () -> {
            List<Trial> trials = new ArrayList<>();
            try {
                members.forEach(member -> trials.add(trial.apply(member)));
                together(() -> trials.forEach(Trial::prepare));
                together(() -> trials.forEach(Trial::call));
                members.forEach(Member::await);
                trials.forEach(Trial::verify);
            } finally {
                trials.forEach(Trial::close);
                members.forEach(Member::reuseMemory);
            }
        });
    }

    /** One thread can make several ranks' calls only in a group. */
    void together(Runnable calls) {
        if (drivesSeveralRanks()) {
            Group.run(calls);
        } else {
            calls.run();
        }
    }

    /** Runs something that must not throw. */
    void check(String subject, String what, Runnable body) {
        if (!wanted.test(subject + ": " + what)) {
            return;
        }
        watch.at(what);
        try {
            body.run();
            report.add(Outcome.passed(subject));
        } catch (RuntimeException | AssertionError e) {
            Member first = members.get(0);
            report.add(Outcome.failed(
                    subject,
                    what + (drivesSeveralRanks() ? "" : " at rank " + first.rank()) + " of " + first.size() + " ranks: "
                            + e));
            for (Member member : members) {
                if (member.communicator.state() != Communicator.State.OPEN
                        || !member.communicator.asyncError().equals(Result.SUCCESS)) {
                    throw new Unusable(e);
                }
            }
        }
    }

    /** Runs something if the library has a function that it needs. */
    void checkWith(String function, String subject, Runnable body) {
        if (NcclLibrary.get().provides(function)) {
            check(subject, subject, body);
            members.forEach(Member::reuseMemory);
        } else {
            skip(subject, "the library lacks " + function);
        }
    }

    void skip(String subject, String reason) {
        report.add(Outcome.skipped(subject, reason));
    }

    void abort() {
        members.forEach(member -> member.communicator.abort());
    }

    /** Closes the communicators on all ranks together. */
    @Override
    public void close() {
        members.forEach(member -> member.communicator.close());
        members.forEach(Member::close);
    }
}

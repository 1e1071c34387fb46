package io.github.nccl4j.tools.conformance;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.Communicator.State;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.tools.support.Checks;
import java.util.ArrayList;
import java.util.List;

/** Groups that are launched, nested, simulated and given up, by threads with one rank and by one with all ranks. */
final class GroupSuite {
    private final Checks checks = new Checks();
    private final Crew crew;
    private final List<DeviceBuffer<Int32>> numbers = new ArrayList<>();
    private final int sum;

    GroupSuite(Crew crew) {
        this.crew = crew;
        sum = crew.size() * (crew.size() + 1) / 2;
    }

    void run() {
        crew.checkWith("ncclGroupStart", "groups that were given up", this::givenUp);
        crew.checkWith("ncclGroupStart", "groups that an exception ended", this::exception);
        crew.checkWith("ncclGroupStart", "groups within groups", this::nested);
        crew.checkWith("ncclGroupStart", "empty groups", this::empty);
        crew.checkWith("ncclGroupSimulateEnd", "simulated groups", this::simulated);
        crew.checkWith("ncclCommSplit", "all ranks split in one group", this::split);
    }

    /** Runs something in a group that is closed without being launched. */
    static void giveUp(Runnable body) {
        Group group = Group.open();
        try {
            body.run();
        } finally {
            group.close();
        }
    }

    /** Each rank's number is its rank + 1. */
    private void newNumbers() {
        numbers.clear();
        crew.members().forEach(member -> numbers.add(member.number(member.rank() + 1)));
    }

    private void allReduce() {
        for (int i = 0; i < numbers.size(); i++) {
            Member member = crew.members().get(i);
            member.communicator.allReduce(numbers.get(i), ReduceOp.SUM, member.stream);
        }
    }

    private void areUntouched() {
        for (int i = 0; i < numbers.size(); i++) {
            checks.equal(
                    crew.members().get(i).rank() + 1,
                    Member.valueOf(numbers.get(i)),
                    "the number before the reduction");
        }
    }

    private void areReduced(int expected) {
        crew.members().forEach(Member::await);
        numbers.forEach(number -> checks.equal(expected, Member.valueOf(number), "the reduced number"));
    }

    private void works() {
        newNumbers();
        Group.run(this::allReduce);
        areReduced(sum);
    }

    private void givenUp() {
        newNumbers();
        giveUp(() -> {
            allReduce();
            checks.isTrue(Group.isOpenInThisThread(), "open");
        });
        checks.isTrue(!Group.isOpenInThisThread(), "no group must be open");
        areUntouched();
        works();
    }

    private void exception() {
        newNumbers();
        checks.fails(
                UnsupportedOperationException.class,
                () -> Group.run(() -> {
                    allReduce();
                    throw new UnsupportedOperationException("of the body");
                }),
                "of the body");
        areUntouched();
        checks.isTrue(!Group.isOpenInThisThread(), "no group must be open");
        Communicator first = crew.members().get(0).communicator;
        checks.fails(
                IllegalArgumentException.class,
                () -> Group.run(() -> {
                    allReduce();
                    first.broadcast(numbers.get(0), crew.size(), crew.members().get(0).stream);
                }),
                "root");
        areUntouched();
        works();
    }

    private void nested() {
        newNumbers();
        List<DeviceBuffer<Int32>> first = List.copyOf(numbers);
        try (Group outer = Group.open()) {
            Group.run(this::allReduce);
            areUntouched();
            giveUp(() -> {
                allReduce();
                checks.fails(IllegalStateException.class, outer::launch, "group within");
            });
            // On other buffers: the operations of a group are in no order.
            newNumbers();
            try (Group second = Group.open()) {
                allReduce();
                second.launch();
            }
            outer.launch();
        }
        areReduced(sum);
        numbers.clear();
        numbers.addAll(first);
        areReduced(sum);
        works();
    }

    private void empty() {
        Group.run(() -> {});
        try (Group group = Group.open()) {
            group.launch();
            checks.fails(IllegalStateException.class, group::launch, "has ended");
        }
        works();
    }

    private void simulated() {
        newNumbers();
        try (Group group = Group.open()) {
            allReduce();
            if (crew.members().get(0).communicator.isBlocking()) {
                checks.isTrue(!group.simulate().isNegative(), "the estimate is not negative");
            } else {
                checks.fails(IllegalStateException.class, group::simulate, "can't be simulated");
            }
        }
        checks.isTrue(!Group.isOpenInThisThread(), "no group must be open");
        areUntouched();
        works();
    }

    private void split() {
        List<Communicator> children = new ArrayList<>();
        try (Group group = Group.open()) {
            crew.members().forEach(member -> children.add(member.communicator.split(0, -member.rank())));
            group.launch();
        }
        newNumbers();
        Group.run(() -> {
            for (int i = 0; i < children.size(); i++) {
                Member member = crew.members().get(i);
                checks.equal(State.OPEN, children.get(i).state(), "state");
                checks.equal(crew.size() - 1 - member.rank(), children.get(i).rank(), "rank");
                children.get(i).allReduce(numbers.get(i), ReduceOp.SUM, member.stream);
            }
        });
        for (int i = 0; i < children.size(); i++) {
            children.get(i).work(crew.members().get(i).stream).await();
        }
        areReduced(sum);
        children.forEach(Communicator::close);
        works();
    }
}

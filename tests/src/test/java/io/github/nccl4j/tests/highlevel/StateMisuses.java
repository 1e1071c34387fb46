package io.github.nccl4j.tests.highlevel;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.DataType;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.MemoryStatistic;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.highlevel.RevokeFlag;
import io.github.nccl4j.highlevel.ShrinkFlag;
import io.github.nccl4j.highlevel.SuspendFlag;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Every call in every state that does not allow it: the table in the class comment of Communicator. */
final class StateMisuses {
    private static final Set<String> DERIVING = Set.of("split", "splitNone", "shrink");
    /** What asks for the state alone, and may be called while another thread is in an operation. */
    private static final Set<String> UNGATED = Set.of(
            "stream", "letDefaultStreamWait", "waitForDefaultStream", "own", "nativeHandle", "asyncError", "revoke");
    /** What a group keeps for its launch, or has no part in. */
    private static final Set<String> IN_GROUP = Set.of(
            "allReduce",
            "allToAll",
            "gather",
            "send",
            "recv",
            "sendRecv",
            "preMulSum",
            "preMulSum of a buffer",
            "grow",
            "allGather of addresses");

    private final List<Misuse> all = new ArrayList<>();
    private final Map<String, Call> calls = new LinkedHashMap<>();

    /** A call of a communicator that is, or would be, the first of two ranks. */
    @FunctionalInterface
    private interface Call {
        void run(Communicator communicator, MisuseWorld world);
    }

    private StateMisuses() {
        calls.put("allReduce", (c, w) -> c.allReduce(w.send, w.recv, ReduceOp.SUM, w.stream));
        calls.put("allToAll", (c, w) -> c.allToAll(w.send, w.recv, w.stream));
        calls.put("gather", (c, w) -> c.gather(w.send.slice(0, 4), w.recv, 0, w.stream));
        calls.put("send", (c, w) -> c.send(w.send, 1, w.stream));
        calls.put("recv", (c, w) -> c.recv(w.recv, 1, w.stream));
        calls.put("sendRecv", (c, w) -> c.sendRecv(w.send, 1, w.recv, 1, w.stream));
        calls.put("allGather of addresses", (c, w) -> c.onAddresses()
                .allGather(w.send.address(), w.recv.address(), 4, DataType.FLOAT32, w.stream));
        calls.put("preMulSum", (c, w) -> c.preMulSum(ElementType.FLOAT32, 2));
        calls.put("preMulSum of a buffer", (c, w) -> c.preMulSum(w.floats(1)));
        calls.put("work", (c, w) -> c.work(w.stream));
        calls.put("submit", (c, w) -> c.submit(own -> c.allReduce(w.send, w.recv, ReduceOp.SUM, own)));
        calls.put("plan", (c, w) -> c.plan(() -> c.allReduce(w.send, w.recv, ReduceOp.SUM, w.stream)));
        calls.put("stream", (c, w) -> c.stream());
        calls.put("letDefaultStreamWait", (c, w) -> c.letDefaultStreamWait());
        calls.put("waitForDefaultStream", (c, w) -> c.waitForDefaultStream());
        calls.put("own", (c, w) -> c.own(w.second));
        calls.put("nativeHandle", (c, w) -> c.nativeHandle());
        calls.put("asyncError", (c, w) -> c.asyncError());
        calls.put("split", (c, w) -> c.split(0, 0));
        calls.put("splitNone", (c, w) -> c.splitNone());
        calls.put("shrink", (c, w) -> c.shrink(List.of(1), ShrinkFlag.DEFAULT));
        calls.put("grow", (c, w) -> c.grow(3));
        calls.put("growId", (c, w) -> c.growId());
        calls.put("memory", (c, w) -> c.memory(MemoryStatistic.GPU_MEM_TOTAL));
        calls.put("properties", (c, w) -> c.properties());
        calls.put("suspend", (c, w) -> c.suspend(SuspendFlag.MEM));
        calls.put("resume", (c, w) -> c.resume());
        calls.put("revoke", (c, w) -> c.revoke(RevokeFlag.DEFAULT));
        calls.put("finish", (c, w) -> c.finish());
        calls.put("close", (c, w) -> c.close());
    }

    static List<Misuse> all(boolean onHost) {
        StateMisuses table = new StateMisuses();
        table.inState("closed", "is closed", true, Set.of("close"), w -> w.onBoth(Communicator::close));
        table.inState("aborted", "was aborted", true, Set.of("close"), w -> w.first.abort());
        table.inState("finished", "was finished", true, Set.of("close", "asyncError"), w -> {
            w.onBoth(Communicator::finish);
        });
        if (!onHost) {
            // The host engine has neither.
            table.inState(
                    "revoked",
                    "was revoked",
                    true,
                    Set.of("split", "splitNone", "shrink", "close", "asyncError"),
                    w -> w.first.revoke(RevokeFlag.DEFAULT));
            table.suspended();
            table.resumedTwice();
        }
        table.pending();
        table.givenUp();
        table.open();
        table.inAGroup();
        table.whileAnotherThreadIsInside();
        return table.all;
    }

    private void add(String name, boolean ends, Misuse.Body body) {
        all.add(new Misuse(name, ends, body));
    }

    private void inState(String state, String words, boolean ends, Set<String> allowed, Misuse.Body prepare) {
        calls.forEach((name, call) -> {
            if (!allowed.contains(name)) {
                add(name + " of a communicator that is " + state, ends, w -> {
                    prepare.run(w);
                    w.refuses(IllegalStateException.class, () -> call.run(w.first, w), " (rank 0 of 2", words);
                });
            }
        });
    }

    private void suspended() {
        Set<String> allowed = Set.of("resume", "close", "asyncError", "memory");
        calls.forEach((name, call) -> {
            if (!allowed.contains(name)) {
                add(name + " of a communicator that is suspended", false, w -> {
                    w.onBoth(communicator -> communicator.suspend(SuspendFlag.MEM));
                    w.refuses(IllegalStateException.class, () -> call.run(w.first, w), "is suspended: resume it first");
                    w.onBoth(Communicator::resume);
                });
            }
        });
    }

    private void pending() {
        calls.forEach((name, call) -> {
            // The one goes on, and that is the answer; the other tells of the group.
            if (!name.equals("asyncError") && !name.equals("work")) {
                add(name + " of a communicator that is pending", false, w -> {
                    MisuseWorld.inGroupGivenUp(() -> {
                        Communicator child = w.first.split(0, 0);
                        w.refuses(IllegalStateException.class, () -> call.run(child, w), " is pending");
                    });
                });
            }
        });
        add("rank of a communicator that is pending", false, w -> {
            MisuseWorld.inGroupGivenUp(() -> {
                Communicator child = w.first.split(0, 0);
                w.refuses(IllegalStateException.class, child::rank, " is pending");
                w.refuses(IllegalStateException.class, child::size, " is pending");
            });
        });
    }

    private void givenUp() {
        calls.forEach((name, call) -> {
            if (!name.equals("close")) {
                add(name + " of a communicator whose group was given up", false, w -> {
                    Communicator[] child = new Communicator[1];
                    MisuseWorld.inGroupGivenUp(() -> {
                        child[0] = w.first.split(0, 0);
                    });
                    w.refuses(IllegalStateException.class, () -> call.run(child[0], w), " is closed");
                    child[0].close();
                    child[0].abort();
                });
            }
        });
    }

    private void resumedTwice() {
        add("resume a second time", false, w -> {
            w.onBoth(communicator -> communicator.suspend(SuspendFlag.MEM));
            w.onBoth(Communicator::resume);
            w.refuses(IllegalStateException.class, w.first::resume, "is open", "must be suspended");
        });
    }

    private void open() {
        add(
                "resume of a communicator that is open",
                false,
                w -> w.refuses(IllegalStateException.class, w.first::resume, "is open", "must be suspended"));
        add("a communicator that owns itself", false, w -> {
            w.refuses(IllegalArgumentException.class, () -> w.first.own(w.first), "can't own itself", "rank 0 of 2");
        });
        add("owning null", false, w -> w.refuses(NullPointerException.class, () -> w.first.own(null), "child"));
        add("suspend: null", false, w -> w.refuses(NullPointerException.class, () -> w.first.suspend(null), "flag"));
        add("revoke: null", false, w -> w.refuses(NullPointerException.class, () -> w.first.revoke(null), "flag"));
        add("memory: null", false, w -> w.refuses(NullPointerException.class, () -> w.first.memory(null), "statistic"));
        add("work: null", false, w -> w.refuses(NullPointerException.class, () -> w.first.work(null), "stream"));
        add(
                "work of a closed stream",
                false,
                w -> w.refuses(IllegalStateException.class, () -> w.first.work(w.closedStream()), "is closed"));
    }

    private void inAGroup() {
        calls.forEach((name, call) -> {
            if (!IN_GROUP.contains(name) && !DERIVING.contains(name) && !UNGATED.contains(name)) {
                add(name + " of a communicator that takes part in an open group", false, w -> {
                    MisuseWorld.inGroupGivenUp(() -> {
                        w.first.send(w.send, 1, w.stream);
                        w.refuses(IllegalStateException.class, () -> call.run(w.first, w), "open group of this thread");
                    });
                });
            }
        });
    }

    private void whileAnotherThreadIsInside() {
        calls.forEach((name, call) -> {
            if (!UNGATED.contains(name)) {
                add(
                        name + " while another thread is inside",
                        false,
                        w -> w.whileOtherThreadIsInside(() -> w.refuses(
                                IllegalStateException.class, () -> call.run(w.first, w), "in use by thread 'other'")));
            }
        });
        for (String name : List.of("allReduce", "send", "split")) {
            add(
                    name + " in a group while another thread is inside",
                    false,
                    w -> w.whileOtherThreadIsInside(() -> {
                        try (Group group = Group.open()) {
                            w.refuses(
                                    IllegalStateException.class,
                                    () -> calls.get(name).run(w.first, w),
                                    "in use by thread 'other'");
                            group.launch();
                        }
                    }));
        }
    }
}

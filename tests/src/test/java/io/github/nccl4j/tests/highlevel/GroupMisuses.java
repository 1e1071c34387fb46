package io.github.nccl4j.tests.highlevel;

import static io.github.nccl4j.tests.highlevel.MisuseWorld.inGroupGivenUp;
import static io.github.nccl4j.tests.highlevel.MisuseWorld.inThread;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CommunicatorConfig;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.DataType;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.PreMulSum;
import io.github.nccl4j.highlevel.ReduceOp;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/** Groups in the wrong order, thread or state, and what must not get into one. */
final class GroupMisuses {
    private final List<Misuse> all = new ArrayList<>();

    private GroupMisuses() {}

    static List<Misuse> all() {
        GroupMisuses table = new GroupMisuses();
        table.order();
        table.threads();
        table.content();
        table.ends();
        return table.all;
    }

    private void add(String name, Misuse.Body body) {
        all.add(new Misuse(name, false, body));
    }

    private void order() {
        add("group: launched twice", w -> {
            Group group = Group.open();
            group.launch();
            w.refuses(IllegalStateException.class, group::launch, "has ended", "launched");
            group.close();
        });
        add("group: launched after it was closed", w -> {
            Group group = Group.open();
            w.first.send(w.send, 1, w.stream);
            group.close();
            w.refuses(IllegalStateException.class, group::launch, "has ended", "launched");
        });
        add("group: simulated after its launch", w -> {
            Group group = Group.open();
            group.launch();
            w.refuses(IllegalStateException.class, group::simulate, "has ended", "simulated");
        });
        add("group: launched after it was simulated", w -> {
            Group group = Group.open();
            group.simulate();
            w.refuses(IllegalStateException.class, group::launch, "has ended", "launched");
        });
        add(
                "group: launched while one within it is open",
                w -> inGroupGivenUp(() -> {
                    Group outer = Group.open();
                    Group inner = Group.open();
                    w.refuses(IllegalStateException.class, outer::launch, "group within this one is open");
                    inner.launch();
                    outer.launch();
                }));
        add("group: simulated while one within it is open", w -> {
            Group outer = Group.open();
            Group inner = Group.open();
            w.refuses(IllegalStateException.class, outer::simulate, "group within this one is open");
            inner.close();
            outer.close();
        });
        add("group: simulated within another", w -> {
            Group outer = Group.open();
            Group inner = Group.open();
            w.refuses(IllegalStateException.class, inner::simulate, "within another");
            inner.close();
            outer.close();
        });
        add("group: launched after the one around it was closed", w -> {
            Group outer = Group.open();
            Group inner = Group.open();
            w.first.send(w.send, 1, w.stream);
            outer.close();
            w.refuses(IllegalStateException.class, inner::launch, "has ended");
            inner.close();
        });
        add("group: null to run", w -> w.refuses(NullPointerException.class, () -> Group.run(null), "body"));
        add("group: its code throws", w -> {
            w.refuses(
                    IllegalArgumentException.class,
                    () -> Group.run(() -> {
                        w.first.allReduce(w.send, w.recv, ReduceOp.SUM, w.stream);
                        w.first.send(w.send, 2, w.stream);
                    }),
                    "peer must be >= 0 and < size(): 2, size 2");
        });
        add("group: closed twice, and again after the next was opened", w -> {
            Group first = Group.open();
            first.close();
            first.close();
            Group second = Group.open();
            first.close();
            w.refuses(IllegalStateException.class, first::launch, "has ended");
            second.launch();
        });
    }

    private void foreign(String what, Consumer<Group> call) {
        add("group: " + what + " by another thread", w -> {
            Group group = Group.open();
            w.first.send(w.send, 1, w.stream);
            inThread(
                    "stranger",
                    () -> w.refuses(
                            IllegalStateException.class,
                            () -> call.accept(group),
                            what + " by the thread that opened it",
                            Thread.currentThread().getName(),
                            "'stranger'"));
            group.close();
        });
    }

    private void threads() {
        foreign("launched", Group::launch);
        foreign("simulated", Group::simulate);
        foreign("closed", Group::close);
        add("group: an operation of another thread on a communicator that takes part", w -> {
            Group group = Group.open();
            w.first.send(w.send, 1, w.stream);
            String owner = Thread.currentThread().getName();
            inThread(
                    "stranger",
                    () -> w.refuses(
                            IllegalStateException.class,
                            () -> w.first.send(w.send, 1, w.stream),
                            "in use by thread '" + owner + "'"));
            group.close();
        });
        add("group: left open by a thread that has ended", w -> {
            inThread("careless", () -> {
                Group.open();
                w.first.onAddresses().send(w.send.address(), 1, DataType.INT8, 1, CudaStream.defaultOf(w.device));
            });
            w.refuses(IllegalArgumentException.class, () -> w.first.send(w.send, 2, w.stream), "2, size 2");
        });
    }

    private void content() {
        add("group: sends to itself without receiving", w -> {
            Group group = Group.open();
            w.first.send(w.send, 0, w.stream);
            w.refuses(IllegalStateException.class, group::launch, "as often", "ncclSend of 8 float32 to rank 0");
        });
        add("group: receives from itself without sending", w -> {
            Group group = Group.open();
            w.first.recv(w.recv, 0, w.stream);
            w.refuses(IllegalStateException.class, group::launch, "as often", "ncclRecv of 8 float32 from rank 0");
        });
        add("group: receives less from itself than it sends", w -> {
            Group group = Group.open();
            w.first.send(w.send, 0, w.stream);
            w.first.recv(w.recv.slice(0, 5), 0, w.stream);
            w.refuses(IllegalStateException.class, group::launch, "ncclSend of 8 float32", "ncclRecv of 5 float32");
        });
        add("group: receives another type from itself than it sends", w -> {
            Group group = Group.open();
            w.first.send(w.send, 0, w.stream);
            w.first.recv(w.later(w.device.allocate(ElementType.INT32, 8)), 0, w.stream);
            w.refuses(IllegalStateException.class, group::launch, "8 float32", "8 int32");
        });
        add("group: simulated with a transfer to itself alone", w -> {
            Group group = Group.open();
            w.first.send(w.send, 0, w.stream);
            w.refuses(IllegalStateException.class, group::simulate, "as often");
        });
        add("group: simulated with a communicator to be made", w -> {
            Group group = Group.open();
            Communicator child = w.first.split(0, 0);
            w.refuses(IllegalStateException.class, group::simulate, "only operations on data", "ncclCommSplit");
            w.refuses(IllegalStateException.class, child::stream, "is closed");
        });
        add("group: communicators that block and that don't", w -> {
            try (Communicator other = Communicator.builder()
                    .config(CommunicatorConfig.builder().blocking(false).build())
                    .device(w.device)
                    .createAll(List.of(w.device))
                    .get(0)) {
                inGroupGivenUp(() -> {
                    w.first.send(w.send, 1, w.stream);
                    w.refuses(
                            IllegalArgumentException.class,
                            () -> other.allReduce(w.send, w.recv, ReduceOp.SUM, w.stream),
                            "is blocking",
                            "is not blocking");
                });
            }
        });
        add("group: a closed buffer", w -> {
            inGroupGivenUp(() -> w.refuses(
                    IllegalStateException.class, () -> w.first.send(w.closedFloats(3), 1, w.stream), "is closed"));
        });
        add("group: a closed stream", w -> {
            inGroupGivenUp(() -> w.refuses(
                    IllegalStateException.class, () -> w.first.send(w.send, 1, w.closedStream()), "is closed"));
        });
        add("group: a closed communicator", w -> {
            Communicator single = Communicator.createAll(List.of(w.device)).get(0);
            single.close();
            inGroupGivenUp(() -> w.refuses(
                    IllegalStateException.class,
                    () -> single.allReduce(w.send, w.recv, ReduceOp.SUM, w.stream),
                    "is closed"));
        });
        add("group: things that are closed before the launch, and used again", w -> {
            DeviceBuffer<Float32> buffer = w.device.allocate(ElementType.FLOAT32, 2);
            CudaStream stream = CudaStream.nonBlocking(w.device);
            PreMulSum<Float32> op = w.first.preMulSum(ElementType.FLOAT32, 2);
            PreMulSum<Float32> otherOp = w.second.preMulSum(ElementType.FLOAT32, 2);
            DeviceBuffer<Float32> otherBuffer = w.otherDevice.allocate(ElementType.FLOAT32, 2);
            Group group = Group.open();
            w.first.allReduce(buffer, op, stream);
            w.second.allReduce(otherBuffer, otherOp, w.otherStream);
            buffer.close();
            otherBuffer.close();
            stream.close();
            op.close();
            otherOp.close();
            w.refuses(IllegalStateException.class, () -> w.first.allReduce(buffer, op, w.stream), "is closed");
            w.refuses(IllegalStateException.class, () -> w.first.allReduce(w.send, op, w.stream), "is closed");
            w.refuses(IllegalStateException.class, () -> w.first.send(w.send, 1, stream), "is closed");
            group.launch();
        });
    }

    private void ends() {
        all.add(new Misuse("group: launched after a communicator was aborted in it", true, w -> {
            Group group = Group.open();
            w.first.send(w.send, 1, w.stream);
            w.first.abort();
            w.refuses(IllegalStateException.class, group::launch, "was aborted");
        }));
        all.add(new Misuse("group: launched after another thread has aborted a communicator", true, w -> {
            Group group = Group.open();
            w.first.send(w.send, 1, w.stream);
            inThread("stranger", w.first::abort);
            w.refuses(IllegalStateException.class, group::launch, "was aborted");
        }));
        all.add(new Misuse("group: an operation after a communicator was aborted in it", true, w -> {
            Group group = Group.open();
            w.first.abort();
            w.refuses(IllegalStateException.class, () -> w.first.send(w.send, 1, w.stream), "was aborted");
            group.close();
        }));
    }
}

package io.github.nccl4j.tests.highlevel;

import static io.github.nccl4j.tests.highlevel.MisuseWorld.inGroupGivenUp;

import io.github.nccl4j.highlevel.CollectiveConfig;
import io.github.nccl4j.highlevel.CudaEvent;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.NcclLibraryException;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.highlevel.Version;
import java.util.ArrayList;
import java.util.List;

/** Configurations of single collectives that don't fit the call, the group or the library. */
final class CollectiveConfigMisuses {
    /** It has the functions, but no events. */
    static final int FIRST_VERSION_CODE = 23102;

    static final Version FIRST_VERSION = new Version(2, 31, 2);

    /** It has all. */
    static final int VERSION_CODE = 23203;

    static final Version VERSION = new Version(2, 32, 3);

    private final List<Misuse> all = new ArrayList<>();

    private CollectiveConfigMisuses() {}

    static List<Misuse> all(boolean onHost) {
        CollectiveConfigMisuses table = new CollectiveConfigMisuses();
        table.calls();
        table.groups();
        if (!onHost) {
            table.devices();
        }
        table.all.addAll(OperationMisuses.ofConfigured(onHost));
        return table.all;
    }

    static List<Misuse> ofTheFirst() {
        CollectiveConfigMisuses table = new CollectiveConfigMisuses();
        table.add(
                "NCCL 2.31.2: a launchCompletionEvent",
                w -> w.refuses(
                        NcclLibraryException.class,
                        () -> allReduce(w, withEvent(w)),
                        "launchCompletionEvent of a collective needs NCCL 2.32.3, loaded is NCCL 2.31.2 from "));
        table.add(
                "NCCL 2.31.2: a launchCompletionEvent in a group",
                w -> inGroupGivenUp(() -> {
                    CollectiveConfig config = withEvent(w);
                    w.refuses(NcclLibraryException.class, () -> allReduce(w, config), "needs NCCL 2.32.3");
                    // Once more: nothing was kept of the first time.
                    w.refuses(NcclLibraryException.class, () -> allReduce(w, config), "needs NCCL 2.32.3");
                }));
        return table.all;
    }

    private void add(String name, Misuse.Body body) {
        all.add(new Misuse(name, false, body));
    }

    private static void allReduce(MisuseWorld world, CollectiveConfig config) {
        world.first.allReduce(world.send, world.recv, ReduceOp.SUM, world.stream, config);
    }

    private static CollectiveConfig withEvent(MisuseWorld world) {
        CudaEvent event = world.later(CudaEvent.create(world.device));
        return CollectiveConfig.builder().launchCompletionEvent(event).build();
    }

    private void calls() {
        add("as configured: null", w -> w.refuses(NullPointerException.class, () -> allReduce(w, null), "config"));
        add(
                "as configured: null in a group",
                w -> inGroupGivenUp(() -> w.refuses(NullPointerException.class, () -> allReduce(w, null), "config")));
        add("as configured: a closed event", w -> {
            CudaEvent event = CudaEvent.create(w.device);
            CollectiveConfig config =
                    CollectiveConfig.builder().launchCompletionEvent(event).build();
            event.close();
            w.refuses(IllegalStateException.class, () -> allReduce(w, config), "CudaEvent", "is closed");
            inGroupGivenUp(
                    () -> w.refuses(IllegalStateException.class, () -> allReduce(w, config), "CudaEvent", "is closed"));
        });
        add("as configured: an event that takes the time", w -> {
            CudaEvent event = w.later(CudaEvent.timing(w.device));
            w.refuses(
                    IllegalArgumentException.class,
                    () -> CollectiveConfig.builder().launchCompletionEvent(event),
                    "launchCompletionEvent must not record the time, create it with CudaEvent.create: CudaEvent");
        });
    }

    private void groups() {
        add(
                "as configured: two events in a group",
                w -> inGroupGivenUp(() -> {
                    allReduce(w, withEvent(w));
                    w.refuses(
                            IllegalArgumentException.class,
                            () -> w.first.broadcast(w.floats(2), w.floats(2), 0, w.stream, withEvent(w)),
                            "one call of a communicator in a group may have a launchCompletionEvent: CudaEvent",
                            "rank 0 of 2");
                }));
        add(
                "as configured: one event twice in a group",
                w -> inGroupGivenUp(() -> {
                    CollectiveConfig config = withEvent(w);
                    allReduce(w, config);
                    Group inner = Group.open();
                    w.refuses(IllegalArgumentException.class, () -> allReduce(w, config), "one call of a communicator");
                    inner.close();
                }));
        add("as configured: an event in a group after one that was given up", w -> {
            inGroupGivenUp(() -> {
                inGroupGivenUp(() -> allReduce(w, withEvent(w)));
                // Not the second of this group any more.
                allReduce(w, withEvent(w));
                w.refuses(IllegalArgumentException.class, () -> allReduce(w, withEvent(w)), "one call");
            });
        });
        add(
                "as configured: an event for each communicator of a group, and then one more",
                w -> inGroupGivenUp(() -> {
                    allReduce(w, withEvent(w));
                    CudaEvent other = w.later(CudaEvent.create(w.otherDevice));
                    CollectiveConfig config = CollectiveConfig.builder()
                            .launchCompletionEvent(other)
                            .build();
                    w.second.allReduce(w.otherSend, w.otherRecv, ReduceOp.SUM, w.otherStream, config);
                    w.refuses(
                            IllegalArgumentException.class,
                            () -> allReduce(w, withEvent(w)),
                            "one call",
                            "rank 0 of 2");
                }));
        add(
                "as configured: two sizes of clusters in a group",
                w -> inGroupGivenUp(() -> {
                    allReduce(w, CollectiveConfig.builder().cgaClusterSize(2).build());
                    allReduce(w, CollectiveConfig.algorithm("ring"));
                    w.refuses(
                            IllegalArgumentException.class,
                            () -> allReduce(
                                    w,
                                    CollectiveConfig.builder().cgaClusterSize(4).build()),
                            "cgaClusterSize must be the same in all collectives of a group: 2, 4");
                }));
        add(
                "as configured: a call that is refused leaves no event in its group",
                w -> inGroupGivenUp(() -> {
                    CollectiveConfig config = withEvent(w);
                    w.refuses(
                            IllegalStateException.class,
                            () -> w.first.allReduce(
                                    w.closedFloats(MisuseWorld.LENGTH), w.recv, ReduceOp.SUM, w.stream, config),
                            "is closed");
                    allReduce(w, config);
                }));
    }

    private void devices() {
        add("as configured: an event of another device", w -> {
            CudaEvent event = w.later(CudaEvent.create(w.otherDevice));
            CollectiveConfig config =
                    CollectiveConfig.builder().launchCompletionEvent(event).build();
            w.refuses(
                    IllegalArgumentException.class,
                    () -> allReduce(w, config),
                    "launchCompletionEvent must be on the communicator's device",
                    "CUDA device 1",
                    "CUDA device 0");
        });
    }
}

package io.github.nccl4j.tests.highlevel;

import static io.github.nccl4j.tests.highlevel.MisuseWorld.inGroupGivenUp;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CommunicatorConfig;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.NcclLibraryException;
import io.github.nccl4j.highlevel.ShrinkFlag;
import io.github.nccl4j.highlevel.UniqueId;
import io.github.nccl4j.tools.support.Checks;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.function.UnaryOperator;

/** Communicators, ids, configurations and operators that can't be made so. */
final class CreationMisuses {
    /** No library has made it; nobody is to see it. */
    private static final UniqueId ID = UniqueId.of(new byte[UniqueId.BYTES]);

    private final List<Misuse> all = new ArrayList<>();

    private CreationMisuses() {}

    static List<Misuse> all(boolean onHost) {
        CreationMisuses table = new CreationMisuses();
        table.ids();
        table.creating();
        table.devices(onHost);
        table.deriving();
        table.configurations();
        table.operators();
        return table.all;
    }

    private void add(String name, Misuse.Body body) {
        all.add(new Misuse(name, false, body));
    }

    private void refused(String name, Class<? extends Throwable> type, Checks.Code code, String... parts) {
        add(name, w -> w.refuses(type, code, parts));
    }

    /** By an exception of the JDK that says all by its name. */
    private void refusedSilently(String name, Checks.Code code) {
        add(name, w -> w.refusesSilently(NullPointerException.class, code));
    }

    private void ids() {
        refused("id: null", NullPointerException.class, () -> UniqueId.of(null), "bytes");
        refused("id: no bytes", IllegalArgumentException.class, () -> UniqueId.of(new byte[0]), "128", "0");
        refused("id: 129 bytes", IllegalArgumentException.class, () -> UniqueId.of(new byte[129]), "128", "129");
    }

    private void creating() {
        refused("create: null as id", NullPointerException.class, () -> Communicator.create(null, 0, 1), "id");
        for (int size : new int[] {0, -1, Integer.MIN_VALUE}) {
            refused(
                    "create: " + size + " ranks",
                    IllegalArgumentException.class,
                    () -> Communicator.create(ID, 0, size),
                    "size must be >= 1: " + size);
        }
        for (int rank : new int[] {-1, 2, Integer.MAX_VALUE}) {
            refused(
                    "create: rank " + rank + " of 2",
                    IllegalArgumentException.class,
                    () -> Communicator.create(ID, rank, 2),
                    "rank must be >= 0 and < size: " + rank + ", size 2");
        }
        refused(
                "create: no ids",
                IllegalArgumentException.class,
                () -> Communicator.builder().create(List.of(), 0, 2),
                ">= 1 and <= size: 0, size 2");
        refused(
                "create: more ids than ranks",
                IllegalArgumentException.class,
                () -> Communicator.builder().create(List.of(ID, ID, ID), 0, 2),
                ">= 1 and <= size: 3, size 2");
        refused(
                "create: null among ids",
                NullPointerException.class,
                () -> Communicator.builder().create(Arrays.asList(ID, null), 0, 2),
                "ids[1]");
        refused(
                "create: null as list of ids",
                NullPointerException.class,
                () -> Communicator.builder().create((List<UniqueId>) null, 0, 2),
                "ids");
        refused(
                "builder: null as device",
                NullPointerException.class,
                () -> Communicator.builder().device(null),
                "device");
        refused(
                "builder: null as configuration",
                NullPointerException.class,
                () -> Communicator.builder().config(null),
                "config");
        refused(
                "builder: null as policy",
                NullPointerException.class,
                () -> Communicator.builder().onFailure(null),
                "policy");
        refused(
                "builder: null as deadline",
                NullPointerException.class,
                () -> Communicator.builder().deadline(null),
                "deadline");
        refused(
                "builder: null to check with",
                NullPointerException.class,
                () -> Communicator.builder().check(null),
                "rendezvous");
        refused(
                "create: another rank than that of the rendezvous of check",
                IllegalArgumentException.class,
                () -> Communicator.builder()
                        .check(ThreadRendezvous.of(2).get(1))
                        .create(ID, 0, 2),
                "rank 0 of 2",
                "rank 1 of 2");
        refused(
                "create: another size than that of the rendezvous of check",
                IllegalArgumentException.class,
                () -> Communicator.builder()
                        .check(ThreadRendezvous.of(2).get(0))
                        .create(ID, 0, 3),
                "rank 0 of 3",
                "rank 0 of 2");
        add(
                "createAll: several ranks with check",
                w -> w.refuses(
                        IllegalArgumentException.class,
                        () -> Communicator.builder()
                                .check(ThreadRendezvous.of(2).get(0))
                                .createAll(List.of(w.device, w.otherDevice)),
                        "a process must create one rank: 2"));
        for (int operations : new int[] {0, -1, 1 << 20}) {
            refused(
                    "builder: " + operations + " operations to be recorded",
                    IllegalArgumentException.class,
                    () -> Communicator.builder().flightRecorder(operations),
                    "operations must be >= 1 and < 2^20: " + operations);
        }
        for (Duration deadline : List.of(Duration.ZERO, Duration.ofSeconds(-1))) {
            refused(
                    "builder: the deadline " + deadline,
                    IllegalArgumentException.class,
                    () -> Communicator.builder().deadline(deadline),
                    "deadline must be > 0: " + deadline.toSeconds() + " s");
        }
        refusedSilently("abortAll: null", () -> Communicator.abortAll(null));
        add(
                "abortAll: null among others, none of which is aborted",
                w -> w.refusesSilently(
                        NullPointerException.class, () -> Communicator.abortAll(Arrays.asList(w.first, null))));
        refused(
                "join: null as id",
                NullPointerException.class,
                () -> Communicator.builder().join(null, 2, 3),
                "id");
        refused(
                "join: a rank beyond",
                IllegalArgumentException.class,
                () -> Communicator.builder().join(ID, 3, 3),
                "rank must be >= 0 and < size: 3, size 3");
        add(
                "wrap: 0",
                w -> w.refuses(
                        IllegalArgumentException.class, () -> Communicator.wrap(0, w.device), "handle must not be 0"));
        add(
                "adopt: 0",
                w -> w.refuses(
                        IllegalArgumentException.class, () -> Communicator.adopt(0, w.device), "handle must not be 0"));
        add(
                "wrap: null as device",
                w -> w.refuses(
                        NullPointerException.class, () -> Communicator.wrap(w.first.nativeHandle(), null), "device"));
    }

    private void devices(boolean onHost) {
        refused("createAll: null", NullPointerException.class, () -> Communicator.createAll(null), "devices");
        refused(
                "createAll: no device",
                IllegalArgumentException.class,
                () -> Communicator.createAll(List.of()),
                "number of devices must be >= 1: 0");
        refused(
                "createAll: null as a device",
                NullPointerException.class,
                () -> Communicator.createAll(Collections.singletonList(null)),
                "device");
        add(
                "createAll: more devices than ranks are left",
                w -> w.refuses(
                        IllegalArgumentException.class,
                        () -> Communicator.builder()
                                .createAll(
                                        ID, Integer.MAX_VALUE - 1, Integer.MAX_VALUE, List.of(w.device, w.otherDevice)),
                        (Integer.MAX_VALUE - 1) + " + 2 > " + Integer.MAX_VALUE));
        add(
                "createAll: the first rank -1",
                w -> w.refuses(
                        IllegalArgumentException.class,
                        () -> Communicator.builder().createAll(ID, -1, 2, List.of(w.device)),
                        "rank must be >= 0 and < size: -1, size 2"));
        add(
                "createAll: null as id",
                w -> w.refuses(
                        NullPointerException.class,
                        () -> Communicator.builder().createAll(null, 0, 2, List.of(w.device)),
                        "id"));
        refused(
                "device: the index -1",
                IndexOutOfBoundsException.class,
                () -> Device.cuda(-1),
                "index must be >= 0",
                "-1 < 0");
        refused(
                "device: an index beyond",
                IndexOutOfBoundsException.class,
                () -> Device.cuda(1000),
                "1000 >= " + (onHost ? "" : "2"));
        refused(
                "device: the index of host memory",
                IllegalStateException.class,
                () -> Device.host().index(),
                "no device");
        if (!onHost) {
            add(
                    "createAll: a device twice",
                    w -> w.refuses(
                            IllegalArgumentException.class,
                            () -> Communicator.createAll(List.of(w.device, w.device)),
                            "CUDA device 0 was given twice"));
            for (boolean wrapped : new boolean[] {false, true}) {
                add(
                        (wrapped ? "wrap" : "create") + ": host memory with a library for GPUs",
                        w -> w.refuses(
                                IllegalArgumentException.class,
                                () -> {
                                    if (wrapped) {
                                        Communicator.wrap(w.first.nativeHandle(), Device.host());
                                    } else {
                                        Communicator.builder()
                                                .device(Device.host())
                                                .create(ID, 0, 1);
                                    }
                                },
                                "host memory",
                                "recording"));
            }
        }
    }

    private void deriving() {
        for (int color : new int[] {-1, Integer.MIN_VALUE}) {
            add(
                    "split: the color " + color,
                    w -> w.refuses(
                            IllegalArgumentException.class,
                            () -> w.first.split(color, 0),
                            "color must be >= 0: " + color));
        }
        add(
                "split: null as configuration",
                w -> w.refuses(NullPointerException.class, () -> w.first.split(0, 0, null), "config"));
        add(
                "shrink: null as ranks",
                w -> w.refuses(NullPointerException.class, () -> w.first.shrink(null, ShrinkFlag.DEFAULT), "excluded"));
        add(
                "shrink: null among the ranks",
                w -> w.refuses(
                        NullPointerException.class,
                        () -> w.first.shrink(Arrays.asList(1, null), ShrinkFlag.DEFAULT),
                        "excluded rank"));
        add(
                "shrink: null as flag",
                w -> w.refuses(NullPointerException.class, () -> w.first.shrink(List.of(1), null), "flag"));
        add(
                "shrink: no rank",
                w -> w.refuses(
                        IllegalArgumentException.class,
                        () -> w.first.shrink(List.of(), ShrinkFlag.DEFAULT),
                        "excluded must not be empty"));
        add(
                "shrink: this rank",
                w -> w.refuses(
                        IllegalArgumentException.class,
                        () -> w.first.shrink(List.of(0, 1), ShrinkFlag.DEFAULT),
                        "a rank must not exclude itself: ",
                        "0"));
        for (int rank : new int[] {-1, 2}) {
            add(
                    "shrink: the rank " + rank,
                    w -> w.refuses(
                            IllegalArgumentException.class,
                            () -> w.first.shrink(List.of(1, rank), ShrinkFlag.ABORT),
                            "excluded rank must be >= 0 and < size(): " + rank + ", size 2"));
        }
        for (int size : new int[] {-1, 0, 1, 2}) {
            add(
                    "grow: to " + size + " ranks",
                    w -> w.refuses(
                            IllegalArgumentException.class,
                            () -> w.first.grow(size),
                            "newSize must be > size(): " + size + ", size 2"));
        }
    }

    private void configured(String field, int value, UnaryOperator<CommunicatorConfig.Builder> setter) {
        refused(
                "configuration: " + field + " " + value,
                IllegalArgumentException.class,
                () -> setter.apply(CommunicatorConfig.builder()),
                field,
                String.valueOf(value));
    }

    private void configurations() {
        configured("cgaClusterSize", 9, builder -> builder.cgaClusterSize(9));
        configured("cgaClusterSize", -1, builder -> builder.cgaClusterSize(-1));
        configured("minCTAs", 0, builder -> builder.minCtas(0));
        configured("maxCTAs", 0, builder -> builder.maxCtas(0));
        configured("trafficClass", Integer.MIN_VALUE, builder -> builder.trafficClass(Integer.MIN_VALUE));
        configured("nvlsCTAs", 0, builder -> builder.nvlsCtas(0));
        configured("nChannelsPerNetPeer", 65, builder -> builder.nChannelsPerNetPeer(65));
        configured("graphUsageMode", 3, builder -> builder.graphUsageMode(3));
        configured("numRmaCtx", -1, builder -> builder.numRmaCtx(-1));
        configured("maxP2pPeers", 0, builder -> builder.maxP2pPeers(0));
        refused(
                "configuration: minCTAs over maxCTAs",
                IllegalArgumentException.class,
                () -> CommunicatorConfig.builder().minCtas(9).maxCtas(8).build(),
                "minCTAs must be <= maxCTAs: 9 > 8");
        refused(
                "configuration: a blank name",
                IllegalArgumentException.class,
                () -> CommunicatorConfig.builder().commName(" "),
                "commName must not be blank");
        refused(
                "configuration: null as name",
                NullPointerException.class,
                () -> CommunicatorConfig.builder().commName(null),
                "null");
        refused(
                "configuration: NUL in the network's name",
                IllegalArgumentException.class,
                () -> CommunicatorConfig.builder().netName("a\0b"),
                "netName must not be blank or have a NUL character: 'a\\0b'");
        refused(
                "library: a function that there is not",
                NcclLibraryException.class,
                () -> NcclLibrary.get().require("ncclX"),
                "ncclX");
        refused(
                "library: null as function",
                NullPointerException.class,
                () -> NcclLibrary.get().require(null),
                "function");
    }

    private void operators() {
        add(
                "preMulSum: null as type",
                w -> w.refuses(NullPointerException.class, () -> w.first.preMulSum(null, 1), "type"));
        add(
                "preMulSum: null as buffer",
                w -> w.refuses(
                        NullPointerException.class, () -> w.first.preMulSum((DeviceBuffer<Float32>) null), "scalar"));
        for (double scalar : new double[] {0.5, Double.NaN, Double.POSITIVE_INFINITY, 0x1p63, -1e19}) {
            add(
                    "preMulSum: " + scalar + " as int64",
                    w -> w.refuses(
                            IllegalArgumentException.class,
                            () -> w.first.preMulSum(ElementType.INT64, scalar),
                            "int64",
                            String.valueOf(scalar)));
        }
        add(
                "preMulSum: 200 as int8",
                w -> w.refuses(
                        IllegalArgumentException.class,
                        () -> w.first.preMulSum(ElementType.INT8, 200),
                        "-128 to 127: 200"));
        add(
                "preMulSum: -1 as uint32",
                w -> w.refuses(
                        IllegalArgumentException.class,
                        () -> w.first.preMulSum(ElementType.UINT32, -1),
                        "0 to 4294967295: -1"));
        for (int length : new int[] {0, 2}) {
            add(
                    "preMulSum: a buffer of " + length + " elements",
                    w -> w.refuses(
                            IllegalArgumentException.class,
                            () -> w.first.preMulSum(w.floats(length)),
                            "scalar.length() must be 1: " + length + " != 1"));
        }
        add(
                "preMulSum: a closed buffer",
                w -> w.refuses(IllegalStateException.class, () -> w.first.preMulSum(w.closedFloats(1)), "is closed"));
        add("preMulSum: closed twice, then used", w -> {
            var op = w.first.preMulSum(ElementType.FLOAT32, 2);
            op.close();
            op.close();
            inGroupGivenUp(() ->
                    w.refuses(IllegalStateException.class, () -> w.first.allReduce(w.send, op, w.stream), "is closed"));
        });
        all.add(new Misuse("preMulSum: used after its communicator was closed", true, w -> {
            var op = w.first.preMulSum(ElementType.FLOAT32, 2);
            w.onBoth(Communicator::close);
            w.refuses(IllegalStateException.class, () -> w.first.allReduce(w.send, op, w.stream), "is closed");
            op.close();
        }));
    }
}

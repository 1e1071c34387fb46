package io.github.nccl4j.tests.highlevel;

import io.github.nccl4j.highlevel.CollectiveConfig;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CommunicatorConfig;
import io.github.nccl4j.highlevel.CtaPolicy;
import io.github.nccl4j.highlevel.DataType;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float8e4m3;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.HostCftMode;
import io.github.nccl4j.highlevel.MemoryStatistic;
import io.github.nccl4j.highlevel.NcclLibraryException;
import io.github.nccl4j.highlevel.NvlsHostMode;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.highlevel.RevokeFlag;
import io.github.nccl4j.highlevel.ShrinkFlag;
import io.github.nccl4j.highlevel.SuspendFlag;
import io.github.nccl4j.highlevel.UniqueId;
import io.github.nccl4j.highlevel.Version;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/** What NCCL 2.18.1 does not have: each is said with the release that has it, before anything is called. */
final class OldLibraryMisuses {
    static final int VERSION_CODE = 21801;
    static final Version VERSION = new Version(2, 18, 1);
    private static final UniqueId ID = UniqueId.of(new byte[UniqueId.BYTES]);

    private final List<Misuse> all = new ArrayList<>();

    private OldLibraryMisuses() {}

    static List<Misuse> all() {
        OldLibraryMisuses table = new OldLibraryMisuses();
        table.functions();
        table.types();
        table.fields();
        return table.all;
    }

    private void needs(String what, String release, Consumer<MisuseWorld> code) {
        all.add(new Misuse(
                "NCCL 2.18.1: " + what,
                false,
                w -> w.refuses(
                        NcclLibraryException.class,
                        () -> code.accept(w),
                        "needs NCCL " + release,
                        "loaded is NCCL 2.18.1 from ")));
    }

    private void functions() {
        needs("shrink", "2.27.3", w -> w.first.shrink(List.of(1), ShrinkFlag.DEFAULT));
        needs("grow", "2.29.2", w -> w.first.grow(3));
        needs("growId", "2.29.2", w -> w.first.growId());
        needs("join", "2.29.2", w -> Communicator.builder().device(w.device).join(ID, 2, 3));
        needs("suspend", "2.29.7", w -> w.first.suspend(SuspendFlag.MEM));
        needs("revoke", "2.28.7", w -> w.first.revoke(RevokeFlag.DEFAULT));
        needs("memory", "2.29.7", w -> w.first.memory(MemoryStatistic.GPU_MEM_TOTAL));
        needs("properties", "2.29.2", w -> w.first.properties());
        CollectiveConfig ring = CollectiveConfig.algorithm("ring");
        needs(
                "allReduce as configured",
                "2.31.2",
                w -> w.first.allReduce(w.send, w.recv, ReduceOp.SUM, w.stream, ring));
        needs("reduce as configured", "2.31.2", w -> w.first.reduce(w.send, w.recv, ReduceOp.SUM, 0, w.stream, ring));
        needs("broadcast as configured", "2.31.2", w -> w.first.broadcast(w.send, w.recv, 0, w.stream, ring));
        needs("allGather as configured", "2.31.2", w -> w.first.allGather(w.floats(4), w.recv, w.stream, ring));
        needs("reduceScatter as configured", "2.31.2", w -> {
            w.first.reduceScatter(w.send, w.floats(4), ReduceOp.SUM, w.stream, ring);
        });
        // Nothing stands in for these three, as it does for the plain calls.
        needs("allToAll as configured", "2.31.2", w -> w.first.allToAll(w.send, w.recv, w.stream, ring));
        needs("gather as configured", "2.31.2", w -> w.first.gather(w.floats(4), w.recv, 0, w.stream, ring));
        needs("scatter as configured", "2.31.2", w -> w.first.scatter(w.send, w.floats(4), 0, w.stream, ring));
        needs("a configuration of nothing", "2.31.2", w -> {
            w.first.allReduce(
                    w.send,
                    w.recv,
                    ReduceOp.SUM,
                    w.stream,
                    CollectiveConfig.builder().build());
        });
        needs("two ids", "2.23.4", w -> Communicator.builder().device(w.device).create(List.of(ID, ID), 0, 2));
        all.add(new Misuse(
                "NCCL 2.18.1: memory for windows",
                false,
                w -> w.refuses(
                        NcclLibraryException.class,
                        () -> w.device.allocateForWindow(ElementType.FLOAT32, 8),
                        "ncclMemAlloc is not provided by ",
                        "(NCCL 2.18.1); it came with NCCL 2.19.1")));
        needs("simulate", "2.22.3", w -> {
            try (Group group = Group.open()) {
                w.first.send(w.send, 1, w.stream);
                group.simulate();
            }
        });
    }

    private void types() {
        DataType type = DataType.FLOAT8_E4M3;
        String release = type.since().toString();
        needs("allReduce of float8", release, w -> w.first.allReduce(float8(w), ReduceOp.SUM, w.stream));
        needs("send of float8", release, w -> w.first.send(float8(w), 1, w.stream));
        needs("preMulSum of float8", release, w -> w.first.preMulSum(ElementType.FLOAT8E5M2, 2));
        needs("allReduce of float8 at an address", release, w -> {
            w.first.onAddresses().allReduce(w.send.address(), w.recv.address(), 8, type, ReduceOp.SUM, w.stream);
        });
    }

    private static DeviceBuffer<Float8e4m3> float8(MisuseWorld world) {
        return world.later(world.device.allocate(ElementType.FLOAT8E4M3, 4));
    }

    private void field(String name, String release, CommunicatorConfig.Builder builder) {
        CommunicatorConfig config = builder.build();
        needs(
                "create with " + name,
                release,
                w -> Communicator.builder().device(w.device).config(config).create(ID, 0, 1));
        needs("split with " + name, release, w -> w.first.split(0, 0, config));
    }

    private void fields() {
        field("trafficClass", "2.26.2", CommunicatorConfig.builder().trafficClass(1));
        field("commName", "2.27.3", CommunicatorConfig.builder().commName("x"));
        field("collnetEnable", "2.27.3", CommunicatorConfig.builder().collnetEnable(true));
        field("CTAPolicy", "2.27.3", CommunicatorConfig.builder().ctaPolicy(CtaPolicy.DEFAULT));
        field("shrinkShare", "2.27.3", CommunicatorConfig.builder().shrinkShare(true));
        field("nvlsCTAs", "2.27.3", CommunicatorConfig.builder().nvlsCtas(1));
        field("nChannelsPerNetPeer", "2.28.3", CommunicatorConfig.builder().nChannelsPerNetPeer(1));
        field("nvlinkCentricSched", "2.28.3", CommunicatorConfig.builder().nvlinkCentricSched(true));
        field("graphUsageMode", "2.29.2", CommunicatorConfig.builder().graphUsageMode(0));
        field("numRmaCtx", "2.29.2", CommunicatorConfig.builder().numRmaCtx(1));
        field("maxP2pPeers", "2.30.3", CommunicatorConfig.builder().maxP2pPeers(1));
        field("graphStreamOrdering", "2.30.7", CommunicatorConfig.builder().graphStreamOrdering(true));
        field("minCTAs without maxCTAs", "2.31.2", CommunicatorConfig.builder().minCtas(1));
        field("launchOrderImplicit", "2.31.2", CommunicatorConfig.builder().launchOrderImplicit(true));
        field("numRmaSig", "2.31.2", CommunicatorConfig.builder().numRmaSig(1));
        field("rmaEagerInit", "2.31.2", CommunicatorConfig.builder().rmaEagerInit(false));
        field("hostCftMode", "2.31.2", CommunicatorConfig.builder().hostCftMode(HostCftMode.ENABLE));
        field("nvlsHostMode", "2.32.3", CommunicatorConfig.builder().nvlsHostMode(NvlsHostMode.ENABLE));
    }
}

package io.github.nccl4j.tests.highlevel;

import io.github.nccl4j.highlevel.DataType;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float16;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.highlevel.Version;
import io.github.nccl4j.highlevel.WindowFlag;
import io.github.nccl4j.tools.support.Checks;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiConsumer;

/** What NCCL 2.28.3 and 2.30.7 get wrong in symmetric windows: refused before anything is called. */
final class FaultyLibraryMisuses {
    static final int VERSION_CODE = 22803;
    static final Version VERSION = new Version(2, 28, 3);

    private static final long PAGE = 4096;

    private final List<Misuse> all = new ArrayList<>();

    private FaultyLibraryMisuses() {}

    static List<Misuse> all() {
        FaultyLibraryMisuses table = new FaultyLibraryMisuses();
        String odd = "must begin at a multiple of 4 bytes, not at 0x";
        table.wrong("allReduce", odd, (w, half) -> w.first.allReduce(half.slice(1, 3), ReduceOp.SUM, w.stream));
        table.wrong("allReduce of addresses", odd, (w, half) -> w.first
                .onAddresses()
                .allReduce(half.address() + 2, half.address() + 32, 3, DataType.FLOAT16, ReduceOp.SUM, w.stream));
        table.wrong("allGather", odd, (w, half) -> w.first.allGather(half.slice(1, 4), half.slice(8, 8), w.stream));
        table.wrong(
                "allGather of a small block",
                "a multiple of 8 bytes, not 6 (3 elements)",
                (w, half) -> w.first.allGather(half.slice(0, 3), half.slice(8, 6), w.stream));
        table.wrong(
                "reduceScatter of a small block",
                "a multiple of 8 bytes, not 6 (3 elements)",
                (w, half) -> w.first.reduceScatter(half.slice(0, 6), half.slice(8, 3), ReduceOp.SUM, w.stream));
        return table.all;
    }

    /** What 2.30.7 has no kernels for. */
    static List<Misuse> ofTheNewest() {
        FaultyLibraryMisuses table = new FaultyLibraryMisuses();
        table.average("allReduce", (w, half) -> w.first.allReduce(half, ReduceOp.AVG, w.stream));
        table.average("allReduce from elsewhere", (w, half) -> {
            try (DeviceBuffer<Float16> elsewhere = w.device.allocate(ElementType.FLOAT16, 8)) {
                w.first.allReduce(elsewhere, half.slice(0, 8), ReduceOp.AVG, w.stream);
            }
        });
        table.average("allReduce of addresses", (w, half) -> w.first
                .onAddresses()
                .allReduce(half.address(), half.address(), 8, DataType.FLOAT16, ReduceOp.AVG, w.stream));
        table.average("allReduce in a group", (w, half) -> {
            try (Group group = Group.open()) {
                w.first.allReduce(half, ReduceOp.AVG, w.stream);
                group.launch();
            }
        });
        return table.all;
    }

    private void average(String what, BiConsumer<MisuseWorld, DeviceBuffer<Float16>> code) {
        all.add(new Misuse(
                "NCCL 2.30.7 in a window: AVG by " + what,
                false,
                w -> w.refuses(
                        IllegalArgumentException.class,
                        inAWindow(w, code),
                        "all-reduce has no AVG of float16",
                        "NCCL 2.30.7 has no kernel")));
    }

    private void wrong(String what, String words, BiConsumer<MisuseWorld, DeviceBuffer<Float16>> code) {
        all.add(new Misuse(
                "NCCL 2.28.3 in a window: " + what,
                false,
                w -> w.refuses(
                        IllegalArgumentException.class, inAWindow(w, code), words, "NCCL 2.28.3 returns wrong")));
    }

    private static Checks.Code inAWindow(MisuseWorld w, BiConsumer<MisuseWorld, DeviceBuffer<Float16>> code) {
        DeviceBuffer<Float16> memory = w.later(w.device.allocateForWindow(ElementType.FLOAT16, 2 * PAGE));
        // The stub's memory is not aligned as NCCL's is.
        DeviceBuffer<Float16> half = memory.slice((PAGE - memory.address() % PAGE) % PAGE / 2, PAGE / 2);
        w.later(w.first.registerWindow(half, WindowFlag.COLL_SYMMETRIC));
        return () -> code.accept(w, half);
    }
}

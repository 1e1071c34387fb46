package io.github.nccl4j.tools.conformance;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Uint8;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.Result;
import io.github.nccl4j.highlevel.UniqueId;
import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.nccl.ncclConfig_t;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.IntPointer;
import org.bytedeco.javacpp.LongPointer;

/**
 * Wrong calls of NCCL's C API, and calls whose result the documentation does not define, each with a communicator of
 * its own. The result of a scenario is the codes that its calls return, and the state of its stream where that matters. The scenarios have only calls whose arguments
 * NCCL checks itself, or that the documentation allows: no engine must read memory that does not exist.
 */
final class CallScenarios {
    private static final long BYTES = 1 << 20;
    private static final int FLOAT = nccl.ncclFloat32;
    private static final int SUM = nccl.ncclSum;

    private final Rendezvous rendezvous;
    private final Duration patience;
    private final int rank;
    private final int size;
    private final Device device;
    private final Map<String, Runnable> scenarios = new LinkedHashMap<>();

    private final LongPointer handle = new LongPointer(2);
    private final IntPointer number = new IntPointer(1);
    private final BytePointer id = new BytePointer(UniqueId.BYTES);
    private List<String> codes;
    private CudaStream work;
    private long stream;
    private long send;
    private long recv;
    private long communicator;

    CallScenarios(Rendezvous rendezvous, Duration patience, Device device) {
        this.rendezvous = rendezvous;
        this.patience = patience;
        this.device = device;
        rank = rendezvous.rank();
        size = rendezvous.size();
        arguments();
        communicators();
        configurations();
        life();
        groups();
        messages();
        memory();
    }

    Set<String> subjects() {
        return scenarios.keySet();
    }

    /** Runs a scenario. Collective. */
    void run(String subject, Consumer<String> result) {
        if (device.isCuda()) {
            cudart.cudaSetDevice(device.index());
        }
        try (CudaStream created = CudaStream.nonBlocking(device);
                DeviceBuffer<Uint8> allocated = device.allocateForWindow(ElementType.UINT8, BYTES)) {
            work = created;
            stream = created.nativeHandle();
            send = allocated.address();
            recv = send + BYTES / 2;
            codes = new ArrayList<>();
            scenarios.get(subject).run();
            result.accept(String.join(" ", codes));
            rendezvous.barrier("done " + subject, patience);
            if (communicator != 0) {
                nccl.ncclCommAbort(communicator);
                communicator = 0;
            }
        }
    }

    // --- parts of scenarios

    private void add(String subject, Runnable scenario) {
        scenarios.put(subject, scenario);
    }

    /** A scenario with a communicator. */
    private void with(String subject, Runnable calls) {
        add(subject, () -> {
            communicator = create(subject, null);
            if (communicator != 0) {
                calls.run();
            }
        });
    }

    /** As {@link #with(String, Runnable)}, if the library has a function. */
    private void with(String function, String subject, Runnable calls) {
        if (NcclLibrary.get().provides(function)) {
            with(subject, calls);
        }
    }

    /** A scenario that creates a communicator with a configuration and sums an element. */
    private void configured(String subject, Consumer<ncclConfig_t> fields) {
        add("CommInitRankConfig: " + subject, () -> {
            try (ncclConfig_t config = new ncclConfig_t()) {
                fields.accept(config);
                shareId(subject);
                code(nccl.ncclCommInitRankConfig(handle.address(), size, id.address(), rank, config.address()));
            }
            communicator = handle.get(0);
            if (communicator != 0) {
                code(settle(communicator));
                code(allReduce());
            }
        });
    }

    /** Puts a new id into {@link #id} on all ranks. */
    private void shareId(String subject) {
        byte[] bytes = rendezvous.broadcast(
                "id of " + subject, 0, () -> UniqueId.create().toBytes(), patience);
        id.position(0).put(bytes);
        handle.put(0, 0);
    }

    private long create(String subject, ncclConfig_t config) {
        shareId(subject);
        int result = config == null
                ? nccl.ncclCommInitRank(handle.address(), size, id.address(), rank)
                : nccl.ncclCommInitRankConfig(handle.address(), size, id.address(), rank, config.address());
        if (result != nccl.ncclSuccess && result != nccl.ncclInProgress) {
            code(result);
            return 0;
        }
        settle(handle.get(0));
        return handle.get(0);
    }

    /** Waits until a communicator that does not block has completed its call, and returns its state. */
    private int settle(long of) {
        do {
            int result = nccl.ncclCommGetAsyncError(of, number.address());
            if (result != nccl.ncclSuccess) {
                return result;
            }
            Thread.onSpinWait();
        } while (number.get() == nccl.ncclInProgress);
        return number.get();
    }

    private void inGroup(Runnable calls) {
        code(nccl.ncclGroupStart());
        calls.run();
        code(nccl.ncclGroupEnd());
    }

    private void code(int result) {
        codes.add(Result.of(result).name());
    }

    private int allReduce() {
        return allReduce(FLOAT, SUM);
    }

    private int allReduce(int type, int op) {
        return nccl.ncclAllReduce(send, recv, 1, type, op, communicator, stream);
    }

    private int broadcast(int root) {
        return nccl.ncclBroadcast(send, recv, 1, FLOAT, root, communicator, stream);
    }

    private int reduce(int root) {
        return nccl.ncclReduce(send, recv, 1, FLOAT, SUM, root, communicator, stream);
    }

    private int send(int peer) {
        return nccl.ncclSend(send, 1, FLOAT, peer, communicator, stream);
    }

    private int receive(int peer) {
        return nccl.ncclRecv(recv, 1, FLOAT, peer, communicator, stream);
    }

    // --- the scenarios

    private void arguments() {
        with("AllReduce: type -1", () -> code(allReduce(-1, SUM)));
        with("AllReduce: type 12", () -> code(allReduce(12, SUM)));
        with("AllReduce: operator -1", () -> code(allReduce(FLOAT, -1)));
        with("AllReduce: operator 5, never created", () -> code(allReduce(FLOAT, 5)));
        with("AllReduce: operator 1000, never created", () -> code(allReduce(FLOAT, 1000)));
        with(
                "AllReduce: no elements, no buffers",
                () -> code(nccl.ncclAllReduce(0, 0, 0, FLOAT, SUM, communicator, stream)));
        add("AllReduce: no communicator", () -> code(allReduce()));
        with("Broadcast: root -1", () -> code(broadcast(-1)));
        with("Broadcast: root beyond the ranks", () -> code(broadcast(size)));
        with("Reduce: root -1", () -> code(reduce(-1)));
        with("Reduce: root beyond the ranks", () -> code(reduce(size)));
        with(
                "ncclGather",
                "Gather: root beyond the ranks",
                () -> code(nccl.ncclGather(send, recv, 1, FLOAT, size, communicator, stream)));
        with(
                "ncclScatter",
                "Scatter: root beyond the ranks",
                () -> code(nccl.ncclScatter(send, recv, 1, FLOAT, size, communicator, stream)));
        with(
                "ncclAlltoAll",
                "AlltoAll: in place",
                () -> code(nccl.ncclAlltoAll(send, send, 1, FLOAT, communicator, stream)));
        with("Send: peer -1", () -> code(send(-1)));
        with("Send: peer beyond the ranks", () -> code(send(size)));
        with("Recv: peer -1", () -> code(receive(-1)));
        with("Recv: peer beyond the ranks", () -> code(receive(size)));
        with("RedOpDestroy: ncclSum", () -> code(nccl.ncclRedOpDestroy(SUM, communicator)));
        with("RedOpDestroy: 5, never created", () -> code(nccl.ncclRedOpDestroy(5, communicator)));
        with("RedOpDestroy: 1000, never created", () -> code(nccl.ncclRedOpDestroy(1000, communicator)));
        with("RedOpDestroy: twice", () -> {
            code(preMulSum(FLOAT, nccl.ncclScalarHostImmediate));
            int op = number.get();
            code(nccl.ncclRedOpDestroy(op, communicator));
            code(nccl.ncclRedOpDestroy(op, communicator));
        });
        with("AllReduce: operator of another type", () -> {
            code(preMulSum(FLOAT, nccl.ncclScalarHostImmediate));
            code(allReduce(nccl.ncclInt32, number.get()));
        });
        with("AllReduce: operator after its end", () -> {
            code(preMulSum(FLOAT, nccl.ncclScalarHostImmediate));
            int op = number.get();
            code(nccl.ncclRedOpDestroy(op, communicator));
            code(allReduce(FLOAT, op));
        });
        with("RedOpCreatePreMulSum: type 12", () -> code(preMulSum(12, nccl.ncclScalarHostImmediate)));
        add("GetVersion: null", () -> code(nccl.ncclGetVersion(0)));
        add("GetUniqueId: null", () -> code(nccl.ncclGetUniqueId(0)));
    }

    private int preMulSum(int type, int residence) {
        handle.put(1, 0);
        return nccl.ncclRedOpCreatePreMulSum(
                number.address(), handle.address() + Long.BYTES, type, residence, communicator);
    }

    private void communicators() {
        with("CommCount: null", () -> code(nccl.ncclCommCount(communicator, 0)));
        add("CommCount: no communicator", () -> code(nccl.ncclCommCount(0, number.address())));
        with("CommUserRank: null", () -> code(nccl.ncclCommUserRank(communicator, 0)));
        with("CommCuDevice: null", () -> code(nccl.ncclCommCuDevice(communicator, 0)));
        with("CommGetAsyncError: null", () -> code(nccl.ncclCommGetAsyncError(communicator, 0)));
        add("CommDestroy: no communicator", () -> code(nccl.ncclCommDestroy(0)));
        add("CommAbort: no communicator", () -> code(nccl.ncclCommAbort(0)));
        add("CommFinalize: no communicator", () -> code(nccl.ncclCommFinalize(0)));
        add("CommInitRank: rank beyond the ranks", () -> initRank(size, size));
        add("CommInitRank: rank -1", () -> initRank(size, -1));
        add("CommInitRank: no ranks", () -> initRank(0, 0));
        with("CommSplit: color -5", () -> split(-5, null));
        with("CommSplit: no rank has a color", () -> split(nccl.NCCL_SPLIT_NOCOLOR, null));
        with("CommSplit: null", () -> code(nccl.ncclCommSplit(communicator, 0, rank, 0, 0)));
        with("ncclCommShrink", "CommShrink: nobody is excluded", () -> shrink(0, 0));
        with("ncclCommShrink", "CommShrink: rank -1 is excluded", () -> shrink(1, -1));
        with("ncclCommShrink", "CommShrink: a rank beyond the ranks is excluded", () -> shrink(1, size));
        with("ncclCommShrink", "CommShrink: the rank itself is excluded", () -> shrink(1, rank));
        for (boolean blocks : new boolean[] {true, false}) {
            add("CommSplit of a parent with blocking=" + (blocks ? 1 : 0) + ", blocking unset", () -> {
                try (ncclConfig_t config = new ncclConfig_t()) {
                    config.blocking(blocks ? 1 : 0);
                    communicator = create("split of " + blocks, config);
                }
                try (ncclConfig_t unset = new ncclConfig_t()) {
                    split(0, unset);
                }
            });
        }
    }

    private void initRank(int ranks, int as) {
        id.position(0).put(UniqueId.create().toBytes());
        handle.put(0, 0);
        code(nccl.ncclCommInitRank(handle.address(), ranks, id.address(), as));
    }

    private void split(int color, ncclConfig_t config) {
        handle.put(0, 0);
        code(nccl.ncclCommSplit(communicator, color, rank, handle.address(), config == null ? 0 : config.address()));
        code(settle(communicator));
        abortChild();
    }

    private void shrink(int count, int excluded) {
        handle.put(0, 0);
        number.put(excluded);
        code(nccl.ncclCommShrink(communicator, number.address(), count, handle.address(), 0, nccl.NCCL_SHRINK_DEFAULT));
        abortChild();
    }

    private void abortChild() {
        long child = handle.get(0);
        codes.add(child == 0 ? "null" : "communicator");
        if (child != 0) {
            settle(child);
            nccl.ncclCommAbort(child);
        }
    }

    private void configurations() {
        configured("blocking 2", config -> config.blocking(2));
        configured("minCTAs 4 alone", config -> config.minCTAs(4));
        configured("maxCTAs 4 alone", config -> config.maxCTAs(4));
        configured("minCTAs 8, maxCTAs 4", config -> {
            config.minCTAs(8);
            config.maxCTAs(4);
        });
        configured("minCTAs 0", config -> config.minCTAs(0));
        configured("cgaClusterSize 9", config -> config.cgaClusterSize(9));
        configured("cgaClusterSize -1", config -> config.cgaClusterSize(-1));
        configured("splitShare 2", config -> config.splitShare(2));
        configured("trafficClass -5", config -> config.trafficClass(-5));
        configured("CTAPolicy 64", config -> config.CTAPolicy(64));
        configured("shrinkShare 2", config -> config.shrinkShare(2));
        configured("nvlsCTAs -1", config -> config.nvlsCTAs(-1));
        configured("all fields undefined", config -> {});
    }

    private void life() {
        with("CommFinalize, then AllReduce", () -> {
            code(nccl.ncclCommFinalize(communicator));
            code(settle(communicator));
            code(allReduce());
        });
        with("CommFinalize twice", () -> {
            code(nccl.ncclCommFinalize(communicator));
            code(settle(communicator));
            code(nccl.ncclCommFinalize(communicator));
        });
        with("CommDestroy in a group", () -> {
            inGroup(() -> {
                code(nccl.ncclCommDestroy(communicator));
                communicator = 0;
            });
        });
        with("CommFinalize in a group", () -> {
            inGroup(() -> code(nccl.ncclCommFinalize(communicator)));
        });
        with("AllReduce and CommSplit in a group", () -> {
            inGroup(() -> {
                code(allReduce());
                handle.put(0, 0);
                code(nccl.ncclCommSplit(communicator, 0, rank, handle.address(), 0));
            });
            abortChild();
        });
    }

    private void groups() {
        add("GroupEnd without GroupStart", () -> code(nccl.ncclGroupEnd()));
        with("Send to the rank itself without Recv", () -> {
            inGroup(() -> code(send(rank)));
        });
        with("Recv from the rank itself without Send", () -> {
            inGroup(() -> code(receive(rank)));
        });
        with("a group with a wrong call, then AllReduce", () -> {
            inGroup(() -> code(allReduce(FLOAT, -1)));
            code(allReduce());
        });
        with("a group with a wrong call between two AllReduce", () -> {
            inGroup(() -> {
                code(allReduce());
                code(broadcast(size));
                code(allReduce());
            });
            code(allReduce());
        });
        add("blocking and non-blocking communicators created in a group", () -> {
            shareId("the first of two");
            try (ncclConfig_t blocks = new ncclConfig_t();
                    ncclConfig_t polls = new ncclConfig_t();
                    BytePointer second = new BytePointer(UniqueId.BYTES);
                    LongPointer other = new LongPointer(1)) {
                second.put(rendezvous.broadcast(
                        "second of two", 0, () -> UniqueId.create().toBytes(), patience));
                other.put(0, 0);
                blocks.blocking(1);
                polls.blocking(0);
                inGroup(() -> {
                    code(nccl.ncclCommInitRankConfig(handle.address(), size, id.address(), rank, blocks.address()));
                    code(nccl.ncclCommInitRankConfig(other.address(), size, second.address(), rank, polls.address()));
                });
                communicator = handle.get(0);
                if (other.get(0) != 0) {
                    settle(other.get(0));
                    nccl.ncclCommAbort(other.get(0));
                }
            }
        });
    }

    /** Sends that may end before their Recv, of ranks 0 and 1. */
    private void messages() {
        if (size != 2) {
            return;
        }
        pair("1 Send, before its Recv", () -> sends(1, 1), () -> {}, () -> receives(1, 1));
        pair("8 Sends of 256 bytes, before their Recvs", () -> sends(8, 64), () -> {}, () -> receives(8, 64));
        pair("9 Sends, before their Recvs", () -> sends(9, 1), () -> {}, () -> receives(9, 1));
        pair(
                "Send, then AllReduce; AllReduce, then Recv",
                () -> {
                    code(send(1));
                    code(allReduce());
                },
                () -> code(allReduce()),
                () -> code(receive(0)));
        pair(
                "Send, then Recv, at both ranks",
                () -> {
                    code(send(1));
                    code(receive(1));
                },
                () -> {
                    code(send(0));
                    code(receive(0));
                },
                () -> {});
    }

    /**
     * A scenario of two ranks that have exchanged messages before. Its result has the state of rank 0 before rank 1 makes its last
     * calls, and the state at the end.
     */
    private void pair(String subject, Runnable first, Runnable meanwhile, Runnable last) {
        with(subject, () -> {
            connect();
            if (rank == 0) {
                first.run();
                codes.add(isDoneWithin(Duration.ofSeconds(1)) ? "done" : "pending");
            } else {
                meanwhile.run();
            }
            rendezvous.barrier("last calls of " + subject, patience);
            if (rank == 1) {
                last.run();
            }
            codes.add(isDoneWithin(patience) ? "done" : "pending");
        });
    }

    /** The first message in each direction. */
    private void connect() {
        for (int from = 0; from < size; from++) {
            int result = rank == from ? send(1 - from) : receive(from);
            if (result != nccl.ncclSuccess) {
                code(result);
            }
        }
        work.synchronize();
    }

    private boolean isDoneWithin(Duration limit) {
        long start = System.nanoTime();
        while (!work.isDone()) {
            if (System.nanoTime() - start > limit.toNanos()) {
                return false;
            }
            Thread.onSpinWait();
        }
        return true;
    }

    private void sends(int count, long elements) {
        for (int i = 0; i < count; i++) {
            code(nccl.ncclSend(send, elements, FLOAT, 1, communicator, stream));
        }
    }

    private void receives(int count, long elements) {
        for (int i = 0; i < count; i++) {
            code(nccl.ncclRecv(recv, elements, FLOAT, 0, communicator, stream));
        }
    }

    private void memory() {
        add("MemAlloc: null", () -> code(nccl.ncclMemAlloc(0, 1)));
        add("MemFree: null", () -> code(nccl.ncclMemFree(0)));
        with("ncclCommWindowRegister", "CommWindowRegister: address + 1", () -> window(send + 1, BYTES / 2, 1));
        with("ncclCommWindowRegister", "CommWindowRegister: address + 256", () -> window(send + 256, BYTES / 2, 1));
        with("ncclCommWindowRegister", "CommWindowRegister: address + 4096", () -> window(send + 4096, BYTES / 2, 1));
        with("ncclCommWindowRegister", "CommWindowRegister: flags 0", () -> window(send, BYTES, 0));
        with("ncclCommWindowRegister", "CommWindowRegister: flags 64", () -> window(send, BYTES, 64));
        with("ncclCommRegister", "CommRegister: no bytes", () -> {
            handle.put(0, 0);
            code(nccl.ncclCommRegister(communicator, send, 0, handle.address()));
        });
        with("ncclCommRegister", "CommRegister and CommDeregister", () -> {
            handle.put(0, 0);
            code(nccl.ncclCommRegister(communicator, send, BYTES, handle.address()));
            code(nccl.ncclCommDeregister(communicator, handle.get(0)));
        });
    }

    private void window(long address, long bytes, int flags) {
        handle.put(0, 0);
        code(nccl.ncclCommWindowRegister(communicator, address, bytes, handle.address(), flags));
        codes.add(handle.get(0) == 0 ? "null" : "window");
        if (handle.get(0) != 0) {
            code(nccl.ncclCommWindowDeregister(communicator, handle.get(0)));
        }
    }
}

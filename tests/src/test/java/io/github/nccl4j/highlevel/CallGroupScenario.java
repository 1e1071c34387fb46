package io.github.nccl4j.highlevel;

import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.internal.operation.OperationKind;
import io.github.nccl4j.internal.operation.OperationLog;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * Operations that consist of several native calls, alone and in a group that the caller has opened, make the same calls
 * of NCCL. Runs in a JVM with the fake CUDA and the stub that logs.
 */
public final class CallGroupScenario {
    private static final int RANKS = 3;
    private static final int RANK = 1;
    private static final Path LOG = Path.of(System.getenv("STUB_LOG"));

    private CallGroupScenario() {}

    private static void equal(Object expected, Object actual, String what) {
        if (!expected.equals(actual)) {
            throw new AssertionError(what + ": expected " + expected + ", was " + actual);
        }
    }

    private static List<String> logged(Runnable calls) {
        try {
            Files.writeString(LOG, "");
            calls.run();
            return Files.readAllLines(LOG);
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    private static void alike(String what, int parts, Runnable operation) {
        List<String> alone = logged(operation);
        equal(alone, logged(() -> Group.run(operation)), what);
        if (parts == 0) {
            equal(List.of(), alone, what);
            return;
        }
        equal(parts + 2, alone.size(), what + ", calls " + alone);
        equal("start", alone.get(0), what);
        equal("end", alone.get(alone.size() - 1), what);
    }

    public static void main(String[] args) throws IOException {
        Device device = Device.cuda(0);
        try (Communicator communicator = Communicator.builder().device(device).create(UniqueId.create(), RANK, RANKS);
                CudaStream stream = CudaStream.nonBlocking(device);
                DeviceBuffer<Float32> send = device.allocate(ElementType.FLOAT32, 60);
                DeviceBuffer<Float32> recv = device.allocate(ElementType.FLOAT32, 60)) {
            operations(communicator, stream, send, recv);
            failure(communicator, stream, send, recv);
        }
    }

    private static void operations(
            Communicator communicator, CudaStream stream, DeviceBuffer<Float32> send, DeviceBuffer<Float32> recv) {
        long[] counts = {2, 4, 6};
        long[] places = {0, 2, 6};
        DeviceBuffer<Float32> own = send.slice(0, 4);
        DeviceBuffer<Float32> within = recv.slice(2, 4);
        alike("sendRecv", 2, () -> communicator.sendRecv(send, 2, recv, 0, stream));
        alike("sendRecv of nothing", 0, () -> communicator.sendRecv(send.slice(0, 0), 2, recv.slice(0, 0), 0, stream));
        alike("allToAll", 6, () -> communicator.allToAll(send, recv, stream));
        alike("gather", 4, () -> communicator.gather(own, recv.slice(0, 12), RANK, stream));
        alike("gather elsewhere", 1, () -> communicator.gather(own, 2, stream));
        alike("scatter", 4, () -> communicator.scatter(send.slice(0, 12), within, RANK, stream));
        alike("scatter elsewhere", 1, () -> communicator.scatter(within, 2, stream));
        alike("allGatherv", 6, () -> communicator.allGatherv(own, recv, counts, places, stream));
        alike("allGatherv in place", 4, () -> communicator.allGatherv(within, recv, counts, places, stream));
        alike("gatherv", 4, () -> communicator.gatherv(own, recv, counts, places, RANK, stream));
        alike("gatherv elsewhere", 1, () -> communicator.gatherv(own, 0, stream));
        alike("scatterv", 4, () -> communicator.scatterv(send, counts, places, within, RANK, stream));
        alike("scatterv elsewhere", 1, () -> communicator.scatterv(within, 0, stream));
        alike(
                "reduceScatterv",
                3,
                () -> communicator.reduceScatterv(send.slice(0, 12), within, counts, ReduceOp.SUM, stream));
        alike(
                "allToAllvUnchecked",
                6,
                () -> communicator.allToAllvUnchecked(send, counts, places, recv, counts, places, stream));
        alike(
                "allToAllvUnchecked with empty blocks",
                3,
                () -> communicator.allToAllvUnchecked(
                        send, new long[] {0, 0, 5}, places, recv, new long[] {7, 0, 2}, new long[] {0, 9, 20}, stream));
        int group = communicator.core().operationLog().last().group();
        communicator.sendRecv(send, 2, recv, 0, stream);
        OperationLog.Entry last = communicator.core().operationLog().last();
        equal(group + 1, last.group(), "the number of the group");
        equal(OperationKind.RECV, last.kind(), "the last call");
    }

    /** Both calls are made or none; the thread is in no group, and nobody is inside afterwards. */
    private static void failure(
            Communicator communicator, CudaStream stream, DeviceBuffer<Float32> send, DeviceBuffer<Float32> recv) {
        DeviceBuffer<Float32> wrong = send.slice(0, 13);
        fails(
                () -> communicator.sendRecv(wrong, 2, recv, 0, stream),
                "ncclSend of 13 float32 to rank 2 in a group of 2 operations",
                List.of("start", "send", "end"));
        fails(
                () -> communicator.sendRecv(recv, 2, wrong, 0, stream),
                "ncclRecv of 13 float32 from rank 0 in a group of 2 operations",
                List.of("start", "send", "receive", "end"));
        fails(
                () -> communicator.gather(wrong, 2, stream),
                "ncclSend of 13 float32 to rank 2 in a group of 1 operation",
                List.of("start", "send", "end"));
        alike("sendRecv after a failure", 2, () -> communicator.sendRecv(send, 2, recv, 0, stream));
    }

    private static void fails(Runnable operation, String expected, List<String> expectedCalls) {
        List<String> calls = logged(() -> {
            try {
                operation.run();
                throw new AssertionError("nothing was thrown");
            } catch (NcclResultException e) {
                equal(true, e.getMessage().contains(expected), e.getMessage());
            }
        });
        equal(expectedCalls, calls.stream().map(call -> call.split(" ")[0]).toList(), "calls");
    }
}

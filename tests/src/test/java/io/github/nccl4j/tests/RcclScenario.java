package io.github.nccl4j.tests;

import io.github.nccl4j.highlevel.AllToAllvPlan;
import io.github.nccl4j.highlevel.CallInterceptor;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.UniqueId;
import io.github.nccl4j.highlevel.Window;
import io.github.nccl4j.highlevel.WindowFlag;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** All-to-alls of three ranks, threads, with other counts for each pair, on a library with RCCL's ncclAlltoAllv. */
final class RcclScenario {
    private static final int RANKS = 3;
    private static final Device DEVICE = Device.host();

    private final int rank;
    private final Communicator communicator;
    private final CudaStream stream;

    private RcclScenario(int rank, Communicator communicator, CudaStream stream) {
        this.rank = rank;
        this.communicator = communicator;
        this.stream = stream;
    }

    public static void main(String... args) throws Exception {
        UniqueId id = UniqueId.create();
        ExecutorService threads = Executors.newFixedThreadPool(RANKS);
        Map<String, Integer> results = new TreeMap<>();
        Map<Integer, Long> told = new ConcurrentSkipListMap<>();
        CallInterceptor.Installed interceptor = NcclLibrary.intercept(new CallInterceptor() {
            @Override
            public void after(Call call, int result, long nanoseconds) {
                if (call.function().equals("ncclAlltoAllv")) {
                    told.put(call.rank(), call.count());
                }
            }
        });
        try {
            List<Future<List<String>>> ranks = new ArrayList<>();
            for (int i = 0; i < RANKS; i++) {
                int rank = i;
                Callable<List<String>> work = () -> {
                    try (Communicator communicator = Communicator.create(id, rank, RANKS);
                            CudaStream stream = CudaStream.nonBlocking(DEVICE)) {
                        return new RcclScenario(rank, communicator, stream).run();
                    }
                };
                ranks.add(threads.submit(work));
            }
            for (Future<List<String>> one : ranks) {
                one.get().forEach(line -> results.merge(line, 1, Integer::sum));
            }
        } finally {
            interceptor.close();
            threads.shutdownNow();
        }
        for (String line : List.of("alone", "in windows", "in a group")) {
            if (results.get(line) == null || results.get(line) != RANKS) {
                throw new AssertionError(line + ": right at " + results.get(line) + " ranks of " + RANKS);
            }
        }
        System.out.println(NcclLibrary.get().alltoAllvForm() + " native " + (results.get("native true") == RANKS));
        System.out.println("alone: right\nin windows: right\nin a group: right");
        List<String> sent = new ArrayList<>();
        told.forEach((rank, count) -> sent.add(rank + " sent " + count));
        System.out.println("told: " + String.join(", ", sent));
    }

    private static long count(int from, int to) {
        return 1 + 2L * from + to;
    }

    private static int element(int from, int to, long index) {
        return 10_000 * from + 100 * to + (int) index;
    }

    private List<String> run() {
        List<String> results = new ArrayList<>();
        try (DeviceBuffer<Int32> send = DEVICE.allocateForWindow(ElementType.INT32, 32);
                DeviceBuffer<Int32> recv = DEVICE.allocateForWindow(ElementType.INT32, 32)) {
            results.add("native " + exchange(send, recv, false));
            results.add("alone");
            exchange(send, recv, true);
            results.add("in a group");
            try (Window from = communicator.registerWindow(send, WindowFlag.COLL_SYMMETRIC);
                    Window to = communicator.registerWindow(recv, WindowFlag.COLL_SYMMETRIC)) {
                exchange(send, recv, false);
                results.add(from.isOpen() && to.isOpen() ? "in windows" : "closed");
            }
        }
        return results;
    }

    private boolean exchange(DeviceBuffer<Int32> send, DeviceBuffer<Int32> recv, boolean inGroup) {
        long[] sendCounts = new long[RANKS];
        long[] recvCounts = new long[RANKS];
        long[] sendPlaces = new long[RANKS];
        long[] recvPlaces = new long[RANKS];
        long sent = 0;
        long received = 0;
        int[] elements = new int[32];
        for (int peer = 0; peer < RANKS; peer++) {
            sendCounts[peer] = count(rank, peer);
            recvCounts[peer] = count(peer, rank);
            sendPlaces[peer] = sent;
            recvPlaces[peer] = received;
            for (int i = 0; i < sendCounts[peer]; i++) {
                elements[(int) sent + i] = element(rank, peer, i);
            }
            sent += sendCounts[peer];
            // A gap, so that the two kinds of displacements differ.
            received += recvCounts[peer] + (peer == 0 ? 1 : 0);
        }
        send.copyFrom(elements);
        recv.fill(-1);
        boolean isNative;
        try (AllToAllvPlan<Int32> plan =
                communicator.planAllToAllv(send, sendCounts, sendPlaces, recv, recvCounts, recvPlaces)) {
            isNative = plan.usesNativeCall();
            if (inGroup) {
                Group.run(() -> communicator.allToAllv(plan, stream));
            } else {
                communicator.allToAllv(plan, stream);
            }
            communicator.work(stream).await();
        }
        int[] expected = new int[32];
        Arrays.fill(expected, -1);
        for (int peer = 0; peer < RANKS; peer++) {
            for (int i = 0; i < recvCounts[peer]; i++) {
                expected[(int) recvPlaces[peer] + i] = element(peer, rank, i);
            }
        }
        int[] seen = new int[32];
        recv.copyTo(seen);
        if (!Arrays.equals(expected, seen)) {
            throw new AssertionError("rank " + rank + " has " + Arrays.toString(seen));
        }
        return isNative;
    }
}

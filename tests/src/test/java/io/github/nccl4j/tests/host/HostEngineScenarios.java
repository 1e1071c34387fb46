package io.github.nccl4j.tests.host;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.nccl.ncclComm;
import io.github.nccl4j.nccl.ncclUniqueId;
import org.bytedeco.javacpp.FloatPointer;
import org.bytedeco.javacpp.PointerPointer;

/** What one rank does in a process of its own: {@code main(scenario, id, rank, ranks)}. Prints what it saw. */
final class HostEngineScenarios {
    private HostEngineScenarios() {}

    public static void main(String... args) throws Exception {
        String id = args[1];
        int rank = Integer.parseInt(args[2]);
        int count = Integer.parseInt(args[3]);
        switch (args[0]) {
            case "suite" -> suite(Rank.join(id, rank, count));
            case "all-reduce-for-ever" -> allReduceForEver(Rank.join(id, rank, count));
            case "idle" -> idle(Rank.join(id, rank, count));
            case "join" -> join(id, rank, count);
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    private static void suite(Rank self) {
        int cases = new CollectiveSuite(self).run();
        self.destroy();
        System.out.println(cases + " cases");
    }

    private static void allReduceForEver(Rank self) {
        int elements = 100_000;
        try (FloatPointer data = new FloatPointer(elements)) {
            System.out.println("ready");
            for (; ; ) {
                int result = nccl.ncclAllReduce(
                        data.address(), data.address(), elements, nccl.ncclFloat, nccl.ncclMax, self.comm(), 0);
                if (result != nccl.ncclSuccess) {
                    System.out.println(result + " " + nccl.ncclGetLastError(self.comm()));
                    nccl.ncclCommAbort(self.comm());
                    return;
                }
            }
        }
    }

    /** Calls nothing but looks at the communicator's state, as a watchdog does. */
    private static void idle(Rank self) throws InterruptedException {
        System.out.println("ready");
        int[] state = new int[1];
        while (nccl.ncclCommGetAsyncError(self.comm(), state) == nccl.ncclSuccess && state[0] == nccl.ncclSuccess) {
            Thread.sleep(20);
        }
        System.out.println(state[0] + " " + nccl.ncclGetLastError(self.comm()));
        nccl.ncclCommAbort(self.comm());
    }

    private static void join(String id, int rank, int count) {
        try (ncclUniqueId uniqueId = Rank.uniqueId(id);
                PointerPointer<ncclComm> cell = new PointerPointer<>(1)) {
            int result = nccl.ncclCommInitRank(cell, count, uniqueId, rank);
            System.out.println(result + " " + nccl.ncclGetLastError(0L) + " " + (cell.get(ncclComm.class) == null));
        }
    }
}

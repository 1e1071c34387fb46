package io.github.nccl4j.tools.support;

import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.library.Engine;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * The devices of a command's ranks. Each rank has a GPU of its own, or, where NCCL shares GPUs, one that it shares with
 * ranks of other processes: NCCL 2.32.3 hangs in {@code ncclCommSplit} if two ranks of one process share a GPU.
 */
public final class RankDevices {
    private RankDevices() {}

    /**
     * Returns a device for each of the process's ranks: host memory for all on the host engine, else the GPUs from the
     * one with the number of the first rank on.
     *
     * @param firstLocalRank the number of the first rank among those of this host
     * @param count the number of ranks in this process
     * @return the devices in the order of the ranks
     * @throws IllegalStateException if this process sees too few GPUs
     */
    public static List<Device> of(int firstLocalRank, int count) {
        NcclLibrary library = NcclLibrary.get();
        if (library.engine() == Engine.HOST) {
            return Collections.nCopies(count, Device.host());
        }
        List<Device> devices = new ArrayList<>();
        for (int index : indices(firstLocalRank, count, Device.cudaCount(), library.sharesGpus())) {
            devices.add(Device.cuda(index));
        }
        return devices;
    }

    /**
     * Returns the number of GPUs that the ranks of one host use, each in a process of its own, without using a GPU.
     *
     * @param ranks the number of ranks
     * @return 0 on the host engine
     * @throws IllegalStateException if this process sees too few GPUs
     */
    public static int countOfProcesses(int ranks) {
        NcclLibrary library = NcclLibrary.get();
        if (library.engine() == Engine.HOST) {
            return 0;
        }
        int gpus = Device.cudaCount();
        indices(ranks - 1, 1, gpus, library.sharesGpus());
        return Math.min(ranks, gpus);
    }

    static int[] indices(int firstLocalRank, int count, int gpus, boolean shared) {
        int end = firstLocalRank + count;
        if (count > gpus || end > gpus && !shared) {
            throw new IllegalStateException("this process needs GPUs " + firstLocalRank + " to " + (end - 1)
                    + ", and CUDA shows " + gpus
                    + "; processes share GPUs with NCCL 2.30.3 or newer and NCCL_MULTI_RANK_GPU_ENABLE=1");
        }
        int[] indices = new int[count];
        for (int i = 0; i < count; i++) {
            indices[i] = (firstLocalRank + i) % gpus;
        }
        return indices;
    }
}

package io.github.nccl4j.spark;

import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.library.Engine;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.spark.resource.ResourceInformation;

/** The device of a task: the GPU that Spark assigned, else the next one of its machine. */
final class TaskDevice {
    private static final String GPU = "gpu";

    private TaskDevice() {}

    static Device of(NcclLibrary library, Map<String, ResourceInformation> resources, List<String> hosts, int rank) {
        if (library.engine() == Engine.HOST) {
            return Device.host();
        }
        ResourceInformation gpu = resources.get(GPU);
        return Device.cuda(
                gpu != null
                        ? ordinal(gpu.addresses(), System.getenv("CUDA_VISIBLE_DEVICES"), Device.cudaCount())
                        : ordinal(hosts, rank, Device.cudaCount()));
    }

    /** {@return the host of an executor's address "host:port"; of an IPv6 address the part before the last colon} */
    static String hostOf(String address) {
        int colon = address.lastIndexOf(':');
        return colon < 0 ? address : address.substring(0, colon);
    }

    /**
     * The number in CUDA of a GPU that Spark assigned.
     *
     * @param addresses the addresses from Spark's discovery script: numbers or UUIDs
     * @param visible the devices in CUDA_VISIBLE_DEVICES, among which CUDA counts from 0; or null
     * @param count the number of CUDA devices that the process sees
     */
    static int ordinal(String[] addresses, String visible, int count) {
        if (addresses.length != 1) {
            throw new IllegalStateException("a rank has one GPU, but Spark gave its task " + addresses.length + " ("
                    + String.join(", ", addresses) + "): set spark.task.resource.gpu.amount=1");
        }
        String address = addresses[0].strip();
        int place = visible == null
                ? -1
                : Arrays.stream(visible.split(",")).map(String::strip).toList().indexOf(address);
        int ordinal = place >= 0 ? place : address.matches("\\d{1,9}") ? Integer.parseInt(address) : -1;
        if (ordinal < 0 || ordinal >= count) {
            throw new IllegalStateException("Spark gave the task GPU '" + address + "', but the executor sees " + count
                    + " CUDA devices" + (visible == null ? "" : " (CUDA_VISIBLE_DEVICES=" + visible + ")"));
        }
        return ordinal;
    }

    /** The first task of a machine takes its first GPU, and so on. */
    static int ordinal(List<String> hosts, int rank, int count) {
        String host = hosts.get(rank);
        int local = (int) hosts.subList(0, rank).stream().filter(host::equals).count();
        if (local >= count) {
            throw new IllegalStateException("rank " + rank + " is task " + (local + 1) + " on " + host
                    + ", but its executor sees " + count
                    + " CUDA devices: set spark.executor.resource.gpu.amount and spark.task.resource.gpu.amount");
        }
        return local;
    }
}

package io.github.nccl4j.tools.doctor;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RdmaCheckTest {
    @TempDir
    Path root;

    private TestMachine port(TestMachine machine, String device, String state, String layer, String rate) {
        String folder = "/sys/class/infiniband/" + device + "/ports/1/";
        return machine.file(folder + "state", state)
                .file(folder + "link_layer", layer)
                .file(folder + "rate", rate);
    }

    private TestMachine complete() {
        TestMachine machine = new TestMachine(root)
                .file("/dev/infiniband/uverbs0", "")
                .file("/usr/lib64/libibverbs.so.1", "")
                .file("/sys/module/nvidia_peermem/version", "580")
                .file(
                        "/proc/self/limits",
                        "Max locked memory         unlimited            unlimited            bytes     ");
        return port(machine, "mlx5_0", "4: ACTIVE", "InfiniBand", "400 Gb/sec (4X NDR)");
    }

    private static List<String> run(TestMachine machine) {
        return TestMachine.run(new RdmaCheck(machine.build(), true));
    }

    @Test
    void missingDeviceIsNotAProblem() {
        assertEquals(
                List.of("ok rdma.none: no device; between machines NCCL uses sockets or another plugin"),
                run(new TestMachine(root)));
    }

    @Test
    void reportsStateLinkLayerAndSpeedOfPorts() {
        TestMachine machine = complete();
        port(machine, "mlx5_1", "1: DOWN", "InfiniBand", "10 Gb/sec (4X SDR)");
        port(machine, "mlx5_2", "4: ACTIVE", "Ethernet", "200 Gb/sec (4X HDR)");
        assertEquals(
                List.of(
                        "ok rdma.port: mlx5_0 port 1: InfiniBand, 400 Gb/sec (4X NDR), active",
                        "warning rdma.port: mlx5_1 port 1: InfiniBand, 10 Gb/sec (4X SDR), down",
                        "ok rdma.port: mlx5_2 port 1: Ethernet (RoCE), 200 Gb/sec (4X HDR), active"),
                run(machine));
    }

    /** A container that shows the devices in /sys, but lacks everything to use them. */
    @Test
    void reportsMissingRequirements() {
        TestMachine machine = new TestMachine(root)
                .file(
                        "/proc/self/limits",
                        "Max locked memory         65536                65536                bytes     ");
        port(machine, "mlx5_0", "4: ACTIVE", "InfiniBand", "400 Gb/sec (4X NDR)");
        assertEquals(
                List.of(
                        "ok rdma.port: mlx5_0 port 1: InfiniBand, 400 Gb/sec (4X NDR), active",
                        "problem rdma.verbs: there is no /dev/infiniband/uverbs*",
                        "warning rdma.library: libibverbs.so.1 is in none of the usual folders",
                        "warning rdma.memlock: the limit of locked memory is 65536 bytes",
                        "warning rdma.gpudirect: the kernel module nvidia_peermem is not loaded"),
                run(machine));
    }

    @Test
    void disablingVariableIsAWarning() {
        assertEquals(
                "warning rdma.disabled: NCCL_IB_DISABLE=1",
                run(complete().variable("NCCL_IB_DISABLE", "1")).get(1));
    }

    @Test
    void selectionWithoutMatchIsAProblem() {
        assertEquals(
                "problem rdma.selection: NCCL_IB_HCA==mlx5_1 matches none of mlx5_0",
                run(complete().variable("NCCL_IB_HCA", "=mlx5_1")).get(1));
        assertEquals(
                "ok rdma.selection: NCCL_IB_HCA=mlx5:1 selects mlx5_0",
                run(complete().variable("NCCL_IB_HCA", "mlx5:1")).get(1));
    }
}

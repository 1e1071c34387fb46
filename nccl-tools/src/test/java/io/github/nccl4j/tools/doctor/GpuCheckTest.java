package io.github.nccl4j.tools.doctor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class GpuCheckTest {
    private static final String LIBRARY = "flavor|NCCL\ncuda|12.9\n";
    private static final String TWO = """
            count|2
            driver|13000
            runtime|13010
            gpu|0|NVIDIA H200|0000:18:00.0|9.0|150000000000
            gpu|1|NVIDIA H200|0000:2A:00.0|9.0|150000000000
            peer|0|1|1
            peer|1|0|1
            """;
    /** Output of nvidia-smi, including the underlined heading. */
    private static final String TABLE = "\t\u001b[4mGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\tNUMA Affinity\u001b[0m\n"
            + "GPU0\t X \tNV18\tSYS\tPIX\t0-47\t0\n"
            + "GPU1\tNV18\t X \tPXB\tSYS\t0-47\t0\n"
            + "GPU2\tSYS\tPXB\t X \tSYS\t48-95\t1\n"
            + "NIC0\tPIX\tSYS\tSYS\t X \t\t\n\nLegend:\n\n  X    = Self\n  SYS  = something\n";

    @TempDir
    Path root;

    private List<String> run(TestMachine machine, String library, String gpus, String table) {
        return TestMachine.run(new GpuCheck(
                machine.build(), TestMachine.probe(library), TestMachine.probe(gpus), LinkTable.of(table)));
    }

    private TestMachine machine() {
        return new TestMachine(root);
    }

    @Test
    void reportsTwoGpusWithLinksAndPeerAccess() {
        TestMachine machine = machine()
                .file(
                        "/proc/driver/nvidia/version",
                        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build");
        assertEquals(
                List.of(
                        "ok gpu.driver: driver 580.65.06 for CUDA up to 13.0, runtime library of CUDA 13.1",
                        "ok gpu.cuda: the driver is new enough for the library's CUDA 12.9",
                        "ok gpu.list: 2 GPUs",
                        "ok gpu.links: all GPUs are connected by NVLink",
                        "ok gpu.peer: every GPU can access every other's memory"),
                run(machine, LIBRARY, TWO, "\tGPU0\tGPU1\nGPU0\t X \tNV18\nGPU1\tNV18\t X \n"));
        List<Finding> findings = new GpuCheck(
                        machine.build(), TestMachine.probe(LIBRARY), TestMachine.probe(TWO), Optional.empty())
                .run();
        assertEquals(
                "0: NVIDIA H200, 140 GiB, compute capability 9.0, PCI 0000:18:00.0",
                findings.get(2).details().get(0));
        assertEquals("gpu.links", findings.get(3).id());
        assertEquals(Finding.Level.WARNING, findings.get(3).level());
    }

    @Test
    void parsesLinksOfEachPair() {
        LinkTable table = LinkTable.of(TABLE).orElseThrow();
        assertEquals(
                List.of(
                        "GPU0 - GPU1: 18 NVLinks",
                        "GPU0 - GPU2: PCIe, across CPUs",
                        "GPU1 - GPU2: PCIe, several switches"),
                table.lines());
        assertEquals("1 of 3 pairs of GPUs are connected by NVLink, the others by PCIe", table.summary());
        assertEquals(1, table.slowPairs());
        assertEquals(Optional.empty(), LinkTable.of("NVIDIA-SMI has failed because it couldn't communicate\n"));
    }

    @Test
    void pairsAcrossCpusAndRefusedAccessAreWarnings() {
        List<String> findings = run(machine(), LIBRARY, TWO.replace("peer|0|1|1", "peer|0|1|0"), TABLE);
        assertEquals("warning gpu.links: 1 of 3 pairs of GPUs are connected across CPUs", findings.get(3));
        assertEquals("warning gpu.peer: 1 pairs of GPUs can't access each other's memory", findings.get(4));
    }

    @Test
    void libraryForANewerCudaThanTheDriverIsAProblem() {
        List<Finding> findings = new GpuCheck(
                        machine().build(),
                        TestMachine.probe("flavor|NCCL\ncuda|13.0\n"),
                        TestMachine.probe(TWO.replace("13000", "12080")),
                        Optional.empty())
                .run();
        assertEquals(
                "the library was built for CUDA 13.0, but the driver is for CUDA up to 12.8",
                findings.get(1).text());
        assertEquals(Finding.Level.PROBLEM, findings.get(1).level());
        assertTrue(findings.get(1).advice().endsWith("pip install nvidia-nccl-cu12"));
    }

    @Test
    void missingRuntimeLibraryIsAProblem() {
        assertEquals(
                List.of("ok gpu.driver: driver", "problem gpu.runtime: CUDA can't be used: no libcudart"),
                run(machine(), LIBRARY, "count|1\nerror|CUDA can't be used: no libcudart\n", ""));
    }

    @Test
    void reportsFirstCauseOfMissingGpus() {
        TestMachine machine = machine();
        assertEquals(List.of("problem gpu.none: this machine has no NVIDIA GPU"), run(machine, LIBRARY, "count|0", ""));
        machine.file("/sys/bus/pci/devices/0000:18:00.0/vendor", "0x10de")
                .file("/sys/bus/pci/devices/0000:18:00.0/class", "0x030200");
        assertEquals(
                List.of("problem gpu.none: there is an NVIDIA device, but its driver is not loaded"),
                run(machine, LIBRARY, "count|0", ""));
        machine.file("/proc/driver/nvidia/version", "NVRM version");
        assertEquals(
                List.of("problem gpu.none: the driver is loaded, but there is no /dev/nvidia0"),
                run(machine, LIBRARY, "count|0", ""));
        machine.file("/dev/nvidia0", "");
        assertEquals(
                List.of("problem gpu.none: the driver is loaded, but libcuda.so.1 shows no GPU to this process"),
                run(machine, LIBRARY, "count|0", ""));
        machine.variable("CUDA_VISIBLE_DEVICES", "7");
        assertEquals(
                List.of("problem gpu.none: CUDA_VISIBLE_DEVICES='7' hides every GPU"),
                run(machine, LIBRARY, "count|0", ""));
    }

    @Test
    void theGpuOfAnotherVendorIsNoNvidiaGpu() {
        TestMachine machine = machine()
                .file("/sys/bus/pci/devices/0000:00:02.0/vendor", "0x8086")
                .file("/sys/bus/pci/devices/0000:00:02.0/class", "0x030000");
        assertEquals(List.of("problem gpu.none: this machine has no NVIDIA GPU"), run(machine, LIBRARY, "count|0", ""));
    }

    /** Such as network cards and sound devices. */
    @Test
    void otherNvidiaDevicesAreNotGpus() {
        TestMachine machine = machine()
                .file("/sys/bus/pci/devices/0000:18:00.1/vendor", "0x10de")
                .file("/sys/bus/pci/devices/0000:18:00.1/class", "0x040300");
        assertEquals(List.of("problem gpu.none: this machine has no NVIDIA GPU"), run(machine, LIBRARY, "count|0", ""));
    }

    @Test
    void crashInCudaIsAProblem() {
        ProbeAnswer crashed = ProbeAnswer.of(new Commands.Result(
                134, "count\t2\n# SIGSEGV\n# Problematic frame:\n# C  [libcuda.so.1+0x1]\n#\n", "Aborted"));
        assertEquals(
                List.of(
                        "problem gpu.crash: the process that called CUDA died: exit code 134: a crash in C  [libcuda.so.1+0x1]"),
                TestMachine.run(
                        new GpuCheck(machine().build(), TestMachine.probe(LIBRARY), crashed, Optional.empty())));
    }

    @Test
    void hostEngineNeedsNoGpu() {
        assertEquals(
                List.of("ok gpu.unneeded: the host engine needs no GPU"), run(machine(), "flavor|HOST", "count|0", ""));
    }
}

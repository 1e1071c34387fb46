package io.github.nccl4j.tools.doctor;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Reports the CUDA driver and runtime, the GPUs and the links between them. */
final class GpuCheck implements Check {
    private static final String NVIDIA = "0x10de";
    private static final Pattern DRIVER_VERSION = Pattern.compile("\\b(\\d{3}(?:\\.\\d+){1,2})\\b");

    private final Machine machine;
    private final ProbeAnswer library;
    private final ProbeAnswer gpus;
    private final Optional<LinkTable> links;

    GpuCheck(Machine machine, ProbeAnswer library, ProbeAnswer gpus, Optional<LinkTable> links) {
        this.machine = machine;
        this.library = library;
        this.gpus = gpus;
        this.links = links;
    }

    @Override
    public String name() {
        return "GPUs";
    }

    @Override
    public List<Finding> run() {
        String flavor = library.first("flavor");
        if (flavor.equals("HOST")) {
            return List.of(Finding.ok("gpu.unneeded", "the host engine needs no GPU"));
        }
        if (flavor.equals("RCCL")) {
            return List.of(Finding.ok("gpu.amd", "AMD GPUs are not examined"));
        }
        if (!gpus.death().isEmpty()) {
            return List.of(Finding.problem(
                    "gpu.crash",
                    "the process that called CUDA died: " + gpus.death(),
                    "The driver or CUDA's runtime library is broken here.",
                    "Search dmesg for NVRM and Xid lines; run nvidia-smi"));
        }
        if (count() == 0) {
            return List.of(causeOfNoGpu());
        }
        List<Finding> findings = new ArrayList<>();
        findings.add(driver());
        if (gpus.first("error").isEmpty()) {
            findings.add(cudaRelease());
            findings.add(list());
            if (count() > 1) {
                findings.add(links());
                findings.add(peers());
            }
        } else {
            findings.add(noRuntime());
        }
        return findings;
    }

    private int count() {
        String count = gpus.first("count");
        return count.isEmpty() ? 0 : Integer.parseInt(count);
    }

    /** The first obstacle between the hardware and this process. */
    private Finding causeOfNoGpu() {
        String hidden = machine.environment().get("CUDA_VISIBLE_DEVICES");
        boolean module = machine.exists("/proc/driver/nvidia/version");
        boolean device = machine.list("/dev").stream().anyMatch(name -> name.matches("nvidia\\d+"));
        if (module && device && hidden != null) {
            return noGpu(
                    "CUDA_VISIBLE_DEVICES='" + hidden + "' hides every GPU",
                    "Unset CUDA_VISIBLE_DEVICES, or name existing GPUs");
        }
        if (module && device) {
            return noGpu(
                    "the driver is loaded, but libcuda.so.1 shows no GPU to this process",
                    "Check nvidia-smi and dmesg; start a container with --gpus all and"
                            + " NVIDIA_DRIVER_CAPABILITIES=compute,utility");
        }
        if (module) {
            return noGpu(
                    "the driver is loaded, but there is no /dev/nvidia0",
                    "Start a container with --gpus all (Docker) or nvidia.com/gpu (Kubernetes); otherwise run"
                            + " nvidia-modprobe");
        }
        if (hasNvidiaGpu()) {
            return noGpu("there is an NVIDIA device, but its driver is not loaded", "Install NVIDIA's driver");
        }
        return noGpu(
                "this machine has no NVIDIA GPU",
                "Run on a machine with GPUs, or on the host engine: NCCL4J_ENGINE=host");
    }

    private static Finding noGpu(String text, String advice) {
        return Finding.problem("gpu.none", text, "NCCL needs a GPU for each rank.", advice);
    }

    private boolean hasNvidiaGpu() {
        // PCI class 0x03 is a display controller; NVIDIA also makes network and sound devices.
        String folder = "/sys/bus/pci/devices";
        return machine.list(folder).stream()
                .anyMatch(device -> machine.read(folder + "/" + device + "/vendor")
                                .orElse("")
                                .equals(NVIDIA)
                        && machine.read(folder + "/" + device + "/class")
                                .orElse("")
                                .startsWith("0x03"));
    }

    private Finding driver() {
        StringBuilder text = new StringBuilder("driver");
        Matcher version = DRIVER_VERSION.matcher(
                machine.read("/proc/driver/nvidia/version").orElse(""));
        if (version.find()) {
            text.append(' ').append(version.group(1));
        }
        if (!gpus.first("driver").isEmpty()) {
            text.append(" for CUDA up to ").append(cuda(gpus.first("driver")));
        }
        if (!gpus.first("runtime").isEmpty()) {
            text.append(", runtime library of CUDA ").append(cuda(gpus.first("runtime")));
        }
        return Finding.ok("gpu.driver", text.toString());
    }

    /** The release of a CUDA version code: 13010 is 13.1. */
    private static String cuda(String code) {
        int number = Integer.parseInt(code);
        return number / 1000 + "." + number % 1000 / 10;
    }

    private Finding noRuntime() {
        return Finding.problem(
                "gpu.runtime",
                gpus.first("error").lines().findFirst().orElse(""),
                "nccl4j's buffers and streams need CUDA's runtime library; NCCL itself does not.",
                "Install the library in the message");
    }

    /** A library works with drivers of the same or a later major release of CUDA. */
    private Finding cudaRelease() {
        String built = library.first("cuda");
        String driver = gpus.first("driver");
        if (built.isEmpty() || driver.isEmpty()) {
            return Finding.ok("gpu.cuda", "can't determine if the driver is new enough for the library");
        }
        int needed = Integer.parseInt(built.replaceFirst("\\..*", ""));
        if (Integer.parseInt(driver) / 1000 >= needed) {
            return Finding.ok("gpu.cuda", "the driver is new enough for the library's CUDA " + built);
        }
        return Finding.problem(
                "gpu.cuda",
                "the library was built for CUDA " + built + ", but the driver is for CUDA up to " + cuda(driver),
                "Creating a communicator will fail with ncclUnhandledCudaError.",
                "Install a driver for CUDA " + needed + ", or the library for CUDA "
                        + Integer.parseInt(driver) / 1000 + ": pip install nvidia-nccl-cu"
                        + Integer.parseInt(driver) / 1000);
    }

    private Finding list() {
        List<String> lines = gpus.all("gpu").stream()
                .map(gpu -> String.format(
                        Locale.ROOT,
                        "%s: %s, %.0f GiB, compute capability %s, PCI %s",
                        gpu.get(0),
                        gpu.get(1),
                        Long.parseLong(gpu.get(4)) / (double) (1 << 30),
                        gpu.get(3),
                        gpu.get(2)))
                .toList();
        return Finding.ok("gpu.list", count() == 1 ? "1 GPU" : count() + " GPUs")
                .with(lines);
    }

    private Finding links() {
        if (links.isEmpty()) {
            return Finding.warning(
                    "gpu.links",
                    "can't determine the links between GPUs: nvidia-smi topo -m prints no table",
                    "NCCL is not affected: it detects the links itself.",
                    "Put nvidia-smi on the PATH; in a container, set NVIDIA_DRIVER_CAPABILITIES=compute,utility");
        }
        LinkTable table = links.get();
        List<String> lines = table.lines();
        if (table.slowPairs() > 0) {
            return Finding.warning(
                            "gpu.links",
                            table.slowPairs() + " of " + table.pairs() + " pairs of GPUs are connected across CPUs",
                            "Their data passes through two CPUs, often through host memory.",
                            "If fewer GPUs are enough, choose those of one CPU with CUDA_VISIBLE_DEVICES")
                    .with(lines);
        }
        return Finding.ok("gpu.links", table.summary()).with(lines);
    }

    private Finding peers() {
        List<String> refused = gpus.all("peer").stream()
                .filter(peer -> peer.get(2).equals("0"))
                .map(peer -> peer.get(0) + " -> " + peer.get(1))
                .toList();
        if (refused.isEmpty()) {
            return Finding.ok("gpu.peer", "every GPU can access every other's memory");
        }
        return Finding.warning(
                        "gpu.peer",
                        refused.size() + " pairs of GPUs can't access each other's memory",
                        "NCCL sends through host memory (/dev/shm) between them.",
                        "Virtual machines and PCI access control (ACS) prevent it; see NCCL's troubleshooting page")
                .with(refused);
    }
}

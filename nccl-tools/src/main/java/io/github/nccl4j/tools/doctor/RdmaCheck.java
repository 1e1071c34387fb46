package io.github.nccl4j.tools.doctor;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Reports the InfiniBand and RoCE devices of the kernel, and missing requirements of processes that use them. */
final class RdmaCheck implements Check {
    private static final String DEVICES = "/sys/class/infiniband";
    private static final List<String> LIBRARY_FOLDERS = List.of(
            "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib");
    private static final Pattern LOCKED_MEMORY = Pattern.compile("Max locked memory\\s+(\\S+).*");

    private final Machine machine;
    private final boolean withGpus;

    RdmaCheck(Machine machine, boolean withGpus) {
        this.machine = machine;
        this.withGpus = withGpus;
    }

    @Override
    public String name() {
        return "RDMA";
    }

    @Override
    public List<Finding> run() {
        List<String> devices = machine.list(DEVICES);
        if (devices.isEmpty()) {
            return List.of(Finding.ok("rdma.none", "no device; between machines NCCL uses sockets or another plugin"));
        }
        List<Finding> findings = new ArrayList<>();
        int active = 0;
        for (String device : devices) {
            for (String port : machine.list(DEVICES + "/" + device + "/ports")) {
                Finding finding = port(device, port);
                active += finding.level() == Finding.Level.OK ? 1 : 0;
                findings.add(finding);
            }
        }
        if (machine.variable("NCCL_IB_DISABLE").equals("1")) {
            findings.add(Finding.warning(
                    "rdma.disabled", "NCCL_IB_DISABLE=1", "NCCL uses none of these devices.", "Unset NCCL_IB_DISABLE"));
        } else if (active > 0) {
            findings.addAll(missingRequirements());
            addSelection(devices, findings);
        }
        return findings;
    }

    private Finding port(String device, String port) {
        String folder = DEVICES + "/" + device + "/ports/" + port + "/";
        // "4: ACTIVE"
        String state = machine.read(folder + "state").orElse("unknown").replaceFirst("^\\d+: ", "");
        String layer = machine.read(folder + "link_layer").orElse("unknown link layer");
        String rate = machine.read(folder + "rate").orElse("unknown speed");
        String text = device + " port " + port + ": " + (layer.equals("Ethernet") ? "Ethernet (RoCE)" : layer) + ", "
                + rate + ", " + state.toLowerCase(Locale.ROOT);
        return state.equals("ACTIVE")
                ? Finding.ok("rdma.port", text)
                : Finding.warning(
                        "rdma.port",
                        text,
                        "NCCL does not use the port.",
                        layer.equals("InfiniBand")
                                ? "Check the cable and the subnet manager (ibstat)"
                                : "Check the cable and that its network interface is up");
    }

    private List<Finding> missingRequirements() {
        List<Finding> findings = new ArrayList<>();
        if (machine.list("/dev/infiniband").stream().noneMatch(name -> name.startsWith("uverbs"))) {
            findings.add(Finding.problem(
                    "rdma.verbs",
                    "there is no /dev/infiniband/uverbs*",
                    "The kernel has the devices, but this process can't open them; NCCL uses sockets.",
                    "In a container, pass /dev/infiniband in, or use the cluster's RDMA device plugin"));
        }
        if (LIBRARY_FOLDERS.stream().noneMatch(folder -> machine.exists(folder + "/libibverbs.so.1"))) {
            findings.add(Finding.warning(
                    "rdma.library",
                    "libibverbs.so.1 is in none of the usual folders",
                    "NCCL loads it to use RDMA, and uses sockets without it.",
                    "Install the packages libibverbs1 and ibverbs-providers (rdma-core)"));
        }
        Matcher locked = LOCKED_MEMORY.matcher(
                machine.read("/proc/self/limits").orElse("").replace("\n", "  \n"));
        if (locked.find() && !locked.group(1).equals("unlimited")) {
            findings.add(Finding.warning(
                    "rdma.memlock",
                    "the limit of locked memory is " + locked.group(1) + " bytes",
                    "RDMA locks the buffers it sends from; creating connections may fail with ENOMEM.",
                    "ulimit -l unlimited; in a container, --ulimit memlock=-1"));
        }
        if (withGpus && !machine.exists("/sys/module/nvidia_peermem")) {
            findings.add(Finding.warning(
                    "rdma.gpudirect",
                    "the kernel module nvidia_peermem is not loaded",
                    "Without it GPUDirect RDMA needs DMA-BUF (Linux 5.12 or newer, NVIDIA's open kernel modules); otherwise"
                            + " data passes through host memory.",
                    "modprobe nvidia_peermem, or search the output of NCCL_DEBUG=INFO for 'GDRDMA'"));
        }
        return findings;
    }

    /** Applies NCCL_IB_HCA, a {@link NameList}, to the devices. */
    private void addSelection(List<String> devices, List<Finding> findings) {
        String selection = machine.variable("NCCL_IB_HCA");
        if (selection.isEmpty()) {
            return;
        }
        NameList list = NameList.of(selection);
        List<String> chosen = devices.stream().filter(list::matches).toList();
        findings.add(
                chosen.isEmpty()
                        ? Finding.problem(
                                "rdma.selection",
                                "NCCL_IB_HCA=" + selection + " matches none of " + String.join(", ", devices),
                                "NCCL uses sockets, or fails if NCCL_NET=IB is set.",
                                "Correct NCCL_IB_HCA")
                        : Finding.ok(
                                "rdma.selection",
                                "NCCL_IB_HCA=" + selection + " selects " + String.join(", ", chosen)));
    }
}

package io.github.nccl4j.tools.doctor;

import java.util.ArrayList;
import java.util.List;

/** Reports the signs of a container and its resource limits. */
final class ContainerCheck implements Check {
    private static final List<String> LIMITS = List.of("memory.max", "cpu.max", "pids.max");

    private final Machine machine;

    ContainerCheck(Machine machine) {
        this.machine = machine;
    }

    @Override
    public String name() {
        return "container";
    }

    @Override
    public List<Finding> run() {
        List<String> signs = new ArrayList<>();
        for (String file : List.of("/.dockerenv", "/run/.containerenv", "/.singularity.d")) {
            if (machine.exists(file)) {
                signs.add(file + " exists");
            }
        }
        for (String variable : List.of("KUBERNETES_SERVICE_HOST", "container", "SINGULARITY_NAME", "APPTAINER_NAME")) {
            if (!machine.variable(variable).isEmpty()) {
                signs.add(variable + " is set");
            }
        }
        machine.read("/proc/1/cgroup")
                .orElse("")
                .lines()
                .filter(line -> line.matches(".*(docker|kubepods|containerd|libpod|lxc|crio).*"))
                .findFirst()
                .ifPresent(line -> signs.add("the control group of process 1 is " + line));
        if (signs.isEmpty()) {
            return List.of(Finding.ok("container.none", "no sign of a container"));
        }
        for (String limit : LIMITS) {
            machine.read("/sys/fs/cgroup/" + limit)
                    .filter(value -> !value.startsWith("max"))
                    .ifPresent(value -> signs.add(limit + " " + value));
        }
        return List.of(Finding.ok(
                        "container.found",
                        "container detected: GPUs, /dev/shm, limits and RDMA depend on how it was started")
                .with(signs));
    }
}

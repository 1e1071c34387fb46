package io.github.nccl4j.tools.doctor;

import io.github.nccl4j.launch.RankInfo;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Reports the launchers whose variables are set, and the rank of a process that is started here. */
final class LauncherCheck implements Check {
    /** Patterns of the variables' names, by launcher. */
    private static final Map<String, String> LAUNCHERS = new LinkedHashMap<>();

    static {
        LAUNCHERS.put(
                "torchrun",
                "RANK|WORLD_SIZE|LOCAL_RANK|LOCAL_WORLD_SIZE|GROUP_RANK|MASTER_ADDR|MASTER_PORT|TORCHELASTIC_\\w+");
        LAUNCHERS.put("Kubeflow Trainer", "PET_\\w+");
        LAUNCHERS.put("Open MPI", "OMPI_COMM_WORLD_\\w+");
        LAUNCHERS.put("MVAPICH", "(MV2|MVP)_COMM_WORLD_\\w+");
        LAUNCHERS.put("MPICH or Intel MPI", "PMI_\\w+|MPI_LOCALRANKID|MPI_LOCALNRANKS");
        LAUNCHERS.put("Slurm", "SLURM_(PROCID|NTASKS|LOCALID|NODEID|STEP_ID|STEP_NODELIST|STEP_TASKS_PER_NODE|JOB_ID)");
        LAUNCHERS.put("Flux", "FLUX_TASK_\\w+|FLUX_JOB_(ID|SIZE|NNODES)");
        LAUNCHERS.put("LSF", "JSM_NAMESPACE_\\w+|LSB_JOBID|LSB_DJOB_(RANKFILE|NUMPROC)|LSF_PM_TASKID");
        LAUNCHERS.put("PALS", "PALS_(RANKID|LOCAL_RANKID|LOCAL_SIZE|NODEID|APID)");
        LAUNCHERS.put("PMIx", "PMIX_RANK|PMIX_NAMESPACE");
        LAUNCHERS.put("a Kubernetes job", "JOB_COMPLETION_INDEX|JOB_GLOBAL_INDEX|JOBSET_\\w+|PODS_PER_JOB");
    }

    private final Machine machine;

    LauncherCheck(Machine machine) {
        this.machine = machine;
    }

    @Override
    public String name() {
        return "launcher";
    }

    @Override
    public List<Finding> run() {
        List<Finding> findings = new ArrayList<>();
        LAUNCHERS.forEach((launcher, names) -> {
            List<String> seen = new TreeMap<>(machine.environment())
                    .entrySet().stream()
                            .filter(variable -> variable.getKey().matches(names))
                            .map(variable -> variable.getKey() + "=" + variable.getValue())
                            .toList();
            if (!seen.isEmpty()) {
                findings.add(Finding.ok("launcher.seen", "variables of " + launcher + " are set")
                        .with(seen));
            }
        });
        findings.add(rank());
        return findings;
    }

    private Finding rank() {
        try {
            RankInfo rank = RankInfo.from(Map.of(), machine.environment());
            return rank.isSingle()
                    ? Finding.ok("launcher.none", "a process started here is not a rank of a launcher")
                    : Finding.ok("launcher.rank", "a process started here is " + rank);
        } catch (IllegalArgumentException e) {
            return Finding.problem(
                    "launcher.incomplete",
                    e.getMessage(),
                    "A program started here can't determine its rank.",
                    "Start it with the launcher, or unset the launcher's variables");
        }
    }
}

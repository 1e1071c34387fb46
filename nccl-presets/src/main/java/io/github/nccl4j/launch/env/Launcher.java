package io.github.nccl4j.launch.env;

/** Launchers: programs that start processes and set their variables. */
public enum Launcher {
    PROPERTIES("system properties"),
    TORCHRUN("torchrun"),
    TRAINER("Kubeflow Trainer"),
    OPEN_MPI("Open MPI"),
    MVAPICH("MVAPICH"),
    MPI("MPI"),
    SLURM("Slurm"),
    FLUX("Flux"),
    LSF("LSF"),
    PALS("PALS"),
    PMIX("PMIx"),
    KUBERNETES("Kubernetes"),
    SINGLE("no launcher");

    private final String text;

    Launcher(String text) {
        this.text = text;
    }

    /** The name for messages, such as "Open MPI". */
    @Override
    public String toString() {
        return text;
    }
}

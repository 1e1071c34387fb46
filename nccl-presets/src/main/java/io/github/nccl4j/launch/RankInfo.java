package io.github.nccl4j.launch;

import java.util.HashMap;
import java.util.Map;
import java.util.Objects;

/**
 * Who this process is among the ranks of a job, and where it meets the others.
 *
 * <pre>{@code
 * RankInfo self = RankInfo.fromEnvironment();
 * System.out.println(self); // rank 5 of 8 (1 of 4 on its host), meeting at node0:29500, by torchrun
 * }</pre>
 *
 * <p>The first of these that is there tells it:
 *
 * <table class="plain">
 * <caption>Sources, the first one first</caption>
 * <thead><tr><th>{@link Source}</th><th>is there if</th><th>what else it needs</th></tr></thead>
 * <tbody>
 * <tr><th>PROPERTIES</th><td>the system property {@code nccl4j.rank} or {@code nccl4j.worldSize} is set</td>
 *     <td>{@code nccl4j.localRank}, {@code nccl4j.localWorldSize}</td></tr>
 * <tr><th>TORCHRUN</th><td>{@code RANK} is set</td>
 *     <td>{@code WORLD_SIZE}, {@code LOCAL_RANK}, {@code LOCAL_WORLD_SIZE} (or DeepSpeed's {@code LOCAL_SIZE}),
 *     {@code MASTER_ADDR}, {@code MASTER_PORT}</td></tr>
 * <tr><th>TRAINER</th><td>{@code PET_NODE_RANK} is set, by Kubeflow; also before {@code RANK} without {@code LOCAL_RANK},
 *     which is the number of a host then</td>
 *     <td>{@code PET_NNODES}, {@code PET_MASTER_ADDR}; with {@code PET_NPROC_PER_NODE} greater than 1,
 *     {@code LOCAL_RANK}</td></tr>
 * <tr><th>OPEN_MPI</th><td>{@code OMPI_COMM_WORLD_RANK} is set</td>
 *     <td>{@code OMPI_COMM_WORLD_SIZE}, {@code _LOCAL_RANK}, {@code _LOCAL_SIZE}</td></tr>
 * <tr><th>MPI</th><td>{@code PMI_RANK} and {@code PMI_SIZE} are set, by MPICH, Intel MPI or Cray MPICH; not if Slurm's step
 *     tells all and these don't</td>
 *     <td>{@code MPI_LOCALRANKID} and {@code MPI_LOCALNRANKS}, or {@code PMI_LOCAL_RANK} and {@code PMI_LOCAL_SIZE}</td></tr>
 * <tr><th>SLURM</th><td>{@code SLURM_PROCID} and {@code SLURM_STEP_ID} are set, and the step is one of {@code srun}: a shell
 *     of {@code salloc} or a script of {@code sbatch} has Slurm's variables too, but is one process</td>
 *     <td>{@code SLURM_STEP_NUM_TASKS} or {@code SLURM_NTASKS}, {@code SLURM_LOCALID}, {@code SLURM_NODEID},
 *     {@code SLURM_STEP_TASKS_PER_NODE}</td></tr>
 * <tr><th>LSF</th><td>{@code JSM_NAMESPACE_RANK} is set, by jsrun</td>
 *     <td>{@code JSM_NAMESPACE_SIZE}, {@code _LOCAL_RANK}, {@code _LOCAL_SIZE}</td></tr>
 * <tr><th>KUBERNETES</th><td>{@code JOB_COMPLETION_INDEX} is set, in an Indexed Job or a JobSet</td>
 *     <td>{@code WORLD_SIZE}, the number of all ranks; with {@code LOCAL_WORLD_SIZE} greater than 1, {@code LOCAL_RANK}; in a
 *     JobSet of several jobs, {@code JOB_GLOBAL_INDEX} and {@code PODS_PER_JOB}</td></tr>
 * <tr><th>SINGLE</th><td>nothing is set</td><td>it is rank 0 of 1</td></tr>
 * </tbody>
 * </table>
 *
 * <p>Where the ranks meet is, in this order: {@code nccl4j.masterAddress}, {@code MASTER_ADDR}, what the source tells (the
 * first host of Slurm's step or of LSF's), or the loopback address if all ranks are on one host. The port is
 * {@code nccl4j.masterPort}, {@code NCCL4J_STORE_PORT}, {@code MASTER_PORT} (the one after it, if torchrun itself listens
 * there), or one that comes from the job's id, so that two jobs on a host rarely want the same; without an id
 * {@value #DEFAULT_PORT}. {@code nccl4j.job} and {@code nccl4j.restart}, or {@code NCCL4J_JOB} and
 * {@code NCCL4J_RESTART}, set the names that keep jobs, and attempts of a job, apart.
 *
 * <p>Instances are immutable and may be used in any thread.
 *
 * @param rank 0 to {@code worldSize - 1}
 * @param worldSize the number of ranks
 * @param localRank this rank's number on its host
 * @param localWorldSize the number of ranks on this host
 * @param masterAddress name or address of the host of rank 0
 * @param masterPort the port at which rank 0 listens
 * @param job names the job, empty if the source has no name for it; the same for all ranks
 * @param restart how often the job was started again, from 0; the same for all ranks
 * @param source what told it
 */
public record RankInfo(
        int rank,
        int worldSize,
        int localRank,
        int localWorldSize,
        String masterAddress,
        int masterPort,
        String job,
        int restart,
        Source source) {

    /** The port that PyTorch and others use: {@value}. */
    public static final int DEFAULT_PORT = 29500;

    private static final int LARGEST_PORT = 65535;

    /** What tells a process who it is. */
    public enum Source {
        /** System properties of nccl4j. */
        PROPERTIES("system properties"),
        /** torchrun, or what sets the same variables: the nccl4j command, DeepSpeed, PyTorch Lightning. */
        TORCHRUN("torchrun"),
        /** Kubeflow's Trainer, which tells about hosts. */
        TRAINER("Kubeflow Trainer"),
        /** Open MPI's mpirun, or prterun. */
        OPEN_MPI("Open MPI"),
        /** The process manager of MPICH, Intel MPI or Cray MPICH. */
        MPI("MPI"),
        /** Slurm's srun. */
        SLURM("Slurm"),
        /** LSF's jsrun. */
        LSF("LSF"),
        /** An Indexed Job, or a JobSet. */
        KUBERNETES("Kubernetes"),
        /** Nothing: the process is alone. */
        SINGLE("no launcher");

        private final String text;

        Source(String text) {
            this.text = text;
        }

        /** {@return its name, such as "Open MPI"} */
        @Override
        public String toString() {
            return text;
        }
    }

    /**
     * Checks the values.
     *
     * @param rank 0 to {@code worldSize - 1}
     * @param worldSize the number of ranks
     * @param localRank this rank's number on its host
     * @param localWorldSize the number of ranks on this host
     * @param masterAddress name or address of the host of rank 0
     * @param masterPort the port at which rank 0 listens
     * @param job names the job, or is empty
     * @param restart how often the job was started again
     * @param source what told it
     * @throws IllegalArgumentException if a number is out of its range, or the address is empty
     */
    public RankInfo {
        require("worldSize", worldSize, 1, Integer.MAX_VALUE);
        require("rank", rank, 0, worldSize - 1);
        require("localWorldSize", localWorldSize, 1, worldSize);
        require("localRank", localRank, 0, localWorldSize - 1);
        require("masterPort", masterPort, 1, LARGEST_PORT);
        require("restart", restart, 0, Integer.MAX_VALUE);
        if (masterAddress.isBlank()) {
            throw new IllegalArgumentException("masterAddress must not be empty");
        }
        Objects.requireNonNull(job, "job");
        Objects.requireNonNull(source, "source");
    }

    private static void require(String name, int value, int least, int most) {
        if (value < least || value > most) {
            throw new IllegalArgumentException(name + " must be from " + least + " to " + most + ": " + value);
        }
    }

    /**
     * Reads this process's system properties and environment.
     *
     * @return who this process is; rank 0 of 1 if no launcher started it
     * @throws IllegalArgumentException if a source is there but lacks something, or tells what makes no sense; the message
     *     names the variable
     */
    public static RankInfo fromEnvironment() {
        Map<String, String> properties = new HashMap<>();
        for (String name : System.getProperties().stringPropertyNames()) {
            properties.put(name, System.getProperty(name, ""));
        }
        return from(properties, System.getenv());
    }

    /**
     * As {@link #fromEnvironment()}, for given properties and variables.
     *
     * @param properties as {@link System#getProperties()}
     * @param environment as {@link System#getenv()}; empty values count as not set
     * @return who the process is
     * @throws IllegalArgumentException if a source is there but lacks something, or tells what makes no sense; the message
     *     names the variable
     */
    public static RankInfo from(Map<String, String> properties, Map<String, String> environment) {
        return new RankSources(new Variables(properties, environment)).find();
    }

    /** {@return whether no launcher told anything} */
    public boolean isSingle() {
        return source == Source.SINGLE;
    }

    /** {@return whether all ranks are on one host} */
    public boolean isOnOneHost() {
        return localWorldSize == worldSize;
    }

    /**
     * The CUDA device of this rank. A launcher may show a process all devices of the host, or only its own: the local rank
     * modulo their number is right for both.
     *
     * @param visible the number of devices that the process sees
     * @return the index of the device
     * @throws IllegalArgumentException if it sees none
     */
    public int device(int visible) {
        if (visible < 1) {
            throw new IllegalArgumentException("rank " + rank + " sees no CUDA device");
        }
        return localRank % visible;
    }

    /** {@return such as "rank 5 of 8 (1 of 4 on its host), meeting at node0:29500, by torchrun"} */
    @Override
    public String toString() {
        return "rank " + rank + " of " + worldSize + " (" + localRank + " of " + localWorldSize
                + " on its host), meeting at " + Endpoint.text(masterAddress, masterPort) + ", by " + source;
    }
}

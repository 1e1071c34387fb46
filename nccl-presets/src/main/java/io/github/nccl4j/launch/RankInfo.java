package io.github.nccl4j.launch;

import io.github.nccl4j.library.SystemText;
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
 *     <td>both; optional: {@code nccl4j.localRank}, {@code nccl4j.localWorldSize}</td></tr>
 * <tr><th>TORCHRUN</th><td>{@code RANK} is set</td>
 *     <td>{@code WORLD_SIZE}; if it is greater than 1, {@code MASTER_ADDR} and {@code MASTER_PORT}; optional:
 *     {@code LOCAL_RANK}, {@code LOCAL_WORLD_SIZE} (or DeepSpeed's {@code LOCAL_SIZE})</td></tr>
 * <tr><th>TRAINER</th><td>{@code PET_NODE_RANK} is set, by Kubeflow; also before {@code RANK} without {@code LOCAL_RANK},
 *     which is the number of a host then</td>
 *     <td>{@code PET_NNODES}, {@code PET_MASTER_ADDR}; with {@code PET_NPROC_PER_NODE} greater than 1,
 *     {@code LOCAL_RANK}. If {@code PET_NPROC_PER_NODE} is not a number ({@code auto}, {@code gpu}, {@code cpu}), each host
 *     has one rank, or {@code LOCAL_WORLD_SIZE} ranks</td></tr>
 * <tr><th>OPEN_MPI</th><td>{@code OMPI_COMM_WORLD_RANK} is set</td>
 *     <td>{@code OMPI_COMM_WORLD_SIZE}; optional: {@code _LOCAL_RANK}, {@code _LOCAL_SIZE}</td></tr>
 * <tr><th>MVAPICH</th><td>{@code MV2_COMM_WORLD_RANK} or {@code MVP_COMM_WORLD_RANK} is set</td>
 *     <td>{@code _SIZE}; optional: {@code _LOCAL_RANK}, {@code _LOCAL_SIZE}</td></tr>
 * <tr><th>MPI</th><td>{@code PMI_RANK}, or {@code PMI_ID} with {@code PMI_PORT}, is set, by MPICH, Intel MPI or Cray MPICH;
 *     after SLURM and FLUX, which set {@code PMI_RANK} too, if it is set without a local rank</td>
 *     <td>{@code PMI_SIZE}, or {@code WORLD_SIZE}; optional: {@code MPI_LOCALRANKID} and {@code MPI_LOCALNRANKS}, or
 *     {@code PMI_LOCAL_RANK} and {@code PMI_LOCAL_SIZE}</td></tr>
 * <tr><th>SLURM</th><td>{@code SLURM_PROCID} and {@code SLURM_STEP_ID} are set, and the step is one of {@code srun}: a shell
 *     of {@code salloc} or a script of {@code sbatch} has Slurm's variables too, but is one process</td>
 *     <td>{@code SLURM_STEP_NUM_TASKS} or {@code SLURM_NTASKS}, {@code SLURM_LOCALID}, {@code SLURM_NODEID},
 *     {@code SLURM_STEP_TASKS_PER_NODE}</td></tr>
 * <tr><th>FLUX</th><td>{@code FLUX_TASK_RANK} is set</td>
 *     <td>{@code FLUX_JOB_SIZE}; optional: {@code FLUX_TASK_LOCAL_ID}, {@code FLUX_JOB_NNODES}</td></tr>
 * <tr><th>LSF</th><td>{@code JSM_NAMESPACE_RANK} is set, by jsrun</td>
 *     <td>{@code JSM_NAMESPACE_SIZE}; optional: {@code _LOCAL_RANK}, {@code _LOCAL_SIZE}</td></tr>
 * <tr><th>LSF</th><td>{@code LSF_PM_TASKID} is set, by blaunch: the rank, counted from 1; unless {@code LSB_DJOB_NUMPROC} is
 *     1</td><td>{@code WORLD_SIZE}</td></tr>
 * <tr><th>PALS</th><td>{@code PALS_RANKID} is set</td>
 *     <td>{@code PMI_SIZE} or {@code WORLD_SIZE}; optional: {@code PALS_LOCAL_RANKID}, {@code PALS_LOCAL_SIZE}</td></tr>
 * <tr><th>PMIX</th><td>{@code PMIX_RANK} is set</td><td>{@code WORLD_SIZE}</td></tr>
 * <tr><th>KUBERNETES</th><td>{@code JOB_COMPLETION_INDEX} is set, in an Indexed Job or a JobSet</td>
 *     <td>{@code WORLD_SIZE}, the number of all ranks; with {@code LOCAL_WORLD_SIZE} greater than 1, {@code LOCAL_RANK}; in a
 *     JobSet of several jobs, {@code JOB_GLOBAL_INDEX} and {@code PODS_PER_JOB}</td></tr>
 * <tr><th>SINGLE</th><td>nothing is set</td><td>it is rank 0 of 1</td></tr>
 * </tbody>
 * </table>
 *
 * <p>The local rank and the number of ranks on the host may be missing where this table calls them optional or does not
 * name them. Then {@link #hasLocalRank} is false until the ranks have met and {@link Rendezvous#locate} has found both;
 * {@code Communicator.fromEnvironment()} does that by itself.
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
 * @param localRank this rank's number on its host, or {@link #UNKNOWN}
 * @param localWorldSize the number of ranks on this host, or {@link #UNKNOWN}
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

    /** A {@link #localRank} or {@link #localWorldSize} that the launcher did not tell: {@value}. */
    public static final int UNKNOWN = -1;

    private static final int LARGEST_PORT = 65535;

    /** What tells a process who it is. */
    public enum Source {
        /** System properties of nccl4j. */
        PROPERTIES("system properties"),
        /** torchrun, or what sets the same variables: the nccl4j command, DeepSpeed, PyTorch Lightning, Kubeflow, scripts. */
        TORCHRUN("torchrun"),
        /** Kubeflow's Trainer, which tells about hosts. */
        TRAINER("Kubeflow Trainer"),
        /** Open MPI's mpirun, or prterun. */
        OPEN_MPI("Open MPI"),
        /** MVAPICH's mpirun_rsh. */
        MVAPICH("MVAPICH"),
        /** The process manager of MPICH, Intel MPI or Cray MPICH. */
        MPI("MPI"),
        /** Slurm's srun. */
        SLURM("Slurm"),
        /** Flux's flux run. */
        FLUX("Flux"),
        /** LSF's jsrun or blaunch. */
        LSF("LSF"),
        /** HPE's PALS: mpiexec of Cray systems. */
        PALS("PALS"),
        /** A PMIx server such as prterun, without an MPI library that tells more. */
        PMIX("PMIx"),
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
     * Checks the values. A single rank is 0 of 1 on its host, even if both are given as {@link #UNKNOWN}.
     *
     * @param rank 0 to {@code worldSize - 1}
     * @param worldSize the number of ranks
     * @param localRank this rank's number on its host, or {@link #UNKNOWN}
     * @param localWorldSize the number of ranks on this host, or {@link #UNKNOWN}
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
        if (localWorldSize == UNKNOWN && worldSize == 1) {
            localWorldSize = 1;
        }
        if (localRank == UNKNOWN && worldSize == 1) {
            localRank = 0;
        }
        if (localWorldSize != UNKNOWN) {
            require("localWorldSize", localWorldSize, 1, worldSize);
        }
        if (localRank != UNKNOWN) {
            require("localRank", localRank, 0, (localWorldSize == UNKNOWN ? worldSize : localWorldSize) - 1);
        }
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
        return from(properties, SystemText.environment());
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

    /**
     * {@return true if {@link #localRank} and {@link #localWorldSize} are both known; if not, {@link Rendezvous#locate} finds
     * them}
     */
    public boolean hasLocalRank() {
        return localRank != UNKNOWN && localWorldSize != UNKNOWN;
    }

    /** This rank, at a known place on its host. */
    RankInfo at(int localRank, int localWorldSize) {
        return new RankInfo(
                rank, worldSize, localRank, localWorldSize, masterAddress, masterPort, job, restart, source);
    }

    /** True if the other differs in nothing but in what it knows of the host. */
    boolean isSameRankAs(RankInfo other) {
        return other.at(UNKNOWN, UNKNOWN).equals(at(UNKNOWN, UNKNOWN))
                && (!hasLocalRank() || !other.hasLocalRank() || equals(other));
    }

    /** {@return true if all ranks are on one host; false if they are not, or if this is not known} */
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
     * @throws IllegalStateException if the local rank is not known, see {@link #hasLocalRank}
     */
    public int device(int visible) {
        if (localRank == UNKNOWN) {
            throw new IllegalStateException("the local rank of rank " + rank + " of " + worldSize
                    + " must be known to choose a device: " + source
                    + " did not tell it, and Rendezvous.locate was not asked to find it");
        }
        if (visible < 1) {
            throw new IllegalArgumentException("rank " + rank + " sees no CUDA device");
        }
        return localRank % visible;
    }

    /** {@return such as "rank 5 of 8 (1 of 4 on its host), meeting at node0:29500, by torchrun"} */
    @Override
    public String toString() {
        return "rank " + rank + " of " + worldSize + " (" + localText() + "), meeting at "
                + Endpoint.format(masterAddress, masterPort) + ", by " + source;
    }

    /** Such as "1 of 4 on its host". */
    String localText() {
        if (hasLocalRank()) {
            return localRank + " of " + localWorldSize + " on its host";
        }
        return localRank == UNKNOWN && localWorldSize == UNKNOWN
                ? "local rank not known yet"
                : localRank == UNKNOWN
                        ? "one of " + localWorldSize + " on its host, local rank not known yet"
                        : "local rank " + localRank + ", number of ranks on its host not known yet";
    }
}

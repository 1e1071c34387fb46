package io.github.nccl4j.launch;

import io.github.nccl4j.launch.env.Endpoint;
import io.github.nccl4j.launch.env.Launcher;
import io.github.nccl4j.launch.env.RankSources;
import io.github.nccl4j.launch.env.RankValues;
import io.github.nccl4j.launch.env.Variables;
import io.github.nccl4j.library.SystemText;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;

/**
 * The rank of this process in a job, its local rank on the host, and the address of the store of rank 0.
 *
 * <pre>{@code
 * RankInfo self = RankInfo.fromEnvironment();
 * System.out.println(self); // rank 5 of 8 (1 of 4 on its host), meeting at node0:29500, by torchrun
 * }</pre>
 *
 * <p>The sources, in order of precedence:
 *
 * <table class="plain">
 * <caption>Sources in order of precedence</caption>
 * <thead><tr><th>{@link Source}</th><th>used if</th><th>other variables</th></tr></thead>
 * <tbody>
 * <tr><th>PROPERTIES</th><td>the system property {@code nccl4j.rank} or {@code nccl4j.worldSize} is set</td>
 *     <td>both; optional: {@code nccl4j.localRank}, {@code nccl4j.localWorldSize}</td></tr>
 * <tr><th>TORCHRUN</th><td>{@code RANK} is set</td>
 *     <td>{@code WORLD_SIZE}; if it is greater than 1, {@code MASTER_ADDR} and {@code MASTER_PORT}; optional:
 *     {@code LOCAL_RANK}, {@code LOCAL_WORLD_SIZE} (or DeepSpeed's {@code LOCAL_SIZE})</td></tr>
 * <tr><th>TRAINER</th><td>{@code PET_NODE_RANK} is set, by Kubeflow; precedes TORCHRUN if {@code LOCAL_RANK} is not set, because
 *     {@code RANK} is the number of a host then</td>
 *     <td>{@code PET_NNODES}, {@code PET_MASTER_ADDR}; with {@code PET_NPROC_PER_NODE} greater than 1,
 *     {@code LOCAL_RANK}. If {@code PET_NPROC_PER_NODE} is not a number ({@code auto}, {@code gpu}, {@code cpu}), each host
 *     has one rank, or {@code LOCAL_WORLD_SIZE} ranks</td></tr>
 * <tr><th>OPEN_MPI</th><td>{@code OMPI_COMM_WORLD_RANK} is set</td>
 *     <td>{@code OMPI_COMM_WORLD_SIZE}; optional: {@code _LOCAL_RANK}, {@code _LOCAL_SIZE}</td></tr>
 * <tr><th>MVAPICH</th><td>{@code MV2_COMM_WORLD_RANK} or {@code MVP_COMM_WORLD_RANK} is set</td>
 *     <td>{@code _SIZE}; optional: {@code _LOCAL_RANK}, {@code _LOCAL_SIZE}</td></tr>
 * <tr><th>MPI</th><td>{@code PMI_RANK}, or {@code PMI_ID} with {@code PMI_PORT}, is set, by MPICH, Intel MPI or Cray MPICH.
 *     Without a local rank it follows SLURM and FLUX, which set {@code PMI_RANK}, too</td>
 *     <td>{@code PMI_SIZE}, or {@code WORLD_SIZE}; optional: {@code MPI_LOCALRANKID} and {@code MPI_LOCALNRANKS}, or
 *     {@code PMI_LOCAL_RANK} and {@code PMI_LOCAL_SIZE}</td></tr>
 * <tr><th>SLURM</th><td>{@code SLURM_PROCID} and {@code SLURM_STEP_ID} are set, and the step is one of {@code srun}. A shell
 *     of {@code salloc} or a script of {@code sbatch} has these variables, too, but is a single process</td>
 *     <td>{@code SLURM_STEP_NUM_TASKS} or {@code SLURM_NTASKS}, {@code SLURM_LOCALID}, {@code SLURM_NODEID},
 *     {@code SLURM_STEP_TASKS_PER_NODE}</td></tr>
 * <tr><th>FLUX</th><td>{@code FLUX_TASK_RANK} is set</td>
 *     <td>{@code FLUX_JOB_SIZE}; optional: {@code FLUX_TASK_LOCAL_ID}, {@code FLUX_JOB_NNODES}</td></tr>
 * <tr><th>LSF</th><td>{@code JSM_NAMESPACE_RANK} is set, by jsrun</td>
 *     <td>{@code JSM_NAMESPACE_SIZE}; optional: {@code _LOCAL_RANK}, {@code _LOCAL_SIZE}</td></tr>
 * <tr><th>LSF</th><td>{@code LSF_PM_TASKID}, the rank plus 1, is set by blaunch, and {@code LSB_DJOB_NUMPROC} is not
 *     1</td><td>{@code WORLD_SIZE}</td></tr>
 * <tr><th>PALS</th><td>{@code PALS_RANKID} is set</td>
 *     <td>{@code PMI_SIZE} or {@code WORLD_SIZE}; optional: {@code PALS_LOCAL_RANKID}, {@code PALS_LOCAL_SIZE}</td></tr>
 * <tr><th>PMIX</th><td>{@code PMIX_RANK} is set</td><td>{@code WORLD_SIZE}</td></tr>
 * <tr><th>KUBERNETES</th><td>{@code JOB_COMPLETION_INDEX} is set, in an Indexed Job or a JobSet</td>
 *     <td>{@code WORLD_SIZE}, the number of all ranks; with {@code LOCAL_WORLD_SIZE} greater than 1, {@code LOCAL_RANK}; in a
 *     JobSet of several jobs, {@code JOB_GLOBAL_INDEX} and {@code PODS_PER_JOB}</td></tr>
 * <tr><th>SINGLE</th><td>no other source applies</td><td>none; the process is rank 0 of 1</td></tr>
 * </tbody>
 * </table>
 *
 * <p>The local rank and the local world size may be unknown if the table calls them optional or does not name them. Then {@link
 * #hasLocalRank} is false, and {@link Rendezvous#locate} finds both; {@code Communicator.fromEnvironment()} calls it.
 *
 * <p>Sources of the master address, in order of precedence: {@code nccl4j.masterAddress}; {@code NCCL4J_STORE_ADDRESS}, the
 * address and port of a store that no rank keeps, unless {@code nccl4j.masterPort} is set; {@code MASTER_ADDR}; the loopback
 * address if all ranks are known to be on one host; the source, such as the first host of the step of Slurm or of LSF. Sources of
 * the port: {@code nccl4j.masterPort}; {@code NCCL4J_STORE_ADDRESS}; {@code NCCL4J_STORE_PORT}; {@code MASTER_PORT}, plus 1 if torchrun itself listens there; a
 * port from 20000 to 31999 that is computed from the job's id, so that two jobs on a host rarely have the same; {@value
 * #DEFAULT_PORT}. {@code nccl4j.job} or {@code NCCL4J_JOB} sets the job's id, and {@code nccl4j.restart} or
 * {@code NCCL4J_RESTART} the attempt; a store accepts only ranks of its own job and attempt.
 *
 * <p>Instances are immutable and thread-safe.
 *
 * @param rank 0 to {@code worldSize - 1}
 * @param worldSize the number of ranks
 * @param localRank the number of this rank among those of its host, from 0, or {@link #UNKNOWN}
 * @param localWorldSize the number of ranks on this host, or {@link #UNKNOWN}
 * @param masterAddress name or address of the host of rank 0, or of the store if no rank keeps it
 * @param masterPort the port at which rank 0, or the store, listens
 * @param job the id of the job, the same for all ranks; empty if the source has none
 * @param restart the attempt of the job, from 0, the same for all ranks
 * @param source the source of these values
 * @since 0.1
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

    /** The default port, which is also that of PyTorch: {@value}. */
    public static final int DEFAULT_PORT = RankValues.DEFAULT_PORT;

    /** Value of {@link #localRank} and {@link #localWorldSize} if they are unknown: {@value}. */
    public static final int UNKNOWN = RankValues.UNKNOWN;

    private static final int MAX_PORT = 65535;

    /** Source of the rank of a process. */
    public enum Source {
        /** System properties whose names begin with {@code nccl4j.}. */
        PROPERTIES(Launcher.PROPERTIES),
        /**
         * torchrun, or a launcher that sets the same variables: the nccl4j command, DeepSpeed, PyTorch Lightning, Kubeflow,
         * scripts.
         */
        TORCHRUN(Launcher.TORCHRUN),
        /** Kubeflow's Trainer, whose variables describe hosts instead of ranks. */
        TRAINER(Launcher.TRAINER),
        /** Open MPI's mpirun, or prterun. */
        OPEN_MPI(Launcher.OPEN_MPI),
        /** MVAPICH's mpirun_rsh. */
        MVAPICH(Launcher.MVAPICH),
        /** The process manager of MPICH, Intel MPI or Cray MPICH. */
        MPI(Launcher.MPI),
        /** Slurm's srun. */
        SLURM(Launcher.SLURM),
        /** Flux's flux run. */
        FLUX(Launcher.FLUX),
        /** LSF's jsrun or blaunch. */
        LSF(Launcher.LSF),
        /** HPE's PALS: mpiexec of Cray systems. */
        PALS(Launcher.PALS),
        /** A PMIx server such as prterun, without the variables of an MPI library. */
        PMIX(Launcher.PMIX),
        /** An Indexed Job, or a JobSet. */
        KUBERNETES(Launcher.KUBERNETES),
        /** No launcher: a single process. */
        SINGLE(Launcher.SINGLE);

        private final Launcher launcher;

        Source(Launcher launcher) {
            this.launcher = launcher;
        }

        /** {@return the name of the source, such as "Open MPI"} */
        @Override
        public String toString() {
            return launcher.toString();
        }
    }

    /**
     * Checks the values. With one rank, an unknown local rank becomes 0, and an unknown local world size 1.
     *
     * @param rank 0 to {@code worldSize - 1}
     * @param worldSize the number of ranks
     * @param localRank the number of this rank among those of its host, from 0, or {@link #UNKNOWN}
     * @param localWorldSize the number of ranks on this host, or {@link #UNKNOWN}
     * @param masterAddress name or address of the host of rank 0
     * @param masterPort the port at which rank 0 listens
     * @param job the id of the job, or an empty string
     * @param restart the attempt of the job, from 0
     * @param source the source of these values
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
        require("masterPort", masterPort, 1, MAX_PORT);
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
     * Reads the system properties and the environment of this process.
     *
     * @return the rank of this process; rank 0 of 1 if no launcher started it
     * @throws IllegalArgumentException if a source is incomplete or inconsistent; the message names the variable
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
     * @return the rank of the process
     * @throws IllegalArgumentException if a source is incomplete or inconsistent; the message names the variable
     */
    public static RankInfo from(Map<String, String> properties, Map<String, String> environment) {
        RankValues found = new RankSources(new Variables(properties, environment)).find();
        return new RankInfo(
                found.rank(),
                found.worldSize(),
                found.localRank(),
                found.localWorldSize(),
                found.masterAddress(),
                found.masterPort(),
                found.job(),
                found.restart(),
                Source.valueOf(found.launcher().name()));
    }

    /** {@return true if no launcher started this process} */
    public boolean isSingle() {
        return source == Source.SINGLE;
    }

    /**
     * {@return true if {@link #localRank} and {@link #localWorldSize} are both known; if not, {@link Rendezvous#locate} finds
     * them}
     */
    public boolean hasLocalRank() {
        return values().hasLocalRank();
    }

    /** Returns a copy with other local values. */
    RankInfo withLocalRank(int localRank, int localWorldSize) {
        return new RankInfo(
                rank, worldSize, localRank, localWorldSize, masterAddress, masterPort, job, restart, source);
    }

    /** True if both are equal, or differ only in local values that one of them does not know. */
    boolean isSameRankAs(RankInfo other) {
        return other.withLocalRank(UNKNOWN, UNKNOWN).equals(withLocalRank(UNKNOWN, UNKNOWN))
                && (!hasLocalRank() || !other.hasLocalRank() || equals(other));
    }

    /** {@return true if all ranks are known to be on one host} */
    public boolean isOnOneHost() {
        return values().isOnOneHost();
    }

    /**
     * Returns the index of the CUDA device of this rank: the local rank modulo the number of visible devices. This is
     * correct for launchers that make all devices of the host visible to each process, and for launchers that make one
     * device visible.
     *
     * @param visible the number of devices that are visible to this process
     * @return the index of the device
     * @throws IllegalArgumentException if no device is visible
     * @throws IllegalStateException if the local rank is unknown, see {@link #hasLocalRank}
     */
    public int device(int visible) {
        if (localRank == UNKNOWN) {
            throw new IllegalStateException("the local rank must be known to choose a device: rank " + rank + " of "
                    + worldSize + " by " + source + " has none; call Rendezvous.locate first");
        }
        if (visible < 1) {
            throw new IllegalArgumentException("rank " + rank + " sees no CUDA device");
        }
        return localRank % visible;
    }

    /** {@return a description, such as "rank 5 of 8 (1 of 4 on its host), meeting at node0:29500, by torchrun"} */
    @Override
    public String toString() {
        return "rank " + rank + " of " + worldSize + " (" + values().localText() + "), meeting at "
                + Endpoint.format(masterAddress, masterPort) + ", by " + source;
    }

    /** The same values, for the layers below this one. */
    RankValues values() {
        RankValues.Numbers numbers = new RankValues.Numbers(rank, worldSize, localRank, localWorldSize);
        return new RankValues(numbers, masterAddress, masterPort, job, restart, source.launcher);
    }
}

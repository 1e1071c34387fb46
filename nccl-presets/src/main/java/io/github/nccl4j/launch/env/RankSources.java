package io.github.nccl4j.launch.env;

import io.github.nccl4j.launch.env.RankValues.Numbers;
import java.util.Set;

/** Finds the launcher that started a process and reads its variables, as the table of {@code RankInfo} describes. */
public final class RankSources {
    /** If true, torchrun's own store listens at MASTER_PORT. */
    private static final String AGENT_STORE = "TORCHELASTIC_USE_AGENT_STORE";

    private static final String[] JOB = {"nccl4j.job", "NCCL4J_JOB"};
    private static final String[] RESTART = {"nccl4j.restart", "NCCL4J_RESTART"};
    private static final String[] ADDRESS = {"nccl4j.masterAddress", "MASTER_ADDR"};
    private static final String[] PORT = {"nccl4j.masterPort", "NCCL4J_STORE_PORT"};
    private static final String LOOPBACK = "127.0.0.1";
    private static final int MAX_PORT = 65535;

    /** Values of PET_NPROC_PER_NODE that mean a number of devices or processors of the host, which only torchrun knows. */
    private static final Set<String> DEVICE_COUNTS = Set.of("auto", "gpu", "cpu", "xpu");

    /** Ports for jobs: above those of well-known services, below the ephemeral ports. */
    private static final int FIRST_JOB_PORT = 20000;

    private static final int JOB_PORTS = 12000;

    private final Variables variables;

    public RankSources(Variables variables) {
        this.variables = variables;
    }

    public RankValues find() {
        if (variables.firstSet("nccl4j.rank", "nccl4j.worldSize") != null) {
            return properties();
        }
        boolean ranksAreHosts = variables.has("PET_NODE_RANK") && !variables.has("LOCAL_RANK");
        if (variables.has("RANK") && !ranksAreHosts) {
            return torchrun();
        }
        if (variables.has("PET_NODE_RANK")) {
            return trainer();
        }
        if (variables.has("OMPI_COMM_WORLD_RANK")) {
            return openMpi();
        }
        for (String prefix : new String[] {"MV2_COMM_WORLD", "MVP_COMM_WORLD"}) {
            if (variables.has(prefix + "_RANK")) {
                return mvapich(prefix);
            }
        }
        boolean mpi = variables.has("PMI_RANK") || variables.has("PMI_ID") && variables.has("PMI_PORT");
        if (mpi && localRankOfMpi() != null) {
            return mpi();
        }
        if (Slurm.isStep(variables)) {
            return slurm();
        }
        if (variables.has("FLUX_TASK_RANK")) {
            return flux();
        }
        if (mpi) {
            return mpi();
        }
        if (variables.has("JSM_NAMESPACE_RANK")) {
            return lsf();
        }
        if (variables.has("PALS_RANKID")) {
            return pals();
        }
        if (variables.has("PMIX_RANK")) {
            return pmix();
        }
        if (variables.has("LSF_PM_TASKID") && !"1".equals(variables.text("LSB_DJOB_NUMPROC"))) {
            return blaunch();
        }
        if (variables.has("JOB_COMPLETION_INDEX")) {
            return kubernetes();
        }
        for (String name : new String[] {"WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"}) {
            if (variables.has(name)) {
                throw new IllegalArgumentException(
                        variables.assignment(name) + " is set, so this process is one of several"
                                + " ranks, but RANK is not set and no other launcher provides the rank");
            }
        }
        return info(Launcher.SINGLE, new Numbers(0, 1, 0, 1), LOOPBACK, null, null, null);
    }

    private RankValues properties() {
        variables.require(Launcher.PROPERTIES, "nccl4j.rank", "nccl4j.worldSize");
        Numbers numbers = numbers("nccl4j.rank", "nccl4j.worldSize", "nccl4j.localRank", "nccl4j.localWorldSize");
        return info(Launcher.PROPERTIES, numbers, null, "MASTER_PORT", null, null);
    }

    private RankValues torchrun() {
        if ("1".equals(variables.text("WORLD_SIZE")) || usesStoreAddress()) {
            variables.require(Launcher.TORCHRUN, "RANK", "WORLD_SIZE");
        } else {
            variables.require(
                    Launcher.TORCHRUN,
                    "RANK",
                    "WORLD_SIZE",
                    "MASTER_ADDR|nccl4j.masterAddress",
                    "MASTER_PORT|NCCL4J_STORE_PORT|nccl4j.masterPort");
        }
        Numbers numbers = numbers("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE|LOCAL_SIZE");
        return info(
                Launcher.TORCHRUN,
                numbers,
                null,
                "MASTER_PORT",
                variables.text("TORCHELASTIC_RUN_ID"),
                "TORCHELASTIC_RESTART_COUNT");
    }

    private RankValues trainer() {
        variables.require(Launcher.TRAINER, "PET_NODE_RANK", "PET_NNODES", "PET_MASTER_ADDR|MASTER_ADDR");
        int hosts = variables.number("PET_NNODES", 1, Integer.MAX_VALUE);
        int host = variables.number("PET_NODE_RANK", 0, hosts - 1, "PET_NNODES");
        if (variables.has("RANK") && variables.number("RANK", 0, Integer.MAX_VALUE) != host) {
            throw new IllegalArgumentException(
                    "without LOCAL_RANK, RANK must be the number of a host and equal PET_NODE_RANK: "
                            + variables.assignment("RANK") + ", " + variables.assignment("PET_NODE_RANK")
                            + "; set LOCAL_RANK if RANK is the number of a process");
        }
        Numbers numbers;
        if (!DEVICE_COUNTS.contains(variables.textOrDefault("1", "PET_NPROC_PER_NODE"))) {
            String name = "PET_NPROC_PER_NODE";
            int perHost = variables.has(name) ? variables.number(name, 1, Integer.MAX_VALUE / hosts) : 1;
            numbers = numbersFromHost(Launcher.TRAINER, "PET_NODE_RANK", host, hosts * perHost, perHost, name);
        } else if (variables.firstSet("LOCAL_RANK", "LOCAL_WORLD_SIZE") != null) {
            variables.require(
                    Launcher.TRAINER, "PET_NODE_RANK", "PET_NPROC_PER_NODE", "LOCAL_RANK", "LOCAL_WORLD_SIZE");
            int perHost = variables.number("LOCAL_WORLD_SIZE", 1, Integer.MAX_VALUE / hosts);
            numbers = numbersFromHost(
                    Launcher.TRAINER, "PET_NODE_RANK", host, hosts * perHost, perHost, "LOCAL_WORLD_SIZE");
        } else {
            // Only torchrun starts a rank for each device; without its variables the host has one rank.
            numbers = new Numbers(host, hosts, RankValues.UNKNOWN, RankValues.UNKNOWN);
        }
        String port = variables.has("PET_MASTER_PORT") ? "PET_MASTER_PORT" : "MASTER_PORT";
        return info(
                Launcher.TRAINER,
                numbers,
                variables.text("PET_MASTER_ADDR"),
                port,
                variables.text("PET_RDZV_ID"),
                null);
    }

    private RankValues openMpi() {
        // OMPI_COMM_WORLD_NODE_RANK is not the local rank: it counts the processes of all jobs on the host.
        String[] names = {
            "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"
        };
        variables.require(Launcher.OPEN_MPI, names[0], names[1]);
        String job = variables.textOrDefault(null, "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid");
        return info(Launcher.OPEN_MPI, numbers(names[0], names[1], names[2], names[3]), null, "MASTER_PORT", job, null);
    }

    private RankValues mvapich(String prefix) {
        variables.require(Launcher.MVAPICH, prefix + "_RANK", prefix + "_SIZE");
        Numbers numbers = numbers(prefix + "_RANK", prefix + "_SIZE", prefix + "_LOCAL_RANK", prefix + "_LOCAL_SIZE");
        return info(Launcher.MVAPICH, numbers, null, "MASTER_PORT", variables.text("MPIRUN_ID"), null);
    }

    private String localRankOfMpi() {
        return variables.firstSet("MPI_LOCALRANKID", "PMI_LOCAL_RANK");
    }

    private RankValues mpi() {
        variables.require(Launcher.MPI, "PMI_RANK|PMI_ID", "PMI_SIZE|WORLD_SIZE");
        Numbers numbers = numbers(
                "PMI_RANK|PMI_ID",
                "PMI_SIZE|WORLD_SIZE",
                "MPI_LOCALRANKID|PMI_LOCAL_RANK",
                "MPI_LOCALNRANKS|PMI_LOCAL_SIZE|LOCAL_WORLD_SIZE");
        return info(Launcher.MPI, numbers, null, "MASTER_PORT", variables.text("PMI_JOBID"), null);
    }

    private RankValues slurm() {
        variables.require(
                Launcher.SLURM,
                "SLURM_PROCID",
                "SLURM_STEP_NUM_TASKS|SLURM_NTASKS",
                "SLURM_LOCALID",
                "SLURM_NODEID",
                "SLURM_STEP_TASKS_PER_NODE");
        String size = variables.firstSet("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS");
        int world = variables.number(size, 1, Integer.MAX_VALUE);
        int local = Slurm.tasksOnHost(
                variables.text("SLURM_STEP_TASKS_PER_NODE"), variables.number("SLURM_NODEID", 0, Integer.MAX_VALUE));
        Numbers numbers = new Numbers(
                variables.number("SLURM_PROCID", 0, world - 1, size),
                world,
                variables.number("SLURM_LOCALID", 0, local - 1, "SLURM_STEP_TASKS_PER_NODE"),
                local);
        String hosts = variables.textOrDefault(null, "SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST");
        String job = variables.textOrDefault("", "SLURM_JOB_ID", "SLURM_JOBID") + "." + variables.text("SLURM_STEP_ID");
        return info(
                Launcher.SLURM,
                numbers,
                hosts == null ? null : Slurm.firstHost(hosts),
                "MASTER_PORT",
                job,
                "SLURM_RESTART_COUNT");
    }

    private RankValues flux() {
        variables.require(Launcher.FLUX, "FLUX_TASK_RANK", "FLUX_JOB_SIZE");
        boolean oneHost = "1".equals(variables.text("FLUX_JOB_NNODES"));
        Numbers numbers = numbers(
                "FLUX_TASK_RANK",
                "FLUX_JOB_SIZE",
                "FLUX_TASK_LOCAL_ID",
                oneHost ? "FLUX_JOB_SIZE" : "LOCAL_WORLD_SIZE");
        return info(Launcher.FLUX, numbers, null, "MASTER_PORT", variables.text("FLUX_JOB_ID"), null);
    }

    private RankValues pals() {
        variables.require(Launcher.PALS, "PALS_RANKID", "PMI_SIZE|WORLD_SIZE");
        Numbers numbers = numbers("PALS_RANKID", "PMI_SIZE|WORLD_SIZE", "PALS_LOCAL_RANKID", "PALS_LOCAL_SIZE");
        return info(Launcher.PALS, numbers, null, "MASTER_PORT", variables.text("PALS_APID"), null);
    }

    private RankValues pmix() {
        variables.require(Launcher.PMIX, "PMIX_RANK", "WORLD_SIZE");
        Numbers numbers = numbers("PMIX_RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE");
        return info(Launcher.PMIX, numbers, null, "MASTER_PORT", variables.text("PMIX_NAMESPACE"), null);
    }

    private RankValues blaunch() {
        variables.require(Launcher.LSF, "LSF_PM_TASKID", "WORLD_SIZE");
        int world = variables.number("WORLD_SIZE", 1, Integer.MAX_VALUE);
        int task = variables.number("LSF_PM_TASKID", 1, world, "WORLD_SIZE");
        Numbers numbers = new Numbers(task - 1, world, RankValues.UNKNOWN, RankValues.UNKNOWN);
        return info(Launcher.LSF, numbers, null, "MASTER_PORT", variables.text("LSB_JOBID"), null);
    }

    private RankValues lsf() {
        String[] names = {
            "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_LOCAL_RANK", "JSM_NAMESPACE_LOCAL_SIZE"
        };
        variables.require(Launcher.LSF, names[0], names[1]);
        Numbers numbers = numbers(names[0], names[1], names[2], names[3]);
        return info(
                Launcher.LSF,
                numbers,
                Lsf.firstHost(variables),
                "MASTER_PORT",
                variables.textOrDefault(null, "LSB_JOBID"),
                null);
    }

    private RankValues kubernetes() {
        variables.require(Launcher.KUBERNETES, "JOB_COMPLETION_INDEX", "WORLD_SIZE");
        int world = variables.number("WORLD_SIZE", 1, Integer.MAX_VALUE);
        int perPod =
                variables.has("LOCAL_WORLD_SIZE") ? variables.number("LOCAL_WORLD_SIZE", 1, world, "WORLD_SIZE") : 1;
        int pod = variables.number("JOB_COMPLETION_INDEX", 0, Integer.MAX_VALUE);
        if (variables.has("JOB_GLOBAL_INDEX")) {
            // The completion index counts the pods of each job of a JobSet from 0.
            variables.require(Launcher.KUBERNETES, "JOB_COMPLETION_INDEX", "JOB_GLOBAL_INDEX", "PODS_PER_JOB");
            int podsPerJob = variables.number("PODS_PER_JOB", pod + 1, world);
            pod += podsPerJob * variables.number("JOB_GLOBAL_INDEX", 0, world / podsPerJob - 1);
        }
        if ((pod + 1L) * perPod > world) {
            throw new IllegalArgumentException("WORLD_SIZE must be >= " + (pod + 1L) * perPod + " for pod " + pod
                    + " with LOCAL_WORLD_SIZE " + perPod + ": " + world);
        }
        Numbers numbers =
                numbersFromHost(Launcher.KUBERNETES, "JOB_COMPLETION_INDEX", pod, world, perPod, "LOCAL_WORLD_SIZE");
        return info(
                Launcher.KUBERNETES,
                numbers,
                null,
                "MASTER_PORT",
                variables.text("JOBSET_NAME"),
                "JOBSET_RESTART_ATTEMPT");
    }

    /** The numbers of a process from the number of its host and the number of ranks per host. */
    private Numbers numbersFromHost(
            Launcher launcher, String hostName, int host, int world, int perHost, String perHostName) {
        if (perHost > 1) {
            variables.require(launcher, hostName, perHostName, "LOCAL_RANK");
        }
        int local = variables.has("LOCAL_RANK") ? variables.number("LOCAL_RANK", 0, perHost - 1, perHostName) : 0;
        return new Numbers(host * perHost + local, world, local, perHost);
    }

    /** The numbers of a process from variables; of names with a bar between them, the first that is set. */
    private Numbers numbers(String ranks, String worldSizes, String localRanks, String localWorldSizes) {
        String rank = variables.firstSet(ranks.split("\\|"));
        String worldSize = variables.firstSet(worldSizes.split("\\|"));
        String localRank = variables.firstSet(localRanks.split("\\|"));
        String localWorldSize = variables.firstSet(localWorldSizes.split("\\|"));
        int world = variables.number(worldSize, 1, Integer.MAX_VALUE);
        int local = localWorldSize == null ? RankValues.UNKNOWN : variables.number(localWorldSize, 1, world, worldSize);
        return new Numbers(
                variables.number(rank, 0, world - 1, worldSize),
                world,
                localRank == null
                        ? RankValues.UNKNOWN
                        : variables.number(
                                localRank,
                                0,
                                (localWorldSize == null ? world : local) - 1,
                                localWorldSize == null ? worldSize : localWorldSize),
                local);
    }

    private RankValues info(
            Launcher launcher,
            Numbers numbers,
            String addressOfSource,
            String portName,
            String jobOfSource,
            String restartName) {
        String job = variables.textOrDefault(jobOfSource == null ? "" : jobOfSource, JOB);
        String counter = variables.firstSet(RESTART);
        if (counter == null && restartName != null && variables.has(restartName)) {
            counter = restartName;
        }
        return new RankValues(
                numbers,
                Endpoint.withoutBrackets(address(launcher, numbers, addressOfSource)),
                port(launcher, portName, job),
                job,
                counter == null ? 0 : variables.number(counter, 0, Integer.MAX_VALUE),
                launcher);
    }

    /** True if the ranks meet at a store that no rank keeps. Properties with an address or a port precede its variable. */
    private boolean usesStoreAddress() {
        return variables.has(Endpoint.STORE_VARIABLE) && !variables.has(ADDRESS[0]) && !variables.has(PORT[0]);
    }

    private String address(Launcher launcher, Numbers numbers, String addressOfSource) {
        if (usesStoreAddress()) {
            return Endpoint.host(variables.text(Endpoint.STORE_VARIABLE));
        }
        String given = variables.textOrDefault(null, ADDRESS);
        if (given != null) {
            return given;
        }
        boolean oneHost = numbers.worldSize() == 1 || numbers.localWorldSize() == numbers.worldSize();
        // The store of a job on one host is not exposed to the network.
        if (oneHost) {
            return LOOPBACK;
        }
        if (addressOfSource == null) {
            throw new IllegalArgumentException("MASTER_ADDR must be set for rank " + numbers.rank() + " of "
                    + numbers.worldSize() + ", because " + launcher
                    + " does not provide it: set it to the name or address of the host of rank 0"
                    + (launcher == Launcher.OPEN_MPI ? ", and pass it on with mpirun -x MASTER_ADDR" : ""));
        }
        return addressOfSource;
    }

    private int port(Launcher launcher, String name, String job) {
        if (usesStoreAddress()) {
            return Endpoint.port(
                    Endpoint.STORE_VARIABLE, variables.text(Endpoint.STORE_VARIABLE), RankValues.DEFAULT_PORT);
        }
        String own = variables.firstSet(PORT);
        if (own != null) {
            return variables.number(own, 1, MAX_PORT);
        }
        if (name != null && variables.has(name)) {
            boolean usedByTorchrun =
                    launcher == Launcher.TORCHRUN && "True".equalsIgnoreCase(variables.text(AGENT_STORE));
            return variables.number(name, 1, usedByTorchrun ? MAX_PORT - 1 : MAX_PORT) + (usedByTorchrun ? 1 : 0);
        }
        return job.isEmpty() ? RankValues.DEFAULT_PORT : FIRST_JOB_PORT + Math.floorMod(job.hashCode(), JOB_PORTS);
    }
}

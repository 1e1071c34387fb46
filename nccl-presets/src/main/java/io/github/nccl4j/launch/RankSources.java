package io.github.nccl4j.launch;

import io.github.nccl4j.launch.RankInfo.Source;
import java.util.Set;

/** Finds out which launcher started a process, and what it tells. The order, and what is needed, is told by {@link RankInfo}. */
final class RankSources {
    /** Torchrun's own store listens at MASTER_PORT then. */
    private static final String AGENT_STORE = "TORCHELASTIC_USE_AGENT_STORE";

    private static final String[] JOB = {"nccl4j.job", "NCCL4J_JOB"};
    private static final String[] RESTART = {"nccl4j.restart", "NCCL4J_RESTART"};
    private static final String[] ADDRESS = {"nccl4j.masterAddress", "MASTER_ADDR"};
    private static final String[] PORT = {"nccl4j.masterPort", "NCCL4J_STORE_PORT"};
    private static final String LOOPBACK = "127.0.0.1";
    private static final int LARGEST_PORT = 65535;

    /** Values of PET_NPROC_PER_NODE with which torchrun counts the devices of a host, and starts as many ranks. */
    private static final Set<String> COUNTED_LATER = Set.of("auto", "gpu", "cpu", "xpu");

    /** Ports that no system hands out by itself, above those of well-known services. */
    private static final int FIRST_JOB_PORT = 20000;

    private static final int JOB_PORTS = 12000;

    private final Variables variables;

    RankSources(Variables variables) {
        this.variables = variables;
    }

    /** A process's place, without the address where the ranks meet. The local ones may be {@link RankInfo#UNKNOWN}. */
    private record Place(int rank, int worldSize, int localRank, int localWorldSize) {}

    RankInfo find() {
        if (variables.firstOf("nccl4j.rank", "nccl4j.worldSize") != null) {
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
                throw new IllegalArgumentException(variables.seen(name) + " is set, so this process is one of several"
                        + " ranks, but RANK is not set, and no other launcher tells its rank");
            }
        }
        return info(Source.SINGLE, new Place(0, 1, 0, 1), LOOPBACK, null, null, null);
    }

    private RankInfo properties() {
        variables.require(Source.PROPERTIES, "nccl4j.rank", "nccl4j.worldSize");
        Place place = place("nccl4j.rank", "nccl4j.worldSize", "nccl4j.localRank", "nccl4j.localWorldSize");
        return info(Source.PROPERTIES, place, null, "MASTER_PORT", null, null);
    }

    private RankInfo torchrun() {
        if ("1".equals(variables.text("WORLD_SIZE"))) {
            variables.require(Source.TORCHRUN, "RANK", "WORLD_SIZE");
        } else {
            variables.require(
                    Source.TORCHRUN,
                    "RANK",
                    "WORLD_SIZE",
                    "MASTER_ADDR|nccl4j.masterAddress",
                    "MASTER_PORT|NCCL4J_STORE_PORT|nccl4j.masterPort");
        }
        Place place = place("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE|LOCAL_SIZE");
        return info(
                Source.TORCHRUN,
                place,
                null,
                "MASTER_PORT",
                variables.text("TORCHELASTIC_RUN_ID"),
                "TORCHELASTIC_RESTART_COUNT");
    }

    private RankInfo trainer() {
        variables.require(Source.TRAINER, "PET_NODE_RANK", "PET_NNODES", "PET_MASTER_ADDR|MASTER_ADDR");
        int hosts = variables.number("PET_NNODES", 1, Integer.MAX_VALUE);
        int host = variables.number("PET_NODE_RANK", 0, hosts - 1, "PET_NNODES");
        if (variables.has("RANK") && variables.number("RANK", 0, Integer.MAX_VALUE) != host) {
            throw new IllegalArgumentException(
                    "RANK is the number of a host, as PET_NODE_RANK is, where LOCAL_RANK is not"
                            + " set: " + variables.seen("RANK") + ", " + variables.seen("PET_NODE_RANK")
                            + "; set LOCAL_RANK if RANK is the number of a process");
        }
        Place place;
        if (!COUNTED_LATER.contains(variables.textOf("1", "PET_NPROC_PER_NODE"))) {
            String name = "PET_NPROC_PER_NODE";
            int perHost = variables.has(name) ? variables.number(name, 1, Integer.MAX_VALUE / hosts) : 1;
            place = nth(Source.TRAINER, "PET_NODE_RANK", host, hosts * perHost, perHost, name);
        } else if (variables.firstOf("LOCAL_RANK", "LOCAL_WORLD_SIZE") != null) {
            variables.require(Source.TRAINER, "PET_NODE_RANK", "PET_NPROC_PER_NODE", "LOCAL_RANK", "LOCAL_WORLD_SIZE");
            int perHost = variables.number("LOCAL_WORLD_SIZE", 1, Integer.MAX_VALUE / hosts);
            place = nth(Source.TRAINER, "PET_NODE_RANK", host, hosts * perHost, perHost, "LOCAL_WORLD_SIZE");
        } else {
            // torchrun would count GPUs or processors and start as many ranks; without it, this is the only one.
            place = new Place(host, hosts, RankInfo.UNKNOWN, RankInfo.UNKNOWN);
        }
        String port = variables.has("PET_MASTER_PORT") ? "PET_MASTER_PORT" : "MASTER_PORT";
        return info(
                Source.TRAINER, place, variables.text("PET_MASTER_ADDR"), port, variables.text("PET_RDZV_ID"), null);
    }

    private RankInfo openMpi() {
        // Not OMPI_COMM_WORLD_NODE_RANK, which counts the processes of all jobs of the host.
        String[] names = {
            "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"
        };
        variables.require(Source.OPEN_MPI, names[0], names[1]);
        String job = variables.textOf(null, "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid");
        return info(Source.OPEN_MPI, place(names[0], names[1], names[2], names[3]), null, "MASTER_PORT", job, null);
    }

    private RankInfo mvapich(String prefix) {
        variables.require(Source.MVAPICH, prefix + "_RANK", prefix + "_SIZE");
        Place place = place(prefix + "_RANK", prefix + "_SIZE", prefix + "_LOCAL_RANK", prefix + "_LOCAL_SIZE");
        return info(Source.MVAPICH, place, null, "MASTER_PORT", variables.text("MPIRUN_ID"), null);
    }

    private String localRankOfMpi() {
        return variables.firstOf("MPI_LOCALRANKID", "PMI_LOCAL_RANK");
    }

    private RankInfo mpi() {
        variables.require(Source.MPI, "PMI_RANK|PMI_ID", "PMI_SIZE|WORLD_SIZE");
        Place place = place(
                "PMI_RANK|PMI_ID",
                "PMI_SIZE|WORLD_SIZE",
                "MPI_LOCALRANKID|PMI_LOCAL_RANK",
                "MPI_LOCALNRANKS|PMI_LOCAL_SIZE|LOCAL_WORLD_SIZE");
        return info(Source.MPI, place, null, "MASTER_PORT", variables.text("PMI_JOBID"), null);
    }

    private RankInfo slurm() {
        variables.require(
                Source.SLURM,
                "SLURM_PROCID",
                "SLURM_STEP_NUM_TASKS|SLURM_NTASKS",
                "SLURM_LOCALID",
                "SLURM_NODEID",
                "SLURM_STEP_TASKS_PER_NODE");
        String size = variables.firstOf("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS");
        int world = variables.number(size, 1, Integer.MAX_VALUE);
        int local = Slurm.tasksOnHost(
                variables.text("SLURM_STEP_TASKS_PER_NODE"), variables.number("SLURM_NODEID", 0, Integer.MAX_VALUE));
        Place place = new Place(
                variables.number("SLURM_PROCID", 0, world - 1, size),
                world,
                variables.number("SLURM_LOCALID", 0, local - 1, "SLURM_STEP_TASKS_PER_NODE"),
                local);
        String hosts = variables.textOf(null, "SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST");
        String job = variables.textOf("", "SLURM_JOB_ID", "SLURM_JOBID") + "." + variables.text("SLURM_STEP_ID");
        return info(
                Source.SLURM,
                place,
                hosts == null ? null : Slurm.firstHost(hosts),
                "MASTER_PORT",
                job,
                "SLURM_RESTART_COUNT");
    }

    private RankInfo flux() {
        variables.require(Source.FLUX, "FLUX_TASK_RANK", "FLUX_JOB_SIZE");
        boolean oneHost = "1".equals(variables.text("FLUX_JOB_NNODES"));
        Place place = place(
                "FLUX_TASK_RANK",
                "FLUX_JOB_SIZE",
                "FLUX_TASK_LOCAL_ID",
                oneHost ? "FLUX_JOB_SIZE" : "LOCAL_WORLD_SIZE");
        return info(Source.FLUX, place, null, "MASTER_PORT", variables.text("FLUX_JOB_ID"), null);
    }

    private RankInfo pals() {
        variables.require(Source.PALS, "PALS_RANKID", "PMI_SIZE|WORLD_SIZE");
        Place place = place("PALS_RANKID", "PMI_SIZE|WORLD_SIZE", "PALS_LOCAL_RANKID", "PALS_LOCAL_SIZE");
        return info(Source.PALS, place, null, "MASTER_PORT", variables.text("PALS_APID"), null);
    }

    private RankInfo pmix() {
        variables.require(Source.PMIX, "PMIX_RANK", "WORLD_SIZE");
        Place place = place("PMIX_RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE");
        return info(Source.PMIX, place, null, "MASTER_PORT", variables.text("PMIX_NAMESPACE"), null);
    }

    private RankInfo blaunch() {
        variables.require(Source.LSF, "LSF_PM_TASKID", "WORLD_SIZE");
        int world = variables.number("WORLD_SIZE", 1, Integer.MAX_VALUE);
        int task = variables.number("LSF_PM_TASKID", 1, world, "WORLD_SIZE");
        Place place = new Place(task - 1, world, RankInfo.UNKNOWN, RankInfo.UNKNOWN);
        return info(Source.LSF, place, null, "MASTER_PORT", variables.text("LSB_JOBID"), null);
    }

    private RankInfo lsf() {
        String[] names = {
            "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_LOCAL_RANK", "JSM_NAMESPACE_LOCAL_SIZE"
        };
        variables.require(Source.LSF, names[0], names[1]);
        Place place = place(names[0], names[1], names[2], names[3]);
        return info(
                Source.LSF, place, Lsf.firstHost(variables), "MASTER_PORT", variables.textOf(null, "LSB_JOBID"), null);
    }

    private RankInfo kubernetes() {
        variables.require(Source.KUBERNETES, "JOB_COMPLETION_INDEX", "WORLD_SIZE");
        int world = variables.number("WORLD_SIZE", 1, Integer.MAX_VALUE);
        int perPod =
                variables.has("LOCAL_WORLD_SIZE") ? variables.number("LOCAL_WORLD_SIZE", 1, world, "WORLD_SIZE") : 1;
        int pod = variables.number("JOB_COMPLETION_INDEX", 0, Integer.MAX_VALUE);
        if (variables.has("JOB_GLOBAL_INDEX")) {
            // Each job of a JobSet counts its pods from 0.
            variables.require(Source.KUBERNETES, "JOB_COMPLETION_INDEX", "JOB_GLOBAL_INDEX", "PODS_PER_JOB");
            int podsPerJob = variables.number("PODS_PER_JOB", pod + 1, world);
            pod += podsPerJob * variables.number("JOB_GLOBAL_INDEX", 0, world / podsPerJob - 1);
        }
        if ((pod + 1L) * perPod > world) {
            throw new IllegalArgumentException("WORLD_SIZE must be at least " + (pod + 1L) * perPod
                    + ", since this is pod " + pod + " with LOCAL_WORLD_SIZE " + perPod + ": " + world);
        }
        Place place = nth(Source.KUBERNETES, "JOB_COMPLETION_INDEX", pod, world, perPod, "LOCAL_WORLD_SIZE");
        return info(
                Source.KUBERNETES, place, null, "MASTER_PORT", variables.text("JOBSET_NAME"), "JOBSET_RESTART_ATTEMPT");
    }

    /** The place of a process when only its host's number is told, and how many ranks each host has. */
    private Place nth(Source source, String hostName, int host, int world, int perHost, String perHostName) {
        if (perHost > 1) {
            variables.require(source, hostName, perHostName, "LOCAL_RANK");
        }
        int local = variables.has("LOCAL_RANK") ? variables.number("LOCAL_RANK", 0, perHost - 1, perHostName) : 0;
        return new Place(host * perHost + local, world, local, perHost);
    }

    /** The place of a process from variables; of names with a bar between them, the first that is set. */
    private Place place(String ranks, String worldSizes, String localRanks, String localWorldSizes) {
        String rank = variables.firstOf(ranks.split("\\|"));
        String worldSize = variables.firstOf(worldSizes.split("\\|"));
        String localRank = variables.firstOf(localRanks.split("\\|"));
        String localWorldSize = variables.firstOf(localWorldSizes.split("\\|"));
        int world = variables.number(worldSize, 1, Integer.MAX_VALUE);
        int local = localWorldSize == null ? RankInfo.UNKNOWN : variables.number(localWorldSize, 1, world, worldSize);
        return new Place(
                variables.number(rank, 0, world - 1, worldSize),
                world,
                localRank == null
                        ? RankInfo.UNKNOWN
                        : variables.number(
                                localRank,
                                0,
                                (localWorldSize == null ? world : local) - 1,
                                localWorldSize == null ? worldSize : localWorldSize),
                local);
    }

    private RankInfo info(
            Source source,
            Place place,
            String addressOfSource,
            String portName,
            String jobOfSource,
            String restartName) {
        String job = variables.textOf(jobOfSource == null ? "" : jobOfSource, JOB);
        String counter = variables.firstOf(RESTART);
        if (counter == null && restartName != null && variables.has(restartName)) {
            counter = restartName;
        }
        return new RankInfo(
                place.rank,
                place.worldSize,
                place.localRank,
                place.localWorldSize,
                Endpoint.withoutBrackets(address(source, place, addressOfSource)),
                port(source, portName, job),
                job,
                counter == null ? 0 : variables.number(counter, 0, Integer.MAX_VALUE),
                source);
    }

    private String address(Source source, Place place, String addressOfSource) {
        String given = variables.textOf(null, ADDRESS);
        if (given != null) {
            return given;
        }
        boolean oneHost = place.worldSize == 1 || place.localWorldSize == place.worldSize;
        // What stays on the host is not offered to the network.
        if (oneHost) {
            return LOOPBACK;
        }
        if (addressOfSource == null) {
            throw new IllegalArgumentException("MASTER_ADDR is not set, and " + source + " does not tell it to rank "
                    + place.rank + " of " + place.worldSize + ": set it to the name or address of the host of rank 0"
                    + (source == Source.OPEN_MPI ? ", and hand it on with mpirun -x MASTER_ADDR" : ""));
        }
        return addressOfSource;
    }

    private int port(Source source, String name, String job) {
        String own = variables.firstOf(PORT);
        if (own != null) {
            return variables.number(own, 1, LARGEST_PORT);
        }
        if (name != null && variables.has(name)) {
            boolean taken = source == Source.TORCHRUN && "True".equalsIgnoreCase(variables.text(AGENT_STORE));
            return variables.number(name, 1, taken ? LARGEST_PORT - 1 : LARGEST_PORT) + (taken ? 1 : 0);
        }
        return job.isEmpty() ? RankInfo.DEFAULT_PORT : FIRST_JOB_PORT + Math.floorMod(job.hashCode(), JOB_PORTS);
    }
}

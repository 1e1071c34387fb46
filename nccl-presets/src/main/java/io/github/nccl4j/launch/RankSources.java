package io.github.nccl4j.launch;

import io.github.nccl4j.launch.RankInfo.Source;

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

    /** Ports that no system hands out by itself, above those of well-known services. */
    private static final int FIRST_JOB_PORT = 20000;

    private static final int JOB_PORTS = 12000;

    private final Variables variables;

    RankSources(Variables variables) {
        this.variables = variables;
    }

    /** A process's place, without the address where the ranks meet. */
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
        boolean step = Slurm.isStep(variables);
        if (variables.has("PMI_RANK") && variables.has("PMI_SIZE") && !(step && localRankOfMpi() == null)) {
            return mpi();
        }
        if (step) {
            return slurm();
        }
        if (variables.has("JSM_NAMESPACE_RANK")) {
            return lsf();
        }
        if (variables.has("JOB_COMPLETION_INDEX")) {
            return kubernetes();
        }
        for (String name : new String[] {"WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"}) {
            if (variables.has(name)) {
                throw new IllegalArgumentException(name + " is set, so this process is one of several ranks, but RANK"
                        + " is not set, and no other launcher tells its rank");
            }
        }
        return info(Source.SINGLE, new Place(0, 1, 0, 1), LOOPBACK, null, null, null);
    }

    private RankInfo properties() {
        variables.require(
                Source.PROPERTIES, "nccl4j.rank", "nccl4j.worldSize", "nccl4j.localRank", "nccl4j.localWorldSize");
        Place place = place("nccl4j.rank", "nccl4j.worldSize", "nccl4j.localRank", "nccl4j.localWorldSize");
        return info(Source.PROPERTIES, place, null, "MASTER_PORT", null, null);
    }

    private RankInfo torchrun() {
        variables.require(
                Source.TORCHRUN,
                "RANK",
                "WORLD_SIZE",
                "LOCAL_RANK",
                "LOCAL_WORLD_SIZE|LOCAL_SIZE",
                "MASTER_ADDR|nccl4j.masterAddress",
                "MASTER_PORT|NCCL4J_STORE_PORT|nccl4j.masterPort");
        Place place = place(
                "RANK",
                "WORLD_SIZE",
                "LOCAL_RANK",
                variables.has("LOCAL_WORLD_SIZE") ? "LOCAL_WORLD_SIZE" : "LOCAL_SIZE");
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
        int host = variables.number("PET_NODE_RANK", 0, hosts - 1);
        int perHost = variables.has("PET_NPROC_PER_NODE")
                ? variables.number("PET_NPROC_PER_NODE", 1, Integer.MAX_VALUE / hosts)
                : 1;
        Place place = nth(Source.TRAINER, host, hosts * perHost, perHost);
        String port = variables.has("PET_MASTER_PORT") ? "PET_MASTER_PORT" : "MASTER_PORT";
        return info(
                Source.TRAINER, place, variables.text("PET_MASTER_ADDR"), port, variables.text("PET_RDZV_ID"), null);
    }

    private RankInfo openMpi() {
        // Not OMPI_COMM_WORLD_NODE_RANK, which counts the processes of all jobs of the host.
        String[] names = {
            "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"
        };
        variables.require(Source.OPEN_MPI, names);
        String job = variables.textOf(null, "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid");
        return info(Source.OPEN_MPI, place(names[0], names[1], names[2], names[3]), null, "MASTER_PORT", job, null);
    }

    private String localRankOfMpi() {
        return variables.firstOf("MPI_LOCALRANKID", "PMI_LOCAL_RANK");
    }

    private RankInfo mpi() {
        variables.require(
                Source.MPI,
                "PMI_RANK",
                "PMI_SIZE",
                "MPI_LOCALRANKID|PMI_LOCAL_RANK",
                "MPI_LOCALNRANKS|PMI_LOCAL_SIZE|LOCAL_WORLD_SIZE");
        Place place = place(
                "PMI_RANK",
                "PMI_SIZE",
                localRankOfMpi(),
                variables.firstOf("MPI_LOCALNRANKS", "PMI_LOCAL_SIZE", "LOCAL_WORLD_SIZE"));
        return info(Source.MPI, place, null, "MASTER_PORT", variables.text("PMI_JOBID"), null);
    }

    private RankInfo slurm() {
        variables.require(
                Source.SLURM,
                "SLURM_STEP_NUM_TASKS|SLURM_NTASKS",
                "SLURM_LOCALID",
                "SLURM_NODEID",
                "SLURM_STEP_TASKS_PER_NODE");
        String size = variables.firstOf("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS");
        int world = variables.number(size, 1, Integer.MAX_VALUE);
        int local = Slurm.tasksOnHost(
                variables.text("SLURM_STEP_TASKS_PER_NODE"), variables.number("SLURM_NODEID", 0, Integer.MAX_VALUE));
        Place place = new Place(
                variables.number("SLURM_PROCID", 0, world - 1),
                world,
                variables.number("SLURM_LOCALID", 0, local - 1),
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

    private RankInfo lsf() {
        String[] names = {
            "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_LOCAL_RANK", "JSM_NAMESPACE_LOCAL_SIZE"
        };
        variables.require(Source.LSF, names);
        Place place = place(names[0], names[1], names[2], names[3]);
        return info(
                Source.LSF, place, Lsf.firstHost(variables), "MASTER_PORT", variables.textOf(null, "LSB_JOBID"), null);
    }

    private RankInfo kubernetes() {
        variables.require(Source.KUBERNETES, "WORLD_SIZE");
        int world = variables.number("WORLD_SIZE", 1, Integer.MAX_VALUE);
        int perPod = variables.has("LOCAL_WORLD_SIZE") ? variables.number("LOCAL_WORLD_SIZE", 1, world) : 1;
        int pod = variables.number("JOB_COMPLETION_INDEX", 0, Integer.MAX_VALUE);
        if (variables.has("JOB_GLOBAL_INDEX")) {
            // Each job of a JobSet counts its pods from 0.
            variables.require(Source.KUBERNETES, "WORLD_SIZE", "JOB_GLOBAL_INDEX", "PODS_PER_JOB");
            int podsPerJob = variables.number("PODS_PER_JOB", pod + 1, world);
            pod += podsPerJob * variables.number("JOB_GLOBAL_INDEX", 0, world / podsPerJob - 1);
        }
        if ((pod + 1L) * perPod > world) {
            throw new IllegalArgumentException("WORLD_SIZE must be at least " + (pod + 1L) * perPod
                    + ", since this is pod " + pod + " with LOCAL_WORLD_SIZE " + perPod + ": " + world);
        }
        Place place = nth(Source.KUBERNETES, pod, world, perPod);
        return info(
                Source.KUBERNETES, place, null, "MASTER_PORT", variables.text("JOBSET_NAME"), "JOBSET_RESTART_ATTEMPT");
    }

    /** The place of a process when only its host's number is told. */
    private Place nth(Source source, int host, int world, int perHost) {
        if (perHost > 1) {
            variables.require(source, "LOCAL_RANK");
        }
        int local = variables.has("LOCAL_RANK") ? variables.number("LOCAL_RANK", 0, perHost - 1) : 0;
        return new Place(host * perHost + local, world, local, perHost);
    }

    private Place place(String rank, String worldSize, String localRank, String localWorldSize) {
        int world = variables.number(worldSize, 1, Integer.MAX_VALUE);
        int local = variables.number(localWorldSize, 1, world);
        return new Place(variables.number(rank, 0, world - 1), world, variables.number(localRank, 0, local - 1), local);
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
                Endpoint.bare(address(source, place, addressOfSource)),
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
        boolean oneHost = place.localWorldSize == place.worldSize;
        // What stays on the host is not offered to the network.
        if (oneHost) {
            return LOOPBACK;
        }
        if (addressOfSource == null) {
            throw new IllegalArgumentException("MASTER_ADDR is not set, and " + source
                    + " does not tell it: set it to the name or address of the host of rank 0"
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

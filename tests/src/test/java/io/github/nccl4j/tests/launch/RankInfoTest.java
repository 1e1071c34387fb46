package io.github.nccl4j.tests.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.RankInfo.Source;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests of {@link RankInfo}: all sources with complete, incomplete and invalid variables, their precedence, and limits. */
class RankInfoTest {
    private static final String TORCHRUN =
            "RANK=5 WORLD_SIZE=8 LOCAL_RANK=1 LOCAL_WORLD_SIZE=4 MASTER_ADDR=node0 MASTER_PORT=29500";
    private static final String OPEN_MPI = "OMPI_COMM_WORLD_RANK=5 OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_LOCAL_RANK=1"
            + " OMPI_COMM_WORLD_LOCAL_SIZE=4 OMPI_COMM_WORLD_NODE_RANK=3";
    private static final String MPICH = "PMI_RANK=5 PMI_SIZE=8 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=4";
    private static final String CRAY = "PMI_RANK=5 PMI_SIZE=8 PMI_LOCAL_RANK=1 PMI_LOCAL_SIZE=4";
    private static final String SLURM = "SLURM_PROCID=5 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=8 SLURM_LOCALID=1"
            + " SLURM_NODEID=1 SLURM_STEP_TASKS_PER_NODE=4(x2) SLURM_STEP_NODELIST=n[01-02] SLURM_JOB_ID=77";
    private static final String LSF =
            "JSM_NAMESPACE_RANK=5 JSM_NAMESPACE_SIZE=8 JSM_NAMESPACE_LOCAL_RANK=1 JSM_NAMESPACE_LOCAL_SIZE=4";
    private static final String MVAPICH = "MV2_COMM_WORLD_RANK=5 MV2_COMM_WORLD_SIZE=8 MV2_COMM_WORLD_LOCAL_RANK=1"
            + " MV2_COMM_WORLD_LOCAL_SIZE=4 PMI_ID=5 PMI_PORT=node0:4711 MPIRUN_NPROCS=8";
    private static final String FLUX =
            "FLUX_TASK_RANK=5 FLUX_JOB_SIZE=8 FLUX_TASK_LOCAL_ID=1 FLUX_JOB_NNODES=2 FLUX_JOB_ID=f1 PMI_RANK=5 PMI_SIZE=8";
    private static final String PALS =
            "PALS_RANKID=5 PALS_LOCAL_RANKID=1 PALS_LOCAL_SIZE=4 PALS_NODEID=1 PALS_APID=a1 PMIX_RANK=5";
    private static final String PMIX = "PMIX_RANK=5 PMIX_NAMESPACE=prterun-node0-77@1";
    private static final String BLAUNCH = "LSF_PM_TASKID=6 LSB_DJOB_NUMPROC=8 LSB_JOBID=77";
    private static final String AT = " MASTER_ADDR=node0 MASTER_PORT=29500";

    /** Parses variables such as "A=1 B=2". */
    private static Map<String, String> map(String text) {
        Map<String, String> map = new HashMap<>();
        for (String pair : text.strip().split(" +")) {
            if (!pair.isEmpty()) {
                map.put(pair.substring(0, pair.indexOf('=')), pair.substring(pair.indexOf('=') + 1));
            }
        }
        return map;
    }

    private static RankInfo of(String environment) {
        return RankInfo.from(Map.of(), map(environment));
    }

    private static String failure(String environment) {
        return assertThrows(IllegalArgumentException.class, () -> of(environment))
                .getMessage();
    }

    private static String without(String environment, String name) {
        String less = (" " + environment + " ").replaceFirst(" " + name + "=[^ ]*", "");
        assertNotEquals(" " + environment + " ", less);
        return less;
    }

    private static void assertIsRank5Of8(RankInfo self, Source source) {
        assertEquals(
                new RankInfo(5, 8, 1, 4, "node0", 29500, self.job(), self.restart(), source),
                self,
                () -> self.toString());
    }

    @Test
    void allSourcesProvideSameRank() {
        assertIsRank5Of8(of(TORCHRUN), Source.TORCHRUN);
        assertIsRank5Of8(of(OPEN_MPI + AT), Source.OPEN_MPI);
        assertIsRank5Of8(of(MPICH + AT), Source.MPI);
        assertIsRank5Of8(of(CRAY + AT), Source.MPI);
        assertIsRank5Of8(of(SLURM + AT), Source.SLURM);
        assertIsRank5Of8(of(LSF + AT), Source.LSF);
        assertIsRank5Of8(of(MVAPICH + AT), Source.MVAPICH);
        assertIsRank5Of8(of(MVAPICH.replace("MV2", "MVP") + AT), Source.MVAPICH);
        assertIsRank5Of8(of(FLUX + " LOCAL_WORLD_SIZE=4" + AT), Source.FLUX);
        assertIsRank5Of8(of(PALS + " WORLD_SIZE=8" + AT), Source.PALS);
        assertIsRank5Of8(of(PALS + " PMI_SIZE=8" + AT), Source.PALS);
        assertIsRank5Of8(of(PMIX + " WORLD_SIZE=8 LOCAL_RANK=1 LOCAL_WORLD_SIZE=4" + AT), Source.PMIX);
        assertIsRank5Of8(
                of("PET_NODE_RANK=1 PET_NNODES=2 PET_NPROC_PER_NODE=4 LOCAL_RANK=1 PET_MASTER_ADDR=node0"
                        + " PET_MASTER_PORT=29500"),
                Source.TRAINER);
        assertIsRank5Of8(
                of("JOB_COMPLETION_INDEX=1 WORLD_SIZE=8 LOCAL_WORLD_SIZE=4 LOCAL_RANK=1" + AT), Source.KUBERNETES);
        assertIsRank5Of8(
                RankInfo.from(
                        map("nccl4j.rank=5 nccl4j.worldSize=8 nccl4j.localRank=1 nccl4j.localWorldSize=4"
                                + " nccl4j.masterAddress=node0 nccl4j.masterPort=29500"),
                        Map.of()),
                Source.PROPERTIES);
    }

    @Test
    void singleRankWithoutLauncher() {
        RankInfo self = of("MASTER_ADDR= HOME=/root");
        assertEquals(new RankInfo(0, 1, 0, 1, "127.0.0.1", 29500, "", 0, Source.SINGLE), self);
        assertTrue(self.isSingle());
    }

    @Test
    void toStringNamesSource() {
        assertEquals(
                "rank 5 of 8 (1 of 4 on its host), meeting at node0:29500, by torchrun",
                of(TORCHRUN).toString());
    }

    /* Unknown local ranks. */

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "TORCHRUN|RANK=5 WORLD_SIZE=8",
                "OPEN_MPI|OMPI_COMM_WORLD_RANK=5 OMPI_COMM_WORLD_SIZE=8",
                "MVAPICH|MV2_COMM_WORLD_RANK=5 MV2_COMM_WORLD_SIZE=8",
                "MVAPICH|MVP_COMM_WORLD_RANK=5 MVP_COMM_WORLD_SIZE=8",
                "MPI|PMI_RANK=5 PMI_SIZE=8 PMI_FD=6",
                "MPI|PMI_ID=5 PMI_PORT=node0:4711 WORLD_SIZE=8",
                "PALS|PALS_RANKID=5 WORLD_SIZE=8",
                "PMIX|PMIX_RANK=5 PMIX_NAMESPACE=job WORLD_SIZE=8",
                "LSF|LSF_PM_TASKID=6 WORLD_SIZE=8 LSB_DJOB_NUMPROC=8",
                "TRAINER|PET_NODE_RANK=5 PET_NNODES=8 PET_NPROC_PER_NODE=auto",
                "TRAINER|PET_NODE_RANK=5 PET_NNODES=8 PET_NPROC_PER_NODE=gpu RANK=5 WORLD_SIZE=8",
                "TRAINER|PET_NODE_RANK=5 PET_NNODES=8 PET_NPROC_PER_NODE=cpu"
            })
    void localRankMayBeUnknown(Source source, String environment) {
        RankInfo self = of(environment + AT);
        assertEquals(
                new RankInfo(5, 8, RankInfo.UNKNOWN, RankInfo.UNKNOWN, "node0", 29500, self.job(), 0, source), self);
        assertFalse(self.hasLocalRank());
        assertFalse(self.isOnOneHost());
        assertEquals("rank 5 of 8 (local rank not known yet), meeting at node0:29500, by " + source, self.toString());
        assertEquals(
                "the local rank must be known to choose a device: rank 5 of 8 by " + source
                        + " has none; call Rendezvous.locate first",
                assertThrows(IllegalStateException.class, () -> self.device(2)).getMessage());
    }

    @Test
    void localRankAndLocalWorldSizeAreIndependent() {
        RankInfo rank = of("RANK=5 WORLD_SIZE=8 LOCAL_RANK=1" + AT);
        assertEquals(List.of(1, RankInfo.UNKNOWN), List.of(rank.localRank(), rank.localWorldSize()));
        assertTrue(
                rank.toString().contains("(local rank 1, number of ranks on its host not known yet)"), rank::toString);
        assertEquals(1, rank.device(4));
        RankInfo size = of("RANK=5 WORLD_SIZE=8 LOCAL_WORLD_SIZE=4" + AT);
        assertEquals(List.of(RankInfo.UNKNOWN, 4), List.of(size.localRank(), size.localWorldSize()));
        assertTrue(size.toString().contains("(one of 4 on its host, local rank not known yet)"), size::toString);
        RankInfo flux = of(FLUX + AT);
        assertEquals(List.of(1, RankInfo.UNKNOWN), List.of(flux.localRank(), flux.localWorldSize()));
    }

    @Test
    void singleRankNeedsNoMasterAddress() {
        assertEquals(new RankInfo(0, 1, 0, 1, "127.0.0.1", 29500, "", 0, Source.TORCHRUN), of("RANK=0 WORLD_SIZE=1"));
        assertTrue(of("PMIX_RANK=0 WORLD_SIZE=1").hasLocalRank());
        assertEquals(0, of("PMI_RANK=0 PMI_SIZE=1").localRank());
        assertEquals(1, of("FLUX_TASK_RANK=0 FLUX_JOB_SIZE=1 FLUX_JOB_NNODES=1").localWorldSize());
    }

    @Test
    void fluxOnOneHostUsesLoopback() {
        RankInfo self = of(FLUX.replace("NNODES=2", "NNODES=1"));
        assertTrue(self.hasLocalRank() && self.isOnOneHost(), self::toString);
        assertEquals("127.0.0.1", self.masterAddress());
    }

    @Test
    void blaunchTaskIdsStartAtOne() {
        assertEquals(0, of(BLAUNCH.replace("=6", "=1") + " WORLD_SIZE=8" + AT).rank());
        assertEquals(
                "LSF_PM_TASKID must be a number from 1 to 8 (WORLD_SIZE=8): 9",
                failure(BLAUNCH.replace("=6", "=9") + " WORLD_SIZE=8" + AT));
        assertTrue(of("LSF_PM_TASKID=1 LSB_DJOB_NUMPROC=1 LSB_JOBID=77").isSingle());
        assertTrue(of("LSB_JOBID=77 LSB_HOSTS=a LSB_DJOB_NUMPROC=8").isSingle());
    }

    @Test
    void trainerUsesLocalRanksOfInnerLauncher() {
        String inner =
                " PET_NODE_RANK=1 PET_NNODES=2 PET_NPROC_PER_NODE=auto PET_MASTER_ADDR=node0 PET_MASTER_PORT=29500";
        assertIsRank5Of8(of("LOCAL_RANK=1 LOCAL_WORLD_SIZE=4" + inner), Source.TRAINER);
        assertEquals(
                "rank information from Kubeflow Trainer (PET_NODE_RANK=1, PET_NPROC_PER_NODE=auto, LOCAL_RANK=1) is"
                        + " incomplete, not set: LOCAL_WORLD_SIZE",
                failure("LOCAL_RANK=1" + inner));
        assertEquals(
                "without LOCAL_RANK, RANK must be the number of a host and equal PET_NODE_RANK: RANK=5, PET_NODE_RANK=1;"
                        + " set LOCAL_RANK if RANK is the number of a process",
                failure("RANK=5 WORLD_SIZE=8" + inner));
    }

    /* Precedence of sources. */

    @Test
    void sourcesHavePrecedence() {
        String other = "RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR=a MASTER_PORT=1";
        assertEquals(
                Source.PROPERTIES,
                RankInfo.from(
                                map("nccl4j.rank=0 nccl4j.worldSize=1 nccl4j.localRank=0 nccl4j.localWorldSize=1"),
                                map(other))
                        .source());
        // Ranks of torchrun within mpirun within Slurm.
        assertEquals(
                Source.TORCHRUN,
                of(other + " " + OPEN_MPI + " " + MPICH + " " + SLURM).source());
        assertEquals(
                Source.OPEN_MPI, of(OPEN_MPI + " " + MPICH + " " + SLURM + AT).source());
        assertEquals(
                Source.MVAPICH, of(MVAPICH + " " + MPICH + " " + SLURM + AT).source());
        assertEquals(Source.MPI, of(MPICH + " " + SLURM + AT).source());
        // mpiexec within a task of Flux; a task of srun, which also sets variables of PALS and PMIx.
        assertEquals(
                Source.MPI,
                of(MPICH + " " + FLUX.replaceAll("PMI_[A-Z]*=[0-9]", "") + AT).source());
        assertEquals(Source.SLURM, of(SLURM + " " + PALS + " " + PMIX).source());
        assertEquals(Source.FLUX, of(FLUX + " " + PALS + AT).source());
        assertEquals(
                Source.PALS, of(PALS + " " + BLAUNCH + " WORLD_SIZE=8" + AT).source());
        assertEquals(Source.SLURM, of(SLURM + " JOB_COMPLETION_INDEX=0").source());
    }

    @Test
    void slurmPrecedesPmiWithoutLocalRank() {
        assertEquals(
                Source.SLURM, of("PMI_RANK=5 PMI_SIZE=8 PMI_JOBID=77 " + SLURM).source());
    }

    @Test
    void rankOfTrainerIsHostNumber() {
        RankInfo self = of("RANK=1 WORLD_SIZE=2 PET_NODE_RANK=1 PET_NNODES=2 PET_NPROC_PER_NODE=1 MASTER_ADDR=a"
                + " MASTER_PORT=29500");
        assertEquals(new RankInfo(1, 2, 0, 1, "a", 29500, "", 0, Source.TRAINER), self);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                // A shell of salloc, a script of sbatch, and the interactive step of newer releases.
                "SLURM_NTASKS=8 SLURM_JOB_ID=77 SLURM_JOB_NODELIST=n[1-2]",
                "SLURM_NTASKS=8 SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_JOB_ID=77",
                "SLURM_NTASKS=8 SLURM_PROCID=0 SLURM_STEP_ID=4294967290 SLURM_STEP_NUM_TASKS=1",
                "SLURM_NTASKS=8 SLURM_PROCID=0 SLURM_STEP_ID=4294967291",
                "SLURM_NTASKS=8 SLURM_PROCID=0 SLURM_STEP_ID=interactive"
            })
    void slurmAllocationIsSingleProcess(String environment) {
        assertTrue(of(environment).isSingle());
    }

    @Test
    void slurmStepMayBeSmallerThanAllocation() {
        RankInfo self = of(SLURM.replace("SLURM_STEP_NUM_TASKS=8", "SLURM_STEP_NUM_TASKS=6 SLURM_NTASKS=64")
                .replace("4(x2)", "4,2"));
        assertEquals(6, self.worldSize());
        assertEquals(2, self.localWorldSize());
        assertEquals("77.0", self.job());
    }

    /* Incomplete and invalid variables. */

    @ParameterizedTest
    @ValueSource(strings = {"WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"})
    void namesMissingVariableOfTorchrun(String name) {
        String message = failure(without(TORCHRUN, name));
        assertTrue(message.startsWith("rank information from torchrun (RANK=5, "), message);
        assertTrue(message.contains(") is incomplete, not set: " + name), message);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "OMPI_COMM_WORLD_RANK=1|Open MPI (OMPI_COMM_WORLD_RANK=1) is incomplete, not set: OMPI_COMM_WORLD_SIZE",
                "MV2_COMM_WORLD_RANK=1|MVAPICH (MV2_COMM_WORLD_RANK=1) is incomplete, not set: MV2_COMM_WORLD_SIZE",
                "PMI_RANK=1|MPI (PMI_RANK=1) is incomplete, not set: PMI_SIZE or WORLD_SIZE",
                "PMI_ID=1 PMI_PORT=a:1|MPI (PMI_ID=1) is incomplete, not set: PMI_SIZE or WORLD_SIZE",
                "SLURM_PROCID=1 SLURM_STEP_ID=0|Slurm (SLURM_PROCID=1) is incomplete, not set: SLURM_STEP_NUM_TASKS or SLURM_NTASKS,"
                        + " SLURM_LOCALID, SLURM_NODEID, SLURM_STEP_TASKS_PER_NODE",
                "FLUX_TASK_RANK=1|Flux (FLUX_TASK_RANK=1) is incomplete, not set: FLUX_JOB_SIZE",
                "JSM_NAMESPACE_RANK=0|LSF (JSM_NAMESPACE_RANK=0) is incomplete, not set: JSM_NAMESPACE_SIZE",
                "LSF_PM_TASKID=2 LSB_DJOB_NUMPROC=8|LSF (LSF_PM_TASKID=2) is incomplete, not set: WORLD_SIZE",
                "PALS_RANKID=1|PALS (PALS_RANKID=1) is incomplete, not set: PMI_SIZE or WORLD_SIZE",
                "PMIX_RANK=1 PMIX_NAMESPACE=job|PMIx (PMIX_RANK=1) is incomplete, not set: WORLD_SIZE",
                "JOB_COMPLETION_INDEX=0|Kubernetes (JOB_COMPLETION_INDEX=0) is incomplete, not set: WORLD_SIZE",
                "JOB_COMPLETION_INDEX=0 WORLD_SIZE=4 LOCAL_WORLD_SIZE=2|Kubernetes (JOB_COMPLETION_INDEX=0,"
                        + " LOCAL_WORLD_SIZE=2) is incomplete, not set: LOCAL_RANK",
                "JOB_COMPLETION_INDEX=0 WORLD_SIZE=4 JOB_GLOBAL_INDEX=1|Kubernetes (JOB_COMPLETION_INDEX=0,"
                        + " JOB_GLOBAL_INDEX=1) is incomplete, not set: PODS_PER_JOB",
                "PET_NODE_RANK=0|Kubeflow Trainer (PET_NODE_RANK=0) is incomplete, not set: PET_NNODES, PET_MASTER_ADDR or MASTER_ADDR",
                "PET_NODE_RANK=0 PET_NNODES=1 PET_NPROC_PER_NODE=2 MASTER_ADDR=a|Kubeflow Trainer (PET_NODE_RANK=0,"
                        + " PET_NPROC_PER_NODE=2) is incomplete, not set: LOCAL_RANK"
            })
    void namesMissingVariablesOfOtherSources(String environment, String expected) {
        assertEquals("rank information from " + expected, failure(environment));
    }

    @Test
    void namesMissingProperty() {
        String message = assertThrows(
                        IllegalArgumentException.class, () -> RankInfo.from(map("nccl4j.rank=0"), map(TORCHRUN)))
                .getMessage();
        assertTrue(message.contains("(nccl4j.rank=0) is incomplete, not set: nccl4j.worldSize"), message);
    }

    @ParameterizedTest
    @ValueSource(strings = {"WORLD_SIZE=4", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=4"})
    void rejectsWorldSizeWithoutRank(String environment) {
        String message = failure(environment);
        assertTrue(message.startsWith(environment + " is set, so "), message);
        assertTrue(message.contains("but RANK is not set"), message);
    }

    @ParameterizedTest
    @CsvSource({
        "RANK,8",
        "RANK,-1",
        "RANK,x",
        "WORLD_SIZE,0",
        "LOCAL_RANK,4",
        "LOCAL_WORLD_SIZE,9",
        "MASTER_PORT,70000",
        "TORCHELASTIC_RESTART_COUNT,-1"
    })
    void namesValueOutOfRange(String name, String value) {
        Map<String, String> environment = map(TORCHRUN);
        environment.put(name, value);
        String message = assertThrows(IllegalArgumentException.class, () -> RankInfo.from(Map.of(), environment))
                .getMessage();
        assertTrue(message.startsWith(name + " must be a number from "), message);
        assertTrue(message.endsWith(": " + value), message);
    }

    @Test
    void namesVariableThatSetsLimit() {
        assertEquals(
                "RANK must be a number from 0 to 7 (WORLD_SIZE=8): 8", failure(TORCHRUN.replace("RANK=5", "RANK=8")));
        assertEquals(
                "LOCAL_RANK must be a number from 0 to 3 (LOCAL_WORLD_SIZE=4): 4",
                failure(TORCHRUN.replace("LOCAL_RANK=1", "LOCAL_RANK=4")));
        assertEquals(
                "FLUX_TASK_LOCAL_ID must be a number from 0 to 7 (FLUX_JOB_SIZE=8): 8",
                failure(FLUX.replace("LOCAL_ID=1", "LOCAL_ID=8") + AT));
    }

    @ParameterizedTest
    @ValueSource(strings = {"4x2", "", "x", "4(x2", "y,4(x2)"})
    void rejectsInvalidTaskList(String tasks) {
        assertTrue(failure(SLURM.replace("4(x2)", tasks)).contains("SLURM_STEP_TASKS_PER_NODE"));
    }

    @Test
    void rejectsPodBeyondWorldSize() {
        assertEquals(
                "WORLD_SIZE must be >= 5 for pod 4 with LOCAL_WORLD_SIZE 1: 4",
                failure("JOB_COMPLETION_INDEX=4 WORLD_SIZE=4" + AT));
        assertEquals(
                "WORLD_SIZE must be >= 2147483648 for pod 2147483647 with LOCAL_WORLD_SIZE 1: 4",
                failure("JOB_COMPLETION_INDEX=2147483647 WORLD_SIZE=4" + AT));
    }

    @Test
    void rejectsInvalidProcessesPerNode() {
        String message = failure("PET_NODE_RANK=0 PET_NNODES=2 PET_NPROC_PER_NODE=many PET_MASTER_ADDR=a");
        assertTrue(message.startsWith("PET_NPROC_PER_NODE must be a number from 1 to "), message);
        assertTrue(message.endsWith(": many"), message);
    }

    /* Master address, port and job. */

    @Test
    void ranksOfOneHostUseLoopback() {
        RankInfo self = of(OPEN_MPI.replace("LOCAL_SIZE=4", "LOCAL_SIZE=8") + " PMIX_NAMESPACE=488964097");
        assertEquals("127.0.0.1", self.masterAddress());
        assertEquals("488964097", self.job());
        assertTrue(self.masterPort() >= 20000 && self.masterPort() < 32000, () -> "port " + self.masterPort());
        assertTrue(self.isOnOneHost());
    }

    @Test
    void ranksOfSeveralHostsNeedMasterAddress() {
        assertEquals(
                "MASTER_ADDR must be set for rank 5 of 8, because Open MPI does not provide it: set it to the name or address"
                        + " of the host of rank 0, and pass it on with mpirun -x MASTER_ADDR",
                failure(OPEN_MPI));
        assertTrue(
                failure(MPICH).startsWith("MASTER_ADDR must be set for rank 5 of 8, because MPI does not provide it"));
        for (String environment : List.of(MVAPICH, FLUX, PALS + " WORLD_SIZE=8", PMIX + " WORLD_SIZE=8")) {
            assertTrue(
                    failure(environment).startsWith("MASTER_ADDR must be set for rank 5 of 8, because "), environment);
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "n[01-03,7]|n01",
                "login1,n[1-2]|login1",
                "n[9,1-3]-ib|n9-ib",
                "rack[2-3]node[04-05].site|rack2node04.site",
                "single|single"
            })
    void slurmMasterIsFirstHost(String hosts, String first) {
        assertEquals(first, of(SLURM.replace("n[01-02]", hosts)).masterAddress());
    }

    @Test
    void rejectsInvalidHostList() {
        assertTrue(failure(SLURM.replace("n[01-02]", "n[01-02")).startsWith("SLURM_STEP_NODELIST must have"));
    }

    @Test
    void lsfMasterIsHostAfterJsrun(@TempDir Path folder) throws Exception {
        Path hosts = Files.writeString(folder.resolve("ranks"), "batch1\nh41n08\nh41n08\nh41n09\n");
        assertEquals("h41n08", of(LSF + " LSB_DJOB_RANKFILE=" + hosts).masterAddress());
        assertTrue(failure(LSF + " LSB_DJOB_RANKFILE=" + folder.resolve("none")).contains("can't be read"));
    }

    @Test
    void avoidsPortOfTorchrunStore() {
        assertEquals(29501, of(TORCHRUN + " TORCHELASTIC_USE_AGENT_STORE=True").masterPort());
        assertEquals(
                4711,
                of(TORCHRUN + " TORCHELASTIC_USE_AGENT_STORE=True NCCL4J_STORE_PORT=4711")
                        .masterPort());
        assertTrue(failure(TORCHRUN.replace("29500", "65535") + " TORCHELASTIC_USE_AGENT_STORE=True")
                .startsWith("MASTER_PORT must be a number from 1 to 65534"));
    }

    @Test
    void readsJobAndRestart() {
        RankInfo self = of(TORCHRUN + " TORCHELASTIC_RUN_ID=train TORCHELASTIC_RESTART_COUNT=2");
        assertEquals("train", self.job());
        assertEquals(2, self.restart());
        RankInfo other = of(TORCHRUN + " TORCHELASTIC_RUN_ID=train NCCL4J_JOB=mine NCCL4J_RESTART=7");
        assertEquals("mine", other.job());
        assertEquals(7, other.restart());
    }

    @Test
    void slurmStepsHaveDifferentJobsAndPorts() {
        String onNode = without(SLURM, "SLURM_STEP_NODELIST") + " MASTER_ADDR=a";
        RankInfo first = of(onNode);
        RankInfo second = of(onNode.replace("STEP_ID=0", "STEP_ID=1"));
        assertNotEquals(first.job(), second.job());
        assertNotEquals(first.masterPort(), second.masterPort());
    }

    @Test
    void jobSetRanksContinueAcrossJobs() {
        String pod = "JOB_COMPLETION_INDEX=1 WORLD_SIZE=12 PODS_PER_JOB=3 LOCAL_WORLD_SIZE=2 LOCAL_RANK=1" + AT;
        assertEquals(3, of(pod).rank());
        assertEquals(9, of(pod + " JOB_GLOBAL_INDEX=1").rank());
    }

    @Test
    void removesBracketsOfMasterAddress() {
        RankInfo self = of(TORCHRUN.replace("node0", "[fd00::2]"));
        assertEquals("fd00::2", self.masterAddress());
        assertTrue(self.toString().contains("meeting at [fd00::2]:29500"), self::toString);
    }

    @Test
    void deviceIsVisible() {
        RankInfo self = of(TORCHRUN);
        assertEquals(1, self.device(8));
        assertEquals(0, self.device(1));
        assertEquals(
                "rank 5 sees no CUDA device",
                assertThrows(IllegalArgumentException.class, () -> self.device(0))
                        .getMessage());
    }

    /* Limits, at the last valid and the first invalid value. */

    private static RankInfo info(int rank, int world, int localRank, int localWorld, int port, int restart) {
        return new RankInfo(rank, world, localRank, localWorld, "node0", port, "job", restart, Source.MPI);
    }

    @ParameterizedTest
    @CsvSource({
        "7,8,3,4,65535,0,''",
        "0,1,0,1,1,2147483647,''",
        "7,8,7,-1,1,0,''",
        "7,8,-1,8,1,0,''",
        "0,0,-1,-1,1,0,worldSize must be from 1 to 2147483647: 0",
        "8,8,-1,-1,1,0,rank must be from 0 to 7: 8",
        "-1,8,-1,-1,1,0,rank must be from 0 to 7: -1",
        "7,8,-1,9,1,0,localWorldSize must be from 1 to 8: 9",
        "7,8,-1,0,1,0,localWorldSize must be from 1 to 8: 0",
        "7,8,4,4,1,0,localRank must be from 0 to 3: 4",
        "7,8,8,-1,1,0,localRank must be from 0 to 7: 8",
        "7,8,0,4,0,0,masterPort must be from 1 to 65535: 0",
        "7,8,0,4,65536,0,masterPort must be from 1 to 65535: 65536",
        "7,8,0,4,1,-1,restart must be from 0 to 2147483647: -1"
    })
    void checksLimitsOfNumbers(
            int rank, int world, int localRank, int localWorld, int port, int restart, String refusal) {
        if (refusal.isEmpty()) {
            assertEquals(
                    localRank,
                    info(rank, world, localRank, localWorld, port, restart).localRank());
        } else {
            assertEquals(
                    refusal,
                    assertThrows(
                                    IllegalArgumentException.class,
                                    () -> info(rank, world, localRank, localWorld, port, restart))
                            .getMessage());
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "PET_NODE_RANK=2 PET_NNODES=2 PET_MASTER_ADDR=a|PET_NODE_RANK must be a number from 0 to 1 (PET_NNODES=2): 2",
                "JOB_COMPLETION_INDEX=1 WORLD_SIZE=12 JOB_GLOBAL_INDEX=0 PODS_PER_JOB=1|"
                        + "PODS_PER_JOB must be a number from 2 to 12: 1",
                "JOB_COMPLETION_INDEX=1 WORLD_SIZE=12 JOB_GLOBAL_INDEX=4 PODS_PER_JOB=3|"
                        + "JOB_GLOBAL_INDEX must be a number from 0 to 3: 4",
                "JOB_COMPLETION_INDEX=6 WORLD_SIZE=12 LOCAL_WORLD_SIZE=2 LOCAL_RANK=0|"
                        + "WORLD_SIZE must be >= 14 for pod 6 with LOCAL_WORLD_SIZE 2: 12",
                "JOB_COMPLETION_INDEX=5 WORLD_SIZE=12 LOCAL_WORLD_SIZE=2 LOCAL_RANK=2|"
                        + "LOCAL_RANK must be a number from 0 to 1 (LOCAL_WORLD_SIZE=2): 2"
            })
    void namesNumberBeyondLimit(String environment, String message) {
        assertEquals(message, failure(environment + AT));
    }

    @Test
    void rejectsSlurmTaskBeyondStep() {
        assertEquals(
                "SLURM_PROCID must be a number from 0 to 7 (SLURM_STEP_NUM_TASKS=8): 8",
                failure(SLURM.replace("PROCID=5", "PROCID=8")));
        assertEquals(
                "SLURM_LOCALID must be a number from 0 to 3 (SLURM_STEP_TASKS_PER_NODE=4(x2)): 4",
                failure(SLURM.replace("LOCALID=1", "LOCALID=4")));
    }

    /** Step ids from 0xfffffff0 on are not those of srun. */
    @Test
    void acceptsLargestSlurmStepId() {
        assertEquals(
                Source.SLURM,
                of(SLURM.replace("STEP_ID=0", "STEP_ID=4294967279")).source());
        assertTrue(of(SLURM.replace("STEP_ID=0", "STEP_ID=4294967280")).isSingle());
    }

    @Test
    void lastJobHasLastRanks() {
        String pod = "JOB_COMPLETION_INDEX=1 WORLD_SIZE=12 PODS_PER_JOB=3" + AT;
        assertEquals(7, of(pod + " JOB_GLOBAL_INDEX=2").rank());
        assertEquals(10, of(pod + " JOB_GLOBAL_INDEX=3").rank());
        assertEquals(
                11,
                of("JOB_COMPLETION_INDEX=5 WORLD_SIZE=12 LOCAL_WORLD_SIZE=2 LOCAL_RANK=1" + AT)
                        .rank());
    }

    @Test
    void trainerPortHasPrecedence() {
        String trainer = "PET_NODE_RANK=0 PET_NNODES=2 PET_MASTER_ADDR=a MASTER_PORT=4712";
        assertEquals(4711, of(trainer + " PET_MASTER_PORT=4711").masterPort());
        assertEquals(4712, of(trainer).masterPort());
    }

    @Test
    void rejectsShortLsfHostFile(@TempDir Path folder) throws Exception {
        assertTrue(failure(LSF).startsWith("MASTER_ADDR must be set for rank 5 of 8, because LSF does not provide it"));
        Path hosts = Files.writeString(folder.resolve("ranks"), "batch1\n\n  h41n08 \n");
        assertEquals("h41n08", of(LSF + " LSB_DJOB_RANKFILE=" + hosts).masterAddress());
        Files.writeString(hosts, "batch1\n\n");
        assertEquals(
                "LSB_DJOB_RANKFILE must have >= 2 lines, the host of jsrun and those of the ranks: " + hosts + " has 1",
                failure(LSF + " LSB_DJOB_RANKFILE=" + hosts));
    }

    @Test
    void oneRankOfLauncherIsNotSingle() {
        assertFalse(of("RANK=0 WORLD_SIZE=1").isSingle());
    }

    @Test
    void readsSystemProperties() {
        Map<String, String> own = map("nccl4j.rank=0 nccl4j.worldSize=1 nccl4j.masterPort=4711");
        own.forEach(System::setProperty);
        try {
            assertEquals(
                    new RankInfo(0, 1, 0, 1, "127.0.0.1", 4711, "", 0, Source.PROPERTIES), RankInfo.fromEnvironment());
        } finally {
            own.keySet().forEach(System::clearProperty);
        }
    }

    @Test
    void storeAddressPrecedesVariablesAndFollowsProperties() {
        Map<String, String> variables = map(TORCHRUN + " NCCL4J_STORE_ADDRESS=[::1]:4711");
        RankInfo store = RankInfo.from(Map.of(), variables);
        assertEquals("::1", store.masterAddress());
        assertEquals(4711, store.masterPort());
        RankInfo noPort = of(TORCHRUN + " NCCL4J_STORE_ADDRESS=keeper");
        assertEquals("keeper", noPort.masterAddress());
        assertEquals(RankInfo.DEFAULT_PORT, noPort.masterPort());
        RankInfo byAddress = RankInfo.from(Map.of("nccl4j.masterAddress", "mine"), variables);
        assertEquals("mine", byAddress.masterAddress());
        assertEquals(29500, byAddress.masterPort());
        RankInfo byPort = RankInfo.from(Map.of("nccl4j.masterPort", "5"), variables);
        assertEquals("node0", byPort.masterAddress());
        assertEquals(5, byPort.masterPort());
        assertTrue(failure(TORCHRUN + " NCCL4J_STORE_ADDRESS=keeper:x")
                .startsWith("NCCL4J_STORE_ADDRESS must end with a port"));
    }
}

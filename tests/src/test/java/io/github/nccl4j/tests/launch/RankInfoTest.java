package io.github.nccl4j.tests.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.RankInfo.Source;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Every source of a process's rank, what each lacks at times, and what looks like a rank and is none. */
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
    private static final String AT = " MASTER_ADDR=node0 MASTER_PORT=29500";

    /** "A=1 B=2" */
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
    void eachSourceTellsTheSame() {
        assertIsRank5Of8(of(TORCHRUN), Source.TORCHRUN);
        assertIsRank5Of8(of(OPEN_MPI + AT), Source.OPEN_MPI);
        assertIsRank5Of8(of(MPICH + AT), Source.MPI);
        assertIsRank5Of8(of(CRAY + AT), Source.MPI);
        assertIsRank5Of8(of(SLURM + AT), Source.SLURM);
        assertIsRank5Of8(of(LSF + AT), Source.LSF);
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
    void withoutALauncherAProcessIsAlone() {
        RankInfo self = of("MASTER_ADDR= HOME=/root");
        assertEquals(new RankInfo(0, 1, 0, 1, "127.0.0.1", 29500, "", 0, Source.SINGLE), self);
        assertTrue(self.isSingle());
    }

    @Test
    void theTextNamesTheSource() {
        assertEquals(
                "rank 5 of 8 (1 of 4 on its host), meeting at node0:29500, by torchrun",
                of(TORCHRUN).toString());
    }

    /* Which source wins. */

    @Test
    void theFirstSourceThatIsThereWins() {
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
        assertEquals(Source.MPI, of(MPICH + " " + SLURM + AT).source());
        assertEquals(Source.SLURM, of(SLURM + " JOB_COMPLETION_INDEX=0").source());
    }

    @Test
    void slurmTellsTheRankWhereItsProcessManagerInterfaceTellsOnlyAPart() {
        assertEquals(
                Source.SLURM, of("PMI_RANK=5 PMI_SIZE=8 PMI_JOBID=77 " + SLURM).source());
    }

    @Test
    void aHostsNumberInRankIsNoRank() {
        RankInfo self = of("RANK=1 WORLD_SIZE=2 PET_NODE_RANK=1 PET_NNODES=2 PET_NPROC_PER_NODE=1 MASTER_ADDR=a"
                + " MASTER_PORT=29500");
        assertEquals(new RankInfo(1, 2, 0, 1, "a", 29500, "", 0, Source.TRAINER), self);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                // A shell of salloc, a script of sbatch, and what newer releases run such a shell in.
                "SLURM_NTASKS=8 SLURM_JOB_ID=77 SLURM_JOB_NODELIST=n[1-2]",
                "SLURM_NTASKS=8 SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_JOB_ID=77",
                "SLURM_NTASKS=8 SLURM_PROCID=0 SLURM_STEP_ID=4294967290 SLURM_STEP_NUM_TASKS=1",
                "SLURM_NTASKS=8 SLURM_PROCID=0 SLURM_STEP_ID=4294967291",
                "SLURM_NTASKS=8 SLURM_PROCID=0 SLURM_STEP_ID=interactive"
            })
    void anAllocationOfSlurmIsNoRank(String environment) {
        assertTrue(of(environment).isSingle());
    }

    @Test
    void aStepOfSlurmMayBeSmallerThanItsAllocation() {
        RankInfo self = of(SLURM.replace("SLURM_STEP_NUM_TASKS=8", "SLURM_STEP_NUM_TASKS=6 SLURM_NTASKS=64")
                .replace("4(x2)", "4,2"));
        assertEquals(6, self.worldSize());
        assertEquals(2, self.localWorldSize());
        assertEquals("77.0", self.job());
    }

    /* What is missing or makes no sense. */

    @ParameterizedTest
    @ValueSource(strings = {"WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"})
    void whatTorchrunLacksIsNamed(String name) {
        String message = failure(without(TORCHRUN, name));
        assertTrue(message.startsWith("this process is a rank by torchrun, but not set: " + name), message);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "OMPI_COMM_WORLD_RANK=1|Open MPI, but not set: OMPI_COMM_WORLD_SIZE, OMPI_COMM_WORLD_LOCAL_RANK,",
                "PMI_RANK=1 PMI_SIZE=2|MPI, but not set: MPI_LOCALRANKID or PMI_LOCAL_RANK, MPI_LOCALNRANKS or",
                "SLURM_PROCID=1 SLURM_STEP_ID=0|Slurm, but not set: SLURM_STEP_NUM_TASKS or SLURM_NTASKS, SLURM_LOCALID,",
                "JSM_NAMESPACE_RANK=0|LSF, but not set: JSM_NAMESPACE_SIZE,",
                "JOB_COMPLETION_INDEX=0|Kubernetes, but not set: WORLD_SIZE;",
                "JOB_COMPLETION_INDEX=0 WORLD_SIZE=4 LOCAL_WORLD_SIZE=2|Kubernetes, but not set: LOCAL_RANK;",
                "JOB_COMPLETION_INDEX=0 WORLD_SIZE=4 JOB_GLOBAL_INDEX=1|Kubernetes, but not set: PODS_PER_JOB;",
                "PET_NODE_RANK=0|Kubeflow Trainer, but not set: PET_NNODES, PET_MASTER_ADDR or MASTER_ADDR;",
                "PET_NODE_RANK=0 PET_NNODES=1 PET_NPROC_PER_NODE=2 MASTER_ADDR=a|Kubeflow Trainer, but not set: LOCAL_RANK;"
            })
    void whatOthersLackIsNamed(String environment, String expected) {
        String message = failure(environment);
        assertTrue(message.startsWith("this process is a rank by " + expected), message);
    }

    @Test
    void whatPropertiesLackIsNamed() {
        String message = assertThrows(
                        IllegalArgumentException.class, () -> RankInfo.from(map("nccl4j.rank=0"), map(TORCHRUN)))
                .getMessage();
        assertTrue(message.contains("not set: nccl4j.worldSize, nccl4j.localRank, nccl4j.localWorldSize;"), message);
    }

    @ParameterizedTest
    @ValueSource(strings = {"WORLD_SIZE=4", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=4"})
    void aPartWithoutARankIsNoSingleProcess(String environment) {
        assertTrue(failure(environment).contains("but RANK is not set"));
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
    void aValueOutOfRangeIsNamed(String name, String value) {
        Map<String, String> environment = map(TORCHRUN);
        environment.put(name, value);
        String message = assertThrows(IllegalArgumentException.class, () -> RankInfo.from(Map.of(), environment))
                .getMessage();
        assertTrue(message.startsWith(name + " must be a number from "), message);
        assertTrue(message.endsWith(": " + value), message);
    }

    @ParameterizedTest
    @ValueSource(strings = {"4x2", "", "x", "4(x2", "y,4(x2)"})
    void aListOfTasksThatMakesNoSenseIsNamed(String tasks) {
        assertTrue(failure(SLURM.replace("4(x2)", tasks)).contains("SLURM_STEP_TASKS_PER_NODE"));
    }

    @Test
    void aPodBeyondTheWorldIsNamed() {
        assertEquals(
                "WORLD_SIZE must be at least 5, since this is pod 4 with LOCAL_WORLD_SIZE 1: 4",
                failure("JOB_COMPLETION_INDEX=4 WORLD_SIZE=4" + AT));
    }

    @Test
    void aNumberOfProcessesThatIsNoNumberIsNamed() {
        String message = failure("PET_NODE_RANK=0 PET_NNODES=2 PET_NPROC_PER_NODE=auto PET_MASTER_ADDR=a");
        assertTrue(message.startsWith("PET_NPROC_PER_NODE must be a number from 1 to "), message);
    }

    /* Where the ranks meet. */

    @Test
    void ranksOfOneHostMeetOnIt() {
        RankInfo self = of(OPEN_MPI.replace("LOCAL_SIZE=4", "LOCAL_SIZE=8") + " PMIX_NAMESPACE=488964097");
        assertEquals("127.0.0.1", self.masterAddress());
        assertEquals("488964097", self.job());
        assertTrue(self.masterPort() >= 20000 && self.masterPort() < 32000, () -> "port " + self.masterPort());
        assertTrue(self.isOnOneHost());
    }

    @Test
    void ranksOfSeveralHostsNeedAnAddress() {
        assertEquals(
                "MASTER_ADDR is not set, and Open MPI does not tell it: set it to the name or address of the host of rank"
                        + " 0, and hand it on with mpirun -x MASTER_ADDR",
                failure(OPEN_MPI));
        assertTrue(failure(MPICH).startsWith("MASTER_ADDR is not set, and MPI does not tell it"));
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
    void slurmsFirstHostIsWhereRanksMeet(String hosts, String first) {
        assertEquals(first, of(SLURM.replace("n[01-02]", hosts)).masterAddress());
    }

    @Test
    void aListOfHostsThatMakesNoSenseIsNamed() {
        assertTrue(failure(SLURM.replace("n[01-02]", "n[01-02")).startsWith("SLURM_STEP_NODELIST must have"));
    }

    @Test
    void ranksOfLsfMeetAtTheHostAfterTheOneOfJsrun(@TempDir Path folder) throws Exception {
        Path hosts = Files.writeString(folder.resolve("ranks"), "batch1\nh41n08\nh41n08\nh41n09\n");
        assertEquals("h41n08", of(LSF + " LSB_DJOB_RANKFILE=" + hosts).masterAddress());
        assertTrue(failure(LSF + " LSB_DJOB_RANKFILE=" + folder.resolve("none")).contains("can't be read"));
    }

    @Test
    void thePortOfTorchrunsStoreIsAvoided() {
        assertEquals(29501, of(TORCHRUN + " TORCHELASTIC_USE_AGENT_STORE=True").masterPort());
        assertEquals(
                4711,
                of(TORCHRUN + " TORCHELASTIC_USE_AGENT_STORE=True NCCL4J_STORE_PORT=4711")
                        .masterPort());
        assertTrue(failure(TORCHRUN.replace("29500", "65535") + " TORCHELASTIC_USE_AGENT_STORE=True")
                .startsWith("MASTER_PORT must be a number from 1 to 65534"));
    }

    @Test
    void jobsAndAttemptsHaveNames() {
        RankInfo self = of(TORCHRUN + " TORCHELASTIC_RUN_ID=train TORCHELASTIC_RESTART_COUNT=2");
        assertEquals("train", self.job());
        assertEquals(2, self.restart());
        RankInfo other = of(TORCHRUN + " TORCHELASTIC_RUN_ID=train NCCL4J_JOB=mine NCCL4J_RESTART=7");
        assertEquals("mine", other.job());
        assertEquals(7, other.restart());
    }

    @Test
    void stepsOfAJobHaveDifferentNamesAndPorts() {
        String onNode = without(SLURM, "SLURM_STEP_NODELIST") + " MASTER_ADDR=a";
        RankInfo first = of(onNode);
        RankInfo second = of(onNode.replace("STEP_ID=0", "STEP_ID=1"));
        assertNotEquals(first.job(), second.job());
        assertNotEquals(first.masterPort(), second.masterPort());
    }

    @Test
    void podsOfSeveralJobsAreCountedOn() {
        String pod = "JOB_COMPLETION_INDEX=1 WORLD_SIZE=12 PODS_PER_JOB=3 LOCAL_WORLD_SIZE=2 LOCAL_RANK=1" + AT;
        assertEquals(3, of(pod).rank());
        assertEquals(9, of(pod + " JOB_GLOBAL_INDEX=1").rank());
    }

    @Test
    void bracketsOfAnAddressAreLeftOut() {
        RankInfo self = of(TORCHRUN.replace("node0", "[fd00::2]"));
        assertEquals("fd00::2", self.masterAddress());
        assertTrue(self.toString().contains("meeting at [fd00::2]:29500"), self::toString);
    }

    @Test
    void theDeviceIsOneThatTheProcessSees() {
        RankInfo self = of(TORCHRUN);
        assertEquals(1, self.device(8));
        assertEquals(0, self.device(1));
        assertEquals(
                "rank 5 sees no CUDA device",
                assertThrows(IllegalArgumentException.class, () -> self.device(0))
                        .getMessage());
    }
}

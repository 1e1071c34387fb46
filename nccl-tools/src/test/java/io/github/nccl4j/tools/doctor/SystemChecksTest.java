package io.github.nccl4j.tools.doctor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The checks of limits, container, settings and launcher. */
class SystemChecksTest {
    @TempDir
    Path root;

    private TestMachine machine() {
        return new TestMachine(root);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "rw,nosuid,size=65536k,inode64 | warning limits.shm: /dev/shm has 64 MiB",
                "rw,size=2g | ok limits.shm: /dev/shm has 2 GiB",
                "rw,size=1572864k | ok limits.shm: /dev/shm has 1.5 GiB",
                "rw,nosuid | ok limits.shm: /dev/shm has 8 GiB",
                "ro,size=2g | problem limits.shm: /dev/shm is read-only",
            })
    void sharedMemory(String options, String finding) {
        TestMachine machine = machine()
                .file("/proc/mounts", "proc /proc proc rw 0 0\nshm /dev/shm tmpfs " + options + " 0 0")
                .file("/proc/meminfo", "MemTotal:       16777216 kB");
        assertEquals(List.of(finding), TestMachine.run(new LimitsCheck(machine.build())));
    }

    @Test
    void unmountedSharedMemoryIsAProblem() {
        assertEquals(
                List.of("problem limits.shm: /dev/shm is not mounted"),
                TestMachine.run(new LimitsCheck(machine().build())));
    }

    @Test
    void limitsOfTheProcess() {
        TestMachine machine = machine()
                .file("/proc/mounts", "shm /dev/shm tmpfs rw,size=2g 0 0")
                .file(
                        "/proc/self/limits",
                        "Limit                     Soft Limit           Hard Limit           Units     \n"
                                + "Max open files            1024                 524288               files     \n"
                                + "Max locked memory         unlimited            unlimited            bytes     \n");
        assertEquals(
                List.of(
                        "ok limits.shm: /dev/shm has 2 GiB",
                        "warning limits.files: open files: 1024",
                        "ok limits.memlock: locked memory: unlimited"),
                TestMachine.run(new LimitsCheck(machine.build())));
    }

    @Test
    void containerIsDetected() {
        assertEquals(
                List.of("ok container.none: no sign of a container"),
                TestMachine.run(new ContainerCheck(
                        machine().file("/proc/1/cgroup", "0::/init.scope").build())));
        TestMachine machine = machine()
                .variable("KUBERNETES_SERVICE_HOST", "10.0.0.1")
                .file("/proc/1/cgroup", "0::/kubepods/burstable/pod1")
                .file("/sys/fs/cgroup/memory.max", "1073741824")
                .file("/sys/fs/cgroup/cpu.max", "max 100000");
        assertEquals(
                List.of(
                        "KUBERNETES_SERVICE_HOST is set",
                        "the control group of process 1 is 0::/kubepods/burstable/pod1",
                        "memory.max 1073741824"),
                new ContainerCheck(machine.build()).run().get(0).details());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "--illegal-native-access=deny | true",
                "-Xmx1g | false",
                "--illegal-native-access=deny --enable-native-access=ALL-UNNAMED | false",
            })
    void aVariableThatLetsJavaRefuseNativeCodeIsAProblem(String options, boolean isProblem) {
        List<String> findings = TestMachine.run(new SettingsCheck(
                machine().variable("JDK_JAVA_OPTIONS", options).build()));
        assertEquals(
                isProblem,
                findings.contains(
                        "problem settings.native-access: JDK_JAVA_OPTIONS has --illegal-native-access=deny: Java"
                                + " refuses native code"),
                findings.toString());
    }

    @Test
    void settingsAreListedWithoutSecrets() {
        TestMachine machine = machine()
                .variable("NCCL_DEBUG", "INFO")
                .variable("NCCL4J_STORE_SECRET", "abc")
                .variable("NCCL_NET_TOKEN", "abc")
                .variable("PATH", "/bin")
                .variable("HOME", "/home/u")
                .file("/home/u/.nccl.conf", "NCCL_IB_DISABLE=1\n\n")
                .file("/etc/nccl.conf", "NCCL_DEBUG=WARN");
        List<Finding> findings = new SettingsCheck(machine.build()).run();
        assertEquals(
                List.of("NCCL4J_STORE_SECRET=(not shown)", "NCCL_DEBUG=INFO", "NCCL_NET_TOKEN=(not shown)"),
                findings.get(0).details());
        assertEquals("NCCL also reads /home/u/.nccl.conf", findings.get(1).text());
        assertEquals(List.of("NCCL_IB_DISABLE=1"), findings.get(1).details());
        assertEquals("NCCL also reads /etc/nccl.conf", findings.get(2).text());
    }

    @Test
    void launcherAndRankAreReported() {
        TestMachine machine = machine();
        assertEquals(
                List.of("ok launcher.none: a process started here is not a rank of a launcher"),
                TestMachine.run(new LauncherCheck(machine.build())));
        machine.variable("RANK", "1");
        List<Finding> findings = new LauncherCheck(machine.build()).run();
        assertEquals("variables of torchrun are set", findings.get(0).text());
        assertEquals("launcher.incomplete", findings.get(1).id());
        machine.variable("WORLD_SIZE", "4")
                .variable("LOCAL_RANK", "1")
                .variable("LOCAL_WORLD_SIZE", "2")
                .variable("MASTER_ADDR", "10.0.0.1")
                .variable("MASTER_PORT", "29500");
        assertEquals(
                List.of(
                        "ok launcher.seen: variables of torchrun are set",
                        "ok launcher.rank: a process started here is rank 1 of 4 (1 of 2 on its host), meeting at"
                                + " 10.0.0.1:29500, by torchrun"),
                TestMachine.run(new LauncherCheck(machine.build())));
    }

    @Test
    void launchersWithIncompleteVariablesAreReported() {
        TestMachine machine = machine()
                .variable("FLUX_TASK_RANK", "1")
                .variable("FLUX_JOB_SIZE", "4")
                .variable("MASTER_ADDR", "10.0.0.1");
        assertEquals(
                List.of(
                        "ok launcher.seen: variables of Flux are set",
                        "ok launcher.rank: a process started here is rank 1 of 4 (local rank not known yet), meeting at"
                                + " 10.0.0.1:29500, by Flux"),
                TestMachine.run(new LauncherCheck(machine.build())).stream()
                        .filter(line -> !line.contains("torchrun:"))
                        .toList()
                        .subList(1, 3));
        for (String name : List.of("PMIX_RANK", "PALS_RANKID", "LSF_PM_TASKID", "MV2_COMM_WORLD_RANK")) {
            List<Finding> findings =
                    new LauncherCheck(machine().variable(name, "1").build()).run();
            assertEquals(List.of(name + "=1"), findings.get(0).details());
            assertEquals("launcher.incomplete", findings.get(1).id());
            assertTrue(
                    findings.get(1).text().contains("(" + name + "=1) is incomplete, not set: "),
                    findings.get(1)::text);
        }
    }
}

package io.github.nccl4j.tools.doctor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class NetworkCheckTest {
    @TempDir
    Path root;

    private TestMachine machine() {
        return new TestMachine(root).network("lo", true, "127.0.0.1", "0:0:0:0:0:0:0:1");
    }

    private static List<String> run(TestMachine machine) {
        return TestMachine.run(new NetworkCheck(machine.build()));
    }

    @Test
    void prefersIbInterfacesThenOthersExceptBridges() {
        TestMachine machine = machine().network("docker0", true, "172.17.0.1").network("eth0", true, "10.0.0.1");
        assertEquals(List.of("ok network.selection: NCCL would use eth0"), run(machine));
        machine.network("eth1", true, "10.1.0.1");
        assertEquals(
                List.of("warning network.several: NCCL would use eth0, eth1, and the first one for its bootstrap"),
                run(machine));
        machine.network("ib0", true, "10.2.0.1");
        assertEquals(List.of("ok network.selection: NCCL would use ib0"), run(machine));
    }

    @Test
    void bridgesAndLoopbackAreTheLastResort() {
        assertEquals(
                List.of("warning network.loopback: NCCL would use lo, the only interface"),
                run(machine().network("eth0", false, "10.0.0.1").network("eth1", true)));
        assertEquals(
                List.of("warning network.bridge: NCCL would use docker0, a bridge of this machine"),
                run(machine().network("docker0", true, "172.17.0.1")));
        assertEquals(
                List.of("problem network.none: no interface is up and has an address"), run(new TestMachine(root)));
    }

    @Test
    void variableSelectsInterfaces() {
        TestMachine machine = machine().network("eth0", true, "10.0.0.1").network("eth10", true, "10.1.0.1");
        assertEquals(
                List.of("ok network.selection: NCCL_SOCKET_IFNAME=eth1: eth10"),
                run(machine.variable("NCCL_SOCKET_IFNAME", "eth1")));
        assertEquals(
                List.of("problem network.selection: NCCL_SOCKET_IFNAME==eth1 matches no interface that is up and has an"
                        + " address"),
                run(machine.variable("NCCL_SOCKET_IFNAME", "=eth1")));
    }

    @Test
    void variableSelectsAddressFamily() {
        TestMachine machine = machine().network("eth0", true, "10.0.0.1").network("eth1", true, "fd00:0:0:0:0:0:0:2");
        assertEquals(
                List.of("ok network.selection: NCCL would use eth1"),
                run(machine.variable("NCCL_SOCKET_FAMILY", "AF_INET6")));
    }

    @Test
    void commIdVariableIsAWarning() {
        assertEquals(
                "warning network.comm-id: NCCL_COMM_ID=10.0.0.1:5000",
                run(machine().variable("NCCL_COMM_ID", "10.0.0.1:5000")).get(1));
    }

    @Test
    void nameListFollowsTheSyntaxOfNccl() {
        assertTrue(NameList.of("eth,ib").matches("ib0"));
        assertFalse(NameList.of("=ib").matches("ib0"));
        assertTrue(NameList.of("^docker,lo").matches("eth0"));
        assertFalse(NameList.of("^docker,lo").matches("docker_gwbridge"));
        assertTrue(NameList.of("^=lo").matches("lo1"));
        assertTrue(NameList.of("=mlx5_0:1,mlx5_1:1").matches("mlx5_1"));
    }
}

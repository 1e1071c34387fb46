package io.github.nccl4j.tools.doctor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class PeerCheckTest {
    private static final String MET = "interface\teth0\t1500\nmet\t1500\n";

    @TempDir
    Path root;

    /** The findings for the output of the ranks' program, which has the exit code. */
    private List<String> run(int code, String output) {
        TestMachine machine = new TestMachine(root)
                .network("eth0", true, "10.0.0.1")
                .network("eth1", true, "10.1.0.1")
                .result("30", code, output);
        Peer peer = new Peer("10.0.0.2", 29500, false, Duration.ofSeconds(60));
        return TestMachine.run(new PeerCheck(machine.build(), peer));
    }

    @Test
    void measuresAConnection() {
        assertEquals(
                List.of(
                        "ok peer.passed: connected to port 29500 of 10.0.0.2: round trip 31.5 us, 2.25 GB/s",
                        "ok peer.interface: the way to the peer is eth0, MTU 1500, the first by NCCL's rules"),
                run(0, MET + "round-trip\t3.15E-5\nbandwidth\t2.25E9\n"));
    }

    @Test
    void namesTheStepThatFailed() {
        assertTrue(run(1, "interface\teth0\t1500\n")
                .contains("problem peer.unreachable: no connection to port 29500 of 10.0.0.2: exit code 1"));
        assertTrue(
                run(1, MET)
                        .contains(
                                "problem peer.connection: the ranks met at port 29500 of 10.0.0.2, but can't connect: exit code 1"));
        assertTrue(run(Commands.Result.TIMED_OUT, MET + "round-trip\t3.15E-5\n")
                .contains("problem peer.transfer: short messages pass between this host and port 29500 of 10.0.0.2, "
                        + "but 16 MiB do not: timed out"));
    }

    @Test
    void comparesInterfaces() {
        List<String> findings = run(0, "interface\teth1\t9000\nmet\t1500\nround-trip\t3.15E-5\nbandwidth\t2.25E9\n");
        assertTrue(
                findings.contains("warning peer.interface: the way to the peer is eth1, MTU 9000, but ranks would use "
                        + "eth0, the first by NCCL's rules"));
        assertTrue(findings.contains("warning peer.mtu: the MTU is 9000 here and 1500 at the peer"));
    }
}

package io.github.nccl4j.tools.doctor;

import io.github.nccl4j.tools.launch.JavaCommand;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * Tests the connection to another host, on which doctor runs at the same time: two ranks, one on each host, meet at a store and
 * exchange elements on the host engine. The store proves the job's secret, and each connection of the ranks that of the unique id.
 */
final class PeerCheck implements Check {
    private static final String MEANING = "Ranks on the two hosts will fail in the same way.";

    private final Machine machine;
    private final Peer peer;

    PeerCheck(Machine machine, Peer peer) {
        this.machine = machine;
        this.peer = peer;
    }

    @Override
    public String name() {
        return "peer";
    }

    @Override
    public List<Finding> run() {
        Commands.Result result = machine.commands()
                .run(
                        JavaCommand.of(
                                Doctor.NO_CRASH_FILES,
                                PeerProbe.class.getName(),
                                List.of(
                                        peer.address(),
                                        String.valueOf(Math.max(1, peer.limit().toSeconds() / 2)))),
                        environment(),
                        peer.limit());
        ProbeAnswer answer = ProbeAnswer.of(result);
        List<Finding> findings = new ArrayList<>();
        findings.add(connection(answer));
        compareInterfaces(answer, findings);
        return findings;
    }

    private Map<String, String> environment() {
        Map<String, String> environment = new HashMap<>(Choice.HOST.environment());
        environment.put("RANK", peer.accepts() ? "0" : "1");
        environment.put("WORLD_SIZE", "2");
        environment.put("LOCAL_RANK", "0");
        environment.put("LOCAL_WORLD_SIZE", "1");
        environment.put("MASTER_ADDR", peer.address());
        environment.put("MASTER_PORT", String.valueOf(peer.port()));
        environment.put(
                "NCCL4J_HOST_INIT_TIMEOUT",
                String.valueOf(Math.max(1, peer.limit().toSeconds() / 4)));
        return environment;
    }

    private Finding connection(ProbeAnswer answer) {
        String place = "port " + peer.port() + " of " + peer.address();
        String end = peer.accepts() ? "a peer at " + place : place;
        if (answer.all("met").isEmpty()) {
            return Finding.problem(
                    "peer.unreachable",
                    (peer.accepts() ? "no peer came to " : "no connection to ") + place + ": " + answer.death(),
                    MEANING,
                    "Run doctor with --accept-peer on the one host and --peer on the other, with an equal secret, within the time"
                            + " limit; permit the port in firewalls between them");
        }
        if (answer.all("round-trip").isEmpty()) {
            return Finding.problem(
                    "peer.connection",
                    "the ranks met at " + place + ", but can't connect: " + answer.death(),
                    MEANING,
                    "Set NCCL_SOCKET_IFNAME on both hosts to the interface between them; permit connections to all ports above"
                            + " 1023 in firewalls between them");
        }
        if (answer.all("bandwidth").isEmpty()) {
            return Finding.problem(
                    "peer.transfer",
                    "short messages pass between this host and " + end + ", but 16 MiB do not: " + answer.death(),
                    MEANING,
                    "Compare the MTU of all interfaces and switches between the hosts");
        }
        return Finding.ok(
                "peer.passed",
                String.format(
                        Locale.ROOT,
                        "connected to %s: round trip %.1f us, %.2f GB/s",
                        end,
                        Double.parseDouble(answer.first("round-trip")) * 1e6,
                        Double.parseDouble(answer.first("bandwidth")) / 1e9));
    }

    private void compareInterfaces(ProbeAnswer answer, List<Finding> findings) {
        String used = answer.first("interface");
        if (used.isEmpty()) {
            return;
        }
        String mtu = answer.all("interface").get(0).get(1);
        String others = answer.first("met");
        List<String> chosen = new NetworkCheck(machine).chosen();
        String reason = machine.variable("NCCL_SOCKET_IFNAME").isEmpty()
                ? "the first by NCCL's rules"
                : "the first of NCCL_SOCKET_IFNAME";
        String path = "the way to the peer is " + used + ", MTU " + mtu;
        if (!chosen.isEmpty() && !chosen.get(0).equals(used)) {
            findings.add(Finding.warning(
                    "peer.interface",
                    path + ", but ranks would use " + chosen.get(0) + ", " + reason,
                    "Ranks on other hosts may not reach that interface.",
                    "Set NCCL_SOCKET_IFNAME=" + used));
        } else {
            findings.add(Finding.ok("peer.interface", path + ", " + reason));
        }
        if (!others.isEmpty() && !others.equals(mtu)) {
            findings.add(Finding.warning(
                    "peer.mtu",
                    "the MTU is " + mtu + " here and " + others + " at the peer",
                    "Long messages may be lost or slow.",
                    "Set the same MTU on both hosts"));
        }
    }
}

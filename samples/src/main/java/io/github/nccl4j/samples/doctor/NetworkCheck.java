package io.github.nccl4j.samples.doctor;

import io.github.nccl4j.samples.doctor.Machine.NetworkInterfaceInfo;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;

/**
 * The network interfaces that NCCL would take, by its own rule: those of NCCL_SOCKET_IFNAME; else those named ib*; else all
 * but docker*, lo* and virbr*; else docker*, lo*, virbr*, the first of these that there are. By them the ranks meet, and
 * without RDMA the data goes through them.
 */
final class NetworkCheck implements Check {
    private static final List<String> RULES = List.of("ib", "^docker,lo,virbr", "docker", "lo", "virbr");

    private final Machine machine;

    NetworkCheck(Machine machine) {
        this.machine = machine;
    }

    @Override
    public String name() {
        return "network";
    }

    @Override
    public List<Finding> run() {
        String wanted = machine.variable("NCCL_SOCKET_IFNAME");
        List<Finding> findings = new ArrayList<>();
        findings.add(wanted.isEmpty() ? byRules() : byVariable(wanted));
        String id = machine.variable("NCCL_COMM_ID");
        if (!id.isEmpty()) {
            findings.add(Finding.warning(
                    "network.comm-id",
                    "NCCL_COMM_ID=" + id,
                    "Every communicator of every rank meets there, whatever unique id a program gives it.",
                    "Unset NCCL_COMM_ID, unless a program is meant to have only one communicator"));
        }
        return findings;
    }

    private Finding byVariable(String wanted) {
        List<NetworkInterfaceInfo> chosen = usable(NameList.of(wanted)::matches);
        if (chosen.isEmpty()) {
            return Finding.problem(
                            "network.selection",
                            "NCCL_SOCKET_IFNAME=" + wanted + " fits no interface that is up and has an address",
                            "NCCL finds no way to the other ranks.",
                            "Correct or unset NCCL_SOCKET_IFNAME")
                    .with(lines(machine.interfaces()));
        }
        return Finding.ok("network.selection", "NCCL_SOCKET_IFNAME=" + wanted + ": " + names(chosen))
                .with(lines(machine.interfaces()));
    }

    private Finding byRules() {
        for (String rule : RULES) {
            List<NetworkInterfaceInfo> chosen = usable(NameList.of(rule)::matches);
            if (!chosen.isEmpty()) {
                return found(rule, chosen);
            }
        }
        return Finding.problem(
                        "network.none",
                        "no interface is up and has an address",
                        "NCCL finds no way to the other ranks, not even on this machine.",
                        "Bring one up, be it lo")
                .with(lines(machine.interfaces()));
    }

    private Finding found(String rule, List<NetworkInterfaceInfo> chosen) {
        List<String> lines = lines(machine.interfaces());
        if (rule.equals("lo")) {
            return Finding.warning(
                            "network.loopback",
                            "NCCL would take " + names(chosen) + ", the only interface",
                            "Ranks of this machine find each other, those of others don't.",
                            "Start the container or machine with a network where there are several machines")
                    .with(lines);
        }
        if (rule.equals("docker") || rule.equals("virbr")) {
            return Finding.warning(
                            "network.bridge",
                            "NCCL would take " + names(chosen) + ", a bridge of this machine",
                            "Other machines can't reach it.",
                            "Set NCCL_SOCKET_IFNAME to the interface between the machines")
                    .with(lines);
        }
        if (chosen.size() > 1 && rule.startsWith("^")) {
            return Finding.warning(
                            "network.several",
                            "NCCL would take " + names(chosen) + ", and meet by the first",
                            "If the machines reach each other by only some of them, ranks wait for each other forever.",
                            "Set NCCL_SOCKET_IFNAME to the interface between the machines")
                    .with(lines);
        }
        return Finding.ok("network.selection", "NCCL would take " + names(chosen))
                .with(lines);
    }

    private List<NetworkInterfaceInfo> usable(Predicate<String> wanted) {
        String family = machine.variable("NCCL_SOCKET_FAMILY");
        return machine.interfaces().stream()
                .filter(one -> one.up() && wanted.test(one.name()))
                .filter(one -> one.addresses().stream().anyMatch(address -> fits(address, family)))
                .toList();
    }

    private static boolean fits(String address, String family) {
        boolean six = address.contains(":");
        return switch (family) {
            case "AF_INET" -> !six;
            case "AF_INET6" -> six;
            default -> true;
        };
    }

    private static String names(List<NetworkInterfaceInfo> interfaces) {
        return String.join(
                ", ", interfaces.stream().map(NetworkInterfaceInfo::name).toList());
    }

    private static List<String> lines(List<NetworkInterfaceInfo> interfaces) {
        return interfaces.stream()
                .map(one -> one.name() + ": " + (one.up() ? "up" : "down")
                        + (one.addresses().isEmpty() ? ", no address" : ", " + String.join(", ", one.addresses())))
                .toList();
    }
}

package io.github.nccl4j.tools.doctor;

import io.github.nccl4j.tools.doctor.Machine.NetworkInterfaceInfo;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;

/**
 * Reports the network interfaces that NCCL would use for its bootstrap and, without RDMA, for data.
 *
 * <p>Applies NCCL's rules: the interfaces in NCCL_SOCKET_IFNAME; else the first nonempty group of: ib*; all except docker*, lo*
 * and virbr*; docker*; lo*; virbr*.
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
        String selection = machine.variable("NCCL_SOCKET_IFNAME");
        List<Finding> findings = new ArrayList<>();
        findings.add(selection.isEmpty() ? byRules() : byVariable(selection));
        String id = machine.variable("NCCL_COMM_ID");
        if (!id.isEmpty()) {
            findings.add(Finding.warning(
                    "network.comm-id",
                    "NCCL_COMM_ID=" + id,
                    "All communicators bootstrap at this address and ignore the unique ids of the program.",
                    "Unset NCCL_COMM_ID, unless the program has only one communicator"));
        }
        return findings;
    }

    /** The names of the interfaces that NCCL would use, the first one for its bootstrap. */
    List<String> chosen() {
        String selection = machine.variable("NCCL_SOCKET_IFNAME");
        return (selection.isEmpty() ? RULES : List.of(selection))
                .stream()
                        .map(rule -> usable(NameList.of(rule)::matches))
                        .filter(found -> !found.isEmpty())
                        .findFirst()
                        .orElse(List.of())
                        .stream()
                        .map(NetworkInterfaceInfo::name)
                        .toList();
    }

    private Finding byVariable(String selection) {
        List<NetworkInterfaceInfo> chosen = usable(NameList.of(selection)::matches);
        if (chosen.isEmpty()) {
            return Finding.problem(
                            "network.selection",
                            "NCCL_SOCKET_IFNAME=" + selection + " matches no interface that is up and has an address",
                            "NCCL can't connect to other ranks.",
                            "Correct or unset NCCL_SOCKET_IFNAME")
                    .with(lines(machine.interfaces()));
        }
        return Finding.ok("network.selection", "NCCL_SOCKET_IFNAME=" + selection + ": " + names(chosen))
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
                        "NCCL can't connect to other ranks, not even on this machine.",
                        "Bring an interface up, at least lo")
                .with(lines(machine.interfaces()));
    }

    private Finding found(String rule, List<NetworkInterfaceInfo> chosen) {
        List<String> lines = lines(machine.interfaces());
        if (rule.equals("lo")) {
            return Finding.warning(
                            "network.loopback",
                            "NCCL would use " + names(chosen) + ", the only interface",
                            "Ranks can connect on this machine, but not to other machines.",
                            "For several machines, start the container or machine with a network")
                    .with(lines);
        }
        if (rule.equals("docker") || rule.equals("virbr")) {
            return Finding.warning(
                            "network.bridge",
                            "NCCL would use " + names(chosen) + ", a bridge of this machine",
                            "Other machines can't reach it.",
                            "Set NCCL_SOCKET_IFNAME to the interface between the machines")
                    .with(lines);
        }
        if (chosen.size() > 1 && rule.startsWith("^")) {
            return Finding.warning(
                            "network.several",
                            "NCCL would use " + names(chosen) + ", and the first one for its bootstrap",
                            "If some of them do not connect the machines, ranks wait for each other forever.",
                            "Set NCCL_SOCKET_IFNAME to the interface between the machines")
                    .with(lines);
        }
        return Finding.ok("network.selection", "NCCL would use " + names(chosen))
                .with(lines);
    }

    private List<NetworkInterfaceInfo> usable(Predicate<String> selection) {
        String family = machine.variable("NCCL_SOCKET_FAMILY");
        return machine.interfaces().stream()
                .filter(one -> one.up() && selection.test(one.name()))
                .filter(one -> one.addresses().stream().anyMatch(address -> isOfFamily(address, family)))
                .toList();
    }

    private static boolean isOfFamily(String address, String family) {
        boolean ipv6 = address.contains(":");
        return switch (family) {
            case "AF_INET" -> !ipv6;
            case "AF_INET6" -> ipv6;
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

package io.github.nccl4j.benchmarks;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Network namespaces of this machine as hosts, each with a veth device on a bridge. */
final class NetworkNamespaces implements AutoCloseable {
    /** The name of the device in each namespace. */
    static final String INTERFACE = "eth0";

    static final String NETWORK = "10.77.0.0/24";
    static final String FIRST_ADDRESS = "10.77.0.1";

    /** Thrown if this process can't make network namespaces. */
    static final class RefusedException extends Exception {
        private static final long serialVersionUID = 1;

        RefusedException(String reason, IOException cause) {
            super(reason, cause);
        }
    }

    private final String prefix = "nccl4j-" + ProcessHandle.current().pid() + "-";
    private final List<String> hosts = new ArrayList<>();
    private final List<String> made = new ArrayList<>();

    /** For a JVM that is interrupted: nothing else ends a namespace. */
    private final Thread hook = new Thread(this::delete, "end-namespaces");

    private NetworkNamespaces() {}

    /** Makes the namespaces. */
    static NetworkNamespaces connected(int count) throws RefusedException {
        NetworkNamespaces namespaces = new NetworkNamespaces();
        Runtime.getRuntime().addShutdownHook(namespaces.hook);
        try {
            namespaces.make(count);
            return namespaces;
        } catch (IOException failure) {
            namespaces.close();
            throw new RefusedException(failure.getMessage().lines().findFirst().orElse("failed"), failure);
        }
    }

    private void make(int count) throws IOException {
        String network = namespace("network");
        ip("-n", network, "link", "add", "bridge", "type", "bridge");
        ip("-n", network, "link", "set", "bridge", "up");
        for (int i = 0; i < count; i++) {
            String host = namespace("host" + i);
            String port = "port" + i;
            hosts.add(host);
            ip("link", "add", INTERFACE, "netns", host, "type", "veth", "peer", "name", port, "netns", network);
            ip("-n", network, "link", "set", port, "master", "bridge", "up");
            ip("-n", host, "address", "add", "10.77.0." + (i + 1) + "/24", "dev", INTERFACE);
            ip("-n", host, "link", "set", "lo", "up");
            ip("-n", host, "link", "set", INTERFACE, "up");
        }
    }

    private String namespace(String name) throws IOException {
        ip("netns", "add", prefix + name);
        made.add(prefix + name);
        return prefix + name;
    }

    /** The names of the hosts. */
    List<String> names() {
        return hosts;
    }

    /**
     * The prefix of a command line that runs a command on a host, with the same share of the processors for each host if there are
     * enough.
     */
    static List<String> on(String host, List<String> hosts) {
        int processors = Runtime.getRuntime().availableProcessors() / hosts.size();
        int first = hosts.indexOf(host) * processors;
        List<String> command = new ArrayList<>(List.of("ip", "netns", "exec", host));
        if (processors > 0) {
            command.addAll(List.of("taskset", "-c", first + "-" + (first + processors - 1)));
        }
        return command;
    }

    /**
     * Writes a program that runs a command on a host, as ssh does, for the launcher of Open MPI. That launcher hangs if two hosts
     * have the same name.
     */
    static Path writeAgent(Path folder, List<String> hosts) throws IOException {
        Path agent = folder.resolve("agent");
        Files.writeString(agent, """
                #!/bin/sh
                host=$1
                shift
                exec ip netns exec "$host" unshare --uts sh -c 'hostname "$0"; exec sh -c "$*"' "$host" "$@"
                """);
        Files.setPosixFilePermissions(agent, PosixFilePermissions.fromString("rwx------"));
        return agent;
    }

    private static void ip(String... arguments) throws IOException {
        List<String> command =
                Stream.concat(Stream.of("ip"), Stream.of(arguments)).collect(Collectors.toList());
        CommandLine.output(Path.of("."), command);
    }

    @Override
    public void close() {
        Runtime.getRuntime().removeShutdownHook(hook);
        delete();
    }

    private void delete() {
        for (String namespace : made) {
            try {
                ip("netns", "delete", namespace);
            } catch (IOException failure) {
                System.err.println("could not delete the network namespace " + namespace + ": " + failure.getMessage());
            }
        }
    }
}

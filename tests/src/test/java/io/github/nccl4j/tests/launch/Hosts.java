package io.github.nccl4j.tests.launch;

import io.github.nccl4j.tools.launch.ChildProcesses;
import io.github.nccl4j.tools.support.Programs;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.opentest4j.TestAbortedException;

/** Several hosts on one network, as network namespaces of this host. */
final class Hosts implements AutoCloseable {
    private final String prefix = "nccl4j-" + ProcessHandle.current().pid() + "-";
    private final List<String> made = new ArrayList<>();

    private Hosts() {}

    /** Creates hosts with the addresses 10.77.0.1, 10.77.0.2, ... and fd77::1, fd77::2, ... */
    static Hosts connected(int count) throws IOException {
        Hosts hosts = new Hosts();
        boolean done = false;
        try {
            hosts.make(count);
            done = true;
            return hosts;
        } finally {
            if (!done) {
                hosts.close();
            }
        }
    }

    /** Skips the test if this process can't create network namespaces. */
    static void require() {
        Programs.require("ip", "iproute2");
        try {
            connected(1).close();
        } catch (IOException refused) {
            throw new TestAbortedException("needs network namespaces: " + refused.getMessage());
        }
    }

    private void make(int count) throws IOException {
        String network = namespace("network");
        ip("-n " + network + " link add bridge type bridge");
        ip("-n " + network + " link set bridge up");
        for (int i = 0; i < count; i++) {
            String host = namespace("host" + i);
            ip("link add eth0 netns " + host + " type veth peer name port" + i + " netns " + network);
            ip("-n " + network + " link set port" + i + " master bridge up");
            ip("-n " + host + " address add 10.77.0." + (i + 1) + "/24 dev eth0");
            ip("-n " + host + " address add fd77::" + (i + 1) + "/64 dev eth0 nodad");
            ip("-n " + host + " link set lo up");
            ip("-n " + host + " link set eth0 up");
        }
    }

    private String namespace(String name) throws IOException {
        ip("netns add " + prefix + name);
        made.add(prefix + name);
        return prefix + name;
    }

    /** The prefix of a command line that runs a command on a host. */
    String[] on(int host) {
        return new String[] {"ip", "netns", "exec", prefix + "host" + host};
    }

    /** Adds an address to a host. */
    void addAddress(int host, String address) throws IOException {
        ip("-n " + prefix + "host" + host + " address add " + address + " dev eth0");
    }

    /** The address of a host. */
    static String address(int host) {
        return "10.77.0." + (host + 1);
    }

    /** Pulls the plug of a host: nothing arrives in either direction, and no end of a connection is reported. */
    void unplug(int host) throws IOException {
        ip("-n " + prefix + "network link set port" + host + " down");
    }

    void plugIn(int host) throws IOException {
        ip("-n " + prefix + "network link set port" + host + " up");
    }

    /** Drops what a host sends to another one; what it receives still arrives. */
    void dropWhatIsSent(int from, int to) throws IOException {
        ip("-n " + prefix + "host" + from + " route add blackhole " + address(to) + "/32");
    }

    /** Delays and loses packets that a host sends; skips the test if the kernel can't. */
    void disturb(int host, String netem) throws IOException {
        Programs.require("tc", "iproute2");
        try {
            run("tc", "-n " + prefix + "host" + host + " qdisc add dev eth0 root netem " + netem);
        } catch (IOException refused) {
            throw new TestAbortedException("needs netem in the kernel: " + refused.getMessage());
        }
    }

    private static void ip(String arguments) throws IOException {
        run("ip", arguments);
    }

    private static void run(String program, String arguments) throws IOException {
        List<String> command = new ArrayList<>(List.of(program));
        command.addAll(List.of(arguments.split(" ")));
        Process process = ChildProcesses.start(new ProcessBuilder(command).redirectErrorStream(true));
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        try {
            if (process.waitFor() != 0) {
                throw new IOException(program + " " + arguments + ": " + output.strip());
            }
        } catch (InterruptedException interrupted) {
            throw new IOException(interrupted);
        }
    }

    @Override
    public void close() throws IOException {
        for (String namespace : made) {
            ip("netns delete " + namespace);
        }
    }
}

package io.github.nccl4j.tests.launch;

import io.github.nccl4j.tools.launch.ChildProcesses;
import io.github.nccl4j.tools.support.Programs;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.opentest4j.TestAbortedException;

/** Several hosts on one network, as network namespaces of this host. */
final class Hosts implements AutoCloseable {
    private static final String NETWORK = "network";

    private final String prefix = "nccl4j-" + ProcessHandle.current().pid() + "-";
    private final List<String> made = new ArrayList<>();
    /** By the host, if the links are disturbed and the kernel can't do that. */
    private final List<DisturbedLink> links = new ArrayList<>();

    private Hosts() {}

    /** Creates hosts with the addresses 10.77.0.1, 10.77.0.2, ... and fd77::1, fd77::2, ... */
    static Hosts connected(int count) throws IOException {
        return made(hosts -> hosts.make(count, null, null));
    }

    /**
     * As {@link #connected}, with links that disturb what each host sends: by netem, or by a program on a kernel without it. Skips the
     * test if neither can be done.
     *
     * @param folder the folder for the program
     */
    static Hosts disturbed(int count, Disturbance disturbance, Path folder) throws IOException {
        boolean hasNetem = hasNetem();
        System.out.println(disturbance + (hasNetem ? " by netem" : " by a program, because the kernel has no netem"));
        if (!hasNetem) {
            Path program = DisturbedLink.compile(folder);
            return made(hosts -> hosts.make(count, disturbance, program));
        }
        return made(hosts -> {
            hosts.make(count, null, null);
            for (int host = 0; host < count; host++) {
                run("tc", "-n " + hosts.name(host) + " qdisc add dev eth0 root netem " + disturbance.netem());
            }
        });
    }

    /** True if the program tc and the kernel can disturb packets. */
    private static boolean hasNetem() throws IOException {
        try (Hosts alone = connected(1)) {
            run("tc", "-n " + alone.name(0) + " qdisc add dev eth0 root netem delay 1ms");
            return true;
        } catch (IOException refused) {
            return false;
        }
    }

    private interface Making {
        void run(Hosts hosts) throws IOException;
    }

    private static Hosts made(Making making) throws IOException {
        Hosts hosts = new Hosts();
        boolean done = false;
        try {
            making.run(hosts);
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

    /** A null program means that the links are not disturbed, or by the kernel. */
    private void make(int count, Disturbance disturbance, Path program) throws IOException {
        String network = namespace(NETWORK);
        ip("-n " + network + " link add bridge type bridge");
        ip("-n " + network + " link set bridge up");
        for (int i = 0; i < count; i++) {
            String host = namespace("host" + i);
            if (program == null) {
                ip("link add eth0 netns " + host + " type veth peer name port" + i + " netns " + network);
            } else {
                links.add(DisturbedLink.start(program, host, network, "port" + i, disturbance, i + 1));
            }
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
        return new String[] {"ip", "netns", "exec", name(host)};
    }

    private String name(int host) {
        return prefix + "host" + host;
    }

    /** Adds an address to a host. */
    void addAddress(int host, String address) throws IOException {
        ip("-n " + name(host) + " address add " + address + " dev eth0");
    }

    /** The address of a host. */
    static String address(int host) {
        return "10.77.0." + (host + 1);
    }

    /** Pulls the plug of a host: nothing arrives in either direction, and no end of a connection is reported. */
    void unplug(int host) throws IOException {
        if (!links.isEmpty()) {
            links.get(host).cut();
            return;
        }
        ip("-n " + prefix + "network link set port" + host + " down");
    }

    /** Unplugs all hosts; returns the number of frames that were lost before, or -1 if the kernel has disturbed them. */
    long unplugAll() throws IOException {
        if (links.isEmpty()) {
            return -1;
        }
        long lost = 0;
        for (DisturbedLink link : links) {
            lost += link.cut();
        }
        return lost;
    }

    /** Drops what a host sends to another one; what it receives still arrives. */
    void dropWhatIsSent(int from, int to) throws IOException {
        ip("-n " + name(from) + " route add blackhole " + address(to) + "/32");
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
        links.forEach(DisturbedLink::close);
        for (String namespace : made) {
            ip("netns delete " + namespace);
        }
    }
}

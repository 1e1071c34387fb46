package io.github.nccl4j.tools.doctor;

import io.github.nccl4j.library.SystemText;
import java.io.IOException;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.net.SocketException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * The machine to examine. The checks read the system only through it, so that tests can substitute another machine. Immutable.
 *
 * @param root the root of the file system
 * @param environment the environment variables
 * @param interfaces the network interfaces, in the order of the system
 * @param commands runs programs
 */
public record Machine(
        Path root, Map<String, String> environment, List<NetworkInterfaceInfo> interfaces, Commands commands) {

    /**
     * A network interface.
     *
     * @param name its name
     * @param up true if it is up
     * @param addresses its addresses, without scopes
     */
    public record NetworkInterfaceInfo(String name, boolean up, List<String> addresses) {}

    /** {@return the machine on which this process runs} */
    public static Machine here() {
        return new Machine(Path.of("/"), SystemText.environment(), interfacesHere(), Commands.ofThisMachine());
    }

    private static List<NetworkInterfaceInfo> interfacesHere() {
        List<NetworkInterfaceInfo> all = new ArrayList<>();
        try {
            for (NetworkInterface one : Collections.list(NetworkInterface.getNetworkInterfaces())) {
                List<String> addresses = Collections.list(one.getInetAddresses()).stream()
                        .map(InetAddress::getHostAddress)
                        .map(address -> address.replaceFirst("%.*", ""))
                        .toList();
                all.add(new NetworkInterfaceInfo(one.getName(), one.isUp(), addresses));
            }
        } catch (SocketException e) {
            // Report a machine without interfaces, as NCCL sees it.
        }
        return List.copyOf(all);
    }

    /** The value of an environment variable without surrounding spaces, or empty if it is not set. */
    String variable(String name) {
        return environment.getOrDefault(name, "").strip();
    }

    /** Resolves an absolute path of this machine. */
    Path path(String file) {
        return root.resolve(file.substring(1));
    }

    boolean exists(String file) {
        try {
            return Files.exists(path(file));
        } catch (InvalidPathException e) {
            return false;
        }
    }

    /** The text of a file without surrounding spaces, or empty if it can't be read. */
    Optional<String> read(String file) {
        try {
            return Optional.of(Files.readString(path(file)).strip());
        } catch (IOException | RuntimeException e) {
            return Optional.empty();
        }
    }

    /** The sorted names of the entries of a folder; none if it can't be read. */
    List<String> list(String folder) {
        List<String> names = new ArrayList<>();
        try (DirectoryStream<Path> entries = Files.newDirectoryStream(path(folder))) {
            entries.forEach(entry -> names.add(entry.getFileName().toString()));
        } catch (IOException | RuntimeException e) {
            return List.of();
        }
        Collections.sort(names);
        return List.copyOf(names);
    }
}

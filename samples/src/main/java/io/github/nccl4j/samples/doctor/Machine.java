package io.github.nccl4j.samples.doctor;

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
 * All that the checks read of a machine, so that tests can give them another one.
 *
 * @param root where the file system begins
 * @param environment the variables of the process
 * @param interfaces the network interfaces, in the order of the system
 * @param commands runs programs
 */
public record Machine(
        Path root, Map<String, String> environment, List<NetworkInterfaceInfo> interfaces, Commands commands) {

    /**
     * What is known of a network interface.
     *
     * @param name its name
     * @param up whether it is up
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
        } catch (SocketException unreadable) {
            // Reported as a machine without interfaces, which is what NCCL would see too.
        }
        return List.copyOf(all);
    }

    /** A variable, empty if it is not set. */
    String variable(String name) {
        return environment.getOrDefault(name, "").strip();
    }

    /** A file of this machine by its absolute path. */
    Path path(String file) {
        return root.resolve(file.substring(1));
    }

    boolean exists(String file) {
        try {
            return Files.exists(path(file));
        } catch (InvalidPathException unspellable) {
            return false;
        }
    }

    /** The text of a file without the spaces around it; empty if it can't be read. */
    Optional<String> read(String file) {
        try {
            return Optional.of(Files.readString(path(file)).strip());
        } catch (IOException | RuntimeException unreadable) {
            return Optional.empty();
        }
    }

    /** The names in a folder, sorted; none if it can't be read. */
    List<String> list(String folder) {
        List<String> names = new ArrayList<>();
        try (DirectoryStream<Path> entries = Files.newDirectoryStream(path(folder))) {
            entries.forEach(entry -> names.add(entry.getFileName().toString()));
        } catch (IOException | RuntimeException unreadable) {
            return List.of();
        }
        Collections.sort(names);
        return List.copyOf(names);
    }
}

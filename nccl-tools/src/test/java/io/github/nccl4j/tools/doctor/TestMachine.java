package io.github.nccl4j.tools.doctor;

import io.github.nccl4j.tools.doctor.Machine.NetworkInterfaceInfo;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Builds a {@link Machine} with the files, variables, interfaces and program results of a test. */
final class TestMachine {
    private final Path root;
    private final Map<String, String> environment = new HashMap<>();
    private final List<NetworkInterfaceInfo> interfaces = new ArrayList<>();
    private final Map<String, Commands.Result> results = new HashMap<>();

    TestMachine(Path root) {
        this.root = root;
    }

    TestMachine file(String path, String text) {
        Path file = root.resolve(path.substring(1));
        try {
            Files.createDirectories(file.getParent());
            Files.writeString(file, text + "\n");
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return this;
    }

    TestMachine variable(String name, String value) {
        environment.put(name, value);
        return this;
    }

    TestMachine network(String name, boolean up, String... addresses) {
        interfaces.add(new NetworkInterfaceInfo(name, up, List.of(addresses)));
        return this;
    }

    /** Sets the result of commands with this last argument. Other commands can't be started. */
    TestMachine result(String lastArgument, int code, String out) {
        results.put(lastArgument, new Commands.Result(code, out, ""));
        return this;
    }

    Machine build() {
        return new Machine(root, Map.copyOf(environment), List.copyOf(interfaces), this::run);
    }

    private Commands.Result run(List<String> command, Map<String, String> variables, Duration limit) {
        return results.getOrDefault(
                command.get(command.size() - 1),
                new Commands.Result(Commands.Result.MISSING, "", "No such file or directory"));
    }

    /** The answer of a successful probe: lines of values separated by "|". */
    static ProbeAnswer probe(String lines) {
        return ProbeAnswer.of(new Commands.Result(0, lines.replace('|', '\t'), ""));
    }

    /** Runs a check and returns each finding as "level id: text". */
    static List<String> run(Check check) {
        return check.run().stream()
                .map(finding -> finding.level() + " " + finding.id() + ": " + finding.text())
                .toList();
    }
}

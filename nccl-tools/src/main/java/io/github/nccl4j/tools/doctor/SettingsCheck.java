package io.github.nccl4j.tools.doctor;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Reports the settings of NCCL and nccl4j, in the environment and in NCCL's configuration files. */
final class SettingsCheck implements Check {
    private final Machine machine;

    SettingsCheck(Machine machine) {
        this.machine = machine;
    }

    @Override
    public String name() {
        return "settings";
    }

    @Override
    public List<Finding> run() {
        List<String> variables = new ArrayList<>();
        for (Map.Entry<String, String> variable : new TreeMap<>(machine.environment()).entrySet()) {
            String name = variable.getKey();
            boolean secret = name.contains("SECRET") || name.contains("TOKEN");
            if (name.startsWith("NCCL_") || name.startsWith("NCCL4J_") || name.startsWith("CUDA_")) {
                variables.add(name + "=" + (secret ? "(not shown)" : variable.getValue()));
            }
        }
        List<Finding> findings = new ArrayList<>();
        findings.add(
                variables.isEmpty()
                        ? Finding.ok("settings.variables", "no variable NCCL_*, NCCL4J_* or CUDA_* is set")
                        : Finding.ok("settings.variables", "variables of NCCL, nccl4j or CUDA are set")
                                .with(variables));
        for (String file : files()) {
            machine.read(file)
                    .ifPresent(text -> findings.add(Finding.ok("settings.file", "NCCL also reads " + file)
                            .with(text.lines().filter(line -> !line.isBlank()).toList())));
        }
        findings.addAll(nativeAccess());
        return findings;
    }

    /** The option by which Java 24 and newer refuse native code, in the variables that each JVM reads. */
    private List<Finding> nativeAccess() {
        String denial = "--illegal-native-access=deny";
        List<String> denying = new ArrayList<>();
        boolean allowed = false;
        for (String variable : List.of("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS")) {
            if (machine.variable(variable).contains(denial)) {
                denying.add(variable);
            }
            allowed |= machine.variable(variable).contains("--enable-native-access");
        }
        return denying.isEmpty() || allowed
                ? List.of()
                : List.of(Finding.problem(
                        "settings.native-access",
                        String.join(" and ", denying) + " has " + denial + ": Java refuses native code",
                        "Every call of nccl4j will fail in a JVM without the option --enable-native-access.",
                        "Add --enable-native-access=ALL-UNNAMED, or with a module path --enable-native-access="
                                + "io.github.nccl4j,org.bytedeco.javacpp,org.bytedeco.cuda, to the variable or to the"
                                + " command of the JVM"));
    }

    /** The configuration files: first that of NCCL_CONF_FILE, or else the user's; then the system's. */
    private List<String> files() {
        List<String> files = new ArrayList<>();
        String named = machine.variable("NCCL_CONF_FILE");
        String home = machine.variable("HOME");
        if (named.startsWith("/")) {
            files.add(named);
        } else if (named.isEmpty() && home.startsWith("/")) {
            files.add(home + "/.nccl.conf");
        }
        files.add("/etc/nccl.conf");
        return files;
    }
}

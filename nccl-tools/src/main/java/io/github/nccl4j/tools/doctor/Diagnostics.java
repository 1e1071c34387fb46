package io.github.nccl4j.tools.doctor;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The diagnostics of NCCL itself, since 2.31: of peer-to-peer access, and of GPUs, driver, ECC, NVLink and variables, which RAS
 * compares between ranks. NCCL prints the results when a communicator is created.
 */
final class Diagnostics {
    private static final int FIRST_MINOR = 31;

    private static final List<String> VARIABLES = List.of("NCCL_RUN_DIAGNOSTICS", "NCCL_RUN_RAS_DIAGNOSTICS");

    /** A result, after the rank that printed it: "[0] node:12 NCCL DIAG [OK]   NVLink: found ...". */
    private static final Pattern RESULT = Pattern.compile("\\[\\d+] \\S+:\\d+ NCCL DIAG \\[(OK|INFO)] +(.+)");

    /** The end of a result that NCCL could not read, as without NVML; a failed check of peer-to-peer access is none. */
    private static final Pattern UNAVAILABLE = Pattern.compile("(?!p2p:).*\\bunavailable\\b.*");

    private Diagnostics() {}

    private static boolean isProvided(String flavor, String version) {
        Matcher release = Pattern.compile("(\\d+)\\.(\\d+)\\..*").matcher(version);
        return flavor.equals("NCCL")
                && release.matches()
                && (Integer.parseInt(release.group(1)) > 2 || Integer.parseInt(release.group(2)) >= FIRST_MINOR);
    }

    /** The variables that make a library run its diagnostics; empty if it has none. The user's own settings are kept. */
    static Map<String, String> environment(String flavor, String version) {
        Map<String, String> environment = new HashMap<>();
        if (isProvided(flavor, version)) {
            VARIABLES.stream()
                    .filter(variable -> System.getenv(variable) == null)
                    .forEach(variable -> environment.put(variable, "1"));
        }
        return environment;
    }

    /** The finding for the output of ranks; empty if the library has no diagnostics. */
    static Optional<Finding> finding(String flavor, String version, List<String> lines) {
        if (!isProvided(flavor, version)) {
            return Optional.empty();
        }
        List<String> results = new ArrayList<>();
        List<String> open = new ArrayList<>();
        for (String line : lines) {
            Matcher result = RESULT.matcher(line);
            if (result.matches()) {
                results.add(result.group(2));
                if (result.group(1).equals("INFO")
                        && !UNAVAILABLE.matcher(result.group(2)).matches()) {
                    open.add(result.group(2));
                }
            }
        }
        if (results.isEmpty()) {
            return Optional.of(Finding.ok(
                    "diagnostics.none",
                    "NCCL's own diagnostics printed no result; NCCL_RAS_ENABLE=0 or a setting of these may be the reason: "
                            + String.join(", ", VARIABLES)));
        }
        if (open.isEmpty()) {
            return Optional.of(Finding.ok("diagnostics.passed", "NCCL's own diagnostics found no problem")
                    .with(results));
        }
        return Optional.of(Finding.warning(
                        "diagnostics.reported",
                        "NCCL's own diagnostics report: " + open.get(0),
                        "NCCL may be slow or fail on these GPUs.",
                        "See the lines below, of which those about peer-to-peer access name a remedy")
                .with(results));
    }
}

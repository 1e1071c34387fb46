package io.github.nccl4j.tools.doctor;

import io.github.nccl4j.library.SystemText;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Reports the library that an application would load, and the places that were searched. */
final class LibraryCheck implements Check {
    private static final String INSTALL = "Install NVIDIA's package libnccl2 (RPM: libnccl), or run: pip install"
            + " nvidia-nccl-cu13 (nvidia-nccl-cu12 for drivers before CUDA 13). If nccl4j does not find the installed library,"
            + " set NCCL4J_LIBRARY to the path of libnccl.so.2. Without a GPU, NCCL4J_ENGINE=host runs in host memory";

    private static final String INSTALL_RCCL =
            "Install ROCm's RCCL (Debian: librccl1), or set NCCL4J_LIBRARY to the path of"
                    + " librccl.so.1. Without a GPU, NCCL4J_ENGINE=host runs in host memory";

    /** First release that does not lose slots of its network thread on arm64. */
    private static final String ARM64 = "2.29.3";

    private final Machine machine;
    private final ProbeAnswer probe;
    private final Choice choice;

    LibraryCheck(Machine machine, ProbeAnswer probe, Choice choice) {
        this.machine = machine;
        this.probe = probe;
        this.choice = choice;
    }

    @Override
    public String name() {
        return "NCCL library";
    }

    @Override
    public List<Finding> run() {
        List<Finding> findings = new ArrayList<>();
        findings.add(library());
        findings.addAll(copies());
        findings.addAll(shadowed());
        findings.addAll(faults());
        String preload = machine.variable("LD_PRELOAD");
        if (preload.contains("nccl")) {
            findings.add(Finding.warning(
                    "library.preload",
                    "LD_PRELOAD names an NCCL library: " + preload,
                    "Every process loads it in addition to the library that nccl4j loads.",
                    "Unset LD_PRELOAD, and name the library in NCCL4J_LIBRARY"));
        }
        return findings;
    }

    private Finding library() {
        if (!probe.first("path").isEmpty() && probe.death().isEmpty()) {
            return loaded();
        }
        if (!probe.death().isEmpty()) {
            return Finding.problem(
                            "library.crash",
                            "the process that loaded the library died: " + probe.death(),
                            "The library is broken, or is not for this machine.",
                            INSTALL)
                    .with(candidates());
        }
        String error = probe.first("error");
        if (!error.isEmpty()) {
            return Finding.problem(
                            "library.unusable",
                            error.lines().findFirst().orElse(""),
                            "Every call of NCCL will fail with this message.",
                            "Correct the setting in the message")
                    .with(error.lines().skip(1).toList());
        }
        return choice.library().isEmpty() ? missing() : unusable(choice.library());
    }

    private Finding missing() {
        boolean rccl = choice.engine().equals("rccl");
        return Finding.problem(
                        "library.missing",
                        "no " + (rccl ? "librccl" : "libnccl") + " was found (" + choice.text() + ")",
                        "Every call of NCCL will fail with a list of these places.",
                        rccl ? INSTALL_RCCL : INSTALL)
                .with(candidates());
    }

    /** The library was requested by its path, so that nccl4j searches no other places. */
    private Finding unusable(String path) {
        String inside = path + "/libnccl.so.2";
        String advice = isFile(inside)
                ? "Name the file: " + inside
                : "Correct the path, which must name a file such as libnccl.so.2, or unset it: then nccl4j searches the"
                        + " usual places";
        return Finding.problem(
                        "library.missing",
                        choice.text() + " does not name a loadable library",
                        "Every call of NCCL will fail with this reason; nccl4j does not search other places.",
                        advice)
                .with(candidates());
    }

    private static boolean isFile(String path) {
        try {
            return Files.exists(SystemText.path(path));
        } catch (InvalidPathException e) {
            return false;
        }
    }

    private Finding loaded() {
        String flavor = probe.first("flavor");
        StringBuilder text = new StringBuilder();
        if (flavor.equals("HOST")) {
            text.append("the host engine, with the functions of NCCL ").append(probe.first("version"));
        } else {
            text.append(flavor).append(' ').append(probe.first("version"));
            String cuda = probe.first("cuda");
            text.append(cuda.isEmpty() ? ", CUDA release unknown" : ", built for CUDA " + cuda);
        }
        text.append(", from ").append(probe.first("path"));
        List<String> details = new ArrayList<>();
        details.add("chosen by " + choice.text());
        details.addAll(candidates());
        String encryption = encryption(probe.first("encryption"));
        if (!encryption.isEmpty()) {
            details.add("encryption of TCP connections: " + encryption);
        }
        String form = probe.first("form");
        if (!form.isEmpty() && !form.equals("ABSENT")) {
            details.add("ncclAlltoAllv: " + form
                    + (form.equals("UNKNOWN")
                            ? "; set NCCL4J_VCCL_ALLTOALLV to its number of arguments: 9, 10 or 11"
                            : ""));
        }
        return Finding.ok("library.loaded", text.toString()).with(details);
    }

    /** Describes a constant of the enumeration; empty for others, which a newer release may add. */
    private static String encryption(String support) {
        return switch (support) {
            case "TLS" -> "TLS is built in";
            case "BUILT_WITHOUT_TLS" -> "none, the library was built without TLS";
            case "UNKNOWN" -> "refused, the library does not show that it was built with TLS";
            case "NO_FUNCTION" -> "none, NCCL has it since 2.32.3";
            default -> "";
        };
    }

    private List<String> candidates() {
        return probe.all("candidate").stream()
                .map(candidate -> candidate.get(0) + ": "
                        + (candidate.get(1).isEmpty() ? "loaded" : "not loaded: " + candidate.get(1)))
                .toList();
    }

    /** Finds newer libraries in places that are searched after that of the library. */
    private List<Finding> shadowed() {
        List<String> newer = probe.all("shadowed").stream()
                .filter(library -> isOlder(probe.first("version"), library.get(1)))
                .map(library -> "NCCL " + library.get(1) + " in " + library.get(0))
                .toList();
        return newer.isEmpty()
                ? List.of()
                : List.of(Finding.warning(
                                "library.shadowed",
                                "a newer NCCL is installed, but " + probe.first("version") + " in "
                                        + probe.first("path") + " is found first",
                                "Programs lack its functions and its corrections.",
                                "Remove the older one, or name the newer one in NCCL4J_LIBRARY")
                        .with(newer));
    }

    private List<Finding> faults() {
        boolean hangs = probe.first("flavor").equals("NCCL")
                && probe.first("architecture").equals("aarch64")
                && isOlder(probe.first("version"), ARM64);
        return !hangs
                ? List.of()
                : List.of(Finding.warning(
                        "library.arm64",
                        "NCCL " + probe.first("version") + " may hang on arm64",
                        "Ranks that communicate through a network may wait forever.",
                        "Install NCCL " + ARM64 + " or newer"));
    }

    private static boolean isOlder(String release, String other) {
        return Arrays.compare(numbers(release), numbers(other)) < 0;
    }

    private static int[] numbers(String release) {
        return Arrays.stream(release.split("\\.")).mapToInt(Integer::parseInt).toArray();
    }

    private List<Finding> copies() {
        List<String> copies =
                probe.all("copy").stream().map(copy -> copy.get(0)).toList();
        return copies.size() < 2 ? List.of() : List.of(severalCopies("a process with only nccl4j", copies));
    }

    /** The finding for a process with several copies of NCCL. */
    static Finding severalCopies(String process, List<String> copies) {
        return Finding.problem(
                        "library.copies",
                        process + " has " + copies.size() + " copies of NCCL",
                        "Each copy has its own groups and errors; passing a communicator of one to another one crashes.",
                        "Set NCCL4J_LIBRARY to the copy that the other user of NCCL in the process loads")
                .with(copies);
    }
}

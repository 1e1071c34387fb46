package io.github.nccl4j.samples.doctor;

import io.github.nccl4j.library.SystemText;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.util.ArrayList;
import java.util.List;

/** Which libnccl would be loaded, and why. */
final class LibraryCheck implements Check {
    private static final String INSTALL = "Install NVIDIA's package libnccl2 (RPM: libnccl), or run: pip install"
            + " nvidia-nccl-cu13 (nvidia-nccl-cu12 for drivers before CUDA 13). If nccl4j does not find what is there, set"
            + " NCCL4J_LIBRARY to the path of libnccl.so.2. Without a GPU, NCCL4J_ENGINE=host runs in host memory";

    private static final String INSTALL_RCCL =
            "Install ROCm's RCCL (Debian: librccl1), or set NCCL4J_LIBRARY to the path of"
                    + " librccl.so.1. Without a GPU, NCCL4J_ENGINE=host runs in host memory";

    private final Machine machine;
    private final ProbeAnswer probe;
    private final Choice choice;

    /** The choice is the setting that decides. */
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
        String preload = machine.variable("LD_PRELOAD");
        if (preload.contains("nccl")) {
            findings.add(Finding.warning(
                    "library.preload",
                    "LD_PRELOAD names an NCCL library: " + preload,
                    "It is in every process besides the one that nccl4j loads.",
                    "Unset LD_PRELOAD, and name the library by NCCL4J_LIBRARY"));
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
                            "The library is broken, or is none for this machine.",
                            INSTALL)
                    .with(tried());
        }
        String error = probe.first("error");
        if (!error.isEmpty()) {
            return Finding.problem(
                            "library.unusable",
                            error.lines().findFirst().orElse(""),
                            "Every call of NCCL will fail with this message.",
                            "Correct what the message names")
                    .with(error.lines().skip(1).toList());
        }
        return choice.library().isEmpty() ? missing() : unusable(choice.library());
    }

    private Finding missing() {
        boolean rccl = choice.engine().equals("rccl");
        return Finding.problem(
                        "library.missing",
                        "no " + (rccl ? "librccl" : "libnccl") + " was found (" + choice.text() + ")",
                        "Every call of NCCL will fail with the list of these places.",
                        rccl ? INSTALL_RCCL : INSTALL)
                .with(tried());
    }

    /** A library that was asked for by its path: no other one is looked for. */
    private Finding unusable(String path) {
        String inside = path + "/libnccl.so.2";
        String advice = isFile(inside)
                ? "Name the file: " + inside
                : "Correct the path, which must be that of a file such as libnccl.so.2, or unset it: then nccl4j looks in"
                        + " the usual places";
        return Finding.problem(
                        "library.missing",
                        choice.text() + " names no library that can be loaded",
                        "Every call of NCCL will fail with this reason; other places are not looked at.",
                        advice)
                .with(tried());
    }

    private static boolean isFile(String path) {
        try {
            return Files.exists(SystemText.path(path));
        } catch (InvalidPathException unspellable) {
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
            text.append(cuda.isEmpty() ? ", which does not tell its CUDA" : ", built for CUDA " + cuda);
        }
        text.append(", from ").append(probe.first("path"));
        List<String> details = new ArrayList<>();
        details.add("chosen by " + choice.text());
        details.addAll(tried());
        String encryption = encryption(probe.first("encryption"));
        if (!encryption.isEmpty()) {
            details.add("encryption of TCP connections: " + encryption);
        }
        String form = probe.first("form");
        if (!form.isEmpty() && !form.equals("ABSENT")) {
            details.add("ncclAlltoAllv: " + form
                    + (form.equals("UNKNOWN") ? ", NCCL4J_VCCL_ALLTOALLV declares it: 9, 10 or 11 arguments" : ""));
        }
        return Finding.ok("library.loaded", text.toString()).with(details);
    }

    /** Of an enumeration that a newer probe may extend. */
    private static String encryption(String support) {
        return switch (support) {
            case "TLS" -> "TLS is built in";
            case "BUILT_WITHOUT_TLS" -> "none, the library was built without TLS";
            case "UNKNOWN" -> "refused, the library does not show that it was built with TLS";
            case "NO_FUNCTION" -> "none, NCCL has it since 2.32.3";
            default -> "";
        };
    }

    private List<String> tried() {
        return probe.all("candidate").stream()
                .map(candidate -> candidate.get(0) + ": "
                        + (candidate.get(1).isEmpty() ? "loaded" : "passed over, " + candidate.get(1)))
                .toList();
    }

    private List<Finding> copies() {
        List<String> copies =
                probe.all("copy").stream().map(copy -> copy.get(0)).toList();
        return copies.size() < 2 ? List.of() : List.of(twoCopies("a process with nccl4j alone", copies));
    }

    /** What it means that a process has more than one NCCL. */
    static Finding twoCopies(String process, List<String> copies) {
        return Finding.problem(
                        "library.copies",
                        process + " has " + copies.size() + " copies of NCCL",
                        "Each has its own groups and errors; a communicator of one crashes the other.",
                        "Set NCCL4J_LIBRARY to the copy that the other user of NCCL in the process loads")
                .with(copies);
    }
}

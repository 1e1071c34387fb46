package io.github.nccl4j.tools.doctor;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** The links between GPUs, parsed from the output of {@code nvidia-smi topo -m}, with nvidia-smi's GPU numbers. Immutable. */
final class LinkTable {
    private static final String GPU = "GPU\\d+";

    /** nvidia-smi's code of the link, by pair, such as "GPU0 - GPU1". */
    private final Map<String, String> links;

    private LinkTable(Map<String, String> links) {
        this.links = links;
    }

    /** Parses the output; empty if it contains no table. */
    static Optional<LinkTable> of(String text) {
        List<List<String>> rows = text.replaceAll("\u001b\\[[\\d;]*m", "")
                .lines()
                .map(line -> List.of(line.strip().split("\\s*\\t\\s*")))
                .toList();
        Optional<List<String>> header =
                rows.stream().filter(row -> row.get(0).matches(GPU)).findFirst();
        Map<String, String> links = new LinkedHashMap<>();
        for (List<String> row : rows) {
            // A row has one column more than the header: its name, in front.
            for (int i = 1; header.isPresent() && row != header.get() && i < row.size(); i++) {
                boolean named = row.get(0).matches(GPU) && i <= header.get().size();
                String other = named ? header.get().get(i - 1) : "";
                if (other.matches(GPU) && number(row.get(0)) < number(other)) {
                    links.put(row.get(0) + " - " + other, row.get(i));
                }
            }
        }
        return links.isEmpty() ? Optional.empty() : Optional.of(new LinkTable(links));
    }

    private static int number(String gpu) {
        return Integer.parseInt(gpu.substring("GPU".length()));
    }

    int pairs() {
        return links.size();
    }

    /** The number of pairs that are connected across CPUs. */
    long slowPairs() {
        return links.values().stream().filter("SYS"::equals).count();
    }

    String summary() {
        long nvlink =
                links.values().stream().filter(link -> link.startsWith("NV")).count();
        if (nvlink == links.size()) {
            return "all GPUs are connected by NVLink";
        }
        return nvlink == 0
                ? "all GPUs are connected by PCIe"
                : nvlink + " of " + links.size() + " pairs of GPUs are connected by NVLink, the others by PCIe";
    }

    List<String> lines() {
        List<String> lines = new ArrayList<>();
        links.forEach((pair, link) -> lines.add(pair + ": " + meaning(link)));
        return lines;
    }

    private static String meaning(String link) {
        if (link.matches("NV\\d+")) {
            String count = link.substring(2);
            return count + (count.equals("1") ? " NVLink" : " NVLinks");
        }
        return switch (link) {
            case "PIX" -> "PCIe, one switch";
            case "PXB" -> "PCIe, several switches";
            case "PHB" -> "PCIe, through the CPU's host bridge";
            case "NODE" -> "PCIe, through host bridges of one CPU";
            case "SYS" -> "PCIe, across CPUs";
            default -> link;
        };
    }
}

package io.github.nccl4j.tools.analyze;

import io.github.nccl4j.tools.support.ErrorsPage;
import io.github.nccl4j.tools.support.Printable;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.stream.Stream;

/**
 * The processes of the ranks of a finding, and the step that follows from it. Immutable.
 *
 * @param places the processes of the ranks, without those that are not known
 * @param text a command with its host, or the first remedy of docs/errors.md, without a period
 */
record NextStep(List<Place> places, String text) {
    private static final int MAX_LISTED = 3;
    private static final String WITH_RECORD = "With a record: ";
    private static final String WITHOUT_RECORD = "Without a record: ";

    /**
     * The process of a rank.
     *
     * @param rank the rank in the job
     * @param host the name of the host, or empty
     * @param process the number of the process
     */
    record Place(int rank, String host, String process) {
        private static Place of(RankRecord record) {
            return new Place(record.jobRank(), Printable.line(record.header().host), record.header().process);
        }

        private String at() {
            return host.isEmpty() ? "" : " on " + host;
        }
    }

    static NextStep of(Finding finding, Job job) {
        List<Place> places = finding.jobRanks().stream()
                .distinct()
                .map(rank -> record(rank, finding.communicator(), job))
                .filter(Objects::nonNull)
                .map(Place::of)
                .toList();
        boolean recorded =
                job.records().stream().anyMatch(record -> finding.jobRanks().contains(record.jobRank()));
        return new NextStep(places, text(finding, places, recorded));
    }

    /** The record of a rank of the job, in the communicator if it has one there; null without one that has the process. */
    private static RankRecord record(int rank, String communicator, Job job) {
        return Stream.concat(
                        job.communicators().stream()
                                .filter(one -> one.label().equals(communicator))
                                .flatMap(one -> one.records().stream()),
                        job.records().stream())
                // Records of torch do not have the number.
                .filter(record ->
                        record.jobRank() == rank && record.header().process.matches("\\d+"))
                .findFirst()
                .orElse(null);
    }

    private static String text(Finding finding, List<Place> places, boolean recorded) {
        List<String> remedies = ErrorsPage.find(finding.helpId()).orElseThrow().remedies();
        return switch (finding.id()) {
            case "rank.missing" ->
                places.isEmpty()
                        ? sentence(remedies, recorded ? WITH_RECORD : WITHOUT_RECORD)
                        : "jstack " + places.get(0).process() + places.get(0).at() + " if it still runs, else its log";
            case "operation.stuck" ->
                places.stream().allMatch(place -> place.host().isEmpty())
                        ? sentence(remedies, "")
                        : "nccl4j doctor on " + hosts(places);
            default -> sentence(remedies, "");
        };
    }

    private static String hosts(List<Place> places) {
        return listed(places.stream()
                .map(Place::host)
                .filter(host -> !host.isEmpty())
                .distinct()
                .toList());
    }

    /** The first words, and the number of the others. */
    private static String listed(List<String> all) {
        List<String> words = new ArrayList<>(all.subList(0, Math.min(MAX_LISTED, all.size())));
        if (all.size() > MAX_LISTED) {
            words.add("and " + (all.size() - MAX_LISTED) + " more");
        }
        return String.join(", ", words);
    }

    /** The first remedy that begins with some words, without these, in the middle of a sentence. */
    private static String sentence(List<String> remedies, String begin) {
        String remedy = remedies.stream()
                .filter(one -> one.startsWith(begin))
                .findFirst()
                .orElseThrow()
                .substring(begin.length());
        return Character.toLowerCase(remedy.charAt(0)) + remedy.substring(1).replaceFirst("\\.$", "");
    }

    /** "Rank 2 is process 102 of node0, rank 3 process 103 of node0. "; empty if no process is known. */
    String where() {
        List<String> each = places.stream()
                .map(place -> "rank " + place.rank() + (place == places.get(0) ? " is process " : " process ")
                        + place.process() + (place.host().isEmpty() ? "" : " of " + place.host()))
                .toList();
        return each.isEmpty() ? "" : "R" + listed(each).substring(1) + ". ";
    }

    /** The step as the end of a report of the finding. */
    String next() {
        return "Next: " + text + ".";
    }
}

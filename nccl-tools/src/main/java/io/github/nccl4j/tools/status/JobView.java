package io.github.nccl4j.tools.status;

import io.github.nccl4j.launch.JobStatus;
import io.github.nccl4j.launch.RankStatus;
import io.github.nccl4j.launch.RankStatus.State;
import io.github.nccl4j.tools.analyze.Ranks;
import io.github.nccl4j.tools.support.HelpIds;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;

/** The state of a job at one time: its ranks with their communicators, and the findings. */
final class JobView {
    private static final double NANOS = 1e9;

    /** The functions other than operations that all ranks call. */
    private static final Set<String> COLLECTIVE_CALLS =
            Set.of("ncclCommSplit", "ncclCommGrow", "ncclCommWindowRegister", "ncclCommFinalize");

    /** An operation that takes so long is more likely to wait for others. */
    private static final double STUCK_SECONDS = 2;

    /**
     * A rank.
     *
     * @param communicators the answers about its communicators
     * @param texts the texts that the program added
     */
    record Row(RankStatus status, List<CommunicatorView> communicators, Map<String, String> texts) {
        int rank() {
            return status.rank();
        }
    }

    /**
     * A finding for the user.
     *
     * @param id a key of {@link HelpIds}
     */
    record Finding(String id, List<Integer> ranks, String text) {
        String helpId() {
            return HelpIds.BY_FINDING.get(id);
        }
    }

    private final JobStatus job;
    private final Duration timeout;
    private final List<Row> rows = new ArrayList<>();
    /** The most collectives that a rank has called, by communicator. */
    private final Map<String, Long> fronts = new LinkedHashMap<>();

    private final List<Finding> findings = new ArrayList<>();

    JobView(JobStatus job, Duration timeout) {
        this.job = job;
        this.timeout = timeout;
        for (RankStatus status : job.ranks()) {
            List<CommunicatorView> communicators = new ArrayList<>();
            Map<String, String> texts = new TreeMap<>();
            status.texts().forEach((topic, text) -> {
                CommunicatorView view = CommunicatorView.read(text);
                if (view == null) {
                    texts.put(topic, text);
                } else {
                    communicators.add(view);
                    if (view.collectives != null) {
                        fronts.merge(view.id, view.collectives, Math::max);
                    }
                }
            });
            communicators.sort((one, other) -> one.id.compareTo(other.id));
            rows.add(new Row(status, communicators, texts));
        }
        findStates();
        findFailures();
        findBehind();
        findCalls();
        findOrders();
    }

    JobStatus job() {
        return job;
    }

    List<Row> rows() {
        return rows;
    }

    List<Finding> findings() {
        return findings;
    }

    int answered() {
        return (int) rows.stream()
                .filter(row -> row.status.state() == State.ANSWERED)
                .count();
    }

    /** The number of collectives that others have called and this rank has not; null if not known. */
    Long behind(CommunicatorView view) {
        return view.collectives == null ? null : (Long) (fronts.get(view.id) - view.collectives);
    }

    /** The most that a rank is behind in any of its communicators. */
    long behind(Row row) {
        return row.communicators.stream()
                .mapToLong(view -> behind(view) == null ? 0 : behind(view))
                .max()
                .orElse(0);
    }

    /* Findings. */

    private void findStates() {
        Map<State, List<RankStatus>> byState = new EnumMap<>(State.class);
        rows.forEach(row -> byState.computeIfAbsent(row.status.state(), state -> new ArrayList<>())
                .add(row.status));
        for (RankStatus rank : byState.getOrDefault(State.SILENT, List.of())) {
            add(
                    "rank.silent",
                    List.of(rank.rank()),
                    "Rank " + rank.rank() + " (" + rank.process() + ") has been silent for "
                            + Texts.seconds(rank.silence().toNanos() / NANOS)
                            + ": its process is stopped, or can't be reached");
        }
        addAll(
                byState,
                State.NO_ANSWER,
                "rank.unanswered",
                " did not answer within " + Texts.seconds(timeout.toNanos() / NANOS));
        for (RankStatus rank : byState.getOrDefault(State.LOST, List.of())) {
            add(
                    "rank.lost",
                    List.of(rank.rank()),
                    "Rank " + rank.rank() + " (" + rank.process() + ") is lost: its connection to the store has ended");
        }
        List<RankStatus> absent = byState.getOrDefault(State.MISSING, List.of());
        addAll(byState, State.MISSING, "rank.absent", absent.size() == 1 ? " has not joined" : " have not joined");
    }

    private void addAll(Map<State, List<RankStatus>> byState, State state, String id, String predicate) {
        List<Integer> ranks = byState.getOrDefault(state, List.of()).stream()
                .map(RankStatus::rank)
                .toList();
        if (!ranks.isEmpty()) {
            add(id, ranks, Ranks.title(ranks) + predicate);
        }
    }

    private void findFailures() {
        Map<String, List<Integer>> byText = new LinkedHashMap<>();
        for (Row row : rows) {
            for (CommunicatorView view : row.communicators) {
                if (view.failure != null) {
                    byText.computeIfAbsent(view.label(), text -> new ArrayList<>())
                            .add(row.rank());
                }
            }
        }
        byText.forEach((label, ranks) ->
                add("rank.failed", ranks, "Communicator " + label + " has failed at " + Ranks.text(ranks)));
    }

    /** Ranks that have called fewer collectives than those that wait. */
    private void findBehind() {
        Map<String, List<Integer>> behind = new LinkedHashMap<>();
        Map<String, List<Integer>> front = new LinkedHashMap<>();
        Map<String, CommunicatorView> waiting = new HashMap<>();
        Map<String, Long> most = new HashMap<>();
        for (Row row : rows) {
            for (CommunicatorView view : row.communicators) {
                Long lag = behind(view);
                if (lag == null) {
                    continue;
                }
                if (lag > 0) {
                    behind.computeIfAbsent(view.id, id -> new ArrayList<>()).add(row.rank());
                    most.merge(view.id, lag, Math::max);
                } else if (view.operation != null) {
                    front.computeIfAbsent(view.id, id -> new ArrayList<>()).add(row.rank());
                    waiting.merge(view.id, view, JobView::longer);
                }
            }
        }
        behind.forEach((id, ranks) -> {
            CommunicatorView view = waiting.get(id);
            if (view != null) {
                add(
                        "rank.behind",
                        ranks,
                        Ranks.title(ranks) + (ranks.size() == 1 ? " is " : " are up to ") + most.get(id)
                                + (most.get(id) == 1 ? " collective" : " collectives") + " behind in communicator "
                                + view.label() + ", in which " + Ranks.text(front.get(id)) + " wait"
                                + (front.get(id).size() == 1 ? "s in " : " in ") + view.position());
            }
        });
    }

    /** Ranks that have not made a call, such as a split, in which others wait. */
    private void findCalls() {
        Map<String, List<Integer>> waiting = new LinkedHashMap<>();
        Map<String, CommunicatorView> first = new HashMap<>();
        for (Row row : rows) {
            for (CommunicatorView view : row.communicators) {
                if (view.call != null && COLLECTIVE_CALLS.contains(view.call)) {
                    waiting.computeIfAbsent(view.id, id -> new ArrayList<>()).add(row.rank());
                    first.putIfAbsent(view.id, view);
                }
            }
        }
        waiting.forEach((id, ranks) -> {
            CommunicatorView view = first.get(id);
            List<Integer> absent = rows.stream()
                    .filter(row -> row.communicators.stream()
                            .anyMatch(one -> one.id.equals(id)
                                    && !view.call.equals(one.call)
                                    && "OPEN".equals(one.state)
                                    && one.failure == null))
                    .map(Row::rank)
                    .toList();
            if (!absent.isEmpty()) {
                add(
                        "rank.behind",
                        absent,
                        Ranks.title(absent) + (absent.size() == 1 ? " has" : " have") + " not called " + view.call
                                + " of communicator " + view.label() + ", in which " + Ranks.text(ranks) + " wait"
                                + (ranks.size() == 1 ? "s" : "")
                                + (view.callSeconds == null ? "" : " for " + Texts.seconds(view.callSeconds)));
            }
        });
    }

    /** Operations that all ranks have called, of communicators whose operations are in one stream. */
    private void findOrders() {
        Map<List<String>, List<Integer>> ranks = new LinkedHashMap<>();
        Map<String, CommunicatorView> views = new HashMap<>();
        for (Row row : rows) {
            List<CommunicatorView> waiting =
                    row.communicators.stream().filter(this::isStuck).toList();
            waiting.forEach(view -> views.putIfAbsent(view.id, view));
            for (CommunicatorView one : waiting) {
                for (CommunicatorView other : waiting) {
                    if (one.id.compareTo(other.id) < 0 && one.stream.equals(other.stream)) {
                        ranks.computeIfAbsent(List.of(one.id, other.id), pair -> new ArrayList<>())
                                .add(row.rank());
                    }
                }
            }
        }
        ranks.forEach((pair, where) -> {
            if (where.size() > 1 && pair.stream().noneMatch(this::hasRankBehind)) {
                add(
                        "order.communicators",
                        where,
                        Ranks.title(where) + " wait in "
                                + pair.stream()
                                        .map(views::get)
                                        .map(view -> view.position() + " of communicator " + view.label())
                                        .collect(Collectors.joining(" and in "))
                                + ", called in one stream: ranks that call them in different orders wait for each other");
            }
        });
    }

    private boolean isStuck(CommunicatorView view) {
        return view.operation != null
                && view.stream != null
                && view.seconds != null
                && view.seconds >= STUCK_SECONDS
                && view.failure == null;
    }

    private boolean hasRankBehind(String id) {
        return rows.stream()
                .flatMap(row -> row.communicators.stream())
                .anyMatch(view -> view.id.equals(id) && !Long.valueOf(0).equals(behind(view)));
    }

    private static CommunicatorView longer(CommunicatorView one, CommunicatorView other) {
        return other.seconds != null && (one.seconds == null || other.seconds > one.seconds) ? other : one;
    }

    private void add(String id, List<Integer> ranks, String text) {
        findings.add(new Finding(id, List.copyOf(ranks), text));
    }
}

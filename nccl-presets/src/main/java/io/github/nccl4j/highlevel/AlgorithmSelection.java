package io.github.nccl4j.highlevel;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * Which of NCCL's algorithms a collective may use, for {@link CollectiveConfig.Builder#algorithm(AlgorithmSelection)}.
 *
 * <pre>{@code
 * AlgorithmSelection either = AlgorithmSelection.of("ring_ll").or(AlgorithmSelection.TREE); // ring_ll,tree
 * AlgorithmSelection others = AlgorithmSelection.SYMMETRIC.not(); // ^symk
 * }</pre>
 *
 * <p>A name stands for all algorithms whose names begin with it, in upper or lower case: "ring" for ring_ll, ring_ll128 and
 * ring_simple. A release of NCCL has its own names; NCCL refuses a name that it does not know. An all-reduce has rings,
 * trees, collnet, NVLS and kernels for symmetric windows; an all-gather and a reduce-scatter have all of these but the
 * trees, and PAT; a broadcast and a reduce have rings alone. An all-to-all, a gather and a scatter have no algorithms with
 * names, and refuse every selection that is forced.
 *
 * <p>Instances are immutable values and may be used in any thread.
 *
 * @see <a href="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api/types.html">NCCL: ncclCollConfig_t</a>
 */
public final class AlgorithmSelection {
    private static final Pattern NAME = Pattern.compile("[a-z0-9_]+");

    /** From rank to rank in a ring. */
    public static final AlgorithmSelection RING = of("ring");

    /** Up and down two trees. */
    public static final AlgorithmSelection TREE = of("tree");

    /** Reduction in a switch of the network, which each rank talks to. */
    public static final AlgorithmSelection COLLNET_DIRECT = of("collnet_direct");

    /** Reduction in a switch of the network, at the end of a chain of ranks. */
    public static final AlgorithmSelection COLLNET_CHAIN = of("collnet_chain");

    /** Reduction and multicast in the NVLink switch. */
    public static final AlgorithmSelection NVLS = of("nvls_");

    /** Reduction and multicast in the NVLink switches, and trees between these. */
    public static final AlgorithmSelection NVLS_TREE = of("nvlstree");

    /** Parallel aggregated trees. */
    public static final AlgorithmSelection PAT = of("pat");

    /** Kernels that work on symmetric windows directly. */
    public static final AlgorithmSelection SYMMETRIC = of("symk");

    /** Any of these, each of them names that must all be right, with a caret before those that must not. */
    private final Set<Set<String>> alternatives;

    private AlgorithmSelection(Set<Set<String>> alternatives) {
        this.alternatives = alternatives;
    }

    /**
     * The algorithms of a text as NCCL takes it: beginnings of names, with a comma for "or", a plus for "and", which binds
     * more, and a caret for "not" before a name.
     *
     * @param selection the text, such as "ring" or "tree,ring+^ring_ll"; spaces are left out
     * @return the selection
     * @throws IllegalArgumentException if there is no name in it, or one is missing after a plus or a caret, or has other
     *     characters than letters, digits and underscores
     */
    public static AlgorithmSelection of(String selection) {
        String text = selection.replaceAll("[ \t\r\n]", "").toLowerCase(Locale.ROOT);
        Set<Set<String>> alternatives = new LinkedHashSet<>();
        for (String alternative : text.split(",")) {
            if (!alternative.isEmpty()) {
                alternatives.add(names(alternative, selection));
            }
        }
        if (alternatives.isEmpty()) {
            throw new IllegalArgumentException("selection must name an algorithm: '" + selection + "'");
        }
        return new AlgorithmSelection(alternatives);
    }

    private static Set<String> names(String alternative, String selection) {
        Set<String> names = new LinkedHashSet<>(Arrays.asList(alternative.split("\\+", -1)));
        for (String name : names) {
            String plain = name.startsWith("^") ? name.substring(1) : name;
            if (!NAME.matcher(plain).matches()) {
                throw new IllegalArgumentException(
                        "selection must have names of letters, digits and '_', with ',' for or, '+' for and, '^' for not: '"
                                + selection.replace("\0", "\\0") + "'");
            }
        }
        return names;
    }

    /**
     * The algorithms of this selection and those of another.
     *
     * @param other the other selection
     * @return the union
     */
    public AlgorithmSelection or(AlgorithmSelection other) {
        Set<Set<String>> either = new LinkedHashSet<>(alternatives);
        either.addAll(other.alternatives);
        return new AlgorithmSelection(either);
    }

    /**
     * The algorithms of this selection that another has, too. NCCL refuses a selection that leaves none.
     *
     * @param other the other selection
     * @return the intersection
     */
    public AlgorithmSelection and(AlgorithmSelection other) {
        Set<Set<String>> both = new LinkedHashSet<>();
        for (Set<String> ours : alternatives) {
            for (Set<String> theirs : other.alternatives) {
                Set<String> names = new LinkedHashSet<>(ours);
                names.addAll(theirs);
                both.add(names);
            }
        }
        return new AlgorithmSelection(both);
    }

    /**
     * All algorithms but those of this selection.
     *
     * @return the complement
     */
    public AlgorithmSelection not() {
        List<AlgorithmSelection> others = new ArrayList<>();
        for (Set<String> names : alternatives) {
            Set<Set<String>> any = new LinkedHashSet<>();
            names.forEach(name -> any.add(Set.of(name.startsWith("^") ? name.substring(1) : "^" + name)));
            others.add(new AlgorithmSelection(any));
        }
        return others.stream().reduce(AlgorithmSelection::and).orElseThrow();
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof AlgorithmSelection selection && alternatives.equals(selection.alternatives);
    }

    @Override
    public int hashCode() {
        return Objects.hash(alternatives);
    }

    /** {@return the text that NCCL takes, in lower case: "tree,ring+^ring_ll"} */
    @Override
    public String toString() {
        return alternatives.stream().map(names -> String.join("+", names)).collect(Collectors.joining(","));
    }
}

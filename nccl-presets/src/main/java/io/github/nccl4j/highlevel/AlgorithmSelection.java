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
 * A selection of NCCL's algorithms for a collective; see {@link
 * CollectiveConfig.Builder#algorithm(AlgorithmSelection)}.
 *
 * <pre>{@code
 * AlgorithmSelection either = AlgorithmSelection.of("ring_ll").or(AlgorithmSelection.TREE); // ring_ll,tree
 * AlgorithmSelection others = AlgorithmSelection.SYMMETRIC.not(); // ^symk
 * }</pre>
 *
 * <p>A name selects all algorithms whose names begin with it, in upper or lower case: "ring" selects ring_ll,
 * ring_ll128 and ring_simple. The names depend on the release of NCCL; NCCL refuses a name that it does not know.
 * All-reduce has rings, trees, collnet, NVLS and kernels for symmetric windows. All-gather and reduce-scatter have the
 * same algorithms without trees, and also PAT. Broadcast and reduce have rings only. All-to-all, gather and scatter
 * have no algorithms with names, and refuse every forced selection.
 *
 * <p>Instances are immutable values and may be used in any thread.
 *
 * @see <a href="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api/types.html">NCCL: ncclCollConfig_t</a>
 * @since 0.1
 */
public final class AlgorithmSelection {
    private static final Pattern NAME = Pattern.compile("[a-z0-9_]+");

    /** Rings: data moves from rank to rank. */
    public static final AlgorithmSelection RING = of("ring");

    /** Double binary trees: data moves up and down two trees. */
    public static final AlgorithmSelection TREE = of("tree");

    /** Reduction in a switch of the network, with which every rank communicates directly. */
    public static final AlgorithmSelection COLLNET_DIRECT = of("collnet_direct");

    /** Reduction in a switch of the network, at the end of a chain of ranks. */
    public static final AlgorithmSelection COLLNET_CHAIN = of("collnet_chain");

    /** Reduction and multicast in the NVLink switch. */
    public static final AlgorithmSelection NVLS = of("nvls_");

    /** Reduction and multicast in the NVLink switches, with trees between the switches. */
    public static final AlgorithmSelection NVLS_TREE = of("nvlstree");

    /** Parallel aggregated trees. */
    public static final AlgorithmSelection PAT = of("pat");

    /** Kernels that access symmetric windows directly. */
    public static final AlgorithmSelection SYMMETRIC = of("symk");

    /** Disjunction of conjunctions of names; a caret before a name negates it. */
    private final Set<Set<String>> alternatives;

    private AlgorithmSelection(Set<Set<String>> alternatives) {
        this.alternatives = alternatives;
    }

    /**
     * Parses a selection in NCCL's syntax: prefixes of names, with a comma for "or", a plus for "and", and a caret
     * before a name for "not". Plus binds stronger than comma.
     *
     * @param selection the text, such as "ring" or "tree,ring+^ring_ll"; spaces are ignored
     * @return the selection
     * @throws IllegalArgumentException if the text has no name, a name is missing next to a plus or after a caret, or
     *     a name has characters other than letters, digits and underscores
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
     * Returns the algorithms of this selection and those of another.
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
     * Returns the algorithms that this selection and another have in common. NCCL refuses a selection without any
     * algorithm.
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
     * Returns all algorithms except those of this selection.
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

    /** Returns true if every algorithm of this selection has a name with the given beginning. */
    boolean needs(String prefix) {
        return alternatives.stream().allMatch(names -> names.stream().anyMatch(name -> name.startsWith(prefix)));
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof AlgorithmSelection selection && alternatives.equals(selection.alternatives);
    }

    @Override
    public int hashCode() {
        return Objects.hash(alternatives);
    }

    /** {@return the selection in NCCL's syntax, in lower case, such as "tree,ring+^ring_ll"} */
    @Override
    public String toString() {
        return alternatives.stream().map(names -> String.join("+", names)).collect(Collectors.joining(","));
    }
}

package io.github.nccl4j.highlevel;

import io.github.nccl4j.library.Engine;

/**
 * Algorithms of NCCL that return wrong elements or fail in some calls. These calls exclude the algorithm by a
 * {@link CollectiveConfig}.
 *
 * <p>Observed with 2.31.2 and 2.32.3. The sources of the releases up to 2.30.7 do not choose PAT for these operators.
 */
enum FaultyAlgorithm {
    /** Reduce-scatter with AVG or a created operator returns the unscaled sum. */
    PAT("pat", "reduce-scatter with AVG or PreMulSum", "returns the unscaled sum"),
    /** All-reduce with AVG of small floats fails and makes the communicator unusable. */
    SYMMETRIC("symk", "all-reduce with AVG of this type", "has no kernel for it");

    /** First release with the fault of PAT, and first release with configurations. */
    private static final Version SINCE = new Version(2, 31, 2);

    /** The beginning of the names of the algorithm's variants. */
    final String prefix;

    private final String call;
    private final String effect;

    FaultyAlgorithm(String prefix, String call, String effect) {
        this.prefix = prefix;
        this.call = call;
        this.effect = effect;
    }

    /** Returns true if calls of a library must exclude these algorithms. */
    static boolean mustBeExcluded(NcclLibrary library) {
        return library.engine() == Engine.NCCL && mustBeExcluded(library.version());
    }

    /** Returns true if a release chooses the algorithms in error, and its calls can exclude them. */
    static boolean mustBeExcluded(Version version) {
        return version.isAtLeast(SINCE);
    }

    String refusal(AlgorithmSelection selection) {
        return "algorithm must not force " + prefix + " for " + call + ", NCCL " + effect + " then: '" + selection
                + "'";
    }
}

package io.github.nccl4j.internal.config;

import io.github.nccl4j.highlevel.Version;
import io.github.nccl4j.library.Engine;

/**
 * Algorithms of NCCL that return wrong elements or fail in some calls. These calls exclude the algorithm by a
 * configuration.
 *
 * <p>Observed with 2.31.2 and 2.32.3. The sources of the releases up to 2.30.7 do not choose PAT for these operators.
 */
public enum FaultyAlgorithm {
    /** Reduce-scatter with AVG or a created operator returns the unscaled sum. */
    PAT("pat", "reduce-scatter with AVG or PreMulSum", "returns the unscaled sum"),
    /** All-reduce with AVG of small floats fails and makes the communicator unusable. */
    SYMMETRIC("symk", "all-reduce with AVG of this type", "has no kernel for it");

    /** First release with the fault of PAT, and first release with configurations. */
    private static final Version SINCE = new Version(2, 31, 2);

    /** The beginning of the names of the algorithm's variants. */
    public final String prefix;

    private final String call;
    private final String effect;

    FaultyAlgorithm(String prefix, String call, String effect) {
        this.prefix = prefix;
        this.call = call;
        this.effect = effect;
    }

    /** Returns true if calls of a library must exclude these algorithms. */
    public static boolean mustBeExcluded(Engine engine, Version version) {
        return engine == Engine.NCCL && mustBeExcluded(version);
    }

    /** Returns true if a release chooses the algorithms in error, and its calls can exclude them. */
    public static boolean mustBeExcluded(Version version) {
        return version.isAtLeast(SINCE);
    }

    public String refusal(Object selection) {
        return "algorithm must not force " + prefix + " for " + call + ", NCCL " + effect + " then: '" + selection
                + "'";
    }
}

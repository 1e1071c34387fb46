package io.github.nccl4j.internal.config;

import io.github.nccl4j.highlevel.CtaPolicy;
import io.github.nccl4j.highlevel.Version;
import io.github.nccl4j.internal.log.HelpText;
import io.github.nccl4j.library.Engine;
import java.lang.System.Logger.Level;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Faults that users of NCCL report, and that depend on hardware or timing, so that no call can be refused for them. A
 * program that may meet one gets a warning, once in a process. docs/known-faults.md names the reports; none was
 * reproduced here.
 */
public final class ReportedFaults {
    private static final Set<String> WARNED = ConcurrentHashMap.newKeySet();

    /** First release that does not lose slots of its network thread on arm64 (nccl#2353). */
    private static final Version ARM64 = new Version(2, 29, 3);

    /** First release with right copy-engine collectives of two ranks (nccl#2241) and several windows in an allocation (nccl#2198). */
    private static final Version WINDOWS = new Version(2, 31, 2);

    private ReportedFaults() {}

    /** Logs a warning if this is its first time in the process. Does nothing for null. */
    public static void warnOnce(String warning) {
        if (warning != null && WARNED.add(warning)) {
            System.getLogger("io.github.nccl4j").log(Level.WARNING, warning);
        }
    }

    /** Returns the warning about a library on a processor, or null. */
    public static String ofLibrary(Engine engine, Version version, String architecture) {
        return engine != Engine.NCCL || !architecture.equals("aarch64") || version.isAtLeast(ARM64)
                ? null
                : "NCCL " + version + " may hang on arm64 when ranks communicate through a network; use NCCL " + ARM64
                        + " or newer" + HelpText.of("NCCL4J-0135");
    }

    /** Returns the warning about the set fields of a configuration, or null. */
    public static String ofConfig(Engine engine, Version version, Map<String, Object> fields) {
        return engine != Engine.NCCL || version.isAtLeast(WINDOWS) || fields.get("CTAPolicy") != CtaPolicy.ZERO
                ? null
                : "with the policy ZERO of NCCL " + version + ", the first collective between two ranks in symmetric"
                        + " windows may hang; NCCL " + WINDOWS + " does not";
    }

    /** Returns the warning about the set fields of a configuration for a split, or null. */
    public static String ofSplit(Engine engine, Map<String, Object> fields) {
        return engine != Engine.NCCL || !fields.containsKey("nvlsCTAs")
                ? null
                : "if a parent with splitShare has more nvlsCTAs than its child, and the child is the first to run a"
                        + " collective with NVLS, the parent's first one accesses memory that is not mapped: call a"
                        + " collective of the parent first";
    }

    /** Returns the warning about a symmetric window in memory that has another one, or null. */
    public static String ofSharedMemory(Engine engine, Version version) {
        return engine != Engine.NCCL || version.isAtLeast(WINDOWS)
                ? null
                : "NCCL " + version + " may return wrong elements in symmetric windows that share one allocation, and"
                        + " runs out of addresses if it is registered often: register each allocation once";
    }
}

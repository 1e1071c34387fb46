package io.github.nccl4j.internal.operation;

import io.github.nccl4j.highlevel.DataType;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.Version;
import io.github.nccl4j.library.Engine;
import java.lang.System.Logger.Level;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Known faults of NCCL with memory in windows and with registered memory. Refuses calls for which NCCL's kernels for
 * symmetric windows return wrong elements or fail. Logs one warning about faults that depend on several calls.
 *
 * <p>Observed with 2.28.3, 2.28.9 and 2.30.7. The sources of the releases in the constants have the corrections.
 */
public final class RegistrationFaults {
    private static final Version FIRST = new Version(2, 27, 3);
    /** First release that copies blocks of any size, and distinguishes the operations of a group. */
    private static final Version ANY_SIZE = new Version(2, 28, 7);
    /**
     * First release in which a collective reads from a null address if its memory was used by send or receive before.
     * {@link #DIRECT_FOR_ALL} corrects this.
     */
    private static final Version DIRECT = new Version(2, 23, 4);

    private static final Version DIRECT_FOR_ALL = new Version(2, 29, 2);
    /** First release that uses these kernels if only one of the buffers is in a window. */
    private static final Version ONE_WINDOW = new Version(2, 29, 2);
    /** First release that reads elements at any alignment. */
    private static final Version ANY_PLACE = new Version(2, 30, 3);

    /** First release, up to 2.32.3 at least, that chooses kernels for all-reduce with AVG which were not built. */
    private static final Version NO_AVERAGE = new Version(2, 30, 3);

    private static final int WORD = 4;
    private static final int PACK = 8;

    private static final AtomicBoolean WARNED = new AtomicBoolean();

    private RegistrationFaults() {}

    public static boolean affect(NcclLibrary library) {
        return affect(library.engine(), library.version());
    }

    public static boolean affect(Engine engine, Version version) {
        return engine != Engine.HOST && version.isAtLeast(FIRST) && !version.isAtLeast(ANY_PLACE);
    }

    /** Logs, once in a process, a warning about faults that no single call shows and that therefore can't be refused. */
    public static void warnOnce(NcclLibrary library) {
        warnOnce(warning(library.engine(), library.version()));
    }

    public static void warnOnce(String warning) {
        if (warning != null && WARNED.compareAndSet(false, true)) {
            System.getLogger("io.github.nccl4j").log(Level.WARNING, warning);
        }
    }

    /** Returns null if there is nothing to warn of. */
    public static String warning(Engine engine, Version version) {
        if (engine == Engine.HOST || !version.isAtLeast(DIRECT) || version.isAtLeast(DIRECT_FOR_ALL)) {
            return null;
        }
        String text = "NCCL " + version
                + " makes GPUs read from a null address in a large collective on registered memory or a"
                + " window after a send from or a receive into that memory; use memory for one of both only, or set"
                + " NCCL_LOCAL_REGISTER=0, or use NCCL " + DIRECT_FOR_ALL;
        return version.isAtLeast(ANY_SIZE) || !version.isAtLeast(FIRST)
                ? text
                : text
                        + "; it may return wrong elements where a group has several small operations on symmetric windows; "
                        + ANY_SIZE + " does not";
    }

    public static boolean usesKernels(Version version, boolean sendInWindow, boolean recvInWindow) {
        return version.isAtLeast(ONE_WINDOW) ? sendInWindow || recvInWindow : sendInWindow && recvInWindow;
    }

    /**
     * The reason why an operation returns wrong elements, or null.
     *
     * @param version a version with faults
     * @param operation the operation
     * @param send the address of the send buffer
     * @param count the number of elements as in the C function
     * @param size the size of an element in bytes
     */
    public static String wrongResult(Version version, OperationKind operation, long send, long count, int size) {
        boolean scatters = operation == OperationKind.REDUCE_SCATTER;
        boolean inBlocks = scatters || operation == OperationKind.ALL_GATHER;
        if (!inBlocks && operation != OperationKind.ALL_REDUCE) {
            return null;
        }
        long block = count * size;
        if (inBlocks && block % PACK != 0 && !version.isAtLeast(ANY_SIZE)) {
            return "in symmetric windows, the block of a rank must have a multiple of " + PACK + " bytes, not " + block
                    + " (" + count + " elements): " + wrongUntil(version, ANY_SIZE);
        }
        if (size < WORD && send % WORD != 0) {
            return "in symmetric windows, the send buffer must begin at a multiple of " + WORD + " bytes, not at 0x"
                    + Long.toHexString(send) + ": " + wrongUntil(version, ANY_PLACE);
        }
        if (size < WORD && scatters && block % WORD != 0) {
            return "in symmetric windows, the block of a rank must have a multiple of " + WORD + " bytes, not " + block
                    + " (" + count + " elements): " + wrongUntil(version, ANY_PLACE);
        }
        return null;
    }

    /** The reason why an all-reduce with AVG fails and makes the communicator unusable, or null. */
    public static String missingAverage(Version version, DataType type) {
        return !lacksAverage(version, type)
                ? null
                : "in symmetric windows, all-reduce has no AVG of "
                        + ElementType.values().get(type.code()) + ": NCCL " + version
                        + " has no kernel for it; use memory outside of windows, or SUM and a scale";
    }

    /** True if NCCL chooses a kernel for all-reduce with AVG that it does not have. */
    public static boolean lacksAverage(Version version, DataType type) {
        return switch (type) {
            case FLOAT16, FLOAT32, BFLOAT16, FLOAT8_E4M3, FLOAT8_E5M2 -> version.isAtLeast(NO_AVERAGE);
            default -> false;
        };
    }

    private static String wrongUntil(Version version, Version fixed) {
        return "NCCL " + version + " returns wrong elements, " + fixed + " does not";
    }
}

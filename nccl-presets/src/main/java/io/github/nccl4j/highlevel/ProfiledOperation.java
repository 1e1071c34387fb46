package io.github.nccl4j.highlevel;

import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.Locale;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalLong;

/**
 * An operation as NCCL's profiler interface reports it: the algorithm that NCCL chose, and the times of the kernel.
 *
 * <p><b>Times.</b> A kernel has several channels. It starts with the first channel and ends with the last one, by the clock of
 * the GPU. The kernel waits for the other ranks, so its time includes their delays. {@link #queued} compares
 * the clocks of CPU and GPU, whose difference is estimated from the smallest delay between an event and its report; it is
 * too long by some microseconds.
 *
 * <p>Instances are immutable and may be used in any thread.
 *
 * @param communicator NCCL's id of the communicator, the same on all ranks; 0 if not known
 * @param name the name of the communicator; empty if it has none
 * @param rank the rank in the communicator; -1 if not known
 * @param size the number of ranks; 0 if not known
 * @param nodes the number of nodes of the communicator; 0 if not known
 * @param function the C function without a configuration, such as "ncclAllReduce"
 * @param sequence the number of the operation in the {@link FlightRecorder} of the communicator; empty for sends and receives,
 *     for operations that the recorder does not have any more, and for communicators of other code
 * @param number for a collective, NCCL's number among the calls of its function, from 0; for a send or receive, the number
 *     since the recording began
 * @param count the number of elements that the call passed; NCCL counts the bytes of some functions
 * @param type NCCL's name of the element type, such as "ncclFloat32"
 * @param bytes the size of these elements; 0 if the type is not known
 * @param peer the root or the other rank; 0 for operations without one
 * @param algorithm NCCL's name of the algorithm, such as "RING"; empty for sends and receives
 * @param protocol NCCL's name of the protocol, such as "SIMPLE"; empty for sends and receives
 * @param channels the number of channels of the kernel; 0 if NCCL does not report its kernel
 * @param warps the number of warps of a channel
 * @param tag the profiler tag of the {@link CollectiveConfig}; 0 if there is none, and with NCCL before 2.31
 * @param launched the time at which NCCL launched the operation
 * @param queued the time from the launch to the start of the kernel; empty if the kernel was not reported
 * @param kernelTime the time from the start of the kernel to its end; empty if the kernel was not reported
 * @see Profiler
 * @since 0.1
 */
@Incubating
public record ProfiledOperation(
        long communicator,
        String name,
        int rank,
        int size,
        int nodes,
        String function,
        OptionalLong sequence,
        long number,
        long count,
        String type,
        long bytes,
        int peer,
        String algorithm,
        String protocol,
        int channels,
        int warps,
        long tag,
        Instant launched,
        Optional<Duration> queued,
        Optional<Duration> kernelTime) {

    /**
     * Returns the algorithm bandwidth: the bytes of the operation, as nccl-tests counts them, by the time of the kernel.
     *
     * @return the bandwidth in 10^9 bytes per second; empty if the time or the size is not known
     */
    public OptionalDouble algorithmBandwidth() {
        if (kernelTime.isEmpty() || kernelTime.get().isZero() || bytes == 0) {
            return OptionalDouble.empty();
        }
        double all = (double) bytes * (isOfAllRanks() ? size : 1);
        return OptionalDouble.of(all / kernelTime.get().toNanos());
    }

    /**
     * Returns the bus bandwidth: the algorithm bandwidth with the factor by which nccl-tests makes it comparable to the
     * bandwidth of the links.
     *
     * @return the bandwidth in 10^9 bytes per second; empty if the time or the size is not known
     */
    public OptionalDouble busBandwidth() {
        OptionalDouble algorithm = algorithmBandwidth();
        return algorithm.isEmpty() ? algorithm : OptionalDouble.of(algorithm.getAsDouble() * busFactor(function, size));
    }

    private boolean isOfAllRanks() {
        return switch (function) {
            case "ncclAllGather", "ncclReduceScatter", "ncclAlltoAll", "ncclGather", "ncclScatter" -> true;
            default -> false;
        };
    }

    /**
     * Returns the ratio of the bus bandwidth to the algorithm bandwidth.
     *
     * @param function a C function without a configuration, such as "ncclAllReduce"
     * @param ranks the number of ranks, at least 1
     * @return the ratio, as in the documentation of nccl-tests
     */
    public static double busFactor(String function, int ranks) {
        return switch (function) {
            case "ncclAllReduce" -> 2.0 * (ranks - 1) / ranks;
            case "ncclAllGather", "ncclReduceScatter", "ncclAlltoAll", "ncclAlltoAllv", "ncclGather", "ncclScatter" ->
                (ranks - 1.0) / ranks;
            default -> 1;
        };
    }

    /** The size of an element by NCCL's name of its type; 0 if it is not known. */
    static int elementSize(String type) {
        String plain = type.toLowerCase(Locale.ROOT);
        return Arrays.stream(DataType.values())
                .filter(one -> plain.equals(
                        "nccl" + one.name().toLowerCase(Locale.ROOT).replace("_", "")))
                .mapToInt(DataType::size)
                .findFirst()
                .orElse(0);
    }
}

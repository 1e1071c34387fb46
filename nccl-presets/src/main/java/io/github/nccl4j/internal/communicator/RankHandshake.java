package io.github.nccl4j.internal.communicator;

import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.internal.config.SharedGpus;
import io.github.nccl4j.internal.cuda.Cuda;
import io.github.nccl4j.internal.cuda.NativeDevice;
import io.github.nccl4j.internal.log.HostName;
import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.TcpStore;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;

/**
 * Handshake of the ranks before they create a communicator. They exchange their library and GPU, so that an impossible
 * combination throws instead of hanging, and then the id.
 */
public final class RankHandshake {
    private static final String SEPARATOR = "\n";
    private static final Duration REPORT_TIMEOUT = Duration.ofSeconds(5);

    /** Number of the next communicator of the job; all ranks create them in the same order. */
    private static final AtomicLong JOB_SEQUENCE = new AtomicLong();

    private final Rendezvous rendezvous;
    private final Duration deadline;

    public RankHandshake(Rendezvous rendezvous, Duration deadline) {
        this.rendezvous = rendezvous;
        this.deadline = deadline;
    }

    /** Returns the rendezvous of the job's ranks for their next communicator. */
    public static Rendezvous nextOfJob(RankInfo self, Duration deadline) {
        return TcpStore.ofProcess(self, deadline).scope("communicator-" + JOB_SEQUENCE.getAndIncrement());
    }

    /** Library and device of a rank, as text for the other ranks. The GPU is empty if ranks may share it. */
    private record Description(String engine, String gpu, String location) {
        static Description of(NcclLibrary library, int device) {
            boolean isAlone = device != NativeDevice.HOST_NUMBER && !library.sharesGpus();
            String gpu = isAlone ? Cuda.uuid(device) : "";
            String location =
                    device == NativeDevice.HOST_NUMBER ? NativeDevice.HOST.toString() : NativeDevice.nameOf(device);
            return new Description(library.engine().toString(), gpu, location + " of " + HostName.get());
        }

        byte[] bytes() {
            return String.join(SEPARATOR, engine, gpu, location).getBytes(StandardCharsets.UTF_8);
        }

        static Description of(byte[] bytes, int rank) {
            String[] lines = new String(bytes, StandardCharsets.UTF_8).split(SEPARATOR, 3);
            if (lines.length < 3) {
                throw new RendezvousException(
                        "all ranks must create a communicator here: rank " + rank + " sent something else");
            }
            return new Description(lines[0], lines[1], lines[2]);
        }
    }

    /**
     * Checks this rank's device before the rank waits for rank 0, which may be late, or may have failed for the same
     * reason. Reports a failure to the other ranks if rank 0 can be reached within 5 s.
     */
    public static void requireDevice(OwnDevice own, RankInfo self) {
        try {
            own.index();
        } catch (RuntimeException | Error failure) {
            try {
                report(nextOfJob(self, REPORT_TIMEOUT), failure);
            } catch (RendezvousException unreachable) {
                failure.addSuppressed(unreachable);
            }
            throw failure;
        }
    }

    /** Calls a function; if it fails, reports the failure to the other ranks and throws it. */
    public <T> T orReport(Supplier<T> own) {
        try {
            return own.get();
        } catch (RuntimeException | Error failure) {
            report(rendezvous, failure);
            throw failure;
        }
    }

    private static void report(Rendezvous others, Throwable failure) {
        others.abort(failure.getMessage() == null ? failure.toString() : failure.getMessage());
    }

    /** Returns this rank with its local rank, without which its device cannot be chosen. */
    public RankInfo locate(OwnDevice own, RankInfo self) {
        orReport(own::index);
        return rendezvous.locate(self, deadline);
    }

    /** Exchanges the descriptions of all ranks and checks that they fit together. Collective. */
    public void exchangeDescriptions(OwnDevice own) {
        Description description = orReport(() -> {
            int device = own.index();
            return Description.of(NcclLibrary.get(), device);
        });
        // Gathered before the id is broadcast: when all have come, no rank is still in the last use of these keys.
        requireConsistent(rendezvous.gather("card", description.bytes(), deadline));
    }

    /** Returns the id that rank 0 created, on all ranks. Collective. */
    public byte[] broadcastId(Supplier<byte[]> created) {
        return rendezvous.broadcast("id", 0, created, deadline);
    }

    /** Every rank has the same descriptions, and therefore gets the same result. */
    private static void requireConsistent(List<byte[]> descriptions) {
        Description first = Description.of(descriptions.get(0), 0);
        Map<String, Integer> owners = new HashMap<>();
        for (int rank = 0; rank < descriptions.size(); rank++) {
            Description description = Description.of(descriptions.get(rank), rank);
            if (!description.engine.equals(first.engine)) {
                throw new RendezvousException("all ranks must use the same engine: rank 0 uses " + first.engine
                        + ", rank " + rank + " uses " + description.engine + " (" + description.location + ")");
            }
            Integer other = description.gpu.isEmpty() ? null : owners.put(description.gpu, rank);
            if (other != null) {
                throw new RendezvousException("two ranks can't use one GPU: rank " + other + " and rank " + rank
                        + " both use " + description.gpu + ", " + description.location
                        + "; start one rank for each GPU, or give each rank its own device; NCCL " + SharedGpus.SINCE
                        + " and newer share a GPU if all ranks set " + SharedGpus.VARIABLE + "=1");
            }
        }
    }
}

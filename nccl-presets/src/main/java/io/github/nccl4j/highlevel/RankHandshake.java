package io.github.nccl4j.highlevel;

import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.TcpStore;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;

/**
 * What ranks tell each other before they make a communicator: what library and GPU each has, so that what can't work is an
 * exception and not a wait, and the id.
 */
final class RankHandshake {
    private static final String SEPARATOR = "\n";
    private static final Path HOST_NAME = Path.of("/proc/sys/kernel/hostname");
    private static final Duration REPORT_TIMEOUT = Duration.ofSeconds(5);

    /** Communicators of all ranks of the job are made in the same order. */
    private static final AtomicLong JOB_SEQUENCE = new AtomicLong();

    private final Rendezvous rendezvous;
    private final Duration deadline;

    RankHandshake(Rendezvous rendezvous, Duration deadline) {
        this.rendezvous = rendezvous;
        this.deadline = deadline;
    }

    /** Where the ranks of the job meet for their next communicator. */
    static Rendezvous nextOfJob(RankInfo self, Duration deadline) {
        return TcpStore.ofProcess(self, deadline).scope("communicator-" + JOB_SEQUENCE.getAndIncrement());
    }

    /** What a rank is, in words for the others. */
    private record Description(String engine, String gpu, String location) {
        static Description of(NcclLibrary library, int device) {
            String gpu = device == OwnDevice.HOST ? "" : Cuda.uuid(device);
            String location = device == OwnDevice.HOST ? Device.host().toString() : Device.cudaName(device);
            return new Description(library.engine().toString(), gpu, location + " of " + host());
        }

        /** From the kernel: InetAddress would ask a name server, which may take its time. */
        private static String host() {
            try {
                return Files.readString(HOST_NAME).strip();
            } catch (IOException nameless) {
                return "this host";
            }
        }

        byte[] bytes() {
            return String.join(SEPARATOR, engine, gpu, location).getBytes(StandardCharsets.UTF_8);
        }

        static Description of(byte[] bytes, int rank) {
            String[] lines = new String(bytes, StandardCharsets.UTF_8).split(SEPARATOR, 3);
            if (lines.length < 3) {
                throw new RendezvousException(
                        "rank " + rank + " does not make a communicator here, but something else");
            }
            return new Description(lines[0], lines[1], lines[2]);
        }
    }

    /**
     * Finds what is wrong with this rank before it waits for rank 0, which may come late, or be gone for the same reason.
     * The others are told if rank 0 can be reached soon.
     */
    static void requireDevice(OwnDevice own, RankInfo self) {
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

    /** Calls a function of this rank; the others are told when it fails. */
    <T> T orReport(Supplier<T> own) {
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

    /** Finds the local rank of a rank whose device can't be chosen without it. */
    RankInfo locate(OwnDevice own, RankInfo self) {
        orReport(own::index);
        return rendezvous.locate(self, deadline);
    }

    /** Meets the other ranks, which tell each other what they have. */
    void exchangeDescriptions(OwnDevice own) {
        Description description = orReport(() -> {
            int device = own.index();
            return Description.of(NcclLibrary.get(), device);
        });
        // Gathered before the id is handed out: when all have come, no rank is still in the last use of these keys.
        requireConsistent(rendezvous.gather("card", description.bytes(), deadline));
    }

    /** Returns the id that rank 0 has made, at all ranks. */
    UniqueId broadcastId(UniqueId made) {
        return UniqueId.of(rendezvous.broadcast("id", 0, () -> made.toBytes(), deadline));
    }

    /** Every rank has the same descriptions, and so comes to the same answer. */
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
                        + "; start one rank for each GPU, or give each rank its own device");
            }
        }
    }
}

package io.github.nccl4j.samples.support;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.library.Engine;
import io.github.nccl4j.library.NativeLibrary;
import io.github.nccl4j.nccl.ncclUniqueId;
import java.nio.ByteBuffer;
import java.time.Duration;
import org.bytedeco.javacpp.LongPointer;
import org.bytedeco.javacpp.Pointer;

/**
 * One rank's communicator, device and stream.
 *
 * <p>Opening is collective. {@link #close()} frees everything after success; {@link #abort()} gives up the communicator after a failure,
 * so that nobody waits for this rank. Not thread-safe.
 */
public final class RankSession implements AutoCloseable {

    private final RankInfo self;
    private final RankMemory device;
    private final boolean onHost;
    private long comm;
    private long barrierCell;

    private RankSession(RankInfo self, RankMemory device, boolean onHost) {
        this.self = self;
        this.device = device;
        this.onHost = onHost;
    }

    /**
     * Opens the device, meets the other ranks and makes the communicator.
     *
     * @param self this process
     * @param timeout how long to wait for the other ranks
     * @return the session
     */
    public static RankSession open(RankInfo self, Duration timeout) {
        Engine engine = NativeLibrary.engine();
        if (engine == Engine.RCCL) {
            throw new NcclError(
                    "the samples have no access to the memory of AMD GPUs; library: " + NativeLibrary.path());
        }
        RankMemory device = engine == Engine.HOST ? RankMemory.onHost() : RankMemory.onGpu(self);
        RankSession session = new RankSession(self, device, engine == Engine.HOST);
        try {
            session.join(new IdExchange(self, timeout).exchange(session::makeId));
            return session;
        } catch (RuntimeException | Error failure) {
            session.abort();
            throw failure;
        }
    }

    private byte[] makeId() {
        try (ncclUniqueId id = new ncclUniqueId()) {
            check(nccl.ncclGetUniqueId(id), "ncclGetUniqueId");
            byte[] bytes = new byte[id.sizeof()];
            bytes(id).get(bytes);
            return bytes;
        }
    }

    private void join(byte[] bytes) {
        try (ncclUniqueId id = new ncclUniqueId();
                LongPointer cell = new LongPointer(1)) {
            if (bytes.length != id.sizeof()) {
                throw new RendezvousException(
                        "the unique id has " + bytes.length + " bytes, this rank's bindings expect " + id.sizeof());
            }
            bytes(id).put(bytes);
            cell.put(0);
            check(
                    nccl.ncclCommInitRank(cell.address(), self.worldSize(), id.address(), self.rank()),
                    "ncclCommInitRank");
            comm = cell.get();
        }
    }

    private static ByteBuffer bytes(ncclUniqueId id) {
        return new Pointer(id).limit(id.sizeof()).capacity(id.sizeof()).asByteBuffer();
    }

    /** {@return who this rank is} */
    public RankInfo self() {
        return self;
    }

    /** {@return the memory and stream of this rank} */
    public RankMemory device() {
        return device;
    }

    /** {@return the communicator's handle} */
    public long comm() {
        return comm;
    }

    /** {@return whether the host engine runs} */
    public boolean onHost() {
        return onHost;
    }

    /**
     * Checks a result.
     *
     * @param result what the function returned
     * @param operation its name
     * @throws NcclError if it is not success
     */
    public void check(int result, String operation) {
        NcclError.check(result, operation, self.rank(), comm);
    }

    /** Lets every rank wait for every other, by a tiny all-reduce. */
    public void barrier() {
        if (barrierCell == 0) {
            barrierCell = device.allocate(Float.BYTES);
            device.set(barrierCell, 0, Float.BYTES);
        }
        check(
                nccl.ncclAllReduce(barrierCell, barrierCell, 1, nccl.ncclFloat, nccl.ncclSum, comm, device.stream()),
                "ncclAllReduce");
        device.synchronize();
    }

    /** Gives up the communicator; what is under way ends with an error. */
    public void abort() {
        if (comm != 0) {
            long handle = comm;
            comm = 0;
            // The failure that led here is being reported; the result of giving up would only hide it.
            nccl.ncclCommAbort(handle);
        }
    }

    @Override
    public void close() {
        if (comm != 0) {
            long handle = comm;
            comm = 0;
            NcclError.check(nccl.ncclCommDestroy(handle), "ncclCommDestroy", self.rank(), 0);
            device.close();
        }
    }
}

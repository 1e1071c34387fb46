package io.github.nccl4j.extensions;

import io.github.nccl4j.extensions.global.nccl_m2n;
import io.github.nccl4j.extensions.library.ExtensionException;
import io.github.nccl4j.extensions.library.ExtensionLibrary;
import io.github.nccl4j.extensions.nccl_m2n.ncclDistTensor_t;
import io.github.nccl4j.extensions.nccl_m2n.ncclMesh_t;
import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.Version;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.bytedeco.javacpp.IntPointer;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.SizeTPointer;

/** A copy of a tensor by NCCL M2N: the descriptors of both layouts in native memory, and a handle of the library. */
final class M2nCopy implements AutoCloseable {
    private static final Version OLDEST_NCCL = Version.of(nccl_m2n.NCCL_M2N_MIN_NCCL_VERSION_CODE);

    private final Communicator communicator;
    private final DistributedTensor<?> source;
    private final DistributedTensor<?> target;
    private final List<Pointer> owned = new ArrayList<>();
    private final ncclDistTensor_t from;
    private final ncclDistTensor_t to;
    private long handle;

    /** Memory that the tensor owns. */
    private static final class Memory extends Pointer {
        Memory(long address) {
            super((Pointer) null);
            this.address = address;
        }
    }

    M2nCopy(Communicator communicator, DistributedTensor<?> source, DistributedTensor<?> target) {
        this.communicator = communicator;
        this.source = source;
        this.target = target;
        from = describe(source);
        to = describe(target);
        try (SizeTPointer cell = new SizeTPointer(1)) {
            require(nccl_m2n.ncclM2nInit(cell.address(), 0), "ncclM2nInit");
            handle = cell.get();
        } catch (RuntimeException e) {
            free();
            throw e;
        }
    }

    /** True if this process has the library and an NCCL with which it runs. */
    static boolean isAvailable(Communicator communicator) {
        return communicator.isBlocking()
                && ExtensionLibrary.M2N.isAvailable()
                && NcclLibrary.get().version().isAtLeast(OLDEST_NCCL);
    }

    /** True if layouts are within the limits of the library; the same for all ranks. */
    static boolean canMove(TensorLayout from, TensorLayout to, int ranks) {
        Mesh one = from.mesh();
        Mesh other = to.mesh();
        boolean isApart = one.firstRank() + one.size() <= other.firstRank()
                || other.firstRank() + other.size() <= one.firstRank();
        return isWithinLimits(from) && isWithinLimits(to) && (isApart || ranks == 1);
    }

    private static boolean isWithinLimits(TensorLayout layout) {
        long[] shape = layout.shape();
        int shards = 0;
        for (int i = 0; i < layout.mesh().dimensions(); i++) {
            Placement placement = layout.placements().get(i);
            if (placement.isShard()) {
                shards++;
                if (shape[placement.dimension()] % layout.mesh().length(i) != 0) {
                    return false;
                }
            }
        }
        return shards <= 1
                && shape.length <= nccl_m2n.NCCL_RESHARD_MAX_TENSOR_DIMS
                && layout.mesh().dimensions() <= nccl_m2n.NCCL_RESHARD_MAX_MESH_DIMS
                && layout.elements(layout.mesh().firstRank()) > 0;
    }

    private ncclDistTensor_t describe(DistributedTensor<?> tensor) {
        TensorLayout layout = tensor.layout();
        int dimensions = layout.mesh().dimensions();
        IntPointer lengths = keep(new IntPointer(dimensions));
        IntPointer placements = keep(new IntPointer(dimensions));
        for (int i = 0; i < dimensions; i++) {
            Placement placement = layout.placements().get(i);
            lengths.put(i, layout.mesh().length(i));
            placements.put(i, placement.isShard() ? placement.dimension() : nccl_m2n.NCCL_RESHARD_REPLICATE);
        }
        ncclMesh_t mesh = keep(new ncclMesh_t())
                .ndims(dimensions)
                .dims(lengths)
                .startRank(layout.mesh().firstRank());
        // All parts are alike; a rank outside the mesh gives their shape, too.
        long[] shape = layout.shape(layout.mesh().firstRank());
        return keep(new ncclDistTensor_t())
                .localShape(keep(new SizeTPointer(shape)))
                .ndims(shape.length)
                .dtype(tensor.type().nativeCode())
                .mesh(mesh)
                .placements(placements)
                .dataPtr(tensor.local().map(part -> new Memory(part.address())).orElse(null));
    }

    private <P extends Pointer> P keep(P pointer) {
        owned.add(pointer);
        return pointer;
    }

    void run(CudaStream stream) {
        if (handle == 0) {
            throw new IllegalStateException("the plan is closed");
        }
        // Throws if a tensor is closed.
        source.local().ifPresent(DeviceBuffer::address);
        target.local().ifPresent(DeviceBuffer::address);
        int result = nccl_m2n.ncclReshard(
                handle, communicator.nativeHandle(), from.address(), to.address(), stream.nativeHandle());
        require(result, "ncclReshard");
    }

    private static void require(int code, String function) {
        if (code != nccl.ncclSuccess) {
            throw new ExtensionException(function, code, nccl_m2n.ncclM2nGetLastError());
        }
    }

    @Override
    public void close() {
        if (handle != 0) {
            long closed = handle;
            handle = 0;
            free();
            require(nccl_m2n.ncclM2nFinalize(closed), "ncclM2nFinalize");
        }
    }

    private void free() {
        Collections.reverse(owned);
        owned.forEach(Pointer::close);
    }
}

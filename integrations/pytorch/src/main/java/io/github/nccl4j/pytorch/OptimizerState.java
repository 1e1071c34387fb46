package io.github.nccl4j.pytorch;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.ReduceOp;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.PointerScope;
import org.bytedeco.pytorch.ArchiveWriter;
import org.bytedeco.pytorch.DeviceOptional;
import org.bytedeco.pytorch.InputArchive;
import org.bytedeco.pytorch.Optimizer;
import org.bytedeco.pytorch.OutputArchive;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorOptions;
import org.bytedeco.pytorch.global.torch;
import org.bytedeco.pytorch.global.torch.ScalarType;

/** The state of an optimizer as the bytes of PyTorch's archive: the presets give no access to the state itself. */
final class OptimizerState {
    private OptimizerState() {}

    /**
     * Copies rank 0's state and settings to the other ranks. Collective.
     *
     * @throws IllegalArgumentException on every rank, if a rank has state of more parameters than rank 0: the presets cannot
     *     remove it
     */
    static void broadcast(Communicator communicator, Optimizer optimizer) {
        try (PointerScope scope = new PointerScope()) {
            TensorCollectives collectives = TensorCollectives.of(communicator);
            org.bytedeco.pytorch.Device device = TensorBuffer.torchDevice(communicator.device());
            Tensor own = save(optimizer);
            long count = count(load(own, device));
            Tensor most = onDevice(torch.tensor(new long[] {count}), device);
            collectives.allReduce(most, ReduceOp.MAX);
            Tensor first = onDevice(torch.tensor(new long[] {count, own.numel()}), device);
            collectives.broadcast(first, 0);
            long expected = first.get(0).item_long();
            if (most.item_long() > expected) {
                throw new IllegalArgumentException("no rank must have optimizer state of more parameters than rank 0: "
                        + most.item_long() + " > " + expected + "; create the optimizers of all ranks anew");
            }
            Tensor sent =
                    onDevice(communicator.rank() == 0 ? own : bytes(first.get(1).item_long()), device);
            collectives.broadcast(sent, 0);
            if (communicator.rank() != 0) {
                optimizer.load(load(sent.cpu(), device));
            }
        }
    }

    private static Tensor onDevice(Tensor tensor, org.bytedeco.pytorch.Device device) {
        return tensor.to(device, tensor.scalar_type());
    }

    private static Tensor bytes(long length) {
        return torch.zeros(new long[] {length}, new TensorOptions(ScalarType.Byte));
    }

    /** Returns the archive in a tensor, since it may be longer than an array. */
    private static Tensor save(Optimizer optimizer) {
        OutputArchive archive = new OutputArchive();
        optimizer.save(archive);
        Writer counted = new Writer(null);
        archive.save_to(counted);
        Tensor bytes = bytes(counted.length);
        archive.save_to(new Writer(bytes.data_ptr()));
        return bytes;
    }

    /** Counts the bytes of an archive, and copies them. */
    private static final class Writer extends ArchiveWriter {
        /** Null to count only. */
        private final Pointer target;

        private long length;

        Writer(Pointer target) {
            this.target = target;
        }

        @Override
        public long call(Pointer data, long count) {
            if (target != null) {
                memcpy(new BytePointer(target).position(length), data, count);
            }
            length += count;
            return count;
        }
    }

    /** Reads an archive, with its tensors on a device, which need not be that of the rank that wrote it. */
    private static InputArchive load(Tensor bytes, org.bytedeco.pytorch.Device device) {
        InputArchive archive = new InputArchive();
        archive.load_from(new BytePointer(bytes.data_ptr()), bytes.numel(), new DeviceOptional(device));
        return archive;
    }

    /** Returns of how many parameters there is state. */
    private static long count(InputArchive archive) {
        InputArchive state = new InputArchive();
        return archive.try_read("state", state) ? state.keys().size() : 0;
    }
}

package io.github.nccl4j.examples;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.library.NativeLibrary;
import io.github.nccl4j.pytorch.TensorBuffer;
import io.github.nccl4j.pytorch.TensorCollectives;
import java.util.Locale;
import java.util.Set;
import org.bytedeco.javacpp.PointerScope;
import org.bytedeco.openblas.presets.openblas_nolapack;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.global.torch;
import org.bytedeco.pytorch.global.torch.DeviceType;

/** The steps that all examples share, before and after their job. */
final class Setup {
    private Setup() {}

    /** Prepares PyTorch: before any other use of it. */
    static void begin() {
        // Ranks that start at the same time must not unpack it at the same time.
        NativeLibrary.unpack(torch.class);
        // The ranks of one machine share its processors.
        torch.set_num_threads(1);
        // OpenBLAS has threads of its own, which poll for work.
        openblas_nolapack.blas_set_num_threads(1);
        if (torch.cuda_is_available()) {
            // Otherwise products of floats have 10 bits, and the bounds do not hold.
            torch.globalContext().setAllowTF32CuBLAS(false);
        }
    }

    /**
     * Reads the value of an option.
     *
     * @param args the arguments: names and values in turn
     * @param name the name
     * @param unless the value if the option is not given
     * @param known the names of all options
     */
    static int option(String[] args, String name, int unless, String... known) {
        int value = unless;
        for (int i = 0; i < args.length; i += 2) {
            if (!Set.of(known).contains(args[i])) {
                throw new IllegalArgumentException("no such option: " + args[i]);
            }
            if (args[i].equals(name)) {
                value = Integer.parseInt(args[i + 1]);
            }
        }
        if (value < 1) {
            throw new IllegalArgumentException(name + " must be at least 1: " + value);
        }
        return value;
    }

    /** Copies a tensor to the communicator's device. */
    static Tensor on(Device device, Tensor tensor) {
        return device.isHost()
                ? tensor
                : tensor.to(
                        new org.bytedeco.pytorch.Device(DeviceType.CUDA, (byte) device.index()), tensor.scalar_type());
    }

    /** Waits until all ranks are here, and the work of this rank's device is done. */
    static void barrier(Communicator communicator) {
        try (PointerScope scope = new PointerScope()) {
            TensorCollectives.of(communicator).allReduce(on(communicator.device(), torch.zeros(1)), ReduceOp.SUM);
            communicator.work(TensorBuffer.currentStream(communicator.device())).await();
        }
    }

    /**
     * Compares a result with that of one rank.
     *
     * @return the error and the bound as text; the error is relative to the largest value
     * @throws IllegalStateException if the error exceeds the bound
     */
    static String requireClose(String name, Tensor actual, Tensor expected, double bound) {
        double largest = expected.abs().max().item_double();
        double error = actual.sub(expected).abs().max().item_double() / largest;
        // Not "error > bound", which a NaN is not.
        if (!(error <= bound)) {
            throw new IllegalStateException(
                    name + " must be those of one rank within " + bound + " of the largest: error " + error);
        }
        return String.format(Locale.ROOT, "error %.1e, bound %.0e", error, bound);
    }
}

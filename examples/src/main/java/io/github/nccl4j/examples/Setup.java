package io.github.nccl4j.examples;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.library.NativeLibrary;
import io.github.nccl4j.pytorch.TensorBuffer;
import io.github.nccl4j.pytorch.TensorCollectives;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.function.Supplier;
import org.bytedeco.javacpp.PointerScope;
import org.bytedeco.openblas.presets.openblas_nolapack;
import org.bytedeco.pytorch.DeviceOptional;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorOptions;
import org.bytedeco.pytorch.global.torch;
import org.bytedeco.pytorch.global.torch.ScalarType;

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
     * Reads the options of a program.
     *
     * @param args names and values in turn
     * @param defaults the names of all options, and their values if they are not given. An option is at least 1; if its default
     *     is 0, it is at least 0
     * @return the values by name
     */
    static Map<String, Integer> options(String[] args, String defaults) {
        Map<String, Integer> least = new HashMap<>();
        Map<String, Integer> values = new HashMap<>();
        String[] words = defaults.split(" ");
        for (int i = 0; i < words.length; i += 2) {
            values.put(words[i], Integer.parseInt(words[i + 1]));
            least.put(words[i], Math.min(values.get(words[i]), 1));
        }
        for (int i = 0; i < args.length; i += 2) {
            if (!values.containsKey(args[i])) {
                throw new IllegalArgumentException("no such option: " + args[i]);
            }
            int value = Integer.parseInt(args[i + 1]);
            if (value < least.get(args[i])) {
                throw new IllegalArgumentException(args[i] + " must be at least " + least.get(args[i]) + ": " + value);
            }
            values.put(args[i], value);
        }
        return values;
    }

    /** {@return the options of tensors of a type on a device} */
    static TensorOptions options(Device device, ScalarType type) {
        return new TensorOptions(type).device(new DeviceOptional(TensorBuffer.torchDevice(device)));
    }

    /** Makes normally distributed numbers: the same on all ranks after the same seed. */
    static Tensor random(Device device, ScalarType type, long... shape) {
        return torch.randn(shape, options(device, type));
    }

    static Tensor zeros(Device device, ScalarType type, long... shape) {
        return torch.zeros(shape, options(device, type));
    }

    /** Returns a tensor; the others that are made on the way go, so that their memory serves others. */
    static Tensor kept(Supplier<Tensor> making) {
        Tensor made;
        try (PointerScope scope = new PointerScope()) {
            made = making.get().retainReference();
        }
        PointerScope around = PointerScope.getInnerScope();
        if (around != null) {
            around.attach(made);
            made.releaseReference();
        }
        return made;
    }

    /** A learning rate in proportion to the first weights: with larger steps, rounding errors would grow from step to step. */
    static double learningRate(double width) {
        return 0.3 / width;
    }

    /** Waits until this rank's work is done. */
    static void finish(Communicator communicator) {
        communicator.work(TensorBuffer.currentStream(communicator.device())).await();
    }

    /** Waits until all ranks are here, and this rank's work is done. */
    static void barrier(Communicator communicator) {
        try (PointerScope scope = new PointerScope()) {
            Tensor one = zeros(communicator.device(), ScalarType.Float, 1);
            TensorCollectives.of(communicator).allReduce(one, ReduceOp.SUM);
            finish(communicator);
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

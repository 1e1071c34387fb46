package io.github.nccl4j.pytorch;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element;
import io.github.nccl4j.highlevel.ReduceOp;
import java.util.List;
import org.bytedeco.javacpp.PointerScope;
import org.bytedeco.pytorch.Scalar;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorBase;
import org.bytedeco.pytorch.global.torch.ScalarType;

/**
 * Gradients that travel together: one flat tensor, with a view for each parameter, and behind the gradients a flag for each
 * parameter, which is 1 if it took part in this rank's backward pass. The average of a flag is above 0 if it did on any rank.
 *
 * <p>Not thread-safe: the owner locks.
 */
final class GradientBucket implements AutoCloseable {
    private final List<ModelParameter> parameters;
    private final Tensor flat;
    private final Tensor flags;
    private final TensorBuffer<?> buffer;
    private final boolean[] used;
    private int missing;

    /** The caller has switched off the recording of gradients. */
    GradientBucket(List<ModelParameter> parameters, ScalarType type) {
        this.parameters = List.copyOf(parameters);
        used = new boolean[parameters.size()];
        try (PointerScope scope = new PointerScope()) {
            long gradients =
                    parameters.stream().mapToLong(ModelParameter::length).sum();
            Tensor zeros = parameters.get(0).tensor().new_zeros(gradients + parameters.size());
            flat = zeros.to(type).retainReference();
            flags = flat.narrow(0, gradients, parameters.size()).retainReference();
            long offset = 0;
            for (int i = 0; i < parameters.size(); i++) {
                ModelParameter parameter = parameters.get(i);
                Tensor part = flat.narrow(0, offset, parameter.length());
                // Not a view for autograd, which refuses to detach those: optimizers detach gradients.
                TensorBase view = part.view(parameter.tensor().sizes()).variable_data();
                parameter.assign(this, i, new Tensor(view).retainReference());
                offset += parameter.length();
            }
            buffer = TensorBuffer.of(flat);
        }
        reset();
    }

    List<ModelParameter> parameters() {
        return parameters;
    }

    /** Prepares the next backward pass. */
    void reset() {
        missing = parameters.size();
        parameters.forEach(ModelParameter::expect);
    }

    /** Called when the gradient of one more parameter is in its view. */
    void add(int index, boolean used) {
        this.used[index] = used;
        missing--;
    }

    boolean isComplete() {
        return missing == 0;
    }

    /** Begins the average over the ranks, in a stream that begins behind the work that filled it. */
    void launch(Communicator communicator, CudaStream stream) {
        average(buffer.buffer(), communicator, stream);
    }

    /** Writes the flags, in PyTorch's stream. */
    void seal() {
        try (PointerScope scope = new PointerScope()) {
            flags.fill_(new Scalar(1.0));
            for (int i = 0; i < used.length; i++) {
                if (!used[i]) {
                    flags.narrow(0, i, 1).fill_(new Scalar(0.0));
                }
            }
        }
    }

    private static <T extends Element> void average(
            DeviceBuffer<T> buffer, Communicator communicator, CudaStream stream) {
        communicator.allReduce(buffer, ReduceOp.AVG, stream);
    }

    /** Returns true if a parameter took part in the backward pass of any rank. Waits for the device. */
    boolean isUsedAnywhere(int index) {
        try (PointerScope scope = new PointerScope()) {
            return flags.narrow(0, index, 1).item_double() > 0;
        }
    }

    /** Closes the tensors. Only when no operation works with them. */
    @Override
    public void close() {
        buffer.close();
        flags.close();
        flat.close();
    }
}

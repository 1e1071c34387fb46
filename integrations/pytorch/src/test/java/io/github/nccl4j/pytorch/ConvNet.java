package io.github.nccl4j.pytorch;

import java.util.ArrayList;
import java.util.List;
import org.bytedeco.javacpp.LongPointer;
import org.bytedeco.javacpp.PointerScope;
import org.bytedeco.pytorch.Conv2dImpl;
import org.bytedeco.pytorch.LinearImpl;
import org.bytedeco.pytorch.Module;
import org.bytedeco.pytorch.SGD;
import org.bytedeco.pytorch.SGDOptions;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorVector;
import org.bytedeco.pytorch.global.torch;
import org.bytedeco.pytorch.global.torch.ScalarType;

/** A small convolutional network, and images with a bar that is upright or lies, made from their number. */
final class ConvNet implements AutoCloseable {
    static final int SIDE = 12;

    final Module module = new Module("ConvNet");
    private final Conv2dImpl first;
    private final Conv2dImpl second;
    private final LinearImpl last;
    private final SGD optimizer;
    private final ScalarType type;

    /** The same weights for the same seed. */
    ConvNet(long seed, ScalarType type) {
        this.type = type;
        torch.manual_seed(seed);
        try (PointerScope scope = new PointerScope()) {
            first = module.register_module("first", new Conv2dImpl(1, 8, new LongPointer(3, 3)))
                    .retainReference();
            second = module.register_module("second", new Conv2dImpl(8, 16, new LongPointer(3, 3)))
                    .retainReference();
            last = module.register_module("last", new LinearImpl(16 * 8 * 8, 2)).retainReference();
            module.to(type, false);
            optimizer = new SGD(module.parameters(), new SGDOptions(0.3)).retainReference();
        }
    }

    /** Returns images as a batch. */
    Tensor images(int from, int to) {
        double[] pixels = new double[(to - from) * SIDE * SIDE];
        for (int image = from; image < to; image++) {
            int bar = 1 + image / 2 % (SIDE - 2);
            for (int i = 0; i < SIDE * SIDE; i++) {
                boolean inBar = (image % 2 == 0 ? i % SIDE : i / SIDE) == bar;
                double noise = (image * 31 + i * 17) % 64 / 128.0;
                pixels[(image - from) * SIDE * SIDE + i] = (inBar ? 1 : 0) + noise;
            }
        }
        return torch.tensor(pixels).to(type).view(to - from, 1, SIDE, SIDE);
    }

    static Tensor labels(int from, int to) {
        long[] labels = new long[to - from];
        for (int image = from; image < to; image++) {
            labels[image - from] = image % 2;
        }
        return torch.tensor(labels);
    }

    /** Returns the mean of the loss over images. */
    Tensor loss(int from, int to) {
        Tensor hidden = second.forward(first.forward(images(from, to)).relu()).relu();
        return torch.cross_entropy_loss(last.forward(hidden.flatten(1, 3)), labels(from, to));
    }

    SGD optimizer() {
        return optimizer;
    }

    /** Returns all weights, in the order of the parameters. */
    double[] weights() {
        List<double[]> parts = new ArrayList<>();
        int length = 0;
        try (PointerScope scope = new PointerScope()) {
            TensorVector parameters = module.parameters();
            for (long i = 0; i < parameters.size(); i++) {
                Tensor flat = parameters
                        .get(i)
                        .detach()
                        .to(ScalarType.Double)
                        .flatten()
                        .contiguous();
                double[] part = new double[(int) flat.numel()];
                flat.data_ptr_double().get(part);
                parts.add(part);
                length += part.length;
            }
        }
        double[] all = new double[length];
        int offset = 0;
        for (double[] part : parts) {
            System.arraycopy(part, 0, all, offset, part.length);
            offset += part.length;
        }
        return all;
    }

    @Override
    public void close() {
        optimizer.close();
        first.close();
        second.close();
        last.close();
        module.close();
    }
}

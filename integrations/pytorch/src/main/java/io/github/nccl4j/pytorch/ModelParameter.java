package io.github.nccl4j.pytorch;

import org.bytedeco.javacpp.PointerScope;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorBase;
import org.bytedeco.pytorch.VoidTensorHook;

/** A parameter with a gradient, and its part of a bucket. Not thread-safe: the owner locks. */
final class ModelParameter implements AutoCloseable {
    private final String name;
    private final Tensor tensor;
    private GradientBucket bucket;
    private int index;
    /** The part of the bucket, in the shape of the parameter. */
    private Tensor view;

    private boolean filled;
    private Hook hook;
    private int hookId;

    /** Takes over the tensor. */
    ModelParameter(String name, Tensor tensor) {
        this.name = name;
        this.tensor = tensor;
    }

    /** The callback that gets a gradient before autograd adds it to the parameter's own. */
    interface Listener {
        void gradient(ModelParameter parameter, TensorBase gradient);
    }

    /**
     * Autograd calls it in a thread of its own, or in that of the backward pass. An exception that left it would end the
     * backward pass in the middle, so the listener throws none. JavaCPP holds the object weakly: the parameter keeps it.
     */
    private static final class Hook extends VoidTensorHook {
        private final ModelParameter parameter;
        private final Listener listener;

        Hook(ModelParameter parameter, Listener listener) {
            this.parameter = parameter;
            this.listener = listener;
        }

        @Override
        public void call(TensorBase gradient) {
            try (TensorBase closed = gradient) {
                listener.gradient(parameter, closed);
            }
        }
    }

    void listen(Listener listener) {
        try (PointerScope scope = new PointerScope()) {
            hook = new Hook(this, listener).retainReference();
            hookId = tensor.register_hook(hook);
        }
    }

    void assign(GradientBucket bucket, int index, Tensor view) {
        this.bucket = bucket;
        this.index = index;
        this.view = view;
    }

    String name() {
        return name;
    }

    Tensor tensor() {
        return tensor;
    }

    long length() {
        return tensor.numel();
    }

    GradientBucket bucket() {
        return bucket;
    }

    boolean isFilled() {
        return filled;
    }

    void expect() {
        filled = false;
    }

    /**
     * Copies the sum of a gradient and the parameter's own, which earlier passes without communication have left, into the
     * bucket.
     *
     * @param gradient that of this pass, or null if the parameter took no part
     */
    void fill(TensorBase gradient) {
        filled = true;
        Tensor own = tensor.grad();
        boolean present = own.defined();
        if (present && sharesView(own)) {
            // The result of the last step. Autograd adds to it in place, while the bucket is on its way.
            own = own.clone();
            tensor.mutable_grad().put(own);
        }
        if (gradient != null) {
            view.copy_(new Tensor(gradient));
            if (present) {
                view.add_(own);
            }
        } else if (present) {
            view.copy_(own);
        } else {
            view.zero_();
        }
        bucket.add(index, gradient != null || present);
    }

    private boolean sharesView(Tensor own) {
        return own.data_ptr().equals(view.data_ptr());
    }

    /** Makes the average the parameter's gradient; without a copy, if it has the right type. */
    void take() {
        Tensor own = tensor.mutable_grad();
        if (!own.defined() && !bucket.isUsedAnywhere(index)) {
            return;
        }
        boolean sameType = view.scalar_type().intern() == tensor.scalar_type().intern();
        if (sameType) {
            own.put(view);
        } else {
            own.put(view.to(tensor.scalar_type()));
        }
    }

    /** Forgets the gradient. */
    void drop() {
        tensor.mutable_grad().put(new Tensor());
    }

    @Override
    public void close() {
        if (hook != null) {
            // First, since autograd's copy of the hook refers to the object.
            tensor.remove_hook(hookId);
            hook.close();
        }
        if (view != null) {
            if (tensor.grad().defined() && sharesView(tensor.grad())) {
                // The gradient keeps the memory of the whole bucket: give it its own.
                try (PointerScope scope = new PointerScope()) {
                    tensor.mutable_grad().put(tensor.grad().clone());
                }
            }
            view.close();
        }
        tensor.close();
    }
}

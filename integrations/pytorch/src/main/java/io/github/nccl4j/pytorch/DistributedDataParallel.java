package io.github.nccl4j.pytorch;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaEvent;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.NcclException;
import io.github.nccl4j.highlevel.Recovery;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.bytedeco.javacpp.PointerScope;
import org.bytedeco.pytorch.Module;
import org.bytedeco.pytorch.NoGradGuard;
import org.bytedeco.pytorch.Optimizer;
import org.bytedeco.pytorch.StringTensorDict;
import org.bytedeco.pytorch.StringVector;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorBase;
import org.bytedeco.pytorch.TensorVector;
import org.bytedeco.pytorch.global.torch.ScalarType;

/**
 * Trains a module on all ranks of a communicator, each with its own part of the data: after each backward pass, every rank
 * has the average of all ranks' gradients.
 *
 * <pre>{@code
 * try (DistributedDataParallel parallel = DistributedDataParallel.builder(model, communicator).create()) {
 *     for (int step = 0; step < 100; step++) {
 *         optimizer.zero_grad();
 *         Tensor loss = torch.mse_loss(forward(model, inputs), targets);
 *         loss.backward();
 *         parallel.synchronize();
 *         optimizer.step();
 *     }
 * }
 * }</pre>
 *
 * <p><b>Start.</b> {@link Builder#create()} compares the models of all ranks, and copies parameters and buffers of rank 0 to
 * the others; those of the optimizers too, if the {@linkplain Builder#optimizers builder has them}.
 *
 * <p><b>Gradients.</b> The parameters are spread over buckets, the last parameters first, as a backward pass finds their
 * gradients. When autograd has the gradients of a bucket, its average begins, in a stream of the communicator, while the pass
 * continues. {@link #synchronize()} waits for all. Then each gradient is a view of its bucket, which the next backward pass
 * overwrites: set gradients to none before it, as {@code zero_grad()} does, or they are copied.
 *
 * <p><b>Unused parameters.</b> A parameter that takes no part in a rank's pass counts as zero there. One that takes part
 * nowhere keeps no gradient, so that optimizers pass over it. A rank without data calls {@link #synchronize()} alone.
 *
 * <p><b>Accumulation.</b> In the scope of {@link #noSync()}, gradients are only added up on each rank. The next pass outside of
 * it averages the sums.
 *
 * <p><b>Failures.</b> No exception leaves a hook of autograd. The first failure stops the communication of the pass, and
 * {@link #synchronize()} throws it, in the thread of the caller. With {@link Recovery}, hand the new communicator to
 * {@link #replaceCommunicator}: from then on gradients are averages over the ranks that are left.
 *
 * <p><b>Closing.</b> Takes the hooks from the module, which stays usable, as does the communicator. Close it before the
 * module.
 *
 * <p><b>Threads.</b> One thread at a time. The threads of autograd may differ from it. While a backward pass runs, no other
 * thread may use the communicator.
 *
 * @since 0.1
 */
public final class DistributedDataParallel implements AutoCloseable {
    /**
     * The size of a bucket unless the builder is given another: 25 MiB. Measured by {@code nccl4j gradients} on two H100s, buckets
     * of 16 to 64 MiB leave about the same time between the end of a backward pass and the averages, as a mean of models from
     * 97 to 1544 MiB and of passes of a half and of two exchanges. Smaller buckets are better after a long pass, larger ones
     * after a short pass.
     */
    public static final long DEFAULT_BUCKET_BYTES = 25L << 20;

    private final Device device;
    private final List<String> description = new ArrayList<>();
    /** Parameters and buffers, as references of their own. */
    private final List<Tensor> state = new ArrayList<>();

    private final List<Tensor> stateBuffers = new ArrayList<>();
    /** Those with gradients. */
    private final List<ModelParameter> parameters = new ArrayList<>();

    private final List<GradientBucket> buckets = new ArrayList<>();

    /** Null if the builder was given none. */
    private final List<Optimizer> optimizers;

    private Communicator communicator;
    /** Orders the communicator's stream behind PyTorch's; null for host memory, which is filled when a hook returns. */
    private CudaEvent filled;

    /** The first bucket that is not launched; buckets are launched in order, since all ranks must agree on it. */
    private int next;

    private int scopesWithoutSync;
    private Throwable failure;
    /** True if operations on the buckets may still run, after a failure. */
    private boolean abandoned;
    /** True until the next pass has waited for the operations of a failed pass, which write to the buckets. */
    private boolean unsettled;

    private boolean closed;

    private DistributedDataParallel(Builder builder) {
        communicator = builder.communicator;
        optimizers = builder.optimizers;
        device = communicator.device();
        try (PointerScope scope = new PointerScope();
                NoGradGuard noGradients = new NoGradGuard()) {
            description.add("setting bucketBytes: " + builder.bucketBytes);
            description.add("setting compression: " + builder.compression);
            description.add("setting optimizers: " + (optimizers == null ? 0 : optimizers.size()));
            List<ModelParameter> trained = describe(builder.module);
            checkAndBroadcast();
            makeBuckets(trained, builder.bucketBytes, builder.compression);
            filled = device.isCuda() ? CudaEvent.create(device) : null;
            for (ModelParameter parameter : parameters) {
                parameter.listen(this::gradient);
            }
        } catch (RuntimeException | Error failed) {
            release();
            throw failed;
        }
    }

    /**
     * Begins the settings for a module.
     *
     * @param module the module; all of it is on the communicator's device. Parameters that are added later are not
     *     communicated
     * @param communicator connects the ranks
     * @return the settings
     */
    public static Builder builder(Module module, Communicator communicator) {
        return new Builder(
                Objects.requireNonNull(module, "module"), Objects.requireNonNull(communicator, "communicator"));
    }

    /**
     * Settings of a {@link DistributedDataParallel}, which must be the same on all ranks.
     *
     * @since 0.1
     */
    public static final class Builder {
        private final Module module;
        private final Communicator communicator;
        private long bucketBytes = DEFAULT_BUCKET_BYTES;
        private GradientCompression compression = GradientCompression.NONE;
        private List<Optimizer> optimizers;

        private Builder(Module module, Communicator communicator) {
            this.module = module;
            this.communicator = communicator;
        }

        /**
         * Sets the size that a bucket does not exceed, unless a single parameter does. Small buckets begin earlier, large
         * ones cost fewer operations.
         *
         * @param bytes the size in bytes, at least 1; default: {@link #DEFAULT_BUCKET_BYTES}
         * @return this
         * @throws IllegalArgumentException if it is less than 1
         */
        public Builder bucketBytes(long bytes) {
            if (bytes < 1) {
                throw new IllegalArgumentException("bytes must be >= 1: " + bytes);
            }
            bucketBytes = bytes;
            return this;
        }

        /**
         * Sets the type in which gradients travel.
         *
         * @param compression the type; default: {@link GradientCompression#NONE}
         * @return this
         */
        public Builder compression(GradientCompression compression) {
            this.compression = Objects.requireNonNull(compression, "compression");
            return this;
        }

        /**
         * Sets the optimizers of the module, whose state and settings are copied from rank 0 as the parameters are, at the start
         * and by {@link #replaceCommunicator}: otherwise ranks that differ by a step would do different steps from then on,
         * and no exception would say so.
         *
         * @param optimizers the optimizers, which must stay open; none if the program updates the parameters in another way
         * @return this
         */
        public Builder optimizers(Optimizer... optimizers) {
            this.optimizers = List.of(optimizers);
            return this;
        }

        /**
         * Compares the models of all ranks, copies rank 0's parameters, buffers and optimizers to the others, and begins to listen to
         * autograd. Collective.
         *
         * @return the trainer of the module, to be closed by the caller
         * @throws IllegalArgumentException on every rank, if names, shapes or types of parameters or buffers differ between
         *     ranks, or if a setting does, or if an optimizer of another rank has state of more parameters than rank 0's; on this rank, if the module has no parameter with a gradient, or one of a type that
         *     NCCL does not have, or if it is not on the communicator's device
         * @throws NcclException if an operation fails
         */
        public DistributedDataParallel create() {
            return new DistributedDataParallel(this);
        }
    }

    /** Returns the parameters with gradients, without those that the module has twice. */
    private List<ModelParameter> describe(Module module) {
        List<ModelParameter> trained = new ArrayList<>();
        Set<Long> known = new HashSet<>();
        try (StringTensorDict named = module.named_parameters()) {
            visit("parameter", named, known, trained);
        }
        try (StringTensorDict named = module.named_buffers()) {
            visit("buffer", named, known, null);
        }
        return trained;
    }

    private void visit(String kind, StringTensorDict named, Set<Long> known, List<ModelParameter> trained) {
        StringVector names = named.keys();
        TensorVector tensors = named.values();
        for (long i = 0; i < names.size(); i++) {
            Tensor tensor = tensors.get(i);
            if (!tensor.defined()) {
                continue;
            }
            String name = names.get(i).getString();
            boolean trains = trained != null && tensor.requires_grad();
            description.add(kind + " " + name + ": " + tensor.scalar_type().intern() + " "
                    + TensorBuffer.text(tensor.sizes()) + (trained == null || trains ? "" : " without gradient"));
            if (!known.add(tensor.getIntrusivePtr().address())) {
                continue;
            }
            Tensor own = new Tensor(tensor).retainReference();
            state.add(own);
            if (trained == null) {
                stateBuffers.add(own);
            }
            if (trains) {
                ModelParameter parameter = new ModelParameter(name, new Tensor(tensor).retainReference());
                trained.add(parameter);
                parameters.add(parameter);
            }
        }
    }

    /** Returns what makes this rank's module unusable, or null. */
    private IllegalArgumentException unusable() {
        if (parameters.isEmpty()) {
            return new IllegalArgumentException("module must have a parameter with a gradient");
        }
        for (Tensor tensor : state) {
            Device found = TensorBuffer.deviceOf(tensor);
            if (!found.equals(device)) {
                return new IllegalArgumentException(
                        "module must be on the communicator's device: " + found + " != " + device);
            }
        }
        for (ModelParameter parameter : parameters) {
            try {
                TensorBuffer.typeOf(parameter.tensor().scalar_type());
            } catch (IllegalArgumentException unsuitable) {
                return new IllegalArgumentException("parameter " + parameter.name() + ": " + unsuitable.getMessage());
            }
        }
        return null;
    }

    /** A rank that cannot take part tells the others, which would wait for it. */
    private void checkAndBroadcast() {
        IllegalArgumentException unusable = unusable();
        List<String> lines = new ArrayList<>(description);
        if (unusable != null) {
            lines.add(0, "an error: " + unusable.getMessage());
        }
        try {
            ModelDescription.requireEqual(communicator, lines);
        } catch (IllegalArgumentException differ) {
            if (unusable != null) {
                unusable.addSuppressed(differ);
                throw unusable;
            }
            throw differ;
        }
        if (unusable != null) {
            throw unusable;
        }
        broadcast(state);
        if (optimizers != null) {
            optimizers.forEach(optimizer -> OptimizerState.broadcast(communicator, optimizer));
        }
    }

    private void broadcast(List<Tensor> tensors) {
        try (PointerScope scope = new PointerScope();
                NoGradGuard noGradients = new NoGradGuard()) {
            List<Tensor> compact = tensors.stream().map(Tensor::contiguous).toList();
            TensorCollectives.of(communicator).broadcast(compact, 0);
            for (int i = 0; i < tensors.size(); i++) {
                if (!tensors.get(i).is_contiguous()) {
                    tensors.get(i).copy_(compact.get(i));
                }
            }
        }
    }

    /** The last parameters come first. A bucket has one type, and follows the buckets that were full before it. */
    private void makeBuckets(List<ModelParameter> trained, long bucketBytes, GradientCompression compression) {
        Map<ScalarType, List<ModelParameter>> open = new LinkedHashMap<>();
        Map<ScalarType, Long> sizes = new LinkedHashMap<>();
        for (int i = trained.size() - 1; i >= 0; i--) {
            ModelParameter parameter = trained.get(i);
            ScalarType type = parameter.tensor().scalar_type().intern();
            long bytes = parameter.length() * parameter.tensor().itemsize();
            if (open.containsKey(type) && sizes.get(type) + bytes > bucketBytes) {
                buckets.add(new GradientBucket(open.remove(type), sent(type, compression)));
                sizes.remove(type);
            }
            open.computeIfAbsent(type, any -> new ArrayList<>()).add(parameter);
            sizes.merge(type, bytes, Long::sum);
        }
        open.forEach((type, last) -> buckets.add(new GradientBucket(last, sent(type, compression))));
    }

    private static ScalarType sent(ScalarType type, GradientCompression compression) {
        boolean wide = type == ScalarType.Float || type == ScalarType.Double;
        return compression == GradientCompression.BFLOAT16 && wide ? ScalarType.BFloat16 : type;
    }

    /** Called by autograd. */
    private void gradient(ModelParameter parameter, TensorBase gradient) {
        synchronized (this) {
            if (scopesWithoutSync > 0 || failure != null || closed) {
                return;
            }
            try (PointerScope scope = new PointerScope();
                    NoGradGuard noGradients = new NoGradGuard()) {
                if (parameter.isFilled()) {
                    throw new IllegalStateException("a second backward pass has found a gradient of " + parameter.name()
                            + " before synchronize(): call synchronize() between, or noSync() around the first");
                }
                fill(parameter, gradient);
                launchComplete();
            } catch (Throwable failed) {
                failure = failed;
            }
        }
    }

    private void fill(ModelParameter parameter, TensorBase gradient) {
        if (unsettled) {
            communicator.work(communicator.stream()).await();
            unsettled = false;
        }
        parameter.fill(gradient);
    }

    private void launchComplete() {
        while (next < buckets.size() && buckets.get(next).isComplete()) {
            GradientBucket bucket = buckets.get(next++);
            bucket.seal();
            CudaStream stream = communicator.stream();
            if (filled != null) {
                filled.record(TensorBuffer.currentStream(device));
                stream.waitFor(filled);
            }
            bucket.launch(communicator, stream);
        }
    }

    /**
     * Waits until all gradients are averages over the ranks. Collective: all ranks call it after each backward pass outside
     * of {@link #noSync()}, before they use the gradients. A rank without data calls it without a pass.
     *
     * <p>Begins the operations that the pass did not: those with parameters that took no part. Blocks the thread until the
     * operations are done, on a GPU too, so that it can throw their failure.
     *
     * @throws IllegalStateException if this is closed, or if two passes ran without it in between
     * @throws NcclException if an operation failed, in this thread or in one of autograd; gradients are undefined then
     */
    public synchronized void synchronize() {
        requireOpen();
        if (scopesWithoutSync > 0) {
            throw new IllegalStateException("synchronize() must not be called in the scope of noSync()");
        }
        try (PointerScope scope = new PointerScope();
                NoGradGuard noGradients = new NoGradGuard()) {
            throwFailure();
            for (GradientBucket bucket : buckets.subList(next, buckets.size())) {
                for (ModelParameter parameter : bucket.parameters()) {
                    if (!parameter.isFilled()) {
                        fill(parameter, null);
                    }
                }
                launchComplete();
            }
            communicator.work(communicator.stream()).await();
            parameters.forEach(ModelParameter::take);
        } catch (RuntimeException | Error failed) {
            abandoned = true;
            unsettled = true;
            throw failed;
        } finally {
            failure = null;
            restart();
        }
    }

    private void throwFailure() {
        if (failure instanceof RuntimeException exception) {
            throw exception;
        }
        if (failure instanceof Error error) {
            throw error;
        }
    }

    private void restart() {
        next = 0;
        buckets.forEach(GradientBucket::reset);
    }

    /**
     * Scope in which backward passes do not communicate. It may contain others.
     *
     * @since 0.1
     */
    public interface NoSync extends AutoCloseable {
        /** Ends the scope. */
        @Override
        void close();
    }

    /**
     * Begins a scope in which backward passes only add up gradients on this rank: {@code try (NoSync scope =
     * parallel.noSync()) { loss.backward(); }}. All ranks call it for the same passes.
     *
     * @return the scope, to be closed once
     */
    public synchronized NoSync noSync() {
        requireOpen();
        scopesWithoutSync++;
        return new NoSync() {
            private boolean ended;

            @Override
            public void close() {
                synchronized (DistributedDataParallel.this) {
                    if (!ended) {
                        ended = true;
                        scopesWithoutSync--;
                    }
                }
            }
        };
    }

    /**
     * Copies rank 0's buffers, such as the statistics of a batch normalization, to the other ranks. Collective.
     *
     * @throws NcclException if the operation fails
     */
    public synchronized void broadcastBuffers() {
        requireOpen();
        broadcast(stateBuffers);
    }

    /**
     * Continues with another communicator, for example after {@link Recovery#recover}: compares the models again, copies rank
     * 0's parameters, buffers and optimizers to the others, since some may have done a step that others have not, and drops all
     * gradients. Collective among the ranks of the new communicator; a process that {@link Recovery#admit} has admitted calls
     * {@link Builder#create()} meanwhile.
     *
     * @param replacement the new communicator, of the same device
     * @throws IllegalStateException if this is closed, or if the builder was not told the {@linkplain Builder#optimizers
     *     optimizers}
     * @throws IllegalArgumentException if it is of another device, or as {@link Builder#create()}
     * @throws NcclException if an operation fails; call it again with another communicator
     */
    public synchronized void replaceCommunicator(Communicator replacement) {
        requireOpen();
        Objects.requireNonNull(replacement, "replacement");
        if (!replacement.device().equals(device)) {
            throw new IllegalArgumentException(
                    "replacement must be of the same device: " + replacement.device() + " != " + device);
        }
        if (optimizers == null) {
            throw new IllegalStateException(
                    "the builder must be told the optimizers, whose state must be equal on all ranks"
                            + ": call optimizers()");
        }
        communicator = replacement;
        failure = null;
        unsettled = false;
        restart();
        try (PointerScope scope = new PointerScope()) {
            parameters.forEach(ModelParameter::drop);
            checkAndBroadcast();
        }
    }

    private void requireOpen() {
        if (closed) {
            throw new IllegalStateException("this is closed");
        }
    }

    /** {@return the communicator} */
    public synchronized Communicator communicator() {
        return communicator;
    }

    /** {@return the number of buckets} */
    public int bucketCount() {
        return buckets.size();
    }

    /** Takes the hooks from the module, and frees the buckets. Not during a backward pass. Does nothing if closed. */
    @Override
    public synchronized void close() {
        if (!closed) {
            closed = true;
            release();
        }
    }

    private void release() {
        try (NoGradGuard noGradients = new NoGradGuard()) {
            parameters.forEach(ModelParameter::close);
        }
        // After a failure, an operation may still write to a bucket; the collector frees it when the operation is gone.
        if (!abandoned) {
            buckets.forEach(GradientBucket::close);
        }
        state.forEach(Tensor::close);
        if (filled != null) {
            filled.close();
        }
    }
}

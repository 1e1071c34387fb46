package io.github.nccl4j.pytorch;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.NcclException;
import io.github.nccl4j.highlevel.UniqueId;
import java.util.Arrays;
import java.util.concurrent.CountDownLatch;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.PointerScope;
import org.bytedeco.pytorch.AdamW;
import org.bytedeco.pytorch.AdamWOptions;
import org.bytedeco.pytorch.LinearImpl;
import org.bytedeco.pytorch.Module;
import org.bytedeco.pytorch.Optimizer;
import org.bytedeco.pytorch.SGD;
import org.bytedeco.pytorch.SGDOptions;
import org.bytedeco.pytorch.Scalar;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorBase;
import org.bytedeco.pytorch.TensorVector;
import org.bytedeco.pytorch.VoidTensorHook;
import org.bytedeco.pytorch.global.torch;
import org.bytedeco.pytorch.global.torch.ScalarType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Gradients of a module on several ranks, which are threads. */
class DistributedDataParallelTest {

    /** Two parameters of two elements, one of which a loss may leave out. */
    private static final class Pair {
        final Module module = new Module("Pair");
        final Tensor first;
        final Tensor second;

        Pair(double value) {
            // What the module returns is a place in its list, which moves.
            first = new Tensor(module.register_parameter("first", torch.full(new long[] {2}, scalar(value))));
            second = new Tensor(module.register_parameter("second", torch.full(new long[] {2}, scalar(10 * value))));
        }

        private static Scalar scalar(double value) {
            return new Scalar((float) value);
        }

        /** The gradients are the factors. */
        void backward(double firstFactor, double secondFactor) {
            Tensor loss = first.mul(scalar(firstFactor)).sum();
            if (secondFactor != 0) {
                loss = loss.add(second.mul(scalar(secondFactor)).sum());
            }
            loss.backward();
        }

        void zeroGradients(boolean setToNone) {
            module.zero_grad(setToNone);
        }
    }

    private static void assertGradient(double expected, Tensor parameter) {
        assertTrue(parameter.grad().defined(), "no gradient");
        for (int i = 0; i < 2; i++) {
            assertEquals(expected, parameter.grad().get(i).item_float(), 1e-6, "element " + i);
        }
    }

    private static DistributedDataParallel.Builder of(Pair pair, Communicator communicator) {
        return DistributedDataParallel.builder(pair.module, communicator);
    }

    @Test
    void theStartCopiesRank0() throws Exception {
        Ranks.run(2, communicator -> {
            Pair pair = new Pair(1 + communicator.rank());
            Tensor buffer = pair.module.register_buffer(
                    "mask", torch.tensor(new long[] {communicator.rank()}).to(ScalarType.Bool));
            try (DistributedDataParallel parallel = of(pair, communicator).create()) {
                assertEquals(1, pair.first.get(0).item_float());
                assertEquals(10, pair.second.get(1).item_float());
                assertFalse(buffer.item_bool());
                assertTrue(pair.first.requires_grad());

                Tensor statistics = buffer.fill_(new Scalar(communicator.rank() == 0 ? 1f : 0f));
                parallel.broadcastBuffers();
                assertTrue(statistics.item_bool());
            }
        });
    }

    /** A broadcast needs contiguous memory. */
    @Test
    void theStartCopiesATransposedTensor() throws Exception {
        Ranks.run(2, communicator -> {
            Pair pair = new Pair(1);
            Tensor rows = torch.arange(new Scalar(6f)).view(2, 3).add(Pair.scalar(10 * communicator.rank()));
            Tensor columns = new Tensor(pair.module.register_parameter("columns", rows.t()));
            assertFalse(columns.is_contiguous());
            try (DistributedDataParallel parallel = of(pair, communicator).create()) {
                for (int i = 0; i < 6; i++) {
                    assertEquals(i, columns.get(i % 3).get(i / 3).item_float(), "element " + i);
                }
            }
        });
    }

    /** With one bucket, which may be full, and with a bucket for each parameter. */
    @ParameterizedTest
    @ValueSource(longs = {1, 15, 16, 1 << 20})
    void gradientsAreAverages(long bucketBytes) throws Exception {
        Ranks.run(3, communicator -> {
            Pair pair = new Pair(1);
            try (DistributedDataParallel parallel =
                    of(pair, communicator).bucketBytes(bucketBytes).create()) {
                assertEquals(bucketBytes < 16 ? 2 : 1, parallel.bucketCount());
                for (int step = 0; step < 3; step++) {
                    pair.zeroGradients(step < 2);
                    pair.backward(communicator.rank() + step, 4 * communicator.rank());
                    parallel.synchronize();
                    assertGradient(1 + step, pair.first);
                    assertGradient(4, pair.second);
                }
            }
            assertGradient(3, pair.first);
        });
    }

    /** The first bucket is on its way before the pass is over. */
    @Test
    void bucketsTravelDuringThePass() throws Exception {
        Ranks.run(2, communicator -> {
            try (ConvNet net = new ConvNet(1, ScalarType.Float);
                    DistributedDataParallel parallel = DistributedDataParallel.builder(net.module, communicator)
                            .bucketBytes(1)
                            .create()) {
                assertEquals(6, parallel.bucketCount());
                Tensor loss = net.loss(0, 2);
                long[] recorded = new long[6];
                int[] count = {0};
                TensorVector parameters = net.module.parameters();
                for (long i = 0; i < parameters.size(); i++) {
                    parameters.get(i).register_hook(new VoidTensorHook() {
                        @Override
                        public void call(TensorBase gradient) {
                            recorded[count[0]++] = communicator.flightRecorder().recorded();
                        }
                    });
                }
                long before = communicator.flightRecorder().recorded();
                loss.backward();
                // A bias and its weight come in any order, a layer after the one above it.
                for (int i = 1; i < 6; i += 2) {
                    assertEquals(before + i + 1, recorded[i], "bucket " + i);
                }
                parallel.synchronize();
                assertEquals(before + 6, communicator.flightRecorder().recorded());
            }
        });
    }

    /** As PyTorch adds to gradients that were not set to none. */
    @Test
    void gradientsAddUpUntilTheyAreSetToNone() throws Exception {
        Ranks.run(2, communicator -> {
            Pair pair = new Pair(1);
            try (DistributedDataParallel parallel = of(pair, communicator).create()) {
                for (int step = 1; step <= 3; step++) {
                    pair.backward(2 * communicator.rank(), 1);
                    parallel.synchronize();
                    assertGradient(step, pair.first);
                    assertGradient(step, pair.second);
                }
            }
        });
    }

    @Test
    void unusedParametersCountAsZero() throws Exception {
        Ranks.run(2, communicator -> {
            Pair pair = new Pair(1);
            try (DistributedDataParallel parallel = of(pair, communicator).create()) {
                // At one rank only; the gradient of the other is an average nevertheless.
                pair.backward(1, communicator.rank() == 0 ? 6 : 0);
                parallel.synchronize();
                assertGradient(3, pair.second);

                // At none: optimizers pass over it.
                pair.zeroGradients(true);
                pair.backward(1, 0);
                parallel.synchronize();
                assertGradient(1, pair.first);
                assertFalse(pair.second.grad().defined());

                // A rank without data.
                pair.zeroGradients(true);
                if (communicator.rank() == 0) {
                    pair.backward(8, 2);
                }
                parallel.synchronize();
                assertGradient(4, pair.first);
                assertGradient(1, pair.second);
            }
        });
    }

    @Test
    void accumulationSendsNothing() throws Exception {
        Ranks.run(2, communicator -> {
            Pair pair = new Pair(1);
            try (DistributedDataParallel parallel = of(pair, communicator).create()) {
                for (int step = 0; step < 2; step++) {
                    pair.zeroGradients(true);
                    long before = communicator.flightRecorder().recorded();
                    try (DistributedDataParallel.NoSync scope = parallel.noSync()) {
                        DistributedDataParallel.NoSync inner = parallel.noSync();
                        inner.close();
                        // Does not end the scope around it.
                        inner.close();
                        pair.backward(communicator.rank(), 0);
                        pair.backward(10 * communicator.rank(), 0);
                        assertThrows(IllegalStateException.class, parallel::synchronize);
                    }
                    assertGradient(11 * communicator.rank(), pair.first);
                    assertEquals(before, communicator.flightRecorder().recorded());
                    pair.backward(1, 2);
                    parallel.synchronize();
                    assertGradient(6.5, pair.first);
                    assertGradient(2, pair.second);
                }
            }
        });
    }

    @Test
    void aSecondPassIsRefusedInTheThreadOfTheCaller() throws Exception {
        Ranks.run(2, communicator -> {
            Pair pair = new Pair(1);
            try (DistributedDataParallel parallel = of(pair, communicator).create()) {
                pair.backward(1, 1);
                pair.backward(1, 1);
                assertEquals(
                        "a second backward pass has found a gradient of second before synchronize(): call synchronize()"
                                + " between, or noSync() around the first",
                        assertThrows(IllegalStateException.class, parallel::synchronize)
                                .getMessage()
                                .replace("of first", "of second"));
                // The next pass begins without the failure.
                pair.zeroGradients(true);
                pair.backward(1, 1);
                parallel.synchronize();
                assertGradient(1, pair.first);
            }
        });
    }

    /** Rank 1 begins its part of the average that a refused pass has left behind when rank 0 is in the next pass. */
    @Test
    void thePassAfterARefusedOneWaitsForItsAverages() throws Exception {
        CountDownLatch next = new CountDownLatch(1);
        Ranks.run(2, communicator -> {
            Pair pair = new Pair(1);
            try (DistributedDataParallel parallel = of(pair, communicator).create()) {
                if (communicator.rank() == 1) {
                    next.await();
                }
                pair.backward(1, 1);
                pair.backward(1, 1);
                assertThrows(IllegalStateException.class, parallel::synchronize);
                pair.zeroGradients(true);
                next.countDown();
                pair.backward(4, 4);
                parallel.synchronize();
                assertGradient(4, pair.first);
                assertGradient(4, pair.second);
            }
        });
    }

    @Test
    void bfloat16RoundsAndKeepsTheType() throws Exception {
        Ranks.run(2, communicator -> {
            Pair pair = new Pair(1);
            Tensor third = new Tensor(pair.module.register_parameter(
                    "third", torch.full(new long[] {2}, Pair.scalar(1)).to(ScalarType.Double)));
            try (DistributedDataParallel parallel = of(pair, communicator)
                    .compression(GradientCompression.BFLOAT16)
                    .create()) {
                for (int step = 0; step < 2; step++) {
                    pair.zeroGradients(true);
                    // 1 + 1/512 has more bits than bfloat16.
                    third.mul(Pair.scalar(1 + 1.0 / 512)).sum().backward();
                    pair.backward(1 + 1.0 / 512, communicator.rank() == 0 ? 3 : 0);
                    parallel.synchronize();
                    assertEquals(1f, pair.first.grad().get(0).item_float());
                    assertEquals(1.5f, pair.second.grad().get(0).item_float());
                    assertEquals(
                            ScalarType.Float, pair.first.grad().scalar_type().intern());
                    assertEquals(1, third.grad().get(0).item_double());
                    assertEquals(ScalarType.Double, third.grad().scalar_type().intern());
                }
            }
        });
    }

    @Test
    void severalTypesHaveTheirOwnBuckets() throws Exception {
        Ranks.run(2, communicator -> {
            Pair pair = new Pair(1);
            Tensor third = new Tensor(pair.module.register_parameter(
                    "third", torch.full(new long[] {2}, Pair.scalar(5)).to(ScalarType.Double)));
            try (DistributedDataParallel parallel = of(pair, communicator).create()) {
                assertEquals(2, parallel.bucketCount());
                third.mul(Pair.scalar(communicator.rank())).sum().backward();
                pair.backward(1, 2);
                parallel.synchronize();
            }
            assertEquals(0.5, third.grad().get(1).item_double());
            assertGradient(2, pair.second);
        });
    }

    /** Autograd visits a tensor that two layers share once. */
    @Test
    void aSharedParameterIsReducedOnce() throws Exception {
        Ranks.run(2, communicator -> {
            Pair pair = new Pair(1);
            Module inner = new Module("inner");
            inner.register_parameter("same", pair.first);
            pair.module.register_module("inner", inner);
            try (DistributedDataParallel parallel =
                    of(pair, communicator).bucketBytes(1).create()) {
                assertEquals(2, parallel.bucketCount());
                pair.backward(2 * communicator.rank(), 1);
                parallel.synchronize();
                assertGradient(1, pair.first);
            }
        });
    }

    @Test
    void modelsThatDifferAreRefusedAtEveryRank() throws Exception {
        Ranks.run(3, communicator -> {
            int rank = communicator.rank();
            Module module = new Module("model");
            module.register_module("layer", new LinearImpl(4, rank == 2 ? 3 : 2));
            assertEquals(
                    "models must be alike on all ranks: rank 0 has parameter layer.weight: Float [2, 4], rank 2 has"
                            + " parameter layer.weight: Float [3, 4]",
                    assertThrows(IllegalArgumentException.class, () -> DistributedDataParallel.builder(
                                            module, communicator)
                                    .create())
                            .getMessage());
            Pair pair = new Pair(1);
            assertEquals(
                    "models must be alike on all ranks: rank 0 has setting bucketBytes: 100, rank 1 has setting"
                            + " bucketBytes: 101",
                    assertThrows(IllegalArgumentException.class, () -> of(pair, communicator)
                                    .bucketBytes(rank == 1 ? 101 : 100)
                                    .create())
                            .getMessage());
            Pair more = new Pair(1);
            if (rank == 1) {
                more.module.register_buffer("extra", torch.zeros(new long[] {1}));
            }
            assertEquals(
                    "models must be alike on all ranks: rank 0 has nothing, rank 1 has buffer extra: Float [1]",
                    assertThrows(IllegalArgumentException.class, () -> of(more, communicator)
                                    .create())
                            .getMessage());
            // All ranks are still in step.
            try (DistributedDataParallel parallel = of(pair, communicator).create()) {
                assertEquals(1, parallel.bucketCount());
            }
        });
    }

    /** The others do not wait for a rank whose module is unusable. */
    @Test
    void anUnusableModuleIsRefusedAtEveryRank() throws Exception {
        Ranks.run(2, communicator -> {
            Pair pair = new Pair(1);
            if (communicator.rank() == 1) {
                pair.module.register_parameter(
                        "odd", torch.zeros(new long[] {1}).to(ScalarType.ComplexFloat));
            }
            String message = assertThrows(IllegalArgumentException.class, () -> of(pair, communicator)
                            .create())
                    .getMessage();
            assertTrue(message.contains("ComplexFloat"), message);
            assertEquals(
                    "module must have a parameter with a gradient",
                    assertThrows(IllegalArgumentException.class, () -> DistributedDataParallel.builder(
                                            new Module("empty"), communicator)
                                    .create())
                            .getMessage());
        });
    }

    /** The backward pass goes on, the JVM lives, and the failure comes out where the caller can handle it. */
    @Test
    void aFailureInAHookComesOutOfSynchronize() throws Exception {
        Communicator communicator = Communicator.create(UniqueId.create(), 0, 1);
        Pair pair = new Pair(1);
        try (DistributedDataParallel parallel =
                of(pair, communicator).optimizers().create()) {
            communicator.abort();
            pair.backward(1, 1);
            RuntimeException failure = assertThrows(RuntimeException.class, parallel::synchronize);
            assertTrue(failure instanceof IllegalStateException || failure instanceof NcclException, failure::toString);
            assertTrue(
                    Arrays.stream(failure.getStackTrace())
                            .anyMatch(frame -> frame.getMethodName().equals("gradient")),
                    "it did not happen in the hook");
            assertGradient(1, pair.first);

            try (Communicator next = Communicator.create(UniqueId.create(), 0, 1)) {
                parallel.replaceCommunicator(next);
                assertFalse(pair.first.grad().defined());
                pair.backward(5, 1);
                parallel.synchronize();
                assertGradient(5, pair.first);
            }
        }
    }

    /** Fewer ranks: averages over the living, from the weights of the new rank 0. */
    @Test
    void anotherCommunicatorMeansOtherAverages() throws Exception {
        Ranks.run(3, communicator -> {
            Pair pair = new Pair(1);
            try (DistributedDataParallel parallel =
                    of(pair, communicator).optimizers().create()) {
                pair.backward(communicator.rank(), 1);
                parallel.synchronize();
                assertGradient(1, pair.first);
                if (communicator.rank() == 0) {
                    communicator.splitNone();
                    return;
                }
                try (Communicator fewer = communicator.split(0, communicator.rank())) {
                    parallel.replaceCommunicator(fewer);
                    pair.backward(communicator.rank(), 1);
                    parallel.synchronize();
                    assertGradient(1.5, pair.first);
                    assertEquals(2, parallel.communicator().size());
                }
            }
        });
    }

    private static Optimizer optimizer(String name, Pair pair) {
        TensorVector parameters = new TensorVector(pair.first, pair.second);
        SGDOptions momentum = new SGDOptions(0.1);
        momentum.momentum().put(0.9);
        return name.equals("SGD") ? new SGD(parameters, momentum) : new AdamW(parameters, new AdamWOptions(0.1));
    }

    /** A rank that had done a step more than rank 0 must not keep the momentum of that step: weights would drift apart. */
    @ParameterizedTest
    @ValueSource(strings = {"SGD", "AdamW"})
    void theOptimizersStateIsThatOfRank0(String name) throws Exception {
        double[][] weights = new double[2][2];
        Ranks.run(2, communicator -> {
            int rank = communicator.rank();
            Pair pair = new Pair(1);
            Optimizer optimizer = optimizer(name, pair);
            try (DistributedDataParallel parallel =
                    of(pair, communicator).optimizers(optimizer).create()) {
                for (int step = 0; step < 4; step++) {
                    if (step == 2) {
                        if (rank == 1) {
                            optimizer.step();
                            optimizer.param_groups().get(0).options().set_lr(7);
                        }
                        parallel.replaceCommunicator(communicator);
                    }
                    optimizer.zero_grad();
                    pair.backward(1 + rank + step, step == 1 ? 0 : 1);
                    parallel.synchronize();
                    optimizer.step();
                }
                weights[rank] = new double[] {
                    pair.first.get(0).item_double(), pair.second.get(0).item_double()
                };
            }
        });
        Pair alone = new Pair(1);
        Optimizer optimizer = optimizer(name, alone);
        for (int step = 0; step < 4; step++) {
            optimizer.zero_grad();
            alone.backward(1.5 + step, step == 1 ? 0 : 1);
            optimizer.step();
        }
        assertArrayEquals(
                new double[] {
                    alone.first.get(0).item_double(), alone.second.get(0).item_double()
                },
                weights[0]);
        assertArrayEquals(weights[0], weights[1]);
    }

    /** The presets cannot remove a state: the rank would keep what rank 0 does not have. */
    @Test
    void stateThatRank0DoesNotHaveIsRefusedAtEveryRank() throws Exception {
        Ranks.run(2, communicator -> {
            Pair pair = new Pair(1);
            Optimizer optimizer = optimizer("SGD", pair);
            if (communicator.rank() == 1) {
                pair.backward(1, 1);
                optimizer.step();
            }
            assertEquals(
                    "no rank must have optimizer state of more parameters than rank 0: 2 > 0"
                            + "; create the optimizers of all ranks anew",
                    assertThrows(IllegalArgumentException.class, () -> of(pair, communicator)
                                    .optimizers(optimizer)
                                    .create())
                            .getMessage());
        });
    }

    @Test
    void aReplacementNeedsTheOptimizers() throws Exception {
        Ranks.run(1, communicator -> {
            Pair pair = new Pair(1);
            try (DistributedDataParallel parallel = of(pair, communicator).create()) {
                assertThrows(IllegalStateException.class, () -> parallel.replaceCommunicator(communicator));
            }
        });
    }

    /** The averages are equal on all ranks, and so is their norm: clipping needs no communication. */
    @Test
    void clippingByTheGlobalNormIsEqualOnAllRanks() throws Exception {
        Ranks.run(2, communicator -> {
            Pair pair = new Pair(1);
            try (DistributedDataParallel parallel = of(pair, communicator).create()) {
                pair.backward(2 + 2 * communicator.rank(), 4);
                parallel.synchronize();
                double norm = torch.clip_grad_norm_(new TensorVector(pair.first, pair.second), 1);
                assertEquals(Math.sqrt(2 * 9 + 2 * 16), norm, 1e-5);
                assertGradient(3 / norm, pair.first);
                assertGradient(4 / norm, pair.second);
            }
        });
    }

    @Test
    void closingTakesTheHooks() throws Exception {
        Ranks.run(1, communicator -> {
            Pair pair = new Pair(1);
            DistributedDataParallel parallel = of(pair, communicator).create();
            pair.backward(2, 1);
            parallel.synchronize();
            parallel.close();
            parallel.close();
            assertGradient(2, pair.first);
            System.gc();
            pair.backward(1, 1);
            assertGradient(3, pair.first);
            assertThrows(IllegalStateException.class, parallel::synchronize);
            assertThrows(IllegalStateException.class, parallel::noSync);
        });
    }

    /** Scopes of the caller do not free what outlives them, and nothing is left of a step. */
    @Test
    void stepsLeaveNothing() throws Exception {
        Ranks.run(1, communicator -> {
            ConvNet net = new ConvNet(1, ScalarType.Float);
            DistributedDataParallel parallel;
            try (PointerScope scope = new PointerScope()) {
                parallel = DistributedDataParallel.builder(net.module, communicator)
                        .bucketBytes(1000)
                        .create();
            }
            long before = 0;
            for (int step = 0; step < 30; step++) {
                try (PointerScope scope = new PointerScope()) {
                    net.optimizer().zero_grad();
                    net.loss(0, 2).backward();
                    parallel.synchronize();
                    net.optimizer().step();
                }
                if (step == 5) {
                    before = Pointer.totalCount();
                }
            }
            assertEquals(before, Pointer.totalCount());
            // Without a scope around it: what a hook is given is closed by the hook.
            try (TensorVector tensors = net.module.parameters()) {
                Tensor loss = net.loss(0, 2);
                before = Pointer.totalCount();
                loss.backward();
                parallel.synchronize();
                long left = Pointer.totalCount() - before;
                assertTrue(left <= 1, () -> left + " pointers are left");
                assertEquals(6, tensors.size());
            }
            parallel.close();
            net.close();
        });
    }

    @Test
    void settingsAreChecked() throws Exception {
        Ranks.run(1, communicator -> {
            Pair pair = new Pair(1);
            assertEquals(
                    "bytes must be >= 1: 0",
                    assertThrows(IllegalArgumentException.class, () -> of(pair, communicator)
                                    .bucketBytes(0))
                            .getMessage());
            assertInstanceOf(
                    NullPointerException.class,
                    assertThrows(
                            NullPointerException.class, () -> DistributedDataParallel.builder(null, communicator)));
        });
    }

    /** One rank changes nothing. */
    @Test
    void oneRankTrainsAsWithoutIt() throws Exception {
        Ranks.run(1, communicator -> {
            double[] plain = trained(null);
            double[] parallel = trained(communicator);
            assertArrayEquals(plain, parallel);
        });
    }

    private static double[] trained(Communicator communicator) {
        try (ConvNet net = new ConvNet(3, ScalarType.Double);
                DistributedDataParallel parallel = communicator == null
                        ? null
                        : DistributedDataParallel.builder(net.module, communicator)
                                .create()) {
            for (int step = 0; step < 5; step++) {
                net.optimizer().zero_grad();
                net.loss(4 * step, 4 * step + 4).backward();
                if (parallel != null) {
                    parallel.synchronize();
                }
                net.optimizer().step();
            }
            return net.weights();
        }
    }
}

package io.github.nccl4j.pytorch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.ReduceOp;
import java.util.List;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.PointerScope;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.global.torch;
import org.bytedeco.pytorch.global.torch.ScalarType;
import org.junit.jupiter.api.Test;

/** Collectives on tensors of the CPU: done when the call returns. */
class TensorCollectivesTest {

    private static Tensor floats(double... values) {
        return torch.tensor(values).to(ScalarType.Float);
    }

    private static Tensor longs(long... values) {
        return torch.tensor(values);
    }

    private static void assertTensor(Tensor tensor, double... expected) {
        Tensor flat = tensor.to(ScalarType.Double).flatten();
        assertEquals(expected.length, flat.numel());
        for (int i = 0; i < expected.length; i++) {
            assertEquals(expected[i], flat.get(i).item_double(), "element " + i);
        }
    }

    @Test
    void reductions() throws Exception {
        Ranks.run(2, communicator -> {
            TensorCollectives collectives = TensorCollectives.of(communicator);
            int rank = communicator.rank();
            Tensor one = floats(1 + rank, 2);
            collectives.allReduce(one, ReduceOp.SUM);
            assertTensor(one, 3, 4);

            Tensor first = floats(rank, 4);
            Tensor second = longs(10 + rank, 5, 1L << 40);
            collectives.allReduce(List.of(first, second), ReduceOp.MAX);
            assertTensor(first, 1, 4);
            assertTensor(second, 11, 5, 1L << 40);

            Tensor root = floats(rank + 1);
            collectives.reduce(root, ReduceOp.SUM, 1);
            assertTensor(root, rank == 1 ? 3 : 1);
            Tensor rootFirst = floats(rank + 1);
            Tensor rootSecond = longs(rank + 5);
            collectives.reduce(List.of(rootFirst, rootSecond), ReduceOp.SUM, 0);
            assertTensor(rootFirst, rank == 0 ? 3 : 2);
            assertTensor(rootSecond, rank == 0 ? 11 : 6);

            Tensor part = floats(0);
            collectives.reduceScatter(floats(rank, 10 + rank), part, ReduceOp.SUM);
            assertTensor(part, rank == 0 ? 1 : 21);
        });
    }

    @Test
    void movesOfEveryType() throws Exception {
        Ranks.run(2, communicator -> {
            TensorCollectives collectives = TensorCollectives.of(communicator);
            int rank = communicator.rank();
            Tensor flag = longs(rank, 1 - rank).to(ScalarType.Bool);
            Tensor complex = floats(rank == 0 ? 3 : 0).to(ScalarType.ComplexFloat);
            collectives.broadcast(List.of(flag, complex), 0);
            assertTensor(flag, 0, 1);
            assertEquals(3, torch.real(complex).item_float());

            Tensor gathered = floats(0, 0, 0, 0);
            collectives.allGather(floats(rank, rank + 10), gathered);
            assertTensor(gathered, 0, 10, 1, 11);

            Tensor exchanged = longs(0, 0);
            collectives.allToAll(longs(10 * rank, 10 * rank + 1), exchanged);
            assertTensor(exchanged, rank, 10 + rank);

            Tensor all = longs(-1, -1);
            collectives.gather(longs(rank + 1), all, 1);
            assertTensor(all, rank == 1 ? new double[] {1, 2} : new double[] {-1, -1});
            Tensor own = longs(-1);
            collectives.scatter(longs(rank + 5, rank + 6), own, 0);
            assertTensor(own, 5 + rank);

            Tensor received = floats(0);
            Tensor sent = floats(rank + 3);
            Group.run(() -> {
                collectives.send(sent, 1 - rank);
                collectives.recv(received, 1 - rank);
            });
            assertTensor(received, 4 - rank);
        });
    }

    @Test
    void aStreamOfTheProgram() throws Exception {
        Ranks.run(2, communicator -> {
            try (CudaStream stream = CudaStream.nonBlocking(communicator.device())) {
                Tensor tensor = torch.ones(new long[] {1 << 18});
                TensorCollectives.of(communicator).in(stream).allReduce(tensor, ReduceOp.SUM);
                communicator.work(stream).await();
                assertEquals(2.0 * (1 << 18), tensor.sum().item_double());
            }
        });
    }

    /** Nothing of a list is sent if one of its tensors is unsuitable: the ranks stay in step. */
    @Test
    void checksComeBeforeTheFirstOperation() throws Exception {
        Ranks.run(2, communicator -> {
            assertEquals(
                    "communicator",
                    assertThrows(NullPointerException.class, () -> TensorCollectives.of(null))
                            .getMessage());
            TensorCollectives collectives = TensorCollectives.of(communicator);
            Tensor good = floats(1);
            assertThrows(
                    IllegalArgumentException.class,
                    () -> collectives.allReduce(List.of(good, floats(1).to(ScalarType.Short)), ReduceOp.SUM));
            assertEquals(
                    "tensor must have elements of float32: Long",
                    assertThrows(IllegalArgumentException.class, () -> collectives.allGather(good, longs(0, 0)))
                            .getMessage());
            assertEquals(
                    "send and recv must have the same number of tensors: 1 != 2",
                    assertThrows(
                                    IllegalArgumentException.class,
                                    () -> collectives.allToAll(List.of(good), List.of(good, good)))
                            .getMessage());
            assertThrows(
                    IllegalArgumentException.class,
                    () -> collectives.allGather(good, floats(0, 0, 0)),
                    "3 for 2 ranks");
            assertEquals(1, good.use_count(), "a buffer is left open");
            collectives.allReduce(good, ReduceOp.SUM);
            assertTensor(good, 2);
        });
    }

    @Test
    void nothingIsLeft() throws Exception {
        try (Communicator communicator = Communicator.create(io.github.nccl4j.highlevel.UniqueId.create(), 0, 1)) {
            TensorCollectives collectives = TensorCollectives.of(communicator);
            Tensor first = floats(1, 2);
            Tensor second = longs(1);
            collectives.allReduce(List.of(first, second), ReduceOp.SUM);
            long before = Pointer.totalCount();
            for (int i = 0; i < 100; i++) {
                collectives.allReduce(List.of(first, second), ReduceOp.SUM);
                collectives.broadcast(first, 0);
            }
            long left = Pointer.totalCount() - before;
            assertTrue(left < 10, () -> left + " pointers of JavaCPP are left");
            try (PointerScope scope = new PointerScope()) {
                assertEquals(1, first.use_count());
            }
        }
    }

    @Test
    void aProcessGroupOfNcclHasItsCommunicatorOnAGpu() {
        IllegalArgumentException refused = assertThrows(
                IllegalArgumentException.class, () -> TensorCollectives.nativeHandleOf(null, Device.host()));
        assertEquals("device must be a GPU: " + Device.host(), refused.getMessage());
    }
}

package io.github.nccl4j.pytorch;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.NcclResultException;
import io.github.nccl4j.highlevel.ReduceOp;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.cuda.CUDAGuard;
import org.bytedeco.pytorch.nccl.ProcessGroupNCCL;

/**
 * The operations of a {@link Communicator} on tensors, in place where one tensor is given. Lists of tensors travel in one
 * {@linkplain Group group}, for the price of one launch.
 *
 * <pre>{@code
 * TensorCollectives collectives = TensorCollectives.of(communicator);
 * collectives.allReduce(tensor, ReduceOp.AVG);
 * collectives.broadcast(List.of(weight, bias), 0);
 * }</pre>
 *
 * <p><b>Order.</b> Operations are in PyTorch's {@linkplain TensorBuffer#currentStream current stream}, or in that of {@link
 * #in}. In the current stream, operations on tensors of the CPU are done when the call returns; on a GPU, later work of
 * PyTorch sees their result. In a stream of the program, keep the tensors until the operation is done, and see to the order
 * with PyTorch's work; likewise in an open {@link Group}, whose operations begin when it is launched.
 *
 * <p><b>Tensors.</b> As {@link TensorBuffer}: contiguous, of a type that NCCL has, on the communicator's device. Shapes are
 * not compared, only numbers of elements. Every check comes before the first operation of a list.
 *
 * <p><b>Collective.</b> All ranks call the same methods in the same order, with lists of the same length.
 *
 * <p><b>Threads.</b> One thread at a time, as for the communicator. Instances are immutable.
 *
 * @since 0.1
 */
public final class TensorCollectives {
    private final Communicator communicator;
    /** Null for the current stream of PyTorch. */
    private final CudaStream stream;

    private TensorCollectives(Communicator communicator, CudaStream stream) {
        this.communicator = communicator;
        this.stream = stream;
    }

    /**
     * Returns the operations of a communicator, in PyTorch's current stream.
     *
     * @param communicator the communicator, which must stay open
     * @return its operations
     */
    public static TensorCollectives of(Communicator communicator) {
        return new TensorCollectives(Objects.requireNonNull(communicator, "communicator"), null);
    }

    /**
     * Returns the same operations in a stream of the program, in which they are asynchronous.
     *
     * @param stream a stream of the communicator's device, which must stay open
     * @return the operations
     */
    public TensorCollectives in(CudaStream stream) {
        return new TensorCollectives(communicator, Objects.requireNonNull(stream, "stream"));
    }

    /**
     * Returns the address of the NCCL communicator of a process group, for {@link Communicator#wrap}, which leaves it with
     * the group. The group has one as soon as it has done an operation on its device. PyTorch and this program must have
     * loaded the same file of libnccl.
     *
     * @param group PyTorch's own process group
     * @param device the GPU on which this rank of the group works
     * @return the address of its communicator
     * @throws IllegalArgumentException if the device is host memory
     * @throws IllegalStateException if the group has none on this device yet
     */
    public static long nativeHandleOf(ProcessGroupNCCL group, Device device) {
        if (device.isHost()) {
            throw new IllegalArgumentException("device must be a GPU: " + device);
        }
        // The group looks for it on the current device.
        try (CUDAGuard current = new CUDAGuard((byte) device.index())) {
            long handle = group.getCommPtr();
            if (handle == 0) {
                throw new IllegalStateException(
                        "the process group has no communicator on " + device + " before its first operation there");
            }
            return handle;
        }
    }

    /** {@return the communicator} */
    public Communicator communicator() {
        return communicator;
    }

    /**
     * Reduces a tensor over all ranks, and gives every rank the result.
     *
     * @param tensor the tensor
     * @param op the operator
     * @throws IllegalArgumentException if the tensor is unsuitable
     * @throws NcclResultException as {@link Communicator#allReduce(DeviceBuffer, ReduceOp, CudaStream)}
     */
    public void allReduce(Tensor tensor, ReduceOp op) {
        allReduce(List.of(tensor), op);
    }

    /**
     * As {@link #allReduce(Tensor, ReduceOp)} with each tensor of a list.
     *
     * @param tensors the tensors
     * @param op the operator
     */
    public void allReduce(List<? extends Tensor> tensors, ReduceOp op) {
        inPlace(tensors, false, new InPlace() {
            @Override
            public <T extends Element> void call(DeviceBuffer<T> buffer, CudaStream stream) {
                communicator.allReduce(buffer, op, stream);
            }
        });
    }

    /**
     * Reduces a tensor over all ranks, and gives one rank the result. The tensors of the others are unchanged.
     *
     * @param tensor the tensor
     * @param op the operator
     * @param root the rank that gets the result
     * @throws IllegalArgumentException if the tensor is unsuitable, or if there is no such rank
     */
    public void reduce(Tensor tensor, ReduceOp op, int root) {
        reduce(List.of(tensor), op, root);
    }

    /**
     * As {@link #reduce(Tensor, ReduceOp, int)} with each tensor of a list.
     *
     * @param tensors the tensors
     * @param op the operator
     * @param root the rank that gets the results
     */
    public void reduce(List<? extends Tensor> tensors, ReduceOp op, int root) {
        inPlace(tensors, false, new InPlace() {
            @Override
            public <T extends Element> void call(DeviceBuffer<T> buffer, CudaStream stream) {
                communicator.reduce(buffer, op, root, stream);
            }
        });
    }

    /**
     * Copies one rank's tensor to all ranks. Its elements may be of any type, since they travel as bytes.
     *
     * @param tensor the tensor
     * @param root the rank whose tensor it is
     * @throws IllegalArgumentException if the tensor is unsuitable, or if there is no such rank
     */
    public void broadcast(Tensor tensor, int root) {
        broadcast(List.of(tensor), root);
    }

    /**
     * As {@link #broadcast(Tensor, int)} with each tensor of a list.
     *
     * @param tensors the tensors
     * @param root the rank whose tensors they are
     */
    public void broadcast(List<? extends Tensor> tensors, int root) {
        inPlace(tensors, true, new InPlace() {
            @Override
            public <T extends Element> void call(DeviceBuffer<T> buffer, CudaStream stream) {
                communicator.broadcast(buffer, root, stream);
            }
        });
    }

    /**
     * Gathers the tensors of all ranks at every rank, in the order of the ranks.
     *
     * @param send this rank's tensor
     * @param recv as many elements as all ranks send, of the same type
     * @throws IllegalArgumentException if a tensor is unsuitable, or if the numbers or types of elements do not match
     */
    public void allGather(Tensor send, Tensor recv) {
        allGather(List.of(send), List.of(recv));
    }

    /**
     * As {@link #allGather(Tensor, Tensor)} with each pair of two lists.
     *
     * @param send the tensors to send
     * @param recv the tensors to receive
     */
    public void allGather(List<? extends Tensor> send, List<? extends Tensor> recv) {
        between(send, recv, new Between() {
            @Override
            public <T extends Element> void call(DeviceBuffer<T> send, DeviceBuffer<T> recv, CudaStream stream) {
                communicator.allGather(send, recv, stream);
            }
        });
    }

    /**
     * Reduces a tensor over all ranks, and gives each rank its part of the result.
     *
     * @param send as many elements as all ranks receive
     * @param recv this rank's part
     * @param op the operator
     * @throws IllegalArgumentException if a tensor is unsuitable, or if the numbers or types of elements do not match
     */
    public void reduceScatter(Tensor send, Tensor recv, ReduceOp op) {
        reduceScatter(List.of(send), List.of(recv), op);
    }

    /**
     * As {@link #reduceScatter(Tensor, Tensor, ReduceOp)} with each pair of two lists.
     *
     * @param send the tensors to reduce
     * @param recv the tensors to receive
     * @param op the operator
     */
    public void reduceScatter(List<? extends Tensor> send, List<? extends Tensor> recv, ReduceOp op) {
        between(send, recv, new Between() {
            @Override
            public <T extends Element> void call(DeviceBuffer<T> send, DeviceBuffer<T> recv, CudaStream stream) {
                communicator.reduceScatter(send, recv, op, stream);
            }
        });
    }

    /**
     * Sends each rank its part of a tensor.
     *
     * @param send one part for each rank, in the order of the ranks
     * @param recv one part from each rank
     * @throws IllegalArgumentException if a tensor is unsuitable, or if the numbers or types of elements do not match
     */
    public void allToAll(Tensor send, Tensor recv) {
        allToAll(List.of(send), List.of(recv));
    }

    /**
     * As {@link #allToAll(Tensor, Tensor)} with each pair of two lists.
     *
     * @param send the tensors to send
     * @param recv the tensors to receive
     */
    public void allToAll(List<? extends Tensor> send, List<? extends Tensor> recv) {
        between(send, recv, new Between() {
            @Override
            public <T extends Element> void call(DeviceBuffer<T> send, DeviceBuffer<T> recv, CudaStream stream) {
                communicator.allToAll(send, recv, stream);
            }
        });
    }

    /**
     * Gathers the tensors of all ranks at one rank, in the order of the ranks.
     *
     * @param send this rank's tensor
     * @param recv on the root, as many elements as all ranks send; elsewhere any tensor of the type, which is not written
     * @param root the rank that receives
     * @throws IllegalArgumentException if a tensor is unsuitable, or if the numbers or types of elements do not match
     */
    public void gather(Tensor send, Tensor recv, int root) {
        gather(List.of(send), List.of(recv), root);
    }

    /**
     * As {@link #gather(Tensor, Tensor, int)} with each pair of two lists.
     *
     * @param send the tensors to send
     * @param recv the tensors to receive
     * @param root the rank that receives
     */
    public void gather(List<? extends Tensor> send, List<? extends Tensor> recv, int root) {
        between(send, recv, new Between() {
            @Override
            public <T extends Element> void call(DeviceBuffer<T> send, DeviceBuffer<T> recv, CudaStream stream) {
                if (communicator.rank() == root) {
                    communicator.gather(send, recv, root, stream);
                } else {
                    communicator.gather(send, root, stream);
                }
            }
        });
    }

    /**
     * Sends each rank its part of one rank's tensor.
     *
     * @param send on the root, one part for each rank; elsewhere any tensor of the type, which is not read
     * @param recv this rank's part
     * @param root the rank that sends
     * @throws IllegalArgumentException if a tensor is unsuitable, or if the numbers or types of elements do not match
     */
    public void scatter(Tensor send, Tensor recv, int root) {
        scatter(List.of(send), List.of(recv), root);
    }

    /**
     * As {@link #scatter(Tensor, Tensor, int)} with each pair of two lists.
     *
     * @param send the tensors to send
     * @param recv the tensors to receive
     * @param root the rank that sends
     */
    public void scatter(List<? extends Tensor> send, List<? extends Tensor> recv, int root) {
        between(send, recv, new Between() {
            @Override
            public <T extends Element> void call(DeviceBuffer<T> send, DeviceBuffer<T> recv, CudaStream stream) {
                if (communicator.rank() == root) {
                    communicator.scatter(send, recv, root, stream);
                } else {
                    communicator.scatter(recv, root, stream);
                }
            }
        });
    }

    /**
     * Sends a tensor to another rank, which receives it at the same time.
     *
     * @param tensor the tensor
     * @param peer the rank that receives
     * @throws IllegalArgumentException if the tensor is unsuitable, or if there is no such rank
     */
    public void send(Tensor tensor, int peer) {
        inPlace(List.of(tensor), false, new InPlace() {
            @Override
            public <T extends Element> void call(DeviceBuffer<T> buffer, CudaStream stream) {
                communicator.send(buffer, peer, stream);
            }
        });
    }

    /**
     * Receives a tensor from another rank, which sends it at the same time. Sends and receives that wait for each other
     * belong in a {@link Group}.
     *
     * @param tensor the tensor, with as many elements of the same type as the other rank sends
     * @param peer the rank that sends
     * @throws IllegalArgumentException if the tensor is unsuitable, or if there is no such rank
     */
    public void recv(Tensor tensor, int peer) {
        inPlace(List.of(tensor), false, new InPlace() {
            @Override
            public <T extends Element> void call(DeviceBuffer<T> buffer, CudaStream stream) {
                communicator.recv(buffer, peer, stream);
            }
        });
    }

    private interface InPlace {
        <T extends Element> void call(DeviceBuffer<T> buffer, CudaStream stream);
    }

    private interface Between {
        <T extends Element> void call(DeviceBuffer<T> send, DeviceBuffer<T> recv, CudaStream stream);
    }

    /** A pair of buffers of one type. */
    private record Pair<T extends Element>(TensorBuffer<T> send, TensorBuffer<T> recv) {
        static <T extends Element> Pair<T> of(TensorBuffer<T> send, Tensor recv, List<TensorBuffer<?>> opened) {
            TensorBuffer<T> second = TensorBuffer.of(recv, send.type());
            opened.add(second);
            return new Pair<>(send, second);
        }

        void call(Between operation, CudaStream stream) {
            operation.call(send.buffer(), recv.buffer(), stream);
        }
    }

    private void inPlace(List<? extends Tensor> tensors, boolean bytes, InPlace operation) {
        List<TensorBuffer<?>> opened = new ArrayList<>(tensors.size());
        try {
            for (Tensor tensor : tensors) {
                opened.add(bytes ? TensorBuffer.bytesOf(tensor) : TensorBuffer.of(tensor));
            }
            CudaStream stream = stream();
            together(opened.size(), () -> {
                for (TensorBuffer<?> buffer : opened) {
                    operation.call(buffer.buffer(), stream);
                }
            });
        } finally {
            opened.forEach(TensorBuffer::close);
        }
    }

    private void between(List<? extends Tensor> send, List<? extends Tensor> recv, Between operation) {
        if (send.size() != recv.size()) {
            throw new IllegalArgumentException(
                    "send and recv must have the same number of tensors: " + send.size() + " != " + recv.size());
        }
        List<TensorBuffer<?>> opened = new ArrayList<>(2 * send.size());
        try {
            List<Pair<?>> pairs = new ArrayList<>(send.size());
            for (int i = 0; i < send.size(); i++) {
                TensorBuffer<?> first = TensorBuffer.of(send.get(i));
                opened.add(first);
                pairs.add(Pair.of(first, recv.get(i), opened));
            }
            CudaStream stream = stream();
            together(pairs.size(), () -> {
                for (Pair<?> pair : pairs) {
                    pair.call(operation, stream);
                }
            });
        } finally {
            opened.forEach(TensorBuffer::close);
        }
    }

    private CudaStream stream() {
        return stream == null ? TensorBuffer.currentStream(communicator.device()) : stream;
    }

    /** One operation needs no group. */
    private static void together(int operations, Runnable body) {
        if (operations == 1) {
            body.run();
        } else {
            Group.run(body);
        }
    }
}

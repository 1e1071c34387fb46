package io.github.nccl4j.examples;

import io.github.nccl4j.highlevel.CudaGraph;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.pytorch.TensorBuffer;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.pytorch.LongPair;
import org.bytedeco.pytorch.cuda.CUDAAllocator;
import org.bytedeco.pytorch.cuda.CUDAStreamGuard;
import org.bytedeco.pytorch.cuda.MemPool;
import org.bytedeco.pytorch.cuda.StreamFilter;
import org.bytedeco.pytorch.global.torch;
import org.bytedeco.pytorch.global.torch_cuda;

/**
 * A CUDA graph of work of PyTorch and of collectives, which the presets have no class for. While it is open, PyTorch works in a
 * stream of its own in this thread, since the default stream cannot be captured.
 *
 * <p>Run the work once before it is captured: libraries such as cuBLAS allocate memory when a stream uses them first.
 */
final class TorchGraph implements AutoCloseable {
    private final byte index;
    private final CUDAAllocator allocator = torch_cuda.getAllocator();
    private final LongPair pool = MemPool.graph_pool_handle();
    private final CUDAStreamGuard guard;
    private final CudaStream stream;
    /** Null before the capture. */
    private CudaGraph graph;

    /** Makes another stream current. */
    TorchGraph(Device device) {
        index = (byte) device.index();
        // This stream does not wait for the default one, in which tensors were made.
        torch.cuda_synchronize(index);
        guard = new CUDAStreamGuard(torch_cuda.getStreamFromPool(false, index).unwrap());
        stream = TensorBuffer.currentStream(device);
    }

    /** Captures work, which does not run. It must read and write tensors that outlive the graph; its own ones do not. */
    void capture(Runnable work) {
        // Not from the memory of all tensors: others would be given the graph's memory.
        try (StreamFilter all = new StreamFilter() {
            @Override
            public boolean call(Pointer stream) {
                return true;
            }
        }) {
            allocator.beginAllocateToPool(index, pool, all);
            try {
                graph = CudaGraph.capture(stream, () -> {
                    allocator.markCaptureBegin(index);
                    try {
                        work.run();
                    } finally {
                        allocator.markCaptureEnd(index);
                    }
                });
            } finally {
                allocator.endAllocateToPool(index, pool);
            }
        }
    }

    void launch() {
        graph.launch(stream);
    }

    /** Frees the graph and its memory. */
    @Override
    public void close() {
        if (graph != null) {
            graph.close();
            allocator.releasePool(index, pool);
        }
        guard.close();
    }
}

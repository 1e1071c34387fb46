package io.github.nccl4j.samples.support;

import static org.bytedeco.cuda.global.cudart.cudaFree;
import static org.bytedeco.cuda.global.cudart.cudaGetDeviceCount;
import static org.bytedeco.cuda.global.cudart.cudaGetErrorName;
import static org.bytedeco.cuda.global.cudart.cudaGetErrorString;
import static org.bytedeco.cuda.global.cudart.cudaMalloc;
import static org.bytedeco.cuda.global.cudart.cudaMemcpy;
import static org.bytedeco.cuda.global.cudart.cudaMemcpyDeviceToHost;
import static org.bytedeco.cuda.global.cudart.cudaMemcpyHostToDevice;
import static org.bytedeco.cuda.global.cudart.cudaMemset;
import static org.bytedeco.cuda.global.cudart.cudaSetDevice;
import static org.bytedeco.cuda.global.cudart.cudaStreamCreate;
import static org.bytedeco.cuda.global.cudart.cudaStreamDestroy;
import static org.bytedeco.cuda.global.cudart.cudaStreamSynchronize;
import static org.bytedeco.cuda.global.cudart.cudaSuccess;

import java.util.ArrayList;
import java.util.List;
import org.bytedeco.cuda.cudart.CUstream_st;
import org.bytedeco.javacpp.FloatPointer;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.PointerPointer;

/** The memory of one GPU and one stream. The class is touched only when a GPU is wanted: it loads CUDA's runtime. */
final class CudaDevice extends Device {

    private final int rank;
    private final int ordinal;
    private final CUstream_st stream = new CUstream_st();
    private final List<Long> allocated = new ArrayList<>();

    CudaDevice(RankInfo self) {
        rank = self.rank();
        int[] count = new int[1];
        check(cudaGetDeviceCount(count), "cudaGetDeviceCount");
        if (count[0] == 0) {
            throw new NcclError("rank " + rank + ": the CUDA driver shows no GPU to this process");
        }
        ordinal = self.localRank() % count[0];
        check(cudaSetDevice(ordinal), "cudaSetDevice(" + ordinal + ")");
        check(cudaStreamCreate(stream), "cudaStreamCreate");
    }

    private void check(int result, String operation) {
        if (result != cudaSuccess) {
            throw new NcclError("rank " + rank + ": " + operation + " failed: "
                    + cudaGetErrorString(result).getString() + " ("
                    + cudaGetErrorName(result).getString() + ", " + result + ")");
        }
    }

    @Override
    public long allocate(long bytes) {
        try (PointerPointer<Pointer> cell = new PointerPointer<>(1)) {
            check(cudaMalloc(cell, Math.max(1, bytes)), "cudaMalloc(" + bytes + ")");
            long address = cell.get().address();
            allocated.add(address);
            return address;
        }
    }

    /** The stream of this device does not wait for the default one by itself when a copy has not reached the GPU yet. */
    @Override
    public void set(long address, int value, long bytes) {
        check(cudaMemset(new Address(address), value, bytes), "cudaMemset(" + bytes + ")");
        check(cudaStreamSynchronize(null), "cudaStreamSynchronize");
    }

    @Override
    void toDevice(long address, FloatPointer from, long bytes) {
        check(cudaMemcpy(new Address(address), from, bytes, cudaMemcpyHostToDevice), "cudaMemcpy(" + bytes + ")");
        check(cudaStreamSynchronize(null), "cudaStreamSynchronize");
    }

    @Override
    void toHost(FloatPointer to, long address, long bytes) {
        check(cudaMemcpy(to, new Address(address), bytes, cudaMemcpyDeviceToHost), "cudaMemcpy(" + bytes + ")");
    }

    @Override
    public long stream() {
        return stream.address();
    }

    @Override
    public void synchronize() {
        check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    }

    @Override
    public String describe() {
        return "GPU " + ordinal;
    }

    @Override
    public void close() {
        super.close();
        for (long address : allocated) {
            check(cudaFree(new Address(address)), "cudaFree");
        }
        allocated.clear();
        check(cudaStreamDestroy(stream), "cudaStreamDestroy");
    }
}

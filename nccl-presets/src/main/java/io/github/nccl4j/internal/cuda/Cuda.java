package io.github.nccl4j.internal.cuda;

import io.github.nccl4j.highlevel.CudaException;
import io.github.nccl4j.internal.memory.Address;
import io.github.nccl4j.internal.memory.NativeMemory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.UUID;
import org.bytedeco.cuda.cudart.CUctx_st;
import org.bytedeco.cuda.cudart.CUevent_st;
import org.bytedeco.cuda.cudart.CUgraphExec_st;
import org.bytedeco.cuda.cudart.CUgraph_st;
import org.bytedeco.cuda.cudart.CUstream_st;
import org.bytedeco.cuda.cudart.CUuuid;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.Pointer;

/**
 * Checked calls of CUDA. Each runs on the device of a primary context and restores the thread's current device. Only
 * code for CUDA devices may use this class, after {@link CudaRuntime#require()}.
 */
public final class Cuda {
    private static final int MEMORY_DEFAULT_KIND = 4;
    private static final int PORTABLE = 1;
    private static final int NON_BLOCKING = 1;
    private static final int DISABLE_TIMING = 2;
    private static final int UNLOADING = 4;
    private static final int NOT_READY = 600;
    private static final int CAPTURE_INVALIDATED = 901;
    private static final int DEINITIALIZED = 4;

    /** Action on a device. */
    @FunctionalInterface
    public interface Action<R> {
        R run();
    }

    private Cuda() {}

    /** Returns the calling thread's current device. */
    public static int currentDevice() {
        int[] device = new int[1];
        check(cudart.cudaGetDevice(device), "cudaGetDevice");
        return device[0];
    }

    /** Returns a device's primary context, which CUDA's runtime and NCCL use. It exists until the process ends. */
    public static long retainContext(int device) {
        checkDriver(cudart.cuInit(0), "cuInit");
        int[] handle = new int[1];
        checkDriver(cudart.cuDeviceGet(handle, device), "cuDeviceGet(" + device + ")");
        CUctx_st context = new CUctx_st();
        checkDriver(cudart.cuDevicePrimaryCtxRetain(context, handle[0]), "cuDevicePrimaryCtxRetain(" + device + ")");
        return context.address();
    }

    /** Returns the unique id of a GPU, "GPU-" and its UUID, as nvidia-smi prints it. */
    public static String uuid(int device) {
        int[] handle = new int[1];
        checkDriver(cudart.cuDeviceGet(handle, device), "cuDeviceGet(" + device + ")");
        try (NativeMemory uuid = new NativeMemory(2 * Long.BYTES)) {
            CUuuid struct = new CUuuid(new Address(uuid.address()));
            checkDriver(cudart.cuDeviceGetUuid(struct, handle[0]), "cuDeviceGetUuid(" + device + ")");
            ByteBuffer bytes = uuid.buffer().order(ByteOrder.BIG_ENDIAN);
            return "GPU-" + new UUID(bytes.getLong(), bytes.getLong());
        }
    }

    /**
     * Runs calls on a device. If it is not the thread's device, pushes and pops its context: restoring the device with
     * {@code cudaSetDevice} would create a context on a device that the thread has never used.
     */
    public static <R> R on(long context, Action<R> action) {
        if (currentContext() == context) {
            // CUDA's runtime checks the current context again after each change.
            return action.run();
        }
        checkDriver(cudart.cuCtxPushCurrent(new CUctx_st(new Address(context))), "cuCtxPushCurrent");
        boolean done = false;
        try {
            R result = action.run();
            done = true;
            return result;
        } finally {
            int popped = cudart.cuCtxPopCurrent(new CUctx_st());
            if (done && popped != DEINITIALIZED) {
                checkDriver(popped, "cuCtxPopCurrent");
            }
        }
    }

    /**
     * Sets the calling thread's device if it has none. At the end of a group or an operation, NCCL restores the
     * previous device; without one that is device 0, on which each process of a machine would create a context of 0.5
     * GB and switch to it with each operation. A failure here also occurs in the operation.
     */
    public static void giveThread(long context) {
        if (currentContext() == 0) {
            cudart.cuCtxSetCurrent(new CUctx_st(new Address(context)));
        }
    }

    /**
     * Returns the calling thread's context; 0 if the thread has none, -1 if CUDA can't return it, for example while the
     * process ends.
     */
    private static long currentContext() {
        CUctx_st current = new CUctx_st();
        return cudart.cuCtxGetCurrent(current) == cudart.CUDA_SUCCESS ? current.address() : -1;
    }

    private static void run(long context, Action<Integer> call, String name) {
        check(on(context, call), name);
    }

    /** As the other {@code run}, with an argument for the message of a failure. */
    private static void run(long context, Action<Integer> call, String name, long argument) {
        int result = on(context, call);
        if (result != cudart.cudaSuccess) {
            check(result, name + "(" + argument + ")");
        }
    }

    public static long allocate(long context, long bytes) {
        // JavaCPP sets the object's address to the memory; the object does not own it.
        Pointer memory = new Pointer();
        run(context, () -> cudart.cudaMalloc(memory, bytes), "cudaMalloc", bytes);
        return memory.address();
    }

    public static void free(long context, long address) {
        destroy(context, () -> cudart.cudaFree(new Address(address)), "cudaFree");
    }

    /** Allocates host memory that is page-locked for all devices. */
    public static long allocateHost(long context, long bytes) {
        Pointer memory = new Pointer();
        run(context, () -> cudart.cudaHostAlloc(memory, bytes, PORTABLE), "cudaHostAlloc", bytes);
        return memory.address();
    }

    public static void freeHost(long context, long address) {
        destroy(context, () -> cudart.cudaFreeHost(new Address(address)), "cudaFreeHost");
    }

    /** Waits for all work on a device. */
    public static void synchronizeDevice(long context) {
        run(context, cudart::cudaDeviceSynchronize, "cudaDeviceSynchronize");
    }

    /** Copies between any two memories. Done when this returns. */
    public static void copy(long context, long target, long source, long bytes) {
        run(
                context,
                () -> {
                    int result =
                            cudart.cudaMemcpy(new Address(target), new Address(source), bytes, MEMORY_DEFAULT_KIND);
                    // A small copy from host memory, or a copy within a device, may return before it is done.
                    return result != cudart.cudaSuccess ? result : cudart.cudaStreamSynchronize(null);
                },
                "cudaMemcpy",
                bytes);
    }

    /** Copies between any two memories, in stream order. */
    public static void copyAsync(long context, long target, long source, long bytes, long stream) {
        run(
                context,
                () -> cudart.cudaMemcpyAsync(
                        new Address(target), new Address(source), bytes, MEMORY_DEFAULT_KIND, stream(stream)),
                "cudaMemcpyAsync",
                bytes);
    }

    /** Sets bytes. Done when this returns. */
    public static void set(long context, long address, int value, long bytes) {
        run(
                context,
                () -> {
                    int result = cudart.cudaMemset(new Address(address), value, bytes);
                    return result != cudart.cudaSuccess ? result : cudart.cudaStreamSynchronize(null);
                },
                "cudaMemset",
                bytes);
    }

    public static long createStream(long context, boolean nonBlocking) {
        CUstream_st stream = new CUstream_st();
        int flags = nonBlocking ? NON_BLOCKING : 0;
        run(context, () -> cudart.cudaStreamCreateWithFlags(stream, flags), "cudaStreamCreateWithFlags", flags);
        return stream.address();
    }

    public static void destroyStream(long context, long stream) {
        destroy(context, () -> cudart.cudaStreamDestroy(stream(stream)), "cudaStreamDestroy");
    }

    public static void synchronizeStream(long context, long stream) {
        run(context, () -> cudart.cudaStreamSynchronize(stream(stream)), "cudaStreamSynchronize");
    }

    public static boolean streamIsDone(long context, long stream) {
        return isDone(on(context, () -> cudart.cudaStreamQuery(stream(stream))), "cudaStreamQuery");
    }

    public static void waitForEvent(long context, long stream, long event) {
        run(context, () -> cudart.cudaStreamWaitEvent(stream(stream), event(event), 0), "cudaStreamWaitEvent");
    }

    public static boolean isCapturing(long context, long stream) {
        int[] status = new int[1];
        run(context, () -> cudart.cudaStreamIsCapturing(stream(stream), status), "cudaStreamIsCapturing");
        return status[0] != cudart.cudaStreamCaptureStatusNone;
    }

    /**
     * Thread-local mode: other threads may make calls during the capture, as threads of NCCL and of this package do.
     */
    public static void beginCapture(long context, long stream) {
        run(
                context,
                () -> cudart.cudaStreamBeginCapture(stream(stream), cudart.cudaStreamCaptureModeThreadLocal),
                "cudaStreamBeginCapture");
    }

    /** Ends a capture after a failure and discards it; adds further errors to the failure. */
    public static void discardCapture(long context, long stream, Throwable failure) {
        CUgraph_st graph = new CUgraph_st();
        try {
            int result = on(context, () -> cudart.cudaStreamEndCapture(stream(stream), graph));
            if (result == CAPTURE_INVALIDATED) {
                // Most likely ended by the failure.
                cudart.cudaGetLastError();
                return;
            }
            check(result, "cudaStreamEndCapture");
            run(context, () -> cudart.cudaGraphDestroy(graph), "cudaGraphDestroy");
        } catch (CudaException another) {
            failure.addSuppressed(another);
        }
    }

    /** Ends a capture and creates an executable graph of it. */
    public static long endCapture(long context, long stream) {
        CUgraph_st graph = new CUgraph_st();
        run(context, () -> cudart.cudaStreamEndCapture(stream(stream), graph), "cudaStreamEndCapture");
        CUgraphExec_st executable = new CUgraphExec_st();
        int made = on(context, () -> cudart.cudaGraphInstantiateWithFlags(executable, graph, 0));
        int destroyed = on(context, () -> cudart.cudaGraphDestroy(graph));
        check(made, "cudaGraphInstantiateWithFlags(0)");
        if (destroyed != cudart.cudaSuccess) {
            on(context, () -> cudart.cudaGraphExecDestroy(executable));
            check(destroyed, "cudaGraphDestroy");
        }
        return executable.address();
    }

    /** Launches a graph and records an event behind it, unless the event is 0. */
    public static void launchGraph(long context, long executable, long stream, long event) {
        on(context, () -> {
            CUstream_st to = stream(stream);
            check(cudart.cudaGraphLaunch(new CUgraphExec_st(new Address(executable)), to), "cudaGraphLaunch");
            if (event != 0) {
                check(cudart.cudaEventRecord(event(event), to), "cudaEventRecord");
            }
            return null;
        });
    }

    public static void destroyGraph(long context, long executable) {
        destroy(
                context,
                () -> cudart.cudaGraphExecDestroy(new CUgraphExec_st(new Address(executable))),
                "cudaGraphExecDestroy");
    }

    public static long createEvent(long context, boolean timing) {
        CUevent_st event = new CUevent_st();
        int flags = timing ? 0 : DISABLE_TIMING;
        run(context, () -> cudart.cudaEventCreateWithFlags(event, flags), "cudaEventCreateWithFlags", flags);
        return event.address();
    }

    public static void destroyEvent(long context, long event) {
        destroy(context, () -> cudart.cudaEventDestroy(event(event)), "cudaEventDestroy");
    }

    public static void recordEvent(long context, long event, long stream) {
        run(context, () -> cudart.cudaEventRecord(event(event), stream(stream)), "cudaEventRecord");
    }

    public static void synchronizeEvent(long context, long event) {
        run(context, () -> cudart.cudaEventSynchronize(event(event)), "cudaEventSynchronize");
    }

    public static boolean eventIsDone(long context, long event) {
        return isDone(on(context, () -> cudart.cudaEventQuery(event(event))), "cudaEventQuery");
    }

    /** As {@link #eventIsDone}, for an event that is unrelated to a capture in this thread, which continues. */
    public static boolean eventIsDoneWhileCapturing(long context, long event) {
        return on(context, () -> whileCapturing(() -> isDone(cudart.cudaEventQuery(event(event)), "cudaEventQuery")));
    }

    /**
     * Runs calls that are unrelated to a capture in this thread and that CUDA would refuse during it: NCCL creates its
     * connections at their first use.
     */
    public static <R> R whileCapturing(Action<R> action) {
        int[] mode = {cudart.cudaStreamCaptureModeRelaxed};
        check(cudart.cudaThreadExchangeStreamCaptureMode(mode), "cudaThreadExchangeStreamCaptureMode");
        try {
            return action.run();
        } finally {
            cudart.cudaThreadExchangeStreamCaptureMode(mode);
        }
    }

    public static float elapsedMilliseconds(long context, long start, long end) {
        float[] milliseconds = new float[1];
        run(context, () -> cudart.cudaEventElapsedTime(milliseconds, event(start), event(end)), "cudaEventElapsedTime");
        return milliseconds[0];
    }

    private static CUstream_st stream(long handle) {
        return handle == 0 ? null : new CUstream_st(new Address(handle));
    }

    private static CUevent_st event(long handle) {
        return new CUevent_st(new Address(handle));
    }

    private static boolean isDone(int result, String call) {
        if (result == NOT_READY) {
            // Clears the runtime's last error, which other code would take for its own.
            cudart.cudaGetLastError();
            return false;
        }
        check(result, call);
        return true;
    }

    /** Frees or destroys an object. While the process ends, the driver has already done so. */
    private static void destroy(long context, Action<Integer> action, String call) {
        int result = on(context, action);
        if (result != UNLOADING) {
            check(result, call);
        }
    }

    private static void check(int result, String call) {
        if (result != cudart.cudaSuccess) {
            // Otherwise other code would find this error at its next check of a launch.
            cudart.cudaGetLastError();
            throw new CudaException(
                    call, result, text(cudart.cudaGetErrorName(result)), text(cudart.cudaGetErrorString(result)));
        }
    }

    private static void checkDriver(int result, String call) {
        if (result != 0) {
            BytePointer name = new BytePointer();
            BytePointer text = new BytePointer();
            cudart.cuGetErrorName(result, name);
            cudart.cuGetErrorString(result, text);
            throw new CudaException(call, result, text(name), text(text));
        }
    }

    private static String text(BytePointer text) {
        return text == null || text.isNull() ? "unknown error" : text.getString();
    }
}

package io.github.nccl4j.highlevel;

/**
 * Thrown if a call of CUDA failed. The message names the call, CUDA's code and CUDA's description.
 *
 * <p>Any later call may report errors of earlier work, such as an illegal address in a kernel. Most of these errors
 * make the device unusable for the rest of the process. Instances are immutable.
 *
 * @since 0.1
 */
public final class CudaException extends NcclException {
    private static final long serialVersionUID = 1L;

    /** The call that failed. */
    private final String call;

    /** CUDA's code. */
    private final int code;

    /**
     * Creates an exception. For the layers of nccl4j; programs only catch it.
     *
     * @param call the call that failed, with its relevant values
     * @param code CUDA's code
     * @param name the name of the code
     * @param text CUDA's description of the code
     */
    public CudaException(String call, int code, String name, String text) {
        super(call + " failed: " + text + " (" + name + ", " + code + ")");
        this.call = call;
        this.code = code;
    }

    /** {@return the call that failed, with its relevant values, such as "cudaMalloc(4096)"} */
    public String call() {
        return call;
    }

    /** {@return CUDA's code: a {@code cudaError_t}, or for a call that begins with "cu" a {@code CUresult}} */
    public int code() {
        return code;
    }

    @Override
    public String helpId() {
        return "NCCL4J-0009";
    }
}

package io.github.nccl4j.highlevel;

import org.jspecify.annotations.NullUnmarked;

/**
 * Thrown if a CUDA device is used and CUDA can't be called: its runtime library was not found, or JavaCPP Presets CUDA
 * is not on the class path. The message names every place that was searched, and the remedy. Code for the host engine
 * is not affected. Instances are immutable.
 *
 * @since 0.1
 */
public final class CudaLibraryException extends NcclException {
    private static final long serialVersionUID = 1L;

    /**
     * Creates an exception. For the layers of nccl4j; programs only catch it.
     *
     * @param message the missing part and a remedy
     * @param cause the failure to load the part, or null
     */
    @NullUnmarked
    public CudaLibraryException(String message, Throwable cause) {
        super(message, cause);
    }

    @Override
    public String helpId() {
        return "NCCL4J-0010";
    }
}

package io.github.nccl4j.highlevel;

import io.github.nccl4j.library.NcclException;

/**
 * A CUDA device was asked for, but CUDA can't be called: its runtime library was not found, or JavaCPP Presets CUDA is not
 * on the class path. The message names each place that was tried, and what to do. Code for the host engine is not
 * affected. Instances are immutable.
 */
public final class CudaLibraryException extends NcclException {
    private static final long serialVersionUID = 1L;

    CudaLibraryException(String message, Throwable cause) {
        super(message, cause);
    }
}

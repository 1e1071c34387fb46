package io.github.nccl4j.library;

/**
 * NCCL, or a part of it, is not there: no library could be loaded, or the loaded one lacks the function that was called,
 * has it in another form, or would ignore a setting that was made. The message names what was tried or
 * called, and the path and version of the library. Nothing has been called in the library when this is thrown, and other
 * calls go on working.
 *
 * <p>Instances are immutable.
 */
public final class NcclLibraryException extends NcclException {
    private static final long serialVersionUID = 1L;

    /**
     * Creates an exception; the bindings do.
     *
     * @param message what was tried or called, and what was found instead
     */
    public NcclLibraryException(String message) {
        super(message);
    }
}

package io.github.nccl4j.library;

/**
 * NCCL, or a function of it, is not there: no library could be loaded, the loaded one lacks the function that was
 * called, or has it in another form. The message names what was tried or called, and the path and version of the
 * library. Nothing has been called in the library when this is thrown, and other calls go on working.
 *
 * <p>Instances are immutable.
 */
public class NcclLibraryException extends RuntimeException {
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

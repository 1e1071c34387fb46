package io.github.nccl4j.highlevel;

/**
 * Thrown if NCCL, or a part of it, is not available: no library could be loaded, or the loaded library lacks the called
 * function, has it in another form, or would ignore a setting. The message names the places or the function that were
 * tried, and the path and version of the library. No function of the library was called, and other calls continue to
 * work.
 *
 * <p>Instances are immutable.
 *
 * @since 0.1
 */
public final class NcclLibraryException extends NcclException {
    private static final long serialVersionUID = 1L;

    /**
     * Creates an exception. For the bindings; programs only catch it.
     *
     * @param message the places or the function that were tried, and the result
     */
    public NcclLibraryException(String message) {
        super(message);
    }

    @Override
    public String helpId() {
        return "NCCL4J-0002";
    }
}

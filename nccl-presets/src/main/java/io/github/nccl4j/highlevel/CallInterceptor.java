package io.github.nccl4j.highlevel;

/**
 * Observes every call of NCCL by this package and by {@link io.github.nccl4j.global.nccl} in this process, for
 * profilers, metrics and tests. {@link NcclLibrary#intercept} installs an interceptor. Without an interceptor, calls
 * have no additional cost. With an interceptor, each call costs a few hundred nanoseconds more, plus the time of the
 * interceptor itself.
 *
 * <pre>{@code
 * CallInterceptor printer = new CallInterceptor() {
 *     public void after(Call call, int result, long nanoseconds) {
 *         System.out.println(call.function() + " returned " + result + " after " + nanoseconds + " ns");
 *     }
 * };
 * try (CallInterceptor.Installed installed = NcclLibrary.intercept(printer)) {
 *     communicator.allReduce(buffer, ReduceOp.SUM, stream);
 * }
 * }</pre>
 *
 * <p>The time of a call is its time on the host; an operation on a GPU has only been put into its stream by then. The
 * calls of a {@link Group} are made when the group is launched, and take effect at its {@code ncclGroupEnd}. Calls of
 * NCCL by other code in the process are not observed.
 *
 * <p>The thread that calls NCCL calls both methods; several threads may do so at once. Neither method may wait for
 * other ranks. Neither may call NCCL, except by the {@code pnccl} functions of {@link io.github.nccl4j.global.nccl},
 * which are not observed. Exceptions of both methods are logged, and do not affect the call.
 *
 * @since 0.1
 */
public interface CallInterceptor {

    /**
     * Called before each call of NCCL.
     *
     * @param call the call
     */
    default void before(Call call) {}

    /**
     * Called after each call of NCCL.
     *
     * @param call the object that was passed to {@link #before}
     * @param result the value of {@code ncclResult_t} that the function returned; 0 if it returns something else
     * @param nanoseconds the duration of the call on the host
     */
    default void after(Call call, int result, long nanoseconds) {}

    /** The installation of an interceptor. May be closed by any thread. */
    interface Installed extends AutoCloseable {

        /** Removes the interceptor, which still observes the end of calls under way. Closing again does nothing. */
        @Override
        void close();
    }

    /**
     * A call. Instances are immutable.
     *
     * @param function the C function: {@code "ncclAllReduce"}
     * @param communicator the address of the communicator; 0 for functions without a communicator
     * @param rank the rank in the communicator; -1 if this package did not create the communicator
     * @param communicatorName the communicator's name; empty if the communicator has no name or is not known
     * @param count the number of elements; for {@code ncclAlltoAllv} the elements that this rank sends; 0 for
     *     functions without elements
     * @param type the code of the element type; -1 for functions without elements
     * @param stream the address of the stream; 0 for the default stream and for functions without a stream
     */
    record Call(
            String function, long communicator, int rank, String communicatorName, long count, int type, long stream) {

        /**
         * Returns the size of {@link #count} elements, which this rank sends or receives according to the function.
         *
         * @return the size in bytes; 0 for functions without elements, and for types that this package does not know
         */
        public long bytes() {
            return type < 0 || type >= DataType.values().length
                    ? 0
                    : count * DataType.of(type).size();
        }
    }
}

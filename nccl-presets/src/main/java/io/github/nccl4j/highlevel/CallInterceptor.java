package io.github.nccl4j.highlevel;

/**
 * Sees every call of NCCL in this process, of this package and of {@link io.github.nccl4j.global.nccl}: for profilers, metrics
 * and tests. {@link NcclLibrary#intercept} installs one. While there is none, calls go to the library as ever, and cost
 * nothing more; with one, each costs some hundred nanoseconds and what the interceptor does.
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
 * <p>The time is that of the call on the host: an operation on a GPU has only been put into its stream. The calls of a {@link
 * Group} are made when it is launched, and wait for its {@code ncclGroupEnd}. Calls of other code in the
 * process are not seen.
 *
 * <p>Both methods are called by the thread that makes the call, in any thread, several at a time. They must not call NCCL
 * other than by the {@code pnccl} functions of {@link io.github.nccl4j.global.nccl}, which no interceptor sees, and must not wait for
 * other ranks. What they throw is logged, and changes nothing.
 */
public interface CallInterceptor {

    /**
     * Before a call.
     *
     * @param call the call
     */
    default void before(Call call) {}

    /**
     * After a call.
     *
     * @param call the same object as before it
     * @param result the value of {@code ncclResult_t} that the function returned
     * @param nanoseconds how long it took
     */
    default void after(Call call, int result, long nanoseconds) {}

    /** That an interceptor is told of calls. May be closed by any thread. */
    interface Installed extends AutoCloseable {

        /** Ends it, except for calls that are under way. Does nothing if it has ended. */
        @Override
        void close();
    }

    /**
     * A call. Instances are immutable.
     *
     * @param function the C function: {@code "ncclAllReduce"}
     * @param communicator the address of its communicator; 0 if it has none
     * @param rank the rank in that; -1 if this package did not make it
     * @param communicatorName the communicator's name; empty if it has none or is not known
     * @param count the number of elements; of {@code ncclAlltoAllv} those that this rank sends; 0 for functions without
     * @param type the code of their type; -1 for functions without
     * @param stream the address of the stream; 0 for the default stream and for functions without
     */
    record Call(
            String function, long communicator, int rank, String communicatorName, long count, int type, long stream) {

        /**
         * How many bytes {@link #count} elements are: those that this rank gives or gets, as the function counts them.
         *
         * @return the bytes; 0 for functions without elements, and for types that this package does not know
         */
        public long bytes() {
            return type < 0 || type >= DataType.values().length
                    ? 0
                    : count * DataType.of(type).size();
        }
    }
}

package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.communicator.CommunicatorCore;
import io.github.nccl4j.internal.communicator.CommunicatorSettings;
import io.github.nccl4j.internal.communicator.CommunicatorStreams;
import io.github.nccl4j.internal.cuda.NativeBuffer;
import io.github.nccl4j.internal.diagnostics.Jfr;
import io.github.nccl4j.internal.failure.BlockingCall;
import io.github.nccl4j.internal.operation.OperationKind;
import io.github.nccl4j.internal.operation.Operator;
import io.github.nccl4j.internal.submission.AllToAllvOperations;
import io.github.nccl4j.internal.submission.Blocks;
import io.github.nccl4j.internal.submission.CallConfig;
import io.github.nccl4j.internal.submission.CommunicatorWindows;
import io.github.nccl4j.internal.submission.ComposedOperations;
import io.github.nccl4j.internal.submission.CreatedOperator;
import io.github.nccl4j.internal.submission.DerivedCommunicators;
import io.github.nccl4j.internal.submission.ExchangeBuffers;
import io.github.nccl4j.internal.submission.OneSidedOperations;
import io.github.nccl4j.internal.submission.OperationChecks;
import io.github.nccl4j.internal.submission.OperationSubmitter;
import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.library.NativeLibrary;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.function.Consumer;

/**
 * A rank's handle to a group of ranks. All operations of NCCL are methods of this class.
 *
 * <pre>{@code
 * UniqueId id = rank == 0 ? UniqueId.create() : receiveFromRank0();
 * try (Communicator communicator = Communicator.create(id, rank, size);
 *         DeviceBuffer<Float32> gradients = communicator.device().allocate(ElementType.FLOAT32, 1024);
 *         CudaStream stream = CudaStream.nonBlocking(communicator.device())) {
 *     communicator.allReduce(gradients, gradients, ReduceOp.AVG, stream);
 *     communicator.work(stream).await();
 * }
 * }</pre>
 *
 * <h2>Operations</h2>
 *
 * <ul>
 *   <li><b>Callers.</b> Every rank of the communicator calls the <b>collective</b> operations, in the same order, with
 *       the same counts, types, operators and roots. Two ranks call {@link #send} and {@link #recv}. One rank calls a
 *       one-sided operation.
 *   <li><b>Stream order.</b> A call enqueues the operation in the stream and returns; the operation runs when the
 *       earlier work of the stream is complete. {@link #work} reports completion and failures. In the default stream of
 *       host memory, the operation is complete when the call returns.
 *   <li><b>Counts</b> are in elements and follow from the lengths of the buffers: pass a {@link DeviceBuffer#slice} for
 *       a part of a buffer. Operations with 0 elements are allowed.
 *   <li><b>In place.</b> The send and receive buffers may share memory where the method says so. Any other overlap is
 *       an {@link IllegalArgumentException}.
 *   <li><b>Buffers</b> belong to the caller, who must not change or read their contents before the operation is
 *       complete. A buffer may be closed at any time, because closing waits for the device.
 *   <li><b>Checks.</b> Errors that one rank can detect are found before NCCL is called:
 *       {@link IllegalArgumentException} (arguments don't fit), {@link IllegalStateException} (closed, in a wrong
 *       state, in use by another thread), or {@link NullPointerException}. Errors that NCCL detects are a
 *       {@link NcclResultException}. All methods that call NCCL can throw these exceptions; they list only further ones.
 *   <li><b>Libraries.</b> A method names its C function and the release of NCCL that added the function. An older library
 *       lacks it, which is a {@link NcclLibraryException}.
 *   <li><b>Configurations.</b> A {@link CollectiveConfig} is that of the one call, the same on all ranks. It selects the
 *       C function with {@code Config} behind its name, since NCCL 2.31.2, which has no replacement in an older library;
 *       a field that the library lacks is a {@link NcclLibraryException}, too.
 *   <li><b>Groups.</b> While the thread has an open {@link Group}, operations are deferred until its launch.
 * </ul>
 *
 * <h2>States</h2>
 *
 * <table class="plain">
 * <caption>Calls that a state allows; other calls throw IllegalStateException</caption>
 * <thead><tr><th>state</th><th>operations, windows, operators, work</th><th>split, shrink</th>
 *     <th>grow, suspend, revoke, finish</th><th>resume</th><th>close</th><th>abort</th></tr></thead>
 * <tbody>
 * <tr><th>PENDING</th><td>no</td><td>no</td><td>no</td><td>no</td><td>no</td><td>nothing is done</td></tr>
 * <tr><th>OPEN</th><td>yes</td><td>yes</td><td>yes</td><td>no</td><td>yes</td><td>yes</td></tr>
 * <tr><th>SUSPENDED</th><td>no</td><td>no</td><td>no</td><td>yes</td><td>yes</td><td>yes</td></tr>
 * <tr><th>REVOKED</th><td>no</td><td>yes</td><td>no</td><td>no</td><td>yes</td><td>yes</td></tr>
 * <tr><th>FINISHED</th><td>no</td><td>no</td><td>no</td><td>no</td><td>yes</td><td>yes</td></tr>
 * <tr><th>FAILED</th><td>no</td><td>no</td><td>no</td><td>no</td><td>aborts</td><td>yes</td></tr>
 * <tr><th>ABORTED, CLOSED</th><td>no</td><td>no</td><td>no</td><td>no</td><td>nothing is done</td><td>nothing is
 *     done</td></tr>
 * </tbody>
 * </table>
 *
 * <p>The properties rank, size, device, name and state are available in every state.
 *
 * <p><b>Ownership.</b> The creator of a communicator closes it. Closing is collective, since NCCL waits for the other
 * ranks; {@link #run} aborts the communicator instead if the code that uses it throws. Closing first closes the children of the communicator, the newest first: windows, registrations, operators,
 * {@linkplain #own owned} communicators, and CUDA graphs that have captured its operations, for which NCCL would wait.
 * A communicator that becomes unreachable without being closed is logged with the stack of its creation; the garbage
 * collector never destroys it.
 *
 * <p><b>Waiting.</b> Calls that wait for other ranks fail at the communicator's deadline with a
 * {@link NcclTimeoutException}: creating, closing, changes of state, {@link Work#await()}. On a GPU, operations don't
 * wait, except that NCCL may connect to other ranks in the first operation of a kind; the
 * {@linkplain CommunicatorBuilder#watchdog watchdog} ends such a call at the deadline. The watchdog also detects
 * failures while no thread waits; {@link #failure} returns them.
 *
 * <p>A thread that is interrupted while it waits for other ranks aborts the communicator and gets a
 * {@link NcclInterruptedException}. The same happens at the first waiting call of a thread that was interrupted before.
 *
 * <p><b>Threads.</b> One thread at a time may call operations and change the state; concurrent calls of other threads
 * throw an {@link IllegalStateException} that names the first thread. Any thread may at any time call {@link #abort},
 * {@link #revoke}, {@link #asyncError} and the methods that are available in every state. Virtual threads may use a
 * communicator, with the limits of {@linkplain io.github.nccl4j.highlevel this package}.
 *
 * @see <a href="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api/comms.html">NCCL: communicators</a>
 * @since 0.1
 */
public final class Communicator implements AutoCloseable {
    /** The default limit for waiting for other ranks: 5 minutes. */
    public static final Duration DEFAULT_DEADLINE = CommunicatorSettings.DEFAULT.deadline();

    /** No limit, for {@link CommunicatorBuilder#deadline}. */
    public static final Duration NO_DEADLINE = Duration.ofSeconds(Long.MAX_VALUE);

    private final CommunicatorCore core;
    private final Device device;
    final FailurePolicy policy;
    private final FlightRecorder recorder;
    final CommunicatorStreams streams;
    /* Made on demand, with the lock of the streams held. */
    private CudaStream ownStream;
    private DerivedCommunicators<Communicator> derived;

    final CommunicatorWindows windows;
    private final OperationChecks checks;
    private final OperationSubmitter operations;
    private final ComposedOperations composed;
    private final OneSidedOperations oneSidedOperations;
    final AllToAllvOperations allToAllvOperations;
    private final AddressOperations onAddresses;
    private final ControlData control;

    /** The state of a communicator, which determines the allowed calls; see the table of {@link Communicator}. */
    public enum State {
        /** Created in a group that is not launched yet. */
        PENDING,
        /** Ready for use. */
        OPEN,
        /** Memory is released; see {@link Communicator#suspend}. */
        SUSPENDED,
        /** Work is stopped; see {@link Communicator#revoke}. */
        REVOKED,
        /** Work is finished; see {@link Communicator#finish}. */
        FINISHED,
        /** A call was abandoned at the deadline. */
        FAILED,
        /** Aborted. */
        ABORTED,
        /** Closed, or never created. */
        CLOSED
    }

    Communicator(
            NcclLibrary library,
            Device device,
            boolean blocking,
            boolean owner,
            CommunicatorSettings settings,
            FailurePolicy policy,
            String name) {
        this.device = device;
        this.policy = policy;
        core = new CommunicatorCore(
                library, device.nativeDevice, blocking, owner, settings, name, new CommunicatorListener(this));
        recorder = new FlightRecorder(core.recorder());
        Jfr.initialize();
        Profiler.startBySetting();
        streams = new CommunicatorStreams(core);
        windows = new CommunicatorWindows(core);
        checks = new OperationChecks(core, windows);
        operations = new OperationSubmitter(core, checks, windows, CollectiveConfig.EMPTY.call);
        composed = new ComposedOperations(core, checks, operations);
        oneSidedOperations = new OneSidedOperations(core, checks, windows, operations);
        allToAllvOperations =
                new AllToAllvOperations(core, checks, windows, composed, streams, new ExchangeBuffers(core.device()));
        onAddresses = new AddressOperations(checks, operations);
        control = new ControlData(core, streams, checks, operations, composed);
    }

    private DerivedCommunicators<Communicator> derived() {
        synchronized (streams) {
            if (derived == null) {
                NcclLibrary library = NcclLibrary.get();
                derived = new DerivedCommunicators<>(
                        core,
                        (blocks, its, named) -> new Communicator(library, device, blocks, true, its, policy, named),
                        Communicator::core,
                        CommunicatorBuilder::key,
                        ids -> CommunicatorConfig.arguments(null, ids, library));
            }
            return derived;
        }
    }

    /** {@return the record of the last operations of this communicator, the same in every call} */
    public FlightRecorder flightRecorder() {
        return recorder;
    }

    /* Creating. */

    /** {@return a builder with the default settings for new communicators} */
    public static CommunicatorBuilder builder() {
        return new CommunicatorBuilder();
    }

    /**
     * Creates this rank's communicator on the current device, with default settings. Collective: returns when all ranks
     * have called it. C function: {@code ncclCommInitRank}.
     *
     * @param id the id that one rank has created
     * @param rank this rank, from 0
     * @param size the number of ranks
     * @return the communicator, to be closed by the caller
     * @throws IllegalArgumentException if rank or size is out of range
     * @throws NcclTimeoutException if not all ranks call within {@link #DEFAULT_DEADLINE}
     */
    public static Communicator create(UniqueId id, int rank, int size) {
        return builder().create(id, rank, size);
    }

    /**
     * Creates the communicator of all ranks of this process's job, with default settings. Collective. Under torchrun,
     * mpirun, srun, Kubernetes or the nccl4j command, programs need no other setup.
     *
     * <pre>{@code
     * try (Communicator communicator = Communicator.fromEnvironment()) {
     *     ...
     * }
     * }</pre>
     *
     * @return the communicator, to be closed by the caller
     * @throws IllegalArgumentException if the environment is incomplete or inconsistent
     * @throws NcclLibraryException if no library can be loaded
     * @throws io.github.nccl4j.launch.RendezvousException if not all ranks call in time, a rank has failed, or two
     *     ranks use the same GPU
     * @throws NcclTimeoutException if the communicator is not created in time
     * @see CommunicatorBuilder#fromEnvironment
     */
    public static Communicator fromEnvironment() {
        return builder().fromEnvironment();
    }

    /**
     * Creates a communicator with one rank for each device, all in this process, with default settings. C function: as
     * {@code ncclCommInitAll}.
     *
     * @param devices the device of each rank; only host memory may occur several times
     * @return the communicators by rank, each to be closed by the caller
     * @throws IllegalArgumentException if devices is empty, or contains a CUDA device twice
     */
    public static List<Communicator> createAll(List<Device> devices) {
        return builder().createAll(devices);
    }

    /**
     * Wraps a communicator that other code has created, and that other code destroys after this object is closed.
     *
     * @param handle the {@code ncclComm_t}
     * @param device the device of the native communicator
     * @return the communicator; closing it closes its children, and leaves the handle valid
     * @throws IllegalArgumentException if the handle is 0, or the library can't use the device
     * @throws NcclResultException if NCCL finds that the handle is not a communicator
     */
    public static Communicator wrap(long handle, Device device) {
        return CommunicatorBuilder.ofHandle(handle, device, false);
    }

    /**
     * As {@link #wrap}, but takes over the communicator: closing this object destroys it.
     *
     * @param handle the {@code ncclComm_t}
     * @param device the device of the native communicator
     * @return the communicator, to be closed by the caller
     */
    public static Communicator adopt(long handle, Device device) {
        return CommunicatorBuilder.ofHandle(handle, device, true);
    }

    /* Properties. */

    /**
     * {@return this rank, from 0, by {@code ncclCommUserRank}}
     *
     * @throws IllegalStateException if the rank is not known yet: a communicator that is split, shrunk or grown in a
     *     group has a rank after the launch of the group
     */
    public int rank() {
        return core.rank();
    }

    /**
     * {@return the number of ranks, by {@code ncclCommCount}}
     *
     * @throws IllegalStateException if the number is not known yet, as in {@link #rank()}
     */
    public int size() {
        return core.size();
    }

    /** {@return the device of this communicator's buffers and streams} */
    public Device device() {
        return device;
    }

    /** {@return the name from the configuration; empty if there is none} */
    public String name() {
        return core.name();
    }

    /** {@return the state} */
    public State state() {
        return State.valueOf(core.state().name());
    }

    /**
     * Returns the first failure of this communicator: an error of NCCL, a call or work that has exceeded its deadline,
     * or an interrupt. Wrong arguments and wrong states don't count. This method is for programs that poll; a thread
     * that waits gets an exception.
     *
     * @return the failure that was reported first; empty if there is none
     */
    public Optional<NcclException> failure() {
        return Optional.ofNullable(core.failures().tellFirst());
    }

    /** {@return the limit for calls that wait for other ranks} */
    public Duration deadline() {
        return core.deadline();
    }

    /** {@return true if calls wait within NCCL; false if they wait in Java, where they can be abandoned} */
    public boolean isBlocking() {
        return core.isBlocking();
    }

    /**
     * {@return the {@code ncclComm_t} for native code, valid while the communicator is open}
     *
     * @throws IllegalStateException if the communicator is not open
     */
    public long nativeHandle() {
        core.requireOpen();
        return core.handle();
    }

    /**
     * Returns the result of NCCL's asynchronous work, for example an error if a rank is lost. Does not wait. Any thread
     * may call it. C function: {@code ncclCommGetAsyncError}.
     *
     * @return {@link Result#SUCCESS}, {@link Result#IN_PROGRESS} while a nonblocking call is in progress, or an error
     * @throws IllegalStateException if the communicator is closed or aborted
     */
    public Result asyncError() {
        return Result.of(core.calls().poll());
    }

    /** {@return NCCL's text about the last error of this process, by {@code ncclGetLastError}; empty if there is none} */
    public String lastError() {
        return core.calls().lastError();
    }

    /**
     * Returns a statistic of NCCL about the memory of this communicator, which may be suspended. Not collective. C
     * function: {@code ncclCommMemStats}, since NCCL 2.29.7.
     *
     * @param statistic the statistic
     * @return the value, in bytes unless {@link MemoryStatistic} says otherwise
     */
    public long memory(MemoryStatistic statistic) {
        return core.calls().memory(statistic.code());
    }

    /**
     * Returns the location of this communicator's rank, and the features that its kernels and windows can use. Not
     * collective, not stream-ordered.
     *
     * <p>C function: {@code ncclCommQueryProperties}, since NCCL 2.29.2. Newer releases report more properties. From
     * 2.29.7 on, the first call fixes the address space for each window; {@code NCCL_WIN_STRIDE} can set it before.
     *
     * @return the properties
     * @throws IllegalStateException if the communicator is not open, or is in use by another thread
     */
    public CommunicatorProperties properties() {
        int version = CommunicatorProperties.versionFor(NativeLibrary.versionCode());
        return core.calls().properties(version, CommunicatorProperties::new);
    }

    /* Deriving communicators. */

    /**
     * Partitions the ranks: the ranks with the same color form a new communicator. Collective over all ranks; a rank
     * that joins no new communicator calls {@link #splitNone}.
     *
     * <p>C function: {@code ncclCommSplit}, since NCCL 2.18.1. In an open group, the new communicator is pending until
     * the launch of the group.
     *
     * @param color the part of this rank, at least 0
     * @param key the order in the new communicator: ranks are ordered by key, then by their rank in this communicator
     * @return the new communicator, with the configuration, deadline and policy of this one; to be closed by the
     *     caller, or by this communicator if it {@linkplain #own owns} it
     * @throws IllegalArgumentException if the color is negative
     */
    public Communicator split(int color, int key) {
        return derived().split(color, key);
    }

    /**
     * As {@link #split(int, int)} with another configuration.
     *
     * @param color the part of this rank, at least 0
     * @param key the order in the new communicator
     * @param config the configuration of the new communicator
     * @return the new communicator
     * @throws NcclLibraryException if the library does not support a field of the configuration
     */
    public Communicator split(int color, int key, CommunicatorConfig config) {
        Objects.requireNonNull(config, "config");
        NcclLibrary library = core.library();
        return derived()
                .split(color, key, config.values(), () -> CommunicatorConfig.arguments(config, List.of(), library));
    }

    /**
     * Takes part in the {@link #split} of the other ranks without joining a new communicator. Collective with their
     * call. C function: {@code ncclCommSplit} with {@code NCCL_SPLIT_NOCOLOR}, since NCCL 2.18.1.
     */
    public void splitNone() {
        derived().splitNone();
    }

    /**
     * Creates a communicator without some of the ranks, for example without lost ranks. Collective over the remaining
     * ranks; the excluded ranks don't call it. C function: {@code ncclCommShrink}, since NCCL 2.27.3.
     *
     * @param excluded the ranks to exclude: at least one, not including this rank
     * @param flag the treatment of outstanding work; {@link ShrinkFlag#ABORT} stops it first
     * @return the new communicator; the ranks keep their order
     * @throws IllegalArgumentException if excluded is empty, or contains this rank or a rank out of range
     */
    public Communicator shrink(Collection<Integer> excluded, ShrinkFlag flag) {
        return derived().shrink(excluded, flag);
    }

    /**
     * Creates the id for new ranks that join a growing communicator. One rank calls it before all ranks call {@link
     * #grow}; the new ranks pass the id to {@link CommunicatorBuilder#join}. C function: {@code ncclCommGetUniqueId},
     * since NCCL 2.29.2.
     *
     * @return the id
     */
    public UniqueId growId() {
        return derived().growId();
    }

    /**
     * Creates a communicator with more ranks. Collective over the ranks of this communicator and the new ranks. The
     * ranks of this communicator keep their numbers. C function: {@code ncclCommGrow}, since NCCL 2.29.2.
     *
     * @param newSize the number of ranks of the new communicator
     * @return the new communicator; this communicator does not change
     * @throws IllegalArgumentException if newSize is not larger than the number of ranks
     */
    public Communicator grow(int newSize) {
        return derived().grow(newSize);
    }

    /** As {@link #grow(int)}, to the ranks of a rendezvous, which all ranks join. */
    Communicator grow(Rendezvous all) {
        return derived().grow(all);
    }

    /**
     * Makes this communicator the owner of another one: closing this communicator first closes the other one.
     *
     * @param child the communicator to own, usually one that was split from this one
     * @return the child
     * @throws IllegalArgumentException if child is this communicator
     */
    public Communicator own(Communicator child) {
        Objects.requireNonNull(child, "child");
        if (child == this) {
            throw new IllegalArgumentException("a communicator can't own itself: " + this);
        }
        core.requireOpen();
        core.owned().own(child.core);
        return child;
    }

    /* Changes of state. */

    /**
     * Releases resources that an unused communicator does not need. Collective. The work of the communicator must be
     * complete. C function: {@code ncclCommSuspend}, since NCCL 2.29.7.
     *
     * @param flag the resources to release
     */
    public void suspend(SuspendFlag flag) {
        core.lifecycle().suspend(flag.code());
    }

    /**
     * Acquires again the resources that {@link #suspend} has released. Collective. C function: {@code ncclCommResume},
     * since NCCL 2.29.7.
     *
     * @throws IllegalStateException if the communicator is not suspended
     */
    public void resume() {
        core.lifecycle().resume();
    }

    /**
     * Stops this rank's work in this communicator without freeing the communicator: an operation in another thread
     * returns with an error. The live ranks can then shrink or split the communicator. Any thread may call it.
     *
     * <p>{@link Work} that was not done before is lost, and waiting for it throws. Its streams and events are complete
     * afterwards, as if it was done. C function: {@code ncclCommRevoke}, since NCCL 2.28.7.
     *
     * @param flag the mode
     */
    public void revoke(RevokeFlag flag) {
        core.lifecycle().revoke(flag.code());
    }

    /**
     * Finishes all work, so that a later {@link #close} returns soon. Collective.
     *
     * <p>From NCCL 2.31 on, waits for all ranks of the communicator in this process: each must call it in a thread of
     * its own. C function: {@code ncclCommFinalize}, since NCCL 2.14.3.
     */
    public void finish() {
        core.lifecycle().finish();
    }

    /**
     * Stops this rank's work in this communicator and frees the communicator, without waiting for other ranks. Its
     * children become unusable. Any thread may call it, also during an operation in another thread, which then returns
     * with an error. Does nothing if the communicator is pending, closed or aborted.
     *
     * <p>C function: {@code ncclCommAbort}. During a call of another thread, {@code ncclCommRevoke} comes first if the
     * library has it, so that no memory in use is freed; with an older library, the other thread has 5 seconds to
     * return.
     *
     * @throws NcclResultException if NCCL fails; the communicator is aborted nevertheless
     */
    public void abort() {
        core.abort();
    }

    /**
     * Aborts several communicators concurrently, each as {@link #abort} does. With sequential calls, each abort could
     * wait for the later ones. Returns when all communicators are aborted, each after its deadline at the latest. Any
     * thread may call it; an interrupt does not end the call.
     *
     * @param communicators communicators of this process
     * @throws NcclResultException if NCCL fails for a communicator, with failures of further communicators
     *     {@linkplain Throwable#getSuppressed suppressed}; all are aborted nevertheless
     */
    public static void abortAll(Collection<Communicator> communicators) {
        List<Communicator> all = List.copyOf(communicators);
        BlockingCall.runAll(
                "abort", all.stream().<Runnable>map(one -> one::abort).toList());
    }

    /**
     * Closes the children of the communicator, finishes its work and frees it. Collective. If NCCL reports an error of
     * the communicator, closing aborts it instead. Does nothing if the communicator is closed or aborted.
     *
     * <p>If several ranks of a communicator are in this process, NCCL frees all of them when the last one is closed,
     * and then waits for the devices of all. Therefore ranks in threads wait for each other here: at most a second for
     * a rank that another thread uses, and until the deadline once all ranks are closing. Without this wait, a thread
     * could start a collective that needs a rank that is still closing, and NCCL would wait forever for the device. For
     * nonblocking communicators, the end of NCCL's wait is not known here: use them with one rank per process.
     *
     * <p>C functions: {@code ncclCommFinalize} and {@code ncclCommDestroy}; from NCCL 2.31 on, {@code ncclCommDestroy}
     * alone if this process has several ranks of the communicator, which one thread may then close one after the other.
     *
     * @throws IllegalStateException if the communicator is pending, takes part in an open group, or is in use by
     *     another thread; it stays open then
     * @throws NcclTimeoutException if closing exceeds the deadline; the communicator is aborted then
     * @throws NcclResultException if NCCL fails; the communicator is closed nevertheless
     */
    @Override
    public void close() {
        core.close();
    }

    /**
     * Runs a piece of code with this communicator, and then {@linkplain #close closes} it, which can throw. If the code throws, {@linkplain
     * #abort aborts} it instead, so that the exception is not delayed: closing waits for the other ranks, which may wait for
     * operations that this rank does not call any more. If the ranks met at a store that is still open, the end of this process
     * then counts as the loss of a rank: the calls of the other ranks end with a {@link NcclRemoteException}. The end of a
     * process that has closed or aborted its communicator in another way is no loss.
     *
     * <pre>{@code
     * Communicator.fromEnvironment().run(communicator -> {
     *     while (hasMoreSteps()) {
     *         step(communicator);
     *     }
     * });
     * }</pre>
     *
     * @param <X> the type of checked exceptions of the code
     * @param body the code; for the calling thread
     * @throws X if the code throws it, after the communicator was aborted; a failure of aborting is suppressed
     */
    public <X extends Exception> void run(Body<X> body) throws X {
        Objects.requireNonNull(body, "body");
        try {
            body.run(this);
        } catch (Throwable failure) {
            core.lifecycle().abortAfter(failure);
            throw failure;
        }
        close();
    }

    /**
     * A piece of code that uses a communicator.
     *
     * @param <X> the type of its checked exceptions
     */
    @FunctionalInterface
    public interface Body<X extends Exception> {
        /**
         * Runs the code.
         *
         * @param communicator the communicator
         * @throws X if the code fails
         */
        void run(Communicator communicator) throws X;
    }

    /* Streams and waiting. */

    /**
     * {@return this communicator's own stream, which the first call creates and which is closed with the communicator}
     * Its work runs concurrently with the default stream of the device; {@link #letDefaultStreamWait} and
     * {@link #waitForDefaultStream} order the two streams.
     */
    public CudaStream stream() {
        core.requireOpen();
        synchronized (streams) {
            if (ownStream == null) {
                ownStream = new CudaStream(device, streams.ownStream());
            }
            return ownStream;
        }
    }

    /** Makes later work of the default stream wait for the present work of {@link #stream()}. Returns at once. */
    public void letDefaultStreamWait() {
        core.requireOpen();
        streams.letDefaultStreamWait();
    }

    /** Makes later work of {@link #stream()} wait for the present work of the default stream. Returns at once. */
    public void waitForDefaultStream() {
        core.requireOpen();
        streams.waitForDefaultStream();
    }

    /**
     * Returns a handle for the present work of a stream, to wait for its completion. Not collective. Returns at once.
     *
     * @param stream a stream of this communicator's device
     * @return the work, complete when all present work of the stream is complete; it need not be closed
     * @throws IllegalStateException also in an open group, whose operations are not in a stream yet, and while the
     *     stream is being captured
     */
    public Work work(CudaStream stream) {
        checks.workOf(stream.nativeStream);
        return new Work(streams.markAlone(stream.nativeStream));
    }

    /**
     * Calls operations in {@link #stream()}, and returns their work.
     *
     * <pre>{@code
     * Work work = communicator.submit(own -> communicator.allReduce(gradients, ReduceOp.AVG, own));
     * ...
     * work.await();
     * }</pre>
     *
     * <p>The operations run concurrently with the default stream; call {@link #waitForDefaultStream} before if its work
     * writes the buffers.
     *
     * @param operations the code that calls operations in the stream that it gets
     * @return the work, as {@link #work} returns it after the operations
     * @throws IllegalStateException also in an open group
     */
    public Work submit(Consumer<CudaStream> operations) {
        Objects.requireNonNull(operations, "operations");
        CudaStream own = stream();
        checks.workOf(own.nativeStream);
        operations.accept(own);
        return work(own);
    }

    /**
     * Creates a plan of operations of this communicator: the code calls them, and they are checked and recorded instead of
     * launched. {@link Plan#run} launches them, any number of times. Not collective.
     *
     * @param operations the code that calls operations, possibly none
     * @return the plan, closed by the caller or with the communicator
     * @throws IllegalArgumentException if the code creates communicators or windows, or calls operations of another
     *     communicator
     * @throws IllegalStateException also in an open group and in a capture
     */
    public Plan plan(Runnable operations) {
        return Plan.of(core, windows, this.operations, operations);
    }

    /* Operators. */

    /**
     * Creates an operator that multiplies this rank's elements by a number and then sums the products of all ranks. Not
     * collective: each rank creates its own operator with its own number, and all ranks pass their operators to the
     * same operation. C function: {@code ncclRedOpCreatePreMulSum} with the number in host memory, since NCCL 2.11.4.
     *
     * @param <T> the type of the elements
     * @param type the type of the elements
     * @param scalar the number, rounded to the type
     * @return the operator, closed by the caller or with the communicator
     * @throws IllegalArgumentException if the type is an integer type that can't represent the number
     */
    public <T extends Element> PreMulSum<T> preMulSum(ElementType<T> type, double scalar) {
        checks.type(type.nativeCode());
        return new PreMulSum<>(type, CreatedOperator.create(core, type.format, scalar));
    }

    /**
     * As {@link #preMulSum(ElementType, double)} with a number in device memory, read when an operation runs. C
     * function: {@code ncclRedOpCreatePreMulSum} with the number on the device, since NCCL 2.11.4.
     *
     * @param <T> the type of the elements
     * @param scalar a buffer with the number as its only element; the operator keeps its memory until it is closed
     * @return the operator, closed by the caller or with the communicator
     * @throws IllegalArgumentException if the buffer does not have exactly one element, or is on another device
     */
    public <T extends Element> PreMulSum<T> preMulSum(DeviceBuffer<T> scalar) {
        OperationChecks.equal("scalar.length()", scalar.length(), "1", 1);
        checks.buffer(scalar.nativeBuffer);
        return new PreMulSum<>(scalar.type(), CreatedOperator.create(core, scalar.nativeBuffer));
    }

    /* Registered memory. */

    /**
     * Registers memory of every rank for access by the other ranks. Collective: all ranks make the call in the same
     * order, with the same number of bytes and the same flags. If the ranks differ, the host engine throws on all of them.
     *
     * <p>C function: {@code ncclCommWindowRegister}, since NCCL 2.27.3. In an open group, the window is pending until
     * the launch of the group.
     *
     * @param buffer memory of {@link Device#allocateForWindow} or a slice of it, or wrapped memory of
     *     {@code ncclMemAlloc}; its address must be a multiple of {@link WindowFlag#REQUIRED_ALIGNMENT}
     * @param flags the uses of the window; none is the same as {@link WindowFlag#DEFAULT}
     * @return the window, closed by the caller or with the communicator
     * @throws IllegalArgumentException if the buffer is empty, or has the wrong kind of memory, alignment or device
     * @throws NcclLibraryException if the library lacks the function or a flag
     * @throws NoWindowException if NCCL can't create windows for this communicator; in a group, its launch throws this
     * @throws NcclTimeoutException if not all ranks call before the deadline
     * @throws NcclUsageException on the host engine, if the number of bytes or the flags differ between ranks
     */
    public Window registerWindow(DeviceBuffer<?> buffer, WindowFlag... flags) {
        checks.buffer(buffer.nativeBuffer);
        return Window.register(core, windows, buffer, flags);
    }

    /**
     * Lets NCCL use memory directly in operations of this communicator. Not collective, but useful only if all ranks
     * register their memory. C function: {@code ncclCommRegister}, since NCCL 2.19.1; called at once, also in a group.
     *
     * @param buffer the memory; some kinds of direct use need memory of {@link Device#allocateForWindow}
     * @return the registration, closed by the caller or with the communicator
     * @throws IllegalArgumentException if the buffer is empty, or is on another device
     */
    public Registration register(DeviceBuffer<?> buffer) {
        checks.buffer(buffer.nativeBuffer);
        return Registration.of(core, buffer);
    }

    /* Collective operations. */

    /**
     * Checks and submits a collective; the configuration is null for a call without one. The most frequent operations
     * call both methods themselves: through this method, C2 makes calls that take 3.6 ns more.
     */
    private void submit(
            OperationKind kind,
            DeviceBuffer<?> send,
            DeviceBuffer<?> recv,
            ReduceOp op,
            int root,
            CudaStream stream,
            CallConfig config) {
        NativeBuffer from = DeviceBuffer.nativeOf(send);
        NativeBuffer to = DeviceBuffer.nativeOf(recv);
        Operator operator = ReduceOp.operatorOf(op);
        long count = checks.collective(kind, from, to, operator, root);
        // Only the root of a gather and of a scatter needs both.
        NativeBuffer used = from == null ? to : from;
        operations.submit(kind, used, to == null ? from : to, count, operator, root, stream.nativeStream, config);
    }

    /** As above, by sends and receives if the library lacks the function. */
    private void submitOrCompose(
            OperationKind kind, DeviceBuffer<?> send, DeviceBuffer<?> recv, int root, CudaStream stream) {
        if (composed.replaces(kind)) {
            composed.replace(kind, DeviceBuffer.nativeOf(send), DeviceBuffer.nativeOf(recv), root, stream.nativeStream);
        } else {
            submit(kind, send, recv, null, root, stream, null);
        }
    }

    /**
     * Reduces the elements of all ranks; every rank gets the result. Collective, in stream order. In place if send and
     * recv are the same memory. C function: {@code ncclAllReduce}.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements
     * @param recv the result, of the same length as send
     * @param op the operator
     * @param stream the stream
     */
    public <T extends Element> void allReduce(
            DeviceBuffer<T> send, DeviceBuffer<T> recv, ReduceOp op, CudaStream stream) {
        NativeBuffer from = send.nativeBuffer;
        NativeBuffer to = recv.nativeBuffer;
        long count = checks.collective(OperationKind.ALL_REDUCE, from, to, op.operator, 0);
        operations.submit(OperationKind.ALL_REDUCE, from, to, count, op.operator, 0, stream.nativeStream, null);
    }

    /**
     * As {@link #allReduce(DeviceBuffer, DeviceBuffer, ReduceOp, CudaStream)} with a configuration.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements
     * @param recv the result, of the same length as send
     * @param op the operator
     * @param stream the stream
     * @param config the configuration
     */
    public <T extends Element> void allReduce(
            DeviceBuffer<T> send, DeviceBuffer<T> recv, ReduceOp op, CudaStream stream, CollectiveConfig config) {
        submit(OperationKind.ALL_REDUCE, send, recv, op, 0, stream, CollectiveConfig.callOf(config));
    }

    /**
     * As {@link #allReduce(DeviceBuffer, DeviceBuffer, ReduceOp, CudaStream)} with one buffer, in place.
     *
     * @param <T> the type of the elements
     * @param buffer this rank's elements, replaced by the result
     * @param op the operator
     * @param stream the stream
     */
    public <T extends Element> void allReduce(DeviceBuffer<T> buffer, ReduceOp op, CudaStream stream) {
        allReduce(Objects.requireNonNull(buffer, "buffer"), buffer, op, stream);
    }

    /**
     * Reduces the elements of all ranks; the root gets the result. Collective, in stream order. In place if send and
     * recv are the same memory. C function: {@code ncclReduce}.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements
     * @param recv the result, of the same length as send; not changed on ranks other than the root
     * @param op the operator
     * @param root the rank that gets the result
     * @param stream the stream
     */
    public <T extends Element> void reduce(
            DeviceBuffer<T> send, DeviceBuffer<T> recv, ReduceOp op, int root, CudaStream stream) {
        NativeBuffer from = send.nativeBuffer;
        NativeBuffer to = recv.nativeBuffer;
        long count = checks.collective(OperationKind.REDUCE, from, to, op.operator, root);
        operations.submit(OperationKind.REDUCE, from, to, count, op.operator, root, stream.nativeStream, null);
    }

    /**
     * As {@link #reduce(DeviceBuffer, DeviceBuffer, ReduceOp, int, CudaStream)} with a configuration.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements
     * @param recv the result, of the same length as send; not changed on ranks other than the root
     * @param op the operator
     * @param root the rank that gets the result
     * @param stream the stream
     * @param config the configuration
     */
    public <T extends Element> void reduce(
            DeviceBuffer<T> send,
            DeviceBuffer<T> recv,
            ReduceOp op,
            int root,
            CudaStream stream,
            CollectiveConfig config) {
        submit(OperationKind.REDUCE, send, recv, op, root, stream, CollectiveConfig.callOf(config));
    }

    /**
     * As {@link #reduce(DeviceBuffer, DeviceBuffer, ReduceOp, int, CudaStream)} with one buffer, in place.
     *
     * @param <T> the type of the elements
     * @param buffer this rank's elements; on the root replaced by the result
     * @param op the operator
     * @param root the rank that gets the result
     * @param stream the stream
     */
    public <T extends Element> void reduce(DeviceBuffer<T> buffer, ReduceOp op, int root, CudaStream stream) {
        reduce(Objects.requireNonNull(buffer, "buffer"), buffer, op, root, stream);
    }

    /**
     * Copies the root's elements to all ranks. Collective, in stream order. In place if send and recv are the same
     * memory. C function: {@code ncclBroadcast}.
     *
     * @param <T> the type of the elements
     * @param send the root's elements; not read on other ranks
     * @param recv the destination, of the same length as send
     * @param root the rank that has the elements
     * @param stream the stream
     */
    public <T extends Element> void broadcast(DeviceBuffer<T> send, DeviceBuffer<T> recv, int root, CudaStream stream) {
        NativeBuffer from = send.nativeBuffer;
        NativeBuffer to = recv.nativeBuffer;
        long count = checks.collective(OperationKind.BROADCAST, from, to, null, root);
        operations.submit(OperationKind.BROADCAST, from, to, count, null, root, stream.nativeStream, null);
    }

    /**
     * As {@link #broadcast(DeviceBuffer, DeviceBuffer, int, CudaStream)} with a configuration.
     *
     * @param <T> the type of the elements
     * @param send the root's elements; not read on other ranks
     * @param recv the destination, of the same length as send
     * @param root the rank that has the elements
     * @param stream the stream
     * @param config the configuration
     */
    public <T extends Element> void broadcast(
            DeviceBuffer<T> send, DeviceBuffer<T> recv, int root, CudaStream stream, CollectiveConfig config) {
        submit(OperationKind.BROADCAST, send, recv, null, root, stream, CollectiveConfig.callOf(config));
    }

    /**
     * As {@link #broadcast(DeviceBuffer, DeviceBuffer, int, CudaStream)} with one buffer, in place.
     *
     * @param <T> the type of the elements
     * @param buffer the root's elements; on other ranks the destination
     * @param root the rank that has the elements
     * @param stream the stream
     */
    public <T extends Element> void broadcast(DeviceBuffer<T> buffer, int root, CudaStream stream) {
        broadcast(Objects.requireNonNull(buffer, "buffer"), buffer, root, stream);
    }

    /**
     * Concatenates the elements of all ranks in the order of ranks; every rank gets the result. Collective, in stream
     * order. In place if send is this rank's part of recv. C function: {@code ncclAllGather}.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements
     * @param recv the elements of all ranks, {@link #size()} times as long as send
     * @param stream the stream
     */
    public <T extends Element> void allGather(DeviceBuffer<T> send, DeviceBuffer<T> recv, CudaStream stream) {
        NativeBuffer from = send.nativeBuffer;
        NativeBuffer to = recv.nativeBuffer;
        long count = checks.collective(OperationKind.ALL_GATHER, from, to, null, 0);
        operations.submit(OperationKind.ALL_GATHER, from, to, count, null, 0, stream.nativeStream, null);
    }

    /**
     * As {@link #allGather(DeviceBuffer, DeviceBuffer, CudaStream)} with a configuration.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements
     * @param recv the elements of all ranks, {@link #size()} times as long as send
     * @param stream the stream
     * @param config the configuration
     */
    public <T extends Element> void allGather(
            DeviceBuffer<T> send, DeviceBuffer<T> recv, CudaStream stream, CollectiveConfig config) {
        submit(OperationKind.ALL_GATHER, send, recv, null, 0, stream, CollectiveConfig.callOf(config));
    }

    /**
     * Reduces the elements of all ranks; every rank gets its part of the result. Collective, in stream order. In place
     * if recv is this rank's part of send. C function: {@code ncclReduceScatter}.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements, {@link #size()} times as many as in recv
     * @param recv this rank's part of the result
     * @param op the operator
     * @param stream the stream
     */
    public <T extends Element> void reduceScatter(
            DeviceBuffer<T> send, DeviceBuffer<T> recv, ReduceOp op, CudaStream stream) {
        NativeBuffer from = send.nativeBuffer;
        NativeBuffer to = recv.nativeBuffer;
        long count = checks.collective(OperationKind.REDUCE_SCATTER, from, to, op.operator, 0);
        operations.submit(OperationKind.REDUCE_SCATTER, from, to, count, op.operator, 0, stream.nativeStream, null);
    }

    /**
     * As {@link #reduceScatter(DeviceBuffer, DeviceBuffer, ReduceOp, CudaStream)} with a configuration.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements, {@link #size()} times as many as in recv
     * @param recv this rank's part of the result
     * @param op the operator
     * @param stream the stream
     * @param config the configuration
     */
    public <T extends Element> void reduceScatter(
            DeviceBuffer<T> send, DeviceBuffer<T> recv, ReduceOp op, CudaStream stream, CollectiveConfig config) {
        submit(OperationKind.REDUCE_SCATTER, send, recv, op, 0, stream, CollectiveConfig.callOf(config));
    }

    /**
     * Exchanges parts between all ranks: part r of rank s becomes part s of rank r. Collective, in stream order, not in
     * place. C function: {@code ncclAlltoAll}, since NCCL 2.28.3; with older libraries, a group of {@code ncclSend} and
     * {@code ncclRecv}.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements; their number must be a multiple of {@link #size()}
     * @param recv the elements for this rank, of the same length as send
     * @param stream the stream
     */
    public <T extends Element> void allToAll(DeviceBuffer<T> send, DeviceBuffer<T> recv, CudaStream stream) {
        submitOrCompose(OperationKind.ALL_TO_ALL, send, recv, 0, stream);
    }

    /**
     * As {@link #allToAll(DeviceBuffer, DeviceBuffer, CudaStream)} with a configuration.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements; their number must be a multiple of {@link #size()}
     * @param recv the elements for this rank, of the same length as send
     * @param stream the stream
     * @param config the configuration
     */
    public <T extends Element> void allToAll(
            DeviceBuffer<T> send, DeviceBuffer<T> recv, CudaStream stream, CollectiveConfig config) {
        submit(OperationKind.ALL_TO_ALL, send, recv, null, 0, stream, CollectiveConfig.callOf(config));
    }

    /**
     * Concatenates the elements of all ranks on the root, in the order of ranks. Collective, in stream order. In place
     * if send is the root's part of recv. C function: {@code ncclGather}, since NCCL 2.28.3; with older libraries, a
     * group of {@code ncclSend} and {@code ncclRecv}.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements
     * @param recv on the root the elements of all ranks, {@link #size()} times as long as send; not used on other ranks
     * @param root the rank that gets the elements
     * @param stream the stream
     */
    public <T extends Element> void gather(DeviceBuffer<T> send, DeviceBuffer<T> recv, int root, CudaStream stream) {
        submitOrCompose(OperationKind.GATHER, send, recv, root, stream);
    }

    /**
     * As {@link #gather(DeviceBuffer, DeviceBuffer, int, CudaStream)} with a configuration.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements
     * @param recv on the root the elements of all ranks, {@link #size()} times as long as send; not used on other
     *     ranks, which may pass send
     * @param root the rank that gets the elements
     * @param stream the stream
     * @param config the configuration
     */
    public <T extends Element> void gather(
            DeviceBuffer<T> send, DeviceBuffer<T> recv, int root, CudaStream stream, CollectiveConfig config) {
        submit(OperationKind.GATHER, send, recv, null, root, stream, CollectiveConfig.callOf(config));
    }

    /**
     * Takes part in a {@link #gather(DeviceBuffer, DeviceBuffer, int, CudaStream)} as a rank other than the root.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements
     * @param root the rank that gets the elements, not this rank
     * @param stream the stream
     */
    public <T extends Element> void gather(DeviceBuffer<T> send, int root, CudaStream stream) {
        checks.otherRoot(root, "recv");
        gather(send, send, root, stream);
    }

    /**
     * Distributes the root's elements: rank r gets part r. Collective, in stream order. In place if recv is the root's
     * part of send. C function: {@code ncclScatter}, since NCCL 2.28.3; with older libraries, a group of {@code
     * ncclSend} and {@code ncclRecv}.
     *
     * @param <T> the type of the elements
     * @param send the root's elements, {@link #size()} times as many as in recv; not used on other ranks
     * @param recv this rank's part
     * @param root the rank that has the elements
     * @param stream the stream
     */
    public <T extends Element> void scatter(DeviceBuffer<T> send, DeviceBuffer<T> recv, int root, CudaStream stream) {
        submitOrCompose(OperationKind.SCATTER, send, recv, root, stream);
    }

    /**
     * As {@link #scatter(DeviceBuffer, DeviceBuffer, int, CudaStream)} with a configuration.
     *
     * @param <T> the type of the elements
     * @param send the root's elements, {@link #size()} times as many as in recv; not used on other ranks, which may
     *     pass recv
     * @param recv this rank's part
     * @param root the rank that has the elements
     * @param stream the stream
     * @param config the configuration
     */
    public <T extends Element> void scatter(
            DeviceBuffer<T> send, DeviceBuffer<T> recv, int root, CudaStream stream, CollectiveConfig config) {
        submit(OperationKind.SCATTER, send, recv, null, root, stream, CollectiveConfig.callOf(config));
    }

    /**
     * Takes part in a {@link #scatter(DeviceBuffer, DeviceBuffer, int, CudaStream)} as a rank other than the root.
     *
     * @param <T> the type of the elements
     * @param recv this rank's part
     * @param root the rank that has the elements, not this rank
     * @param stream the stream
     */
    public <T extends Element> void scatter(DeviceBuffer<T> recv, int root, CudaStream stream) {
        checks.otherRoot(root, "send");
        scatter(recv, recv, root, stream);
    }

    /* Operations between two ranks. */

    /**
     * Sends elements to a rank, which calls {@link #recv} with the same number of elements. In stream order: the stream
     * waits for the other rank. Two ranks that send to each other must do so in a {@link Group}; otherwise they wait
     * for each other forever. C function: {@code ncclSend}, since NCCL 2.7.3.
     *
     * @param <T> the type of the elements
     * @param buffer the elements
     * @param peer the receiving rank; this rank only in a group that also receives
     * @param stream the stream
     */
    public <T extends Element> void send(DeviceBuffer<T> buffer, int peer, CudaStream stream) {
        checks.transferPeer(peer);
        NativeBuffer memory = buffer.nativeBuffer;
        operations.submit(OperationKind.SEND, memory, memory, memory.length, null, peer, stream.nativeStream, null);
    }

    /**
     * Receives elements from a rank, which calls {@link #send} with the same number of elements. In stream order: the
     * stream waits for the other rank. C function: {@code ncclRecv}, since NCCL 2.7.3.
     *
     * @param <T> the type of the elements
     * @param buffer the destination
     * @param peer the sending rank; this rank only in a group that also sends
     * @param stream the stream
     */
    public <T extends Element> void recv(DeviceBuffer<T> buffer, int peer, CudaStream stream) {
        checks.transferPeer(peer);
        NativeBuffer memory = buffer.nativeBuffer;
        operations.submit(OperationKind.RECV, memory, memory, memory.length, null, peer, stream.nativeStream, null);
    }

    /**
     * Sends to a rank and receives from a rank at the same time, for example in a ring or a halo exchange. In stream
     * order, not in place. C functions: {@code ncclSend} and {@code ncclRecv} in a group; a transfer of 0 elements is
     * omitted.
     *
     * @param <T> the type of the elements
     * @param send the elements to send
     * @param to the receiving rank
     * @param recv the destination, not necessarily of the same length
     * @param from the sending rank
     * @param stream the stream
     */
    public <T extends Element> void sendRecv(
            DeviceBuffer<T> send, int to, DeviceBuffer<T> recv, int from, CudaStream stream) {
        composed.sendRecv(send.nativeBuffer, to, recv.nativeBuffer, from, stream.nativeStream);
    }

    /* Operations with a count for each rank. */

    /**
     * Gathers the elements of all ranks, each at its displacement; every rank gets the result. Collective, in stream
     * order. In place if send is this rank's part of recv. C functions: a group of {@code ncclSend} and {@code
     * ncclRecv}; transfers of 0 elements are omitted.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements
     * @param recv the destination of all elements
     * @param counts the number of elements of each rank, the same on all ranks
     * @param displacements the index in recv of each rank's first element
     * @param stream the stream
     * @throws IndexOutOfBoundsException if the elements of a rank are not within recv
     */
    public <T extends Element> void allGatherv(
            DeviceBuffer<T> send, DeviceBuffer<T> recv, long[] counts, long[] displacements, CudaStream stream) {
        composed.allGatherv(send.nativeBuffer, recv.nativeBuffer, counts, displacements, stream.nativeStream);
    }

    /**
     * Gathers the elements of all ranks on the root, each at its displacement. Collective, in stream order. In place if
     * send is the root's part of recv. C functions: a group of {@code ncclSend} and {@code ncclRecv}; transfers of 0
     * elements are omitted.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements
     * @param recv on the root the destination of all elements; not used on other ranks
     * @param counts the number of elements of each rank; not used on ranks other than the root
     * @param displacements the index in recv of each rank's first element; not used on ranks other than the root
     * @param root the rank that gets the elements
     * @param stream the stream
     * @throws IndexOutOfBoundsException if the elements of a rank are not within recv
     */
    public <T extends Element> void gatherv(
            DeviceBuffer<T> send,
            DeviceBuffer<T> recv,
            long[] counts,
            long[] displacements,
            int root,
            CudaStream stream) {
        composed.gatherv(
                send.nativeBuffer, DeviceBuffer.nativeOf(recv), counts, displacements, root, stream.nativeStream);
    }

    /**
     * Takes part in a {@link #gatherv(DeviceBuffer, DeviceBuffer, long[], long[], int, CudaStream)} as a rank other
     * than the root.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements
     * @param root the rank that gets the elements, not this rank
     * @param stream the stream
     */
    public <T extends Element> void gatherv(DeviceBuffer<T> send, int root, CudaStream stream) {
        composed.gatherv(send.nativeBuffer, root, stream.nativeStream);
    }

    /**
     * Distributes the root's elements: each rank gets its count of elements, from its displacement on. Collective, in
     * stream order. In place if recv is the root's part of send. C functions: a group of {@code ncclSend} and {@code
     * ncclRecv}; transfers of 0 elements are omitted.
     *
     * @param <T> the type of the elements
     * @param send the root's elements; not used on other ranks
     * @param counts the number of elements for each rank; not used on ranks other than the root
     * @param displacements the index in send of each rank's first element; not used on ranks other than the root
     * @param recv the destination of this rank's elements
     * @param root the rank that has the elements
     * @param stream the stream
     * @throws IndexOutOfBoundsException if the elements of a rank are not within send
     */
    public <T extends Element> void scatterv(
            DeviceBuffer<T> send,
            long[] counts,
            long[] displacements,
            DeviceBuffer<T> recv,
            int root,
            CudaStream stream) {
        composed.scatterv(
                DeviceBuffer.nativeOf(send), counts, displacements, recv.nativeBuffer, root, stream.nativeStream);
    }

    /**
     * Takes part in a {@link #scatterv(DeviceBuffer, long[], long[], DeviceBuffer, int, CudaStream)} as a rank other
     * than the root.
     *
     * @param <T> the type of the elements
     * @param recv the destination of this rank's elements
     * @param root the rank that has the elements, not this rank
     * @param stream the stream
     */
    public <T extends Element> void scatterv(DeviceBuffer<T> recv, int root, CudaStream stream) {
        composed.scatterv(recv.nativeBuffer, root, stream.nativeStream);
    }

    /**
     * Reduces the elements of all ranks; every rank gets its part of the result, and the lengths of the parts may
     * differ. Collective, in stream order. In place if recv is this rank's part of send. C functions: a group of {@code
     * ncclReduce}, one for each rank.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements: the parts of all ranks, one after the other
     * @param recv this rank's part of the result
     * @param counts the length of each rank's part, the same on all ranks
     * @param op the operator
     * @param stream the stream
     */
    public <T extends Element> void reduceScatterv(
            DeviceBuffer<T> send, DeviceBuffer<T> recv, long[] counts, ReduceOp op, CudaStream stream) {
        composed.reduceScatterv(send.nativeBuffer, recv.nativeBuffer, counts, op.operator, stream.nativeStream);
    }

    /**
     * Exchanges blocks of different lengths between all ranks, as {@code MPI_Alltoallv}. The arrays are this rank's
     * rows of counts and displacements, in elements; or the matrices of all ranks, row by row, as callers of VCCL hold
     * them, of which this rank's rows are used. Collective, in stream order, not in place.
     *
     * <p>The ranks first compare their arguments, and all throw if a rank has wrong arguments or two ranks disagree.
     * The comparison makes a small all-gather on {@link #stream()} and waits for its result. For repeated calls with
     * the same counts and buffers, a {@linkplain #planAllToAllv plan} compares once. {@link #allToAllvUnchecked} does
     * not compare; use it if all ranks are known to agree. C functions: {@code ncclAlltoAllv} of VCCL or RCCL in the
     * cases that {@link AllToAllvPlan} lists, else a group of {@code ncclSend} and {@code ncclRecv}.
     *
     * @param <T> the type of the elements
     * @param send the elements for all ranks
     * @param sendCounts the number of elements for each rank
     * @param sendDisplacements the index in send of the first element for each rank
     * @param recv the destination of the elements from all ranks
     * @param recvCounts the number of elements from each rank
     * @param recvDisplacements the index in recv of the first element from each rank; the blocks must not overlap
     * @param stream the stream
     * @throws IllegalArgumentException if ranks disagree on counts or types; thrown on all ranks
     * @throws IndexOutOfBoundsException if a block is not within its buffer
     * @throws IllegalStateException also if another rank has wrong arguments, or in a group, where a plan is needed
     */
    public <T extends Element> void allToAllv(
            DeviceBuffer<T> send,
            long[] sendCounts,
            long[] sendDisplacements,
            DeviceBuffer<T> recv,
            long[] recvCounts,
            long[] recvDisplacements,
            CudaStream stream) {
        allToAllvOperations.exchange(
                new Blocks(send.nativeBuffer, sendCounts, sendDisplacements),
                new Blocks(recv.nativeBuffer, recvCounts, recvDisplacements),
                stream.nativeStream);
    }

    /**
     * As {@link #allToAllv(DeviceBuffer, long[], long[], DeviceBuffer, long[], long[], CudaStream)} without comparing
     * the counts across ranks. If ranks disagree, they wait for each other forever. The arguments of this rank are
     * checked. C functions: a group of {@code ncclSend} and {@code ncclRecv}; transfers of 0 elements are omitted.
     *
     * @param <T> the type of the elements
     * @param send the elements for all ranks
     * @param sendCounts the number of elements for each rank
     * @param sendDisplacements the index in send of the first element for each rank
     * @param recv the destination of the elements from all ranks
     * @param recvCounts the number of elements from each rank
     * @param recvDisplacements the index in recv of the first element from each rank; the blocks must not overlap
     * @param stream the stream
     */
    public <T extends Element> void allToAllvUnchecked(
            DeviceBuffer<T> send,
            long[] sendCounts,
            long[] sendDisplacements,
            DeviceBuffer<T> recv,
            long[] recvCounts,
            long[] recvDisplacements,
            CudaStream stream) {
        composed.allToAllv(
                new Blocks(send.nativeBuffer, sendCounts, sendDisplacements),
                new Blocks(recv.nativeBuffer, recvCounts, recvDisplacements),
                stream.nativeStream);
    }

    /**
     * Creates a plan of an all-to-all on which all ranks agree, and which can run any number of times. Collective;
     * waits for the other ranks. In an open group, the plan is pending until the launch of the group. C function:
     * {@code ncclAllGather}, on {@link #stream()}.
     *
     * @param <T> the type of the elements
     * @param send the elements for all ranks
     * @param sendCounts the number of elements for each rank
     * @param sendDisplacements the index in send of the first element for each rank
     * @param recv the destination of the elements from all ranks
     * @param recvCounts the number of elements from each rank
     * @param recvDisplacements the index in recv of the first element from each rank; the blocks must not overlap
     * @return the plan, closed by the caller or with the communicator
     */
    public <T extends Element> AllToAllvPlan<T> planAllToAllv(
            DeviceBuffer<T> send,
            long[] sendCounts,
            long[] sendDisplacements,
            DeviceBuffer<T> recv,
            long[] recvCounts,
            long[] recvDisplacements) {
        return new AllToAllvPlan<>(allToAllvOperations.plan(
                new Blocks(send.nativeBuffer, sendCounts, sendDisplacements),
                new Blocks(recv.nativeBuffer, recvCounts, recvDisplacements)));
    }

    /**
     * As {@link #allToAllv(DeviceBuffer, long[], long[], DeviceBuffer, long[], long[], CudaStream)} with the arguments
     * of a plan, which are not compared again. Collective, in stream order. C functions: see {@link AllToAllvPlan}.
     *
     * @param <T> the type of the elements
     * @param plan a plan of this communicator
     * @param stream the stream
     * @throws IllegalArgumentException if the plan belongs to another communicator
     * @throws IllegalStateException also if the plan is closed or pending, or if it uses VCCL's call and the stream is
     *     being captured
     */
    public <T extends Element> void allToAllv(AllToAllvPlan<T> plan, CudaStream stream) {
        allToAllvOperations.exchange(plan.exchange, stream.nativeStream);
    }

    /* One-sided operations. */

    /**
     * Writes elements into another rank's memory and then raises a signal at that rank, which makes no call. One-sided,
     * in stream order: when the work of the stream is complete, this rank may change the elements again. The elements
     * have arrived on the other rank when its {@linkplain #waitSignal wait} for the signal ends. Puts to the same rank
     * arrive in order.
     *
     * <p>C function: {@code ncclPutSignal}, since NCCL 2.29.2. NCCL fails if it supports windows but can't write
     * without the other rank: without NVLink, PCIe P2P or a suitable network to the other rank, or with
     * {@code numRmaCtx} 0 in the configuration.
     *
     * @param <T> the type of the elements
     * @param elements the elements to write, possibly none; within a window of this communicator with
     *     {@link WindowFlag#COLL_SYMMETRIC}
     * @param window the window whose memory on the other rank is written
     * @param offset the index of the first element to write, in elements of this type from the beginning of the window
     * @param peer the other rank, or this rank
     * @param stream the stream
     * @throws IndexOutOfBoundsException if the range is not within the window, which has the same size on all ranks
     * @throws IllegalArgumentException also if the elements are not in such a window
     * @throws IllegalStateException also if the window is pending or closed
     */
    public <T extends Element> void putSignal(
            DeviceBuffer<T> elements, Window window, long offset, int peer, CudaStream stream) {
        oneSidedOperations.putSignal(elements.nativeBuffer, window.nativeWindow, offset, peer, stream.nativeStream);
    }

    /**
     * Raises a signal on another rank, after earlier puts to it. One-sided, in stream order. Needs no window. C
     * function: {@code ncclSignal}, since NCCL 2.29.2.
     *
     * @param peer the other rank, or this rank
     * @param stream the stream
     */
    public void signal(int peer, CudaStream stream) {
        oneSidedOperations.signal(peer, stream.nativeStream);
    }

    /**
     * As {@link #waitSignal(CudaStream, SignalWait...)} with one signal of one rank.
     *
     * @param peer the rank that raises the signal, possibly this rank
     * @param stream the stream
     */
    public void waitSignal(int peer, CudaStream stream) {
        checks.peer("peer", peer);
        waitSignal(stream, SignalWait.of(peer, 1));
    }

    /**
     * Makes the stream wait until other ranks have raised signals at this rank by {@link #putSignal} or {@link
     * #signal}: from each rank the given number, in addition to the signals of earlier waits. In stream order. After
     * the wait, the elements that were put before the signals can be read. C function: {@code ncclWaitSignal}, since
     * NCCL 2.29.2.
     *
     * @param stream the stream
     * @param waits the signals to wait for, at least one
     * @throws IllegalArgumentException also if waits is empty, or has an index or a context that NCCL does not support
     */
    public void waitSignal(CudaStream stream, SignalWait... waits) {
        oneSidedOperations.waitSignal(stream.nativeStream, waits);
    }

    /** {@return the operations on plain addresses, for memory without a {@link DeviceBuffer}; always the same object} */
    public AddressOperations onAddresses() {
        return onAddresses;
    }

    /** {@return the exchange of small data in host memory; always the same object} */
    public ControlData control() {
        return control;
    }

    CommunicatorCore core() {
        return core;
    }

    /** {@return a description: "communicator 'gradients' (rank 0 of 4 on CUDA device 0)"} */
    @Override
    public String toString() {
        return core.toString();
    }
}

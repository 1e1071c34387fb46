package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.internal.cuda.Cuda;
import io.github.nccl4j.internal.memory.Bounds;
import io.github.nccl4j.internal.memory.NativeMemory;
import io.github.nccl4j.internal.operation.BlockLayout;
import io.github.nccl4j.internal.threads.Gate;
import io.github.nccl4j.internal.threads.SlowPath;
import io.github.nccl4j.internal.threads.VirtualThreads;
import io.github.nccl4j.library.NcclException;
import io.github.nccl4j.library.NcclLibraryException;
import java.lang.ref.Reference;
import java.nio.IntBuffer;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.TreeSet;

/**
 * One rank's handle of a group of communicating ranks. All operations of NCCL are methods of this class.
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
 *       {@link NcclResultException}. All operations can throw these exceptions; the methods list only further ones.
 *   <li><b>Groups.</b> While the thread has an open {@link Group}, operations are deferred until its launch.
 * </ul>
 *
 * <h2>States</h2>
 *
 * <table class="plain">
 * <caption>What is allowed when; all else is an IllegalStateException</caption>
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
 * ranks. Closing first closes the children of the communicator, the newest first: windows, registrations, operators,
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
 * {@link #revoke}, {@link #asyncError} and the methods that are available in every state.
 *
 * <p><b>Virtual threads.</b> Virtual threads may use a communicator. With the host engine, their number is not limited:
 * a platform thread makes the calls that wait for other ranks, which takes some tens of microseconds more in the
 * default stream. On a GPU, the virtual thread makes the call and holds its carrier until NCCL returns; NCCL returns at
 * once, except from the first operation of a kind, in which it connects the ranks. So the number of ranks of one
 * process in virtual threads must not exceed the number of carriers (the system property
 * {@code jdk.virtualThreadScheduler.parallelism}, by default the number of processors); otherwise the ranks wait for
 * each other until the deadline, and the message of the exception says so.
 *
 * @see <a href="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api/comms.html">NCCL: communicators</a>
 */
public final class Communicator implements AutoCloseable {
    /** The default limit for waiting for other ranks: 5 minutes. */
    public static final Duration DEFAULT_DEADLINE = Duration.ofMinutes(5);

    /** No limit, for {@link CommunicatorBuilder#deadline}. */
    public static final Duration NO_DEADLINE = Duration.ofSeconds(Long.MAX_VALUE);

    private static final int SPECIAL = -1;

    private final CommunicatorCore core;
    private final Gate gate;
    private final Device device;
    private final boolean onHost;

    /** The code of {@link #device}, for checks of streams and buffers. */
    private final int deviceCode;

    /** The code of the last data type that the library supports. */
    private final int lastType;

    /** True if collective calls are compared across ranks. */
    private final boolean checked;

    /**
     * {@link #SPECIAL} if operations of this communicator need further checks: on host memory, if calls are compared,
     * and with windows on which some operations of NCCL are faulty; else 0. Not volatile: one thread at a time uses the
     * communicator.
     */
    private int special;

    /** Written by the holder of the gate's pass. */
    private final OperationLog operationLog;

    private final DirectCallGroup direct;
    private final FlightRecorder recorder;
    private final CommunicatorStreams streams;
    private final ExchangeBuffers scratch;

    /** Open windows; copy-on-write. */
    private volatile Window[] windows = {};

    /** True if some operations of NCCL on the windows are faulty. */
    private volatile boolean faultyWindows;

    /**
     * True if the library has the one-sided functions. Cached, as the fields below, because a query takes longer than a
     * call.
     */
    private final boolean oneSided;

    /** Bits by collective: set if the library is known to have its function with a configuration. */
    private int configurable;

    private final boolean hasAllToAll;
    private final boolean hasGather;
    private final boolean hasScatter;

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

    Communicator(NcclLibrary library, Device device, boolean blocking, boolean owner, Settings settings, String name) {
        this.device = device;
        core = new CommunicatorCore(this, library, device, blocking, owner, settings, name);
        gate = core.gate();
        checked = settings.check() != null;
        operationLog = new OperationLog(settings.recorded(), gate);
        direct = new DirectCallGroup(core, gate, operationLog);
        recorder = new FlightRecorder(this, operationLog);
        onHost = core.isOnHost();
        special = onHost || checked ? SPECIAL : 0;
        Jfr.initialize();
        lastType = library.version().isAtLeast(DataType.FLOAT8_E4M3.since())
                ? DataType.values().length - 1
                : DataType.FLOAT8_E4M3.code() - 1;
        deviceCode = device.deviceCode();
        oneSided = library.provides("ncclPutSignal");
        hasAllToAll = library.provides("ncclAlltoAll");
        hasGather = library.provides("ncclGather");
        hasScatter = library.provides("ncclScatter");
        streams = new CommunicatorStreams(this);
        scratch = new ExchangeBuffers(device);
    }

    /**
     * Returns the record of the last operations of this communicator.
     *
     * @return the recorder, the same in every call
     */
    public FlightRecorder flightRecorder() {
        return recorder;
    }

    CommunicatorCore core() {
        return core;
    }

    /* Creating. */

    /**
     * Returns a builder with the default settings for new communicators.
     *
     * @return a builder
     */
    public static CommunicatorBuilder builder() {
        return new CommunicatorBuilder();
    }

    /**
     * Creates this rank's communicator on the current device, with default settings. Collective: returns when all ranks
     * have called it.
     *
     * <p>C function: {@code ncclCommInitRank}.
     *
     * @param id the id that one rank has created
     * @param rank this rank, from 0
     * @param size the number of ranks
     * @return the communicator, to be closed by the caller
     * @throws IllegalArgumentException if rank or size is out of range
     * @throws NcclTimeoutException if not all ranks call within {@link #DEFAULT_DEADLINE}
     * @throws NcclResultException if NCCL fails
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
     * @throws NcclResultException if NCCL fails
     * @see CommunicatorBuilder#fromEnvironment
     */
    public static Communicator fromEnvironment() {
        return builder().fromEnvironment();
    }

    /**
     * Creates a communicator with one rank for each device, all in this process, with default settings.
     *
     * <p>C function: as {@code ncclCommInitAll}.
     *
     * @param devices the device of each rank; only host memory may occur several times
     * @return the communicators by rank, each to be closed by the caller
     * @throws IllegalArgumentException if devices is empty, or contains a CUDA device twice
     * @throws NcclResultException if NCCL fails
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
        return ofHandle(handle, device, false);
    }

    /**
     * Takes over a communicator that other code has created: closing this object destroys it.
     *
     * @param handle the {@code ncclComm_t}
     * @param device the device of the native communicator
     * @return the communicator, to be closed by the caller
     * @throws IllegalArgumentException if the handle is 0, or the library can't use the device
     * @throws NcclResultException if NCCL finds that the handle is not a communicator
     */
    public static Communicator adopt(long handle, Device device) {
        return ofHandle(handle, device, true);
    }

    private static Communicator ofHandle(long handle, Device device, boolean owner) {
        if (handle == 0) {
            throw new IllegalArgumentException("handle must not be 0");
        }
        NcclLibrary library = NcclLibrary.get();
        CommunicatorBuilder.requireUsable(library, device);
        int[] answer = new int[1];
        Status.check(nccl.ncclCommUserRank(handle, answer), "ncclCommUserRank");
        int rank = answer[0];
        Status.check(nccl.ncclCommCount(handle, answer), "ncclCommCount");
        int size = answer[0];
        if (device.isCuda()) {
            Status.check(nccl.ncclCommCuDevice(handle, answer), "ncclCommCuDevice");
            if (answer[0] != device.index()) {
                throw new IllegalArgumentException(
                        "device must be that of the communicator: " + device + ", made on CUDA device " + answer[0]);
            }
        }
        Communicator communicator = new Communicator(library, device, true, owner, Settings.DEFAULT, "");
        // Other ranks may be in this process; this cannot be known here.
        communicator.core.setKey(ProcessRanks.UNKNOWN);
        communicator.core.opened(handle, rank, size);
        return communicator;
    }

    /* Properties. */

    /**
     * Returns this rank.
     *
     * @return the rank, from 0
     * @throws IllegalStateException if the rank is not known yet: a communicator that is split, shrunk or grown in a
     *     group has a rank after the launch of the group
     * @see <a href="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api/comms.html">ncclCommUserRank</a>
     */
    public int rank() {
        return core.rank();
    }

    /**
     * Returns the number of ranks.
     *
     * @return the number
     * @throws IllegalStateException if the number is not known yet, as in {@link #rank()}
     * @see <a href="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api/comms.html">ncclCommCount</a>
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
        return core.state();
    }

    /**
     * Returns the first failure of this communicator: an error of NCCL, a call or work that has exceeded its deadline,
     * or an interrupt. Wrong arguments and wrong states don't count. For programs that poll; a thread that waits gets
     * an exception.
     *
     * @return the failurethat was reported first; empty if there is none
     */
    public Optional<NcclException> failure() {
        return Optional.ofNullable(core.failures().first());
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
     * Returns the handle for native code. It is valid while the communicator is open; the caller must ensure that.
     *
     * @return the {@code ncclComm_t}
     * @throws IllegalStateException if the communicator is not open
     */
    public long nativeHandle() {
        core.requireOpen();
        return core.handle();
    }

    /**
     * Returns the result of NCCL's asynchronous work, for example an error if a rank is lost. Does not wait. Any thread
     * may call it.
     *
     * <p>C function: {@code ncclCommGetAsyncError}.
     *
     * @return {@link Result#SUCCESS}, {@link Result#IN_PROGRESS} while a nonblocking call is in progress, or an error
     * @throws IllegalStateException if the communicator is closed or aborted
     */
    public Result asyncError() {
        return Result.of(core.poll());
    }

    /**
     * Returns NCCL's description of the last error of this process.
     *
     * <p>C function: {@code ncclGetLastError}.
     *
     * @return the text of NCCL; empty if there is none
     */
    public String lastError() {
        return core.lastError();
    }

    /**
     * Returns a statistic of NCCL about the memory of this communicator, which may be suspended. Not collective.
     *
     * <p>C function: {@code ncclCommMemStats}, since NCCL 2.29.7.
     *
     * @param statistic the statistic
     * @return the value, in bytes unless {@link MemoryStatistic} says otherwise
     * @throws NcclLibraryException if the library lacks the function
     */
    public long memory(MemoryStatistic statistic) {
        return core.memory(statistic.code());
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
     * @throws NcclLibraryException if the library lacks the function
     */
    public CommunicatorProperties properties() {
        return core.properties();
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
        return splitWith(color, key, null);
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
        return splitWith(color, key, Objects.requireNonNull(config, "config"));
    }

    private Communicator splitWith(int color, int key, CommunicatorConfig config) {
        if (color < 0) {
            throw new IllegalArgumentException("color must be >= 0: " + color + "; splitNone() makes no communicator");
        }
        core.require("ncclCommSplit");
        return derive(
                "ncclCommSplit",
                config,
                color,
                false,
                (handle, cell, settings) -> nccl.ncclCommSplit(handle, color, key, cell, settings));
    }

    /**
     * Takes part in the {@link #split} of the other ranks without joining a new communicator. Collective with their
     * call.
     *
     * <p>C function: {@code ncclCommSplit} with {@code NCCL_SPLIT_NOCOLOR}, since NCCL 2.18.1.
     */
    public void splitNone() {
        core.require("ncclCommSplit");
        core.nameOfChild(-1);
        core.splitNone();
    }

    /**
     * Creates a communicator without some of the ranks, for example because these are lost. Collective over the
     * remaining ranks; the excluded ranks don't call it.
     *
     * <p>C function: {@code ncclCommShrink}, since NCCL 2.27.3.
     *
     * @param excluded the ranks to exclude: at least one, not including this rank
     * @param flag the treatment of outstanding work: {@link ShrinkFlag} says whether to stop it first
     * @return the new communicator; the ranks keep their order
     * @throws IllegalArgumentException if excluded is empty, or contains this rank or a rank out of range
     * @throws NcclLibraryException if the library lacks the function
     */
    public Communicator shrink(Collection<Integer> excluded, ShrinkFlag flag) {
        Objects.requireNonNull(excluded, "excluded");
        Objects.requireNonNull(flag, "flag");
        for (Integer one : excluded) {
            Objects.requireNonNull(one, "an excluded rank");
        }
        int[] ranks =
                new TreeSet<>(excluded).stream().mapToInt(Integer::intValue).toArray();
        if (ranks.length == 0) {
            throw new IllegalArgumentException("excluded must not be empty");
        }
        for (int excludedRank : ranks) {
            requirePeer("an excluded rank", excludedRank);
            if (excludedRank == rank()) {
                throw new IllegalArgumentException("a rank must not exclude itself: " + excludedRank);
            }
        }
        core.require("ncclCommShrink");
        return derive(
                "ncclCommShrink",
                null,
                0,
                true,
                (handle, cell, settings) ->
                        nccl.ncclCommShrink(handle, ranks, ranks.length, cell, settings, flag.code()));
    }

    /**
     * Creates the id for new ranks that join a growing communicator. One rank calls it before all ranks call
     * {@link #grow}; the new ranks pass the id to {@link CommunicatorBuilder#join}.
     *
     * <p>C function: {@code ncclCommGetUniqueId}, since NCCL 2.29.2.
     *
     * @return the id
     * @throws NcclLibraryException if the library lacks the function
     */
    public UniqueId growId() {
        core.require("ncclCommGetUniqueId");
        return core.growId();
    }

    /**
     * Creates a communicator with more ranks. Collective over the ranks of this communicator and the new ranks. The
     * ranks of this communicator keep their numbers.
     *
     * <p>C function: {@code ncclCommGrow}, since NCCL 2.29.2.
     *
     * @param newSize the number of ranks of the new communicator
     * @return the new communicator; this communicator does not change
     * @throws IllegalArgumentException if newSize is not larger than the number of ranks
     * @throws NcclLibraryException if the library lacks the function
     */
    public Communicator grow(int newSize) {
        if (newSize <= size()) {
            throw new IllegalArgumentException("newSize must be > size(): " + newSize + ", size " + size());
        }
        core.require("ncclCommGrow");
        List<UniqueId> id = core.unusedGrowId();
        NativeArguments arguments = new NativeArguments(null, id, core.library());
        long address = id.isEmpty() ? 0 : arguments.ids();
        Communicator grown = derive(
                "ncclCommGrow",
                null,
                0,
                false,
                arguments,
                (handle, cell, settings) -> nccl.ncclCommGrow(handle, newSize, address, -1, cell, settings));
        core.markGrowIdUsed();
        return grown;
    }

    /** A C call that derives a communicator from another one. */
    @FunctionalInterface
    private interface Derivation {
        int call(long parent, long cell, long config);
    }

    private Communicator derive(
            String function, CommunicatorConfig config, int color, boolean afterRevoke, Derivation call) {
        NativeArguments arguments = new NativeArguments(config, List.of(), core.library());
        return derive(function, config, color, afterRevoke, arguments, call);
    }

    private Communicator derive(
            String function,
            CommunicatorConfig config,
            int color,
            boolean afterRevoke,
            NativeArguments arguments,
            Derivation call) {
        NcclLibrary library = core.library();
        Object blocking =
                config == null ? (Object) isBlocking() : config.values().getOrDefault("blocking", true);
        Object name = config == null ? null : config.values().get("commName");
        Communicator made = new Communicator(
                library, device, (Boolean) blocking, true, core.settings(), name == null ? "" : (String) name);
        made.core.setKey(core.nameOfChild(color));
        Creation creation = new Creation(
                function,
                made.core,
                core,
                arguments,
                () -> core.onDevice(() -> call.call(core.handle(), made.core.handleCell(), arguments.config())),
                made.core::created);
        core.make(creation, afterRevoke || function.equals("ncclCommSplit"));
        return made;
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
        core.own(child);
        return child;
    }

    /* Changes of state. */

    /**
     * Releases resources that an unused communicator does not need. Collective. The work of the communicator must be
     * complete.
     *
     * <p>C function: {@code ncclCommSuspend}, since NCCL 2.29.7.
     *
     * @param flag the resources to release
     * @throws NcclLibraryException if the library lacks the function
     */
    public void suspend(SuspendFlag flag) {
        core.suspend(flag.code());
    }

    /**
     * Acquires the resources again that {@link #suspend} has released. Collective.
     *
     * <p>C function: {@code ncclCommResume}, since NCCL 2.29.7.
     *
     * @throws IllegalStateException if the communicator is not suspended
     */
    public void resume() {
        core.resume();
    }

    /**
     * Stops this rank's work in this communicator without freeing the communicator: an operation in another thread
     * returns with an error. The live ranks can then shrink or split the communicator. Any thread may call it.
     *
     * <p>C function: {@code ncclCommRevoke}, since NCCL 2.28.7.
     *
     * @param flag the mode
     * @throws NcclLibraryException if the library lacks the function
     */
    public void revoke(RevokeFlag flag) {
        core.revoke(flag.code());
    }

    /**
     * Finishes all work, which makes {@link #close} short. Collective.
     *
     * <p>C function: {@code ncclCommFinalize}, since NCCL 2.14.3.
     */
    public void finish() {
        core.finish();
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
     * Aborts several communicators concurrently, each as by {@link #abort}. Sequential calls could make each abort wait
     * for the later ones. Returns when all communicators are aborted, each after its deadline at the latest. Any thread
     * may call it; an interrupt does not end it.
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
     * and then waits for the devices of all. So ranks in threads wait for each other here, for a second at most:
     * otherwise a rank could go on to a collective that needs a rank that is still closing, and NCCL would wait for its
     * device in vain. For nonblocking communicators the end of NCCL's wait is not known here: use them with one rank
     * per process.
     *
     * <p>C functions: {@code ncclCommFinalize} and {@code ncclCommDestroy}.
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
     * Called before the abort of the native communicator: work that is complete now counts as complete, the rest as
     * lost.
     */
    void ending() {
        streams.pollPending();
    }

    /** Called after the end of the native communicator. */
    void ended() {
        recorder.end();
        try {
            streams.close();
        } finally {
            scratch.close();
        }
    }

    ExchangeBuffers scratch() {
        return scratch;
    }

    /* Streams and waiting. */

    /**
     * Returns this communicator's own stream, which the first call creates and which is closed with the communicator.
     * Its work runs concurrently with the default stream; {@link #letDefaultStreamWait} and
     * {@link #waitForDefaultStream} order the two streams.
     *
     * @return the stream, not to be closed by the caller
     */
    public CudaStream stream() {
        core.requireOpen();
        return streams.ownStream();
    }

    /**
     * Makes later work of the device's default stream wait for the present work of {@link #stream()}. Returns at once.
     */
    public void letDefaultStreamWait() {
        core.requireOpen();
        streams.letDefaultStreamWait();
    }

    /**
     * Makes later work of {@link #stream()} wait for the present work of the device's default stream. Returns at once.
     */
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
        check(stream);
        if (Batch.current() != null) {
            // The batch holds the gate for this thread: entering would succeed, and leaving would end the batch's hold.
            throw new IllegalStateException(
                    "the operations of the open group of this thread are in no stream yet: launch"
                            + " the group, then ask " + this + " for its work");
        }
        if (CudaGraph.capturing(stream) != null) {
            throw new IllegalStateException("what is captured is not done by the stream: launch the graph, then ask "
                    + this + " for the work in " + stream);
        }
        Gate.Pass pass = gate.enter();
        try {
            return mark(stream);
        } finally {
            pass.leave();
        }
    }

    /** As {@link #work}, for the holder of the gate's pass. */
    Work mark(CudaStream stream) {
        return streams.mark(stream, operationLog.last());
    }

    /* Operators. */

    /**
     * Creates an operator that multiplies this rank's elements by a number and then sums the products of all ranks. Not
     * collective: each rank creates its own operator with its own number, and all ranks pass their operators to the
     * same operation.
     *
     * <p>C function: {@code ncclRedOpCreatePreMulSum} with the number in host memory, since NCCL 2.11.4.
     *
     * @param <T> the type of the elements
     * @param type the type of the elements
     * @param scalar the number, rounded to the type
     * @return the operator, closed by the caller or with the communicator
     * @throws IllegalArgumentException if the type is an integer type that can't represent the number
     */
    public <T extends Element> PreMulSum<T> preMulSum(ElementType<T> type, double scalar) {
        long bits;
        if (type.isFloat()) {
            bits = type.bitsOf(scalar);
        } else if (scalar == Math.rint(scalar) && scalar >= -0x1p63 && scalar < 0x1p63) {
            bits = type.bitsOf((long) scalar);
        } else {
            throw new IllegalArgumentException(
                    "scalar must be an integer from -2^63 to 2^63 - 1 for " + type + ": " + scalar);
        }
        try (NativeMemory cell = new NativeMemory(Long.BYTES)) {
            cell.buffer().putLong(0, bits);
            return preMulSum(type, cell.address(), ScalarResidence.HOST_IMMEDIATE, null);
        }
    }

    /**
     * As {@link #preMulSum(ElementType, double)} with a number in device memory, read when an operation runs.
     *
     * <p>C function: {@code ncclRedOpCreatePreMulSum} with the number on the device, since NCCL 2.11.4.
     *
     * @param <T> the type of the elements
     * @param scalar a buffer with the number as its only element; the operator keeps its memory until it is closed
     * @return the operator, closed by the caller or with the communicator
     * @throws IllegalArgumentException if the buffer does not have exactly one element, or is on another device
     */
    public <T extends Element> PreMulSum<T> preMulSum(DeviceBuffer<T> scalar) {
        requireEqual("scalar.length()", scalar.length, "1", 1);
        check(scalar);
        scalar.pin();
        boolean made = false;
        try {
            PreMulSum<T> operator = preMulSum(scalar.type, scalar.address, ScalarResidence.DEVICE, scalar);
            made = true;
            return operator;
        } finally {
            if (!made) {
                scalar.unpin();
            }
        }
    }

    private <T extends Element> PreMulSum<T> preMulSum(
            ElementType<T> type, long scalar, ScalarResidence residence, DeviceBuffer<T> buffer) {
        check(type.nativeCode());
        core.requireOpen();
        try (NativeMemory cell = new NativeMemory(Integer.BYTES)) {
            core.callAlone(
                    "ncclRedOpCreatePreMulSum",
                    handle -> nccl.ncclRedOpCreatePreMulSum(
                            cell.address(), scalar, type.nativeCode(), residence.code(), handle));
            return new PreMulSum<>(cell.buffer().getInt(0), this, type, buffer);
        }
    }

    /* Registered memory. */

    /**
     * Registers memory of every rank for access by the other ranks. Collective: all ranks call it in the same order,
     * with the same number of bytes and the same flags.
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
     */
    public Window registerWindow(DeviceBuffer<?> buffer, WindowFlag... flags) {
        return Window.register(this, buffer, flags);
    }

    /** Adds a window that has been opened. */
    synchronized void add(Window window) {
        Window[] more = Arrays.copyOf(windows, windows.length + 1);
        more[windows.length] = window;
        windows = more;
        RegistrationFaults.warnOnce(core.library());
        if (window.isSymmetric() && RegistrationFaults.affect(core.library())) {
            faultyWindows = true;
            special = SPECIAL;
        }
    }

    /** Removes a window that will be deregistered. */
    synchronized void remove(Window window) {
        windows = Arrays.stream(windows).filter(one -> one != window).toArray(Window[]::new);
    }

    /**
     * The open window with {@link WindowFlag#COLL_SYMMETRIC} that contains a buffer of this device; null if there is
     * none.
     */
    Window symmetricWindowOf(DeviceBuffer<?> buffer) {
        return symmetricWindowOf(buffer.address, buffer.sizeInBytes());
    }

    private Window symmetricWindowOf(long address, long bytes) {
        for (Window window : windows) {
            if (window.isSymmetric() && window.covers(address, bytes) && window.isOpen()) {
                return window;
            }
        }
        return null;
    }

    private void checkForFaults(int operation, long send, long recv, long count, int bytesOfElement) {
        Version version = core.library().version();
        refuseInWindows(
                RegistrationFaults.wrongResult(version, operation, send, count, bytesOfElement), version, send, recv);
    }

    /**
     * Includes the check for NCCL's fault of averages. For the other faults, {@link #special} makes all operations
     * check further.
     */
    private void check(ReduceOp op, long send, long recv, DataType type) {
        check(op, type);
        if (op == ReduceOp.AVG && windows.length > 0 && !onHost) {
            Version version = core.library().version();
            refuseInWindows(RegistrationFaults.missingAverage(version, type), version, send, recv);
        }
    }

    private void refuseInWindows(String problem, Version version, long send, long recv) {
        if (problem != null
                && size() > 1
                && RegistrationFaults.usesKernels(
                        version, symmetricWindowOf(send, 0) != null, symmetricWindowOf(recv, 0) != null)) {
            throw new IllegalArgumentException(problem);
        }
    }

    /**
     * Lets NCCL use memory directly in operations of this communicator. Not collective, but useful only if all ranks do
     * it.
     *
     * <p>C function: {@code ncclCommRegister}, since NCCL 2.19.1. Called at once, also in an open group.
     *
     * @param buffer the memory; some kinds of direct use need memory of {@link Device#allocateForWindow}
     * @return the registration, closed by the caller or with the communicator
     * @throws IllegalArgumentException if the buffer is empty, or is on another device
     * @throws NcclLibraryException if the library lacks the function
     */
    public Registration register(DeviceBuffer<?> buffer) {
        core.require("ncclCommRegister");
        check(buffer);
        if (buffer.length == 0) {
            throw new IllegalArgumentException("buffer must have at least 1 element: " + buffer);
        }
        RegistrationFaults.warnOnce(core.library());
        buffer.pin();
        boolean made = false;
        // NCCL leaves the cell unchanged if it registers nothing.
        try (NativeMemory cell = new NativeMemory(Long.BYTES)) {
            core.alone(() -> {
                core.requireOpen();
                core.callAlone(
                        "ncclCommRegister",
                        handle -> nccl.ncclCommRegister(handle, buffer.address, buffer.sizeInBytes(), cell.address()));
            });
            made = true;
            return new Registration(core, buffer, cell.buffer().getLong(0));
        } finally {
            if (!made) {
                buffer.unpin();
            }
        }
    }

    /* Collective operations. */

    /**
     * Reduces the elements of all ranks; every rank gets the result. Collective, in stream order. In place if send and
     * recv are the same memory.
     *
     * <p>C function: {@code ncclAllReduce}.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements
     * @param recv the result, of the same length as send
     * @param op the operator
     * @param stream the stream
     */
    public <T extends Element> void allReduce(
            DeviceBuffer<T> send, DeviceBuffer<T> recv, ReduceOp op, CudaStream stream) {
        long count = send.length;
        if (recv.length != count) {
            throw unequal("recv.length()", recv.length, "send.length()", count);
        }
        checkApartOrSame(send, recv);
        if (op.mayBeRefused()) {
            check(op, send.address, recv.address, send.type.dataType());
        }
        submit(Operations.ALL_REDUCE, send, recv, count, op, 0, stream);
    }

    /**
     * As {@link #allReduce(DeviceBuffer, DeviceBuffer, ReduceOp, CudaStream)} with a configuration for this call.
     *
     * <p>C function: {@code ncclAllReduceConfig}, since NCCL 2.31.2.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements
     * @param recv the result, of the same length as send
     * @param op the operator
     * @param stream the stream
     * @param config the configuration, the same at all ranks
     * @throws NcclLibraryException if the library lacks the function or a field of the configuration
     */
    public <T extends Element> void allReduce(
            DeviceBuffer<T> send, DeviceBuffer<T> recv, ReduceOp op, CudaStream stream, CollectiveConfig config) {
        checkElementwise(send, recv);
        if (op.mayBeRefused()) {
            check(op, send.address, recv.address, send.type.dataType());
        }
        submit(Operations.ALL_REDUCE, send, recv, send.length, op, 0, stream, config);
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
        allReduce(buffer, buffer, op, stream);
    }

    /**
     * Reduces the elements of all ranks; the root gets the result. Collective, in stream order. In place if send and
     * recv are the same memory.
     *
     * <p>C function: {@code ncclReduce}.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements
     * @param recv the result, of the same length as send; not changed at ranks other than the root
     * @param op the operator
     * @param root the rank that gets the result
     * @param stream the stream
     */
    public <T extends Element> void reduce(
            DeviceBuffer<T> send, DeviceBuffer<T> recv, ReduceOp op, int root, CudaStream stream) {
        requireRoot(root);
        checkElementwise(send, recv);
        check(op, send.type);
        submit(Operations.REDUCE, send, recv, send.length, op, root, stream);
    }

    /**
     * As {@link #reduce(DeviceBuffer, DeviceBuffer, ReduceOp, int, CudaStream)} with a configuration for this call.
     *
     * <p>C function: {@code ncclReduceConfig}, since NCCL 2.31.2.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements
     * @param recv the result, of the same length as send; not changed at ranks other than the root
     * @param op the operator
     * @param root the rank that gets the result
     * @param stream the stream
     * @param config the configuration, the same at all ranks
     * @throws NcclLibraryException if the library lacks the function or a field of the configuration
     */
    public <T extends Element> void reduce(
            DeviceBuffer<T> send,
            DeviceBuffer<T> recv,
            ReduceOp op,
            int root,
            CudaStream stream,
            CollectiveConfig config) {
        requireRoot(root);
        checkElementwise(send, recv);
        check(op, send.type);
        submit(Operations.REDUCE, send, recv, send.length, op, root, stream, config);
    }

    /**
     * As {@link #reduce(DeviceBuffer, DeviceBuffer, ReduceOp, int, CudaStream)} with one buffer, in place.
     *
     * @param <T> the type of the elements
     * @param buffer this rank's elements; at the root replaced by the result
     * @param op the operator
     * @param root the rank that gets the result
     * @param stream the stream
     */
    public <T extends Element> void reduce(DeviceBuffer<T> buffer, ReduceOp op, int root, CudaStream stream) {
        reduce(buffer, buffer, op, root, stream);
    }

    /**
     * Copies the root's elements to all ranks. Collective, in stream order. In place if send and recv are the same
     * memory.
     *
     * <p>C function: {@code ncclBroadcast}.
     *
     * @param <T> the type of the elements
     * @param send the root's elements; not read at other ranks
     * @param recv the destination, of the same length as send
     * @param root the rank that has the elements
     * @param stream the stream
     */
    public <T extends Element> void broadcast(DeviceBuffer<T> send, DeviceBuffer<T> recv, int root, CudaStream stream) {
        requireRoot(root);
        checkElementwise(send, recv);
        submit(Operations.BROADCAST, send, recv, recv.length, null, root, stream);
    }

    /**
     * As {@link #broadcast(DeviceBuffer, DeviceBuffer, int, CudaStream)} with a configuration for this call.
     *
     * <p>C function: {@code ncclBroadcastConfig}, since NCCL 2.31.2.
     *
     * @param <T> the type of the elements
     * @param send the root's elements; not read at other ranks
     * @param recv the destination, of the same length as send
     * @param root the rank that has the elements
     * @param stream the stream
     * @param config the configuration, the same at all ranks
     * @throws NcclLibraryException if the library lacks the function or a field of the configuration
     */
    public <T extends Element> void broadcast(
            DeviceBuffer<T> send, DeviceBuffer<T> recv, int root, CudaStream stream, CollectiveConfig config) {
        requireRoot(root);
        checkElementwise(send, recv);
        submit(Operations.BROADCAST, send, recv, recv.length, null, root, stream, config);
    }

    /**
     * As {@link #broadcast(DeviceBuffer, DeviceBuffer, int, CudaStream)} with one buffer, in place.
     *
     * @param <T> the type of the elements
     * @param buffer the root's elements; at other ranks the destination
     * @param root the rank that has the elements
     * @param stream the stream
     */
    public <T extends Element> void broadcast(DeviceBuffer<T> buffer, int root, CudaStream stream) {
        broadcast(buffer, buffer, root, stream);
    }

    /**
     * Concatenates the elements of all ranks in the order of ranks; every rank gets the result. Collective, in stream
     * order. In place if send is this rank's part of recv.
     *
     * <p>C function: {@code ncclAllGather}.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements
     * @param recv the elements of all ranks, {@link #size()} times as long as send
     * @param stream the stream
     */
    public <T extends Element> void allGather(DeviceBuffer<T> send, DeviceBuffer<T> recv, CudaStream stream) {
        requireTimesSize("recv.length()", recv.length, "send.length()", send.length);
        checkDisjointOrPart(send, recv, rank());
        submit(Operations.ALL_GATHER, send, recv, send.length, null, 0, stream);
    }

    /**
     * As {@link #allGather(DeviceBuffer, DeviceBuffer, CudaStream)} with a configuration for this call.
     *
     * <p>C function: {@code ncclAllGatherConfig}, since NCCL 2.31.2.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements
     * @param recv the elements of all ranks, {@link #size()} times as long as send
     * @param stream the stream
     * @param config the configuration, the same at all ranks
     * @throws NcclLibraryException if the library lacks the function or a field of the configuration
     */
    public <T extends Element> void allGather(
            DeviceBuffer<T> send, DeviceBuffer<T> recv, CudaStream stream, CollectiveConfig config) {
        requireTimesSize("recv.length()", recv.length, "send.length()", send.length);
        checkDisjointOrPart(send, recv, rank());
        submit(Operations.ALL_GATHER, send, recv, send.length, null, 0, stream, config);
    }

    /**
     * Reduces the elements of all ranks; every rank gets its part of the result. Collective, in stream order. In place
     * if recv is this rank's part of send.
     *
     * <p>C function: {@code ncclReduceScatter}.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements, {@link #size()} times as many as in recv
     * @param recv this rank's part of the result
     * @param op the operator
     * @param stream the stream
     */
    public <T extends Element> void reduceScatter(
            DeviceBuffer<T> send, DeviceBuffer<T> recv, ReduceOp op, CudaStream stream) {
        requireTimesSize("send.length()", send.length, "recv.length()", recv.length);
        checkDisjointOrPart(recv, send, rank());
        check(op, send.type);
        submit(Operations.REDUCE_SCATTER, send, recv, recv.length, op, 0, stream);
    }

    /**
     * As {@link #reduceScatter(DeviceBuffer, DeviceBuffer, ReduceOp, CudaStream)} with a configuration for this call.
     *
     * <p>C function: {@code ncclReduceScatterConfig}, since NCCL 2.31.2.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements, {@link #size()} times as many as in recv
     * @param recv this rank's part of the result
     * @param op the operator
     * @param stream the stream
     * @param config the configuration, the same at all ranks
     * @throws NcclLibraryException if the library lacks the function or a field of the configuration
     */
    public <T extends Element> void reduceScatter(
            DeviceBuffer<T> send, DeviceBuffer<T> recv, ReduceOp op, CudaStream stream, CollectiveConfig config) {
        requireTimesSize("send.length()", send.length, "recv.length()", recv.length);
        checkDisjointOrPart(recv, send, rank());
        check(op, send.type);
        submit(Operations.REDUCE_SCATTER, send, recv, recv.length, op, 0, stream, config);
    }

    /**
     * Exchanges parts between all ranks: part r of rank s becomes part s of rank r. Collective, in stream order, not in
     * place.
     *
     * <p>C function: {@code ncclAlltoAll}, since NCCL 2.28.3; with older libraries, a group of {@code ncclSend} and
     * {@code ncclRecv}.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements; their number must be a multiple of {@link #size()}
     * @param recv the elements for this rank, of the same length as send
     * @param stream the stream
     */
    public <T extends Element> void allToAll(DeviceBuffer<T> send, DeviceBuffer<T> recv, CudaStream stream) {
        checkAllToAll(send, recv);
        long count = send.length / size();
        if (hasAllToAll) {
            submit(Operations.ALL_TO_ALL, send, recv, count, null, 0, stream);
            return;
        }
        check(send, recv, stream);
        try (CallGroup calls = callGroup()) {
            for (int peer = 0; peer < size(); peer++) {
                calls.transfer(Operations.SEND, send, peer * count, count, peer, stream);
                calls.transfer(Operations.RECV, recv, peer * count, count, peer, stream);
            }
            calls.launch();
        }
    }

    /**
     * As {@link #allToAll(DeviceBuffer, DeviceBuffer, CudaStream)} with a configuration for this call.
     *
     * <p>C function: {@code ncclAlltoAllConfig}, since NCCL 2.31.2; older libraries have no replacement.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements; their number must be a multiple of {@link #size()}
     * @param recv the elements for this rank, of the same length as send
     * @param stream the stream
     * @param config the configuration, the same at all ranks
     * @throws NcclLibraryException if the library lacks the function or a field of the configuration
     */
    public <T extends Element> void allToAll(
            DeviceBuffer<T> send, DeviceBuffer<T> recv, CudaStream stream, CollectiveConfig config) {
        checkAllToAll(send, recv);
        submit(Operations.ALL_TO_ALL, send, recv, send.length / size(), null, 0, stream, config);
    }

    private void checkAllToAll(DeviceBuffer<?> send, DeviceBuffer<?> recv) {
        requireEqual("recv.length()", recv.length, "send.length()", send.length);
        if (send.length % size() != 0) {
            throw new IllegalArgumentException(
                    "send.length() must be a multiple of size(): " + send.length + ", size " + size());
        }
        checkDisjoint(send, recv);
    }

    /**
     * Concatenates the elements of all ranks at the root, in the order of ranks. Collective, in stream order. In place
     * if send is the root's part of recv.
     *
     * <p>C function: {@code ncclGather}, since NCCL 2.28.3; with older libraries, a group of {@code ncclSend} and
     * {@code ncclRecv}.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements
     * @param recv at the root the elements of all ranks, {@link #size()} times as long as send; not used at other ranks
     * @param root the rank that gets the elements
     * @param stream the stream
     */
    public <T extends Element> void gather(DeviceBuffer<T> send, DeviceBuffer<T> recv, int root, CudaStream stream) {
        checkGather(send, recv, root);
        if (hasGather) {
            submit(Operations.GATHER, send, recv, send.length, null, root, stream);
            return;
        }
        check(send, recv, stream);
        long count = send.length;
        try (CallGroup calls = callGroup()) {
            for (int peer = 0; rank() == root && peer < size(); peer++) {
                boolean inPlace = peer == root && recv.addressOf(root * count) == send.address;
                if (!inPlace) {
                    calls.transfer(Operations.RECV, recv, peer * count, count, peer, stream);
                }
            }
            if (rank() != root || recv.addressOf(root * count) != send.address) {
                calls.transfer(Operations.SEND, send, 0, count, root, stream);
            }
            calls.launch();
        }
    }

    /**
     * As {@link #gather(DeviceBuffer, DeviceBuffer, int, CudaStream)} with a configuration for this call.
     *
     * <p>C function: {@code ncclGatherConfig}, since NCCL 2.31.2; older libraries have no replacement.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements
     * @param recv at the root the elements of all ranks, {@link #size()} times as long as send; not used at other
     *     ranks, which may pass send
     * @param root the rank that gets the elements
     * @param stream the stream
     * @param config the configuration, the same at all ranks
     * @throws NcclLibraryException if the library lacks the function or a field of the configuration
     */
    public <T extends Element> void gather(
            DeviceBuffer<T> send, DeviceBuffer<T> recv, int root, CudaStream stream, CollectiveConfig config) {
        checkGather(send, recv, root);
        submit(Operations.GATHER, send, recv, send.length, null, root, stream, config);
    }

    private void checkGather(DeviceBuffer<?> send, DeviceBuffer<?> recv, int root) {
        requireRoot(root);
        if (rank() == root) {
            requireTimesSize("recv.length()", recv.length, "send.length()", send.length);
            checkDisjointOrPart(send, recv, root);
        }
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
        requireOtherRoot(root, "recv");
        gather(send, send, root, stream);
    }

    /**
     * Distributes the root's elements: rank r gets part r. Collective, in stream order. In place if recv is the root's
     * part of send.
     *
     * <p>C function: {@code ncclScatter}, since NCCL 2.28.3; with older libraries, a group of {@code ncclSend} and
     * {@code ncclRecv}.
     *
     * @param <T> the type of the elements
     * @param send the root's elements, {@link #size()} times as many as in recv; not used at other ranks
     * @param recv this rank's part
     * @param root the rank that has the elements
     * @param stream the stream
     */
    public <T extends Element> void scatter(DeviceBuffer<T> send, DeviceBuffer<T> recv, int root, CudaStream stream) {
        checkScatter(send, recv, root);
        if (hasScatter) {
            submit(Operations.SCATTER, send, recv, recv.length, null, root, stream);
            return;
        }
        check(send, recv, stream);
        long count = recv.length;
        try (CallGroup calls = callGroup()) {
            for (int peer = 0; rank() == root && peer < size(); peer++) {
                boolean inPlace = peer == root && send.addressOf(root * count) == recv.address;
                if (!inPlace) {
                    calls.transfer(Operations.SEND, send, peer * count, count, peer, stream);
                }
            }
            if (rank() != root || send.addressOf(root * count) != recv.address) {
                calls.transfer(Operations.RECV, recv, 0, count, root, stream);
            }
            calls.launch();
        }
    }

    /**
     * As {@link #scatter(DeviceBuffer, DeviceBuffer, int, CudaStream)} with a configuration for this call.
     *
     * <p>C function: {@code ncclScatterConfig}, since NCCL 2.31.2; older libraries have no replacement.
     *
     * @param <T> the type of the elements
     * @param send the root's elements, {@link #size()} times as many as in recv; not used at other ranks, which may
     *     pass recv
     * @param recv this rank's part
     * @param root the rank that has the elements
     * @param stream the stream
     * @param config the configuration, the same at all ranks
     * @throws NcclLibraryException if the library lacks the function or a field of the configuration
     */
    public <T extends Element> void scatter(
            DeviceBuffer<T> send, DeviceBuffer<T> recv, int root, CudaStream stream, CollectiveConfig config) {
        checkScatter(send, recv, root);
        submit(Operations.SCATTER, send, recv, recv.length, null, root, stream, config);
    }

    private void checkScatter(DeviceBuffer<?> send, DeviceBuffer<?> recv, int root) {
        requireRoot(root);
        if (rank() == root) {
            requireTimesSize("send.length()", send.length, "recv.length()", recv.length);
            checkDisjointOrPart(recv, send, root);
        }
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
        requireOtherRoot(root, "send");
        scatter(recv, recv, root, stream);
    }

    /* Operations between two ranks. */

    /**
     * Sends elements to a rank, which calls {@link #recv} with the same number of elements. In stream order: the stream
     * waits for the other rank. Two ranks that send to each other must do so in a {@link Group}; otherwise they wait
     * for each other forever.
     *
     * <p>C function: {@code ncclSend}, since NCCL 2.7.3.
     *
     * @param <T> the type of the elements
     * @param buffer the elements
     * @param peer the receiving rank; this rank only in a group that also receives
     * @param stream the stream
     */
    public <T extends Element> void send(DeviceBuffer<T> buffer, int peer, CudaStream stream) {
        requireTransferPeer(peer);
        submit(Operations.SEND, buffer, null, buffer.length, null, peer, stream);
    }

    /**
     * Receives elements from a rank, which calls {@link #send} with the same number of elements. In stream order: the
     * stream waits for the other rank.
     *
     * <p>C function: {@code ncclRecv}, since NCCL 2.7.3.
     *
     * @param <T> the type of the elements
     * @param buffer the destination
     * @param peer the sending rank; this rank only in a group that also sends
     * @param stream the stream
     */
    public <T extends Element> void recv(DeviceBuffer<T> buffer, int peer, CudaStream stream) {
        requireTransferPeer(peer);
        submit(Operations.RECV, null, buffer, buffer.length, null, peer, stream);
    }

    /**
     * Sends to a rank and receives from a rank at the same time, for example in a ring or a halo exchange. In stream
     * order, not in place.
     *
     * <p>C functions: {@code ncclSend} and {@code ncclRecv} in a group; a transfer of 0 elements is omitted.
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
        requirePeer("to", to);
        requirePeer("from", from);
        check(send, recv, stream);
        checkDisjoint(send, recv);
        if (to == rank() != (from == rank())) {
            throw new IllegalArgumentException("a rank that sends to itself must receive from itself: to " + to
                    + ", from " + from + ", rank " + rank());
        }
        if (to == rank()) {
            requireEqual("recv.length()", recv.length, "send.length()", send.length);
        }
        try (CallGroup calls = callGroup()) {
            calls.transfer(Operations.SEND, send, 0, send.length, to, stream);
            calls.transfer(Operations.RECV, recv, 0, recv.length, from, stream);
            calls.launch();
        }
    }

    /* Operations with a count for each rank. */

    /**
     * Gathers the elements of all ranks, each at its displacement; every rank gets the result. Collective, in stream
     * order. In place if send is this rank's part of recv.
     *
     * <p>C functions: a group of {@code ncclSend} and {@code ncclRecv}; transfers of 0 elements are omitted.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements
     * @param recv the destination of all elements
     * @param counts the number of elements of each rank, the same at all ranks
     * @param displacements the index in recv of each rank's first element
     * @param stream the stream
     * @throws IndexOutOfBoundsException if the elements of a rank are not within recv
     */
    public <T extends Element> void allGatherv(
            DeviceBuffer<T> send, DeviceBuffer<T> recv, long[] counts, long[] displacements, CudaStream stream) {
        check(send, recv, stream);
        BlockLayout blocks = BlockLayout.checked("recv", counts, displacements, size(), recv.length, true);
        long own = blocks.counts()[rank()];
        requireEqual("send.length()", send.length, "counts[rank()]", own);
        boolean inPlace = recv.addressOf(blocks.displacements()[rank()]) == send.address;
        if (!inPlace) {
            checkDisjoint(send, recv);
        }
        try (CallGroup calls = callGroup()) {
            for (int peer = 0; peer < size(); peer++) {
                if (peer == rank() && inPlace) {
                    continue;
                }
                calls.transfer(Operations.SEND, send, 0, own, peer, stream);
                calls.transfer(Operations.RECV, recv, blocks, peer, stream);
            }
            calls.launch();
        }
    }

    /**
     * Gathers the elements of all ranks at the root, each at its displacement. Collective, in stream order. In place if
     * send is the root's part of recv.
     *
     * <p>C functions: a group of {@code ncclSend} and {@code ncclRecv}; transfers of 0 elements are omitted.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements
     * @param recv at the root the destination of all elements; not used at other ranks
     * @param counts the number of elements of each rank; not used at ranks other than the root
     * @param displacements the index in recv of each rank's first element; not used at ranks other than the root
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
        requireRoot(root);
        if (rank() != root) {
            gatherv(send, root, stream);
            return;
        }
        check(send, recv, stream);
        BlockLayout blocks = BlockLayout.checked("recv", counts, displacements, size(), recv.length, true);
        requireEqual("send.length()", send.length, "counts[rank()]", blocks.counts()[root]);
        boolean inPlace = recv.addressOf(blocks.displacements()[root]) == send.address;
        if (!inPlace) {
            checkDisjoint(send, recv);
        }
        try (CallGroup calls = callGroup()) {
            for (int peer = 0; peer < size(); peer++) {
                if (peer != root || !inPlace) {
                    calls.transfer(Operations.RECV, recv, blocks, peer, stream);
                }
            }
            if (!inPlace) {
                calls.transfer(Operations.SEND, send, 0, send.length, root, stream);
            }
            calls.launch();
        }
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
        requireOtherRoot(root, "recv");
        check(send, stream);
        try (CallGroup calls = callGroup()) {
            calls.transfer(Operations.SEND, send, 0, send.length, root, stream);
            calls.launch();
        }
    }

    /**
     * Distributes the root's elements: each rank gets its count of elements, from its displacement on. Collective, in
     * stream order. In place if recv is the root's part of send.
     *
     * <p>C functions: a group of {@code ncclSend} and {@code ncclRecv}; transfers of 0 elements are omitted.
     *
     * @param <T> the type of the elements
     * @param send the root's elements; not used at other ranks
     * @param counts the number of elements for each rank; not used at ranks other than the root
     * @param displacements the index in send of each rank's first element; not used at ranks other than the root
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
        requireRoot(root);
        if (rank() != root) {
            scatterv(recv, root, stream);
            return;
        }
        check(send, recv, stream);
        BlockLayout blocks = BlockLayout.checked("send", counts, displacements, size(), send.length, false);
        requireEqual("recv.length()", recv.length, "counts[rank()]", blocks.counts()[root]);
        boolean inPlace = send.addressOf(blocks.displacements()[root]) == recv.address;
        if (!inPlace) {
            checkDisjoint(send, recv);
        }
        try (CallGroup calls = callGroup()) {
            for (int peer = 0; peer < size(); peer++) {
                if (peer != root || !inPlace) {
                    calls.transfer(Operations.SEND, send, blocks, peer, stream);
                }
            }
            if (!inPlace) {
                calls.transfer(Operations.RECV, recv, 0, recv.length, root, stream);
            }
            calls.launch();
        }
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
        requireOtherRoot(root, "send");
        check(recv, stream);
        try (CallGroup calls = callGroup()) {
            calls.transfer(Operations.RECV, recv, 0, recv.length, root, stream);
            calls.launch();
        }
    }

    /**
     * Reduces the elements of all ranks; every rank gets its part of the result, and the lengths of the parts may
     * differ. Collective, in stream order. In place if recv is this rank's part of send.
     *
     * <p>C functions: a group of {@code ncclReduce}, one for each rank.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements: the parts of all ranks, one after the other
     * @param recv this rank's part of the result
     * @param counts the length of each rank's part, the same at all ranks
     * @param op the operator
     * @param stream the stream
     */
    public <T extends Element> void reduceScatterv(
            DeviceBuffer<T> send, DeviceBuffer<T> recv, long[] counts, ReduceOp op, CudaStream stream) {
        check(send, recv, stream);
        check(op, send.type);
        BlockLayout blocks = BlockLayout.consecutive("send", counts, size(), send.length);
        requireEqual("recv.length()", recv.length, "counts[rank()]", blocks.counts()[rank()]);
        boolean inPlace = send.addressOf(blocks.displacements()[rank()]) == recv.address;
        if (!inPlace) {
            checkDisjoint(send, recv);
        }
        try (CallGroup calls = callGroup()) {
            for (int root = 0; root < size(); root++) {
                long part = send.addressOf(blocks.displacements()[root]);
                // NCCL writes to the target at the root only.
                long target = root == rank() ? recv.address : part;
                calls.reduce(send, recv, part, target, blocks.counts()[root], op, root, stream);
            }
            calls.launch();
        }
    }

    /**
     * Exchanges blocks of different lengths between all ranks, as {@code MPI_Alltoallv}. The arrays are this rank's
     * rows of counts and displacements, in elements. Collective, in stream order, not in place.
     *
     * <p>The ranks first compare their arguments, and all throw if a rank has wrong arguments or two ranks disagree.
     * The comparison takes a small all-gather on {@link #stream()} and waits for it. For repeated calls with the same
     * counts and buffers, a {@linkplain #planAllToAllv plan} compares once. {@link #allToAllvUnchecked} does not
     * compare; use it if all ranks are known to agree.
     *
     * <p>C functions: {@code ncclAlltoAllv} of VCCL or RCCL in the cases that {@link AllToAllvPlan} lists, else a group
     * of {@code ncclSend} and {@code ncclRecv}.
     *
     * @param <T> the type of the elements
     * @param send the elements for all ranks
     * @param sendCounts the number of elements for each rank
     * @param sendDisplacements the index in send of the first element for each rank
     * @param recv the destination of the elements from all ranks
     * @param recvCounts the number of elements from each rank
     * @param recvDisplacements the index in recv of the first element from each rank; the blocks must not overlap
     * @param stream the stream
     * @throws IllegalArgumentException if ranks disagree on counts or types; thrown at all ranks
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
        check(stream);
        if (Batch.current() != null) {
            throw new IllegalStateException(
                    "in a group, allToAllv needs a plan: the ranks can't compare their counts there");
        }
        try (AllToAllvPlan<T> plan =
                planAllToAllv(send, sendCounts, sendDisplacements, recv, recvCounts, recvDisplacements)) {
            allToAllv(plan, stream);
        }
    }

    /**
     * As {@link #allToAllv(DeviceBuffer, long[], long[], DeviceBuffer, long[], long[], CudaStream)} without comparing
     * the counts across ranks: if ranks disagree, they wait for each other forever. The arguments of this rank are
     * checked.
     *
     * <p>C functions: a group of {@code ncclSend} and {@code ncclRecv}; transfers of 0 elements are omitted.
     *
     * @param <T> the type of the elements
     * @param send the elements for all ranks
     * @param sendCounts the number of elements for each rank
     * @param sendDisplacements the index in send of the first element for each rank
     * @param recv the destination of the elements from all ranks
     * @param recvCounts the number of elements from each rank
     * @param recvDisplacements the index in recv of the first element from each rank; the blocks must not overlap
     * @param stream the stream
     * @throws IndexOutOfBoundsException if a block is not within its buffer
     */
    public <T extends Element> void allToAllvUnchecked(
            DeviceBuffer<T> send,
            long[] sendCounts,
            long[] sendDisplacements,
            DeviceBuffer<T> recv,
            long[] recvCounts,
            long[] recvDisplacements,
            CudaStream stream) {
        check(send, recv, stream);
        checkDisjoint(send, recv);
        BlockLayout sends = BlockLayout.checked("send", sendCounts, sendDisplacements, size(), send.length, false);
        BlockLayout receives = BlockLayout.checked("recv", recvCounts, recvDisplacements, size(), recv.length, true);
        requireEqual("recvCounts[rank()]", recvCounts[rank()], "sendCounts[rank()]", sendCounts[rank()]);
        exchangeBlocks(send, sends, recv, receives, stream);
    }

    /**
     * Creates a plan of an all-to-all that all ranks agree on, to be run any number of times. Collective; waits for the
     * other ranks. In an open group, the plan is pending until the launch of the group.
     *
     * <p>C function: {@code ncclAllGather}, on {@link #stream()}.
     *
     * @param <T> the type of the elements
     * @param send the elements for all ranks
     * @param sendCounts the number of elements for each rank
     * @param sendDisplacements the index in send of the first element for each rank
     * @param recv the destination of the elements from all ranks
     * @param recvCounts the number of elements from each rank
     * @param recvDisplacements the index in recv of the first element from each rank; the blocks must not overlap
     * @return the plan, closed by the caller or with the communicator
     * @throws IllegalArgumentException if ranks disagree on counts or types; thrown at all ranks
     * @throws IndexOutOfBoundsException if a block is not within its buffer
     * @throws IllegalStateException also if another rank has wrong arguments
     */
    public <T extends Element> AllToAllvPlan<T> planAllToAllv(
            DeviceBuffer<T> send,
            long[] sendCounts,
            long[] sendDisplacements,
            DeviceBuffer<T> recv,
            long[] recvCounts,
            long[] recvDisplacements) {
        core.requireOpen();
        AllToAllvPlan<T> plan = AllToAllvPlan.of(
                this, send, sendCounts, sendDisplacements, recv, recvCounts, recvDisplacements, streams.ownStream());
        plan.exchange();
        return plan;
    }

    /**
     * As {@link #allToAllv(DeviceBuffer, long[], long[], DeviceBuffer, long[], long[], CudaStream)} with the arguments
     * of a plan, which are not compared again. Collective, in stream order.
     *
     * <p>C functions: see {@link AllToAllvPlan}.
     *
     * @param <T> the type of the elements
     * @param plan a plan of this communicator
     * @param stream the stream
     * @throws IllegalArgumentException if the plan belongs to another communicator
     * @throws IllegalStateException also if the plan is closed or pending, or if it uses VCCL's call and the stream is
     *     being captured
     */
    public <T extends Element> void allToAllv(AllToAllvPlan<T> plan, CudaStream stream) {
        plan.check(this);
        check(stream);
        plan.run(stream);
    }

    /** Makes all sends and receives of an all-to-all in a group. */
    void exchangeBlocks(
            DeviceBuffer<?> send, BlockLayout sends, DeviceBuffer<?> recv, BlockLayout receives, CudaStream stream) {
        try (CallGroup calls = callGroup()) {
            for (int peer = 0; peer < size(); peer++) {
                calls.transfer(Operations.SEND, send, sends, peer, stream);
                calls.transfer(Operations.RECV, recv, receives, peer, stream);
            }
            calls.launch();
        }
    }

    /* One-sided operations. */

    /**
     * Writes elements into another rank's memory and then raises a signal at that rank, which makes no call. One-sided,
     * in stream order: when the work of the stream is complete, the elements may be changed again. The elements have
     * arrived at the other rank when its {@linkplain #waitSignal wait} for the signal ends. Puts to the same rank
     * arrive in order.
     *
     * <p>C function: {@code ncclPutSignal}, since NCCL 2.29.2. NCCL fails if it supports windows but can't write
     * without the other rank: without NVLink, PCIe P2P or a suitable network to the other rank, or with
     * {@code numRmaCtx} 0 in the configuration.
     *
     * @param <T> the type of the elements
     * @param elements the elements to write, possibly none; within a window of this communicator with
     *     {@link WindowFlag#COLL_SYMMETRIC}
     * @param window the window whose memory at the other rank is written
     * @param offset the index of the first element to write, in elements of this type from the beginning of the window
     * @param peer the other rank, or this rank
     * @param stream the stream
     * @throws IndexOutOfBoundsException if the range is not within the window, which has the same size at all ranks
     * @throws IllegalArgumentException also if the elements are not in such a window
     * @throws IllegalStateException also if the window is pending or closed
     * @throws NcclLibraryException if the library lacks the function
     */
    public <T extends Element> void putSignal(
            DeviceBuffer<T> elements, Window window, long offset, int peer, CudaStream stream) {
        requireOneSided("ncclPutSignal");
        requirePeer("peer", peer);
        check(elements);
        window.check(this);
        int size = elements.type.sizeInBytes();
        Bounds.check("offset", offset, elements.length, "elements in the window", window.sizeInBytes() / size);
        Window source = symmetricWindowOf(elements);
        if (source == null) {
            throw new IllegalArgumentException(
                    "elements must be in a window of the communicator with COLL_SYMMETRIC, or NCCL can't put them: "
                            + elements + " at 0x" + Long.toHexString(elements.address));
        }
        long bytes = elements.length * size;
        if (peer == rank()) {
            requireDisjoint(elements.address, bytes, window.buffer().address + offset * size, bytes);
        }
        check(stream);
        // NCCL checks the address of 0 elements, too, and the end of a window is in no window.
        long address = bytes == 0 ? source.buffer().address : elements.address;
        int type = elements.type.nativeCode();
        Batch batch = Batch.current();
        if (batch != null) {
            batch.pin(source.resource());
            batch.pin(window.resource());
            batch.add(
                    core,
                    Operations.PUT_SIGNAL,
                    address,
                    window.handle(),
                    elements.length,
                    type,
                    0,
                    peer,
                    offset * size,
                    stream);
            return;
        }
        Gate.Pass pass = gate.enter();
        try {
            // The held gate prevents closing after these checks.
            source.check();
            window.check();
            JfrEvents.OperationEvent event = Jfr.recording ? JfrEvents.operation() : null;
            operationLog.record(pass.next(), Operations.PUT_SIGNAL, elements.length, type, peer, 0, 0, stream.handle);
            pass.count();
            int result = call(
                    Operations.PUT_SIGNAL,
                    address,
                    window.handle(),
                    elements.length,
                    type,
                    0,
                    peer,
                    offset * size,
                    stream);
            if (event != null) {
                JfrEvents.end(event, core);
            }
            if (result != nccl.ncclSuccess) {
                settle(result);
            }
        } finally {
            pass.leave();
        }
    }

    /**
     * Raises a signal at another rank, after earlier puts to it. One-sided, in stream order. Needs no window.
     *
     * <p>C function: {@code ncclSignal}, since NCCL 2.29.2.
     *
     * @param peer the other rank, or this rank
     * @param stream the stream
     * @throws NcclLibraryException if the library lacks the function
     */
    public void signal(int peer, CudaStream stream) {
        requireOneSided("ncclSignal");
        requirePeer("peer", peer);
        check(stream);
        Batch batch = Batch.current();
        if (batch == null) {
            submitObserved(Operations.SIGNAL, 0, 0, 0, 0, 0, peer, stream);
            return;
        }
        batch.add(core, Operations.SIGNAL, 0, 0, 0, 0, 0, peer, 0, stream);
    }

    /**
     * As {@link #waitSignal(CudaStream, SignalWait...)} with one signal of one rank.
     *
     * @param peer the rank that raises the signal, possibly this rank
     * @param stream the stream
     * @throws NcclLibraryException if the library lacks the function
     */
    public void waitSignal(int peer, CudaStream stream) {
        requirePeer("peer", peer);
        waitSignal(stream, SignalWait.of(peer, 1));
    }

    /**
     * Makes the stream wait until other ranks have raised signals at this rank by {@link #putSignal} or
     * {@link #signal}: from each rank the given number, in addition to the signals of earlier waits. In stream order.
     * After the wait, the elements that were put before the signals can be read.
     *
     * <p>C function: {@code ncclWaitSignal}, since NCCL 2.29.2.
     *
     * @param stream the stream
     * @param waits the signals to wait for, at least one
     * @throws IllegalArgumentException also if waits is empty, or has an index or a context that NCCL does not support
     * @throws NcclLibraryException if the library lacks the function
     */
    public void waitSignal(CudaStream stream, SignalWait... waits) {
        requireOneSided("ncclWaitSignal");
        if (waits.length == 0) {
            throw new IllegalArgumentException("waits must have at least 1 element: 0");
        }
        long count = 0;
        for (SignalWait wait : waits) {
            requirePeer("peer", wait.peer());
            requireZero("index", wait.index());
            requireZero("context", wait.context());
            count += wait.count();
        }
        check(stream);
        int peer = waits.length == 1 ? waits[0].peer() : -1;
        NativeMemory descriptors = descriptors(waits);
        boolean taken = false;
        try {
            Batch batch = Batch.current();
            if (batch == null) {
                submitObserved(Operations.WAIT_SIGNAL, descriptors.address(), 0, count, 0, waits.length, peer, stream);
                return;
            }
            batch.add(core, Operations.WAIT_SIGNAL, descriptors.address(), 0, count, 0, waits.length, peer, 0, stream);
            batch.take(descriptors);
            taken = true;
        } finally {
            if (!taken) {
                descriptors.close();
            }
        }
    }

    private static NativeMemory descriptors(SignalWait... waits) {
        NativeMemory memory = new NativeMemory(Math.multiplyExact(4 * Integer.BYTES, waits.length));
        IntBuffer words = memory.buffer().asIntBuffer();
        for (SignalWait wait : waits) {
            words.put(wait.count()).put(wait.peer()).put(wait.index()).put(wait.context());
        }
        return memory;
    }

    private void requireOneSided(String function) {
        if (!oneSided) {
            core.require(function);
        }
    }

    private void requireZero(String what, int value) {
        if (value != 0) {
            throw new IllegalArgumentException(what + " must be 0 with " + core.library() + ": " + value);
        }
    }

    /* Operations on plain addresses. */

    /**
     * As {@link #allReduce(DeviceBuffer, DeviceBuffer, ReduceOp, CudaStream)} with plain addresses.
     *
     * <p>For memory without a {@link DeviceBuffer}. The caller must ensure that the addresses are valid, on this
     * device, and followed by enough memory.
     *
     * @param send the address of this rank's elements
     * @param recv the address of the result
     * @param count the number of elements
     * @param type the type of the elements
     * @param op the operator
     * @param stream the stream
     */
    public void allReduce(long send, long recv, long count, DataType type, ReduceOp op, CudaStream stream) {
        requireElements(count, type, 1);
        requireAddress("send", send, type, count);
        requireAddress("recv", recv, type, count);
        if (send != recv) {
            requireDisjoint(send, count * type.size(), recv, count * type.size());
        }
        if (op.mayBeRefused()) {
            check(op, send, recv, type);
        }
        check(stream);
        submit(Operations.ALL_REDUCE, send, recv, count, type, op, 0, stream);
    }

    /**
     * As {@link #reduce(DeviceBuffer, DeviceBuffer, ReduceOp, int, CudaStream)} with plain addresses.
     *
     * <p>For memory without a {@link DeviceBuffer}. The caller must ensure that the addresses are valid, on this
     * device, and followed by enough memory.
     *
     * @param send the address of this rank's elements
     * @param recv the address of the result
     * @param count the number of elements
     * @param type the type of the elements
     * @param op the operator
     * @param root the rank that gets the result
     * @param stream the stream
     */
    public void reduce(long send, long recv, long count, DataType type, ReduceOp op, int root, CudaStream stream) {
        requireElements(count, type, 1);
        requireAddress("send", send, type, count);
        requireAddress("recv", recv, type, count);
        if (send != recv) {
            requireDisjoint(send, count * type.size(), recv, count * type.size());
        }
        check(op, type);
        requireRoot(root);
        check(stream);
        submit(Operations.REDUCE, send, recv, count, type, op, root, stream);
    }

    /**
     * As {@link #broadcast(DeviceBuffer, DeviceBuffer, int, CudaStream)} with plain addresses.
     *
     * <p>For memory without a {@link DeviceBuffer}. The caller must ensure that the addresses are valid, on this
     * device, and followed by enough memory.
     *
     * @param send the address of this rank's elements
     * @param recv the address of the result
     * @param count the number of elements
     * @param type the type of the elements
     * @param root the rank that has the elements
     * @param stream the stream
     */
    public void broadcast(long send, long recv, long count, DataType type, int root, CudaStream stream) {
        requireElements(count, type, 1);
        requireAddress("send", send, type, count);
        requireAddress("recv", recv, type, count);
        if (send != recv) {
            requireDisjoint(send, count * type.size(), recv, count * type.size());
        }
        requireRoot(root);
        check(stream);
        submit(Operations.BROADCAST, send, recv, count, type, null, root, stream);
    }

    /**
     * As {@link #allGather(DeviceBuffer, DeviceBuffer, CudaStream)} with plain addresses.
     *
     * <p>For memory without a {@link DeviceBuffer}. The caller must ensure that the addresses are valid, on this
     * device, and followed by enough memory.
     *
     * @param send the address of this rank's elements
     * @param recv the address of the result
     * @param count the number of elements of each rank
     * @param type the type of the elements
     * @param stream the stream
     */
    public void allGather(long send, long recv, long count, DataType type, CudaStream stream) {
        requireElements(count, type, size());
        requireAddress("send", send, type, count);
        requireAddress("recv", recv, type, count * size());
        long bytes = count * type.size();
        if (send != recv + rank() * bytes) {
            requireDisjoint(send, bytes, recv, size() * bytes);
        }
        check(stream);
        submit(Operations.ALL_GATHER, send, recv, count, type, null, 0, stream);
    }

    /**
     * As {@link #reduceScatter(DeviceBuffer, DeviceBuffer, ReduceOp, CudaStream)} with plain addresses.
     *
     * <p>For memory without a {@link DeviceBuffer}. The caller must ensure that the addresses are valid, on this
     * device, and followed by enough memory.
     *
     * @param send the address of this rank's elements
     * @param recv the address of the result
     * @param count the number of elements that each rank gets
     * @param type the type of the elements
     * @param op the operator
     * @param stream the stream
     */
    public void reduceScatter(long send, long recv, long count, DataType type, ReduceOp op, CudaStream stream) {
        requireElements(count, type, size());
        requireAddress("send", send, type, count * size());
        requireAddress("recv", recv, type, count);
        long bytes = count * type.size();
        if (recv != send + rank() * bytes) {
            requireDisjoint(recv, bytes, send, size() * bytes);
        }
        check(op, type);
        check(stream);
        submit(Operations.REDUCE_SCATTER, send, recv, count, type, op, 0, stream);
    }

    /**
     * As {@link #send(DeviceBuffer, int, CudaStream)} with a plain address.
     *
     * <p>For memory without a {@link DeviceBuffer}. The caller must ensure that the addresses are valid, on this
     * device, and followed by enough memory.
     *
     * @param address the address of the elements
     * @param count the number of elements
     * @param type the type of the elements
     * @param peer the receiving rank
     * @param stream the stream
     */
    public void send(long address, long count, DataType type, int peer, CudaStream stream) {
        requireElements(count, type, 1);
        requireAddress("address", address, type, count);
        requireTransferPeer(peer);
        check(stream);
        submit(Operations.SEND, address, 0, count, type, null, peer, stream);
    }

    /**
     * As {@link #recv(DeviceBuffer, int, CudaStream)} with a plain address.
     *
     * <p>For memory without a {@link DeviceBuffer}. The caller must ensure that the addresses are valid, on this
     * device, and followed by enough memory.
     *
     * @param address the address of the destination
     * @param count the number of elements
     * @param type the type of the elements
     * @param peer the sending rank
     * @param stream the stream
     */
    public void recv(long address, long count, DataType type, int peer, CudaStream stream) {
        requireElements(count, type, 1);
        requireAddress("address", address, type, count);
        requireTransferPeer(peer);
        check(stream);
        submit(Operations.RECV, 0, address, count, type, null, peer, stream);
    }

    /* Checks. The methods of the hot path leave the messages to other methods. */

    private static IllegalArgumentException unequal(String what, long value, String other, long otherValue) {
        return new IllegalArgumentException(what + " must be " + other + ": " + value + " != " + otherValue);
    }

    private static void requireEqual(String what, long value, String other, long otherValue) {
        if (value != otherValue) {
            throw unequal(what, value, other, otherValue);
        }
    }

    private void requireTimesSize(String what, long value, String part, long partValue) {
        // partValue * size() may overflow.
        if (value / size() != partValue || value % size() != 0) {
            throw new IllegalArgumentException(
                    what + " must be size() * " + part + ": " + value + " != " + size() + " * " + partValue);
        }
    }

    /** Requires two buffers of equal length that are the same or disjoint. */
    private static void checkElementwise(DeviceBuffer<?> send, DeviceBuffer<?> recv) {
        requireEqual("recv.length()", recv.length, "send.length()", send.length);
        checkApartOrSame(send, recv);
    }

    private void requireRoot(int root) {
        requirePeer("root", root);
    }

    void requirePeer(String what, int peer) {
        if (peer < 0 || peer >= size()) {
            throw new IllegalArgumentException(what + " must be >= 0 and < size(): " + peer + ", size " + size());
        }
    }

    private void requireOtherRoot(int root, String buffer) {
        requireRoot(root);
        if (root == rank()) {
            throw new IllegalArgumentException(
                    "the root needs a buffer '" + buffer + "': root " + root + ", rank " + rank());
        }
    }

    private void requireTransferPeer(int peer) {
        requirePeer("peer", peer);
        if (peer == rank() && Batch.current() == null) {
            throw new IllegalStateException("a rank can send to itself and receive from itself in a group only: peer "
                    + peer + ", rank " + rank());
        }
    }

    private void check(DeviceBuffer<?> send, DeviceBuffer<?> recv, CudaStream stream) {
        if (wrong(send, recv, stream) < 0) {
            checkEach(send, recv, stream);
        }
    }

    /** Negative if an argument of an operation may be wrong. One sign for all arguments needs only one branch. */
    private int wrong(DeviceBuffer<?> send, DeviceBuffer<?> recv, CudaStream stream) {
        int unequal = send.kind ^ recv.kind | stream.deviceCode ^ deviceCode;
        return wrong(send) | -unequal | recv.state() | stream.state();
    }

    private void checkEach(DeviceBuffer<?> send, DeviceBuffer<?> recv, CudaStream stream) {
        checkEach(send, recv);
        checkEach(stream);
    }

    private void check(DeviceBuffer<?> buffer, CudaStream stream) {
        if ((wrong(buffer) | wrong(stream)) < 0) {
            checkEach(buffer);
            checkEach(stream);
        }
    }

    void check(DeviceBuffer<?> buffer) {
        if (wrong(buffer) < 0) {
            checkEach(buffer);
        }
    }

    /** Negative if a buffer is closed, on another device, or of a type that the library does not support. */
    private int wrong(DeviceBuffer<?> buffer) {
        // The code of the element type if the buffer is on this device; otherwise larger than any code.
        int type = buffer.kind ^ deviceCode;
        return lastType - type | buffer.state();
    }

    private void checkEach(DeviceBuffer<?> send, DeviceBuffer<?> recv) {
        if (send.type != recv.type) {
            throw new IllegalArgumentException(
                    "send and recv must have one type of elements: " + send.type + ", " + recv.type);
        }
        checkEach(send);
        checkPlace(recv);
    }

    private void checkEach(DeviceBuffer<?> buffer) {
        checkPlace(buffer);
        check(buffer.typeCode);
    }

    private void checkPlace(DeviceBuffer<?> buffer) {
        buffer.checkOpen();
        if (buffer.device != device) {
            throw new IllegalArgumentException(
                    "buffer must be on the communicator's device: " + buffer + ", the communicator is on " + device);
        }
    }

    private void check(int type) {
        if (type > lastType) {
            DataType unknown = DataType.values()[type];
            throw new NcclLibraryException(
                    unknown + " needs NCCL " + unknown.since() + ", loaded is " + core.library());
        }
    }

    void check(CudaStream stream) {
        if (wrong(stream) < 0) {
            checkEach(stream);
        }
    }

    /** Negative if a stream is closed or on another device. */
    private int wrong(CudaStream stream) {
        return -(stream.deviceCode ^ deviceCode) | stream.state();
    }

    private void checkEach(CudaStream stream) {
        stream.checkOpen();
        if (stream.device() != device) {
            throw new IllegalArgumentException(
                    "stream must be on the communicator's device: " + stream + ", the communicator is on " + device);
        }
    }

    private void check(ReduceOp op, ElementType<?> type) {
        if (op.isBuiltIn()) {
            return;
        }
        check(op, type.dataType());
    }

    private void check(ReduceOp op, DataType type) {
        if (!op.isBuiltIn()) {
            ((PreMulSum<?>) op).check(this, type);
        }
    }

    /** Requires two disjoint buffers of one type. */
    void checkSeparate(DeviceBuffer<?> send, DeviceBuffer<?> recv) {
        checkEach(send, recv);
        checkDisjoint(send, recv);
    }

    private static void checkDisjoint(DeviceBuffer<?> a, DeviceBuffer<?> b) {
        if (overlap(a.address, a.bytes, b.address, b.bytes)) {
            // A closed buffer may have had the address that another buffer has now.
            a.checkOpen();
            b.checkOpen();
            throw overlapping(a.address, a.bytes, b.address, b.bytes);
        }
    }

    /** Requires that two buffers of equal size are disjoint or the same. */
    private static void checkApartOrSame(DeviceBuffer<?> a, DeviceBuffer<?> b) {
        long distance = a.address - b.address;
        if (distance != 0 && distance < a.bytes && -distance < a.bytes) {
            checkDisjoint(a, b);
        }
    }

    /** Requires that the part is the rank's block of the whole, or disjoint from it. */
    private static void checkDisjointOrPart(DeviceBuffer<?> part, DeviceBuffer<?> whole, int rank) {
        if (part.address != whole.address + rank * part.bytes) {
            checkDisjoint(part, whole);
        }
    }

    private static void requireDisjoint(long a, long aBytes, long b, long bBytes) {
        if (overlap(a, aBytes, b, bBytes)) {
            throw overlapping(a, aBytes, b, bBytes);
        }
    }

    private static boolean overlap(long a, long aBytes, long b, long bBytes) {
        return a < b + bBytes && b < a + aBytes;
    }

    private static IllegalArgumentException overlapping(long a, long aBytes, long b, long bBytes) {
        return new IllegalArgumentException("buffers overlap without being in place: " + Bounds.range(a, aBytes)
                + " and " + Bounds.range(b, bBytes));
    }

    private void requireElements(long count, DataType type, int times) {
        check(type.code());
        // Fewer than 2^40 elements of at most 8 bytes at fewer than 2^20 ranks are less than 2^63 bytes.
        if (count >>> 40 != 0 || times >= 1 << 20) {
            requireBytes(count, type, times);
        }
    }

    private static void requireBytes(long count, DataType type, int times) {
        if (count < 0) {
            throw new IllegalArgumentException("count must be >= 0: " + count);
        }
        if (count > Long.MAX_VALUE / type.size() / times) {
            throw new IllegalArgumentException("count * size of an element * ranks must be <= " + Long.MAX_VALUE + ": "
                    + count + " * " + type.size() + " * " + times);
        }
    }

    private static void requireAddress(String what, long address, DataType type, long count) {
        // Sizes are powers of two. The end of a range that exceeds the address space is negative.
        if (address < Bounds.FIRST_ADDRESS || (address & type.size() - 1) != 0 || address + count * type.size() < 0) {
            requireRealAddress(what, address, type, count);
        }
    }

    private static void requireRealAddress(String what, long address, DataType type, long count) {
        if (address == 0 && count > 0) {
            throw new IllegalArgumentException(what + " must not be 0 with " + count + " elements");
        }
        if (address % type.size() != 0) {
            throw new IllegalArgumentException(what + " must be a multiple of the size of " + type + ": 0x"
                    + Long.toHexString(address) + " % " + type.size() + " != 0");
        }
        Bounds.checkAddress(what, address, count * type.size());
    }

    /* Calling. */

    /**
     * Checks the arguments that all operations have, and calls NCCL.
     *
     * @param send null if there is none
     * @param recv null if there is none
     */
    private void submit(
            int operation,
            DeviceBuffer<?> send,
            DeviceBuffer<?> recv,
            long count,
            ReduceOp op,
            int peer,
            CudaStream stream) {
        DeviceBuffer<?> one = send == null ? recv : send;
        DeviceBuffer<?> other = recv == null ? send : recv;
        int wrong = wrong(one, other, stream);
        if ((wrong | further()) < 0) {
            if (wrong < 0) {
                checkEach(one, other, stream);
            }
            if (further() < 0) {
                submitFurther(operation, send, recv, count, op, peer, stream);
                return;
            }
        }
        submitNow(
                operation,
                send == null ? 0 : send.address,
                recv == null ? 0 : recv.address,
                count,
                one.kind ^ deviceCode,
                op == null ? 0 : op.code(),
                peer,
                stream);
    }

    /** As the method above with a configuration; both buffers are present. */
    private void submit(
            int operation,
            DeviceBuffer<?> send,
            DeviceBuffer<?> recv,
            long count,
            ReduceOp op,
            int peer,
            CudaStream stream,
            CollectiveConfig config) {
        Objects.requireNonNull(config, "config");
        check(send, recv, stream);
        int function = Operations.configured(operation);
        if ((configurable & 1 << operation) == 0) {
            core.require(Operations.name(function));
            configurable |= 1 << operation;
        }
        boolean goesFurther = further() < 0;
        if (goesFurther && faultyWindows) {
            checkForFaults(operation, send.address, recv.address, count, send.type.sizeInBytes());
        }
        if (!goesFurther && config.launchCompletionEvent() == null) {
            submitAlone(function, send, recv, count, op, peer, config, stream);
            return;
        }
        Batch batch = goesFurther ? Batch.currentFor(core) : null;
        if (batch != null) {
            ConfiguredCall call = ConfiguredCall.begin(core, config, stream);
            boolean added = false;
            try {
                addTo(batch, function, send, recv, count, op, peer, call, stream);
                added = true;
            } finally {
                if (!added) {
                    call.close();
                }
            }
            return;
        }
        try (ConfiguredCall call = ConfiguredCall.begin(core, config, stream)) {
            if (goesFurther) {
                submitPinned(function, send, recv, count, op, peer, call, stream);
            } else {
                submitNow(function, send, recv, count, op, peer, call, stream);
            }
            call.launched();
        }
    }

    /** Makes a call whose configuration is used only by NCCL, and not after the call returns. */
    private void submitAlone(
            int operation,
            DeviceBuffer<?> send,
            DeviceBuffer<?> recv,
            long count,
            ReduceOp op,
            int peer,
            CollectiveConfig config,
            CudaStream stream) {
        long struct = config.struct(core.library());
        int code = op == null ? 0 : op.code();
        try {
            submitObserved(
                    operation, send.address, recv.address, count, send.typeCode, code, peer, struct, config, stream);
        } catch (RuntimeException failure) {
            if (core.isStuckNow()) {
                core.keepUntilEnded(() -> Reference.reachabilityFence(config));
            }
            throw failure;
        } finally {
            Reference.reachabilityFence(config);
        }
    }

    private void addTo(
            Batch batch,
            int operation,
            DeviceBuffer<?> send,
            DeviceBuffer<?> recv,
            long count,
            ReduceOp op,
            int peer,
            ConfiguredCall call,
            CudaStream stream) {
        batch.check(call);
        batch.pin(send);
        batch.pin(recv);
        if (op instanceof PreMulSum<?> operator) {
            batch.pin(operator.resource());
        }
        int code = op == null ? 0 : op.code();
        int type = send.typeCode;
        batch.add(core, operation, send.address, recv.address, count, type, code, peer, call.struct(), stream);
        batch.take(call);
    }

    private void submitPinned(
            int operation,
            DeviceBuffer<?> send,
            DeviceBuffer<?> recv,
            long count,
            ReduceOp op,
            int peer,
            ConfiguredCall call,
            CudaStream stream) {
        CudaGraph graph = CudaGraph.capturing(stream);
        if (graph != null) {
            core.registerGraph(graph);
            graph.keep(send);
            graph.keep(recv);
        }
        send.pin();
        try {
            recv.pin();
            try {
                submitNow(operation, send, recv, count, op, peer, call, stream);
            } finally {
                recv.unpin();
            }
        } finally {
            send.unpin();
        }
    }

    private void submitNow(
            int operation,
            DeviceBuffer<?> send,
            DeviceBuffer<?> recv,
            long count,
            ReduceOp op,
            int peer,
            ConfiguredCall call,
            CudaStream stream) {
        int code = op == null ? 0 : op.code();
        submitObserved(
                operation,
                send.address,
                recv.address,
                count,
                send.typeCode,
                code,
                peer,
                call.struct(),
                call.config(),
                stream);
    }

    /** Negative if operations need more checks than those of their arguments. */
    private int further() {
        return special | SlowPath.sign();
    }

    private void submitFurther(
            int operation,
            DeviceBuffer<?> send,
            DeviceBuffer<?> recv,
            long count,
            ReduceOp op,
            int peer,
            CudaStream stream) {
        if (faultyWindows && send != null && recv != null) {
            checkForFaults(operation, send.address, recv.address, count, send.type.sizeInBytes());
        }
        submitPinned(operation, send, recv, count, op, peer, stream);
    }

    /**
     * Submits with pinned buffers, so that closing a buffer does not free its memory: in a group, in a capture, and on
     * host memory, which the call itself reads.
     */
    private void submitPinned(
            int operation,
            DeviceBuffer<?> send,
            DeviceBuffer<?> recv,
            long count,
            ReduceOp op,
            int peer,
            CudaStream stream) {
        long sendAddress = send == null ? 0 : send.address;
        long recvAddress = recv == null ? 0 : recv.address;
        int type = (send == null ? recv : send).typeCode;
        int code = op == null ? 0 : op.code();
        Batch batch = Batch.currentFor(core);
        if (batch != null) {
            // Pins come first: a buffer that another thread closes meanwhile must not get into the batch.
            pinIn(batch, send);
            pinIn(batch, recv);
            if (op instanceof PreMulSum<?> operator) {
                batch.pin(operator.resource());
            }
            batch.add(core, operation, sendAddress, recvAddress, count, type, code, peer, 0, stream);
            return;
        }
        CudaGraph graph = CudaGraph.capturing(stream);
        if (graph != null) {
            core.registerGraph(graph);
            keepFor(graph, send);
            keepFor(graph, recv);
        }
        pin(send);
        try {
            pin(recv);
            try {
                submitObserved(operation, sendAddress, recvAddress, count, type, code, peer, stream);
            } finally {
                unpin(recv);
            }
        } finally {
            unpin(send);
        }
    }

    private static void keepFor(CudaGraph graph, DeviceBuffer<?> buffer) {
        if (buffer != null) {
            graph.keep(buffer);
        }
    }

    private static void pinIn(Batch batch, DeviceBuffer<?> buffer) {
        if (buffer != null) {
            batch.pin(buffer);
        }
    }

    private static void pin(DeviceBuffer<?> buffer) {
        if (buffer != null) {
            buffer.pin();
        }
    }

    private static void unpin(DeviceBuffer<?> buffer) {
        if (buffer != null) {
            buffer.unpin();
        }
    }

    private CallGroup callGroup() {
        return further() < 0 ? new BatchedCallGroup(core) : direct.begin();
    }

    private void submit(
            int operation, long send, long recv, long count, DataType type, ReduceOp op, int peer, CudaStream stream) {
        int code = op == null ? 0 : op.code();
        if (further() < 0) {
            submitFurther(operation, send, recv, count, type, op, peer, stream);
            return;
        }
        submitNow(operation, send, recv, count, type.code(), code, peer, stream);
    }

    private void submitFurther(
            int operation, long send, long recv, long count, DataType type, ReduceOp op, int peer, CudaStream stream) {
        int code = op == null ? 0 : op.code();
        if (faultyWindows) {
            checkForFaults(operation, send, recv, count, type.size());
        }
        if (CudaGraph.anyCapturing()) {
            CudaGraph graph = CudaGraph.capturing(stream);
            if (graph != null) {
                core.registerGraph(graph);
            }
        }
        Batch batch = Batch.currentFor(core);
        if (batch == null) {
            submitObserved(operation, send, recv, count, type.code(), code, peer, stream);
            return;
        }
        if (op instanceof PreMulSum<?> operator) {
            batch.pin(operator.resource());
        }
        batch.add(core, operation, send, recv, count, type.code(), code, peer, 0, stream);
    }

    private void submitNow(
            int operation, long send, long recv, long count, int type, int op, int peer, CudaStream stream) {
        // Locals, because fields would be read again after the gate's fence.
        Gate ours = gate;
        Gate.Pass pass = ours.last();
        long counted = pass.counted();
        if (!ours.enterAgain(pass, counted)) {
            pass = ours.enterNew();
            counted = ~pass.counted();
        }
        try {
            long handle = stream.handle;
            operationLog.record(counted + 1, operation, count, type, peer, op, 0, handle);
            int result = Operations.call(operation, send, recv, count, type, op, peer, 0, core.handle(), handle);
            if (result != nccl.ncclSuccess) {
                settle(result);
            }
        } finally {
            pass.countAndLeave();
        }
    }

    private void submitObserved(
            int operation, long send, long recv, long count, int type, int op, int peer, CudaStream stream) {
        submitObserved(operation, send, recv, count, type, op, peer, 0, null, stream);
    }

    /**
     * Submits with comparison across ranks and events of JDK Flight Recorder, if these are enabled.
     *
     * @param struct the address of the native configuration; 0 for a call without one
     * @param config the configuration; null for a call without one
     */
    private void submitObserved(
            int operation,
            long send,
            long recv,
            long count,
            int type,
            int op,
            int peer,
            long struct,
            CollectiveConfig config,
            CudaStream stream) {
        Gate.Pass pass = gate.enter();
        try {
            if (checked) {
                compare(operation, count, type, op, peer, config);
            }
            JfrEvents.OperationEvent event = Jfr.recording ? JfrEvents.operation() : null;
            operationLog.record(pass.next(), operation, count, type, peer, op, 0, stream.handle);
            pass.count();
            int result = call(operation, send, recv, count, type, op, peer, struct, stream);
            if (event != null) {
                JfrEvents.end(event, core);
            }
            if (result != nccl.ncclSuccess) {
                settle(result, config == null ? "" : " with " + config);
            }
        } finally {
            pass.leave();
        }
    }

    /** Calls NCCL from threads that may be virtual or capturing. Allocates nothing for other threads. */
    private int call(
            int operation,
            long send,
            long recv,
            long count,
            int type,
            int op,
            int peer,
            long offset,
            CudaStream stream) {
        if (onHost && stream.handle == 0 && VirtualThreads.isCurrent()) {
            // In the default stream, the host engine waits for the other ranks within the call.
            return BlockingCall.runToCompletion(
                    () -> Operations.call(operation, send, recv, count, type, op, peer, offset, core.handle(), 0),
                    core::endInterruptedCall);
        }
        if (CudaGraph.ofThread() == null) {
            return Operations.call(operation, send, recv, count, type, op, peer, offset, core.handle(), stream.handle);
        }
        return Cuda.whileCapturing(() ->
                Operations.call(operation, send, recv, count, type, op, peer, offset, core.handle(), stream.handle));
    }

    private void compare(int operation, long count, int type, int op, int peer, CollectiveConfig config) {
        CallCheck check = core.check();
        String signature = Operations.signature(operation, count, type, op, peer, config);
        if (check != null && signature != null) {
            check.compare(Operations.name(operation), signature);
        }
    }

    /**
     * Handles the result of the last operation. Its arguments come from the log, so that the hot path need not keep
     * them.
     */
    private void settle(int result) {
        settle(result, "");
    }

    private void settle(int result, String further) {
        OperationLog.Entry last = operationLog.last();
        core.settle(
                result,
                Operations.name(last.operation()),
                Operations.describe(last.operation(), last.count(), last.type(), last.peer()) + further);
    }

    OperationLog operationLog() {
        return operationLog;
    }

    /** Reports overdue work for the watchdog, because no thread may wait for the work. */
    void lookAtWork(long now, long limit) {
        try {
            Work late = streams.overdue(now, limit);
            // A waiting thread reports the failure itself.
            if (late != null && !core.failures().hasWaiters()) {
                Watchdog.handle("late work", () -> core.failures().reportLate(late));
            }
        } catch (CudaException lost) {
            if (core.failures().isUnreported()) {
                Watchdog.handle("device", () -> core.failures().reportLost(lost));
            }
        }
    }

    /** {@return a description: "communicator 'gradients' (rank 0 of 4 on CUDA device 0)"} */
    @Override
    public String toString() {
        return core.toString();
    }
}

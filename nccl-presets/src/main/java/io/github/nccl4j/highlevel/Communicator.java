package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl;
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
 * One rank's end of a group of ranks that communicate: every operation of NCCL is called here.
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
 *   <li><b>Collective</b> operations are called by every rank of the communicator, in the same order, with the same counts,
 *       types, operators and roots. {@link #send} and {@link #recv} are called by two ranks. One-sided ones are called by
 *       one.
 *   <li><b>Stream order.</b> An operation is put into the stream and returns; it runs when the work before it in that stream
 *       is done. {@link #work} tells when it is done, and what went wrong. In the default stream of
 *       host memory it is done when it returns.
 *   <li><b>Counts</b> are in elements, and come from the lengths of the buffers: pass a {@link DeviceBuffer#slice} for a
 *       part. An operation with 0 elements is allowed.
 *   <li><b>In place.</b> Send and receive buffer may be the same memory where a method says so. Buffers that overlap in
 *       another way are refused.
 *   <li><b>Buffers</b> stay the caller's: their contents must not be changed, and not be read, before the operation is done.
 *       Closing one waits for the device, so that it may be closed at any time.
 *   <li><b>Checks.</b> Whatever one rank can see is checked before NCCL is called, and is an {@link
 *       IllegalArgumentException} (what was given does not fit), an {@link IllegalStateException} (closed, in a wrong state,
 *       in use by another thread), or a {@link NullPointerException}. What NCCL finds is a {@link NcclResultException}. All
 *       operations can throw these; only others are listed there.
 *   <li><b>Groups.</b> Within an open {@link Group} of the thread, operations wait for its launch.
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
 * <p>What a communicator is (rank, size, device, name, state) can be asked in every state.
 *
 * <p><b>Ownership.</b> A communicator is closed by who made it; closing is collective, since NCCL waits for the other
 * ranks. It closes what was made from it first, the newest before the oldest: windows, registrations, operators, and what
 * it was told to {@link #own}; and CUDA graphs that have captured operations of it, for which NCCL would wait. One that is
 * dropped without being closed is logged with the stack that made it, never destroyed by the garbage collector.
 *
 * <p><b>Waiting.</b> What waits for other ranks ends at the communicator's deadline with a {@link NcclTimeoutException}:
 * creating, closing, changes of state, {@link Work#await()}. Operations themselves don't wait on a GPU, except that NCCL
 * may connect to other ranks at the first one of a kind; the {@linkplain CommunicatorBuilder#watchdog watchdog} ends that at
 * the deadline. It also finds what goes wrong while nobody waits; {@link #failure} tells it.
 *
 * <p>A thread that is interrupted while it waits for other ranks aborts the communicator and gets a {@link
 * NcclInterruptedException}; so does one that was interrupted before, at the first call that has to wait.
 *
 * <p><b>Threads.</b> One thread at a time may call operations and change the state; a call while another thread is in one
 * is an {@link IllegalStateException} that names the other. {@link #abort}, {@link #revoke}, {@link #asyncError} and what
 * can be asked in every state may be called from any thread at any time.
 *
 * <p><b>Virtual threads.</b> The thread may be a virtual one. With the host engine there may be any number of them: what waits for
 * other ranks is called in a platform thread, and so takes some tens of microseconds more in the default stream. On a GPU
 * operations are called in the virtual thread, which holds its carrier until NCCL returns; NCCL returns at once, except from
 * the first operation of a kind, in which it connects the ranks. So ranks of one process that are virtual threads must not be more
 * than there are carriers (the system property {@code jdk.virtualThreadScheduler.parallelism}, by default the number of
 * processors); else they wait for each other until the deadline, and its message says so.
 *
 * @see <a href="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api/comms.html">NCCL: communicators</a>
 */
public final class Communicator implements AutoCloseable {
    /** How long is waited for other ranks where nothing else is set: 5 minutes. */
    public static final Duration DEFAULT_DEADLINE = Duration.ofMinutes(5);

    /** A deadline that never comes, for {@link CommunicatorBuilder#deadline}. */
    public static final Duration NO_DEADLINE = Duration.ofSeconds(Long.MAX_VALUE);

    private static final int SPECIAL = -1;

    private final CommunicatorCore core;
    private final Gate gate;
    private final Device device;
    private final boolean onHost;

    /** Of the device. */
    private final int deviceCode;

    /** The code of the last type that the library knows. */
    private final int lastType;

    /** Whether its calls may have to be compared with those of other ranks. */
    private final boolean checked;

    /**
     * {@link #SPECIAL}, else 0, if operations must look further in this communicator: on host memory, if calls are compared,
     * and with windows on which NCCL gets some operations wrong. Plain: set by a thread that may be followed by others, but
     * not accompanied.
     */
    private int special;

    /** Written by the thread that is in the gate. */
    private final OperationLog operationLog;

    private final DirectCallGroup direct;
    private final FlightRecorder recorder;
    private final Streams streams;
    private final Scratch scratch;

    /** Those that are open. Replaced, never changed. */
    private volatile Window[] windows = {};

    /** Whether NCCL gets some operations on them wrong. */
    private volatile boolean faultyWindows;

    /** Which functions of newer releases the library has: to ask it takes longer than a call. */
    private final boolean oneSided;

    /** By collective, a bit of those whose function with a configuration the library is known to have. */
    private int configurable;

    private final boolean hasAllToAll;
    private final boolean hasGather;
    private final boolean hasScatter;

    /** What a communicator is in, and with it what may be done; see the class comment. */
    public enum State {
        /** It is made by a group that was not launched yet. */
        PENDING,
        /** It can be used. */
        OPEN,
        /** Its memory was given back; see {@link Communicator#suspend}. */
        SUSPENDED,
        /** Its work was stopped; see {@link Communicator#revoke}. */
        REVOKED,
        /** Its work was ended; see {@link Communicator#finish}. */
        FINISHED,
        /** A call of it was given up at the deadline. */
        FAILED,
        /** It was aborted. */
        ABORTED,
        /** It was closed, or did not come to be. */
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
        Jfr.look();
        lastType = library.version().isAtLeast(DataType.FLOAT8_E4M3.since())
                ? DataType.values().length - 1
                : DataType.FLOAT8_E4M3.code() - 1;
        deviceCode = device.deviceCode();
        oneSided = library.provides("ncclPutSignal");
        hasAllToAll = library.provides("ncclAlltoAll");
        hasGather = library.provides("ncclGather");
        hasScatter = library.provides("ncclScatter");
        streams = new Streams(this);
        scratch = new Scratch(device);
    }

    /**
     * The last operations of this communicator.
     *
     * @return the recorder, the same at every call
     */
    public FlightRecorder flightRecorder() {
        return recorder;
    }

    CommunicatorCore core() {
        return core;
    }

    /* Creating. */

    /**
     * Settings for a new communicator.
     *
     * @return a builder
     */
    public static CommunicatorBuilder builder() {
        return new CommunicatorBuilder();
    }

    /**
     * Makes this rank's end of a communicator on the current device, with default settings. Collective: returns when all
     * ranks have called it.
     *
     * <p>C function: {@code ncclCommInitRank}.
     *
     * @param id the id that one rank made
     * @param rank this rank, from 0
     * @param size the number of ranks
     * @return the communicator, to be closed by the caller
     * @throws IllegalArgumentException if rank or size are out of range
     * @throws NcclTimeoutException if not all ranks have come within {@link #DEFAULT_DEADLINE}
     * @throws NcclResultException if NCCL fails
     */
    public static Communicator create(UniqueId id, int rank, int size) {
        return builder().create(id, rank, size);
    }

    /**
     * Makes the communicator of all ranks of the job that this process is a part of, with default settings. Collective. Under
     * torchrun, mpirun, srun, Kubernetes or the nccl4j command, programs need nothing else.
     *
     * <pre>{@code
     * try (Communicator communicator = Communicator.fromEnvironment()) {
     *     ...
     * }
     * }</pre>
     *
     * @return the communicator, to be closed by the caller
     * @throws IllegalArgumentException if the environment lacks something or makes no sense
     * @throws NcclLibraryException if no library can be loaded
     * @throws io.github.nccl4j.launch.RendezvousException if not all ranks have come in time, one has failed, or two use the
     *     same GPU
     * @throws NcclTimeoutException if the communicator was not made in time
     * @throws NcclResultException if NCCL fails
     * @see CommunicatorBuilder#fromEnvironment
     */
    public static Communicator fromEnvironment() {
        return builder().fromEnvironment();
    }

    /**
     * Makes a communicator with a rank for each device, all in this process, with default settings.
     *
     * <p>C function: as {@code ncclCommInitAll}.
     *
     * @param devices the device of each rank; only host memory may come several times
     * @return the communicators by rank, each to be closed by the caller
     * @throws IllegalArgumentException if there is no device, or the same CUDA device twice
     * @throws NcclResultException if NCCL fails
     */
    public static List<Communicator> createAll(List<Device> devices) {
        return builder().createAll(devices);
    }

    /**
     * A communicator that other code has made and will destroy, after this object was closed.
     *
     * @param handle its {@code ncclComm_t}
     * @param device the device that it was made on
     * @return the communicator; closing it closes what was made from it, and leaves the handle valid
     * @throws IllegalArgumentException if the handle is 0, or the library can't use the device
     * @throws NcclResultException if NCCL finds that it is no communicator
     */
    public static Communicator wrap(long handle, Device device) {
        return ofHandle(handle, device, false);
    }

    /**
     * A communicator that other code has made, and that is destroyed when this object is closed.
     *
     * @param handle its {@code ncclComm_t}
     * @param device the device that it was made on
     * @return the communicator, to be closed by the caller
     * @throws IllegalArgumentException if the handle is 0, or the library can't use the device
     * @throws NcclResultException if NCCL finds that it is no communicator
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
        // Others of its ranks may be in this process, who knows.
        communicator.core.isNamed(ProcessRanks.UNKNOWN);
        communicator.core.opened(handle, rank, size);
        return communicator;
    }

    /* What it is. */

    /**
     * This rank.
     *
     * @return the rank, from 0
     * @throws IllegalStateException if it is not known: a communicator that was split, shrunk or grown in a group has it
     *     when the group has been launched
     * @see <a href="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api/comms.html">ncclCommUserRank</a>
     */
    public int rank() {
        return core.rank();
    }

    /**
     * The number of ranks.
     *
     * @return the number
     * @throws IllegalStateException if it is not known yet, as {@link #rank()}
     * @see <a href="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api/comms.html">ncclCommCount</a>
     */
    public int size() {
        return core.size();
    }

    /** {@return where its buffers and streams are} */
    public Device device() {
        return device;
    }

    /** {@return the name in its configuration, empty if it has none} */
    public String name() {
        return core.name();
    }

    /** {@return its state} */
    public State state() {
        return core.state();
    }

    /**
     * What went wrong first in this communicator: an error of NCCL, a call or work that was not done in time, or an
     * interrupt. That a call was wrong does not count. For programs that look now and then; who waits gets an exception.
     *
     * @return the failure, which somebody was told of; empty as long as there was none
     */
    public Optional<NcclException> failure() {
        return Optional.ofNullable(core.failures().first());
    }

    /** {@return how long calls wait for other ranks} */
    public Duration deadline() {
        return core.deadline();
    }

    /** {@return whether calls wait within NCCL; if not, they wait in Java, where they can be given up} */
    public boolean isBlocking() {
        return core.isBlocking();
    }

    /**
     * The handle for native code, valid as long as the communicator is open; that is the caller's concern.
     *
     * @return its {@code ncclComm_t}
     * @throws IllegalStateException if it is not open
     */
    public long nativeHandle() {
        core.requireOpen();
        return core.handle();
    }

    /**
     * What NCCL has found out since the last call: whether a rank is lost, for example. Does not wait. From any thread.
     *
     * <p>C function: {@code ncclCommGetAsyncError}.
     *
     * @return {@link Result#SUCCESS}, {@link Result#IN_PROGRESS} if a call that does not block goes on, or an error
     * @throws IllegalStateException if the communicator was closed or aborted
     */
    public Result asyncError() {
        return Result.of(core.poll());
    }

    /**
     * What NCCL wrote about the last error of this process.
     *
     * <p>C function: {@code ncclGetLastError}.
     *
     * @return NCCL's text; empty if there is none
     */
    public String lastError() {
        return core.lastError();
    }

    /**
     * What NCCL knows about the memory of this communicator, which may be suspended. Not collective.
     *
     * <p>C function: {@code ncclCommMemStats}, since NCCL 2.29.7.
     *
     * @param statistic what to tell
     * @return bytes, mostly; see {@link MemoryStatistic}
     * @throws NcclLibraryException if the library lacks the function
     */
    public long memory(MemoryStatistic statistic) {
        return core.memory(statistic.code());
    }

    /**
     * What NCCL tells of this communicator's place, and of what kernels and windows can do in it. Not collective, and in no
     * stream.
     *
     * <p>C function: {@code ncclCommQueryProperties}, since NCCL 2.29.2. Newer releases tell more. From 2.29.7 on the first
     * call chooses how much address space each window may take, which {@code NCCL_WIN_STRIDE} can set before.
     *
     * @return the properties
     * @throws IllegalStateException if the communicator is not open, or another thread is in it
     * @throws NcclLibraryException if the library lacks the function
     */
    public CommunicatorProperties properties() {
        return core.properties();
    }

    /* Making others from it. */

    /**
     * Divides the ranks: those with the same color get a communicator of their own. Collective over all ranks; one that
     * wants none calls {@link #splitNone}.
     *
     * <p>C function: {@code ncclCommSplit}, since NCCL 2.18.1. In an open group the result is pending until its launch.
     *
     * @param color which part, at least 0
     * @param key the place in it: ranks are ordered by key, then by their rank here
     * @return the new communicator, with this one's configuration, deadline and policy; to be closed by the caller, or by
     *     this one if it is told to {@link #own} it
     * @throws IllegalArgumentException if the color is negative
     */
    public Communicator split(int color, int key) {
        return splitWith(color, key, null);
    }

    /**
     * As {@link #split(int, int)}, with another configuration.
     *
     * @param color which part, at least 0
     * @param key the place in it
     * @param config the configuration of the new communicator
     * @return the new communicator
     * @throws NcclLibraryException if the library does not know a field of the configuration
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
     * Takes part in the {@link #split} of the other ranks, and gets no communicator. Collective with their call.
     *
     * <p>C function: {@code ncclCommSplit} with {@code NCCL_SPLIT_NOCOLOR}, since NCCL 2.18.1.
     */
    public void splitNone() {
        core.require("ncclCommSplit");
        core.nameOfChild(-1);
        core.splitNone();
    }

    /**
     * Makes a communicator without some of the ranks, which do not take part in it: because they are lost, for example.
     * Collective over the ranks that stay.
     *
     * <p>C function: {@code ncclCommShrink}, since NCCL 2.27.3.
     *
     * @param excluded the ranks to leave out, at least one, and not this one
     * @param flag whether to stop outstanding work first
     * @return the new communicator; ranks keep their order
     * @throws IllegalArgumentException if no rank is left out, one is out of range, or it is this one
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
            throw new IllegalArgumentException("excluded must have at least 1 rank: 0");
        }
        for (int excludedRank : ranks) {
            requirePeer("an excluded rank", excludedRank);
            if (excludedRank == rank()) {
                throw new IllegalArgumentException("this rank is excluded, and does not call this: " + excludedRank);
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
     * Makes the id by which new ranks join a communicator that is going to grow. One rank calls it, before all call {@link
     * #grow}; new ranks call {@link CommunicatorBuilder#join} with it.
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
     * Makes a communicator with more ranks. Collective over the ranks of this one and those that join. Ranks of this one
     * keep their numbers.
     *
     * <p>C function: {@code ncclCommGrow}, since NCCL 2.29.2.
     *
     * @param newSize the number of ranks after growing
     * @return the new communicator; this one stays as it is
     * @throws IllegalArgumentException if there are not more ranks than before
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
        core.growIdIsUsed();
        return grown;
    }

    /** A C call that makes a communicator from one. */
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
        made.core.isNamed(core.nameOfChild(color));
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
     * Makes this communicator close another one with itself, before itself.
     *
     * @param child mostly one that was split from this one
     * @return the child
     * @throws IllegalArgumentException if it is this one
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
     * Gives back what the communicator does not need while it is not used. Collective. Its work must be done.
     *
     * <p>C function: {@code ncclCommSuspend}, since NCCL 2.29.7.
     *
     * @param flag what to give back
     * @throws NcclLibraryException if the library lacks the function
     */
    public void suspend(SuspendFlag flag) {
        core.suspend(flag.code());
    }

    /**
     * Takes again what was given back by {@link #suspend}. Collective.
     *
     * <p>C function: {@code ncclCommResume}, since NCCL 2.29.7.
     *
     * @throws IllegalStateException if the communicator is not suspended
     */
    public void resume() {
        core.resume();
    }

    /**
     * Stops what this rank is doing in this communicator, without freeing it: another thread that is in an operation
     * returns with an error. The ranks that live can then shrink or split it. From any thread.
     *
     * <p>C function: {@code ncclCommRevoke}, since NCCL 2.28.7.
     *
     * @param flag how
     * @throws NcclLibraryException if the library lacks the function
     */
    public void revoke(RevokeFlag flag) {
        core.revoke(flag.code());
    }

    /**
     * Ends all work, so that {@link #close} has little to do. Collective.
     *
     * <p>C function: {@code ncclCommFinalize}, since NCCL 2.14.3.
     */
    public void finish() {
        core.finish();
    }

    /**
     * Stops what this rank is doing in this communicator and frees it, without waiting for other ranks. What was made from
     * it can't be used any more. From any thread, also while another is in an operation, which then returns with an error.
     * Does nothing if the communicator is pending, closed or aborted.
     *
     * <p>C function: {@code ncclCommAbort}. If another thread is in a call, {@code ncclCommRevoke} first, where the library
     * has it, so that nothing is freed that is still in use; with an older library that thread has 5 seconds to return.
     *
     * @throws NcclResultException if NCCL fails; the communicator is aborted all the same
     */
    public void abort() {
        core.abort();
    }

    /**
     * Aborts several communicators side by side, as {@link #abort}: one after the other, each would wait for those that come
     * later. Returns when all have been aborted, each after its deadline at the latest. From any thread; an interrupt does
     * not end it.
     *
     * @param communicators which ones, of this process
     * @throws NcclResultException if NCCL fails at one of them, with what happens at others {@linkplain
     *     Throwable#getSuppressed suppressed}; all are aborted all the same
     */
    public static void abortAll(Collection<Communicator> communicators) {
        List<Communicator> all = List.copyOf(communicators);
        BlockingCall.runAll(
                "abort", all.stream().<Runnable>map(one -> one::abort).toList());
    }

    /**
     * Closes what was made from the communicator, ends its work and frees it. Collective. One that NCCL reports an error of
     * is aborted instead. Does nothing if it is closed or aborted.
     *
     * <p>Of a communicator with several ranks in this process, NCCL frees everything when the last is closed, and waits for
     * the devices of all. So ranks that threads have wait for each other here, a second at most: a rank that goes on to a
     * collective in which another, still closing, has a part would be waited for in vain. Of communicators that don't block
     * nobody knows when that has been done: use those with one rank in a process.
     *
     * <p>C functions: {@code ncclCommFinalize} and {@code ncclCommDestroy}.
     *
     * @throws IllegalStateException if it is pending, takes part in an open group or is in use by another thread; it is not
     *     closed then
     * @throws NcclTimeoutException if it was not done before the deadline; the communicator was aborted then
     * @throws NcclResultException if NCCL fails; the communicator is closed all the same
     */
    @Override
    public void close() {
        core.close();
    }

    /** It is about to be aborted: what is done now was done, and what is not is lost. */
    void ending() {
        streams.look();
    }

    /** The native communicator is gone. */
    void ended() {
        recorder.end();
        try {
            streams.close();
        } finally {
            scratch.close();
        }
    }

    Scratch scratch() {
        return scratch;
    }

    /* Streams and waiting. */

    /**
     * A stream of this communicator's own, made at the first call and closed with it. Work on it runs beside the default
     * stream; {@link #letDefaultStreamWait} and {@link #waitForDefaultStream} put the two in order.
     *
     * @return the stream, to be left open
     */
    public CudaStream stream() {
        core.requireOpen();
        return streams.own();
    }

    /**
     * Makes work that comes into the device's default stream from now on wait for what is in {@link #stream()}. Returns at
     * once.
     */
    public void letDefaultStreamWait() {
        core.requireOpen();
        streams.letDefaultStreamWait();
    }

    /**
     * Makes work that comes into {@link #stream()} from now on wait for what is in the device's default stream. Returns at
     * once.
     */
    public void waitForDefaultStream() {
        core.requireOpen();
        streams.waitForDefaultStream();
    }

    /**
     * What this communicator has put into a stream until now, to be waited for. Not collective, returns at once.
     *
     * @param stream a stream of this communicator's device
     * @return the work, done when all is done that is in the stream now; it need not be closed
     * @throws IllegalStateException also in an open group, whose operations are in no stream yet, and while the stream is
     *     being captured
     */
    public Work work(CudaStream stream) {
        check(stream);
        if (Batch.current() != null) {
            // The gate would let the thread in, and out of its batch's stay with it.
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

    /** As {@link #work}, for who is in the gate. */
    Work mark(CudaStream stream) {
        return streams.mark(stream, operationLog.last());
    }

    /* Operators. */

    /**
     * Makes an operator that multiplies this rank's elements by a number and then sums those of all ranks. Not collective:
     * each rank makes its own, with its own number, and all pass theirs to the same operation.
     *
     * <p>C function: {@code ncclRedOpCreatePreMulSum} with the number in host memory, since NCCL 2.11.4.
     *
     * @param <T> the type of the elements
     * @param type the type of the elements
     * @param scalar the number, rounded to that type
     * @return the operator, to be closed by the caller, else with the communicator
     * @throws IllegalArgumentException if it is an integer type that has not this number
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
     * As {@link #preMulSum(ElementType, double)}, with a number that is in device memory when an operation runs.
     *
     * <p>C function: {@code ncclRedOpCreatePreMulSum} with the number on the device, since NCCL 2.11.4.
     *
     * @param <T> the type of the elements
     * @param scalar a buffer with the number as its only element; its memory is kept until the operator is closed
     * @return the operator, to be closed by the caller, else with the communicator
     * @throws IllegalArgumentException if the buffer has not exactly one element, or is on another device
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

    /* Memory that NCCL knows. */

    /**
     * Makes memory of this rank known to the other ranks, as they do with theirs. Collective: all ranks call it in the same
     * order, with as many bytes and the same flags.
     *
     * <p>C function: {@code ncclCommWindowRegister}, since NCCL 2.27.3. In an open group the window is pending until its
     * launch.
     *
     * @param buffer the memory, of {@link Device#allocateForWindow} or a slice of that, at an address that is a multiple of
     *     {@link WindowFlag#REQUIRED_ALIGNMENT}; or wrapped memory of {@code ncclMemAlloc}
     * @param flags what it is for; without any, as {@link WindowFlag#DEFAULT}
     * @return the window, to be closed by the caller, else with the communicator
     * @throws IllegalArgumentException if the buffer has no elements, other memory, another alignment or another device
     * @throws NcclLibraryException if the library lacks the function or a flag
     * @throws NoWindowException if NCCL can make none for this communicator; in a group thrown by its launch
     * @throws NcclTimeoutException if not all ranks have come before the deadline
     */
    public Window registerWindow(DeviceBuffer<?> buffer, WindowFlag... flags) {
        return Window.register(this, buffer, flags);
    }

    /** A window that is open now. */
    synchronized void add(Window window) {
        Window[] more = Arrays.copyOf(windows, windows.length + 1);
        more[windows.length] = window;
        windows = more;
        RegisteredMemory.warnOnce(core.library());
        if (window.isSymmetric() && RegisteredMemory.haveFaults(core.library())) {
            faultyWindows = true;
            special = SPECIAL;
        }
    }

    /** A window that is going to be given up. */
    synchronized void remove(Window window) {
        windows = Arrays.stream(windows).filter(one -> one != window).toArray(Window[]::new);
    }

    /** The open window with {@link WindowFlag#COLL_SYMMETRIC} in which a buffer of this device lies, else null. */
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
        refuseInWindows(RegisteredMemory.problem(version, operation, send, count, bytesOfElement), version, send, recv);
    }

    /** With NCCL's fault of averages, apart from others: for those all operations of the communicator look further. */
    private void check(ReduceOp op, long send, long recv, DataType type) {
        check(op, type);
        if (op == ReduceOp.AVG && windows.length > 0 && !onHost) {
            Version version = core.library().version();
            refuseInWindows(RegisteredMemory.problemOfAverage(version, type), version, send, recv);
        }
    }

    private void refuseInWindows(String problem, Version version, long send, long recv) {
        if (problem != null
                && size() > 1
                && RegisteredMemory.mayBeUsed(
                        version, symmetricWindowOf(send, 0) != null, symmetricWindowOf(recv, 0) != null)) {
            throw new IllegalArgumentException(problem);
        }
    }

    /**
     * Lets NCCL use memory directly in operations of this communicator. Not collective, but of use where all ranks do it.
     *
     * <p>C function: {@code ncclCommRegister}, since NCCL 2.19.1. In an open group, too, it is called at once.
     *
     * @param buffer the memory; some ways to use it directly need memory of {@link Device#allocateForWindow}
     * @return the registration, to be closed by the caller, else with the communicator
     * @throws IllegalArgumentException if the buffer has no elements, or is on another device
     * @throws NcclLibraryException if the library lacks the function
     */
    public Registration register(DeviceBuffer<?> buffer) {
        core.require("ncclCommRegister");
        check(buffer);
        if (buffer.length == 0) {
            throw new IllegalArgumentException("buffer must have at least 1 element: " + buffer);
        }
        RegisteredMemory.warnOnce(core.library());
        buffer.pin();
        boolean made = false;
        // NCCL leaves the cell as it is where it takes nothing.
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
     * Reduces the elements of all ranks; every rank gets the result. Collective, in stream order, possibly in place.
     *
     * <p>C function: {@code ncclAllReduce}.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements
     * @param recv where the result goes, as long as send
     * @param op how to reduce
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
     * As {@link #allReduce(DeviceBuffer, DeviceBuffer, ReduceOp, CudaStream)}, with a configuration for this call.
     *
     * <p>C function: {@code ncclAllReduceConfig}, since NCCL 2.31.2.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements
     * @param recv where the result goes, as long as send
     * @param op how to reduce
     * @param stream the stream
     * @param config how NCCL does it, the same at all ranks
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
     * Reduces the elements of all ranks in place, as {@link #allReduce(DeviceBuffer, DeviceBuffer, ReduceOp, CudaStream)}.
     *
     * @param <T> the type of the elements
     * @param buffer this rank's elements, and then the result
     * @param op how to reduce
     * @param stream the stream
     */
    public <T extends Element> void allReduce(DeviceBuffer<T> buffer, ReduceOp op, CudaStream stream) {
        allReduce(buffer, buffer, op, stream);
    }

    /**
     * Reduces the elements of all ranks; one gets the result. Collective, in stream order, possibly in place.
     *
     * <p>C function: {@code ncclReduce}.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements
     * @param recv where the result goes, as long as send; at other ranks than the root left as it is
     * @param op how to reduce
     * @param root who gets the result
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
     * As {@link #reduce(DeviceBuffer, DeviceBuffer, ReduceOp, int, CudaStream)}, with a configuration for this call.
     *
     * <p>C function: {@code ncclReduceConfig}, since NCCL 2.31.2.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements
     * @param recv where the result goes, as long as send; at other ranks than the root left as it is
     * @param op how to reduce
     * @param root who gets the result
     * @param stream the stream
     * @param config how NCCL does it, the same at all ranks
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
     * Reduces the elements of all ranks in place, as {@link #reduce(DeviceBuffer, DeviceBuffer, ReduceOp, int, CudaStream)}.
     *
     * @param <T> the type of the elements
     * @param buffer this rank's elements; at the root then the result
     * @param op how to reduce
     * @param root who gets the result
     * @param stream the stream
     */
    public <T extends Element> void reduce(DeviceBuffer<T> buffer, ReduceOp op, int root, CudaStream stream) {
        reduce(buffer, buffer, op, root, stream);
    }

    /**
     * Copies the root's elements to all ranks. Collective, in stream order, possibly in place.
     *
     * <p>C function: {@code ncclBroadcast}.
     *
     * @param <T> the type of the elements
     * @param send the root's elements; not read at other ranks
     * @param recv where they go, as long as send
     * @param root whose elements
     * @param stream the stream
     */
    public <T extends Element> void broadcast(DeviceBuffer<T> send, DeviceBuffer<T> recv, int root, CudaStream stream) {
        requireRoot(root);
        checkElementwise(send, recv);
        submit(Operations.BROADCAST, send, recv, recv.length, null, root, stream);
    }

    /**
     * As {@link #broadcast(DeviceBuffer, DeviceBuffer, int, CudaStream)}, with a configuration for this call.
     *
     * <p>C function: {@code ncclBroadcastConfig}, since NCCL 2.31.2.
     *
     * @param <T> the type of the elements
     * @param send the root's elements; not read at other ranks
     * @param recv where they go, as long as send
     * @param root whose elements
     * @param stream the stream
     * @param config how NCCL does it, the same at all ranks
     * @throws NcclLibraryException if the library lacks the function or a field of the configuration
     */
    public <T extends Element> void broadcast(
            DeviceBuffer<T> send, DeviceBuffer<T> recv, int root, CudaStream stream, CollectiveConfig config) {
        requireRoot(root);
        checkElementwise(send, recv);
        submit(Operations.BROADCAST, send, recv, recv.length, null, root, stream, config);
    }

    /**
     * Copies the root's elements to all ranks in place, as {@link #broadcast(DeviceBuffer, DeviceBuffer, int, CudaStream)}.
     *
     * @param <T> the type of the elements
     * @param buffer the root's elements; at other ranks where they go
     * @param root whose elements
     * @param stream the stream
     */
    public <T extends Element> void broadcast(DeviceBuffer<T> buffer, int root, CudaStream stream) {
        broadcast(buffer, buffer, root, stream);
    }

    /**
     * Puts the elements of all ranks one after the other, by rank; every rank gets them all. Collective, in stream order. In
     * place if send is this rank's part of recv.
     *
     * <p>C function: {@code ncclAllGather}.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements
     * @param recv where all go, {@link #size()} times as long
     * @param stream the stream
     */
    public <T extends Element> void allGather(DeviceBuffer<T> send, DeviceBuffer<T> recv, CudaStream stream) {
        requireTimesSize("recv.length()", recv.length, "send.length()", send.length);
        checkDisjointOrPart(send, recv, rank());
        submit(Operations.ALL_GATHER, send, recv, send.length, null, 0, stream);
    }

    /**
     * As {@link #allGather(DeviceBuffer, DeviceBuffer, CudaStream)}, with a configuration for this call.
     *
     * <p>C function: {@code ncclAllGatherConfig}, since NCCL 2.31.2.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements
     * @param recv where all go, {@link #size()} times as long
     * @param stream the stream
     * @param config how NCCL does it, the same at all ranks
     * @throws NcclLibraryException if the library lacks the function or a field of the configuration
     */
    public <T extends Element> void allGather(
            DeviceBuffer<T> send, DeviceBuffer<T> recv, CudaStream stream, CollectiveConfig config) {
        requireTimesSize("recv.length()", recv.length, "send.length()", send.length);
        checkDisjointOrPart(send, recv, rank());
        submit(Operations.ALL_GATHER, send, recv, send.length, null, 0, stream, config);
    }

    /**
     * Reduces the elements of all ranks; every rank gets its part of the result. Collective, in stream order. In place if
     * recv is this rank's part of send.
     *
     * <p>C function: {@code ncclReduceScatter}.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements, {@link #size()} times as many as in recv
     * @param recv where this rank's part of the result goes
     * @param op how to reduce
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
     * As {@link #reduceScatter(DeviceBuffer, DeviceBuffer, ReduceOp, CudaStream)}, with a configuration for this call.
     *
     * <p>C function: {@code ncclReduceScatterConfig}, since NCCL 2.31.2.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements, {@link #size()} times as many as in recv
     * @param recv where this rank's part of the result goes
     * @param op how to reduce
     * @param stream the stream
     * @param config how NCCL does it, the same at all ranks
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
     * Sends a part of each rank's elements to each rank: part r of rank s becomes part s of rank r. Collective, in stream
     * order, not in place.
     *
     * <p>C function: {@code ncclAlltoAll}, since NCCL 2.28.3; with older libraries a group of {@code ncclSend} and {@code
     * ncclRecv}.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements, a multiple of {@link #size()}
     * @param recv where those for this rank go, as long as send
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
     * As {@link #allToAll(DeviceBuffer, DeviceBuffer, CudaStream)}, with a configuration for this call.
     *
     * <p>C function: {@code ncclAlltoAllConfig}, since NCCL 2.31.2; nothing stands in for it with older libraries.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements, a multiple of {@link #size()}
     * @param recv where those for this rank go, as long as send
     * @param stream the stream
     * @param config how NCCL does it, the same at all ranks
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
     * Puts the elements of all ranks one after the other at the root, by rank. Collective, in stream order. In place if send
     * is the root's part of recv.
     *
     * <p>C function: {@code ncclGather}, since NCCL 2.28.3; with older libraries a group of {@code ncclSend} and {@code
     * ncclRecv}.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements
     * @param recv where all go at the root, {@link #size()} times as long; not used at other ranks
     * @param root who gets them
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
     * As {@link #gather(DeviceBuffer, DeviceBuffer, int, CudaStream)}, with a configuration for this call.
     *
     * <p>C function: {@code ncclGatherConfig}, since NCCL 2.31.2; nothing stands in for it with older libraries.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements
     * @param recv where all go at the root, {@link #size()} times as long; at other ranks not used, and so may be send
     * @param root who gets them
     * @param stream the stream
     * @param config how NCCL does it, the same at all ranks
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
     * Takes part in a {@link #gather(DeviceBuffer, DeviceBuffer, int, CudaStream)} as another rank than the root.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements
     * @param root who gets them, another rank
     * @param stream the stream
     */
    public <T extends Element> void gather(DeviceBuffer<T> send, int root, CudaStream stream) {
        requireOtherRoot(root, "recv");
        gather(send, send, root, stream);
    }

    /**
     * Sends a part of the root's elements to each rank. Collective, in stream order. In place if recv is the root's part of
     * send.
     *
     * <p>C function: {@code ncclScatter}, since NCCL 2.28.3; with older libraries a group of {@code ncclSend} and {@code
     * ncclRecv}.
     *
     * @param <T> the type of the elements
     * @param send the root's elements, {@link #size()} times as many as in recv; not used at other ranks
     * @param recv where this rank's part goes
     * @param root whose elements
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
     * As {@link #scatter(DeviceBuffer, DeviceBuffer, int, CudaStream)}, with a configuration for this call.
     *
     * <p>C function: {@code ncclScatterConfig}, since NCCL 2.31.2; nothing stands in for it with older libraries.
     *
     * @param <T> the type of the elements
     * @param send the root's elements, {@link #size()} times as many as in recv; at other ranks not used, and so may be recv
     * @param recv where this rank's part goes
     * @param root whose elements
     * @param stream the stream
     * @param config how NCCL does it, the same at all ranks
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
     * Takes part in a {@link #scatter(DeviceBuffer, DeviceBuffer, int, CudaStream)} as another rank than the root.
     *
     * @param <T> the type of the elements
     * @param recv where this rank's part goes
     * @param root whose elements, another rank
     * @param stream the stream
     */
    public <T extends Element> void scatter(DeviceBuffer<T> recv, int root, CudaStream stream) {
        requireOtherRoot(root, "send");
        scatter(recv, recv, root, stream);
    }

    /* Operations between two ranks. */

    /**
     * Sends elements to a rank, which calls {@link #recv} with as many. In stream order: the stream waits for the other
     * rank. What two ranks send each other goes into a {@link Group}, or they wait for each other for ever.
     *
     * <p>C function: {@code ncclSend}, since NCCL 2.7.3.
     *
     * @param <T> the type of the elements
     * @param buffer the elements
     * @param peer who gets them; this rank itself only in a group that also receives
     * @param stream the stream
     */
    public <T extends Element> void send(DeviceBuffer<T> buffer, int peer, CudaStream stream) {
        requireTransferPeer(peer);
        submit(Operations.SEND, buffer, null, buffer.length, null, peer, stream);
    }

    /**
     * Receives elements from a rank, which calls {@link #send} with as many. In stream order: the stream waits for the other
     * rank.
     *
     * <p>C function: {@code ncclRecv}, since NCCL 2.7.3.
     *
     * @param <T> the type of the elements
     * @param buffer where they go
     * @param peer who sends them; this rank itself only in a group that also sends
     * @param stream the stream
     */
    public <T extends Element> void recv(DeviceBuffer<T> buffer, int peer, CudaStream stream) {
        requireTransferPeer(peer);
        submit(Operations.RECV, null, buffer, buffer.length, null, peer, stream);
    }

    /**
     * Sends to one rank and receives from another at the same time, as in a ring or a halo exchange. In stream order, not in
     * place.
     *
     * <p>C functions: {@code ncclSend} and {@code ncclRecv} in a group, without that of no elements.
     *
     * @param <T> the type of the elements
     * @param send the elements for the one
     * @param to who gets them
     * @param recv where those of the other go; not necessarily as many
     * @param from who sends them
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
     * Puts the elements of all ranks where each rank's displacement says; every rank gets them all. Collective, in stream
     * order. In place if send is this rank's part of recv.
     *
     * <p>C functions: a group of {@code ncclSend} and {@code ncclRecv}, without those of no elements.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements
     * @param recv where all go
     * @param counts the number of elements of each rank, the same at all ranks
     * @param displacements where those of each rank begin in recv
     * @param stream the stream
     * @throws IndexOutOfBoundsException if a rank's elements are not within recv
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
     * Puts the elements of all ranks where each rank's displacement says, at the root. Collective, in stream order. In place
     * if send is the root's part of recv.
     *
     * <p>C functions: a group of {@code ncclSend} and {@code ncclRecv}, without those of no elements.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements
     * @param recv where all go at the root; not used at other ranks
     * @param counts the number of elements of each rank; not used at other ranks than the root
     * @param displacements where those of each rank begin in recv; not used at other ranks than the root
     * @param root who gets them
     * @param stream the stream
     * @throws IndexOutOfBoundsException if a rank's elements are not within recv
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
     * Takes part in a {@link #gatherv(DeviceBuffer, DeviceBuffer, long[], long[], int, CudaStream)} as another rank than the
     * root.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements
     * @param root who gets them, another rank
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
     * Sends each rank the elements that its displacement and count say, from the root. Collective, in stream order. In place
     * if recv is the root's part of send.
     *
     * <p>C functions: a group of {@code ncclSend} and {@code ncclRecv}, without those of no elements.
     *
     * @param <T> the type of the elements
     * @param send the root's elements; not used at other ranks
     * @param counts how many each rank gets; not used at other ranks than the root
     * @param displacements where those for each rank begin in send; not used at other ranks than the root
     * @param recv where this rank's elements go
     * @param root whose elements
     * @param stream the stream
     * @throws IndexOutOfBoundsException if a rank's elements are not within send
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
     * Takes part in a {@link #scatterv(DeviceBuffer, long[], long[], DeviceBuffer, int, CudaStream)} as another rank than the
     * root.
     *
     * @param <T> the type of the elements
     * @param recv where this rank's elements go
     * @param root whose elements, another rank
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
     * Reduces the elements of all ranks; every rank gets its part of the result, of its own length. Collective, in stream
     * order. In place if recv is this rank's part of send.
     *
     * <p>C functions: a group of {@code ncclReduce}, one for each rank.
     *
     * @param <T> the type of the elements
     * @param send this rank's elements: the parts of all ranks, one after the other
     * @param recv where this rank's part of the result goes
     * @param counts the length of each rank's part, the same at all ranks
     * @param op how to reduce
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
                // At other ranks than the root, NCCL does not write.
                long target = root == rank() ? recv.address : part;
                calls.reduce(send, recv, part, target, blocks.counts()[root], op, root, stream);
            }
            calls.launch();
        }
    }

    /**
     * Sends each rank its own number of elements, as {@code MPI_Alltoallv}: this rank's row of counts and displacements, in
     * elements. Collective, in stream order, not in place.
     *
     * <p>First the ranks compare what they were given, and all throw if one has wrong arguments or two don't agree; that
     * takes a small all-gather on {@link #stream()} and waits for it. With the same counts and buffers again, a {@link
     * #planAllToAllv plan} does it once. Where all ranks are known to agree, {@link #allToAllvUnchecked} does without.
     *
     * <p>C functions: {@code ncclAlltoAllv} of VCCL or RCCL where {@link AllToAllvPlan} says so, else a group of {@code
     * ncclSend} and {@code ncclRecv}.
     *
     * @param <T> the type of the elements
     * @param send the elements for all ranks
     * @param sendCounts how many go to each rank
     * @param sendDisplacements where those for each rank begin in send
     * @param recv where those of all ranks go
     * @param recvCounts how many come from each rank
     * @param recvDisplacements where those of each rank go in recv; they don't overlap
     * @param stream the stream
     * @throws IllegalArgumentException if ranks don't agree on counts or types, at all ranks
     * @throws IndexOutOfBoundsException if elements are not within their buffer
     * @throws IllegalStateException if another rank has wrong arguments; or in a group, where it needs a plan
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
     * As {@link #allToAllv(DeviceBuffer, long[], long[], DeviceBuffer, long[], long[], CudaStream)}, without comparing the
     * counts of the ranks: if they don't agree, ranks wait for each other for ever. This rank's own arguments are checked.
     *
     * <p>C functions: a group of {@code ncclSend} and {@code ncclRecv}, without those of no elements.
     *
     * @param <T> the type of the elements
     * @param send the elements for all ranks
     * @param sendCounts how many go to each rank
     * @param sendDisplacements where those for each rank begin in send
     * @param recv where those of all ranks go
     * @param recvCounts how many come from each rank
     * @param recvDisplacements where those of each rank go in recv; they don't overlap
     * @param stream the stream
     * @throws IndexOutOfBoundsException if elements are not within their buffer
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
     * Agrees with all ranks on an all-to-all, to be done any number of times. Collective; waits for the other ranks. In an
     * open group the plan is pending until its launch.
     *
     * <p>C function: {@code ncclAllGather}, on {@link #stream()}.
     *
     * @param <T> the type of the elements
     * @param send the elements for all ranks
     * @param sendCounts how many go to each rank
     * @param sendDisplacements where those for each rank begin in send
     * @param recv where those of all ranks go
     * @param recvCounts how many come from each rank
     * @param recvDisplacements where those of each rank go in recv; they don't overlap
     * @return the plan, to be closed by the caller, else with the communicator
     * @throws IllegalArgumentException if ranks don't agree on counts or types, at all ranks
     * @throws IndexOutOfBoundsException if elements are not within their buffer
     * @throws IllegalStateException if another rank has wrong arguments
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
                this, send, sendCounts, sendDisplacements, recv, recvCounts, recvDisplacements, streams.own());
        plan.exchange();
        return plan;
    }

    /**
     * Does what a plan says. Collective, in stream order.
     *
     * <p>C functions: as {@link AllToAllvPlan} says.
     *
     * @param <T> the type of the elements
     * @param plan a plan of this communicator
     * @param stream the stream
     * @throws IllegalArgumentException if the plan is another communicator's
     * @throws IllegalStateException also if the plan is closed or pending, or if it uses VCCL's call and the stream is being
     *     captured
     */
    public <T extends Element> void allToAllv(AllToAllvPlan<T> plan, CudaStream stream) {
        plan.check(this);
        check(stream);
        plan.run(stream);
    }

    /** All sends and receives of an all-to-all, in a group. */
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
     * Writes elements into another rank's memory and then raises a signal there, without a call of that rank. One-sided, in
     * stream order: when the work of the stream is done, the elements may be changed again; that they have arrived the other
     * rank knows when it {@linkplain #waitSignal waits} for the signal. Puts to one rank arrive in their order.
     *
     * <p>C function: {@code ncclPutSignal}, since NCCL 2.29.2. NCCL refuses it where it has windows, but no way to write
     * without the other rank: without NVLink or PCIe P2P to it, or a network for it, or with {@code numRmaCtx} 0 in the
     * configuration.
     *
     * @param <T> the type of the elements
     * @param elements what to write, possibly nothing; within a window of this communicator with {@link
     *     WindowFlag#COLL_SYMMETRIC}
     * @param window where to write: in the other rank's memory of this window
     * @param offset the first element to write, in elements of this type from the beginning of the window
     * @param peer the other rank, possibly this one
     * @param stream the stream
     * @throws IndexOutOfBoundsException if they are not all within the window, which has the same size at all ranks
     * @throws IllegalArgumentException also if the elements are in no such window
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
        // NCCL looks where even nothing is, and the end of a window is in none.
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
            // Nobody closes them from here on.
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
     * Raises a signal at another rank, after what was put there before. One-sided, in stream order. Needs no window.
     *
     * <p>C function: {@code ncclSignal}, since NCCL 2.29.2.
     *
     * @param peer the other rank, possibly this one
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
     * Makes the stream wait until a rank has raised one signal here, as {@link #waitSignal(CudaStream, SignalWait...)}.
     *
     * @param peer the rank that raises it, possibly this one
     * @param stream the stream
     * @throws NcclLibraryException if the library lacks the function
     */
    public void waitSignal(int peer, CudaStream stream) {
        requirePeer("peer", peer);
        waitSignal(stream, SignalWait.of(peer, 1));
    }

    /**
     * Makes the stream wait until ranks have raised signals here, by {@link #putSignal} or {@link #signal}: as many of each
     * rank as is said, besides those that were waited for before. In stream order. What was put with the signals can be read
     * then.
     *
     * <p>C function: {@code ncclWaitSignal}, since NCCL 2.29.2.
     *
     * @param stream the stream
     * @param waits for which signals, at least one
     * @throws IllegalArgumentException also if there is none, or one has an index or a context that NCCL does not have
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

    /* The same with plain addresses. */

    /**
     * Reduces the elements of all ranks, as {@link #allReduce(DeviceBuffer, DeviceBuffer, ReduceOp, CudaStream)}.
     *
     * <p>With plain addresses, for memory that is in no {@link DeviceBuffer}: that they are valid, on this device and large
     * enough is the caller's concern.
     *
     * @param send the address of this rank's elements
     * @param recv the address where the result goes
     * @param count the number of elements
     * @param type their type
     * @param op how to reduce
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
     * Reduces the elements of all ranks, as {@link #reduce(DeviceBuffer, DeviceBuffer, ReduceOp, int, CudaStream)}.
     *
     * <p>With plain addresses, for memory that is in no {@link DeviceBuffer}: that they are valid, on this device and large
     * enough is the caller's concern.
     *
     * @param send the address of this rank's elements
     * @param recv the address where the result goes
     * @param count the number of elements
     * @param type their type
     * @param op how to reduce
     * @param root who gets the result
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
     * Copies the root's elements to all ranks, as {@link #broadcast(DeviceBuffer, DeviceBuffer, int, CudaStream)}.
     *
     * <p>With plain addresses, for memory that is in no {@link DeviceBuffer}: that they are valid, on this device and large
     * enough is the caller's concern.
     *
     * @param send the address of this rank's elements
     * @param recv the address where the result goes
     * @param count the number of elements
     * @param type their type
     * @param root whose elements
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
     * Puts the elements of all ranks one after the other, as {@link #allGather(DeviceBuffer, DeviceBuffer, CudaStream)}.
     *
     * <p>With plain addresses, for memory that is in no {@link DeviceBuffer}: that they are valid, on this device and large
     * enough is the caller's concern.
     *
     * @param send the address of this rank's elements
     * @param recv the address where the result goes
     * @param count the number of elements of each rank
     * @param type their type
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
     * Reduces the elements of all ranks, as {@link #reduceScatter(DeviceBuffer, DeviceBuffer, ReduceOp, CudaStream)}.
     *
     * <p>With plain addresses, for memory that is in no {@link DeviceBuffer}: that they are valid, on this device and large
     * enough is the caller's concern.
     *
     * @param send the address of this rank's elements
     * @param recv the address where the result goes
     * @param count the number of elements that each rank gets
     * @param type their type
     * @param op how to reduce
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
     * Sends elements to a rank, as {@link #send(DeviceBuffer, int, CudaStream)}.
     *
     * <p>With plain addresses, for memory that is in no {@link DeviceBuffer}: that they are valid, on this device and large
     * enough is the caller's concern.
     *
     * @param address the address of the elements
     * @param count the number of elements
     * @param type their type
     * @param peer who gets them
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
     * Receives elements from a rank, as {@link #recv(DeviceBuffer, int, CudaStream)}.
     *
     * <p>With plain addresses, for memory that is in no {@link DeviceBuffer}: that they are valid, on this device and large
     * enough is the caller's concern.
     *
     * @param address the address where they go
     * @param count the number of elements
     * @param type their type
     * @param peer who sends them
     * @param stream the stream
     */
    public void recv(long address, long count, DataType type, int peer, CudaStream stream) {
        requireElements(count, type, 1);
        requireAddress("address", address, type, count);
        requireTransferPeer(peer);
        check(stream);
        submit(Operations.RECV, 0, address, count, type, null, peer, stream);
    }

    /* Checks. Those of the hot path are written so that the messages are made elsewhere. */

    private static IllegalArgumentException unequal(String what, long value, String other, long otherValue) {
        return new IllegalArgumentException(what + " must be " + other + ": " + value + " != " + otherValue);
    }

    private static void requireEqual(String what, long value, String other, long otherValue) {
        if (value != otherValue) {
            throw unequal(what, value, other, otherValue);
        }
    }

    private void requireTimesSize(String what, long value, String part, long partValue) {
        // Not partValue * size, which may overflow.
        if (value / size() != partValue || value % size() != 0) {
            throw new IllegalArgumentException(
                    what + " must be size() * " + part + ": " + value + " != " + size() + " * " + partValue);
        }
    }

    /** Two buffers of one length, apart or the same. */
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

    /** Negative if anything may be wrong with what an operation is given: a sign for all, and so a branch for all. */
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

    /** Negative if a buffer is closed, on another device, or of a type that the library does not know. */
    private int wrong(DeviceBuffer<?> buffer) {
        // The code of its type, if it is on this device; else more.
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

    /** Two buffers of one type that have nothing in common. */
    void checkSeparate(DeviceBuffer<?> send, DeviceBuffer<?> recv) {
        checkEach(send, recv);
        checkDisjoint(send, recv);
    }

    private static void checkDisjoint(DeviceBuffer<?> a, DeviceBuffer<?> b) {
        if (overlap(a.address, a.bytes, b.address, b.bytes)) {
            // What was closed may have been where something else is now.
            a.checkOpen();
            b.checkOpen();
            throw overlapping(a.address, a.bytes, b.address, b.bytes);
        }
    }

    /** Two buffers of as many bytes have nothing in common, or everything. */
    private static void checkApartOrSame(DeviceBuffer<?> a, DeviceBuffer<?> b) {
        long distance = a.address - b.address;
        if (distance != 0 && distance < a.bytes && -distance < a.bytes) {
            checkDisjoint(a, b);
        }
    }

    /** The part is this rank's of the whole, or has nothing in common with it. */
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
        return new IllegalArgumentException("buffers must not overlap but in place: 0x" + Long.toHexString(a) + " with "
                + aBytes + " bytes, 0x" + Long.toHexString(b) + " with " + bBytes);
    }

    private void requireElements(long count, DataType type, int times) {
        check(type.code());
        // So few elements of 8 bytes are less than 2^63 bytes, at 2^20 ranks too; all else is looked at again.
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
        // Sizes are powers of two; and what ends beyond all memory has a negative end.
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
     * Looks at what every operation is given, and calls NCCL.
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

    /** As above, with a configuration; always for two buffers. */
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

    /** A call whose configuration NCCL alone reads, before the call returns. */
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
            core.isUsedBy(graph);
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

    /** Negative if operations must look further than at what they are given. */
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
     * Within a group, in a capture, and on host memory, which is read by the call itself: closing a buffer must not free
     * it.
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
            // First: what another thread closes meanwhile must not get into the batch.
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
            core.isUsedBy(graph);
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
                core.isUsedBy(graph);
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
        // Locals, as below: behind the gate's fence fields would be read again.
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
     * Where calls may have to be compared, or JDK Flight Recorder may record.
     *
     * @param struct where NCCL reads the configuration; 0 for a call without
     * @param config null for a call without
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

    /** Where the thread may capture, or be a virtual one. Else nothing is allocated. */
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
            // In its default stream the host engine waits for the other ranks within the call.
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

    /** What the last operation has returned; not what it was, which a hot path would have to keep for this. */
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

    /** For the watchdog: work that nobody may wait for. */
    void lookAtWork(long now, long limit) {
        try {
            Work late = streams.overdue(now, limit);
            // Who waits will tell of it.
            if (late != null && !core.failures().hasWaiters()) {
                Watchdog.handle("late work", () -> core.failures().reportLate(late));
            }
        } catch (CudaException lost) {
            if (core.failures().isUnreported()) {
                Watchdog.handle("device", () -> core.failures().reportLost(lost));
            }
        }
    }

    /** {@return what it is: "communicator 'gradients' (rank 0 of 4 on CUDA device 0)"} */
    @Override
    public String toString() {
        return core.toString();
    }
}

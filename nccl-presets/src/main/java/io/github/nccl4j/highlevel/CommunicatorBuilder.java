package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.internal.communicator.CommunicatorCore;
import io.github.nccl4j.internal.communicator.CommunicatorKey;
import io.github.nccl4j.internal.communicator.CommunicatorSettings;
import io.github.nccl4j.internal.communicator.Creation;
import io.github.nccl4j.internal.communicator.DeviceChoice;
import io.github.nccl4j.internal.communicator.OwnDevice;
import io.github.nccl4j.internal.communicator.PeerWatch;
import io.github.nccl4j.internal.communicator.RankHandshake;
import io.github.nccl4j.internal.config.NativeArguments;
import io.github.nccl4j.internal.failure.Status;
import io.github.nccl4j.internal.threads.Gate;
import io.github.nccl4j.internal.threads.Timeouts;
import io.github.nccl4j.launch.Membership;
import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.Store;
import io.github.nccl4j.launch.TcpStore;
import io.github.nccl4j.library.Engine;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;

/**
 * Builder for communicators with settings that {@link Communicator#create} leaves at their defaults.
 *
 * <pre>{@code
 * Communicator communicator = Communicator.builder()
 *         .device(Device.cuda(localRank))
 *         .config(CommunicatorConfig.builder().commName("gradients").build())
 *         .deadline(Duration.ofSeconds(60))
 *         .onFailure(FailurePolicy.ABORT)
 *         .create(id, rank, size);
 * }</pre>
 *
 * <p>A builder may be reused, by one thread at a time. A communicator keeps the settings of its builder; communicators
 * that are split, shrunk or grown from it inherit them.
 *
 * @since 0.1
 */
public final class CommunicatorBuilder {
    private Device device;
    private CommunicatorConfig config;
    private CommunicatorSettings settings = CommunicatorSettings.DEFAULT;
    private FailurePolicy policy = FailurePolicy.THROW;

    CommunicatorBuilder() {}

    /**
     * Sets the device of the communicator's buffers and streams. Default: the device of the local rank, for {@link
     * #fromEnvironment()}, {@link Recovery#begin}, and, if the launcher has set the local rank, {@link
     * #create(Rendezvous)}; otherwise {@link Device#current()}.
     *
     * @param device a CUDA device, or host memory with the host engine
     * @return this builder
     */
    public CommunicatorBuilder device(Device device) {
        this.device = Objects.requireNonNull(device, "device");
        return this;
    }

    /**
     * Sets NCCL's configuration of the communicator. Default: NCCL's defaults, and blocking calls.
     *
     * @param config the configuration
     * @return this builder
     */
    public CommunicatorBuilder config(CommunicatorConfig config) {
        this.config = Objects.requireNonNull(config, "config");
        return this;
    }

    /**
     * Sets the deadline of each of these: creating, closing, every {@link Work#await()}, every launch of a group, every
     * call that needs other ranks, and every wait for a {@link CudaStream} with operations of the communicator. A call that exceeds the deadline throws {@link NcclTimeoutException}; a
     * deadline never ends the process. Default: {@link Communicator#DEFAULT_DEADLINE}; {@link Communicator#NO_DEADLINE}
     * waits forever.
     *
     * <p>Before the exception is thrown, ranks that met at a {@link TcpStore} are asked through the store for their
     * status, which takes 1 to 1.5 s. {@linkplain NcclTimeoutException#silentRanks The exception names} the ranks that
     * do not answer.
     *
     * @param deadline the deadline, more than 0
     * @return this builder
     * @throws IllegalArgumentException if the deadline is not more than 0
     */
    public CommunicatorBuilder deadline(Duration deadline) {
        if (deadline.isZero() || deadline.isNegative()) {
            throw new IllegalArgumentException("deadline must be > 0: " + Timeouts.text(deadline));
        }
        settings = settings.withDeadline(deadline);
        return this;
    }

    /**
     * Sets the policy that is called when an operation fails or times out, before the exception is thrown. Default:
     * {@link FailurePolicy#THROW}.
     *
     * @param policy the policy
     * @return this builder
     */
    public CommunicatorBuilder onFailure(FailurePolicy policy) {
        this.policy = Objects.requireNonNull(policy, "policy");
        return this;
    }

    /**
     * Enables or disables the watchdog: one thread for the process, which checks the communicator at least ten times a
     * second and handles these failures:
     *
     * <ul>
     *   <li>NCCL found an error while no thread waited, such as the end of another rank: the error is logged, the
     *       policy is called, and the next call fails;
     *   <li>the store at which the ranks met reports that a rank is lost: an operation that does not return is ended as
     *       at the deadline, and throws a {@link NcclRemoteException}; if no thread waits, the loss is logged, the
     *       policy is called, and the next call fails;
     *   <li>a {@link Work} is not done within the deadline, and no thread waits for it: the failure is logged, the
     *       policy is called, and the next call fails;
     *   <li>an operation does not return within the deadline: it is ended by {@link Communicator#revoke}, with libraries
     * before NCCL 2.28.7 by {@link Communicator#abort}, and throws a {@link NcclTimeoutException};
     *   <li>a thread was interrupted and is still in an operation: the communicator is aborted, and the operation throws an
     * {@link NcclInterruptedException}.
     * </ul>
     *
     * <p>Default: true. Calls cost the same with and without the watchdog.
     *
     * @param watchdog true to enable the watchdog
     * @return this builder
     */
    public CommunicatorBuilder watchdog(boolean watchdog) {
        settings = settings.withWatchdog(watchdog);
        return this;
    }

    /**
     * Compares every collective call with those of the other ranks before NCCL is called: function, count, type,
     * operator, root, and the order of calls. If they differ, every rank gets a {@link CallMismatchException} that
     * names the ranks that differ. If a rank does not join, the calls of the others end at the {@linkplain #deadline
     * deadline} with a {@link NcclTimeoutException} that names the missing rank.
     *
     * <p>For debugging: each call waits for all ranks, which is slow, and allocates memory. {@code send}, {@code recv}
     * and one-sided operations are not compared. Communicators that are split, shrunk or grown from this one are
     * checked if they have all of its ranks, in the same order.
     *
     * <p>With {@code -Dnccl4j.check=true} on all ranks, {@link #create(Rendezvous)} and {@link #fromEnvironment()}
     * enable this with their own rendezvous.
     *
     * @param rendezvous a rendezvous of all ranks of the communicator, with the same rank numbers; must stay open while
     *     the communicator is used
     * @return this builder
     */
    public CommunicatorBuilder check(Rendezvous rendezvous) {
        settings = settings.withCheck(Objects.requireNonNull(rendezvous, "rendezvous"));
        return this;
    }

    /**
     * Sets the number of operations that the {@link FlightRecorder} keeps. Default: {@value
     * FlightRecorder#DEFAULT_KEPT}, in 12 KiB.
     *
     * @param operations the number, from 1 to 2^20 - 1; rounded up to one less than a power of two
     * @return this builder
     * @throws IllegalArgumentException if the number is out of range
     */
    public CommunicatorBuilder flightRecorder(int operations) {
        if (operations < 1 || operations >= 1 << 20) {
            throw new IllegalArgumentException("operations must be >= 1 and < 2^20: " + operations);
        }
        settings = settings.withRecorded(operations);
        return this;
    }

    /**
     * Creates this rank of a communicator. Collective: returns when all ranks have called it.
     *
     * <p>A blocking communicator is created in a thread of its own, so that this call can end at the deadline. After
     * the deadline that thread stays in NCCL, which has no function to end it; with {@link
     * CommunicatorConfig.Builder#blocking blocking(false)} no thread is left behind.
     *
     * <p>C functions: {@code ncclCommInitRank}, with a configuration {@code ncclCommInitRankConfig}.
     *
     * @param id the id that one rank created
     * @param rank this rank, from 0
     * @param size the number of ranks
     * @return the communicator, to be closed by the caller
     * @throws IllegalArgumentException if rank or size are out of range, or the library can't use the device
     * @throws NcclLibraryException if the library does not know a field of the configuration
     * @throws NcclTimeoutException if not all ranks have joined by the deadline
     * @throws NcclResultException if NCCL fails
     * @throws IllegalStateException if the system cannot create the thread that enforces the deadline
     */
    public Communicator create(UniqueId id, int rank, int size) {
        return create(List.of(Objects.requireNonNull(id, "id")), rank, size);
    }

    /**
     * As {@link #create(UniqueId, int, int)} with several ids, which speed up the creation of large communicators.
     *
     * <p>C function: {@code ncclCommInitRankScalable}, since NCCL 2.23.4; with a single id as {@link #create(UniqueId,
     * int, int)}.
     *
     * @param ids the ids, each created by another rank; the same in the same order on all ranks
     * @param rank this rank, from 0
     * @param size the number of ranks
     * @return the communicator, to be closed by the caller
     * @throws IllegalArgumentException also if there is no id, or if there are more ids than ranks
     * @throws NcclLibraryException also if there are several ids and the library lacks the function
     */
    public Communicator create(List<UniqueId> ids, int rank, int size) {
        requireRank(rank, size);
        if (ids.isEmpty() || ids.size() > size) {
            throw new IllegalArgumentException(
                    "the number of ids must be >= 1 and <= size: " + ids.size() + ", size " + size);
        }
        for (int i = 0; i < ids.size(); i++) {
            Objects.requireNonNull(ids.get(i), "ids[" + i + "]");
        }
        return create(ids, rank, size, chosenDevice());
    }

    /**
     * Creates the communicator of all ranks of a rendezvous. Collective: the ranks first exchange their engines and
     * GPUs, and rank 0 creates the id. If no device was set, and the launcher of this process has set its local rank, the
     * local rank determines the device.
     *
     * <p>The deadline applies once to the exchange and once to the creation. If a rank fails before the creation, for
     * example because it has no library or device, the other ranks get its reason at once. After a failure the
     * rendezvous is unusable: use a {@linkplain Rendezvous#scope scope} of it for each attempt.
     *
     * <p>If the rendezvous {@linkplain Rendezvous#membership reports lost ranks}, as {@link TcpStore} does, all calls and
     * waits of this communicator, and of those derived from it, end at once when one of their ranks is lost, with a {@link
     * NcclRemoteException}. The rendezvous must stay open for this.
     *
     * <p>C functions: {@code ncclGetUniqueId} on rank 0, and those of {@link #create(UniqueId, int, int)}.
     *
     * @param rendezvous the rendezvous of the ranks, which the caller closes
     * @return the communicator, to be closed by the caller
     * @throws IllegalArgumentException if the library can't use the device
     * @throws NcclLibraryException if no library can be loaded, or it does not know a field of the configuration
     * @throws RendezvousException if not all ranks have joined by the deadline, a rank has failed, two ranks use the
     *     same GPU, or the ranks use different engines
     * @throws NcclTimeoutException if the communicator was not created by the deadline
     * @throws NcclResultException if NCCL fails
     * @throws IllegalStateException if the system cannot create the thread that enforces the deadline
     */
    public Communicator create(Rendezvous rendezvous) {
        return create(rendezvous, choice().ofProcess());
    }

    /**
     * Creates the communicator of all ranks of this process's job, as described by its launcher. Collective.
     *
     * <p>Rank and number of ranks come from {@link RankInfo#fromEnvironment()}. If no device was set, the local rank
     * determines the device; {@link Rendezvous#locate} determines the local rank if the launcher does not provide it.
     * The ranks meet at {@link TcpStore#ofProcess}. Without a launcher the communicator has one rank. All ranks of the
     * job must make these calls in the same order.
     *
     * @return the communicator, to be closed by the caller
     * @throws IllegalArgumentException if the environment is incomplete or inconsistent, or the library can't use the
     *     device
     * @throws IndexOutOfBoundsException if the process sees no CUDA device and the library needs one
     * @throws NcclLibraryException if no library can be loaded, or it does not know a field of the configuration
     * @throws RendezvousException as {@link #create(Rendezvous)}
     * @throws NcclTimeoutException if the communicator was not created by the deadline
     * @throws NcclResultException if NCCL fails
     * @throws IllegalStateException if the system cannot create the thread that enforces the deadline
     */
    public Communicator fromEnvironment() {
        RankInfo self = RankInfo.fromEnvironment();
        if (self.worldSize() == 1) {
            // A single rank needs no rendezvous, and no port for it.
            return create(
                    List.of(UniqueId.create()),
                    0,
                    1,
                    device == null ? Device.of(OwnDevice.find(self)) : chosenDevice());
        }
        OwnDevice own = choice().ofRank(self);
        if (self.rank() > 0) {
            RankHandshake.requireDevice(own, self);
        }
        Rendezvous rendezvous = RankHandshake.nextOfJob(self, settings.deadline());
        return create(rendezvous, choice().locate(own, self, rendezvous));
    }

    private DeviceChoice choice() {
        return new DeviceChoice(() -> chosenDevice().nativeDevice, device != null, settings.deadline());
    }

    /** As {@link DeviceChoice#ofStore}. */
    OwnDevice ownDevice(Store store, String scope) {
        return choice().ofStore(store, scope);
    }

    Communicator create(Rendezvous rendezvous, OwnDevice own) {
        PeerWatch peers = new PeerWatch();
        // From now on the end of this process is a loss for the others.
        Membership creating = peers.enter(rendezvous, "creating", rendezvous.rank());
        try {
            return create(rendezvous, own, peers);
        } finally {
            if (creating != null) {
                creating.close();
            }
        }
    }

    private Communicator create(Rendezvous rendezvous, OwnDevice own, PeerWatch peers) {
        RankHandshake handshake = new RankHandshake(rendezvous, settings.deadline());
        handshake.exchangeDescriptions(own);
        // Both take a while; meanwhile, the device is initialised.
        Gate.prepare();
        UniqueId made = rendezvous.rank() == 0 ? handshake.orReport(UniqueId::create) : null;
        Device on = Device.of(handshake.orReport(own::get));
        UniqueId id = UniqueId.of(handshake.broadcastId(() -> made.toBytes()));
        CommunicatorSettings given = settings;
        settings = settings.withRendezvous(rendezvous);
        if (Boolean.getBoolean("nccl4j.check") && settings.check() == null) {
            settings = settings.withCheck(rendezvous);
        }
        try {
            return handshake.orReport(() -> create(List.of(id), rendezvous.rank(), rendezvous.size(), on, peers));
        } finally {
            settings = given;
        }
    }

    Duration deadline() {
        return settings.deadline();
    }

    private static void requireRank(int rank, int size) {
        if (size < 1) {
            throw new IllegalArgumentException("size must be >= 1: " + size);
        }
        if (rank < 0 || rank >= size) {
            throw new IllegalArgumentException("rank must be >= 0 and < size: " + rank + ", size " + size);
        }
    }

    private Communicator create(List<UniqueId> ids, int rank, int size, Device on) {
        return create(ids, rank, size, on, new PeerWatch());
    }

    private Communicator create(List<UniqueId> ids, int rank, int size, Device on, PeerWatch peers) {
        settings.requireChecked(rank, 1, size);
        NcclLibrary library = NcclLibrary.get();
        if (System.getenv(NcclEncryption.FILE_VARIABLE) != null) {
            NcclEncryption.enableFromEnvironment();
        }
        if (ids.size() > 1) {
            library.require("ncclCommInitRankScalable");
        }
        NativeArguments arguments = CommunicatorConfig.arguments(config, ids, library);
        Communicator communicator = empty(library, on);
        CommunicatorCore core = communicator.core();
        core.expect(rank, size);
        core.ranks().setKey(key(ids.get(0)));
        // Before the creation, which waits for the other ranks.
        core.ranks().watchPeers(peers);
        new Creation(
                        initFunction(ids),
                        core,
                        null,
                        arguments,
                        () -> init(core, arguments, ids.size(), rank, size),
                        () -> core.created(rank, size))
                .callNow();
        return communicator;
    }

    static CommunicatorKey key(UniqueId id) {
        return new CommunicatorKey(id, id.fingerprint());
    }

    private String initFunction(List<UniqueId> ids) {
        return ids.size() > 1
                ? "ncclCommInitRankScalable"
                : config == null ? "ncclCommInitRank" : "ncclCommInitRankConfig";
    }

    private static int init(CommunicatorCore core, NativeArguments arguments, int ids, int rank, int size) {
        if (ids > 1) {
            return nccl.ncclCommInitRankScalable(
                    core.calls().handleCell(), size, rank, ids, arguments.ids(), arguments.config());
        }
        return arguments.config() == 0
                ? nccl.ncclCommInitRank(core.calls().handleCell(), size, arguments.ids(), rank)
                : nccl.ncclCommInitRankConfig(
                        core.calls().handleCell(), size, arguments.ids(), rank, arguments.config());
    }

    /**
     * Creates a communicator with one rank in this process per device, and no other ranks.
     *
     * <p>C functions: those of {@link #create(UniqueId, int, int)} in a group, as {@code ncclCommInitAll} does it.
     *
     * @param devices the device of each rank; only host memory may occur several times
     * @return the communicators by rank, each to be closed by the caller
     * @throws IllegalArgumentException if there is no device, or the same CUDA device twice without
     *     {@code NCCL_MULTI_RANK_GPU_ENABLE=1}
     * @throws NcclResultException if NCCL fails
     */
    public List<Communicator> createAll(List<Device> devices) {
        // Checked before an id is created, for which NCCL opens a port.
        requireDevices(NcclLibrary.get(), devices);
        settings.requireChecked(0, devices.size(), devices.size());
        return createAll(UniqueId.create(), 0, devices.size(), devices);
    }

    /**
     * Creates several ranks of a communicator in this process. Collective. Their rank numbers are consecutive.
     *
     * <p>C functions: as {@link #createAll(List)}.
     *
     * @param id the id that one process created
     * @param firstRank the rank of the first device
     * @param size the number of all ranks
     * @param devices the devices of this process; only host memory may occur several times
     * @return the communicators of this process by rank, each to be closed by the caller
     * @throws IllegalArgumentException if there is no device, the same CUDA device twice without
     *     {@code NCCL_MULTI_RANK_GPU_ENABLE=1}, or a rank is out of range
     * @throws NcclTimeoutException if not all ranks have joined by the deadline
     * @throws NcclResultException if NCCL fails
     */
    public List<Communicator> createAll(UniqueId id, int firstRank, int size, List<Device> devices) {
        Objects.requireNonNull(id, "id");
        NcclLibrary library = NcclLibrary.get();
        requireDevices(library, devices);
        requireRank(firstRank, size);
        settings.requireChecked(firstRank, devices.size(), size);
        if (devices.size() > size - firstRank) {
            throw new IllegalArgumentException("firstRank + the number of devices must be <= size: " + firstRank + " + "
                    + devices.size() + " > " + size);
        }
        List<Communicator> all = new ArrayList<>();
        List<Creation> creations = new ArrayList<>();
        List<UniqueId> ids = List.of(id);
        for (int i = 0; i < devices.size(); i++) {
            int rank = firstRank + i;
            NativeArguments arguments = CommunicatorConfig.arguments(config, ids, library);
            Communicator communicator = empty(library, devices.get(i));
            CommunicatorCore core = communicator.core();
            core.expect(rank, size);
            core.ranks().setKey(key(id));
            all.add(communicator);
            creations.add(new Creation(
                    initFunction(ids),
                    core,
                    null,
                    arguments,
                    () -> core.calls().onDevice(() -> init(core, arguments, 1, rank, size)),
                    () -> core.created(rank, size)));
        }
        Creation.callTogether(creations);
        return Collections.unmodifiableList(all);
    }

    private static void requireDevices(NcclLibrary library, List<Device> devices) {
        if (devices.isEmpty()) {
            throw new IllegalArgumentException("the number of devices must be >= 1: 0");
        }
        Set<Device> different = new HashSet<>();
        for (Device one : devices) {
            requireUsable(library, one);
            if (one.isCuda() && !different.add(one) && !library.sharesGpus()) {
                throw new IllegalArgumentException("a device must occur once: " + one + " was given twice");
            }
        }
    }

    /**
     * Joins a growing communicator as one of its new ranks. Collective, together with {@link Communicator#grow} of the
     * existing ranks.
     *
     * <p>C function: {@code ncclCommGrow}, since NCCL 2.29.2.
     *
     * @param id the result of {@link Communicator#growId}
     * @param rank this rank, one of the new ones
     * @param size the number of ranks after growing
     * @return the communicator, to be closed by the caller
     * @throws IllegalArgumentException if rank or size are out of range
     * @throws NcclLibraryException if the library lacks the function
     * @throws NcclTimeoutException if not all ranks have joined by the deadline
     * @throws NcclResultException if NCCL fails
     */
    public Communicator join(UniqueId id, int rank, int size) {
        Objects.requireNonNull(id, "id");
        requireRank(rank, size);
        return join(id, rank, size, choice().chosen(), null);
    }

    /** The ranks can name the communicator, and are watched, only if {@code peers} is not null. */
    private Communicator join(UniqueId id, int rank, int size, OwnDevice own, PeerWatch peers) {
        NcclLibrary library = NcclLibrary.get();
        library.require("ncclCommGrow");
        Device on = Device.of(own.get());
        NativeArguments arguments = CommunicatorConfig.arguments(config, List.of(id), library);
        Communicator communicator = empty(library, on);
        CommunicatorCore core = communicator.core();
        core.expect(rank, size);
        if (peers != null) {
            core.ranks().setKey(key(id));
            core.ranks().watchPeers(peers);
        }
        new Creation(
                        "ncclCommGrow",
                        core,
                        null,
                        arguments,
                        () -> nccl.ncclCommGrow(
                                0, size, arguments.ids(), rank, core.calls().handleCell(), arguments.config()),
                        () -> core.created(rank, size))
                .callNow();
        return communicator;
    }

    /** As {@link #join(UniqueId, int, int)}, as the rank of a rendezvous of all ranks after growing. Collective. */
    Communicator join(Rendezvous all, OwnDevice own) {
        PeerWatch peers = new PeerWatch();
        Membership growing = peers.enter(all, "growing", all.rank());
        CommunicatorSettings given = settings;
        try {
            RankHandshake handshake = new RankHandshake(all, settings.deadline());
            handshake.exchangeDescriptions(own);
            UniqueId id = UniqueId.of(handshake.broadcastId(null));
            settings = settings.withRendezvous(all);
            return join(id, all.rank(), all.size(), own, peers);
        } finally {
            settings = given;
            if (growing != null) {
                growing.close();
            }
        }
    }

    private Device chosenDevice() {
        Device chosen = device == null ? Device.current() : device;
        requireUsable(NcclLibrary.get(), chosen);
        return chosen;
    }

    /** Checks that the engine supports the device's kind of memory. */
    static void requireUsable(NcclLibrary library, Device device) {
        Objects.requireNonNull(device, "device");
        if (library.engine() == Engine.HOST != device.isHost()) {
            throw new IllegalArgumentException(
                    "device must be one that the library can use: " + device + ", " + library);
        }
    }

    private Communicator empty(NcclLibrary library, Device on) {
        Object blocking = config == null ? null : config.values().get("blocking");
        Object name = config == null ? null : config.values().get("commName");
        return new Communicator(
                library,
                on,
                blocking == null || (Boolean) blocking,
                true,
                settings,
                policy,
                name == null ? "" : (String) name);
    }

    /** Wraps a native communicator; the owner destroys it. */
    static Communicator ofHandle(long handle, Device device, boolean owner) {
        if (handle == 0) {
            throw new IllegalArgumentException("handle must not be 0");
        }
        NcclLibrary library = NcclLibrary.get();
        requireUsable(library, device);
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
        Communicator communicator =
                new Communicator(library, device, true, owner, CommunicatorSettings.DEFAULT, FailurePolicy.THROW, "");
        CommunicatorCore core = communicator.core();
        // Other ranks may be in this process; this cannot be known here.
        core.ranks().setKey(CommunicatorKey.UNKNOWN);
        core.opened(handle, rank, size);
        return communicator;
    }
}

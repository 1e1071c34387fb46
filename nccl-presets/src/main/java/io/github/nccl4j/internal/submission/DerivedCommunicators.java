package io.github.nccl4j.internal.submission;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.ShrinkFlag;
import io.github.nccl4j.highlevel.UniqueId;
import io.github.nccl4j.internal.communicator.CommunicatorCore;
import io.github.nccl4j.internal.communicator.CommunicatorKey;
import io.github.nccl4j.internal.communicator.CommunicatorSettings;
import io.github.nccl4j.internal.communicator.CommunicatorState;
import io.github.nccl4j.internal.communicator.Creation;
import io.github.nccl4j.internal.communicator.OwnDevice;
import io.github.nccl4j.internal.communicator.RankHandshake;
import io.github.nccl4j.internal.config.NativeArguments;
import io.github.nccl4j.internal.config.ReportedFaults;
import io.github.nccl4j.internal.memory.NativeMemory;
import io.github.nccl4j.internal.operation.Deferred;
import io.github.nccl4j.internal.threads.Gate;
import io.github.nccl4j.launch.Membership;
import io.github.nccl4j.launch.Rendezvous;
import java.util.Collection;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.function.Supplier;

/**
 * Creation of communicators from another one, their parent. For the parent's thread.
 *
 * @param <C> the type of the objects that programs use
 */
public final class DerivedCommunicators<C> {
    private final CommunicatorCore core;
    private final Maker<C> maker;
    private final Function<C, CommunicatorCore> coreOf;
    private final Function<UniqueId, CommunicatorKey> keyOf;

    /** Makes the arguments of a call without a configuration, from the ids. */
    private final Function<List<UniqueId>, NativeArguments> argumentsOf;

    /** Number of communicators that were derived by collective calls. */
    private int made;

    /** The id for a growth that this rank has created and not used; or null. */
    private UniqueId growId;

    /** Makes the object of a new communicator. */
    @FunctionalInterface
    public interface Maker<C> {
        C make(boolean blocking, CommunicatorSettings settings, String name);
    }

    public DerivedCommunicators(
            CommunicatorCore core,
            Maker<C> maker,
            Function<C, CommunicatorCore> coreOf,
            Function<UniqueId, CommunicatorKey> keyOf,
            Function<List<UniqueId>, NativeArguments> argumentsOf) {
        this.core = core;
        this.maker = maker;
        this.coreOf = coreOf;
        this.keyOf = keyOf;
        this.argumentsOf = argumentsOf;
    }

    /** A C call that derives a communicator from another one. */
    @FunctionalInterface
    private interface Call {
        int call(long parent, long cell, long config);
    }

    public C split(int color, int key) {
        return split(color, key, null, () -> argumentsOf.apply(List.of()));
    }

    /**
     * Splits the communicator.
     *
     * @param config the fields of the configuration of the new communicator; null for that of the parent
     * @param arguments makes the arguments of the call
     */
    public C split(int color, int key, Map<String, Object> config, Supplier<NativeArguments> arguments) {
        if (color < 0) {
            throw new IllegalArgumentException(
                    "color must be >= 0: " + color + "; splitNone() creates no communicator");
        }
        core.require("ncclCommSplit");
        if (config != null) {
            ReportedFaults.warnOnce(ReportedFaults.ofSplit(core.library().engine(), config));
        }
        return derive(
                "ncclCommSplit",
                config,
                keyOfChild(color),
                core.settings(),
                true,
                arguments.get(),
                (parent, cell, settings) -> nccl.ncclCommSplit(parent, color, key, cell, settings));
    }

    /** Takes part in a split without a communicator for this rank. */
    public void splitNone() {
        core.require("ncclCommSplit");
        keyOfChild(-1);
        NativeMemory cell = new NativeMemory(Long.BYTES);
        Deferred call = new Deferred() {
            @Override
            public int call() {
                return core.calls()
                        .onDevice(
                                () -> nccl.ncclCommSplit(core.handle(), nccl.NCCL_SPLIT_NOCOLOR, 0, cell.address(), 0));
            }

            @Override
            public void completed() {
                cell.close();
            }

            @Override
            public void discarded() {
                // An abandoned call may still write to the cell.
                if (!core.isStuckNow()) {
                    cell.close();
                }
            }

            @Override
            public String toString() {
                return "ncclCommSplit";
            }
        };
        Batch.call(core, call, EnumSet.of(CommunicatorState.OPEN, CommunicatorState.REVOKED));
    }

    public C shrink(Collection<Integer> excluded, ShrinkFlag flag) {
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
            core.requireRank("an excluded rank", excludedRank);
            if (excludedRank == core.rank()) {
                throw new IllegalArgumentException("a rank must not exclude itself: " + excludedRank);
            }
        }
        core.require("ncclCommShrink");
        return derive(
                "ncclCommShrink",
                null,
                keyOfChild(0),
                core.settings(),
                true,
                argumentsOf.apply(List.of()),
                (parent, cell, settings) ->
                        nccl.ncclCommShrink(parent, ranks, ranks.length, cell, settings, flag.code()));
    }

    public UniqueId growId() {
        core.require("ncclCommGetUniqueId");
        return core.exclusively("used", EnumSet.of(CommunicatorState.OPEN), () -> {
            try (NativeMemory id = new NativeMemory(UniqueId.BYTES)) {
                core.calls()
                        .hostCall(
                                "ncclCommGetUniqueId",
                                () -> nccl.ncclCommGetUniqueId(core.handle(), id.address()),
                                () -> {});
                byte[] bytes = new byte[UniqueId.BYTES];
                id.buffer().get(bytes);
                growId = UniqueId.of(bytes);
                return growId;
            }
        });
    }

    public C grow(int newSize) {
        if (newSize <= core.size()) {
            throw new IllegalArgumentException("newSize must be > size(): " + newSize + ", size " + core.size());
        }
        core.require("ncclCommGrow");
        // NCCL requires that the rank that has created the id passes it itself.
        List<UniqueId> id = growId == null ? List.of() : List.of(growId);
        NativeArguments arguments = argumentsOf.apply(id);
        long address = id.isEmpty() ? 0 : arguments.ids();
        C grown = derive(
                "ncclCommGrow",
                null,
                keyOfChild(0),
                core.settings(),
                false,
                arguments,
                (parent, cell, settings) -> nccl.ncclCommGrow(parent, newSize, address, -1, cell, settings));
        growId = null;
        return grown;
    }

    /** Grows together with {@code CommunicatorBuilder.join} of the new ranks, all of which meet at a rendezvous. */
    public C grow(Rendezvous all) {
        core.require("ncclCommGrow");
        // The lost ranks of this communicator end the call; those that join are among them until it returns.
        Membership growing = core.peers().enter(all, "growing", all.rank());
        try {
            RankHandshake handshake = new RankHandshake(all, core.deadline());
            handshake.exchangeDescriptions(OwnDevice.of(core::device));
            UniqueId id = UniqueId.of(handshake.broadcastId(() -> growId().toBytes()));
            List<UniqueId> own = growId == null ? List.of() : List.of(growId);
            NativeArguments arguments = argumentsOf.apply(own);
            long address = own.isEmpty() ? 0 : arguments.ids();
            return derive(
                    "ncclCommGrow",
                    null,
                    keyOf.apply(id),
                    core.settings().withRendezvous(all),
                    false,
                    arguments,
                    (parent, cell, settings) -> nccl.ncclCommGrow(parent, all.size(), address, -1, cell, settings));
        } finally {
            growId = null;
            if (growing != null) {
                growing.close();
            }
        }
    }

    private C derive(
            String function,
            Map<String, Object> config,
            CommunicatorKey key,
            CommunicatorSettings settings,
            boolean alsoRevoked,
            NativeArguments arguments,
            Call call) {
        Object blocking = config == null ? (Object) core.isBlocking() : config.getOrDefault("blocking", true);
        Object name = config == null ? null : config.get("commName");
        C child = maker.make((Boolean) blocking, settings, name == null ? "" : (String) name);
        CommunicatorCore childCore = coreOf.apply(child);
        childCore.ranks().setKey(key, core.ranks());
        Creation creation = new Creation(
                function,
                childCore,
                core,
                arguments,
                () -> core.calls()
                        .onDevice(
                                () -> call.call(core.handle(), childCore.calls().handleCell(), arguments.config())),
                childCore::created);
        make(creation, alsoRevoked);
        return child;
    }

    /** The key of the next communicator that all ranks, or all ranks of a color, derive from this communicator. */
    private CommunicatorKey keyOfChild(int color) {
        CommunicatorKey key = core.ranks().key();
        return key == null ? null : key.child(made++, color);
    }

    /** Creates another communicator, immediately or at the launch of the open group. */
    private void make(Creation creation, boolean alsoRevoked) {
        Batch open = Batch.current();
        if (open != null) {
            boolean added = false;
            try {
                open.add(core, creation);
                added = true;
            } finally {
                if (!added) {
                    creation.cancelled();
                }
            }
            return;
        }
        boolean begun = false;
        Gate.Pass pass = core.gate().enterBarred();
        try {
            CommunicatorState seen = core.state();
            if (seen != CommunicatorState.OPEN && !(alsoRevoked && seen == CommunicatorState.REVOKED)) {
                throw core.notOpen(seen);
            }
            begun = true;
            creation.callNow();
        } finally {
            pass.leave();
            if (!begun) {
                creation.cancelled();
            }
        }
    }
}

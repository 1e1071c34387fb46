package io.github.nccl4j.internal.log;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.CallInterceptor;
import io.github.nccl4j.highlevel.CallInterceptor.Call;
import io.github.nccl4j.internal.binding.CallHook;
import io.github.nccl4j.internal.memory.Address;
import java.lang.System.Logger.Level;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import org.bytedeco.javacpp.LongPointer;

/** Passes the calls that native code reports to the installed interceptors. */
public final class Interception implements CallHook.Listener {
    private static final int COMMUNICATOR = 1;
    private static final int COUNT = 2;
    private static final int TYPE = 3;
    private static final int STREAM = 4;

    /** Of ncclAlltoAllv. */
    private static final int ARGUMENTS_OF_RCCL = 9;

    private static final List<CallInterceptor> INSTALLED = new CopyOnWriteArrayList<>();

    /** Never released: native code may still report the end of a call under way. */
    private static Interception callback;

    /** The current call of a thread. */
    private final ThreadLocal<UnderWay> underWay = new ThreadLocal<>();

    /** A call under way, the interceptors that were notified of its start, and the start time. */
    private record UnderWay(Call call, List<CallInterceptor> notified, long start) {}

    private Interception() {}

    public static CallInterceptor.Installed install(CallInterceptor interceptor) {
        synchronized (INSTALLED) {
            INSTALLED.add(interceptor);
            if (callback == null) {
                callback = new Interception();
            }
            if (INSTALLED.size() == 1) {
                CallHook.start(callback);
            }
        }
        AtomicBoolean ended = new AtomicBoolean();
        return () -> {
            if (ended.compareAndSet(false, true)) {
                remove(interceptor);
            }
        };
    }

    private static void remove(CallInterceptor interceptor) {
        synchronized (INSTALLED) {
            INSTALLED.remove(interceptor);
            if (INSTALLED.isEmpty()) {
                CallHook.stop();
            }
        }
    }

    @Override
    public void call(int slot, boolean after, long[] arguments, byte[] kinds, long result) {
        try {
            if (!after) {
                Call call = describe(CallHook.functionName(slot), arguments, kinds);
                List<CallInterceptor> notified = List.copyOf(INSTALLED);
                notified.forEach(interceptor -> runGuarded(() -> interceptor.before(call)));
                underWay.set(new UnderWay(call, notified, System.nanoTime()));
            } else {
                UnderWay ended = underWay.get();
                underWay.remove();
                if (ended != null) {
                    long time = System.nanoTime() - ended.start();
                    ended.notified().forEach(one -> runGuarded(() -> one.after(ended.call(), (int) result, time)));
                }
            }
        } catch (RuntimeException | Error e) {
            // An exception must not propagate through native code into the call.
            warn(e);
        }
    }

    private static void runGuarded(Runnable callback) {
        try {
            callback.run();
        } catch (RuntimeException | Error e) {
            warn(e);
        }
    }

    private static void warn(Throwable failure) {
        System.getLogger("io.github.nccl4j").log(Level.WARNING, "an interceptor of calls failed", failure);
    }

    private static Call describe(String function, long[] arguments, byte[] kinds) {
        long communicator = 0;
        long elements = 0;
        int type = -1;
        long stream = 0;
        for (int i = 0; i < arguments.length; i++) {
            long word = arguments[i];
            switch (kinds[i]) {
                case COMMUNICATOR -> communicator = word;
                case COUNT -> elements = elements == 0 ? word : elements;
                case TYPE -> type = (int) word;
                case STREAM -> stream = word;
                default -> {}
            }
        }
        Optional<KnownCommunicators.Member> member = KnownCommunicators.of(communicator);
        return new Call(
                function,
                communicator,
                member.map(KnownCommunicators.Member::rank).orElse(-1),
                member.map(KnownCommunicators.Member::name).orElse(""),
                // Functions such as ncclMemAlloc have a size in bytes, not a count of elements.
                type < 0 ? 0 : function.equals("ncclAlltoAllv") ? sentByThisRank(communicator, arguments) : elements,
                type,
                stream);
    }

    /** The elements that this rank sends by ncclAlltoAllv. VCCL takes the counts of all ranks, RCCL of this rank. */
    private static long sentByThisRank(long communicator, long[] arguments) {
        int[] rank = new int[1];
        int[] size = new int[1];
        long counts = arguments[1];
        boolean isRow = arguments.length == ARGUMENTS_OF_RCCL;
        if (counts == 0
                || nccl.pncclCommUserRank(communicator, rank) != nccl.ncclSuccess
                || nccl.pncclCommCount(communicator, size) != nccl.ncclSuccess) {
            return 0;
        }
        long[] row = new long[size[0]];
        new LongPointer(new Address(counts))
                .position(isRow ? 0 : (long) rank[0] * row.length)
                .get(row);
        return Arrays.stream(row).sum();
    }
}

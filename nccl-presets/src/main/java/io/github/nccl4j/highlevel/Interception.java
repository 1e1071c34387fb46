package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.CallInterceptor.Call;
import io.github.nccl4j.library.CallHook;
import java.lang.System.Logger.Level;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import org.bytedeco.javacpp.LongPointer;

/** Hands the calls that native code tells of to the interceptors that are installed. */
final class Interception implements CallHook.Listener {
    private static final int COMMUNICATOR = 1;
    private static final int COUNT = 2;
    private static final int TYPE = 3;
    private static final int STREAM = 4;

    private static final List<CallInterceptor> INSTALLED = new CopyOnWriteArrayList<>();

    /** Kept for ever: a call that is under way may still tell of its end. */
    private static Interception callback;

    /** The call that a thread is in. */
    private final ThreadLocal<UnderWay> underWay = new ThreadLocal<>();

    /** A call, who was told of its beginning, and when that was. */
    private record UnderWay(Call call, List<CallInterceptor> told, long start) {}

    private Interception() {}

    static CallInterceptor.Installed install(CallInterceptor interceptor) {
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
                List<CallInterceptor> told = List.copyOf(INSTALLED);
                told.forEach(interceptor -> guarded(() -> interceptor.before(call)));
                underWay.set(new UnderWay(call, told, System.nanoTime()));
            } else {
                UnderWay ended = underWay.get();
                underWay.remove();
                if (ended != null) {
                    long time = System.nanoTime() - ended.start();
                    ended.told().forEach(one -> guarded(() -> one.after(ended.call(), (int) result, time)));
                }
            }
        } catch (RuntimeException | Error e) {
            // An exception would go through the library's caller, in the middle of a call.
            warn(e);
        }
    }

    private static void guarded(Runnable told) {
        try {
            told.run();
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
                // ncclMemAlloc and others have a size, which is no count of elements.
                type < 0 ? 0 : function.equals("ncclAlltoAllv") ? sentByThisRank(communicator, arguments) : elements,
                type,
                stream);
    }

    /** The elements that a rank sends by ncclAlltoAllv, from the counts of all ranks for VCCL, of this rank for RCCL. */
    private static long sentByThisRank(long communicator, long[] arguments) {
        int[] rank = new int[1];
        int[] size = new int[1];
        long counts = arguments[1];
        boolean isRow = AlltoAllvForm.of(arguments.length) == AlltoAllvForm.NINE_ARGUMENTS;
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

package io.github.nccl4j.highlevel;

import java.lang.System.Logger.Level;
import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/**
 * The ranks of one communicator that are in this process. NCCL frees what all of them have when the last is destroyed, and
 * waits for all their devices to do it. A rank that has gone on by then, with a collective in which the last one is still
 * to take part, would be waited for in vain. So ranks in different threads, which close together, wait for the last.
 *
 * <p>One thread that closes several ranks, one after the other, must not wait. Whether threads will come is not known, so
 * that waiting is short, and is not tried again in vain.
 */
final class ProcessRanks {
    private static final Duration PATIENCE = Duration.ofSeconds(1);
    private static final Duration EXIT_PATIENCE = Duration.ofSeconds(10);
    private static final Map<Object, ProcessRanks> ALL = new HashMap<>();
    private static final Set<Thread> FREEING = new HashSet<>();
    /** The name of a communicator of which it is not known who else has a rank. */
    static final Object UNKNOWN = new Object();

    private static boolean hooked;

    private final Object key;
    /** Weakly, so that one which is dropped without being closed is noticed. */
    private final List<WeakReference<CommunicatorCore>> open = new ArrayList<>();

    private int members;
    /** Ranks that are being destroyed, or were. */
    private int leaving;

    private int left;
    private boolean someWentOn;

    private ProcessRanks(Object key) {
        this.key = key;
    }

    /** Names a communicator that all ranks make from another one by the same call. */
    record Child(Object parent, int call, int color) {}

    /** A name in words, the same in all processes. */
    static String text(Object key) {
        if (key instanceof Child child) {
            return text(child.parent) + "." + child.call + "." + child.color;
        }
        return key instanceof UniqueId id ? id.fingerprint() : "unknown";
    }

    static ProcessRanks join(Object key, CommunicatorCore member) {
        synchronized (ALL) {
            ProcessRanks ranks = key == UNKNOWN ? new ProcessRanks(key) : ALL.computeIfAbsent(key, ProcessRanks::new);
            ranks.members++;
            ranks.open.add(new WeakReference<>(member));
            return ranks;
        }
    }

    /**
     * Frees a member, and waits for the others where they are about to do the same.
     *
     * @param waits whether to wait: for what has not come to be, nobody does
     */
    void leave(CommunicatorCore member, boolean waits, Runnable free) {
        boolean last;
        boolean background;
        synchronized (ALL) {
            open.removeIf(one -> one.refersTo(member));
            leaving++;
            last = leaving == members;
            background = key == UNKNOWN || members > 1 && (last && someWentOn || !waits);
        }
        if (background) {
            inBackground(member, free);
            return;
        }
        try {
            free.run();
        } finally {
            gone();
        }
        if (waits) {
            // Also who has come last: another one may be freed by a thread that is slower.
            awaitOthers(member.deadline());
        }
    }

    private void gone() {
        synchronized (ALL) {
            left++;
            if (left == members) {
                ALL.remove(key);
            }
            ALL.notifyAll();
        }
    }

    private void awaitOthers(Duration deadline) {
        long start = System.nanoTime();
        boolean interrupted = false;
        synchronized (ALL) {
            while (left < members && (leaving > left || othersMayCome())) {
                Duration limit = leaving == members ? deadline : PATIENCE;
                long rest = Waiting.nanoseconds(limit) - (System.nanoTime() - start);
                if (rest <= 0) {
                    someWentOn = true;
                    break;
                }
                try {
                    TimeUnit.NANOSECONDS.timedWait(ALL, rest);
                } catch (InterruptedException e) {
                    interrupted = true;
                }
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /** Whether another thread than this one has a rank of it, and was not waited for in vain. */
    private boolean othersMayCome() {
        if (someWentOn) {
            return false;
        }
        for (WeakReference<CommunicatorCore> one : open) {
            CommunicatorCore member = one.get();
            Thread user = member == null ? null : member.user();
            if (user != null && user != Thread.currentThread() && user.isAlive()) {
                return true;
            }
        }
        return false;
    }

    private void inBackground(CommunicatorCore member, Runnable free) {
        Thread thread = new Thread(
                () -> {
                    try {
                        free.run();
                    } catch (RuntimeException e) {
                        System.getLogger("io.github.nccl4j").log(Level.WARNING, member + " could not be freed", e);
                    } finally {
                        gone();
                        synchronized (FREEING) {
                            FREEING.remove(Thread.currentThread());
                        }
                    }
                },
                "nccl4j end");
        thread.setDaemon(true);
        synchronized (FREEING) {
            FREEING.add(thread);
            if (!hooked) {
                hooked = true;
                Runtime.getRuntime().addShutdownHook(new Thread(ProcessRanks::awaitFreeing, "nccl4j exit"));
            }
        }
        thread.start();
    }

    /** The process must not end while NCCL frees: it would find its own memory gone. */
    static void awaitFreeing() {
        List<Thread> all;
        synchronized (FREEING) {
            all = new ArrayList<>(FREEING);
        }
        long deadline = System.nanoTime() + EXIT_PATIENCE.toNanos();
        try {
            for (Thread thread : all) {
                thread.join(Math.max(1, (deadline - System.nanoTime()) / 1_000_000));
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}

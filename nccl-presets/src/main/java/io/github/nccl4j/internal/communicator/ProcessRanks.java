package io.github.nccl4j.internal.communicator;

import io.github.nccl4j.internal.threads.DaemonThreads;
import io.github.nccl4j.internal.threads.ExitWait;
import io.github.nccl4j.internal.threads.ServiceLoop;
import io.github.nccl4j.internal.threads.Timeouts;
import java.lang.System.Logger.Level;
import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/**
 * The ranks of one communicator that are in this process. When the last of them is destroyed, NCCL waits for the
 * devices of all and frees their resources. If a rank had already started its next collective, which the last rank has
 * yet to join, NCCL would wait for that device forever. Therefore ranks that threads close together wait until the last
 * one is destroyed.
 *
 * <p>A thread that closes several ranks one after the other must not wait. This class cannot know whether other threads
 * will close their ranks, so the wait is short and is not repeated after it timed out.
 */
public final class ProcessRanks {
    private static final Duration PATIENCE = Duration.ofSeconds(1);
    private static final Duration EXIT_PATIENCE = Duration.ofSeconds(10);
    private static final Map<CommunicatorKey, ProcessRanks> ALL = new HashMap<>();

    /** A rank of this process. */
    public interface Member {
        Duration deadline();

        /** The thread that uses the rank now, or null. */
        Thread user();
    }

    private final CommunicatorKey key;
    /** Weak, so that a communicator that is dropped without being closed is reported as a leak. */
    private final List<WeakReference<Member>> open = new ArrayList<>();

    private int members;
    /** Number of ranks that are being destroyed or were destroyed. */
    private int leaving;

    private int left;
    private boolean waitWasInVain;
    /** True if the ranks finalize before they are destroyed; empty until the first of them decides. */
    private Optional<Boolean> finalizes = Optional.empty();

    private ProcessRanks(CommunicatorKey key) {
        this.key = key;
    }

    /** Adds a rank that was created. */
    public static ProcessRanks join(CommunicatorKey key, Member member) {
        synchronized (ALL) {
            ProcessRanks ranks = key.isKnown() ? ALL.computeIfAbsent(key, ProcessRanks::new) : new ProcessRanks(key);
            ranks.members++;
            ranks.open.add(new WeakReference<>(member));
            return ranks;
        }
    }

    /**
     * Returns true if a rank finalizes before it is destroyed: where the process has no other rank. From NCCL 2.31 on,
     * finalizing waits for all ranks of the process, so a thread that closes them one after the other must destroy them
     * at once: the destruction of the last rank finalizes all. All ranks get the answer of the first one.
     */
    public boolean isFinalizedAlone() {
        synchronized (ALL) {
            if (finalizes.isEmpty()) {
                finalizes = Optional.of(members == 1);
            }
            return finalizes.get();
        }
    }

    /** Has the remaining ranks finalize, because a program has finalized one of them. */
    public void setFinalized() {
        synchronized (ALL) {
            finalizes = Optional.of(true);
        }
    }

    /**
     * Frees a rank, and waits for the other ranks if threads are about to free them, too.
     *
     * @param waits true to wait; false for a communicator whose creation failed
     */
    public void leave(Member member, boolean waits, Runnable free) {
        boolean last;
        boolean background;
        synchronized (ALL) {
            open.removeIf(reference -> reference.refersTo(member));
            leaving++;
            last = leaving == members;
            background = !key.isKnown() || members > 1 && (last && waitWasInVain || !waits);
        }
        if (background) {
            freeInBackground(member, free);
            return;
        }
        try {
            free.run();
        } finally {
            markLeft();
        }
        if (waits) {
            // The last rank waits, too: another thread may still be freeing its rank.
            awaitOthers(member.deadline());
        }
    }

    private void markLeft() {
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
                long rest = Timeouts.nanoseconds(limit) - (System.nanoTime() - start);
                if (rest <= 0) {
                    waitWasInVain = true;
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

    /** Returns true if another thread uses a rank of the communicator, and no wait has timed out so far. */
    private boolean othersMayCome() {
        if (waitWasInVain) {
            return false;
        }
        for (WeakReference<Member> reference : open) {
            Member member = reference.get();
            Thread user = member == null ? null : member.user();
            if (user != null && user != Thread.currentThread() && user.isAlive()) {
                return true;
            }
        }
        return false;
    }

    private void freeInBackground(Member member, Runnable free) {
        // If the process ended meanwhile, NCCL would access memory that is gone.
        ExitWait exit = ExitWait.begin(EXIT_PATIENCE);
        DaemonThreads.startOrRun("nccl4j end", () -> {
            try {
                free.run();
            } catch (RuntimeException | Error e) {
                ServiceLoop.log(Level.WARNING, member + " could not be freed", e);
            } finally {
                markLeft();
                exit.close();
            }
        });
    }
}

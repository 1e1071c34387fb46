package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.threads.Suppressed;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.BooleanSupplier;

/**
 * What a communicator owns and closes with itself: windows, registrations, operators, plans and communicators; the CUDA
 * graphs that have captured its operations; and what abandoned calls may still use.
 *
 * <p>For any thread.
 */
final class OwnedResources {
    /** True if nothing may wait for NCCL or the device. */
    private final BooleanSupplier mayNeverEnd;

    private final List<AutoCloseable> owned = new ArrayList<>();

    /** Releases of resources that abandoned calls may still use. */
    private final List<Runnable> kept = new ArrayList<>();

    /** True after {@link #kept} was released. Guarded by that list. */
    private boolean keepsNothing;

    private final Set<CudaGraph> graphs = new HashSet<>();

    OwnedResources(BooleanSupplier mayNeverEnd) {
        this.mayNeverEnd = mayNeverEnd;
    }

    /** A resource that ends with the native communicator. */
    interface Dependent extends AutoCloseable {
        /** Releases what the resource keeps, because the native communicator is gone; makes no native call. */
        void abandon();

        @Override
        void close();
    }

    void own(AutoCloseable resource) {
        synchronized (owned) {
            owned.add(resource);
        }
    }

    void disown(AutoCloseable resource) {
        synchronized (owned) {
            owned.remove(resource);
        }
    }

    /** Runs a release after the native communicator has ended; immediately if it has already ended. */
    void keepUntilEnded(Runnable release) {
        synchronized (kept) {
            if (!keepsNothing) {
                kept.add(release);
                return;
            }
        }
        release.run();
    }

    void releaseKept() {
        List<Runnable> all;
        synchronized (kept) {
            keepsNothing = true;
            all = List.copyOf(kept);
            kept.clear();
        }
        all.forEach(PendingReleases::release);
    }

    /** The owned resources, newest first. */
    private List<AutoCloseable> newestFirst() {
        synchronized (owned) {
            List<AutoCloseable> all = new ArrayList<>(owned);
            Collections.reverse(all);
            return all;
        }
    }

    /** Registers a graph that has captured operations: NCCL does not free the communicator before the graph is destroyed. */
    void registerGraph(CudaGraph graph) {
        synchronized (graphs) {
            if (graphs.add(graph)) {
                graph.onClose(() -> {
                    synchronized (graphs) {
                        graphs.remove(graph);
                    }
                });
            }
        }
    }

    RuntimeException closeGraphs() {
        List<CudaGraph> all;
        synchronized (graphs) {
            all = new ArrayList<>(graphs);
        }
        RuntimeException problem = null;
        for (CudaGraph graph : all) {
            try {
                graph.close();
            } catch (RuntimeException e) {
                problem = Suppressed.first(problem, e);
            }
        }
        return problem;
    }

    RuntimeException closeAll() {
        RuntimeException problem = closeGraphs();
        for (AutoCloseable one : newestFirst()) {
            if (mayNeverEnd.getAsBoolean()) {
                break;
            }
            try {
                one.close();
                if (!(one instanceof Dependent)) {
                    disown(one);
                }
            } catch (RuntimeException e) {
                problem = Suppressed.first(problem, e);
            } catch (Exception e) {
                problem = Suppressed.first(problem, new IllegalStateException(e));
            }
        }
        return problem;
    }

    /** The owned resources of a type, newest first. */
    <C> List<C> owned(Class<C> type) {
        return newestFirst().stream().filter(type::isInstance).map(type::cast).toList();
    }

    /**
     * Releases the resources that end with the native communicator. Must run after the native communicator has ended,
     * since the device may use memory until an abort.
     */
    void abandonAll() {
        for (AutoCloseable one : newestFirst()) {
            disown(one);
            if (one instanceof Dependent resource) {
                resource.abandon();
            }
        }
    }
}

package io.github.nccl4j.internal.communicator;

import io.github.nccl4j.internal.threads.Suppressed;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.BooleanSupplier;

/**
 * The resources that a communicator owns and closes with itself: windows, registrations, operators, plans and
 * communicators; the CUDA graphs that have captured its operations; and resources that abandoned calls may still use.
 *
 * <p>For any thread.
 */
public final class OwnedResources {
    /** True if nothing may wait for NCCL or the device. */
    private final BooleanSupplier mayNeverEnd;

    private final List<AutoCloseable> owned = new ArrayList<>();

    /** Releases of resources that abandoned calls may still use. */
    private final List<Runnable> kept = new ArrayList<>();

    /** True after {@link #kept} was released. Guarded by that list. */
    private boolean keepsNothing;

    private final Set<AutoCloseable> graphs = new HashSet<>();

    public OwnedResources(BooleanSupplier mayNeverEnd) {
        this.mayNeverEnd = mayNeverEnd;
    }

    /** A resource that ends with the native communicator. */
    public interface Dependent extends AutoCloseable {
        /** Releases the kept resources, because the native communicator has ended; makes no native call. */
        void abandon();

        @Override
        void close();
    }

    public void own(AutoCloseable resource) {
        synchronized (owned) {
            owned.add(resource);
        }
    }

    public void disown(AutoCloseable resource) {
        synchronized (owned) {
            owned.remove(resource);
        }
    }

    /** Runs a release after the native communicator has ended; immediately if it has already ended. */
    public void keepUntilEnded(Runnable release) {
        synchronized (kept) {
            if (!keepsNothing) {
                kept.add(release);
                return;
            }
        }
        release.run();
    }

    /** Returns the releases that are due, because the native communicator has ended. Later ones run at once. */
    public List<Runnable> takeKept() {
        synchronized (kept) {
            keepsNothing = true;
            List<Runnable> all = List.copyOf(kept);
            kept.clear();
            return all;
        }
    }

    /** The owned resources, newest first. */
    private List<AutoCloseable> newestFirst() {
        synchronized (owned) {
            List<AutoCloseable> all = new ArrayList<>(owned);
            Collections.reverse(all);
            return all;
        }
    }

    /**
     * Adds a graph that has captured operations: NCCL does not free the communicator before the graph is destroyed.
     *
     * @return false if it was added before
     */
    public boolean addGraph(AutoCloseable graph) {
        synchronized (graphs) {
            return graphs.add(graph);
        }
    }

    public void removeGraph(AutoCloseable graph) {
        synchronized (graphs) {
            graphs.remove(graph);
        }
    }

    /** Closes the graphs; returns the first exception or null. */
    public RuntimeException closeGraphs() {
        List<AutoCloseable> all;
        synchronized (graphs) {
            all = new ArrayList<>(graphs);
        }
        RuntimeException problem = null;
        for (AutoCloseable graph : all) {
            problem = close(graph, problem);
        }
        return problem;
    }

    private static RuntimeException close(AutoCloseable resource, RuntimeException earlier) {
        try {
            resource.close();
            return earlier;
        } catch (RuntimeException e) {
            return Suppressed.first(earlier, e);
        } catch (Exception e) {
            return Suppressed.first(earlier, new IllegalStateException(e));
        }
    }

    /** Closes graphs and resources, the newest first; returns the first exception or null. */
    public RuntimeException closeAll() {
        RuntimeException problem = closeGraphs();
        for (AutoCloseable one : newestFirst()) {
            if (mayNeverEnd.getAsBoolean()) {
                break;
            }
            RuntimeException failure = close(one, null);
            if (failure == null && !(one instanceof Dependent)) {
                disown(one);
            }
            problem = failure == null ? problem : Suppressed.first(problem, failure);
        }
        return problem;
    }

    /** The owned resources of a type, newest first. */
    public <C> List<C> owned(Class<C> type) {
        return newestFirst().stream().filter(type::isInstance).map(type::cast).toList();
    }

    /**
     * Releases the resources that end with the native communicator. Must run after the native communicator has ended,
     * since the device may use memory until an abort.
     */
    public void abandonAll() {
        for (AutoCloseable one : newestFirst()) {
            disown(one);
            if (one instanceof Dependent resource) {
                resource.abandon();
            }
        }
    }
}

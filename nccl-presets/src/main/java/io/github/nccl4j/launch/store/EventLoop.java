package io.github.nccl4j.launch.store;

import io.github.nccl4j.internal.threads.DaemonThreads;
import io.github.nccl4j.internal.threads.ServiceLoop;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.System.Logger.Level;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedSelectorException;
import java.nio.channels.SelectableChannel;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.util.ArrayList;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.LongSupplier;

/**
 * One daemon thread that serves non-blocking channels and timers. Handlers, timers and tasks run in this thread only;
 * {@link #execute} hands a task to it from another thread. What they throw does not end the thread.
 */
final class EventLoop implements Executor {
    private static final int INPUT_BYTES = 1 << 16;

    static final Shared OF_CLIENTS = new Shared("nccl4j-store-client");

    /** A loop that exists while it has users. Thread-safe. */
    static final class Shared {
        private final String name;
        private EventLoop loop;
        private int users;

        Shared(String name) {
            this.name = name;
        }

        /** Returns the loop. Each caller calls {@link #release} once. */
        synchronized EventLoop acquire() throws IOException {
            if (users == 0) {
                loop = new EventLoop(name);
            }
            users++;
            return loop;
        }

        synchronized void release() {
            users--;
            if (users == 0) {
                loop.close();
                loop = null;
            }
        }

        synchronized int users() {
            return users;
        }
    }

    /** Serves a channel; the attachment of the channel's key. */
    interface Handler {
        /** Called when the channel is ready for an operation in its interest set. An exception closes the channel. */
        void handleReady(SelectionKey key) throws IOException;

        /** Called after {@link EventLoop#close(SelectionKey, IOException)} has closed the channel. */
        void handleClose(IOException why);
    }

    private final Selector selector;
    private final Thread thread;
    private final ByteBuffer input = ByteBuffer.allocateDirect(INPUT_BYTES);
    private final Queue<Runnable> tasks = new ConcurrentLinkedQueue<>();
    private final AtomicBoolean woken = new AtomicBoolean();
    private final TimerQueue timers;
    private volatile boolean closing;
    /** The reason that the thread gives its channels when it ends. */
    private IOException end = new IOException("the store's thread has ended");

    EventLoop(String name) throws IOException {
        this(name, System::nanoTime);
    }

    /** Creates a loop whose timers have a clock that returns nanoseconds, as {@link System#nanoTime()} does. */
    EventLoop(String name, LongSupplier clock) throws IOException {
        timers = new TimerQueue(clock);
        selector = Selector.open();
        thread = DaemonThreads.create(name, this::run);
        boolean started = false;
        try {
            DaemonThreads.start(thread);
            started = true;
        } finally {
            if (!started) {
                selector.close();
            }
        }
    }

    /** Returns the loop that all clients of this process share. Each caller calls {@link #releaseByClient} once. */
    static EventLoop acquireForClient() throws IOException {
        return OF_CLIENTS.acquire();
    }

    static void releaseByClient() {
        OF_CLIENTS.release();
    }

    /** Runs a task in the loop's thread, after the tasks that were added before. From any thread. */
    @Override
    public void execute(Runnable task) {
        tasks.add(task);
        if (Thread.currentThread() != thread && woken.compareAndSet(false, true)) {
            selector.wakeup();
        }
    }

    /** Ends the thread, which closes the registered channels first. Does not wait. From any thread. */
    void close() {
        closing = true;
        selector.wakeup();
    }

    /** Waits until the thread has ended. The ports of its channels are free only then. */
    void awaitEnd(long millis) throws InterruptedException {
        thread.join(millis);
    }

    /* In the loop's thread. */

    SelectionKey register(SelectableChannel channel, int operations, Handler handler) throws IOException {
        channel.configureBlocking(false);
        return channel.register(selector, operations, handler);
    }

    /** Returns the cleared buffer into which handlers read; valid until the handler returns. */
    ByteBuffer input() {
        return input.clear();
    }

    TimerQueue timers() {
        return timers;
    }

    /** The current time of the clock of the timers, in nanoseconds. From any thread. */
    long now() {
        return timers.now();
    }

    private void run() {
        ServiceLoop.run(thread.getName(), this::serveOnce);
        ServiceLoop.run(thread.getName(), () -> {
            closeAll(end);
            // Callers may wait for tasks that were added meanwhile.
            runTasks();
            return false;
        });
    }

    /** Returns false if the thread ends. */
    private boolean serveOnce() {
        if (closing) {
            return false;
        }
        try {
            if (tasks.isEmpty()) {
                selector.select(EventLoop::serve, selectTimeoutMillis());
            } else {
                selector.selectNow(EventLoop::serve);
            }
        } catch (IOException | UncheckedIOException | ClosedSelectorException failure) {
            end = new IOException("the store's thread failed: " + failure, failure);
            closing = true;
            return false;
        }
        woken.set(false);
        runTasks();
        timers.runDue(EventLoop::runTimer);
        return true;
    }

    private void runTasks() {
        for (Runnable task = tasks.poll(); task != null; task = tasks.poll()) {
            runSafely(task);
        }
    }

    private long selectTimeoutMillis() {
        if (timers.isEmpty()) {
            return 0;
        }
        // A timeout of 0 waits forever.
        return Math.max(1, (timers.nanosLeft() + 999_999) / 1_000_000);
    }

    private static void serve(SelectionKey key) {
        Handler handler = (Handler) key.attachment();
        try {
            if (key.isValid()) {
                handler.handleReady(key);
            }
        } catch (IOException expected) {
            close(key, expected);
        } catch (RuntimeException | Error failure) {
            // Also without memory: a part of a frame may be lost.
            close(key, new IOException(failure));
        }
    }

    /** Closes a channel, then calls its handler. */
    static void close(SelectionKey key, IOException why) {
        try {
            key.channel().close();
        } catch (IOException ignored) {
            // The channel is not used again.
        }
        ((Handler) key.attachment()).handleClose(why);
    }

    private static void runSafely(Runnable task) {
        try {
            task.run();
        } catch (RuntimeException | Error bug) {
            ServiceLoop.log(Level.ERROR, "a task of the store failed", bug);
        }
    }

    /** As {@link #runSafely}, but a timer runs again if there is no memory: it may be one that repeats. */
    private static void runTimer(Runnable action) {
        try {
            action.run();
        } catch (OutOfMemoryError none) {
            throw none;
        } catch (RuntimeException | Error bug) {
            ServiceLoop.log(Level.ERROR, "a task of the store failed", bug);
        }
    }

    private void closeAll(IOException why) {
        for (SelectionKey key : new ArrayList<>(selector.keys())) {
            if (key.isValid()) {
                close(key, why);
            }
        }
        try {
            selector.close();
        } catch (IOException ignored) {
            // The selector is not used again.
        }
    }
}

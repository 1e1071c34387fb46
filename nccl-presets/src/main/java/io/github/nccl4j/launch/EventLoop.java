package io.github.nccl4j.launch;

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
import java.util.TreeSet;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * A thread that serves channels and timers. Everything that belongs to a loop is touched by its thread alone;
 * {@link #execute} hands work over to it.
 */
final class EventLoop implements Executor {
    private static final int INPUT_BYTES = 1 << 16;

    private static EventLoop ofClients;
    private static int clients;

    /** Serves a channel; it is the attachment of its key. */
    interface Handler {
        /** The channel is ready for what the key asked for. Throws when it can't be served any more. */
        void ready(SelectionKey key) throws IOException;

        /** The channel was closed: by an exception of {@link #ready}, or with the loop. */
        void closed(IOException why);
    }

    /** Something to be done later. */
    static final class Timer implements Comparable<Timer> {
        private final long at;
        private final long number;
        private final Runnable action;

        private Timer(long at, long number, Runnable action) {
            this.at = at;
            this.number = number;
            this.action = action;
        }

        @Override
        public int compareTo(Timer other) {
            // Differences, because System.nanoTime() may wrap.
            return at != other.at ? Long.signum(at - other.at) : Long.compare(number, other.number);
        }
    }

    private final Selector selector;
    private final Thread thread;
    private final ByteBuffer input = ByteBuffer.allocateDirect(INPUT_BYTES);
    private final Queue<Runnable> tasks = new ConcurrentLinkedQueue<>();
    private final AtomicBoolean woken = new AtomicBoolean();
    private final TreeSet<Timer> timers = new TreeSet<>();
    private long timersMade;
    private volatile boolean closing;

    EventLoop(String name) throws IOException {
        selector = Selector.open();
        thread = new Thread(this::run, name);
        thread.setDaemon(true);
        thread.start();
    }

    /** The loop of all clients of this process; each that gets it calls {@link #releaseByClient} once. */
    static synchronized EventLoop acquireForClient() throws IOException {
        if (clients == 0) {
            ofClients = new EventLoop("nccl4j-store-client");
        }
        clients++;
        return ofClients;
    }

    static synchronized void releaseByClient() {
        clients--;
        if (clients == 0) {
            ofClients.close();
            ofClients = null;
        }
    }

    /** Has the loop's thread do something, soon. */
    @Override
    public void execute(Runnable task) {
        tasks.add(task);
        if (Thread.currentThread() != thread && woken.compareAndSet(false, true)) {
            selector.wakeup();
        }
    }

    /** Ends the thread; channels that are still registered are closed. */
    void close() {
        closing = true;
        selector.wakeup();
    }

    /** Waits until the thread has ended: only then are the ports of its channels free. */
    void awaitEnd(long millis) throws InterruptedException {
        thread.join(millis);
    }

    /* Of the loop's thread. */

    SelectionKey register(SelectableChannel channel, int operations, Handler handler) throws IOException {
        channel.configureBlocking(false);
        return channel.register(selector, operations, handler);
    }

    /** Where channels put what they read, until they return. */
    ByteBuffer input() {
        return input.clear();
    }

    Timer schedule(long nanoTime, Runnable action) {
        Timer timer = new Timer(nanoTime, timersMade++, action);
        timers.add(timer);
        return timer;
    }

    void cancel(Timer timer) {
        if (timer != null) {
            timers.remove(timer);
        }
    }

    private void run() {
        IOException end = new IOException("closed");
        try {
            while (!closing) {
                if (tasks.isEmpty()) {
                    selector.select(EventLoop::serve, pause());
                } else {
                    selector.selectNow(EventLoop::serve);
                }
                woken.set(false);
                for (Runnable task = tasks.poll(); task != null; task = tasks.poll()) {
                    attempt(task);
                }
                runTimers();
            }
        } catch (IOException | UncheckedIOException | ClosedSelectorException failure) {
            end = new IOException("the store's thread failed: " + failure, failure);
        } finally {
            closing = true;
            closeAll(end);
            // What came meanwhile would be waited for.
            for (Runnable task = tasks.poll(); task != null; task = tasks.poll()) {
                attempt(task);
            }
        }
    }

    private long pause() {
        if (timers.isEmpty()) {
            return 0;
        }
        long left = timers.first().at - System.nanoTime();
        // 0 would be for ever.
        return Math.max(1, (left + 999_999) / 1_000_000);
    }

    private static void serve(SelectionKey key) {
        Handler handler = (Handler) key.attachment();
        try {
            if (key.isValid()) {
                handler.ready(key);
            }
        } catch (IOException | RuntimeException failure) {
            close(key, failure instanceof IOException expected ? expected : new IOException(failure));
        }
    }

    /** Closes a channel and tells its handler. */
    static void close(SelectionKey key, IOException why) {
        try {
            key.channel().close();
        } catch (IOException ignored) {
            // It is of no use any more.
        }
        ((Handler) key.attachment()).closed(why);
    }

    private void runTimers() {
        while (!timers.isEmpty() && timers.first().at - System.nanoTime() <= 0) {
            attempt(timers.pollFirst().action);
        }
    }

    private static void attempt(Runnable task) {
        try {
            task.run();
        } catch (RuntimeException bug) {
            // One that fails must not end what serves all.
            System.getLogger("io.github.nccl4j").log(Level.ERROR, "a task of the store failed", bug);
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
            // It is of no use any more.
        }
    }
}

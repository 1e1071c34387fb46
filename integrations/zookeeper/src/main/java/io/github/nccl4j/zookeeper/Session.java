package io.github.nccl4j.zookeeper;

import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.RendezvousTimeoutException;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.BooleanSupplier;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.api.BackgroundCallback;
import org.apache.curator.framework.api.CuratorEvent;
import org.apache.curator.framework.api.transaction.CuratorOp;
import org.apache.curator.framework.api.transaction.TransactionOp;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.KeeperException.Code;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.Stat;

/**
 * The session of one rank, or of an observer: requests that Curator repeats on any server of the ensemble until they are answered
 * or the session has ended, and one thread for what is done in the background. Thread-safe.
 */
final class Session implements AutoCloseable {
    private static final System.Logger LOG = System.getLogger("io.github.nccl4j");

    /** Limit for the end of the session when the process ends or the store is closed. */
    private static final long CLOSE_SECONDS = 2;

    private final CuratorFramework client;
    private final String name;
    private final String consequence;
    private final Set<CompletableFuture<CuratorEvent>> pending = ConcurrentHashMap.newKeySet();
    private final Watcher signalling = event -> signal();
    private final ExecutorService worker;
    private final Thread atExit = new Thread(this::endAtExit, "nccl4j-zookeeper-end");

    /** Time for a shutdown hook of the program to close the communicators and the store, as at the TCP store. */
    private static final long EXIT_SECONDS = 2;

    /** Limit for the response to a request: a session that has no connection ends earlier. */
    private long responseNanos;

    private volatile long logAfter = WaitLog.USUAL_NANOS;
    private volatile BooleanSupplier inUse = () -> false;
    private volatile Runnable onLoss = () -> {};
    private String marks = "";
    private volatile boolean closing;
    private volatile boolean closed;
    private volatile String loss;
    /** Number of the events that may end a wait. */
    private long events;

    /**
     * Creates the session.
     *
     * @param client a client that has not been started
     * @param name names the rank and the ensemble, such as "rank 2 at ZooKeeper zk1:2181,zk2:2181"
     * @param consequence the text after that of the loss of the session
     */
    Session(CuratorFramework client, String name, String consequence) {
        this.client = client;
        this.name = name;
        this.consequence = consequence;
        worker = new ThreadPoolExecutor(1, 1, 0, TimeUnit.SECONDS, new LinkedBlockingQueue<>(), task -> {
            Thread thread = new Thread(task, "nccl4j-zookeeper");
            thread.setDaemon(true);
            return thread;
        });
    }

    /** Connects to the ensemble. */
    void start(Duration timeout, Duration wanted) {
        responseNanos = 2 * wanted.toNanos();
        client.getConnectionStateListenable().addListener((same, state) -> {
            if (state == ConnectionState.LOST) {
                lose();
            }
        });
        client.start();
        Runtime.getRuntime().addShutdownHook(atExit);
        try {
            if (!client.blockUntilConnected(Text.millis(timeout), TimeUnit.MILLISECONDS)) {
                throw new RendezvousTimeoutException(
                        name + " could not connect within " + Text.seconds(timeout.toNanos()), List.of());
            }
            long granted = client.getZookeeperClient().getZooKeeper().getSessionTimeout();
            responseNanos = 2 * TimeUnit.MILLISECONDS.toNanos(granted);
            if (granted != wanted.toMillis()) {
                LOG.log(
                        Level.WARNING,
                        name + " has a session timeout of " + granted + " ms instead of " + wanted.toMillis()
                                + " ms: the limits of the ensemble are 2 and 20 times its tickTime, unless it sets others");
            }
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new RendezvousException(name + " was interrupted while it connected", interrupted);
        } catch (RendezvousException failure) {
            throw failure;
        } catch (Exception failure) {
            throw new RendezvousException(name + " could not connect: " + failure.getMessage(), failure);
        }
    }

    /** Sets what is done in the background when the session is lost. */
    void onLoss(Runnable action) {
        onLoss = action;
    }

    /** Sets whether the program uses what it should close before the session ends. */
    void inUse(BooleanSupplier use) {
        inUse = use;
    }

    /** Sets the node whose children mark changes that were made. */
    void marks(String path) {
        marks = path;
    }

    CuratorFramework client() {
        return client;
    }

    /** Names the rank and the ensemble. */
    String name() {
        return name;
    }

    /** The time in which the end of a process is noticed, and a half of it for the clock of the ensemble. */
    long noticeNanos() {
        return responseNanos * 3 / 4;
    }

    /** Does something in the background, one after another; nothing after the end of the session. */
    void inBackground(Runnable task) {
        try {
            worker.execute(() -> {
                try {
                    task.run();
                } catch (RuntimeException | Error failure) {
                    if (!closing && loss == null) {
                        LOG.log(Level.WARNING, name + " failed in the background", failure);
                    }
                }
            });
        } catch (RejectedExecutionException ended) {
            // The store is closed.
        }
    }

    /* The state of the session. */

    private void lose() {
        synchronized (this) {
            if (loss != null || closing) {
                return;
            }
            loss = name
                    + " has lost its session: no server responded within the session timeout, or the ensemble has ended it"
                    + consequence;
            events++;
            notifyAll();
        }
        LOG.log(Level.WARNING, consequence.isEmpty() ? loss : loss + ", and it is not told of lost ranks any more");
        failPending();
        inBackground(onLoss);
        inBackground(client::close);
    }

    private void failPending() {
        List<CompletableFuture<CuratorEvent>> all = new ArrayList<>(pending);
        all.forEach(each -> each.completeExceptionally(ended()));
    }

    private RendezvousException ended() {
        return new RendezvousException(loss == null ? name + ": the store was closed" : loss);
    }

    /** Lets calls that wait end, and refuses further ones of callers. */
    synchronized boolean beginClose() {
        if (closing) {
            return false;
        }
        closing = true;
        events++;
        notifyAll();
        return true;
    }

    boolean isLost() {
        return loss != null;
    }

    void requireNotClosed() {
        if (closing) {
            throw new IllegalStateException("the store is closed");
        }
    }

    /** Called when a call begins. */
    void requireOpen() {
        requireNotClosed();
        requireSession();
    }

    /** Called while a call waits: the end of the session ends the wait. */
    void requireNotEnded() {
        if (loss != null || closing) {
            throw ended();
        }
    }

    private void requireSession() {
        if (loss != null || closed) {
            throw ended();
        }
    }

    @Override
    public void close() {
        beginClose();
        end();
        worker.shutdown();
        try {
            Runtime.getRuntime().removeShutdownHook(atExit);
        } catch (IllegalStateException exiting) {
            // The process ends: the hook does nothing any more.
        }
    }

    /**
     * Ends the session when the process ends: first waits while the program is in a group, whose members would take the end of
     * the session for a loss, or closes the store. The order of shutdown hooks is not defined.
     */
    void endAtExit() {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(EXIT_SECONDS);
        long seen = events();
        while (!closed && loss == null && (closing || inUse.getAsBoolean()) && awaitEvent(seen, deadline, "exit")) {
            seen = events();
        }
        end();
    }

    /** Ends the session: the ensemble is told, so that it removes the nodes of this rank at once. */
    private void end() {
        closed = true;
        signal();
        CompletableFuture<Void> ended = CompletableFuture.runAsync(client::close, task -> {
            Thread thread = new Thread(task, "nccl4j-zookeeper-close");
            thread.setDaemon(true);
            thread.start();
        });
        try {
            ended.get(CLOSE_SECONDS, TimeUnit.SECONDS);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        } catch (ExecutionException | TimeoutException unreachable) {
            // The session ends at its timeout.
        }
        failPending();
    }

    /* Waiting for events. */

    synchronized void signal() {
        events++;
        notifyAll();
    }

    synchronized long events() {
        return events;
    }

    /** Sets after which time a wait is logged. */
    void logWaitsAfter(long nanos) {
        logAfter = nanos;
    }

    /** Begins a wait that is logged if it takes long. */
    WaitLog beginWait() {
        return new WaitLog(logAfter);
    }

    /** As {@link #awaitEvent(long, long, String)}; logs for what this waits. */
    boolean awaitEvent(long seen, long deadline, String subject, WaitLog log) {
        while (true) {
            long due = log.due();
            if (awaitEvent(seen, due - deadline < 0 ? due : deadline, subject)) {
                return true;
            }
            if (deadline - System.nanoTime() <= 0) {
                return false;
            }
            log.logIfDue(nanos -> name + " waits for '" + subject + "' (" + Text.seconds(nanos) + " so far)");
        }
    }

    /** Waits until there were other events than those seen before; returns false if the deadline has passed. */
    synchronized boolean awaitEvent(long seen, long deadline, String subject) {
        while (events == seen) {
            long left = deadline - System.nanoTime();
            if (left <= 0) {
                return false;
            }
            try {
                TimeUnit.NANOSECONDS.timedWait(this, left);
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
                throw interrupted(subject, interrupted);
            }
        }
        return true;
    }

    private RendezvousException interrupted(String subject, InterruptedException cause) {
        return new RendezvousException(name + " was interrupted while it waited for '" + subject + "'", cause);
    }

    /* Requests. */

    private interface Request {
        void send(BackgroundCallback callback) throws Exception;
    }

    private CompletableFuture<CuratorEvent> send(Request request) {
        requireSession();
        CompletableFuture<CuratorEvent> response = new CompletableFuture<>();
        pending.add(response);
        response.whenComplete((event, failure) -> pending.remove(response));
        try {
            request.send((same, event) -> response.complete(event));
        } catch (Exception failure) {
            response.completeExceptionally(loss != null || closed ? ended() : failure);
        }
        if (loss != null || closed) {
            response.completeExceptionally(ended());
        }
        return response;
    }

    /** Waits for a response with one of some codes. */
    private CuratorEvent await(CompletableFuture<CuratorEvent> response, String path, Code... allowed) {
        CuratorEvent event;
        try {
            event = response.get(responseNanos, TimeUnit.NANOSECONDS);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw interrupted(path, interrupted);
        } catch (TimeoutException silent) {
            RendezvousTimeoutException late = new RendezvousTimeoutException(
                    name + " got no response for " + path + " within " + Text.seconds(responseNanos), List.of());
            late.initCause(silent);
            throw late;
        } catch (ExecutionException failure) {
            Throwable cause = failure.getCause();
            throw new RendezvousException(
                    cause instanceof RendezvousException
                            ? cause.getMessage()
                            : name + " failed at " + path + ": " + cause,
                    cause);
        } finally {
            response.cancel(false);
        }
        Code code = Code.get(event.getResultCode());
        if (code == Code.OK || List.of(allowed).contains(code)) {
            return event;
        }
        requireSession();
        throw new RendezvousException(
                switch (code) {
                    case NOAUTH ->
                        name + " may not use " + path
                                + ": the secret of the ranks that created it must be that of this process";
                    case NONODE ->
                        name + " found no " + path
                                + ": it was removed, or the path in the connect string does not exist";
                    default -> name + " failed at " + path + ": " + code;
                },
                KeeperException.create(code, path));
    }

    private static boolean is(CuratorEvent event, Code code) {
        return event.getResultCode() == code.intValue();
    }

    /** Creates a node; returns false if it exists. */
    boolean create(String path, byte[] data, CreateMode mode) {
        return is(
                await(
                        send(callback -> client.create()
                                .withMode(mode)
                                .inBackground(callback)
                                .forPath(path, data)),
                        path,
                        Code.NODEEXISTS),
                Code.OK);
    }

    /** Creates a node that stays, and those above it; does nothing if it exists. */
    void createWithParents(String path, byte[] data) {
        await(
                send(callback -> client.create()
                        .creatingParentsIfNeeded()
                        .withMode(CreateMode.PERSISTENT)
                        .inBackground(callback)
                        .forPath(path, data)),
                path,
                Code.NODEEXISTS);
    }

    /** Sets the data of a node; returns false if it does not exist. */
    boolean write(String path, byte[] data) {
        return is(
                await(send(callback -> client.setData().inBackground(callback).forPath(path, data)), path, Code.NONODE),
                Code.OK);
    }

    /** Data and state of a node. */
    record Node(byte[] data, Stat stat) {}

    private CompletableFuture<CuratorEvent> sendRead(String path) {
        return send(callback -> client.getData().inBackground(callback).forPath(path));
    }

    /** Returns a node, or null if it does not exist. */
    Node read(String path) {
        CuratorEvent event = await(sendRead(path), path, Code.NONODE);
        return is(event, Code.OK) ? new Node(event.getData(), event.getStat()) : null;
    }

    /** Returns the data of nodes that exist. */
    List<byte[]> readAll(Collection<String> paths) {
        return readAll(paths, new Code[0]);
    }

    /** Returns the data of nodes; null for a node that does not exist. */
    List<byte[]> readFound(Collection<String> paths) {
        return readAll(paths, Code.NONODE);
    }

    private List<byte[]> readAll(Collection<String> paths, Code... allowed) {
        List<CompletableFuture<CuratorEvent>> responses =
                paths.stream().map(this::sendRead).toList();
        List<byte[]> all = new ArrayList<>();
        int i = 0;
        for (String path : paths) {
            all.add(await(responses.get(i++), path, allowed).getData());
        }
        return all;
    }

    /** Returns the state of a node, or null if it does not exist. The next change of that signals an event. */
    Stat watch(String path) {
        return stat(path, signalling);
    }

    Stat stat(String path, Watcher watcher) {
        return await(
                        send(callback -> client.checkExists()
                                .usingWatcher(watcher)
                                .inBackground(callback)
                                .forPath(path)),
                        path,
                        Code.NONODE)
                .getStat();
    }

    /** Returns the state of a node, or null if it does not exist. */
    Stat stat(String path) {
        return await(
                        send(callback ->
                                client.checkExists().inBackground(callback).forPath(path)),
                        path,
                        Code.NONODE)
                .getStat();
    }

    /** Returns the access list of a node; null if it does not exist, or if this process may not read it. */
    List<ACL> accessList(String path) {
        CuratorEvent event = await(
                send(callback -> client.getACL().inBackground(callback).forPath(path)), path, Code.NONODE, Code.NOAUTH);
        return is(event, Code.OK) ? event.getACLList() : null;
    }

    /** Sets the access list of a node; does nothing if this process may not. */
    void setAccessList(String path, List<ACL> list) {
        await(
                send(callback ->
                        client.setACL().withACL(list).inBackground(callback).forPath(path)),
                path,
                Code.NONODE,
                Code.NOAUTH);
    }

    /** Returns the children of a node; empty if it does not exist. */
    List<String> children(String path) {
        return children(
                send(callback -> client.getChildren().inBackground(callback).forPath(path)), path);
    }

    /** As {@link #children(String)}; the next change of them signals an event. */
    List<String> watchChildren(String path) {
        return children(path, signalling);
    }

    List<String> children(String path, Watcher watcher) {
        return children(
                send(callback -> client.getChildren()
                        .usingWatcher(watcher)
                        .inBackground(callback)
                        .forPath(path)),
                path);
    }

    private List<String> children(CompletableFuture<CuratorEvent> response, String path) {
        CuratorEvent event = await(response, path, Code.NONODE);
        return is(event, Code.OK) ? event.getChildren() : List.of();
    }

    /** Deletes a node; returns false if it has children or does not exist. */
    boolean delete(String path) {
        return is(
                await(
                        send(callback -> client.delete().inBackground(callback).forPath(path)),
                        path,
                        Code.NONODE,
                        Code.NOTEMPTY),
                Code.OK);
    }

    /** Deletes a node and all below it. */
    void deleteTree(String path) {
        while (!delete(path)) {
            List<String> children = children(path);
            if (children.isEmpty() && stat(path) == null) {
                return;
            }
            children.forEach(child -> deleteTree(path + "/" + child));
        }
    }

    /** Returns when later reads see all that was written before this call. */
    void sync(String path) {
        await(send(callback -> client.sync().inBackground(callback).forPath(path)), path, Code.NONODE);
    }

    /** Changes that are made together. */
    interface Changes {
        List<CuratorOp> of(TransactionOp operations) throws Exception;
    }

    /**
     * Makes some changes together, exactly once: a change of which the response was lost is recognised by its mark.
     *
     * @return false if a node exists, does not exist, has another version, or has children
     */
    boolean change(String path, Changes changes) {
        String mark = marks + "/" + UUID.randomUUID();
        List<CuratorOp> all;
        try {
            all = new ArrayList<>(changes.of(client.transactionOp()));
            all.add(client.transactionOp()
                    .create()
                    .withMode(CreateMode.EPHEMERAL)
                    .forPath(mark));
        } catch (Exception failure) {
            requireSession();
            throw new IllegalStateException(failure);
        }
        CuratorEvent event = await(
                send(callback -> client.transaction().inBackground(callback).forOperations(all)),
                path,
                Code.NODEEXISTS,
                Code.NONODE,
                Code.BADVERSION,
                Code.NOTEMPTY);
        boolean done = is(event, Code.OK) || stat(mark) != null;
        if (done) {
            inBackground(() -> delete(mark));
        }
        return done;
    }
}

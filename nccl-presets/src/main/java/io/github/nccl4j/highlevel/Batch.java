package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.internal.cuda.Cuda;
import io.github.nccl4j.internal.memory.Address;
import io.github.nccl4j.internal.memory.NativeMemory;
import io.github.nccl4j.internal.operation.Deferred;
import io.github.nccl4j.internal.threads.Gate;
import io.github.nccl4j.internal.threads.SlowPath;
import io.github.nccl4j.internal.threads.Suppressed;
import io.github.nccl4j.internal.threads.VirtualThreads;
import io.github.nccl4j.library.StructInitializers;
import io.github.nccl4j.nccl.ncclSimInfo_t;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.ToIntFunction;
import org.bytedeco.javacpp.Loader;

/**
 * The operations and calls of a thread's open groups. A batch passes nothing to NCCL before the launch of the
 * outermost group, since NCCL can't discard operations of a group. The launch opens and ends the native group.
 *
 * <p>Confined to its thread. The thread's next group reuses the batch with its arrays.
 */
final class Batch {
    private static final ThreadLocal<Batch> OF_THREAD = ThreadLocal.withInitial(Batch::new);

    /* Layout of an operation in words. As few words as possible, since NCCL evicts most of the processor's cache. */

    /** Index of the communicator (32 bits), type (16 bits), operation (16 bits). */
    private static final int HEAD = 0;

    /** The send buffer; for a call with results its index in {@link #deferred}. */
    private static final int SEND = 1;

    private static final int RECV = 2;
    private static final int COUNT = 3;
    /** Operator and peer, 32 bits each. */
    private static final int OP_AND_PEER = 4;

    private static final int STREAM = 5;
    /** Offset of {@code ncclPutSignal}, or address of an operation's configuration. */
    private static final int OFFSET = 6;

    private static final int WORDS = 7;

    /** Operation code of a call with results. */
    private static final int DEFERRED = 0xffff;

    private final Thread thread = Thread.currentThread();
    private long[] words = new long[16 * WORDS];
    private int used;
    private final List<Object> pinned = new ArrayList<>();
    private final List<CommunicatorCore> communicators = new ArrayList<>();
    private final List<Deferred> deferred = new ArrayList<>();
    private final List<Group> groups = new ArrayList<>();
    /** The last pinned stream; usually also the stream of the next operation. */
    private CudaStream lastStream;
    /** True if a rank may send to itself or receive from itself. */
    private boolean toSelf;
    /** True if a call may have to precede the others. */
    private boolean anyAlone;
    /** True if an operation may have a configuration. */
    private boolean anyConfigured;
    /** True if the thread may be in NCCL. Other threads change the state of a communicator before they read this. */
    private volatile boolean inLibrary;

    private Batch() {}

    /** The start of a group, to which discarding the group returns. */
    record Mark(int used, int pinned, int deferred) {
        /** The mark of a group at the start of a batch. */
        private static final Mark NOTHING = new Mark(0, 0, 0);
    }

    /** The batch of this thread if the thread has an open group, else null. */
    static Batch current() {
        if (!SlowPath.isRequired()) {
            return null;
        }
        Batch batch = OF_THREAD.get();
        return batch.groups.isEmpty() ? null : batch;
    }

    /** As {@link #current}, faster for a communicator that takes part in the batch. */
    static Batch currentFor(CommunicatorCore communicator) {
        Batch batch = communicator.batch;
        return batch != null && batch.thread == Thread.currentThread() ? batch : current();
    }

    static Batch open(Group group) {
        Batch batch = OF_THREAD.get();
        if (batch.groups.isEmpty()) {
            SlowPath.begin();
        }
        batch.groups.add(group);
        return batch;
    }

    Thread thread() {
        return thread;
    }

    Mark mark() {
        boolean nothing = used == 0 && pinned.isEmpty() && deferred.isEmpty();
        return nothing ? Mark.NOTHING : new Mark(used, pinned.size(), deferred.size());
    }

    boolean isInnermost(Group group) {
        return groups.get(groups.size() - 1) == group;
    }

    boolean isOutermost(Group group) {
        return groups.get(0) == group;
    }

    int operations() {
        return used / WORDS;
    }

    /** Adds an operation. All arguments must have been checked. */
    void add(
            CommunicatorCore communicator,
            int operation,
            long send,
            long recv,
            long count,
            int type,
            int op,
            int peer,
            long offset,
            CudaStream stream) {
        if (stream != lastStream) {
            stream.pin();
            pinned.add(stream);
            lastStream = stream;
        }
        CudaGraph graph = CudaGraph.ofThread();
        if (graph != null) {
            communicator.registerGraph(graph);
        }
        int at = next(communicator, type << 16 | operation);
        toSelf |= (operation == Operations.SEND || operation == Operations.RECV) && peer == communicator.rank();
        long[] place = words;
        place[at + SEND] = send;
        place[at + RECV] = recv;
        place[at + COUNT] = count;
        place[at + OP_AND_PEER] = (long) op << 32 | peer & 0xffffffffL;
        place[at + STREAM] = stream.handle;
        // Only operations from PUT_SIGNAL on have an offset or a configuration.
        if (operation >= Operations.PUT_SIGNAL) {
            place[at + OFFSET] = offset;
        }
        used = at + WORDS;
    }

    /** Adds a call with results. */
    void add(CommunicatorCore communicator, Deferred call) {
        int at = next(communicator, DEFERRED);
        words[at + SEND] = deferred.size();
        anyAlone |= call.mustBeAlone();
        deferred.add(call);
        used = at + WORDS;
    }

    private int next(CommunicatorCore communicator, int typeAndOperation) {
        if (communicator.batch != this) {
            join(communicator);
        }
        if (used == words.length) {
            words = Arrays.copyOf(words, 2 * used);
        }
        words[used + HEAD] = (long) communicator.batchIndex << 32 | typeAndOperation;
        return used;
    }

    private void join(CommunicatorCore communicator) {
        if (!communicators.isEmpty()) {
            CommunicatorCore first = communicators.get(0);
            if (first.isBlocking() != communicator.isBlocking()) {
                throw new IllegalArgumentException(
                        "communicators of one group must all block or all not block: " + first + " is "
                                + (first.isBlocking() ? "" : "not ") + "blocking, " + communicator + " is "
                                + (communicator.isBlocking() ? "" : "not ") + "blocking");
            }
        }
        communicator.enterFor(this, communicators.size());
        communicators.add(communicator);
    }

    /** Keeps a buffer's memory until the batch has ended. */
    void pin(DeviceBuffer<?> buffer) {
        CudaGraph graph = CudaGraph.ofThread();
        // A graph needs its own reference, even to a buffer that is already pinned.
        if (buffer.isPinnedFor(this) && graph == null) {
            return;
        }
        buffer.pinFor(this);
        pinned.add(buffer);
        if (graph != null) {
            graph.keep(buffer);
        }
    }

    /** Keeps an operator or a window until the batch has ended. */
    void pin(Resource resource) {
        resource.pin();
        pinned.add(resource);
    }

    /** Checks that a call with a configuration can be in one native group with the other calls of the batch. */
    void check(ConfiguredCall call) {
        if (!anyConfigured) {
            return;
        }
        CudaEvent event = call.event();
        Integer size = call.config().cgaClusterSize();
        for (Object one : pinned) {
            if (!(one instanceof ConfiguredCall other)) {
                continue;
            }
            if (event != null && other.event() != null && other.core() == call.core()) {
                throw new IllegalArgumentException("one call of a communicator in a group may have a"
                        + " launchCompletionEvent: " + other.event() + " and " + event + " of " + call.core());
            }
            Integer otherSize = other.config().cgaClusterSize();
            if (size != null && otherSize != null && !size.equals(otherSize)) {
                throw new IllegalArgumentException(
                        "cgaClusterSize must be the same in all collectives of a group: " + otherSize + ", " + size);
            }
        }
    }

    /** Takes ownership of a call with a configuration whose operation was added. */
    void take(ConfiguredCall call) {
        pinned.add(call);
        anyConfigured = true;
    }

    /** The configuration of a configured operation. */
    private CollectiveConfig config(int at) {
        for (Object one : pinned) {
            if (one instanceof ConfiguredCall call && call.struct() == words[at + OFFSET]) {
                return call.config();
            }
        }
        throw new IllegalStateException("no configuration is at 0x" + Long.toHexString(words[at + OFFSET]));
    }

    /** Marks all configured calls as launched; returns the first exception or null. */
    private RuntimeException configuredAreLaunched() {
        RuntimeException problem = null;
        for (Object one : pinned) {
            if (one instanceof ConfiguredCall call) {
                try {
                    call.launched();
                } catch (RuntimeException e) {
                    problem = Suppressed.first(problem, e);
                }
            }
        }
        return problem;
    }

    /** Takes ownership of native memory that an operation of the batch reads; frees it after the batch. */
    void take(NativeMemory memory) {
        pinned.add(memory);
    }

    /** Discards a group, and everything that was added after its mark. */
    void discard(Group group, Mark mark) {
        while (!isInnermost(group)) {
            groups.remove(groups.size() - 1).abandoned();
        }
        for (int i = deferred.size(); i > mark.deferred; i--) {
            deferred.remove(i - 1).discarded();
        }
        used = mark.used;
        unpin(mark.pinned);
        leave(group);
    }

    /** Ends a group. The operations of an inner group stay in the batch for the enclosing group. */
    void leave(Group group) {
        groups.remove(group);
        if (groups.isEmpty()) {
            clear();
        }
    }

    private void unpin(int from) {
        lastStream = null;
        for (int i = pinned.size(); i > from; i--) {
            Object one = pinned.remove(i - 1);
            if (one instanceof DeviceBuffer<?> buffer) {
                buffer.unpinFromBatch();
            } else if (one instanceof CudaStream stream) {
                stream.unpin();
            } else if (one instanceof Resource resource) {
                resource.unpin();
            } else if (one instanceof ConfiguredCall call) {
                call.close();
            } else {
                ((NativeMemory) one).close();
            }
        }
    }

    private void clear() {
        used = 0;
        toSelf = false;
        anyAlone = false;
        anyConfigured = false;
        deferred.clear();
        communicators.forEach(CommunicatorCore::leaveBatch);
        communicators.clear();
        SlowPath.end();
        // Last, since freeing may call NCCL for the communicators.
        unpin(0);
    }

    boolean isInLibrary() {
        return inLibrary;
    }

    /** Makes calls of NCCL that threads which end a communicator wait for. The calls must check the state first. */
    void inLibrary(Runnable calls) {
        inLibrary = true;
        try {
            calls.run();
        } finally {
            inLibrary = false;
        }
    }

    /** Passes all operations and calls to NCCL in one native group. */
    void launch(Group group) {
        boolean done = false;
        inLibrary = true;
        try {
            for (CommunicatorCore communicator : communicators) {
                communicator.requireOpen();
            }
            if (toSelf) {
                checkToSelf();
            }
            if (used > 0) {
                run();
            }
            done = true;
            // Completes all calls, even if one fails: each call owns memory.
            RuntimeException problem = anyConfigured ? configuredAreLaunched() : null;
            while (!deferred.isEmpty()) {
                try {
                    deferred.remove(0).completed();
                } catch (RuntimeException e) {
                    problem = Suppressed.first(problem, e);
                }
            }
            Suppressed.rethrow(problem);
        } finally {
            inLibrary = false;
            if (!done) {
                deferred.forEach(Deferred::discarded);
            }
            leave(group);
        }
    }

    /** Checks that each rank receives in this group what it sends to itself. */
    private void checkToSelf() {
        for (CommunicatorCore communicator : communicators) {
            int send = nextToSelf(Operations.SEND, communicator, 0);
            int recv = nextToSelf(Operations.RECV, communicator, 0);
            while (send < used || recv < used) {
                if (send == used || recv == used) {
                    int only = Math.min(send, recv);
                    throw new IllegalStateException(
                            communicator + " must send to itself and receive from itself as often"
                                    + " in one group: only " + describe(only) + " is left");
                }
                if (words[send + COUNT] != words[recv + COUNT]
                        || type(words[send + HEAD]) != type(words[recv + HEAD])) {
                    throw new IllegalStateException(communicator + " must receive from itself what it sends to itself: "
                            + describe(send) + ", but " + describe(recv));
                }
                send = nextToSelf(Operations.SEND, communicator, send + WORDS);
                recv = nextToSelf(Operations.RECV, communicator, recv + WORDS);
            }
        }
    }

    /** The index of the next send or receive whose peer is the rank itself, or {@link #used}. */
    private int nextToSelf(int operation, CommunicatorCore communicator, int from) {
        int at = from;
        while (at < used
                && (operation(words[at + HEAD]) != operation
                        || communicator(words[at + HEAD]) != communicator.batchIndex
                        || peer(words[at + OP_AND_PEER]) != communicator.rank())) {
            at += WORDS;
        }
        return at;
    }

    private String describe(int at) {
        long head = words[at + HEAD];
        String text =
                Operations.describe(operation(head), words[at + COUNT], type(head), peer(words[at + OP_AND_PEER]));
        return Operations.isConfigured(operation(head)) ? text + " with " + config(at) : text;
    }

    private static int operation(long head) {
        return (int) head & 0xffff;
    }

    private static int type(long head) {
        return (int) head >>> 16;
    }

    private static int communicator(long head) {
        return (int) (head >>> 32);
    }

    private static int op(long opAndPeer) {
        return (int) (opAndPeer >>> 32);
    }

    private static int peer(long opAndPeer) {
        return (int) opAndPeer;
    }

    private Deferred deferred(int at) {
        return deferred.get((int) words[at + SEND]);
    }

    /** Records all operations before NCCL is called, since a call with results may not return. */
    private void record() {
        for (int at = 0; at < used; at += WORDS) {
            long head = words[at + HEAD];
            CommunicatorCore core = communicators.get(communicator(head));
            if (operation(head) == DEFERRED) {
                deferred(at).record(core.batchPass(), core.batchGroup());
            } else {
                record(words, at, core, core.communicator().operationLog(), core.batchPass(), core.batchGroup());
            }
        }
    }

    private static void record(
            long[] words, int at, CommunicatorCore core, OperationLog operationLog, Gate.Pass pass, int group) {
        long head = words[at + HEAD];
        long opAndPeer = words[at + OP_AND_PEER];
        operationLog.record(
                pass.next(),
                operation(head),
                words[at + COUNT],
                type(head),
                peer(opAndPeer),
                op(opAndPeer),
                group,
                words[at + STREAM]);
        pass.count();
        if (Jfr.recording) {
            JfrEvents.end(JfrEvents.operation(), core);
        }
    }

    /** Compares the collectives of each communicator across its ranks, in one exchange. */
    private void compare() {
        for (int i = 0; i < communicators.size(); i++) {
            CallCheck check = communicators.get(i).check();
            if (check != null) {
                List<String> calls = signatures(i);
                if (!calls.isEmpty()) {
                    check.compare("ncclGroupEnd", String.join("; ", calls));
                }
            }
        }
    }

    private List<String> signatures(int communicator) {
        List<String> calls = new ArrayList<>();
        for (int at = 0; at < used; at += WORDS) {
            long head = words[at + HEAD];
            if (communicator(head) == communicator && operation(head) != DEFERRED) {
                long opAndPeer = words[at + OP_AND_PEER];
                String call = Operations.signature(
                        operation(head),
                        words[at + COUNT],
                        type(head),
                        op(opAndPeer),
                        peer(opAndPeer),
                        Operations.isConfigured(operation(head)) ? config(at) : null);
                if (call != null) {
                    calls.add(call);
                }
            }
        }
        return calls;
    }

    private void run() {
        compare();
        if (Jfr.recording) {
            JfrEvents.GroupEvent event = JfrEvents.group(operations(), communicators.size());
            try {
                runNow();
            } finally {
                event.commit();
            }
        } else {
            runNow();
        }
    }

    private void runNow() {
        if (!deferred.isEmpty()) {
            record();
        }
        CommunicatorCore first = communicators.get(0);
        int result;
        // The C calls with results wait for other ranks, so the deadline needs a separate thread.
        if (first.isBlocking() && waitsForOtherRanks()) {
            try {
                result = BlockingCall.run("group", longestDeadline(), () -> first.onDevice(this::callAll), late -> {});
            } catch (BlockingCall.AbandonedException e) {
                communicators.forEach(CommunicatorCore::markStuck);
                if (e.isInterrupted()) {
                    throw interrupted();
                }
                throw first.timedOut("ncclGroupEnd", whole(), longestDeadline());
            }
        } else if (first.isOnHost() && VirtualThreads.isCurrent() && usesDefaultStream()) {
            result = BlockingCall.runToCompletion(
                    this::callAll, () -> communicators.forEach(CommunicatorCore::endInterruptedCall));
        } else {
            result = CudaGraph.ofThread() == null ? callAll() : Cuda.whileCapturing(this::callAll);
        }
        if (result == nccl.ncclInProgress) {
            awaitAll();
        } else if (result != nccl.ncclSuccess) {
            throw culprit().failed(result, failedName, failedDescription);
        }
    }

    /** True if an operation uses the default stream, in which the host engine waits for other ranks within the call. */
    private boolean usesDefaultStream() {
        for (int at = 0; at < used; at += WORDS) {
            if (words[at + STREAM] == 0) {
                return true;
            }
        }
        return false;
    }

    private boolean waitsForOtherRanks() {
        for (Deferred call : deferred) {
            if (call.waitsForOtherRanks()) {
                return true;
            }
        }
        return false;
    }

    private String whole() {
        return "ncclGroupEnd of " + operations() + " operations";
    }

    private void awaitAll() {
        for (CommunicatorCore communicator : communicators) {
            try {
                communicator.awaitReady("ncclGroupEnd", whole());
            } catch (NcclInterruptedException e) {
                interrupted();
                throw e;
            }
        }
    }

    /** Marks all communicators as interrupted: the launched operations continue without a waiting thread. */
    private RuntimeException interrupted() {
        RuntimeException first = null;
        for (CommunicatorCore communicator : communicators) {
            RuntimeException one = communicator.failures().interrupted(whole());
            first = first == null ? one : first;
        }
        return first;
    }

    /** The error of the call that NCCL has refused, else {@code ncclSuccess}. */
    private int refusal;

    private String failedName;
    private String failedDescription;
    private int failedCommunicator;

    /** The communicator to which a failure belongs: one that another thread has ended, else the one whose call failed. */
    private CommunicatorCore culprit() {
        for (CommunicatorCore communicator : communicators) {
            if (communicator.state() != Communicator.State.OPEN) {
                return communicator;
            }
        }
        return communicators.get(failedCommunicator);
    }

    private int callAll() {
        if (used == WORDS && !deferred.isEmpty() && deferred.get(0).mustBeUngrouped()) {
            return callUngrouped(deferred.get(0));
        }
        if (!deferred.isEmpty()) {
            int result = callInGroup(deferred, Deferred::prepare);
            for (int round = 0; result == nccl.ncclSuccess && anyAlone; round++) {
                List<Deferred> alone = alone(round);
                if (alone.isEmpty()) {
                    break;
                }
                result = callInGroup(alone, Deferred::call);
            }
            if (result != nccl.ncclSuccess) {
                return result;
            }
        }
        Status.check(nccl.ncclGroupStart(), "ncclGroupStart");
        int problem = nccl.ncclSuccess;
        int end;
        try {
            problem = callEach(deferred.isEmpty());
        } finally {
            // Always ends the group, else this thread stays in it. After an error NCCL discards the operations.
            end = nccl.ncclGroupEnd();
        }
        if (problem != nccl.ncclSuccess) {
            return problem;
        }
        if (end != nccl.ncclSuccess && end != nccl.ncclInProgress) {
            failedCommunicator = 0;
            failedName = "ncclGroupEnd";
            failedDescription = whole();
        }
        return end;
    }

    private int callUngrouped(Deferred call) {
        int result = call.call();
        if (result != nccl.ncclSuccess && result != nccl.ncclInProgress) {
            failedCommunicator = 0;
            failedName = call.function();
            failedDescription = call.toString();
        }
        return result;
    }

    /** For each communicator, the call with index {@code round} among its calls that must be alone. */
    private List<Deferred> alone(int round) {
        int[] seen = new int[communicators.size()];
        List<Deferred> calls = new ArrayList<>();
        for (int at = 0; at < used; at += WORDS) {
            if (isAlone(at) && seen[communicator(words[at + HEAD])]++ == round) {
                calls.add(deferred(at));
            }
        }
        return calls;
    }

    private boolean isAlone(int at) {
        return operation(words[at + HEAD]) == DEFERRED && deferred(at).mustBeAlone();
    }

    /** Makes C calls in a native group, and waits until NCCL has launched them. */
    private int callInGroup(List<Deferred> calls, ToIntFunction<Deferred> call) {
        Status.check(nccl.ncclGroupStart(), "ncclGroupStart");
        int problem = nccl.ncclSuccess;
        for (int i = 0; (problem == nccl.ncclSuccess || problem == nccl.ncclInProgress) && i < calls.size(); i++) {
            problem = call.applyAsInt(calls.get(i));
        }
        int end = nccl.ncclGroupEnd();
        if (end == nccl.ncclInProgress) {
            for (CommunicatorCore communicator : communicators) {
                communicator.awaitReady("ncclGroupEnd", "ncclGroupEnd");
            }
            end = nccl.ncclSuccess;
        }
        int result = problem == nccl.ncclSuccess || problem == nccl.ncclInProgress ? end : problem;
        if (result != nccl.ncclSuccess) {
            failedCommunicator = 0;
            failedName = "ncclGroupEnd";
            failedDescription = "ncclGroupEnd with " + calls.get(0);
        }
        return result;
    }

    /**
     * Makes the calls in order, up to the first call that NCCL refuses.
     *
     * @param recording true to record each operation before its call
     * @return the error of the refused call, else {@code ncclSuccess}
     */
    private int callEach(boolean recording) {
        int at = 0;
        refusal = nccl.ncclSuccess;
        // Reads `used` in each round, since an interceptor may add operations.
        while (at < used && refusal == nccl.ncclSuccess) {
            if (operation(words[at + HEAD]) != DEFERRED) {
                at = callRun(at, recording);
            } else {
                if (!isAlone(at)) {
                    look(deferred(at).call(), at);
                }
                at += WORDS;
            }
        }
        return refusal;
    }

    /**
     * Makes the calls of consecutive operations of one communicator. Holds common values in local variables, since the
     * JVM reads fields again after each native call.
     *
     * @return the index behind the last operation of the run
     */
    private int callRun(int from, boolean recording) {
        long[] all = words;
        int end = used;
        int communicator = communicator(all[from + HEAD]);
        CommunicatorCore core = communicators.get(communicator);
        OperationLog operationLog = core.communicator().operationLog();
        Gate.Pass pass = core.batchPass();
        int group = recording ? core.batchGroup() : 0;
        long handle = core.handle();
        for (int at = from; at < end; at += WORDS) {
            long head = all[at + HEAD];
            if (communicator(head) != communicator || operation(head) == DEFERRED) {
                return at;
            }
            if (recording) {
                record(all, at, core, operationLog, pass, group);
            }
            long opAndPeer = all[at + OP_AND_PEER];
            int result = Operations.call(
                    operation(head),
                    all[at + SEND],
                    all[at + RECV],
                    all[at + COUNT],
                    type(head),
                    op(opAndPeer),
                    peer(opAndPeer),
                    all[at + OFFSET],
                    handle,
                    all[at + STREAM]);
            look(result, at);
            if (refusal != nccl.ncclSuccess) {
                return at;
            }
        }
        return end;
    }

    /** Checks the result of a call; records a refusal. */
    private void look(int result, int at) {
        if (result == nccl.ncclSuccess || result == nccl.ncclInProgress) {
            return;
        }
        refusal = result;
        long head = words[at + HEAD];
        boolean isDeferred = operation(head) == DEFERRED;
        failedCommunicator = communicator(head);
        failedName = isDeferred ? deferred(at).function() : Operations.name(operation(head));
        failedDescription = (isDeferred ? deferred(at).toString() : describe(at)) + " in a group of " + operations()
                + " operations";
    }

    /** Returns NCCL's estimate of the batch's duration in microseconds, and discards the batch. */
    double simulate(Group group) {
        inLibrary = true;
        try {
            if (!deferred.isEmpty()) {
                throw new IllegalStateException(
                        "only operations on data can be simulated, this group has " + deferred.get(0) + ", too");
            }
            for (CommunicatorCore communicator : communicators) {
                communicator.requireOpen();
                if (!communicator.isBlocking()) {
                    throw new IllegalStateException("operations of non-blocking communicators can't be simulated, NCCL"
                            + " would launch them: " + communicator + " is not blocking");
                }
            }
            if (toSelf) {
                checkToSelf();
            }
            try (NativeMemory memory = new NativeMemory(Loader.sizeof(ncclSimInfo_t.class))) {
                StructInitializers.simInfo(memory.address());
                Status.check(nccl.ncclGroupStart(), "ncclGroupStart");
                int problem = callEach(false);
                int end = nccl.ncclGroupSimulateEnd(memory.address());
                if (problem != nccl.ncclSuccess) {
                    throw culprit().failed(problem, failedName, failedDescription);
                }
                Status.check(end, "ncclGroupSimulateEnd");
                return new ncclSimInfo_t(new Address(memory.address())).estimatedTime();
            }
        } finally {
            inLibrary = false;
            deferred.forEach(Deferred::discarded);
            leave(group);
        }
    }

    private Duration longestDeadline() {
        return communicators.stream()
                .map(CommunicatorCore::deadline)
                .max(Duration::compareTo)
                .orElseThrow();
    }
}

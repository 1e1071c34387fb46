package io.github.nccl4j.tools.conformance;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.Communicator.State;
import io.github.nccl4j.highlevel.CommunicatorConfig;
import io.github.nccl4j.highlevel.CommunicatorProperties;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.MemoryStatistic;
import io.github.nccl4j.highlevel.NcclTimeoutException;
import io.github.nccl4j.highlevel.PreMulSum;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.highlevel.Result;
import io.github.nccl4j.highlevel.RevokeFlag;
import io.github.nccl4j.highlevel.ShrinkFlag;
import io.github.nccl4j.highlevel.SuspendFlag;
import io.github.nccl4j.highlevel.UniqueId;
import io.github.nccl4j.highlevel.Work;
import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.tools.support.Checks;
import io.github.nccl4j.tools.support.CudaContexts;
import io.github.nccl4j.tools.support.Threads;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.LongPointer;

/** The lifecycle of the communicator of one rank in a thread of its own. All ranks make the same calls. */
final class LifecycleSuite {
    private static final Duration SOON = Duration.ofSeconds(120);

    private final Checks checks = new Checks();
    private final Crew crew;
    private final Member self;
    private final Communicator parent;
    private final int rank;
    private final int size;

    LifecycleSuite(Crew crew) {
        this.crew = crew;
        self = crew.members().get(0);
        parent = self.communicator;
        rank = self.rank();
        size = self.size();
    }

    void run() {
        crew.checkWith("ncclCommSplit", "split", this::split);
        crew.checkWith("ncclCommSplit", "split: no color", this::splitNone);
        crew.checkWith("ncclCommSplit", "split: in a group", this::splitInGroup);
        crew.checkWith("ncclCommSplit", "split: with a configuration", this::splitWithConfig);
        crew.checkWith("ncclCommSplit", "owned children", this::ownedChildren);
        crew.checkWith("ncclCommSplit", "two communicators in one group", this::twoCommunicators);
        crew.checkWith("ncclCommInitRank", "work", this::work);
        if (!self.isOnHost() && size > 1) {
            // On the host engine work is done when its call returns.
            crew.checkWith("ncclCommSplit", "work that is late", this::lateWork);
        }
        crew.checkWith("ncclCommInitRank", "the communicator's own stream", this::ownStream);
        crew.checkWith("ncclCommInitRank", "wrapped handles", this::wrappedHandle);
        crew.checkWith("ncclCommInitRank", "adopted handles", this::adoptedHandle);
        crew.checkWith("ncclCommInitRankScalable", "several ids", this::severalIds);
        crew.checkWith("ncclCommSplit", "finish and close", this::finishAndClose);
        crew.checkWith("ncclCommSplit", "abort in another thread", this::abort);
        crew.checkWith("ncclCommInitRank", "calls from another thread", this::otherThread);
        crew.checkWith("ncclCommShrink", "shrink", () -> shrink(ShrinkFlag.DEFAULT));
        crew.checkWith("ncclCommShrink", "shrink: stopping work", () -> shrink(ShrinkFlag.ABORT));
        crew.checkWith("ncclCommGrow", "grow and join", this::grow);
        crew.checkWith("ncclCommRevoke", "revoke", this::revoke);
        crew.checkWith("ncclCommSuspend", "suspend and resume", this::suspend);
        crew.checkWith("ncclCommMemStats", "memory", this::memory);
        crew.checkWith("ncclCommQueryProperties", "properties", this::properties);
        crew.checkWith("ncclRedOpCreatePreMulSum", "closed scalars and operators", this::closedScalar);
        if (!self.isOnHost() && !RankInfo.fromEnvironment().isSingle()) {
            crew.checkWith("ncclCommInitRank", "no context on the devices of others", this::noOtherContexts);
        }
    }

    private void properties() {
        CommunicatorProperties told = parent.properties();
        checks.equal(rank, told.rank(), "rank");
        checks.equal(size, told.size(), "size");
        if (!self.isOnHost()) {
            checks.equal(parent.device().index(), told.cudaDevice(), "device");
        }
        checks.equal(0, size % told.lsaTeams().orElse(1), "the remainder of the ranks divided by the size of a team");
        checks.equal(told.toString(), parent.properties().toString(), "the properties, queried again");
        told.hash().ifPresent(hash -> {
            int part = (int) (hash & 0xffff);
            checks.equal(size * part, self.sum(parent, part), "sum of a property that all ranks share");
        });
        try (Communicator child = parent.split(0, -rank)) {
            checks.equal(child.rank(), child.properties().rank(), "rank of a child");
        }
    }

    private static int sumOfRanks(int size) {
        return size * (size - 1) / 2;
    }

    private void works(Communicator communicator) {
        int expected = sumOfRanks(communicator.size());
        checks.equal(expected, self.sum(communicator, communicator.rank()), "sum of ranks");
    }

    private void isClosed(Communicator communicator) {
        checks.fails(IllegalStateException.class, communicator::stream, "is closed");
    }

    private void split() {
        int color = rank % 2;
        try (Communicator child = parent.split(color, -rank)) {
            int ofColor = (size + 1 - color) / 2;
            checks.equal(ofColor, child.size(), "size");
            checks.equal(ofColor - 1 - rank / 2, child.rank(), "rank of a child, in the order of the keys");
            checks.equal(parent.device(), child.device(), "device");
            checks.equal(parent.deadline(), child.deadline(), "deadline");
            checks.equal(parent.isBlocking(), child.isBlocking(), "blocking");
            checks.equal(State.OPEN, child.state(), "state");
            works(child);
            int expected = 0;
            for (int r = color; r < size; r += 2) {
                expected += 1 << r;
            }
            checks.equal(expected, self.sum(child, 1 << rank), "the members of a child");
            works(parent);
        }
        works(parent);
        checks.fails(IllegalArgumentException.class, () -> parent.split(-1, 0), "-1");
    }

    private void splitNone() {
        if (rank == size - 1) {
            parent.splitNone();
        } else {
            try (Communicator child = parent.split(7, rank)) {
                checks.equal(size - 1, child.size(), "size");
                checks.equal(rank, child.rank(), "rank");
                works(child);
            }
        }
        try (Group group = Group.open()) {
            Communicator child = null;
            if (rank == size - 1) {
                parent.splitNone();
            } else {
                child = parent.split(0, rank);
            }
            group.launch();
            if (child != null) {
                works(child);
                child.close();
            }
        }
    }

    private void splitInGroup() {
        List<Communicator> givenUp = new ArrayList<>();
        try (Group group = Group.open()) {
            Communicator child = parent.split(0, size - rank);
            checks.equal(State.PENDING, child.state(), "state before the launch");
            checks.fails(IllegalStateException.class, child::stream, "pending");
            checks.fails(IllegalStateException.class, child::close, "pending");
            group.launch();
            checks.equal(State.OPEN, child.state(), "state after the launch");
            checks.equal(size - 1 - rank, child.rank(), "rank");
            works(child);
            child.close();
        }
        GroupSuite.giveUp(() -> givenUp.add(parent.split(0, 0)));
        checks.equal(State.CLOSED, givenUp.get(0).state(), "state of a child whose group was closed without a launch");
        givenUp.get(0).close();
        works(parent);
    }

    private void splitWithConfig() {
        CommunicatorConfig.Builder config = CommunicatorConfig.builder().blocking(!parent.isBlocking());
        try (Communicator child = parent.split(0, rank, config.build())) {
            checks.equal(!parent.isBlocking(), child.isBlocking(), "blocking");
            works(child);
        }
    }

    private void ownedChildren() {
        Communicator middle = parent.split(0, rank);
        Communicator first = middle.own(middle.split(0, rank));
        Communicator second = middle.own(middle.split(0, rank));
        works(second);
        second.close();
        middle.close();
        checks.equal(State.CLOSED, first.state(), "state of an open child after its owner was closed");
        checks.equal(State.CLOSED, middle.state(), "state of the owner");
        checks.fails(IllegalArgumentException.class, () -> parent.own(parent), "itself");
        works(parent);
    }

    private void twoCommunicators() {
        try (Communicator child = parent.split(0, -rank)) {
            DeviceBuffer<Int32> one = self.number(rank);
            DeviceBuffer<Int32> other = self.number(10 * rank);
            Group.run(() -> {
                parent.allReduce(one, ReduceOp.SUM, self.stream);
                child.allReduce(other, ReduceOp.SUM, self.stream);
            });
            self.await();
            checks.equal(sumOfRanks(size), Member.valueOf(one), "sum in the first communicator");
            checks.equal(10 * sumOfRanks(size), Member.valueOf(other), "sum in the second communicator");
        }
    }

    private void work() {
        DeviceBuffer<Int32> number = self.number(rank);
        parent.allReduce(number, ReduceOp.SUM, self.stream);
        Work work = parent.work(self.stream);
        checks.isTrue(work.toString().contains("ncclAllReduce of 1 int32"), work.toString());
        CompletableFuture<Void> future = work.toFuture();
        work.await(SOON);
        checks.isTrue(work.isDone(), "the work must be done after waiting for it");
        work.await();
        work.await(Duration.ZERO);
        try {
            future.get(SOON.toSeconds(), TimeUnit.SECONDS);
            parent.work(self.stream).toFuture().get(SOON.toSeconds(), TimeUnit.SECONDS);
            List<Boolean> done = Threads.together(
                    List.of(
                            () -> {
                                work.await(SOON);
                                return work.isDone();
                            },
                            work::isDone),
                    SOON);
            checks.equal(List.of(true, true), done, "the work must be done for other threads");
        } catch (Exception e) {
            throw new AssertionError(e);
        }
        checks.equal(sumOfRanks(size), Member.valueOf(number), "sum");
        checks.equal(Result.SUCCESS, parent.asyncError(), "asynchronous error");
        GroupSuite.giveUp(() -> {
            parent.allReduce(number, ReduceOp.SUM, self.stream);
            checks.fails(IllegalStateException.class, () -> parent.work(self.stream), "group");
        });
    }

    /** Rank 1 sends only when rank 0 has seen that its work is late. */
    private void lateWork() {
        try (Communicator child = parent.split(0, rank)) {
            DeviceBuffer<Int32> sent = self.number(10 + rank);
            DeviceBuffer<Int32> seen = self.number(1);
            // Connects the two, which a blocking communicator waits for.
            sendOrReceive(child, sent);
            child.work(self.stream).await(SOON);
            if (rank == 0) {
                sent.fill(0L);
                sendOrReceive(child, sent);
                Work work = child.work(self.stream);
                checks.fails(
                        NcclTimeoutException.class,
                        () -> work.await(Duration.ofMillis(50)),
                        "ncclRecv of 1 int32 from rank 1",
                        "0.05 s");
                checks.isTrue(!work.isDone(), "the work must not be done yet");
                checks.equal(State.OPEN, child.state(), "state");
            }
            parent.allReduce(seen, ReduceOp.SUM, parent.stream());
            parent.work(parent.stream()).await(SOON);
            if (rank == 1) {
                sendOrReceive(child, sent);
            }
            child.work(self.stream).await(SOON);
            checks.equal(rank == 0 ? 11 : 10 + rank, Member.valueOf(sent), "the number that rank 1 sent");
        }
        works(parent);
    }

    private void sendOrReceive(Communicator communicator, DeviceBuffer<Int32> number) {
        if (rank == 0) {
            communicator.recv(number, 1, self.stream);
        } else if (rank == 1) {
            communicator.send(number, 0, self.stream);
        }
    }

    /** Copies wait for the default stream. */
    private void ownStream() {
        checks.isTrue(parent.stream() == parent.stream(), "one stream for all calls");
        checks.equal(parent.device(), parent.stream().device(), "device");
        DeviceBuffer<Int32> number = self.number(rank);
        for (int i = 0; i < 20; i++) {
            number.fill((long) i);
            parent.waitForDefaultStream();
            parent.allReduce(number, ReduceOp.SUM, parent.stream());
            parent.letDefaultStreamWait();
            checks.equal(i * size, Member.valueOf(number), "sum");
        }
    }

    private void wrappedHandle() {
        Communicator wrapped = Communicator.wrap(parent.nativeHandle(), parent.device());
        checks.equal(rank, wrapped.rank(), "rank");
        checks.equal(size, wrapped.size(), "size");
        works(wrapped);
        wrapped.close();
        checks.equal(State.CLOSED, wrapped.state(), "state of the wrapper");
        works(parent);
        checks.fails(IllegalArgumentException.class, () -> Communicator.wrap(0, parent.device()), "0");
    }

    private void adoptedHandle() {
        UniqueId id = self.newId();
        long handle;
        try (BytePointer bytes = new BytePointer(id.toBytes());
                LongPointer cell = new LongPointer(1)) {
            if (parent.device().isCuda()) {
                CurrentDevice.set(parent.device().index());
            }
            checks.equal(0, nccl.ncclCommInitRank(cell.address(), size, bytes.address(), rank), "ncclCommInitRank");
            handle = cell.get();
        }
        Communicator adopted = Communicator.adopt(handle, parent.device());
        checks.equal(handle, adopted.nativeHandle(), "handle");
        works(adopted);
        adopted.close();
        isClosed(adopted);
    }

    /** Loads CUDA's bindings when it is needed. */
    private static final class CurrentDevice {
        static void set(int index) {
            cudart.cudaSetDevice(index);
        }
    }

    /** This process has this rank alone. */
    private void noOtherContexts() {
        for (int index = 0; index < Device.cudaCount(); index++) {
            checks.equal(index == parent.device().index(), CudaContexts.isOn(index), "a context on " + index);
        }
    }

    private void severalIds() {
        List<UniqueId> ids = new ArrayList<>(List.of(self.newId()));
        if (size > 1) {
            ids.add(self.newId());
        }
        try (Communicator made = Communicator.builder()
                .device(parent.device())
                .deadline(parent.deadline())
                .create(ids, rank, size)) {
            checks.equal(rank, made.rank(), "rank");
            works(made);
        }
        List<UniqueId> tooMany = new ArrayList<>();
        for (int i = 0; i <= size; i++) {
            tooMany.add(ids.get(0));
        }
        checks.fails(
                IllegalArgumentException.class, () -> Communicator.builder().create(tooMany, rank, size), "ids");
    }

    private void finishAndClose() {
        Communicator child = parent.split(0, rank);
        DeviceBuffer<Int32> number = self.number(rank);
        child.allReduce(number, ReduceOp.SUM, self.stream);
        child.finish();
        checks.equal(State.FINISHED, child.state(), "state");
        checks.fails(
                IllegalStateException.class, () -> child.allReduce(number, ReduceOp.SUM, self.stream), "was finished");
        checks.fails(IllegalStateException.class, child::finish, "was finished");
        child.close();
        child.close();
        checks.equal(State.CLOSED, child.state(), "state");
        isClosed(child);
        checks.equal(rank, child.rank(), "rank of a finished communicator");
        self.stream.synchronize(SOON);
        checks.equal(sumOfRanks(size), Member.valueOf(number), "sum");
    }

    private void abort() {
        Communicator child = parent.split(0, rank);
        works(child);
        // No rank aborts before all ranks have their results.
        works(parent);
        inAnotherThread(child::abort);
        checks.equal(State.ABORTED, child.state(), "state");
        checks.fails(IllegalStateException.class, child::stream, "was aborted");
        child.abort();
        child.close();
        works(parent);
    }

    private static void inAnotherThread(Runnable body) {
        try {
            Threads.together(
                    List.of(() -> {
                        body.run();
                        return true;
                    }),
                    SOON);
        } catch (Exception e) {
            throw new AssertionError(e);
        }
    }

    private void otherThread() {
        inAnotherThread(() -> works(parent));
        works(parent);
    }

    private void shrink(ShrinkFlag flag) {
        if (size == 1) {
            checks.fails(
                    IllegalArgumentException.class, () -> parent.shrink(List.of(), flag), "excluded must not be empty");
            return;
        }
        try (Communicator from = parent.split(0, rank)) {
            if (rank > 0) {
                try (Communicator rest = from.shrink(List.of(0), flag)) {
                    checks.equal(size - 1, rest.size(), "size");
                    checks.equal(rank - 1, rest.rank(), "rank");
                    works(rest);
                }
            } else {
                checks.fails(IllegalArgumentException.class, () -> from.shrink(List.of(0), flag), "exclude");
            }
            if (flag == ShrinkFlag.DEFAULT) {
                works(from);
            }
        }
    }

    private void grow() {
        if (size == 1) {
            checks.fails(IllegalArgumentException.class, () -> parent.grow(1), "1");
            return;
        }
        boolean joins = rank == size - 1;
        Communicator few = null;
        if (joins) {
            parent.splitNone();
        } else {
            few = parent.split(0, rank);
        }
        byte[] none = new byte[UniqueId.BYTES];
        UniqueId id = UniqueId.of(self.fromRank0(rank == 0 ? few.growId().toBytes() : none));
        try (Communicator grown = joins
                ? Communicator.builder()
                        .device(parent.device())
                        .deadline(parent.deadline())
                        .join(id, rank, size)
                : few.grow(size)) {
            checks.equal(size, grown.size(), "size");
            checks.equal(rank, grown.rank(), "rank");
            works(grown);
        }
        if (few != null) {
            works(few);
            few.close();
        }
    }

    private void revoke() {
        Communicator child = parent.split(0, rank);
        works(child);
        works(parent);
        child.revoke(RevokeFlag.DEFAULT);
        checks.equal(State.REVOKED, child.state(), "state");
        checks.fails(IllegalStateException.class, child::stream, "was revoked");
        checks.fails(IllegalStateException.class, () -> child.revoke(RevokeFlag.DEFAULT), "was revoked");
        works(parent);
        try (Communicator next = child.split(0, rank)) {
            works(next);
        }
        child.close();
        works(parent);
    }

    private void suspend() {
        parent.suspend(SuspendFlag.MEM);
        checks.equal(State.SUSPENDED, parent.state(), "state");
        checks.fails(IllegalStateException.class, parent::stream, "is suspended");
        parent.resume();
        checks.equal(State.OPEN, parent.state(), "state");
        works(parent);
    }

    private void memory() {
        for (MemoryStatistic statistic : MemoryStatistic.values()) {
            checks.isTrue(parent.memory(statistic) >= 0, statistic + " is not negative");
        }
    }

    /** The number is kept until the operator is closed, and the operator until its operations were called. */
    private void closedScalar() {
        PreMulSum<Int32> operator;
        try (DeviceBuffer<Int32> scalar = parent.device().allocate(ElementType.INT32, 1)) {
            scalar.fill((long) (rank + 1));
            operator = parent.preMulSum(scalar);
        }
        DeviceBuffer<Int32> number = self.number(1);
        try (Group group = Group.open()) {
            parent.allReduce(number, operator, self.stream);
            operator.close();
            group.launch();
        }
        self.await();
        checks.equal(size + sumOfRanks(size), Member.valueOf(number), "weighted sum");
        checks.isTrue(!operator.isOpen(), "closed");
        checks.fails(
                IllegalStateException.class,
                () -> parent.allReduce(number, operator, self.stream),
                "PreMulSum",
                "closed");
        checks.fails(
                IllegalArgumentException.class,
                () -> parent.allReduce(
                        self.take(ElementType.INT64, 1), parent.preMulSum(ElementType.INT32, 3), self.stream),
                "int32");
    }
}

package io.github.nccl4j.tools.conformance;

import io.github.nccl4j.highlevel.AllToAllvPlan;
import io.github.nccl4j.highlevel.CollectiveConfig;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaEvent;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.DataType;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.tools.oracle.ElementFormat;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/** A case on one rank: its buffers, the call, and the comparison of every element with the oracle. */
final class DataTrial<T extends Element> implements Trial {
    private final Case c;
    private final Member member;
    private final List<ByteBuffer> inputs = new ArrayList<>();
    private final Zone<T> sendZone;
    private final Zone<T> recvZone;
    private final DeviceBuffer<T> send;
    private final DeviceBuffer<T> recv;
    private final int recvPlace;
    private final ReduceOp op;
    private final Expectation expectation;
    private final CudaEvent event;
    private final CollectiveConfig config;
    private AllToAllvPlan<T> plan;

    private DataTrial(Case c, Member member, ElementType<T> type) {
        this.c = c;
        this.member = member;
        Operation operation = c.operation();
        int size = member.size();
        int rank = member.rank();
        int sendLength = operation.buffers().sendLength(c, rank, size);
        int recvLength = operation.buffers().recvLength(c, rank, size);
        int longest = 0;
        for (int r = 0; r < size; r++) {
            inputs.add(Inputs.of(c, r, operation.buffers().sendLength(c, r, size)));
            longest = Math.max(longest, operation.buffers().sendLength(c, r, size));
            longest = Math.max(longest, operation.buffers().recvLength(c, r, size));
        }
        // The length is the same on all ranks, also on a rank that needs less.
        long first = member.reserve(Zone.bytes(type, longest));
        long second = member.reserve(Zone.bytes(type, longest));
        boolean odd = c.isOdd();
        ByteBuffer before;
        if (operation.inPlace(c, rank)) {
            int sendPlace = operation.buffers().sendPlace(c, rank, size);
            recvPlace = operation.buffers().recvPlace(c, rank, size);
            ByteBuffer both = Zone.untouched(Math.max(sendLength, recvLength) * type.sizeInBytes());
            both.put(sendPlace * type.sizeInBytes(), inputs.get(rank), 0, sendLength * type.sizeInBytes());
            sendZone = new Zone<>(member, first, type, both, odd);
            recvZone = sendZone;
            send = sendZone.part(sendPlace, sendLength);
            before = part(both, recvPlace, recvLength);
        } else {
            recvPlace = 0;
            sendZone = new Zone<>(member, first, type, inputs.get(rank), odd);
            before = Zone.untouched(recvLength * type.sizeInBytes());
            recvZone = new Zone<>(member, second, type, before, odd);
            send = sendZone.part(0, sendLength);
        }
        recv = recvZone.part(recvPlace, recvLength);
        expectation = new Expectation(ElementFormat.of(type.nativeCode()), inputs, before, member.isOnHost());
        operation.expect(expectation, c, rank, size);
        op = c.operator() == null ? null : c.operator().create(member, type);
        Tuning tuning = c.tuning();
        event = tuning != null && tuning.hasEvent() ? CudaEvent.create(member.device()) : null;
        config = tuning == null ? null : tuning.make(event);
    }

    static Trial of(Case c, Member member) {
        return of(c, member, c.type());
    }

    private static <T extends Element> Trial of(Case c, Member member, ElementType<T> type) {
        return new DataTrial<>(c, member, type);
    }

    private ByteBuffer part(ByteBuffer whole, int from, int length) {
        int size = c.type().sizeInBytes();
        return whole.slice(from * size, length * size).order(whole.order());
    }

    Communicator communicator() {
        return member.communicator;
    }

    CudaStream stream() {
        return member.stream;
    }

    Form form() {
        return c.form();
    }

    int count() {
        return c.count();
    }

    int root() {
        return c.root();
    }

    ReduceOp op() {
        return op;
    }

    DataType dataType() {
        return c.type().dataType();
    }

    DeviceBuffer<T> send() {
        return send;
    }

    DeviceBuffer<T> recv() {
        return recv;
    }

    long sendAddress() {
        return send.address();
    }

    long recvAddress() {
        return recv.address();
    }

    Case c() {
        return c;
    }

    /** The configuration; null for a call without one. */
    CollectiveConfig config() {
        return config;
    }

    Shares sent() {
        return Shares.sent(c, member.rank(), member.size());
    }

    Shares received() {
        return Shares.received(c, member.rank(), member.size());
    }

    AllToAllvPlan<T> plan() {
        return plan;
    }

    @Override
    public void prepare() {
        plan = c.operation().prepare(this);
    }

    @Override
    public void call() {
        c.operation().call(this);
    }

    @Override
    public void verify() {
        expectation.compare(part(recvZone.content(), recvPlace, (int) recv.length()));
        if (sendZone != recvZone && sendZone.content().mismatch(inputs.get(member.rank())) >= 0) {
            throw new AssertionError("the send buffer was changed");
        }
        if (event != null && !event.isDone()) {
            throw new AssertionError("the event of the launch must be done when the operation is");
        }
    }

    @Override
    public String toString() {
        return c.toString();
    }

    @Override
    public void close() {
        if (plan != null) {
            plan.close();
        }
        if (event != null) {
            event.close();
        }
        Operator.close(op);
    }
}

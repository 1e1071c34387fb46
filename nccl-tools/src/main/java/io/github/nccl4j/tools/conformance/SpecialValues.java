package io.github.nccl4j.tools.conformance;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.tools.oracle.ElementFormat;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;

/**
 * Reductions of values at which engines may differ: those that overflow, wrap, round or are subnormal, infinities, NaN and -0,
 * each of rank 0 with each of rank 1.
 */
final class SpecialValues {
    static final String ALL_REDUCE = "ALL_REDUCE";

    private static final String NAN = "nan";
    /** In place of the results of another operation. */
    private static final String SAME = "as " + ALL_REDUCE;

    private final Communicator communicator;

    SpecialValues(Communicator communicator) {
        this.communicator = communicator;
    }

    /** Runs the reductions of whose type and operator the predicate approves. Collective. */
    void run(EngineResults results, Predicate<String> wanted) {
        try (Member member = new Member(communicator)) {
            for (ElementType<?> type : ElementType.values()) {
                for (Operator operator : Operator.values()) {
                    if (wanted.test(ALL_REDUCE + " " + operator + " " + ElementFormat.of(type.nativeCode()))) {
                        run(member, results, type, operator);
                        member.reuseMemory();
                    }
                }
            }
        }
    }

    private static <T extends Element> void run(
            Member member, EngineResults results, ElementType<T> type, Operator operator) {
        ElementFormat format = ElementFormat.of(type.nativeCode());
        ByteBuffer input = input(format, member.rank(), member.size());
        int count = input.capacity() / format.size;
        DeviceBuffer<T> send = member.take(type, count);
        DeviceBuffer<T> recv = member.take(type, count);
        DeviceBuffer<T> part = member.take(type, count / member.size());
        ReduceOp op = operator.create(member, type);
        String subject = operator + " " + format;
        try {
            send.copyFrom(input);
            member.communicator.allReduce(send, recv, op, member.stream);
            List<String> all = texts(member, format, recv);
            results.put(ALL_REDUCE + " " + subject, String.join(" ", all));
            member.communicator.reduce(send, recv, op, 0, member.stream);
            if (member.rank() == 0) {
                List<String> reduced = texts(member, format, recv);
                results.put("REDUCE " + subject, reduced.equals(all) ? SAME : String.join(" ", reduced));
            } else {
                results.put("REDUCE " + subject, SAME);
            }
            member.communicator.reduceScatter(send, part, op, member.stream);
            List<String> own = texts(member, format, part);
            int first = member.rank() * own.size();
            boolean same = own.equals(all.subList(first, first + own.size()));
            results.put("REDUCE_SCATTER " + subject, same ? SAME : String.join(" ", own));
        } finally {
            Operator.close(op);
        }
    }

    private static List<String> texts(Member member, ElementFormat format, DeviceBuffer<?> buffer) {
        member.await();
        ByteBuffer bytes =
                ByteBuffer.allocate(Math.toIntExact(buffer.sizeInBytes())).order(ByteOrder.nativeOrder());
        buffer.copyTo(bytes);
        List<String> texts = new ArrayList<>();
        for (int i = 0; i < bytes.capacity() / format.size; i++) {
            texts.add(text(format, bytes, i));
        }
        return texts;
    }

    /** The bits of an element in hexadecimal digits; the bits of a NaN have no meaning. */
    private static String text(ElementFormat format, ByteBuffer bytes, int index) {
        if (!format.isInteger() && Double.isNaN(format.number(bytes, index))) {
            return NAN;
        }
        return Long.toHexString(format.bits(bytes, index));
    }

    /** The elements that a rank sends; a multiple of the number of ranks. */
    static ByteBuffer input(ElementFormat format, int rank, int size) {
        long[] values = format.specialValues();
        int pairs = values.length * values.length;
        int count = (pairs + size - 1) / size * size;
        ByteBuffer input = ByteBuffer.allocate(count * format.size).order(ByteOrder.nativeOrder());
        for (int i = 0; i < count; i++) {
            int chosen =
                    switch (rank) {
                        case 0 -> i;
                        case 1 -> i / values.length;
                        default -> (2 * rank + 1) * i + rank;
                    };
            format.putBits(input, i, values[chosen % values.length]);
        }
        return input;
    }

    /** The inputs of an element and its results, for a line of text. */
    static String explain(ElementFormat format, int size, int index, String one, String other) {
        StringBuilder text = new StringBuilder("of");
        for (int rank = 0; rank < size; rank++) {
            text.append(rank == 0 ? " " : ", ").append(number(format, input(format, rank, size), index));
        }
        return text.append(": ")
                .append(number(format, one))
                .append(", ")
                .append(number(format, other))
                .toString();
    }

    private static String number(ElementFormat format, String text) {
        if (text.equals(NAN)) {
            return NAN;
        }
        ByteBuffer bytes = ByteBuffer.allocate(format.size).order(ByteOrder.nativeOrder());
        format.putBits(bytes, 0, Long.parseUnsignedLong(text, 16));
        return number(format, bytes, 0);
    }

    private static String number(ElementFormat format, ByteBuffer bytes, int index) {
        return format.isInteger()
                ? format.integer(bytes, index).toString()
                : String.valueOf(format.number(bytes, index));
    }
}

package io.github.nccl4j.pytorch;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int64;
import io.github.nccl4j.highlevel.Element.Uint8;
import io.github.nccl4j.highlevel.ElementType;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;

/** Names, types and shapes of a model's parameters and buffers, one a line, which all ranks must have alike. */
final class ModelDescription {
    private static final String NOTHING = "nothing";

    private ModelDescription() {}

    /**
     * Compares the descriptions of all ranks. Collective.
     *
     * @throws IllegalArgumentException on every rank, if two ranks differ
     */
    static void requireEqual(Communicator communicator, List<String> lines) {
        byte[] text = String.join("\n", lines).getBytes(StandardCharsets.UTF_8);
        int size = communicator.size();
        long[] lengths = new long[size];
        long[] hashes = new long[size];
        gather(communicator, text.length, lengths);
        gather(communicator, Arrays.hashCode(text), hashes);
        if (Arrays.stream(lengths).allMatch(length -> length == lengths[0])
                && Arrays.stream(hashes).allMatch(hash -> hash == hashes[0])) {
            return;
        }
        int longest = (int) Arrays.stream(lengths).max().getAsLong();
        byte[] all = gather(communicator, Arrays.copyOf(text, longest));
        String[] first = lines(all, 0, lengths[0]);
        for (int rank = 1; rank < size; rank++) {
            String[] other = lines(all, rank * longest, lengths[rank]);
            int line = Arrays.mismatch(first, other);
            if (line >= 0) {
                throw new IllegalArgumentException("models must be alike on all ranks: rank 0 has "
                        + (line < first.length ? first[line] : NOTHING) + ", rank " + rank + " has "
                        + (line < other.length ? other[line] : NOTHING));
            }
        }
    }

    private static String[] lines(byte[] all, int offset, long length) {
        return new String(all, offset, (int) length, StandardCharsets.UTF_8).split("\n", -1);
    }

    private static void gather(Communicator communicator, long own, long[] all) {
        Device device = communicator.device();
        CudaStream stream = CudaStream.defaultOf(device);
        try (DeviceBuffer<Int64> send = device.allocate(ElementType.INT64, 1);
                DeviceBuffer<Int64> recv = device.allocate(ElementType.INT64, all.length)) {
            send.fill(own);
            communicator.allGather(send, recv, stream);
            communicator.work(stream).await();
            recv.copyTo(all);
        }
    }

    private static byte[] gather(Communicator communicator, byte[] own) {
        Device device = communicator.device();
        CudaStream stream = CudaStream.defaultOf(device);
        byte[] all = new byte[own.length * communicator.size()];
        try (DeviceBuffer<Uint8> send = device.allocate(ElementType.UINT8, own.length);
                DeviceBuffer<Uint8> recv = device.allocate(ElementType.UINT8, all.length)) {
            send.copyFrom(ByteBuffer.wrap(own));
            communicator.allGather(send, recv, stream);
            communicator.work(stream).await();
            recv.copyTo(ByteBuffer.wrap(all));
        }
        return all;
    }
}

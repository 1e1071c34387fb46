package io.github.nccl4j.tools.doctor;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.TcpStore;
import io.github.nccl4j.tools.launch.LauncherWatch;
import java.io.IOException;
import java.net.DatagramSocket;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;

/**
 * The program of one end of {@link PeerCheck}: {@code main(address, seconds)}, as rank 0 or 1 of 2 by the environment. The ranks meet
 * at a store, as those of a job do, and exchange elements on the host engine. Prints each result at once, as {@link Probe} does.
 */
final class PeerProbe {
    private static final int FLOATS = 4 << 20;
    private static final int ROUND_TRIPS = 1000;
    private static final int TRANSFERS = 20;

    private PeerProbe() {}

    public static void main(String[] args) throws IOException {
        LauncherWatch.start();
        RankInfo self = RankInfo.fromEnvironment();
        Duration limit = Duration.ofSeconds(Long.parseLong(args[1]));
        NetworkInterface own = self.rank() == 0
                ? NetworkInterface.getByInetAddress(InetAddress.getByName(args[0]))
                : toward(InetAddress.getByName(args[0]));
        String mtu = own == null ? "" : String.valueOf(own.getMTU());
        Probe.print("interface", own == null ? "" : own.getName(), mtu);
        try (TcpStore store = TcpStore.builder().timeout(limit).open(self)) {
            store.set("doctor-mtu-" + self.rank(), mtu.getBytes(StandardCharsets.UTF_8));
            byte[] others = store.get("doctor-mtu-" + (1 - self.rank()), limit);
            Probe.print("met", new String(others, StandardCharsets.UTF_8));
            try (Communicator communicator =
                            Communicator.builder().device(Device.host()).create(store);
                    CudaStream stream = CudaStream.nonBlocking(Device.host());
                    DeviceBuffer<Float32> one = Device.host().allocate(ElementType.FLOAT32, 1);
                    DeviceBuffer<Float32> many = Device.host().allocate(ElementType.FLOAT32, FLOATS)) {
                double[] times = new double[ROUND_TRIPS];
                for (int i = 0; i < ROUND_TRIPS; i++) {
                    times[i] = secondsOfRoundTrip(communicator, one, stream);
                }
                Arrays.sort(times);
                Probe.print("round-trip", times[ROUND_TRIPS / 2]);
                double best = Double.MAX_VALUE;
                for (int i = 0; i < TRANSFERS; i++) {
                    best = Math.min(best, secondsOfRoundTrip(communicator, many, stream));
                }
                Probe.print("bandwidth", 2.0 * Float.BYTES * FLOATS / best);
            }
            store.barrier("doctor-end", limit);
        }
    }

    /** The interface by which the system sends to an address. Sends nothing. */
    private static NetworkInterface toward(InetAddress address) throws IOException {
        try (DatagramSocket socket = new DatagramSocket()) {
            socket.connect(address, 9);
            return NetworkInterface.getByInetAddress(socket.getLocalAddress());
        }
    }

    private static double secondsOfRoundTrip(
            Communicator communicator, DeviceBuffer<Float32> buffer, CudaStream stream) {
        long start = System.nanoTime();
        for (int sender = 0; sender < 2; sender++) {
            if (communicator.rank() == sender) {
                communicator.send(buffer, 1 - sender, stream);
            } else {
                communicator.recv(buffer, sender, stream);
            }
        }
        stream.synchronize();
        return (System.nanoTime() - start) / 1e9;
    }
}

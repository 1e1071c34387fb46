package io.github.nccl4j.tests.host;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.NcclTimeoutException;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.highlevel.UniqueId;
import io.github.nccl4j.nccl.ncclComm;
import io.github.nccl4j.ras.RasClient;
import io.github.nccl4j.ras.RasException;
import io.github.nccl4j.ras.RasFormat;
import io.github.nccl4j.testing.Waiting;
import java.io.IOException;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.bytedeco.javacpp.IntPointer;
import org.bytedeco.javacpp.PointerPointer;

/** Processes that a status service reports on: {@code main(scenario, id, rank, ranks)}. */
final class RasScenarios {
    private RasScenarios() {}

    public static void main(String... args) throws Exception {
        switch (args[0]) {
            case "wait" -> work(args[1], Integer.parseInt(args[2]), Integer.parseInt(args[3]), false);
            case "differ" -> work(args[1], Integer.parseInt(args[2]), Integer.parseInt(args[3]), true);
            case "end" -> end();
            case "timeout" -> timeout();
            case "silent" -> silent();
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    /** Three all-reduces of all ranks, and a broadcast of every second one. Then all but the last may begin a fourth. */
    private static void work(String id, int rank, int count, boolean differ) throws InterruptedException {
        Rank all = Rank.join(id, rank, count);
        try (PointerPointer<ncclComm> half = new PointerPointer<>(1);
                IntPointer data = new IntPointer(1)) {
            Rank.check(nccl.ncclCommSplit(all.comm(), rank % 2, rank, half.address(), 0), "ncclCommSplit");
            for (int i = 0; i < 3; i++) {
                allReduce(all, data);
            }
            Rank.check(
                    nccl.ncclBroadcast(
                            data.address(),
                            data.address(),
                            1,
                            nccl.ncclInt,
                            0,
                            half.get(ncclComm.class).address(),
                            0),
                    "ncclBroadcast");
            System.out.println("ready");
            if (differ && rank < count - 1) {
                allReduce(all, data);
            }
            Thread.sleep(1_000_000);
        }
    }

    private static void allReduce(Rank rank, IntPointer data) {
        Rank.check(
                nccl.ncclAllReduce(data.address(), data.address(), 1, nccl.ncclInt, nccl.ncclSum, rank.comm(), 0),
                "ncclAllReduce");
    }

    /** More clients than the service takes that say nothing, and one that asks. */
    private static void silent() throws Exception {
        Rank alone = Rank.join(Rank.newId(), 0, 1);
        String[] address = System.getenv("NCCL_RAS_ADDR").split(":");
        List<Socket> clients = new ArrayList<>();
        for (int i = 0; i < 70; i++) {
            clients.add(new Socket(address[0], Integer.parseInt(address[1])));
        }
        System.out.println(ask().contains("RUNNING") ? "an answer" : "no answer");
        int first = clients.get(0).getInputStream().read();
        System.out.println(first == -1 ? "the first silent client is disconnected" : "" + first);
        for (Socket client : clients) {
            client.close();
        }
        alone.destroy();
    }

    /** Creates and ends communicators, and prints what the service leaves: threads, descriptors, a service that responds. */
    private static void end() throws Exception {
        // Java keeps a socket after its first connection.
        Rank warmUp = Rank.join(Rank.newId(), 0, 1);
        ask();
        warmUp.destroy();
        Set<String> before = resources();
        for (int i = 0; i < 20; i++) {
            Rank first = Rank.join(Rank.newId(), 0, 1);
            Rank second = Rank.join(Rank.newId(), 0, 1);
            first.destroy();
            if (i % 5 == 0) {
                System.out.println("asked: " + ask().contains("RUNNING"));
            }
            second.destroy();
        }
        System.out.println("left: " + leftSince(before));
        try (RasClient client = RasClient.connect(RasClient.defaultAddress(), Duration.ofSeconds(1))) {
            System.out.println("still there: " + client.remoteAddress());
        } catch (RasException none) {
            System.out.println("none");
        }
    }

    private static String ask() {
        try (RasClient client = RasClient.connect(RasClient.defaultAddress(), Duration.ofSeconds(60))) {
            return client.status(RasFormat.TEXT, Duration.ofSeconds(60));
        }
    }

    /** The server of a unique id ends soon after the creation, not with it. */
    private static Set<String> leftSince(Set<String> before) {
        return Waiting.value(
                "nothing left",
                () -> {
                    Set<String> left = resources();
                    left.removeAll(before);
                    return left;
                },
                Set::isEmpty);
    }

    /** The threads of native code, and open sockets and events. */
    private static Set<String> resources() throws IOException {
        Set<String> found = new TreeSet<>();
        try (Stream<Path> descriptors = Files.list(Path.of("/proc/self/fd"))) {
            for (Path descriptor : descriptors.toList()) {
                try {
                    String target = Files.readSymbolicLink(descriptor).toString();
                    if (target.startsWith("socket:") || target.contains("event")) {
                        found.add(descriptor.getFileName() + " " + target);
                    }
                } catch (IOException closed) {
                    continue;
                }
            }
        }
        try (Stream<Path> tasks = Files.list(Path.of("/proc/self/task"))) {
            // Threads of the JVM have other names than that of the program.
            found.addAll(
                    tasks.filter(RasScenarios::isNative).map(Path::toString).collect(Collectors.toSet()));
        }
        return found;
    }

    static boolean isNative(Path task) {
        try {
            return Files.readString(task.resolve("comm")).strip().equals("java");
        } catch (IOException ended) {
            return false;
        }
    }

    /** A rank whose peer does not come to the collective. */
    private static void timeout() throws Exception {
        UniqueId id = UniqueId.create();
        Thread peer =
                new Thread(() -> Communicator.builder().device(Device.host()).create(id, 1, 2));
        peer.start();
        try (Communicator communicator = Communicator.builder()
                .device(Device.host())
                .deadline(Duration.ofSeconds(1))
                .create(id, 0, 2)) {
            peer.join();
            DeviceBuffer<Int32> buffer = Device.host().allocate(ElementType.INT32, 1);
            CudaStream stream = CudaStream.defaultOf(Device.host());
            communicator.allReduce(buffer, buffer, ReduceOp.SUM, stream);
            communicator.work(stream).await();
        } catch (NcclTimeoutException late) {
            System.out.println(late.getMessage());
            System.exit(0);
        }
    }
}

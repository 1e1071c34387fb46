package io.github.nccl4j.benchmarks;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.Element.Float64;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.tools.launch.ChildProcesses;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.UUID;
import java.util.function.DoubleSupplier;

/**
 * The ranks of {@link HostCollectives} in Java. Without the variable RANK, this program starts itself once for each rank.
 * Arguments: a free port, the number of ranks, the operation, the sizes, the rounds, and network namespaces, if the ranks are
 * to be distributed over them.
 */
final class HostCollectivesRank {
    /**
     * Microseconds of calls of all sizes before the first measurement. 16 JVMs on 16 processors compile for 2 s, and their
     * compilers take processors of the ranks meanwhile; and they compile code anew that was compiled for other sizes.
     */
    private static final double COMPILATION = 3e6;

    /** Microseconds of calls before each measurement: more than in collectives.cpp, since some code is compiled again. */
    private static final double WARM_UP = 500e3;

    /** The least time of the measured calls in microseconds, as in collectives.cpp. */
    private static final double MEASURED = 100e3;

    private HostCollectivesRank() {}

    /**
     * Runs the ranks, or one of them.
     *
     * @param args see the class
     * @throws Exception if a rank fails
     */
    public static void main(String... args) throws Exception {
        if (System.getenv("RANK") == null) {
            start(args);
            return;
        }
        LoopOperation operation = LoopOperation.valueOf(args[2].toUpperCase(Locale.ROOT));
        List<Long> sizes =
                Arrays.stream(args[3].split(",")).map(Long::parseLong).toList();
        int rounds = Integer.parseInt(args[4]);
        try (Communicator communicator = Communicator.fromEnvironment();
                CudaStream stream = CudaStream.nonBlocking(communicator.device())) {
            for (long bytes : sizes) {
                measure(communicator, stream, operation, bytes, 1, COMPILATION / sizes.size());
            }
            for (long bytes : sizes) {
                double time = measure(communicator, stream, operation, bytes, rounds, WARM_UP);
                if (communicator.rank() == 0) {
                    System.out.printf(Locale.ROOT, "%d %.3f%n", bytes, time);
                }
            }
        }
    }

    private static void start(String... args) throws IOException, InterruptedException {
        int ranks = Integer.parseInt(args[1]);
        List<String> namespaces = args.length > 5 ? List.of(args[5].split(",")) : List.of();
        int ranksOfHost = ranks / Math.max(1, namespaces.size());
        List<String> command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Dnccl4j.engine=host",
                "-cp",
                System.getProperty("java.class.path"),
                HostCollectivesRank.class.getName()));
        command.addAll(List.of(args));
        String secret = UUID.randomUUID().toString();
        List<Process> processes = new ArrayList<>();
        for (int rank = 0; rank < ranks; rank++) {
            List<String> ofRank = new ArrayList<>();
            if (!namespaces.isEmpty()) {
                ofRank.addAll(NetworkNamespaces.on(namespaces.get(rank / ranksOfHost), namespaces));
            }
            ofRank.addAll(command);
            ProcessBuilder builder = new ProcessBuilder(ofRank).inheritIO();
            builder.environment()
                    .putAll(Map.of(
                            "RANK", "" + rank,
                            "WORLD_SIZE", "" + ranks,
                            "LOCAL_RANK", "" + rank % ranksOfHost,
                            "LOCAL_WORLD_SIZE", "" + ranksOfHost,
                            "MASTER_ADDR", namespaces.isEmpty() ? "127.0.0.1" : NetworkNamespaces.FIRST_ADDRESS,
                            "MASTER_PORT", args[0],
                            "NCCL4J_STORE_SECRET", secret));
            processes.add(ChildProcesses.start(builder));
        }
        boolean failed = false;
        for (Process process : processes) {
            failed |= process.waitFor() != 0;
        }
        if (failed) {
            System.exit(1);
        }
    }

    /** As in collectives.cpp: the ranks' different times of entry count the less, the more calls a round has. */
    private static int callsOf(long bytes, int ranks) {
        double estimate = (0.1 + bytes / 8e3) * ranks;
        return (int) Math.max(1, Math.min(100, 200 / estimate));
    }

    /** The median of the rounds, in microseconds. */
    private static double measure(
            Communicator communicator,
            CudaStream stream,
            LoopOperation operation,
            long bytes,
            int rounds,
            double warmUp) {
        int ranks = communicator.size();
        int calls = callsOf(bytes, ranks);
        long whole = bytes / Float.BYTES;
        long count = operation.sendsBlocks || operation.receivesBlocks ? whole / ranks : whole;
        try (DeviceBuffer<Float32> send = communicator.device().allocate(ElementType.FLOAT32, Math.max(1, whole));
                DeviceBuffer<Float32> recv = communicator.device().allocate(ElementType.FLOAT32, Math.max(1, whole));
                DeviceBuffer<Float64> slowest = communicator.device().allocate(ElementType.FLOAT64, 1)) {
            send.fill(1.0);
            recv.fill(1.0);
            // In place, as with MPI: else the root copies its own elements as well.
            DeviceBuffer<Float32> source = operation == LoopOperation.BROADCAST ? recv : send;
            LoopArguments arguments = new LoopArguments(
                    communicator,
                    stream,
                    source.slice(0, operation.sendsBlocks ? count * ranks : count),
                    recv.slice(0, operation.receivesBlocks ? count * ranks : count),
                    count);
            try (Loop loop = HighlevelLoops.of(operation, arguments)) {
                DoubleSupplier round = () -> round(loop, calls, communicator, stream, slowest);
                times(round, calls, 0, warmUp);
                List<Double> times = times(round, calls, rounds, MEASURED);
                return times.stream().sorted().toList().get(times.size() / 2);
            }
        }
    }

    /** Runs at least this many rounds, for at least this time. All ranks agree on the number and the times of the rounds. */
    private static List<Double> times(DoubleSupplier round, int calls, int least, double microseconds) {
        List<Double> times = new ArrayList<>();
        for (double spent = 0; spent < microseconds || times.size() < least; ) {
            double time = round.getAsDouble();
            times.add(time);
            spent += calls * time;
        }
        return times;
    }

    /** Microseconds of a call at the slowest rank. */
    private static double round(
            Loop loop, int calls, Communicator communicator, CudaStream stream, DeviceBuffer<Float64> slowest) {
        communicator.allReduce(slowest, ReduceOp.MAX, stream);
        stream.synchronize();
        long start = System.nanoTime();
        for (int call = 0; call < calls; call++) {
            loop.run(1);
            stream.synchronize();
        }
        slowest.fill((System.nanoTime() - start) / 1e3 / calls);
        communicator.allReduce(slowest, ReduceOp.MAX, stream);
        stream.synchronize();
        double[] time = new double[1];
        slowest.copyTo(time);
        return time[0];
    }
}

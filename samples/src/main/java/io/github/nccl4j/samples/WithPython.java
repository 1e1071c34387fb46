package io.github.nccl4j.samples;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int64;
import io.github.nccl4j.highlevel.FailurePolicy;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.highlevel.UniqueId;
import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.TcpStore;
import io.github.nccl4j.library.Engine;
import java.io.IOException;
import java.io.InputStream;
import java.lang.ProcessBuilder.Redirect;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.LongStream;

/**
 * Shares a communicator between Java and Python. The last rank is a process of with_python.py, a resource beside this class; its
 * JVM only starts it, and ends with it.
 *
 * <p>The programs must use the same library, or at least the same release, and the same unique id. How the bytes of the id reach
 * each program is up to the programs: here the store carries them to the JVM of the last rank, which passes them to Python.
 */
public final class WithPython {

    private static final Duration START = Duration.ofSeconds(60);

    public static void main(String[] args) throws IOException, InterruptedException {
        int count = 100_000;
        int deadline = 60;
        String python = "python3";
        for (int i = 0; i < args.length; i++) {
            switch (args[i]) {
                case "-c" -> count = Integer.parseInt(args[++i]);
                case "-d" -> deadline = Integer.parseInt(args[++i]);
                case "--python" -> python = args[++i];
                default -> throw new IllegalArgumentException("no such option: " + args[i]);
            }
        }
        if (count < 1 || deadline < 1) {
            throw new IllegalArgumentException("-c and -d must be at least 1: " + count + ", " + deadline);
        }
        RankInfo self = RankInfo.fromEnvironment();
        if (self.worldSize() < 2) {
            System.out.println("skipped: needs at least 2 ranks, the last of which is in Python: -n 2");
            return;
        }
        TcpStore store = TcpStore.ofProcess(self, START);
        Device device = Device.host();
        if (NcclLibrary.get().engine() != Engine.HOST) {
            // A launcher may show each process its own GPU.
            int gpus = Device.cudaCount();
            if (gpus < self.localWorldSize() && gpus != 1) {
                throw new IllegalStateException(
                        "rank " + self.rank() + ": each rank needs its own GPU, also that in Python: "
                                + self.localWorldSize() + " ranks, " + gpus + " GPUs; --engine host needs none");
            }
            device = Device.cuda(store.locate(self, START).device(gpus));
        }
        byte[] id = store.broadcast("id", 0, () -> UniqueId.create().toBytes(), START);
        if (self.rank() < self.worldSize() - 1) {
            runJava(self, id, device, count, deadline);
        } else {
            runPython(self, id, device, count, deadline, python);
        }
    }

    private static void runJava(RankInfo self, byte[] id, Device device, int count, int deadline) {
        int rank = self.rank();
        int last = self.worldSize() - 1;
        try (Communicator communicator = Communicator.builder()
                        .device(device)
                        // Longer than the JVM that watches Python, so that its message, which names the cause, comes
                        // first.
                        .deadline(Duration.ofSeconds(deadline + 3L))
                        .onFailure(FailurePolicy.ABORT)
                        .create(UniqueId.of(id), rank, self.worldSize());
                CudaStream stream = CudaStream.nonBlocking(device);
                DeviceBuffer<Int64> buffer = device.copyOf(LongStream.rangeClosed(1, count)
                        .map(i -> (rank + 1) * i)
                        .toArray())) {
            communicator.allReduce(buffer, ReduceOp.SUM, stream);
            communicator.work(stream).await();
            long ranks = (last + 1) * (last + 2L) / 2;
            check(buffer, LongStream.rangeClosed(1, count).map(i -> ranks * i), "rank " + rank + ": all-reduce");
            if (rank == 0) {
                buffer.copyFrom(LongStream.range(0, count).map(i -> i * i).toArray());
                communicator.send(buffer, last, stream);
                communicator.recv(buffer, last, stream);
                communicator.work(stream).await();
                check(buffer, LongStream.range(0, count).map(i -> -i * i), "rank 0: receive from rank " + last);
            }
        }
        System.out.println("rank " + rank + " in Java " + Runtime.version().feature() + ": summed " + count
                + " elements with a rank in Python" + (rank > 0 ? "" : ", sent as many to it and received them negated")
                + "; every element checked");
    }

    private static void check(DeviceBuffer<Int64> buffer, LongStream elements, String what) {
        long[] expected = elements.toArray();
        long[] got = buffer.toLongArray();
        int wrong = Arrays.mismatch(got, expected);
        if (wrong >= 0) {
            throw new IllegalStateException(
                    what + ": element " + wrong + " is wrong: expected " + expected[wrong] + ", got " + got[wrong]);
        }
    }

    private static void runPython(RankInfo self, byte[] id, Device device, int count, int deadline, String python)
            throws IOException, InterruptedException {
        List<String> command = new ArrayList<>();
        try (InputStream script = WithPython.class.getResourceAsStream("with_python.py")) {
            // Isolated: ignore modules in the working directory and Python's environment variables.
            command.addAll(List.of(python, "-I", "-c", new String(script.readAllBytes(), StandardCharsets.UTF_8)));
        }
        String deviceName = device.isHost() ? "host" : "" + device.index();
        command.add(NcclLibrary.get().path().toString());
        command.addAll(List.of("" + self.rank(), "" + self.worldSize(), "" + count, deviceName));
        Process process = new ProcessBuilder(command)
                .redirectOutput(Redirect.INHERIT)
                .redirectError(Redirect.INHERIT)
                .start();
        try {
            // Not closed: Python exits at end-of-file, which comes when this process ends.
            process.getOutputStream().write(id);
            process.getOutputStream().flush();
        } catch (IOException e) {
            // Python has ended; its exit code is reported below.
        }
        boolean ended = process.waitFor(deadline, TimeUnit.SECONDS);
        process.destroyForcibly();
        if (!ended || process.exitValue() != 0) {
            String how = ended ? "exited with code " + process.exitValue() : "was killed after " + deadline + " s";
            throw new IllegalStateException(
                    "rank " + self.rank() + ": " + python + " (pid " + process.pid() + ") " + how);
        }
    }
}

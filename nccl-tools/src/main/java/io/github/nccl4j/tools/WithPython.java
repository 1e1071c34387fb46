package io.github.nccl4j.tools;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int64;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.FailurePolicy;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.highlevel.UniqueId;
import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.TcpStore;
import io.github.nccl4j.library.Engine;
import io.github.nccl4j.tools.launch.ChildProcesses;
import io.github.nccl4j.tools.launch.LauncherWatch;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.lang.ProcessBuilder.Redirect;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.IntToLongFunction;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/**
 * Shares a communicator between Java and Python: the last rank is a Python process, all others are JVMs.
 *
 * <p>The programs must use the same library, or at least the same release, and the same unique id. How the bytes of the id reach
 * each program is up to the programs: here the store carries them to the JVM of the last rank, which passes them to Python.
 */
@Command(
        name = "10-with-python",
        aliases = {"10", "with-python"},
        sortOptions = false,
        description = {
            "Sums arrays over ranks in Java and a rank in Python, and sends between them; checks every element.",
            "",
            "The last rank is a python3 process that calls NCCL's C functions with ctypes and needs no packages; its JVM only "
                    + "starts it, passes it the unique id, and ends with it. Each rank needs its own GPU, except on the host "
                    + "engine.",
            ""
        })
final class WithPython extends Sample {

    private static final String SCRIPT = "with_python.py";

    /** The Java ranks wait longer than the JVM that watches Python, so that its message, which names the cause, comes first. */
    private static final int EXTRA_DEADLINE_SECONDS = 3;

    @Option(
            names = {"-c", "--count"},
            paramLabel = "N",
            defaultValue = "100000",
            description = "Elements of each rank. Default: ${DEFAULT-VALUE}.")
    private int count;

    @Option(
            names = {"-d", "--deadline"},
            paramLabel = "SECONDS",
            defaultValue = "60",
            description = "Deadline of the Python process, which is then killed. Default: ${DEFAULT-VALUE}.")
    private int deadline;

    @Option(
            names = "--python",
            paramLabel = "PROGRAM",
            defaultValue = "python3",
            description = "Python 3: a path, or a name on the PATH. Default: ${DEFAULT-VALUE}.")
    private String python;

    @Override
    void validate() {
        if (count < 1 || deadline < 1) {
            throw invalid("-c and -d must be at least 1: " + count + ", " + deadline);
        }
    }

    @Override
    Communicator connect(RankInfo self, Duration timeout) {
        if (self.worldSize() == 1) {
            return super.connect(self, timeout);
        }
        requireGpus(self);
        return Communicator.builder()
                .device(device(self))
                .deadline(Duration.ofSeconds(deadline + EXTRA_DEADLINE_SECONDS))
                .onFailure(FailurePolicy.ABORT)
                .create(UniqueId.of(id(self, timeout)), self.rank(), self.worldSize());
    }

    @Override
    void run(Communicator communicator) {
        int size = communicator.size();
        if (size < 2) {
            skip(communicator, "needs at least 2 ranks, the last of which is in Python: -n 2");
            return;
        }
        int rank = communicator.rank();
        String done = "summed " + count + " elements with a rank in Python";
        try (CudaStream stream = CudaStream.nonBlocking(communicator.device());
                DeviceBuffer<Int64> buffer = communicator.device().allocate(ElementType.INT64, count)) {
            write(buffer, i -> (rank + 1L) * (i + 1));
            communicator.allReduce(buffer, ReduceOp.SUM, stream);
            communicator.work(stream).await();
            long factor = size * (size + 1L) / 2;
            check(buffer, i -> factor * (i + 1), "rank " + rank + ": all-reduce");

            if (rank == 0) {
                write(buffer, i -> (long) i * i);
                communicator.send(buffer, size - 1, stream);
                communicator.recv(buffer, size - 1, stream);
                communicator.work(stream).await();
                check(buffer, i -> -(long) i * i, "rank 0: receive from rank " + (size - 1));
                done += ", sent as many to it and received them negated";
            }
        }
        System.out.println(
                "rank " + rank + " in Java " + Runtime.version().feature() + ": " + done + "; every element checked");
    }

    private void write(DeviceBuffer<Int64> buffer, IntToLongFunction element) {
        long[] numbers = new long[count];
        Arrays.setAll(numbers, element);
        buffer.copyFrom(numbers);
    }

    private void check(DeviceBuffer<Int64> buffer, IntToLongFunction expected, String what) {
        long[] numbers = new long[count];
        buffer.copyTo(numbers);
        for (int i = 0; i < count; i++) {
            if (numbers[i] != expected.applyAsLong(i)) {
                throw new Failure(what + ": element " + i + " is wrong: expected " + expected.applyAsLong(i) + ", got "
                        + numbers[i]);
            }
        }
    }

    /** The unique id, which rank 0 creates. Collective. */
    private static byte[] id(RankInfo self, Duration timeout) {
        return TcpStore.ofProcess(self, timeout)
                .broadcast("id", 0, () -> UniqueId.create().toBytes(), timeout);
    }

    /**
     * Checks the number of GPUs, if our launcher started this process. Under another launcher a process may see only its own GPU;
     * there NCCL reports two ranks on one GPU.
     */
    private static void requireGpus(RankInfo self) {
        int gpus = Device.cudaCount();
        if (NcclLibrary.get().engine() == Engine.NCCL && LauncherWatch.isLaunched() && self.localWorldSize() > gpus) {
            throw new Failure("rank " + self.rank() + ": each rank needs its own GPU, including the rank in Python: "
                    + self.localWorldSize() + " ranks, " + gpus + (gpus == 1 ? " GPU" : " GPUs")
                    + "; --engine host needs none");
        }
    }

    /** The last rank is in Python. */
    @Override
    boolean runForeignRank(RankInfo self, Duration timeout) {
        if (self.worldSize() == 1 || self.rank() < self.worldSize() - 1) {
            return false;
        }
        requireNoRccl();
        requireGpus(self);
        Process process = start(self);
        try {
            byte[] id = id(self, timeout);
            try {
                // Not closed: Python exits at end-of-file, which comes when this process ends.
                OutputStream in = process.getOutputStream();
                in.write(id);
                in.flush();
            } catch (IOException e) {
                // Python has ended; its exit code is reported below.
            }
            if (!process.waitFor(deadline, TimeUnit.SECONDS)) {
                throw new Failure("rank " + self.rank() + ": " + describe(process) + " did not end within " + deadline
                        + " s and was killed");
            }
            if (process.exitValue() != 0) {
                throw new Failure(
                        "rank " + self.rank() + ": " + describe(process) + " exited with code " + process.exitValue());
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new Failure("rank " + self.rank() + ": interrupted while Python was running");
        } finally {
            ChildProcesses.kill(process);
        }
        return true;
    }

    private String describe(Process process) {
        return python + " (pid " + process.pid() + ")";
    }

    private Process start(RankInfo self) {
        NcclLibrary library = NcclLibrary.get();
        String device = library.engine() == Engine.HOST ? "host" : "" + self.device(Device.cudaCount());
        List<String> command = List.of(
                python,
                // Isolated: ignore modules in the working directory and Python's environment variables.
                "-I",
                "-c",
                script(),
                library.path().toString(),
                "" + self.rank(),
                "" + self.worldSize(),
                "" + count,
                device);
        try {
            return ChildProcesses.start(
                    new ProcessBuilder(command).redirectOutput(Redirect.INHERIT).redirectError(Redirect.INHERIT));
        } catch (IOException e) {
            throw new Failure("rank " + self.rank() + ": can't start Python 3 (choose one with --python): "
                    + e.getMessage().lines().findFirst().orElse(""));
        }
    }

    private static String script() {
        try (InputStream script = WithPython.class.getResourceAsStream(SCRIPT)) {
            return new String(script.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}

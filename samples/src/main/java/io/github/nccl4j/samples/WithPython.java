package io.github.nccl4j.samples;

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
import io.github.nccl4j.samples.launch.ChildProcesses;
import io.github.nccl4j.samples.launch.LauncherWatch;
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
 * The last rank is a program in Python, all others are in Java, and they have one communicator.
 *
 * <p>All that they must agree on is the library, or at least its release, and the unique id, whose bytes travel as the programs
 * like: here through the store to the JVM of the last rank, which gives them to Python.
 */
@Command(
        name = "10-with-python",
        aliases = {"10", "with-python"},
        sortOptions = false,
        description = {
            "Sums arrays over ranks in Java and a last one in Python, and sends there and back, checked element by element.",
            "",
            "Of -n ranks the last is a process of python3, with NCCL's C functions by ctypes and no package installed; its JVM "
                    + "only starts it, gives it the unique id, and ends with it. Each rank needs a GPU of its own, unless "
                    + "they are on the host engine.",
            ""
        })
final class WithPython extends Sample {

    private static final String SCRIPT = "with_python.py";

    /** So that the JVM of a rank in Python can say that it hangs before the others say that it did not come. */
    private static final int LATER_SECONDS = 3;

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
            description = "After this time Python has failed, and is ended. Default: ${DEFAULT-VALUE}.")
    private int deadline;

    @Option(
            names = "--python",
            paramLabel = "PROGRAM",
            defaultValue = "python3",
            description = "Python 3, a path or a name on the PATH. Default: ${DEFAULT-VALUE}.")
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
                .deadline(Duration.ofSeconds(deadline + LATER_SECONDS))
                .onFailure(FailurePolicy.ABORT)
                .create(UniqueId.of(id(self, timeout)), self.rank(), self.worldSize());
    }

    @Override
    void run(Communicator communicator) {
        int size = communicator.size();
        if (size < 2) {
            skip(communicator, "the last rank is in Python, and one in Java is needed besides: -n 2 or more");
            return;
        }
        int rank = communicator.rank();
        String what = "summed " + count + " elements with a rank in Python";
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
                check(buffer, i -> -(long) i * i, "rank 0: what rank " + (size - 1) + " has sent back");
                what += ", sent as many there and got them back negated";
            }
        }
        System.out.println(
                "rank " + rank + " in Java " + Runtime.version().feature() + ": " + what + "; every element checked");
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

    /** Collective: rank 0 makes it. */
    private static byte[] id(RankInfo self, Duration timeout) {
        return TcpStore.ofProcess(self, timeout)
                .broadcast("id", 0, () -> UniqueId.create().toBytes(), timeout);
    }

    /** Under another launcher a process may see its own GPU only, and then NCCL tells of two ranks on one. */
    private static void requireGpus(RankInfo self) {
        int gpus = Device.cudaCount();
        if (NcclLibrary.get().engine() == Engine.NCCL && LauncherWatch.launched() && self.localWorldSize() > gpus) {
            throw new Failure("rank " + self.rank() + ": " + self.localWorldSize()
                    + " ranks, one of them in Python, need as many GPUs, and there are " + gpus
                    + "; --engine host needs none");
        }
    }

    /** The last rank is in Python. */
    @Override
    boolean standsIn(RankInfo self, Duration timeout) {
        if (self.worldSize() == 1 || self.rank() < self.worldSize() - 1) {
            return false;
        }
        requireNoRccl();
        requireGpus(self);
        Process process = start(self);
        try {
            byte[] id = id(self, timeout);
            try {
                // Left open: Python ends when this process does, which closes it.
                OutputStream in = process.getOutputStream();
                in.write(id);
                in.flush();
            } catch (IOException gone) {
                // The exit code says more.
            }
            if (!process.waitFor(deadline, TimeUnit.SECONDS)) {
                throw new Failure("rank " + self.rank() + ": " + describe(process) + " was not done after " + deadline
                        + " s, and is ended");
            }
            if (process.exitValue() != 0) {
                throw new Failure(
                        "rank " + self.rank() + ": " + describe(process) + " ended with code " + process.exitValue());
            }
        } catch (InterruptedException interrupted) {
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
                // Neither the folder it is started in nor variables of Python's lead to other modules.
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
        } catch (IOException missing) {
            throw new Failure("rank " + self.rank() + ": Python 3 can't be started, --python names another one: "
                    + missing.getMessage().lines().findFirst().orElse(""));
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

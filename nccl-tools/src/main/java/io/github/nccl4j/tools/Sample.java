package io.github.nccl4j.tools;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.FailurePolicy;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.TcpStore;
import io.github.nccl4j.library.Engine;
import io.github.nccl4j.tools.support.Mismatch;
import java.time.Duration;
import java.util.concurrent.Callable;
import java.util.function.IntPredicate;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.ParentCommand;
import picocli.CommandLine.Spec;

/**
 * A numbered sample program that runs on every rank and checks its own results.
 *
 * <p>A subclass is a picocli command whose name begins with its number. It implements {@link #run}, which throws if an element is
 * wrong. Not thread-safe; each rank's process uses its own instance.
 */
abstract class Sample implements Callable<Integer> {

    @ParentCommand
    private RunCommand command;

    @Spec
    private CommandSpec spec;

    /** {@return the name of the sample, such as {@code 01-all-reduce}} */
    final String name() {
        return getClass().getAnnotation(Command.class).name();
    }

    /** {@return a description of the sample in one line} */
    final String summary() {
        return getClass().getAnnotation(Command.class).description()[0];
    }

    /** Checks the options beyond their types, before the ranks start; throws {@link #invalid}. */
    void validate() {}

    /**
     * Runs this rank.
     *
     * @param communicator the communicator of all ranks; the caller closes it
     * @throws Failure if an element is wrong
     */
    abstract void run(Communicator communicator);

    @Override
    public final Integer call() throws Exception {
        validate();
        return command.run(this);
    }

    /** The exception for wrong options, for {@link #validate}. */
    final ParameterException invalid(String message) {
        return new ParameterException(spec.commandLine(), message);
    }

    final int runAs(RankInfo self, Duration timeout) {
        Communicator communicator = null;
        try {
            if (runForeignRank(self, timeout)) {
                return CommandLine.ExitCode.OK;
            }
            communicator = connect(self, timeout);
            printAtRoot(communicator, engine(communicator));
            run(communicator);
            communicator.close();
            return CommandLine.ExitCode.OK;
        } catch (RuntimeException | LinkageError | OutOfMemoryError failure) {
            System.out.flush();
            System.err.println(name() + ": " + describe(failure, self));
            if (communicator != null) {
                // Lets the other ranks fail at once instead of waiting for this rank.
                communicator.abort();
            }
            return CommandLine.ExitCode.SOFTWARE;
        }
    }

    /**
     * The ranks whose death by SIGKILL does not end the run.
     *
     * @param size the number of ranks
     * @return true for a rank that may be killed
     */
    IntPredicate expendableRanks(int size) {
        return rank -> false;
    }

    /**
     * Runs the rank of this process in another program, if the sample has one for it.
     *
     * @param self the rank of this process
     * @param timeout the time to wait for the other ranks
     * @return true if the other program was the rank and has ended; false if this process is the rank
     */
    boolean runForeignRank(RankInfo self, Duration timeout) {
        return false;
    }

    /**
     * Creates the communicator of all ranks. Collective.
     *
     * <p>With {@link FailurePolicy#ABORT} a rank that detects the loss of another one aborts its own operations, which would
     * otherwise block the release of its buffers.
     *
     * @param self the rank of this process
     * @param timeout the time to wait for the other ranks
     * @return the communicator
     */
    Communicator connect(RankInfo self, Duration timeout) {
        requireNoRccl();
        if (self.worldSize() > 1) {
            TcpStore.ofProcess(self, timeout).barrier("start", timeout);
        }
        return Communicator.builder().onFailure(FailurePolicy.ABORT).fromEnvironment();
    }

    /** The rank's device: host memory with the host engine, else one of the GPUs that are visible to this process. */
    static Device device(RankInfo self) {
        requireNoRccl();
        return NcclLibrary.get().engine() == Engine.HOST ? Device.host() : Device.cuda(self.device(Device.cudaCount()));
    }

    static void requireNoRccl() {
        if (NcclLibrary.get().engine() == Engine.RCCL) {
            throw new Failure("the samples have no access to the memory of AMD GPUs; library: "
                    + NcclLibrary.get().path());
        }
    }

    private static String engine(Communicator communicator) {
        NcclLibrary library = NcclLibrary.get();
        int ranks = communicator.size();
        return "# nccl4j " + Main.Version.number() + ", engine " + library.engine() + ", NCCL " + library.version()
                + ", library " + library.path() + System.lineSeparator()
                + "# " + ranks + (ranks == 1 ? " rank" : " ranks") + ", rank 0 on " + communicator.device();
    }

    /** The message of an exception of nccl4j; for any other exception, which is a bug, also its stack trace. */
    private static String describe(Throwable failure, RankInfo self) {
        if (failure.getClass().getName().startsWith("io.github.nccl4j.")) {
            return failure.getMessage();
        }
        if (failure instanceof OutOfMemoryError) {
            return "rank " + self.rank() + ": " + failure;
        }
        StringBuilder text = new StringBuilder("rank " + self.rank() + ": " + failure);
        for (StackTraceElement frame : failure.getStackTrace()) {
            text.append(System.lineSeparator()).append("\tat ").append(frame);
        }
        return text.toString();
    }

    /** Prints a text on rank 0 only. */
    static void printAtRoot(Communicator communicator, String text) {
        if (communicator.rank() == 0) {
            System.out.println(text);
        }
    }

    /** Prints why the sample can't run here. All ranks call this and return successfully. */
    static void skip(Communicator communicator, String reason) {
        printAtRoot(communicator, "skipped: " + reason);
    }

    /**
     * Checks the result of an operation.
     *
     * @param mismatch the wrong elements
     * @param communicator the communicator of the operation
     * @param operation the operation, for the message
     * @throws Failure if there is a wrong element
     */
    static void check(Mismatch mismatch, Communicator communicator, String operation) {
        if (!mismatch.isEmpty()) {
            throw new Failure("rank " + communicator.rank() + ": " + operation + ": element " + mismatch.index()
                    + " is wrong: expected " + mismatch.expected() + ", got " + mismatch.got() + " (" + mismatch.count()
                    + " wrong in all)");
        }
    }

    /** Thrown if the sample can't run or an element is wrong. */
    static final class Failure extends RuntimeException {

        private static final long serialVersionUID = 1;

        Failure(String message) {
            super(message);
        }
    }
}

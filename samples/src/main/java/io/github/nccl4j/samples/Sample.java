package io.github.nccl4j.samples;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.FailurePolicy;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.TcpStore;
import io.github.nccl4j.library.Engine;
import io.github.nccl4j.samples.support.Mismatch;
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
 * A numbered program that runs on every rank and checks its own results.
 *
 * <p>A subclass is a picocli command whose name begins with its number; {@link #run} throws when an element is wrong.
 */
abstract class Sample implements Callable<Integer> {

    @ParentCommand
    private RunCommand command;

    @Spec
    private CommandSpec spec;

    /** {@return its name, such as {@code 01-all-reduce}} */
    final String name() {
        return getClass().getAnnotation(Command.class).name();
    }

    /** {@return what it does, in one line} */
    final String summary() {
        return getClass().getAnnotation(Command.class).description()[0];
    }

    /** Checks options that picocli can't; called before ranks are started. */
    void validate() {}

    /**
     * Does this rank's part.
     *
     * @param communicator that of all ranks, which the caller closes
     * @throws Failure if an element is wrong
     */
    abstract void run(Communicator communicator);

    @Override
    public final Integer call() throws Exception {
        validate();
        return command.run(this);
    }

    /** For {@link #validate}. */
    final ParameterException invalid(String message) {
        return new ParameterException(spec.commandLine(), message);
    }

    final int runAs(RankInfo self, Duration timeout) {
        Communicator communicator = null;
        try {
            if (standsIn(self, timeout)) {
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
                // So that nobody waits for this rank.
                communicator.abort();
            }
            return CommandLine.ExitCode.SOFTWARE;
        }
    }

    /** {@return which ranks the launcher may see killed without ending the others} */
    IntPredicate mayBeKilled(int size) {
        return rank -> false;
    }

    /**
     * Does the part of a rank that is another program, for which this process only stands.
     *
     * @return false if this process is the rank itself
     */
    boolean standsIn(RankInfo self, Duration timeout) {
        return false;
    }

    /** Meets the other ranks. With the policy a rank that notices a lost one frees its device, which closing buffers needs. */
    Communicator connect(RankInfo self, Duration timeout) {
        requireNoRccl();
        if (self.worldSize() > 1) {
            TcpStore.ofProcess(self, timeout).barrier("start", timeout);
        }
        return Communicator.builder().onFailure(FailurePolicy.ABORT).fromEnvironment();
    }

    /** The rank's device: host memory with the host engine, else one of the GPUs that this process sees. */
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

    /** Expected failures say all in their message; anything else is a bug, and its stack tells where. */
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

    /** Prints what concerns all ranks, once. */
    static void printAtRoot(Communicator communicator, String text) {
        if (communicator.rank() == 0) {
            System.out.println(text);
        }
    }

    /** Says why there is nothing to do here, which is no failure; every rank then returns. */
    static void skip(Communicator communicator, String why) {
        printAtRoot(communicator, "skipped: " + why);
    }

    /** Fails if anything is wrong. */
    static void check(Mismatch mismatch, Communicator communicator, String what) {
        if (!mismatch.none()) {
            throw new Failure("rank " + communicator.rank() + ": " + what + ": element " + mismatch.index()
                    + " is wrong: expected " + mismatch.expected() + ", got " + mismatch.got() + " (" + mismatch.count()
                    + " wrong in all)");
        }
    }

    /** The sample can't run here, or an element is not what it must be. */
    static final class Failure extends RuntimeException {

        private static final long serialVersionUID = 1;

        Failure(String message) {
            super(message);
        }
    }
}

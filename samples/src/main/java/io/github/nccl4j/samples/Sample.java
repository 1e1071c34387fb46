package io.github.nccl4j.samples;

import io.github.nccl4j.library.NativeLibrary;
import io.github.nccl4j.samples.support.Mismatch;
import io.github.nccl4j.samples.support.RankInfo;
import io.github.nccl4j.samples.support.RankSession;
import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.Callable;
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
     * @param session the communicator and memory of this rank
     * @throws WrongResult if an element is wrong
     */
    abstract void run(RankSession session);

    @Override
    public final Integer call() throws IOException, InterruptedException {
        validate();
        return command.run(this);
    }

    /** For {@link #validate}. */
    final ParameterException invalid(String message) {
        return new ParameterException(spec.commandLine(), message);
    }

    final int runAs(RankInfo self, Duration timeout) {
        RankSession session = null;
        try {
            session = RankSession.open(self, timeout);
            printEngine(session);
            run(session);
            session.close();
            return CommandLine.ExitCode.OK;
        } catch (RuntimeException | LinkageError failure) {
            System.out.flush();
            System.err.println(name() + ": " + describe(failure, self));
            if (session != null) {
                session.abort();
            }
            return CommandLine.ExitCode.SOFTWARE;
        }
    }

    /** Expected failures say all in their message; anything else is a bug, and its stack tells where. */
    private static String describe(Throwable failure, RankInfo self) {
        if (failure.getClass().getName().startsWith("io.github.nccl4j.")) {
            return failure.getMessage();
        }
        StringBuilder text = new StringBuilder("rank " + self.rank() + ": " + failure);
        for (StackTraceElement frame : failure.getStackTrace()) {
            text.append(System.lineSeparator()).append("\tat ").append(frame);
        }
        return text.toString();
    }

    private static void printEngine(RankSession session) {
        if (session.self().rank() == 0) {
            System.out.println("# nccl4j " + Main.Version.number() + ", engine " + NativeLibrary.engine() + ", NCCL "
                    + NativeLibrary.version() + ", library " + NativeLibrary.path());
            int ranks = session.self().worldSize();
            System.out.println("# " + ranks + (ranks == 1 ? " rank" : " ranks") + ", rank 0 on "
                    + session.device().describe());
        }
    }

    /** Fails if anything is wrong. */
    static void check(Mismatch mismatch, RankSession session, String what) {
        if (!mismatch.none()) {
            throw new WrongResult("rank " + session.self().rank() + ": " + what + ": element " + mismatch.index()
                    + " is wrong: expected " + mismatch.expected() + ", got " + mismatch.got() + " (" + mismatch.count()
                    + " wrong in all)");
        }
    }

    /** An element is not what it must be. */
    static final class WrongResult extends RuntimeException {

        private static final long serialVersionUID = 1;

        WrongResult(String message) {
            super(message);
        }
    }
}

package io.github.nccl4j.tools;

import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.TcpStore;
import io.github.nccl4j.library.Engine;
import io.github.nccl4j.tools.launch.CommandErrors;
import io.github.nccl4j.tools.launch.LauncherWatch;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import picocli.CommandLine.ExitCode;

/**
 * A rank of a sample: waits for the other ranks, prints the library on rank 0, and runs the sample's {@code main}.
 *
 * <p>The sample gets the variables of any launched program, for its rank and for the library. A failure whose message
 * is complete is printed in one line, instead of the stack trace of an uncaught exception.
 */
final class SampleRank {
    private SampleRank() {}

    /**
     * Runs a rank and ends this JVM.
     *
     * @param args the time to wait for the other ranks in seconds, the name and the class of the sample, and its own arguments
     */
    public static void main(String[] args) {
        int code = CommandErrors.run(() -> {
            LauncherWatch.start();
            Duration initTimeout = Duration.ofSeconds(Long.parseLong(args[0]));
            List<String> own = List.of(args).subList(3, args.length);
            return run(RankInfo.fromEnvironment(), initTimeout, args[1], args[2], own);
        });
        System.out.flush();
        System.err.flush();
        System.exit(code);
    }

    /**
     * Runs a rank in this process, which has chosen its library.
     *
     * @param self the rank of this process, with its local rank
     * @param initTimeout the time to wait for the other ranks
     * @param name the name of the sample
     * @param className its class
     * @param arguments its own arguments
     * @return the exit code
     */
    static int run(RankInfo self, Duration initTimeout, String name, String className, List<String> arguments) {
        try {
            boolean isBack = false;
            if (self.worldSize() > 1) {
                TcpStore store = TcpStore.ofProcess(self, initTimeout);
                isBack = store.attempt() > 0;
                if (!isBack) {
                    store.barrier("start", initTimeout);
                }
            }
            NcclLibrary library = NcclLibrary.get();
            if (library.engine() == Engine.RCCL) {
                throw new IllegalStateException(
                        "the samples have no access to the memory of AMD GPUs; library: " + library.path());
            }
            if (self.rank() == 0 && !isBack) {
                int ranks = self.worldSize();
                System.out.println("# nccl4j " + Version.number() + ", engine " + library.engine() + ", NCCL "
                        + library.version() + ", library " + library.path());
                System.out.println("# " + ranks + (ranks == 1 ? " rank" : " ranks") + device(library, self));
            }
            Class.forName(className).getMethod("main", String[].class).invoke(null, (Object)
                    arguments.toArray(String[]::new));
            return ExitCode.OK;
        } catch (InvocationTargetException e) {
            return report(e.getCause(), self, name, className);
        } catch (RuntimeException | LinkageError | ReflectiveOperationException failure) {
            return report(failure, self, name, className);
        }
    }

    private static String device(NcclLibrary library, RankInfo self) {
        if (library.engine() == Engine.HOST) {
            return ", rank 0 on " + Device.host();
        }
        int gpus = Device.cudaCount();
        // Without a GPU the sample fails, and its message has the reason.
        return gpus == 0 ? "" : ", rank 0 on " + Device.cuda(self.device(gpus));
    }

    private static int report(Throwable failure, RankInfo self, String name, String className) {
        boolean isUsage = failure instanceof IllegalArgumentException
                && innermostClass(failure).equals(className);
        StringBuilder text = new StringBuilder(name + ": ");
        if (isUsage || isClear(failure, className)) {
            text.append(CommandErrors.reason(failure));
        } else {
            text.append("rank ").append(self.rank()).append(": ").append(failure);
            if (!(failure instanceof OutOfMemoryError)) {
                Arrays.stream(failure.getStackTrace()).forEach(frame -> text.append(System.lineSeparator())
                        .append("\tat ")
                        .append(frame));
            }
        }
        System.out.flush();
        System.err.println(text);
        return isUsage ? ExitCode.USAGE : ExitCode.SOFTWARE;
    }

    /**
     * True if the message is complete: exceptions of nccl4j and of the samples, and of programs that can't be started.
     */
    private static boolean isClear(Throwable failure, String className) {
        StackTraceElement[] frames = failure.getStackTrace();
        return failure.getClass().getName().startsWith("io.github.nccl4j.")
                || failure instanceof IOException
                || failure instanceof IllegalStateException
                        && frames.length > 0
                        && List.of(className, SampleRank.class.getName()).contains(frames[0].getClassName());
    }

    /** The class of the innermost method that is not the JDK's. */
    private static String innermostClass(Throwable failure) {
        return Arrays.stream(failure.getStackTrace())
                .map(StackTraceElement::getClassName)
                .filter(name -> !name.startsWith("java."))
                .findFirst()
                .orElse("");
    }
}

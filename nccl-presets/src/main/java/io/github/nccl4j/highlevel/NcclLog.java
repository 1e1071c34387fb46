package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.internal.log.LogFile;
import io.github.nccl4j.internal.log.LogParser;
import io.github.nccl4j.internal.threads.DaemonThreads;
import io.github.nccl4j.internal.threads.ServiceLoop;
import io.github.nccl4j.library.NativeLibrary;
import io.github.nccl4j.library.SystemText;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.System.Logger;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * Forwards NCCL's own log to the {@link System.Logger} named {@value #LOGGER}, with rank and communicator if they are
 * known. While the log is forwarded, exceptions carry the last warnings: {@link NcclResultException#warnings()}.
 * Forwarding is off by default; it is started by {@link #start}, {@code -Dnccl4j.log=WARN} ({@code INFO}, {@code
 * TRACE}) or the variable {@code NCCL4J_LOG}.
 *
 * <pre>{@code
 * NcclLog.start(NcclLog.Level.WARN); // before anything else that uses NCCL
 * try {
 *     communicator.allReduce(buffer, ReduceOp.SUM, stream);
 *     communicator.work(stream).await();
 * } catch (NcclResultException e) {
 *     e.warnings().forEach(System.err::println);
 * }
 * }</pre>
 *
 * <p>NCCL writes to a file in the temporary folder. A thread of this class reads the file. The file is deleted when the
 * process ends; a process that crashes leaves it behind. NCCL never waits for a logger: lines that a slow logger has
 * not taken stay in the file. Level {@code WARN} writes a few lines; {@code INFO} and {@code TRACE} write as long as
 * the process lives.
 *
 * <p>Settings in the environment take precedence. If {@code NCCL_DEBUG} is set, it determines the level; if {@code
 * NCCL_DEBUG_FILE} is set, the lines are written to and read from that file. VCCL prints some lines to standard output
 * regardless of settings. The host engine writes no log.
 *
 * <p>All methods may be called from any thread.
 *
 * @since 0.1
 */
public final class NcclLog {
    /** The name of the logger. */
    public static final String LOGGER = "io.github.nccl4j.nccl";

    private static final String PROPERTY = "nccl4j.log";
    private static final String DEBUG = "NCCL_DEBUG";
    private static final String DEBUG_FILE = "NCCL_DEBUG_FILE";
    private static final String RESET = "ncclResetDebugInit";
    private static final int KEPT_WARNINGS = 16;
    private static final int WARNINGS_OF_AN_EXCEPTION = 5;
    private static final long PAUSE_MILLIS = 100;

    private static NcclLog started;

    private final Level level;
    private final Logger logger = System.getLogger(LOGGER);
    private final long pid = ProcessHandle.current().pid();
    private final Deque<Warning> warnings = new ArrayDeque<>();
    private final LogFile toLogger;
    private final LogFile toWarnings;

    /** Amount of NCCL's log; each level includes the previous ones. */
    public enum Level {
        /** Failures. */
        WARN(Logger.Level.WARNING),

        /** NCCL's findings and choices, mostly during the creation of communicators. */
        INFO(Logger.Level.INFO),

        /** Every call, if NCCL was built for it. */
        TRACE(Logger.Level.TRACE);

        private final Logger.Level severity;

        Level(Logger.Level severity) {
            this.severity = severity;
        }
    }

    /**
     * A line of the log.
     *
     * @param level the level of the line
     * @param thread the operating system's id of the thread that wrote the line; -1 if unknown
     * @param device the CUDA device of that thread; -1 if unknown
     * @param place the position in NCCL's sources, such as "init.cc:411"; empty if unknown
     * @param text the message
     * @param rank the rank to which the line applies; -1 if unknown
     * @param communicator the name of the communicator; empty if it has no name or is unknown
     */
    public record Line(Level level, long thread, int device, String place, String text, int rank, String communicator) {

        /**
         * Returns the text that is logged, such as {@code "rank 3 of communicator 'train': Call to connect failed
         * (misc/socket.cc:568)"}.
         */
        @Override
        public String toString() {
            StringBuilder all = new StringBuilder();
            if (rank >= 0) {
                all.append("rank ").append(rank);
                if (!communicator.isEmpty()) {
                    all.append(" of communicator '").append(communicator).append('\'');
                }
                all.append(": ");
            }
            all.append(text);
            return place.isEmpty()
                    ? all.toString()
                    : all.append(" (").append(place).append(')').toString();
        }
    }

    /** A warning, and the time when it was read, shortly after NCCL wrote it. */
    record Warning(Line line, long seen) {}

    private NcclLog(Level level, Path file, long start) {
        this.level = level;
        toLogger = new LogFile(file, start, this::log);
        toWarnings = new LogFile(file, start, this::keepWarning);
    }

    /**
     * Makes NCCL write its log, and forwards the log to the logger from now on. Call this method before any other use
     * of NCCL; a later call needs NCCL 2.24.3 or newer, which can read its settings again. A second call with the same
     * level does nothing.
     *
     * @param level the amount of the log
     * @throws IllegalStateException if the log was started with another level, or if an older library is loaded already
     * @throws UncheckedIOException if the file can't be created in the temporary folder
     */
    public static void start(Level level) {
        Objects.requireNonNull(level, "level");
        synchronized (NcclLog.class) {
            if (started != null) {
                if (started.level != level) {
                    throw new IllegalStateException(
                            "the log was started with level " + started.level + "; it can't be changed to " + level);
                }
                return;
            }
            boolean late = NativeLibrary.isLoaded();
            if (late && !NativeLibrary.provides(RESET)) {
                throw new IllegalStateException("the log must be started before NCCL is used: NCCL "
                        + NativeLibrary.version() + " is loaded, and reads its settings once (since 2.24.3, "
                        + RESET + " can have them read again)");
            }
            started = open(level);
            if (late) {
                nccl.ncclResetDebugInit();
            }
            started.follow();
        }
    }

    /** Starts the log if a setting asks for it; called before a library is used. */
    static void startBySetting() {
        String wanted = System.getProperty(PROPERTY, System.getenv().getOrDefault("NCCL4J_LOG", ""))
                .strip();
        if (wanted.isEmpty()) {
            return;
        }
        try {
            start(Level.valueOf(wanted.toUpperCase(Locale.ROOT)));
        } catch (IllegalArgumentException unknown) {
            throw new IllegalArgumentException(
                    PROPERTY + " (NCCL4J_LOG) is '" + wanted + "'; it must be WARN, INFO or TRACE", unknown);
        }
    }

    /** {@return true if NCCL's log is forwarded} */
    public static boolean isStarted() {
        synchronized (NcclLog.class) {
            return started != null;
        }
    }

    /**
     * Returns NCCL's last warnings in this process, oldest first, at most {@value #KEPT_WARNINGS}. Includes all
     * warnings that NCCL wrote before the call.
     *
     * @return the warnings; empty if the log was not started
     */
    public static List<Line> warnings() {
        NcclLog log;
        synchronized (NcclLog.class) {
            log = started;
        }
        return log == null
                ? List.of()
                : log.readWarnings().stream().map(Warning::line).toList();
    }

    /**
     * Returns the warnings for an exception: those since the failed call began that are of its rank and communicator,
     * or of unknown origin.
     *
     * @param rank the rank, or -1
     * @param name the communicator's name
     * @param handle the communicator's handle, or 0
     * @param began the start of the failed call, in milliseconds since 1970
     */
    static List<Line> warningsOf(int rank, String name, long handle, long began) {
        NcclLog log;
        synchronized (NcclLog.class) {
            log = started;
        }
        return log == null ? List.of() : lastOf(log.readWarnings(), rank, name, handle, began);
    }

    static List<Line> lastOf(List<Warning> all, int rank, String name, long handle, long began) {
        List<Line> own = all.stream()
                .filter(warning -> warning.seen() >= began
                        && !LogParser.namesAnother(warning.line().text(), handle))
                .map(Warning::line)
                .filter(line -> rank < 0
                        || line.rank() < 0
                        || line.rank() == rank
                                && (line.communicator().isEmpty()
                                        || line.communicator().equals(name)))
                .toList();
        return own.subList(Math.max(0, own.size() - WARNINGS_OF_AN_EXCEPTION), own.size());
    }

    private static NcclLog open(Level level) {
        if (System.getenv(DEBUG) == null) {
            NativeLibrary.setVariable(DEBUG, level.toString());
        }
        String wanted = SystemText.environment().getOrDefault(DEBUG_FILE, "");
        try {
            if (!wanted.isEmpty()) {
                Path file = SystemText.path(expanded(wanted));
                return new NcclLog(level, file, Files.exists(file) ? Files.size(file) : 0);
            }
            Path folder = Files.createTempDirectory("nccl4j-log");
            Path file = Files.createFile(folder.resolve("nccl.log"));
            NativeLibrary.setVariable(DEBUG_FILE, SystemText.text(file).replace("%", "%%"));
            NcclLog log = new NcclLog(level, file, 0);
            Runtime.getRuntime().addShutdownHook(new Thread(() -> log.end(file, folder), "nccl4j log end"));
            return log;
        } catch (IOException e) {
            throw new UncheckedIOException("no file for NCCL's log: " + e.getMessage(), e);
        } catch (InvalidPathException e) {
            throw new UncheckedIOException(new IOException("NCCL's log cannot be read: " + e.getMessage(), e));
        }
    }

    /** Expands a file name as NCCL does: %h is the host's name up to the first dot, %p the process. */
    private static String expanded(String path) throws IOException {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < path.length(); i++) {
            char c = path.charAt(i);
            char next = c == '%' && i + 1 < path.length() ? path.charAt(++i) : 0;
            switch (next) {
                case 0 -> text.append(c);
                case '%' -> text.append('%');
                case 'h' ->
                    text.append(Files.readString(Path.of("/proc/sys/kernel/hostname"))
                            .strip()
                            .replaceFirst("\\..*", ""));
                case 'p' -> text.append(ProcessHandle.current().pid());
                default -> text.append('%').append(next);
            }
        }
        return text.toString();
    }

    private void follow() {
        DaemonThreads.start("nccl4j log", this::readForever);
    }

    private void readForever() {
        ServiceLoop.run("the reader of NCCL's log", () -> {
            // Before the logger is called, which may block: callers that ask for warnings should not have to read
            // all.
            readWarnings();
            read(toLogger);
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(PAUSE_MILLIS));
            return true;
        });
    }

    private static void read(LogFile file) {
        try {
            file.read();
        } catch (IOException missing) {
            // NCCL creates the configured file at its first line; the temporary file may have been cleaned up.
        }
    }

    private List<Warning> readWarnings() {
        read(toWarnings);
        synchronized (warnings) {
            return List.copyOf(warnings);
        }
    }

    /** Returns a line of the log; empty if another process wrote it. */
    static Optional<Line> parse(String text, long pid) {
        return LogParser.parse(text, pid)
                .map(line -> new Line(
                        Level.valueOf(line.level()),
                        line.thread(),
                        line.device(),
                        line.place(),
                        line.text(),
                        line.rank(),
                        line.communicator()));
    }

    private void keepWarning(String text) {
        parse(text, pid).filter(line -> line.level() == Level.WARN).ifPresent(line -> {
            synchronized (warnings) {
                if (warnings.size() == KEPT_WARNINGS) {
                    warnings.removeFirst();
                }
                warnings.addLast(new Warning(line, System.currentTimeMillis()));
            }
        });
    }

    private void log(String text) {
        parse(text, pid).ifPresent(line -> {
            try {
                logger.log(line.level().severity, line);
            } catch (RuntimeException | Error ofTheLogger) {
                // The next lines follow.
                ServiceLoop.log(System.Logger.Level.ERROR, "a line of NCCL's log was not logged", ofTheLogger);
            }
        });
    }

    private void end(Path file, Path folder) {
        read(toLogger);
        try {
            Files.deleteIfExists(file);
            Files.deleteIfExists(folder);
        } catch (IOException undeletable) {
            // The system cleans its temporary folder.
        }
    }
}

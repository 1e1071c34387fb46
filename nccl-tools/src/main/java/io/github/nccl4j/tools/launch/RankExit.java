package io.github.nccl4j.tools.launch;

import java.util.Map;
import java.util.Set;

/**
 * The end of the process of a rank or spare. Immutable.
 *
 * @param role its role at the end
 * @param pid its process id
 * @param code its exit code, as returned by {@link Process#exitValue()}: 128 + signal number after a fatal signal
 */
record RankExit(Role role, long pid, int code) {

    private static final int SIGNAL_BASE = 128;
    private static final int KILL = 9;
    private static final int LAST_SIGNAL = 64;
    private static final Map<Integer, String> SIGNAL_NAMES = Map.ofEntries(
            Map.entry(1, "SIGHUP"),
            Map.entry(2, "SIGINT"),
            Map.entry(3, "SIGQUIT"),
            Map.entry(4, "SIGILL"),
            Map.entry(5, "SIGTRAP"),
            Map.entry(6, "SIGABRT"),
            Map.entry(7, "SIGBUS"),
            Map.entry(8, "SIGFPE"),
            Map.entry(9, "SIGKILL"),
            Map.entry(10, "SIGUSR1"),
            Map.entry(11, "SIGSEGV"),
            Map.entry(12, "SIGUSR2"),
            Map.entry(13, "SIGPIPE"),
            Map.entry(14, "SIGALRM"),
            Map.entry(15, "SIGTERM"),
            Map.entry(24, "SIGXCPU"),
            Map.entry(31, "SIGSYS"));

    boolean isFailure() {
        return code != 0;
    }

    /** True if a signal ended the process. */
    boolean isKilled() {
        return code > SIGNAL_BASE && code <= SIGNAL_BASE + LAST_SIGNAL;
    }

    /** True if SIGKILL ended the process. */
    boolean isSigkill() {
        return code == SIGNAL_BASE + KILL;
    }

    /** True if SIGHUP, SIGINT or SIGTERM ended the process: signals by which users and systems ask programs to end. */
    boolean isAskedToEnd() {
        return Set.of(SIGNAL_BASE + 1, SIGNAL_BASE + 2, SIGNAL_BASE + 15).contains(code);
    }

    String describe() {
        String process = role.describe() + " (pid " + pid + ")";
        if (!isKilled()) {
            return process + " exited with code " + code;
        }
        int signal = code - SIGNAL_BASE;
        String name = SIGNAL_NAMES.get(signal);
        return process + " was killed by signal " + signal + (name == null ? "" : " (" + name + ")");
    }
}

package io.github.nccl4j.internal.communicator;

import io.github.nccl4j.library.SystemText;
import io.github.nccl4j.ras.RasClient;
import io.github.nccl4j.ras.RasDefect;
import io.github.nccl4j.ras.RasException;
import io.github.nccl4j.ras.RasFormat;
import java.time.Duration;
import java.util.Locale;

/** The report of NCCL's RAS service at a timeout, if the program opted in. */
public final class RasQuery {
    private static final String PROPERTY = "nccl4j.ras";
    private static final String VARIABLE = "NCCL4J_RAS";

    private static final Duration CONNECT_TIMEOUT = Duration.ofSeconds(2);
    private static final Duration TIMEOUT = Duration.ofSeconds(1);

    /** A job of thousands of ranks may have a report of megabytes. */
    private static final int MAX_CHARS = 16_384;

    private RasQuery() {}

    /**
     * Returns lines for the message of a timeout; empty unless the program opted in. Takes up to 14 s if processes are stopped.
     *
     * @param version the release of NCCL in this process
     */
    public static String report(int version) {
        String setting = System.getProperty(PROPERTY, SystemText.environment().getOrDefault(VARIABLE, ""));
        return report(setting, version, RasClient.defaultAddress());
    }

    static String report(String setting, int version, String address) {
        switch (setting.strip().toLowerCase(Locale.ROOT)) {
            case "", "false" -> {
                return "";
            }
            case "true" -> {
                String warning = RasDefect.warning(version);
                return warning.isEmpty()
                        ? ask(address)
                        : "RAS was not asked: " + warning + ". " + PROPERTY + "=force asks nevertheless.";
            }
            case "force" -> {
                return ask(address);
            }
            default -> {
                return PROPERTY + " must be true, false or force: " + setting;
            }
        }
    }

    private static String ask(String address) {
        try (RasClient client = RasClient.connect(address, CONNECT_TIMEOUT)) {
            String report = client.status(RasFormat.TEXT, TIMEOUT).strip();
            return "RAS reports:\n"
                    + (report.length() <= MAX_CHARS
                            ? report
                            : report.substring(0, MAX_CHARS) + "\n... and " + (report.length() - MAX_CHARS)
                                    + " more characters");
        } catch (RasException | IllegalArgumentException failure) {
            return "RAS could not be asked: " + failure.getMessage();
        }
    }
}

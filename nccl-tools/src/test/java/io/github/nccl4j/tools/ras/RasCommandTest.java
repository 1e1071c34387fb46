package io.github.nccl4j.tools.ras;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.ras.RasDefect;
import io.github.nccl4j.testing.ServedLines;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.OptionalInt;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import picocli.CommandLine;

/** {@code nccl4j ras} against a service of this test. */
@Timeout(60)
class RasCommandTest {
    private record Outcome(int code, String out, String err) {}

    @TempDir
    private Path proc;

    private Outcome ras(String... arguments) {
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        CommandLine command = new CommandLine(new RasCommand(proc)).setOut(new PrintWriter(new BufferedWriter(out)));
        command.setErr(new PrintWriter(err));
        return new Outcome(command.execute(arguments), out.toString(), err.toString());
    }

    private Outcome forced(ServedLines service, String options) {
        return ras((service.address() + " --force " + options).split(" "));
    }

    /** A service of a job that is well. */
    private static ServedLines service() throws IOException {
        return new ServedLines(line -> switch (line) {
            case "CLIENT PROTOCOL 2" -> "SERVER PROTOCOL 2\n";
            case "TIMEOUT 1", "TIMEOUT 5", "TIMEOUT 3", "TIMEOUT 3600", "SET FORMAT json" -> "OK\n";
            case "STATUS" -> "Job summary\n\u001b[31m\u009b1m\u202e\n" + ServedLines.END;
            case "VERBOSE STATUS" -> "Connections\n" + ServedLines.END;
            case "MONITOR lifecycle" -> "OK\none\ntwo\n" + ServedLines.END;
            case "MONITOR lifecycle,trace" -> "OK\nall\n" + ServedLines.END;
            default -> "ERROR: Unknown command " + line + "\n";
        });
    }

    /** Makes /proc say that a process with a release of NCCL listens at a port. */
    private void listen(int process, int port, String release) throws IOException {
        Path net = Files.createDirectories(proc.resolve("net"));
        Path table = net.resolve("tcp");
        String line = String.format(
                Locale.ROOT,
                "   0: 0100007F:%04X 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0 0 %d 1 0 100 0%n",
                port,
                7000 + process);
        Files.writeString(table, (Files.exists(table) ? Files.readString(table) : "  sl  local_address\n") + line);
        Path own = Files.createDirectories(proc.resolve(process + "/fd")).getParent();
        Files.createSymbolicLink(own.resolve("fd/9"), Path.of("socket:[" + (7000 + process) + "]"));
        Files.createSymbolicLink(own.resolve("fd/10"), Path.of("socket:[1]"));
        Path library = Files.createDirectories(own.resolve("root/opt")).resolve("libnccl.so.2");
        Files.write(
                library,
                ("\0NNCCL version \0NCCL version " + release + "+cuda13.0\0").getBytes(StandardCharsets.US_ASCII));
        Files.writeString(own.resolve("maps"), "7f00-7f10 r-xp 00000000 00:00 0     /opt/libnccl.so.2\n");
    }

    @Test
    void reportIsPrintedWithoutControlCharacters() throws IOException {
        try (ServedLines service = service()) {
            listen(1, service.port(), "2.32.3");
            assertEquals(new Outcome(0, "Job summary\n?[31m?1m?\n", ""), ras(service.address()));
            assertEquals(List.of("CLIENT PROTOCOL 2", "TIMEOUT 5", "STATUS"), service.received);
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "--json --timeout 3 | CLIENT PROTOCOL 2,TIMEOUT 3,SET FORMAT json,STATUS",
                "--timeout 1 | CLIENT PROTOCOL 2,TIMEOUT 1,STATUS",
                "--timeout 3600 | CLIENT PROTOCOL 2,TIMEOUT 3600,STATUS",
                "--verbose | CLIENT PROTOCOL 2,TIMEOUT 5,VERBOSE STATUS",
                "--monitor | CLIENT PROTOCOL 2,MONITOR lifecycle",
                "--monitor all --json | 'CLIENT PROTOCOL 2,SET FORMAT json,MONITOR lifecycle,trace'",
            })
    void optionsAreRequests(String options, String requests) throws IOException {
        try (ServedLines service = service()) {
            Outcome outcome = forced(service, options);
            assertEquals(0, outcome.code(), outcome::toString);
            assertEquals(requests, String.join(",", service.received));
        }
    }

    @Test
    void eventsArePrintedUntilTheJobEnds() throws IOException {
        try (ServedLines service = service()) {
            assertEquals(new Outcome(0, "one\ntwo\n", ""), ras(service.address(), "--force", "--monitor"));
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "2.24.3 | while a communicator is being created (nccl#1669, nccl#1718), or if ranks are missing (nccl#1762)",
                "2.27.2 | while a communicator is being created (nccl#1669, nccl#1718), or if ranks are missing (nccl#1762)",
                "2.27.3 | if ranks are missing (nccl#1762), or while a communicator is being created (nccl#2346)",
                "2.29.1 | if ranks are missing (nccl#1762), or while a communicator is being created (nccl#2346)",
                "2.29.7 | while a communicator is being created (nccl#2346)",
                "2.30.7 | while a communicator is being created (nccl#2346)",
            })
    void releaseThatMayCrashIsNotAsked(String release, String reason) throws IOException {
        try (ServedLines service = service()) {
            listen(1, service.port(), "2.32.3");
            listen(2, service.port(), release);
            Outcome refused = ras(service.address());
            assertEquals(
                    "nccl4j: NCCL " + release + " may crash the job if it is asked " + reason
                            + "; --force queries it nevertheless\n",
                    refused.err());
            assertEquals(1, refused.code());
            assertEquals(List.of("CLIENT PROTOCOL 2"), service.received);
            assertEquals(0, ras(service.address(), "--force").code());
        }
    }

    @Test
    void crashesWithoutAQuestionAreNamedToo() {
        assertTrue(RasDefect.of(22707).contains(RasDefect.CHANGED_PROCESSES));
        assertEquals(List.of(), RasDefect.of(22303));
        assertEquals(List.of(), RasDefect.of(23102));
    }

    @Test
    void unknownReleaseIsNotAsked() throws IOException {
        try (ServedLines service = service()) {
            String reason = "nccl4j: the release of NCCL at /" + service.address()
                    + " is unknown, and in some releases a query may crash the job; --force queries it nevertheless\n";
            assertEquals(new Outcome(1, "", reason), ras(service.address()));
            // One of two processes that listen can't be looked at.
            listen(1, service.port(), "2.32.3");
            listen(2, service.port(), "2.32.3");
            Files.delete(proc.resolve("2/fd/9"));
            assertEquals(new Outcome(1, "", reason), ras(service.address()));
            // A process without NCCL.
            Files.delete(proc.resolve("1/root/opt/libnccl.so.2"));
            assertEquals(new Outcome(1, "", reason), ras(service.address()));
        }
    }

    @Test
    void releaseIsThatOfThePort() throws IOException {
        listen(1, 28028, "2.32.3");
        listen(2, 28029, "2.18.1");
        assertEquals(OptionalInt.of(23203), new ServiceProcess(proc).release(28028));
        assertEquals(OptionalInt.of(21801), new ServiceProcess(proc).release(28029));
        assertEquals(OptionalInt.empty(), new ServiceProcess(proc).release(28030));
    }

    @Test
    void failuresAreNamedWithTheCommandThatExplainsThem() throws IOException {
        String help = " (nccl4j explain NCCL4J-0015)\n";
        int unused;
        try (ServerSocket closed = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            unused = closed.getLocalPort();
        }
        Outcome refused = ras("127.0.0.1:" + unused, "--force");
        assertEquals(1, refused.code());
        assertTrue(
                refused.err().startsWith("nccl4j: no RAS service responds at 127.0.0.1:" + unused + ": "),
                refused::toString);
        try (ServedLines other = new ServedLines(line -> "HTTP/1.1 400 Bad Request\n" + ServedLines.END)) {
            assertEquals(
                    "nccl4j: no RAS service responds at " + other.address() + ": another service listens there" + help,
                    ras(other.address(), "--force").err());
        }
        try (ServedLines old = new ServedLines(line -> switch (line) {
            case "CLIENT PROTOCOL 2" -> "SERVER PROTOCOL 2\n";
            case "TIMEOUT 5" -> "OK\n";
            case "STATUS" -> ServedLines.END;
            default -> "ERROR: Unknown command " + line + "\n";
        })) {
            assertEquals(
                    "nccl4j: the RAS service at " + old.address()
                            + " failed: its response to SET FORMAT json was ERROR: Unknown command SET FORMAT json"
                            + " (SET FORMAT needs NCCL 2.28.7, MONITOR needs 2.29)" + help,
                    ras(old.address(), "--force", "--json").err());
            assertEquals(
                    new Outcome(
                            1,
                            "",
                            "nccl4j: the RAS service at " + old.address()
                                    + " failed: it has closed the connection without a report" + help),
                    ras(old.address(), "--force"));
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "--timeout 0 | --timeout must be from 1 to 3600: 0",
                "--timeout 3601 | --timeout must be from 1 to 3600: 3601",
                "--monitor some | --monitor must be lifecycle, trace or all: some",
                "--verbose --json | --verbose cannot be combined with --json",
                "--verbose --monitor | --verbose cannot be combined with --json",
            })
    void wrongOptionsAreRefused(String options, String message) throws IOException {
        try (ServedLines service = service()) {
            Outcome refused = forced(service, options);
            assertEquals(2, refused.code());
            assertTrue(refused.err().startsWith(message), refused::toString);
            assertEquals(List.of(), service.received);
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            nullValues = "-",
            value = {
                "xNCCL version 2.28.3+cuda | 22803",
                "NCCL version 2.20.9 | 22009",
                "NCCL NCCL version 2.30.10 | 23010",
                "NCCL version x, NCCL version 2.19.3 | 21903",
                "NCCL version 2.128.3+ | 0",
                "NCCL version 2.28+ | 0",
                "NCCL version 2.28. | 0",
                "NCCL version  | 0",
                "CCL version 2.28.3 | 0",
            })
    void releaseIsReadFromTheLibrary(String content, int release) throws IOException {
        Path library = Files.writeString(proc.resolve("libnccl.so"), content);
        assertEquals(release, ServiceProcess.releaseIn(library));
    }

    @Test
    void linesOfTheTableThatAreCutOffAreSkipped() throws IOException {
        listen(1, 28028, "2.32.3");
        Path table = proc.resolve("net/tcp");
        Files.writeString(table, Files.readString(table) + "   1: 0100007F:6D7C 00000000:0000 0A 0:0 00:0 0 0 0\n");
        assertEquals(OptionalInt.of(23203), new ServiceProcess(proc).release(28028));
    }

    @Test
    void withoutProcNothingIsKnown() throws IOException {
        assertEquals(OptionalInt.empty(), new ServiceProcess(proc.resolve("none")).release(28028));
    }

    @Test
    void addressesOfThisMachineAreLocal() throws IOException {
        assertTrue(RasCommand.isLocal(InetAddress.getLoopbackAddress()));
        // Reserved for documentation.
        assertFalse(RasCommand.isLocal(InetAddress.getByName("192.0.2.1")));
        InetAddress own = NetworkInterface.networkInterfaces()
                .flatMap(NetworkInterface::inetAddresses)
                .filter(address -> !address.isLoopbackAddress())
                .findAny()
                .orElse(null);
        Assumptions.assumeTrue(own != null, "this machine has no address but the loopback's");
        assertTrue(RasCommand.isLocal(own));
    }
}

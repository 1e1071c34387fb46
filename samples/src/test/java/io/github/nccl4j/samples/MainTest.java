package io.github.nccl4j.samples;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.PrintWriter;
import java.io.StringWriter;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import picocli.CommandLine;

class MainTest {

    private final StringWriter out = new StringWriter();
    private final StringWriter err = new StringWriter();

    private int execute(String arguments) {
        CommandLine command = Main.commandLine();
        command.setOut(new PrintWriter(out, true));
        command.setErr(new PrintWriter(err, true));
        return command.execute(arguments.isEmpty() ? new String[0] : arguments.split(" "));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "run 09 -n 4 | no such sample: '09'; there are 01-all-reduce, 02-send-recv, 03-all-to-all-v",
                "run 09 -e 4M | no such sample: '09'; there are 01-all-reduce, 02-send-recv, 03-all-to-all-v",
                "run | which sample? There are 01-all-reduce, 02-send-recv, 03-all-to-all-v",
                "run 01 -n 0 | -n must be at least 1: 0",
                "run -n -3 02 | -n must be at least 1: -3",
                "run -n 2 02 --timeout 0 | --timeout must be at least 1: 0",
                "run 01 -n 2 --timeout 0 | --timeout must be at least 1: 0",
                "run 01 -n 2 --engine cuda | no such engine: 'cuda' (nccl, rccl, host or auto)",
                "run 01 -n two | Invalid value for option '--ranks': 'two' is not an int",
                "run 01 -n 2 -e 1X | Invalid value for option '--maxbytes': not a size: '1X' (a number, then K, M, G or nothing)",
                "run 01 -n 2 -b 1K -e 8 | -e must not be less than -b: 8 < 1024",
                "run 01 -n 2 -b 2 | -b must be at least the size of one float, 4: 2",
                "run 01 -n 2 -f 1 | -f must be at least 2: 1",
                "run 02 -n 2 -e 1 | -e must be at least the size of one float, 4: 1",
                "run 03 -n 2 -c 0 | -c must be at least 1: 0",
            })
    void wrongArgumentsAreNamed(String arguments, String message) {
        assertEquals(2, execute(arguments));
        assertEquals("nccl4j: " + message, err.toString().lines().findFirst().orElse(""));
        assertEquals("", out.toString());
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "--help", "run --help", "run 01 --help", "run 02 -h", "run 03-all-to-all-v -h"})
    void helpIsNoError(String arguments) {
        assertEquals(0, execute(arguments));
        assertTrue(out.toString().startsWith("Usage: nccl4j"), out.toString());
    }

    @Test
    void listsTheSamples() {
        assertEquals(0, execute("list"));
        assertEquals(3, out.toString().lines().count());
        assertTrue(out.toString().startsWith("01-all-reduce "), out.toString());
    }
}

package io.github.nccl4j.tools.perf;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.CollectiveConfig;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import picocli.CommandLine;

/** The options of perf: the last valid and the first invalid value at each limit. */
class SettingsTest {

    private static Settings settings(String options) {
        Settings settings = new Settings();
        new CommandLine(settings).parseArgs(options.isEmpty() ? new String[0] : options.split(" "));
        return settings;
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "-t 1 -g 1",
                "-t 64 -g 64",
                "-b 0 -e 0",
                "-b 8 -e 8",
                "-e 1048576G",
                "-f 2 -b 1",
                "-f 1 -b 0",
                "-i 1",
                "-f 2 -i 0",
                "-n 1 -m 1",
                "-w 0 -N 0 -c 0",
                "-z 3",
                "-a 0",
                "-a 3",
                "-R 2",
                "-x 0",
                "-x 2",
                "-y 1 -C 1 -S 1",
                "-T 0 -G 0 -u 0",
                "-r -1",
                "--api raw",
                "--jit-warmup 0",
                "-z 1 -G 0",
                "-z 0 -G 1",
                "--spread 0.5",
                "--algo ring",
                "--algo Tree,ring+^ring_ll --api raw"
            })
    void acceptsValidOptions(String options) {
        assertDoesNotThrow(() -> settings(options).validate(Collective.ALL_REDUCE));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "-t 0|-t must be at least 1: 0",
                "-g 0|-g must be at least 1: 0",
                "-t 64 -g 65|-t times -g must be at most 4096: 64, 65",
                "-b 9 -e 8|-e must not be less than -b: 8 < 9",
                "-e 1048577G|-e must be at most 1048576G: 1125900980584448",
                "-f 0|-f must be at least 1: 0",
                "-f 2 -b 0|with -f, -b must be at least 1: 0",
                "-i 0|-i must be at least 1: 0",
                "-n 0|-n and -m must be at least 1: 0, 1",
                "-m 0|-n and -m must be at least 1: 20, 0",
                "-w -1|-w, -N and -c must not be negative: -1, 1, 1",
                "-N -1|-w, -N and -c must not be negative: 1, -1, 1",
                "-c -1|-w, -N and -c must not be negative: 1, 1, -1",
                "-z -1|-z must be from 0 to 3: -1",
                "-z 4|-z must be from 0 to 3: 4",
                "-a -1|-a must be from 0 to 3: -1",
                "-a 4|-a must be from 0 to 3: 4",
                "-R -1|-R must be from 0 to 2: -1",
                "-R 3|-R must be from 0 to 2: 3",
                "-x -1|-x must be from 0 to 2: -1",
                "-x 3|-x must be from 0 to 2: 3",
                "-y 2|-y must be 0 or 1: 2",
                "-C -1|-C must be 0 or 1: -1",
                "-S 2|-S must be 0 or 1: 2",
                "-p 2|-p must be 0 or 1: 2",
                "-M 2|-M must be 0 or 1: 2",
                "-I 2|-I must be 0 or 1: 2",
                "-I 1 -G 1|-I cannot be combined with -G, which launches all iterations together: -I 1, -G 1",
                "-I 1 -n 100001|with -I 1, -n must be at most 100000: 100001",
                "-I 1 -K -1|-K must be at least 0 and less than -n: -1, -n 20",
                "-I 1 -K 20|-K must be at least 0 and less than -n: 20, -n 20",
                "-K 1|-K needs -I 1: -K 1, -I 0",
                "-D 1|-D must be 0, NCCL's own implementation: 1 is a kernel in CUDA C++ that calls NCCL's device API,"
                        + " which nccl4j lacks",
                "-V 0|-V must be from 1 to 128: 0",
                "-V 129|-V must be from 1 to 128: 129",
                "-V 128|-V must not be set: nccl4j lacks the implementations that have it: -V 128, -D 0",
                "-T -1|-T, -G and -u must not be negative: -1, 0, 0",
                "-G -1|-T, -G and -u must not be negative: 0, -1, 0",
                "-u -1|-T, -G and -u must not be negative: 0, 0, -1",
                "-r -2|-r must be a rank or -1: -2",
                "--api low|--api must be raw or highlevel: low",
                "--jit-warmup -1|--jit-warmup must not be negative: -1",
                "-z 1 -G 1|-z must be 0 with -G, which can't wait for each call: 1",
                "--spread 1.5|--spread must be from 0 to 1: 1.5",
                "--algo ,|--algo: selection must name an algorithm: ','",
                "--algo ring+|--algo: selection must have names of letters, digits and '_', with ',' for or, '+' for and, "
                        + "'^' for not: 'ring+'"
            })
    void rejectsInvalidOptions(String options, String message) {
        assertEquals(
                message,
                assertThrows(IllegalArgumentException.class, () -> settings(options)
                                .validate(Collective.ALL_REDUCE))
                        .getMessage());
    }

    @ParameterizedTest
    @EnumSource(Collective.class)
    void algorithmsAreOfCollectivesThatHaveSome(Collective collective) {
        Settings settings = settings("--algo ring");
        switch (collective) {
            case ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, REDUCE -> {
                assertDoesNotThrow(() -> settings.validate(collective));
                assertEquals(CollectiveConfig.algorithm("ring"), settings.config());
                assertSame(settings.config(), settings.config());
            }
            default ->
                assertEquals(
                        "--algo selects among the algorithms of a collective, and " + collective.label()
                                + " has none: ring",
                        assertThrows(IllegalArgumentException.class, () -> settings.validate(collective))
                                .getMessage());
        }
        assertNull(settings("").config());
    }

    @Test
    void hypercubeRejectsSeveralGpusPerThread() {
        assertDoesNotThrow(() -> settings("-t 2").validate(Collective.HYPERCUBE));
        assertDoesNotThrow(() -> settings("-g 2").validate(Collective.ALL_REDUCE));
        assertEquals(
                "hypercube needs a thread for each GPU, -t instead of -g: its steps wait for each other: -g 2",
                assertThrows(IllegalArgumentException.class, () -> settings("-g 2")
                                .validate(Collective.HYPERCUBE))
                        .getMessage());
    }

    @Test
    void matrixDeterminesTheSizes(@TempDir Path folder) throws IOException {
        Path file = Files.writeString(folder.resolve("matrix"), "0 32\n48 0\n");
        Settings settings = settings("-b 8 -e 8 --matrix " + file);
        assertDoesNotThrow(() -> settings.validate(Collective.ALLTOALLV));
        assertTrue(settings.traffic().isMatrix());
        assertEquals(48, settings.traffic().bytes(1, 0, 2, 0));
        assertFalse(settings("").traffic().isMatrix());
        // By default more distant ranks receive more.
        assertEquals(0, settings("").traffic().bytes(0, 0, 2, 960));
        assertEquals(
                "with a matrix, which contains the sizes, -b and -e must be equal: 8, 16",
                assertThrows(IllegalArgumentException.class, () -> settings("-b 8 -e 16 --matrix " + file)
                                .validate(Collective.ALLTOALLV))
                        .getMessage());
    }

    @Test
    void rejectsFileInMissingFolder(@TempDir Path folder) {
        assertDoesNotThrow(() -> Settings.requireFolder("-J", folder.resolve("new.json")));
        for (Path file : List.of(folder.resolve("none/new.json"), Path.of("/"))) {
            assertEquals(
                    "-J: no such folder: " + file.getParent(),
                    assertThrows(IllegalArgumentException.class, () -> Settings.requireFolder("-J", file))
                            .getMessage());
        }
        // Not even root can create files in this folder.
        assertEquals(
                "-J: the folder is not writable: /proc/sys/kernel/random",
                assertThrows(
                                IllegalArgumentException.class,
                                () -> Settings.requireFolder("-J", Path.of("/proc/sys/kernel/random/new.json")))
                        .getMessage());
    }

    @Test
    void sizesGrowByFactorOrByStep() {
        assertEquals(24, settings("-f 3").next(8));
        assertEquals(12, settings("-i 4").next(8));
        assertTrue(settings("--api raw").raw());
        assertFalse(settings("").raw());
    }

    @Test
    void ncclTestsGetsOnlyNonDefaultOptions() {
        assertEquals(
                "-t 1 -g 1 -b 33554432 -e 33554432 -i 1048576 -n 20 -w 1 -c 1 -a 1 -o sum -d float -r 0",
                String.join(" ", settings("").forNcclTests()));
        assertEquals(
                "-t 2 -g 3 -b 8 -e 16 -f 2 -n 4 -w 5 -c 0 -a 2 -o max -d half -r 1 -m 6 -N 7 -z 3 -y 1 -G 8 -C 1 -R 2 -u 9"
                        + " -x 0",
                String.join(
                        " ",
                        settings(
                                        "-t 2 -g 3 -b 8 -e 16 -f 2 -n 4 -w 5 -c 0 -a 2 -o max -d half -r 1 -m 6 -N 7 -z 3 -y 1 -G 8"
                                                + " -C 1 -R 2 -u 9 -x 0 --api raw")
                                .forNcclTests()));
    }

    @Test
    void summaryEqualsThatOfNcclTests() {
        assertEquals(
                "# nThread 1 nGpus 1 minBytes 33554432 maxBytes 33554432 step: 1048576(bytes) warmup iters: 1 iters: 20"
                        + " agg iters: 1 validation: 1 graph: 0 unalign: 0",
                settings("").summary());
        assertTrue(settings("-f 2").summary().contains(" step: 2(factor) "));
        assertTrue(settings("--algo Ring,TREE").summary().endsWith(" unalign: 0 algorithm: ring,tree"));
    }
}

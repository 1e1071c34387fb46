package io.github.nccl4j.tools.doctor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.tools.support.LibraryCopies;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LibraryCheckTest {
    private static final String LOADED = """
            candidate|libnccl.so.2|cannot open shared object file
            candidate|/opt/nccl/lib/libnccl.so.2|
            path|/opt/nccl/lib/libnccl.so.2
            version|2.28.3
            flavor|NCCL
            form|ABSENT
            cuda|13.0
            copy|/opt/nccl/lib/libnccl.so.2
            """;

    @TempDir
    Path root;

    private LibraryCheck check(String probe) {
        return check(probe, null, null);
    }

    private LibraryCheck check(String probe, String engine, String library) {
        Choice choice = Choice.of(engine, library, new Properties(), Map.of());
        return new LibraryCheck(new TestMachine(root).build(), TestMachine.probe(probe), choice);
    }

    @Test
    void listsLoadedLibraryAndOtherCandidates() {
        Finding finding = check(LOADED).run().get(0);
        assertEquals("NCCL 2.28.3, built for CUDA 13.0, from /opt/nccl/lib/libnccl.so.2", finding.text());
        assertEquals(Finding.Level.OK, finding.level());
        assertEquals(
                List.of(
                        "chosen by the default, engine nccl",
                        "libnccl.so.2: not loaded: cannot open shared object file",
                        "/opt/nccl/lib/libnccl.so.2: loaded"),
                finding.details());
    }

    @Test
    void reportsFormOfAllToAllV() {
        String rccl = LOADED.replace("ABSENT", "NINE_ARGUMENTS");
        assertEquals("ncclAlltoAllv: NINE_ARGUMENTS", lastDetail(rccl));
        assertEquals(
                "ncclAlltoAllv: UNKNOWN; set NCCL4J_VCCL_ALLTOALLV to its number of arguments: 9, 10 or 11",
                lastDetail(LOADED.replace("ABSENT", "UNKNOWN")));
    }

    @Test
    void reportsSupportForEncryption() {
        assertEquals("encryption of TCP connections: TLS is built in", lastDetail(LOADED + "encryption|TLS"));
        assertEquals(
                "encryption of TCP connections: none, the library was built without TLS",
                lastDetail(LOADED + "encryption|BUILT_WITHOUT_TLS"));
        assertEquals(
                "encryption of TCP connections: refused, the library does not show that it was built with TLS",
                lastDetail(LOADED + "encryption|UNKNOWN"));
        assertEquals(
                "encryption of TCP connections: none, NCCL has it since 2.32.3",
                lastDetail(LOADED + "encryption|NO_FUNCTION"));
    }

    private String lastDetail(String probe) {
        List<String> details = check(probe).run().get(0).details();
        return details.get(details.size() - 1);
    }

    @Test
    void reportsHostEngine() {
        assertEquals(
                List.of("ok library.loaded: the host engine, with the functions of NCCL 2.30.7, from /x/host.so"),
                TestMachine.run(
                        check("candidate|/x/host.so|\npath|/x/host.so\nversion|2.30.7\nflavor|HOST\nform|ABSENT")));
    }

    @Test
    void missingLibraryListsPlacesAndPackages() {
        Finding finding = check("candidate|libnccl.so.2|cannot open\ncandidate|/a/libnccl.so.2|truncated")
                .run()
                .get(0);
        assertEquals("library.missing", finding.id());
        assertEquals(Finding.Level.PROBLEM, finding.level());
        assertEquals(
                List.of("libnccl.so.2: not loaded: cannot open", "/a/libnccl.so.2: not loaded: truncated"),
                finding.details());
        assertTrue(finding.advice().contains("pip install nvidia-nccl-cu13"), finding.advice());
    }

    @Test
    void missingRcclIsReportedAsLibrccl() {
        Finding finding =
                check("candidate|librccl.so.1|cannot open", "rccl", null).run().get(0);
        assertEquals("no librccl was found (--engine rccl)", finding.text());
        assertTrue(finding.advice().contains("librccl1"), finding.advice());
    }

    @Test
    void unusablePathAdvisesToCorrectThePath() throws IOException {
        Finding finding = check("candidate|/a/libnccl.so.2|No such file or directory", null, "/a/libnccl.so.2")
                .run()
                .get(0);
        assertEquals("--library does not name a loadable library", finding.text());
        assertTrue(finding.advice().startsWith("Correct the path"), finding.advice());

        Path inside = Files.createFile(root.resolve("libnccl.so.2"));
        finding = check("candidate|" + root + "|not a regular file", null, root.toString())
                .run()
                .get(0);
        assertEquals("Name the file: " + inside, finding.advice());
    }

    @Test
    void invalidSettingIsReported() {
        Finding finding =
                check("error|nccl4j.engine is 'x'\\nsecond line").run().get(0);
        assertEquals("library.unusable", finding.id());
        assertEquals("nccl4j.engine is 'x'", finding.text());
        assertEquals(List.of("second line"), finding.details());
    }

    /** A library may crash the process at any time, even after the probe has printed everything. */
    @Test
    void crashedProbeIsAProblem() {
        ProbeAnswer answer =
                ProbeAnswer.of(new Commands.Result(134, LOADED.replace('|', '\t'), "first\nlibc++abi: terminating\n"));
        List<String> findings = TestMachine.run(new LibraryCheck(new TestMachine(root).build(), answer, Choice.HOST));
        assertEquals(
                List.of("problem library.crash: the process that loaded the library died: exit code 134:"
                        + " libc++abi: terminating"),
                findings);
    }

    @Test
    void twoCopiesInOneProcessAreAProblem() {
        List<Finding> findings =
                check(LOADED + "copy|/usr/lib/libnccl.so.2.27.3\n").run();
        assertEquals("library.copies", findings.get(1).id());
        assertEquals(
                List.of("/opt/nccl/lib/libnccl.so.2", "/usr/lib/libnccl.so.2.27.3"),
                findings.get(1).details());
    }

    @Test
    void preloadedLibraryIsAWarning() {
        Machine machine =
                new TestMachine(root).variable("LD_PRELOAD", "/x/libnccl.so.2").build();
        assertEquals(
                "warning library.preload: LD_PRELOAD names an NCCL library: /x/libnccl.so.2",
                TestMachine.run(new LibraryCheck(machine, TestMachine.probe(LOADED), Choice.HOST))
                        .get(1));
    }

    @Test
    void newerLibraryThatIsFoundLaterIsAWarning() {
        List<Finding> findings = check(
                        LOADED
                                + "shadowed|/a/libnccl.so.2|2.28.3\nshadowed|/b/libnccl.so.2|2.9.9\nshadowed|/c/libnccl.so.2|2.32.3\n")
                .run();
        assertEquals(2, findings.size());
        assertEquals("library.shadowed", findings.get(1).id());
        assertEquals(
                "a newer NCCL is installed, but 2.28.3 in /opt/nccl/lib/libnccl.so.2 is found first",
                findings.get(1).text());
        assertEquals(List.of("NCCL 2.32.3 in /c/libnccl.so.2"), findings.get(1).details());
    }

    @Test
    void releaseIsReadFromAFile() throws IOException {
        Path file = root.resolve("libnccl.so.2");
        for (int at : new int[] {0, (1 << 20) - 10}) {
            byte[] content = new byte[at + 100];
            byte[] banner = "NCCL version 2.30.7+cuda13.0".getBytes(StandardCharsets.US_ASCII);
            System.arraycopy(banner, 0, content, at, banner.length);
            Files.write(file, content);
            assertEquals(Optional.of("2.30.7"), LibraryFile.release(file.toString()));
        }
        Files.writeString(file, "NCCL version 2.30.7");
        assertEquals(Optional.empty(), LibraryFile.release(file.toString()));
        assertEquals(Optional.empty(), LibraryFile.release("libnccl.so.2"));
        assertEquals(Optional.empty(), LibraryFile.release(root.toString()));
    }

    @Test
    void libraryThatHangsOnArm64IsAWarning() {
        assertEquals(
                "warning library.arm64: NCCL 2.28.3 may hang on arm64",
                TestMachine.run(check(LOADED + "architecture|aarch64\n")).get(1));
        for (String other : List.of(
                LOADED + "architecture|amd64\n",
                LOADED.replace("2.28.3", "2.29.3") + "architecture|aarch64\n",
                LOADED.replace("|NCCL", "|HOST") + "architecture|aarch64\n")) {
            assertEquals(1, check(other).run().size(), other);
        }
    }

    @Test
    void findsCopiesInAProcessMap() {
        Stream<String> maps = Stream.of(
                "7f10-7f11 r--p 00000000 08:01 123   /opt/nccl/lib/libnccl.so.2.28.3",
                "7f11-7f12 r-xp 00001000 08:01 123   /opt/nccl/lib/libnccl.so.2.28.3",
                "7f13-7f14 r--p 00000000 08:01 124   /usr/lib/libnccl.so.2 (deleted)",
                "7f15-7f16 r--p 00000000 08:01 125   /usr/lib/libnccl-net.so",
                "7f17-7f18 rw-p 00000000 00:00 0     [heap]");
        assertEquals(List.of("/opt/nccl/lib/libnccl.so.2.28.3", "/usr/lib/libnccl.so.2"), LibraryCopies.of(maps));
    }

    @Test
    void reportsCopiesInAnotherProcess() {
        TestMachine machine = new TestMachine(root)
                .file("/proc/41/maps", "1-2 r-xp 0 0:0 1 /usr/lib/libc.so.6")
                .file("/proc/42/maps", "1-2 r-xp 0 0:0 1 /a/libnccl.so.2\n3-4 r-xp 0 0:0 2 /b/libnccl.so.2");
        assertEquals(
                List.of("ok process.none: the process has not loaded NCCL"),
                TestMachine.run(new ProcessCheck(machine.build(), 41)));
        assertEquals(
                List.of("problem library.copies: the process has 2 copies of NCCL"),
                TestMachine.run(new ProcessCheck(machine.build(), 42)));
        assertEquals(
                List.of("problem process.unreadable: /proc/43/maps can't be read"),
                TestMachine.run(new ProcessCheck(machine.build(), 43)));
    }
}

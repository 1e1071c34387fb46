package io.github.nccl4j.tools;

import static io.github.nccl4j.testing.Expect.assertContains;
import static io.github.nccl4j.tools.SamplesTest.command;
import static io.github.nccl4j.tools.SamplesTest.lines;
import static io.github.nccl4j.tools.SamplesTest.output;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.tools.launch.ChildProcesses;
import io.github.nccl4j.tools.support.Programs;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Errors of the Python process in {@code 10-with-python}, and its GPU code, with a substitute for CUDA's driver. */
@Timeout(600)
class WithPythonTest {

    private static final String RUN = "run 10-with-python -n 2 --engine host --python ";

    @TempDir
    private Path folder;

    /** A shell script to run instead of Python, with the arguments {@code -I -c SCRIPT} and those of the script. */
    private Path program(String body) throws IOException {
        Path program = Files.writeString(folder.resolve("python"), "#!/bin/sh\n" + body + "\n");
        assertTrue(program.toFile().setExecutable(true));
        return program;
    }

    /** A program that runs Python with the sample's script, changed by a sed command. */
    private Path changed(String edit) throws IOException {
        Programs.require("python3", "python3");
        return program("""
                script=$(printf '%s' "$3" | sed '""" + edit + """
                ')
                [ "$script" != "$3" ] || exit 99
                shift 3
                exec python3 -I -c "$script" "$@\"""");
    }

    private static String outputOf(String arguments, int code) throws Exception {
        Process process = ChildProcesses.start(command(arguments));
        String output = String.join("\n", output(process));
        assertEquals(code, process.waitFor(), output);
        return output;
    }

    @Test
    void missingPythonIsReported() throws Exception {
        String output = outputOf(RUN + folder.resolve("python3"), 1);
        assertContains(output, "[1] 10-with-python: Cannot run program \"" + folder.resolve("python3") + "\"");
    }

    @Test
    void killsPythonAtTheDeadline() throws Exception {
        String output = outputOf(RUN + program("exec sleep 1000") + " -d 1", 1);
        Matcher message = Pattern.compile("\\[1] 10-with-python: rank 1: \\S+ \\(pid (\\d+)\\) was killed after 1 s")
                .matcher(output);
        assertTrue(message.find(), output);
        assertFalse(ProcessHandle.of(Long.parseLong(message.group(1)))
                .map(ProcessHandle::isAlive)
                .orElse(false));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "s/-number for/number for/"
                        + "| [0] 10-with-python: rank 0: receive from rank 1: element 1 is wrong: expected -1, got 1",
                "s/(rank + 1)/(rank + 2)/"
                        + "| [1] rank 1 in Python: all-reduce: element 0 is wrong: expected 3, got 4 (100000 wrong in all)",
                "s/, ranks, UniqueId/, 1, UniqueId/" + "| [1] rank 1 in Python: ncclCommInitRank: invalid argument",
                "s/^    memory.write()$/    os.kill(os.getpid(), 9)/" + "| exited with code 137",
                "s/^import ctypes$/import nothing_of_this_name/" + "| exited with code 1",
            })
    void failureOfPythonIsReported(String edit, String message) throws Exception {
        assertContains(outputOf(RUN + changed(edit), 1), message);
    }

    @Test
    void pythonEndsWithItsJvm() throws Exception {
        Path python = changed(
                "s/^    memory.write()$/    print(\"pid\", os.getpid(), flush=True); threading.Event().wait()/");
        Process launcher = ChildProcesses.start(command(RUN + python));
        try (BufferedReader lines = lines(launcher)) {
            String line = lines.readLine();
            while (!line.startsWith("[1] pid ")) {
                line = lines.readLine();
            }
            ProcessHandle child =
                    ProcessHandle.of(Long.parseLong(line.substring(8))).orElseThrow();
            child.parent().orElseThrow().destroyForcibly();
            child.onExit().get(20, TimeUnit.SECONDS);
            assertEquals(137, launcher.waitFor());
        } finally {
            ChildProcesses.kill(launcher);
        }
    }

    @Test
    void needsAGpuForEachRank() throws Exception {
        // The library is taken for NCCL without the function that identifies the host engine.
        Path library = SamplesTest.libraryWithout("nccl4jHostEngineVersion", folder);
        ProcessBuilder builder = command("run 10 -n 2 --library " + library);
        builder.environment().put("CUDA_VISIBLE_DEVICES", "-1");
        Process process = ChildProcesses.start(builder);
        String output = String.join("\n", output(process));
        assertEquals(1, process.waitFor(), output);
        assertContains(
                output,
                "10-with-python: rank 1: each rank needs its own GPU, also that in Python: 2 ranks, 0 GPUs;"
                        + " --engine host needs none");
    }

    /** Python allocates its numbers through a substitute for CUDA's driver; the ranks use the host engine. */
    @Test
    void pythonUsesTheCudaDriver() throws Exception {
        Programs.require("python3", "python3");
        Path source = Files.writeString(folder.resolve("driver.cpp"), """
                #include <cstdlib>
                #include <cstring>
                static char device, *memory;
                static size_t size;
                static int context;
                extern "C" {
                int cuInit(unsigned flags) { return flags; }
                int cuDeviceGet(int* handle, int index) { return index == 1 ? (*handle = 7, 0) : 101; }
                int cuDevicePrimaryCtxRetain(void** made, int handle) { return handle == 7 ? (*made = &device, 0) : 101; }
                int cuCtxSetCurrent(void* given) { return given == &device ? (context = 1, 0) : 201; }
                int cuStreamCreate(void** stream, unsigned) { return context ? (*stream = nullptr, 0) : 201; }
                int cuStreamSynchronize(void* stream) { return stream ? 400 : 0; }
                int cuMemAlloc_v2(unsigned long long* address, size_t bytes) {
                  memory = (char*)calloc(size = bytes, 1);
                  *address = (unsigned long long)memory;
                  return context ? 0 : 201;
                }
                int cuMemcpyHtoD_v2(unsigned long long to, const void* from, size_t bytes) {
                  return (char*)to == memory && bytes == size ? (memcpy(memory, from, bytes), 0) : 1;
                }
                int cuMemcpyDtoH_v2(void* to, unsigned long long from, size_t bytes) {
                  return (char*)from == memory && bytes == size ? (memcpy(to, memory, bytes), 0) : 1;
                }
                }
                """);
        Process compiler = ChildProcesses.start(new ProcessBuilder(List.of(
                        "g++",
                        "-shared",
                        "-fPIC",
                        "-o",
                        folder.resolve("libcuda.so.1").toString(),
                        source.toString()))
                .redirectErrorStream(true));
        String problems = String.join("\n", output(compiler));
        assertEquals(0, compiler.waitFor(), problems);
        String onDevice = "LD_LIBRARY_PATH=" + folder + " exec python3 -I -c \"$3\" \"$4\" \"$5\" \"$6\" \"$7\" ";
        String output = outputOf(RUN + program(onDevice + 1), 0);
        assertContains(output, "[1] rank 1 in Python 3.");
        assertContains(output, "[0] rank 0 in Java ");
        assertContains(outputOf(RUN + program(onDevice + 2), 1), "rank 1 in Python: cuDeviceGet: CUDA error 101");
    }
}

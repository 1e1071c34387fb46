package io.github.nccl4j.tests.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.github.nccl4j.highlevel.CollectiveConfig;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.DataType;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.PreMulSum;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.highlevel.UniqueId;
import io.github.nccl4j.highlevel.Window;
import io.github.nccl4j.highlevel.WindowFlag;
import io.github.nccl4j.tests.ChildJvm;
import io.github.nccl4j.tests.Cxx;
import io.github.nccl4j.tests.FakeCuda;
import io.github.nccl4j.tools.support.Checks;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Calls in which NCCL 2.31.2 and newer would choose an algorithm that returns wrong elements or fails. */
class ExcludedAlgorithmsTest {
    /** Writes each reduction, and the selection of its configuration, to the file that the variable STUB_LOG names. */
    private static final String LIBRARY = """
            #include <cstddef>
            #include <cstdint>
            #include <cstdio>
            #include <cstdlib>
            #define API extern "C" int
            struct Id { char bytes[128]; };
            struct Comm { int rank, size; };
            struct Config { size_t size; unsigned magic, version; void* ext; int min, max, nvls, cluster; const char* selection; int force; };
            static int log(const char* what, int op, const Config* config = nullptr) {
              static FILE* file = fopen(getenv("STUB_LOG"), "a");
              const char* selection = config && (intptr_t)config->selection > 4096 ? config->selection : "-";
              fprintf(file, "%s %d %s", what, op, selection);
              if (config && config->force == 0) fprintf(file, " preferred");
              if (config && config->max == 7) fprintf(file, " 7 blocks");
              fprintf(file, "\\n");
              fflush(file);
              return 0;
            }
            API ncclGetVersion(int* version) { *version = VERSION; return 0; }
            extern "C" const char* ncclGetErrorString(int) { return "stub"; }
            extern "C" const char* ncclGetLastError(void*) { return ""; }
            API ncclGetUniqueId(Id* id) { id->bytes[0] = 1; return 0; }
            API ncclCommInitRank(Comm** comm, int size, Id, int rank) { *comm = new Comm{rank, size}; return 0; }
            API ncclCommInitRankConfig(Comm** comm, int size, Id, int rank, void*) { *comm = new Comm{rank, size}; return 0; }
            API ncclCommGetAsyncError(Comm*, int* error) { *error = 0; return 0; }
            API ncclCommCount(Comm* comm, int* count) { *count = comm->size; return 0; }
            API ncclCommUserRank(Comm* comm, int* rank) { *rank = comm->rank; return 0; }
            API ncclCommCuDevice(Comm*, int* device) { *device = 0; return 0; }
            API ncclCommFinalize(Comm*) { return 0; }
            API ncclCommDestroy(Comm* comm) { delete comm; return 0; }
            API ncclCommAbort(Comm* comm) { delete comm; return 0; }
            API ncclCommWindowRegister(Comm* comm, void*, size_t, void** window, int) { *window = comm; return 0; }
            API ncclCommWindowDeregister(Comm*, void*) { return 0; }
            API ncclMemAlloc(void** memory, size_t bytes) { return !(*memory = aligned_alloc(4096, bytes)); }
            API ncclMemFree(void* memory) { free(memory); return 0; }
            API ncclGroupStart() { return 0; }
            API ncclGroupEnd() { return 0; }
            API ncclRedOpCreatePreMulSum(int* op, void*, int, int, Comm*) { *op = 5; return 0; }
            API ncclRedOpDestroy(int, Comm*) { return 0; }
            API ncclAllReduce(const void*, void*, size_t, int, int op, Comm*, void*) { return log("allReduce", op); }
            API ncclReduceScatter(const void*, void*, size_t, int, int op, Comm*, void*) { return log("reduceScatter", op); }
            API ncclReduce(const void*, void*, size_t, int, int op, int, Comm*, void*) { return log("reduce", op); }
            #if VERSION >= 23102
            API ncclAllReduceConfig(const void*, void*, size_t, int, int op, Comm*, void*, Config* config) {
              return log("allReduceConfig", op, config);
            }
            API ncclReduceScatterConfig(const void*, void*, size_t, int, int op, Comm*, void*, Config* config) {
              return log("reduceScatterConfig", op, config);
            }
            #endif
            """;

    @TempDir
    private Path folder;

    private List<String> calls(int version, String scenario, int size) throws IOException {
        assumeTrue(System.getProperty("nccl4j.test.cuda") != null, "needs the natives of JavaCPP Presets CUDA");
        Path log = Files.createFile(folder.resolve("calls"));
        ChildJvm.Outcome outcome = FakeCuda.build(folder.resolve("cuda"))
                .jvm(new ChildJvm())
                .environment("STUB_LOG", log.toString())
                .property(
                        "nccl4j.library",
                        Cxx.library(folder, "reductions", "#define VERSION " + version + "\n" + LIBRARY))
                .run(Scenario.class, scenario, Integer.toString(size));
        assertEquals(0, outcome.exitCode(), outcome::output);
        return Files.readAllLines(log);
    }

    /** Operators: SUM is 0, AVG 4, and the created one 5. */
    @Test
    void scaledReduceScattersExcludePat() throws IOException {
        assertEquals(
                List.of(
                        "reduceScatter 0 -",
                        "reduceScatterConfig 4 ^pat",
                        "reduceScatterConfig 4 ^pat",
                        "reduceScatterConfig 5 ^pat",
                        "reduceScatterConfig 4 ^pat",
                        "reduceScatterConfig 4 ^pat 7 blocks",
                        "reduceScatterConfig 4 ring+^pat",
                        "reduceScatterConfig 4 ^pat",
                        "reduceScatterConfig 0 pat",
                        "allReduce 4 -",
                        "reduce 4 -"),
                calls(23203, "reduceScatter", 2));
    }

    @Test
    void releasesBefore231AreCalledAsAsked() throws IOException {
        assertEquals(
                List.of(
                        "reduceScatter 0 -",
                        "reduceScatter 4 -",
                        "reduceScatter 4 -",
                        "reduceScatter 5 -",
                        "reduceScatter 4 -",
                        "allReduce 4 -",
                        "reduce 4 -"),
                calls(23007, "reduceScatter", 2));
    }

    @Test
    void aSingleRankIsCalledAsAsked() throws IOException {
        assertEquals(
                List.of("reduceScatter 0 -", "reduceScatter 4 -", "reduceScatter 4 -", "reduceScatter 5 -"),
                calls(23203, "reduceScatter", 1).subList(0, 4));
    }

    @Test
    void averagesExcludeTheKernelsForSymmetricWindows() throws IOException {
        assertEquals(
                List.of(
                        "allReduce 4 -",
                        "allReduceConfig 4 ^symk",
                        "allReduceConfig 4 ^symk 7 blocks",
                        "allReduceConfig 4 ^symk",
                        "allReduceConfig 4 ^symk",
                        "allReduce 0 -",
                        "allReduce 4 -",
                        "allReduce 4 -"),
                calls(23203, "windows", 2));
    }

    /** In a JVM of its own, where the device is a fake. */
    static final class Scenario {
        private Scenario() {}

        public static void main(String[] args) {
            Device device = Device.cuda(0);
            try (DeviceBuffer<Float32> memory = device.allocateForWindow(ElementType.FLOAT32, 1024);
                    Communicator c = Communicator.builder()
                            .device(device)
                            .create(UniqueId.create(), 0, Integer.parseInt(args[1]))) {
                if (args[0].equals("windows")) {
                    windows(c, memory);
                } else {
                    reduceScatters(c, memory.slice(0, 2L * c.size()), memory.slice(100, 2));
                }
                // The other ranks do not exist.
                c.abort();
            }
        }

        private static void reduceScatters(Communicator c, DeviceBuffer<Float32> send, DeviceBuffer<Float32> recv) {
            c.reduceScatter(send, recv, ReduceOp.SUM, c.stream());
            c.reduceScatter(send, recv, ReduceOp.AVG, c.stream());
            Group.run(() -> c.reduceScatter(send, recv, ReduceOp.AVG, c.stream()));
            try (PreMulSum<Float32> half = c.preMulSum(ElementType.FLOAT32, 0.5)) {
                c.reduceScatter(send, recv, half, c.stream());
            }
            c.onAddresses()
                    .reduceScatter(send.address(), recv.address(), 2, DataType.FLOAT32, ReduceOp.AVG, c.stream());
            if (c.size() > 1 && NcclLibrary.get().provides("ncclReduceScatterConfig")) {
                CollectiveConfig pat = CollectiveConfig.algorithm("pat");
                CollectiveConfig.Builder builder = CollectiveConfig.builder();
                c.reduceScatter(
                        send, recv, ReduceOp.AVG, c.stream(), builder.maxCtas(7).build());
                c.reduceScatter(send, recv, ReduceOp.AVG, c.stream(), CollectiveConfig.algorithm("ring"));
                CollectiveConfig tree =
                        CollectiveConfig.builder().preferAlgorithm("tree").build();
                c.reduceScatter(send, recv, ReduceOp.AVG, c.stream(), tree);
                c.reduceScatter(send, recv, ReduceOp.SUM, c.stream(), pat);
                new Checks()
                        .fails(
                                IllegalArgumentException.class,
                                () -> c.reduceScatter(send, recv, ReduceOp.AVG, c.stream(), pat),
                                "must not force pat",
                                "'pat'");
            }
            c.allReduce(recv, ReduceOp.AVG, c.stream());
            c.reduce(recv, ReduceOp.AVG, 0, c.stream());
        }

        private static void windows(Communicator c, DeviceBuffer<Float32> memory) {
            c.allReduce(memory, ReduceOp.AVG, c.stream());
            Window window = c.registerWindow(memory, WindowFlag.COLL_SYMMETRIC);
            c.allReduce(memory, ReduceOp.AVG, c.stream());
            CollectiveConfig blocks = CollectiveConfig.builder().maxCtas(7).build();
            c.allReduce(memory, memory, ReduceOp.AVG, c.stream(), blocks);
            long address = memory.address();
            c.onAddresses().allReduce(address, address, 8, DataType.FLOAT32, ReduceOp.AVG, c.stream());
            Group.run(() -> c.allReduce(memory, ReduceOp.AVG, c.stream()));
            c.allReduce(memory, ReduceOp.SUM, c.stream());
            c.onAddresses().allReduce(address, address, 8, DataType.FLOAT64, ReduceOp.AVG, c.stream());
            CollectiveConfig symmetric = CollectiveConfig.algorithm("symk");
            new Checks()
                    .fails(
                            IllegalArgumentException.class,
                            () -> c.allReduce(memory, memory, ReduceOp.AVG, c.stream(), symmetric),
                            "must not force symk",
                            "'symk'");
            window.close();
            c.allReduce(memory, ReduceOp.AVG, c.stream());
        }
    }
}

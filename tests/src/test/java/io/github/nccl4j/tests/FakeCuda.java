package io.github.nccl4j.tests;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.bytedeco.javacpp.Loader;

/**
 * CUDA's driver and runtime without a GPU, made by the test: "device" memory is host memory, and work in a stream is done
 * when somebody waits for it or asks. The comment of {@code fake_cuda.cpp} has the environment variables that it takes.
 *
 * <pre>{@code
 * FakeCuda cuda = FakeCuda.build(folder);
 * Outcome outcome = cuda.jvm(new ChildJvm()).run(Scenario.class);
 * assertTrue(outcome.output().contains(FakeCuda.NOTHING_LEFT));
 * }</pre>
 */
public final class FakeCuda {
    /** What the end of a process says that destroyed all that it created, and changed no thread's current device. */
    public static final String NOTHING_LEFT = "fake CUDA left: 0 allocations, 0 host allocations, 0 streams, 0 events,"
            + " 0 graphs, 0 executable graphs, 0 pushed contexts, 0 implicit contexts";

    private static final String NCCL = """
            #include <cstddef>
            #include <cstdint>
            #include <cstdio>
            #include <cstdlib>
            #include <cstring>
            #include <dlfcn.h>
            #include <unistd.h>
            extern "C" int ncclGetVersion(int* version) { *version = 23203; return 0; }
            extern "C" const char* ncclGetErrorString(int) { return "unhandled cuda error"; }
            extern "C" const char* ncclGetLastError(void*) { return ""; }
            struct Id { char bytes[128]; };
            struct Comm { void* context; void* event; int device; bool connected; void* memory[2]; };
            template <class... Arguments> static int cuda(const char* name, Arguments... arguments) {
              auto call = (int (*)(Arguments...))dlsym(RTLD_DEFAULT, name);
              return call && call(arguments...) == 0 ? 0 : 1;
            }
            static Comm* used;
            static thread_local int depth;
            struct Config { size_t size; unsigned magic, version; void* ext; int ctas[4]; const char* algorithm; int more[2]; uint64_t tag; void* event; };
            // Those of the group, which are read at its end.
            static const Config* configs[4];
            static int configured;
            static int groupEnd() {
              int before;
              if (depth > 0) return 0;
              while (configured > 0) {
                const Config* one = configs[--configured];
                if (one->magic != 0xcafebeef || strcmp(one->algorithm, "ring") != 0) return 4;
              }
              if (depth > 0 || !used) return 0;
              return cuda("cudaGetDevice", &before) || cuda("cudaSetDevice", used->device) || cuda("cudaSetDevice", before);
            }
            extern "C" int ncclMemAlloc(void** memory, size_t bytes) { return cuda("cudaMalloc", memory, bytes); }
            extern "C" int ncclMemFree(void* memory) { return cuda("cudaFree", memory); }
            extern "C" int ncclGetUniqueId(Id* id) { memset(id, 1, sizeof *id); return 0; }
            // So many bytes at the first step, twice as many at the second.
            static int take([[maybe_unused]] Comm* comm, [[maybe_unused]] int step) {
            #ifdef MEMORY
              return cuda("cudaMalloc", &comm->memory[step], size_t(MEMORY) << step);
            #else
              return 0;
            #endif
            }
            static volatile bool isCreating;
            __attribute__((destructor)) static void end() {
              if (isCreating) puts("libnccl ended during a creation");
            }
            extern "C" int ncclCommInitRank(Comm** comm, int, Id, int) {
              if (const char* begun = getenv("FAKE_NCCL_SLOW")) {
                isCreating = true;
                fclose(fopen(begun, "w"));
                usleep(500000);
                isCreating = false;
              }
              *comm = new Comm{};
              used = *comm;
              cuda("cudaGetDevice", &used->device);
              return take(used, 0) || groupEnd() || cuda("cuCtxGetCurrent", &(*comm)->context) || cuda("cudaEventCreateWithFlags", &(*comm)->event, 2u);
            }
            #ifdef MEMORY
            extern "C" int ncclCommInitRankConfig(Comm** comm, int size, Id id, int rank, void*) { return ncclCommInitRank(comm, size, id, rank); }
            #endif
            extern "C" int ncclCommGetAsyncError(Comm*, int* error) { *error = 0; return 0; }
            extern "C" int ncclCommFinalize(Comm*) { return 0; }
            extern "C" int ncclCommDestroy(Comm* comm) {
              int result = cuda("cudaEventDestroy", comm->event);
              for (void* memory : comm->memory) if (memory) result |= cuda("cudaFree", memory);
              delete comm;
              return result;
            }
            extern "C" int ncclCommAbort(Comm* comm) {
              if (const char* hang = getenv("FAKE_CUDA_HANG")) remove(hang);
              return ncclCommDestroy(comm);
            }
            extern "C" int ncclGroupStart() { return depth++, 0; }
            extern "C" int ncclGroupEnd() { return depth--, groupEnd(); }
            extern "C" int ncclAllReduce(const void*, void*, size_t, int, int, Comm* comm, void* stream) {
              used = comm;
              if (groupEnd()) return 1;
              if (getenv("FAKE_CUDA_HANG") && (cuda("cudaSetDevice", comm->device) || cuda("cudaFakeHang", stream))) return 1;
              if (comm->connected) return 0;
              if (take(comm, 1)) return 1;
              void* popped;
              cuda("cuCtxPushCurrent_v2", comm->context);
              comm->connected = !cuda("cudaEventQuery", comm->event);
              cuda("cuCtxPopCurrent_v2", &popped);
              return !comm->connected;
            }
            extern "C" int ncclAllReduceConfig(const void* from, void* to, size_t count, int type, int op, Comm* comm, void* stream, const Config* config) {
              if (configured == 4) return 4;
              configs[configured++] = config;
              int before;
              if (config->event && (cuda("cudaGetDevice", &before) || cuda("cudaSetDevice", comm->device)
                      || cuda("cudaEventRecord", config->event, stream) || cuda("cudaSetDevice", before))) return 1;
              return ncclAllReduce(from, to, count, type, op, comm, stream);
            }
            """;

    private final Path folder;
    private final int major;

    private FakeCuda(Path folder, int major) {
        this.folder = folder;
        this.major = major;
    }

    /** Makes the libraries for the CUDA that nccl4j is built with. */
    public static FakeCuda build(Path folder) throws IOException {
        return build(folder, 13);
    }

    /** Makes the libraries for one of the CUDA releases whose JavaCPP Presets the build keeps for tests: 12 or 13. */
    public static FakeCuda build(Path folder, int major) throws IOException {
        Files.createDirectories(folder);
        String source;
        try (InputStream text = FakeCuda.class.getResourceAsStream("fake_cuda.cpp")) {
            source = new String(text.readAllBytes(), StandardCharsets.UTF_8);
        }
        String driver = "libcuda.so.1";
        compile(folder.resolve(driver), source, "-DDRIVER");
        String runtime = "libcudart.so." + major;
        Files.writeString(folder.resolve("versions"), runtime + " { global: cuda*; local: *; };");
        compile(folder.resolve(runtime), source, "-Wl,--version-script,versions", "-Wl,-z,defs", driver);
        return new FakeCuda(folder, major);
    }

    private static void compile(Path library, String source, String... more) throws IOException {
        List<String> options = new ArrayList<>(Cxx.warnings());
        options.addAll(List.of("-O1", "-Wl,-soname," + library.getFileName()));
        options.addAll(List.of(more));
        Cxx.library(library, source, options);
    }

    /**
     * Makes a libnccl for one rank. It allocates memory for windows as NCCL does where no other can, and its first
     * all-reduce makes a call that CUDA refuses to threads that capture, as NCCL does when it connects ranks. As NCCL it sets
     * the device of the communicator at the end of a group and of an operation by itself, and then that which was there. Of an
     * all-reduce with a configuration it records the event, and reads the rest at the end of the group. With FAKE_CUDA_HANG, an
     * all-reduce is not done while there is this file, which an abort deletes. With FAKE_NCCL_SLOW, a creation makes this file
     * and takes half a second; if the process ends meanwhile, the library says so.
     */
    public Path nccl() throws IOException {
        Path made = folder.resolve("libnccl_of_fake_cuda.so");
        return Files.exists(made) ? made : Cxx.library(folder, "nccl_of_fake_cuda", NCCL);
    }

    /**
     * As {@link #nccl}, with {@code ncclCommInitRankConfig} as well. Its communicator takes so many bytes of the device when it is
     * created, and twice as many with the first all-reduce.
     */
    public Path ncclThatTakes(long bytes) throws IOException {
        return Cxx.library(folder, "nccl_that_takes_" + bytes, NCCL, "-DMEMORY=" + bytes);
    }

    /** As {@link #nccl}, under the names that NVIDIA's library has, in a folder of its own. */
    public Path nvidiasNccl() throws IOException {
        Path made = Cxx.library(folder, "nvidias_nccl", NCCL, "-Wl,-soname,libnccl.so.2");
        return Files.move(
                made, Files.createDirectories(folder.resolve("nvidia")).resolve("libnccl.so.2"));
    }

    /** Where the libraries are; what {@code LD_LIBRARY_PATH} must have. */
    public Path folder() {
        return folder;
    }

    /** Lets a JVM find the libraries and JavaCPP Presets CUDA with its natives, and say at its end what it has left. */
    public ChildJvm jvm(ChildJvm jvm) {
        Path jars = Path.of(System.getProperty("nccl4j.test.cuda"), Integer.toString(major));
        Path natives = jars.resolve("cuda-" + Loader.getPlatform() + ".jar");
        Path classes = jars.resolve("cuda.jar");
        if (Files.exists(classes)) {
            // Other classes than those of the tests' own class path.
            jvm.classPath(natives).classPath(classes);
        } else {
            jvm.classPathEnd(natives);
        }
        return jvm.environment("LD_LIBRARY_PATH", folder.toString())
                .environment("FAKE_CUDA_REPORT", "1")
                .property("org.bytedeco.javacpp.cachedir", folder.resolve("cache"));
    }
}

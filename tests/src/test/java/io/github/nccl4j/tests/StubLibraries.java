package io.github.nccl4j.tests;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;

/** Small libraries with NCCL's names, made by the tests: what a real one answers, without a GPU and in known ways. */
public final class StubLibraries {
    private static final String COMMON = """
            #include <cstddef>
            #include <cstdint>
            static const char* lastError = "";
            extern "C" int ncclGetVersion(int* version) { *version = %d; return 0; }
            extern "C" int pncclGetVersion(int* version) { return ncclGetVersion(version); }
            extern "C" const char* ncclGetErrorString(int result) { return "stub"; }
            extern "C" const char* ncclGetLastError(void*) { return lastError; }
            """;

    /** The headers of JNI. */
    private static final Path JDK = Path.of(System.getProperty("java.home"), "include");

    private StubLibraries() {}

    /** As {@link #small}, under the names that NVIDIA's library has, in a folder of its own. */
    public static Path copyOfNccl(Path folder, int versionCode) throws IOException {
        Path made = Cxx.library(
                Files.createDirectories(folder),
                "copy" + versionCode,
                String.format(Locale.ROOT, COMMON, versionCode),
                "-Wl,-soname,libnccl.so.2");
        return Files.move(made, folder.resolve("libnccl.so.2"));
    }

    /** The functions that veCCL 0.1.2 exports: most of NCCL 2.27.7, and three of its own. */
    private static final List<String> VECCL = List.of(
            "ncclAllGather",
            "ncclAllReduce",
            "ncclBcast",
            "ncclBroadcast",
            "ncclCommAbort",
            "ncclCommCount",
            "ncclCommCuDevice",
            "ncclCommDeregister",
            "ncclCommDestroy",
            "ncclCommFinalize",
            "ncclCommGetAsyncError",
            "ncclCommInitAll",
            "ncclCommInitRank",
            "ncclCommInitRankConfig",
            "ncclCommInitRankScalable",
            "ncclCommRegister",
            "ncclCommShrink",
            "ncclCommSplit",
            "ncclCommUserRank",
            "ncclCommWindowDeregister",
            "ncclCommWindowRegister",
            "ncclDisablePcieQos",
            "ncclEnablePcieQos",
            "ncclGetErrorString",
            "ncclGetLastError",
            "ncclGetLastResult",
            "ncclGetUniqueId",
            "ncclGetVersion",
            "ncclGroupEnd",
            "ncclGroupSimulateEnd",
            "ncclGroupStart",
            "ncclMemAlloc",
            "ncclMemFree",
            "ncclRecv",
            "ncclRedOpCreatePreMulSum",
            "ncclRedOpDestroy",
            "ncclReduce",
            "ncclReduceScatter",
            "ncclResetDebugInit",
            "ncclSend");

    /** The exports of veCCL 0.1.2, each with the result 0. */
    public static Path veccl(Path folder) throws IOException {
        String common = String.format(Locale.ROOT, COMMON, 22707);
        String others = VECCL.stream()
                .filter(function -> !common.contains(function + "("))
                .map(function -> "extern \"C\" int " + function + "() { return 0; }\n")
                .collect(Collectors.joining());
        return Cxx.library(
                folder,
                "veccl",
                common + others + "extern \"C\" const char* banner() { return \"NCCL version 2.27.7-6+cuda12.2\"; }\n");
    }

    /** Four functions and no more. */
    public static Path small(Path folder, int versionCode) throws IOException {
        return Cxx.library(folder, "small" + versionCode, String.format(Locale.ROOT, COMMON, versionCode));
    }

    /** As NCCL built for CUDA 12.9, whose unique ids fail with the result in the variable STUB_RESULT. */
    public static Path failing(Path folder, int versionCode) throws IOException {
        return Cxx.library(folder, "failing" + versionCode, String.format(Locale.ROOT, COMMON, versionCode) + """
                #include <cstdlib>
                extern "C" const char* ncclBanner() { return "NCCL version 2.27.3+cuda12.9"; }
                extern "C" int ncclGetUniqueId(void* id) {
                  lastError = "no interface is up";
                  return atoi(getenv("STUB_RESULT"));
                }
                """);
    }

    /** A warning by which VCCL is recognized. */
    public static final String VCCL_TEXT = """
            extern "C" const char* warning() {
              return "RMA coll: sendcounts/sdispls/recvcounts/rdispls must be provided.";
            }
            """;

    /**
     * For stubs of ncclAlltoAllv: every function writes its name into the file that the variable STUB_LOG names, if it is
     * set. A refused call makes the group of its thread fail, as in NCCL. The communicator 10 is a valid one.
     */
    private static final String ALL_TO_ALL_V = """
            #include <cstddef>
            #include <cstdint>
            #include <cstdio>
            #include <cstdlib>
            #define API extern "C" int
            typedef const void* P;
            typedef const size_t* S;
            struct Comm { uint64_t magic; char rest[1 << 20]; uint64_t hash, calls; int rank, size; };
            static const char* lastError = "";
            static thread_local int depth, groupResult;
            static void called(const char* function) {
              const char* path = getenv("STUB_LOG");
              FILE* file = path ? fopen(path, "a") : nullptr;
              if (file) fprintf(file, "%s\\n", function), fclose(file);
            }
            static int refused(const char* why) {
              lastError = why;
              if (depth > 0) groupResult = 4;
              return 4;
            }
            static int check(Comm* comm) {
              if (!comm) return refused("AlltoAllv : comm argument is NULL");
              if (comm != (Comm*)10 && comm->magic != 42) return refused("Error: corrupted comm object detected");
              return 0;
            }
            static bool isValid(Comm* comm) { return comm == (Comm*)10; }
            API ncclGetVersion(int* version) { called("ncclGetVersion"); *version = 22902; return 0; }
            extern "C" const char* ncclGetErrorString(int) { called("ncclGetErrorString"); return "stub"; }
            extern "C" const char* ncclGetLastError(void*) { called("ncclGetLastError"); return lastError; }
            API ncclGroupStart() { called("ncclGroupStart"); depth++; return 0; }
            API ncclGroupEnd() { called("ncclGroupEnd"); depth--; return groupResult; }
            """;

    /**
     * A library with ncclAlltoAllv.
     *
     * @param name what the file is named after
     * @param parameters those of the function, without types; comm, datatype and stream are found in it
     * @param first what it does first
     * @param more other functions
     */
    private static Path allToAllv(Path folder, String name, String parameters, String first, String more)
            throws IOException {
        String types = parameters
                .replaceAll("\\b(sendcounts|sdispls|recvcounts|rdispls)\\b", "S $1")
                .replaceAll("\\b(sendbuff|recvbuff|relaybuff|stream|other)\\b", "P $1")
                .replace("relaycount", "size_t relaycount")
                .replace("datatype", "int datatype")
                .replace("comm", "Comm* comm");
        String function = """
                API ncclAlltoAllv(%1$s) {
                  called("ncclAlltoAllv");
                  %3$s
                  if (int result = check(comm)) return result;
                  return datatype == 9 && (uintptr_t)stream == 11 ? 0 : 3;
                }
                API pncclAlltoAllv(%1$s) { return ncclAlltoAllv(%2$s); }
                """;
        return Cxx.library(
                folder, name, ALL_TO_ALL_V + more + String.format(Locale.ROOT, function, types, parameters, first));
    }

    private static final String ROWS = "sendbuff, sendcounts, sdispls, recvbuff, recvcounts, rdispls, ";

    /** As VCCL's: adds up what is sent, if there is a communicator. */
    private static final String ADD = """
            size_t bytes = 0;
            if (comm && !isValid(comm) && sendcounts)
              for (int i = 0; i < comm->size; i++) bytes += sendcounts[comm->rank * comm->size + i];
            if (comm && !isValid(comm)) bytes += comm->hash;
            volatile size_t traced = bytes;
            (void)traced;
            """;

    /** As most branches of VCCL do: counts the calls of the communicator before it looks whether there is one. */
    private static final String COUNT = "if (!isValid(comm)) comm->calls++;";

    /** As RCCL's: traces what is sent, whatever it was given. */
    private static final String TRACE =
            "volatile size_t sent = isValid(comm) ? 0 : sendcounts[comm->rank]; (void)sent;";

    /** As VCCL before 3e0ac2e. */
    public static Path vccl10(Path folder) throws IOException {
        return allToAllv(folder, "vccl10", ROWS + "relaybuff, datatype, comm, stream", ADD, VCCL_TEXT);
    }

    /** As VCCL from 3e0ac2e on. */
    public static Path vccl11(Path folder) throws IOException {
        return allToAllv(
                folder,
                "vccl11",
                ROWS + "relaybuff, relaycount, datatype, comm, stream",
                ADD + "if (isValid(comm) && relaycount != 8) return 3;",
                VCCL_TEXT);
    }

    /** As {@link #vccl10}, but counts first. */
    public static Path countingVccl10(Path folder) throws IOException {
        return allToAllv(folder, "counting10", ROWS + "relaybuff, datatype, comm, stream", COUNT, VCCL_TEXT);
    }

    /** As {@link #vccl11}, but counts first. */
    public static Path countingVccl11(Path folder) throws IOException {
        return allToAllv(
                folder, "counting11", ROWS + "relaybuff, relaycount, datatype, comm, stream", COUNT, VCCL_TEXT);
    }

    /** A function of RCCL's shape in a file of any name, with other functions or a text by which it is recognized. */
    public static Path rcclShape(Path folder, String name, String more) throws IOException {
        return allToAllv(folder, name, ROWS + "datatype, comm, stream", TRACE, more);
    }

    /** Nine arguments, refused as VCCL does it. */
    public static Path nineOther(Path folder, String name, String more) throws IOException {
        return allToAllv(folder, name, ROWS + "datatype, comm, stream", ADD, more);
    }

    /** Twelve arguments, in a library that says VCCL's text. */
    public static Path twelve(Path folder) throws IOException {
        return allToAllv(
                folder, "vccl12", ROWS + "relaybuff, relaycount, other, datatype, comm, stream", ADD, VCCL_TEXT);
    }

    /** VCCL with a form that refuses as neither known one does. */
    public static Path vcclOfAnotherForm(Path folder) throws IOException {
        return Cxx.library(folder, "vcclother", String.format(Locale.ROOT, COMMON, 23100) + VCCL_TEXT + """
                extern "C" int ncclAlltoAllv() { lastError = "something else"; return 5; }
                extern "C" int pncclAlltoAllv() { return ncclAlltoAllv(); }
                """);
    }

    /** A function by which RCCL is recognized; it says in ncclGetLastError's place how it was called. */
    public static final String BIAS = """
            extern "C" int ncclAllReduceWithBias(const void* a, void* b, unsigned long count, int type, int op, void* comm,
                void* stream, const void* acc) {
              bool right = a == (void*)1 && b == (void*)2 && count == 3 && type == 4 && op == 5;
              return right && comm == (void*)6 && stream == (void*)7 && acc == (void*)8 ? 0 : 3;
            }
            extern "C" int pncclAllReduceWithBias(const void* a, void* b, unsigned long count, int type, int op, void* comm,
                void* stream, const void* acc) {
              return ncclAllReduceWithBias(a, b, count, type, op, comm, stream, acc);
            }
            """;

    /**
     * On top of the host engine, an ncclAlltoAllv with RCCL's nine arguments, which works, of int32 alone. It writes a line of
     * what it was called with into the file that the variable STUB_LOG names, and refuses to be part of a group.
     */
    public static Path nineOver(Path folder, Path host, String name, String more) throws IOException {
        return over(folder, host, name, more + """
                #include <cstddef>
                #include <cstdio>
                #include <cstdlib>
                #include <dlfcn.h>
                #include <string>
                #define API extern "C" int
                API ncclCommUserRank(void*, int*);
                API ncclCommCount(void*, int*);
                API ncclSend(const void*, size_t, int, int, void*, void*);
                API ncclRecv(void*, size_t, int, int, void*, void*);
                static thread_local int depth;
                static int next(const char* function) { return ((int (*)())dlsym(RTLD_NEXT, function))(); }
                API ncclGroupStart() { depth++; return next("ncclGroupStart"); }
                API ncclGroupEnd() { depth--; return next("ncclGroupEnd"); }
                // What an intercepted call reaches.
                API pncclGroupStart() { return ncclGroupStart(); }
                API pncclGroupEnd() { return ncclGroupEnd(); }
                static std::string row(const size_t* values, int n) {
                  std::string text;
                  for (int i = 0; i < n; i++) text += " " + std::to_string(values[i]);
                  return text;
                }
                API ncclAlltoAllv(const void* send, const size_t* counts, const size_t* from, void* recv, const size_t* into,
                    const size_t* to, int type, void* comm, void* stream) {
                  int rank, n;
                  if (depth > 0 || type != 2 || ncclCommUserRank(comm, &rank) || ncclCommCount(comm, &n)) return 5;
                  std::string line = std::to_string(rank) + ":" + row(counts, n) + " at" + row(from, n) + ","
                      + row(into, n) + " at" + row(to, n) + "\\n";
                  if (const char* path = getenv("STUB_LOG"))
                    if (FILE* file = fopen(path, "a")) fputs(line.c_str(), file), fclose(file);
                  ncclGroupStart();
                  for (int peer = 0; peer < n; peer++) {
                    ncclSend((const int*)send + from[peer], counts[peer], type, peer, comm, stream);
                    ncclRecv((int*)recv + to[peer], into[peer], type, peer, comm, stream);
                  }
                  return ncclGroupEnd();
                }
                """);
    }

    /** On top of another library, an ncclAlltoAllv without a sign of what it is; a call of it ends the process. */
    public static Path unknownOver(Path folder, Path other) throws IOException {
        return over(folder, other, "unknownover", "extern \"C\" int ncclAlltoAllv() { __builtin_trap(); }\n");
    }

    /** On top of the host engine, a collective that no NCCL has, of int32 alone, with the functions of its Java class. */
    public static Path mirrorOver(Path folder, Path host) throws IOException {
        return over(folder, host, "mirrorover", """
                #include <cstddef>
                #include <jni.h>
                #define API extern "C" int
                API ncclCommCount(void*, int*);
                API ncclSend(const void*, size_t, int, int, void*, void*);
                API ncclRecv(void*, size_t, int, int, void*, void*);
                API ncclGroupStart();
                API ncclGroupEnd();
                API ncclMirror(const int* send, int* recv, size_t count, int type, void* comm, void* stream) {
                  int n;
                  if (type != 2 || ncclCommCount(comm, &n)) return 4;
                  ncclGroupStart();
                  for (int peer = 0; peer < n; peer++) {
                    ncclSend(send + peer * count, count, type, peer, comm, stream);
                    ncclRecv(recv + (n - 1 - peer) * count, count, type, peer, comm, stream);
                  }
                  return ncclGroupEnd();
                }
                #define JAVA(name) extern "C" JNIEXPORT jint JNICALL Java_io_github_nccl4j_internal_operation_Mirror_##name
                JAVA(ncclMirror)(JNIEnv*, jclass, jlong send, jlong recv, jlong count, jint type, jlong comm, jlong stream) {
                  return ncclMirror((int*)send, (int*)recv, count, type, (void*)comm, (void*)stream);
                }
                JAVA(ncclMirrorConfig)(JNIEnv* env, jclass c, jlong send, jlong recv, jlong count, jint type, jlong comm,
                    jlong stream, jlong) {
                  return Java_io_github_nccl4j_internal_operation_Mirror_ncclMirror(
                      env, c, send, recv, count, type, comm, stream);
                }
                """, "-I" + JDK, "-I" + JDK.resolve("linux"));
    }

    private static Path over(Path folder, Path other, String name, String source, String... options)
            throws IOException {
        List<String> all = new ArrayList<>(List.of(options));
        all.addAll(List.of("-Wl,--no-as-needed,-rpath," + other.getParent(), other.toString(), "-ldl"));
        return Cxx.library(folder, name, source, all.toArray(String[]::new));
    }

    /**
     * An NCCL 2.32.3 with ncclSetEncryption, which gives what the variable STUB_RESULT says, and writes into the file that the
     * variable STUB_LOG names what it was called with. ncclGroupStart writes there how many bytes of the key are still where
     * it was; it looks at memory that was freed, behind what malloc writes into it.
     */
    public static Path encrypting(Path folder, String name, String text) throws IOException {
        return Cxx.library(
                folder,
                name,
                String.format(Locale.ROOT, COMMON, 23203) + """
                #include <cstdio>
                #include <cstdlib>
                #include <cstring>
                struct Config { size_t size; unsigned magic, version; int mode; const char* psk; };
                static const char* where;
                static size_t length;
                static char first;
                template <class... Values> static void log(const char* format, Values... values) {
                  FILE* file = fopen(getenv("STUB_LOG"), "a");
                  fprintf(file, format, values...);
                  fclose(file);
                }
                extern "C" int ncclSetEncryption(const Config* c) {
                  log("%zu %x %d %d %s\\n", c->size, c->magic, (int)c->version, c->mode, c->psk);
                  where = c->psk;
                  length = strlen(where);
                  first = *where;
                  lastError = "no key for you";
                  return getenv("STUB_RESULT") ? atoi(getenv("STUB_RESULT")) : 0;
                }
                extern "C" int ncclGroupStart() {
                  int left = 0;
                  for (size_t i = 32; where && i < length; i++) left += ((volatile const char*)where)[i] == first;
                  log("%d bytes are left\\n", left);
                  return 0;
                }
                extern "C" int ncclGetUniqueId(void* id) { memset(id, 1, 128); return 0; }
                """ + "extern \"C\" const char* text() { return \"" + text
                        + "\"; }\n");
    }

    /** Keeps the addresses of the last call, in memory that a first call of ncclSend gave it. */
    public static Path addresses(Path folder) throws IOException {
        return Cxx.library(folder, "addresses", String.format(Locale.ROOT, COMMON, 23007) + """
                static const void** seen;
                extern "C" int ncclSend(const void* buffer) { seen = (const void**)buffer; return 0; }
                extern "C" int ncclAllReduce(const void* a, void* b) { seen[0] = a; seen[1] = b; return 0; }
                extern "C" int ncclAlltoAllv(const void* a, const size_t* b, const size_t* c, void* d, const size_t* e,
                    const size_t* f, void* g, size_t h, int i, void* j, void* k) {
                  seen[0] = a; seen[1] = d; seen[2] = b;
                  return 0;
                }
                """);
    }

    /**
     * Writes calls that transfer data, with their arguments, to the file that the variable STUB_LOG names. The stub is one
     * rank of any number; calls with 13 elements are invalid.
     */
    public static Path logging(Path folder) throws IOException {
        return Cxx.library(folder, "logging", String.format(Locale.ROOT, COMMON, 22703) + """
                #include <cstdio>
                #include <cstdlib>
                #define API extern "C" int
                struct Id { char bytes[128]; };
                struct Comm { int rank, size; };
                template <class... Values> static int log(const char* format, Values... values) {
                  static FILE* file = fopen(getenv("STUB_LOG"), "a");
                  fprintf(file, format, values...);
                  fflush(file);
                  return 0;
                }
                API ncclGetUniqueId(Id* id) { id->bytes[0] = 1; return 0; }
                API ncclCommInitRank(Comm** comm, int size, Id, int rank) { *comm = new Comm{rank, size}; return 0; }
                API ncclCommGetAsyncError(Comm*, int* error) { *error = 0; return 0; }
                API ncclCommFinalize(Comm*) { return 0; }
                API ncclCommDestroy(Comm* comm) { delete comm; return 0; }
                API ncclCommAbort(Comm* comm) { delete comm; return 0; }
                API ncclGroupStart() { return log("start\\n"); }
                API ncclGroupEnd() { return log("end\\n"); }
                API ncclSend(void* from, size_t count, int type, int peer, Comm*, void* stream) {
                  log("send %p %zu %d to %d in %p\\n", from, count, type, peer, stream);
                  return count == 13 ? 5 : 0;
                }
                API ncclRecv(void* to, size_t count, int type, int peer, Comm*, void* stream) {
                  log("receive %p %zu %d from %d in %p\\n", to, count, type, peer, stream);
                  return count == 13 ? 5 : 0;
                }
                API ncclReduce(void* from, void* to, size_t count, int type, int op, int root, Comm*, void* stream) {
                  log("reduce %p %p %zu %d by %d to %d in %p\\n", from, to, count, type, op, root, stream);
                  return count == 13 ? 5 : 0;
                }
                """);
    }

    /**
     * Succeeds in every call of a communicator's life and counts them all, in the file that the variable STUB_CALLS names:
     * what a program called or did not call. Has the functions that NCCL had in that release.
     */
    public static Path recording(Path folder, int versionCode) throws IOException {
        return Cxx.library(folder, "recording" + versionCode, ("#define VERSION " + versionCode + "\n") + """
                #include <atomic>
                #include <cstddef>
                #include <cstdint>
                #include <cstdlib>
                #include <dlfcn.h>
                #include <fcntl.h>
                #include <sys/mman.h>
                #include <unistd.h>
                #define API extern "C" int
                struct Id { char bytes[128]; };
                struct Comm { int rank, size, device; };
                static std::atomic<uint64_t>* calls;
                __attribute__((constructor)) static void open() {
                  int file = open(getenv("STUB_CALLS"), O_RDWR);
                  if (file < 0 || ftruncate(file, 8) != 0) abort();
                  calls = (std::atomic<uint64_t>*)mmap(nullptr, 8, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
                  if (calls == MAP_FAILED) abort();
                }
                static int called() { ++*calls; return 0; }
                static int make(Comm** cell, int rank, int size) {
                  auto device = (int (*)(int*))dlsym(RTLD_DEFAULT, "cudaGetDevice");
                  *cell = new Comm{rank, size, 0};
                  if (device) device(&(*cell)->device);
                  return called();
                }
                API ncclGetVersion(int* version) { *version = VERSION; return 0; }
                extern "C" const char* ncclGetErrorString(int) { return "stub"; }
                // Not counted: the watchdog looks at it whenever it likes.
                extern "C" const char* ncclGetLastError(void*) { return ""; }
                API ncclGetUniqueId(Id* id) { id->bytes[0] = 1; return called(); }
                API ncclCommInitRank(Comm** c, int n, Id, int rank) { return make(c, rank, n); }
                API ncclCommInitRankConfig(Comm** c, int n, Id, int rank, void*) { return make(c, rank, n); }
                API ncclCommFinalize(Comm*) { return called(); }
                API ncclCommDestroy(Comm* c) { delete c; return called(); }
                API ncclCommAbort(Comm* c) { delete c; return called(); }
                API ncclCommSplit(Comm* from, int color, int, Comm** c, void*) {
                  return color < 0 ? called() : make(c, from->rank, from->size);
                }
                // Not counted: the watchdog asks whenever it likes.
                API ncclCommGetAsyncError(Comm*, int* error) { *error = 0; return 0; }
                API ncclCommCount(Comm* c, int* count) { *count = c->size; return called(); }
                API ncclCommCuDevice(Comm* c, int* device) { *device = c->device; return called(); }
                API ncclCommUserRank(Comm* c, int* rank) { *rank = c->rank; return called(); }
                API ncclRedOpCreatePreMulSum(int* op, void*, int, int, Comm*) { *op = 5; return called(); }
                API ncclRedOpDestroy(int, Comm*) { return called(); }
                API ncclGroupStart() { return called(); }
                API ncclGroupEnd() { return called(); }
                API ncclReduce() { return called(); }
                API ncclBcast() { return called(); }
                API ncclBroadcast() { return called(); }
                API ncclAllReduce() { return called(); }
                API ncclReduceScatter() { return called(); }
                API ncclAllGather() { return called(); }
                API ncclSend() { return called(); }
                API ncclRecv() { return called(); }
                #if VERSION >= 21903
                API ncclMemAlloc(void** memory, size_t bytes) {
                  auto allocate = (int (*)(void**, size_t))dlsym(RTLD_DEFAULT, "cudaMalloc");
                  called();
                  return allocate && allocate(memory, bytes) == 0 ? 0 : 1;
                }
                API ncclMemFree(void* memory) {
                  auto release = (int (*)(void*))dlsym(RTLD_DEFAULT, "cudaFree");
                  called();
                  return release && release(memory) == 0 ? 0 : 1;
                }
                #endif
                #if VERSION >= 22203
                API ncclGroupSimulateEnd(void*) { return called(); }
                #endif
                #if VERSION >= 22304
                API ncclCommInitRankScalable(Comm** c, int n, int rank, int, Id*, void*) { return make(c, rank, n); }
                #endif
                #if VERSION >= 22703
                API ncclCommShrink(Comm* from, int*, int n, Comm** c, void*, int) {
                  return make(c, from->rank, from->size - n);
                }
                API ncclCommWindowRegister(Comm* comm, void*, size_t, void** window, int) {
                  *window = comm;
                  return called();
                }
                API ncclCommWindowDeregister(Comm*, void*) { return called(); }
                #endif
                #if VERSION >= 22803
                API ncclAlltoAll() { return called(); }
                API ncclGather() { return called(); }
                API ncclScatter() { return called(); }
                #endif
                #if VERSION >= 22807
                API ncclCommRevoke(Comm*, int) { return called(); }
                #endif
                #if VERSION >= 22902
                API ncclCommGetUniqueId(Comm*, Id* id) { id->bytes[0] = 1; return called(); }
                API ncclCommGrow(Comm* from, int n, Id*, int rank, Comm** c, void*) {
                  return make(c, from ? from->rank : rank, n);
                }
                API ncclCommQueryProperties(Comm*, void*) { return called(); }
                API ncclGetPeerDevicePointer(void*, size_t, int, void**) { return called(); }
                API ncclGetLsaMultimemDevicePointer(void*, size_t, void**) { return called(); }
                #endif
                #if VERSION >= 22907
                API ncclCommSuspend(Comm*, int) { return called(); }
                API ncclCommResume(Comm*) { return called(); }
                API ncclCommMemStats(Comm*, int, uint64_t* value) { *value = 0; return called(); }
                #endif
                #if VERSION >= 23102
                API ncclAllReduceConfig() { return called(); }
                API ncclBroadcastConfig() { return called(); }
                API ncclReduceConfig() { return called(); }
                API ncclAllGatherConfig() { return called(); }
                API ncclReduceScatterConfig() { return called(); }
                API ncclAlltoAllConfig() { return called(); }
                API ncclGatherConfig() { return called(); }
                API ncclScatterConfig() { return called(); }
                #endif
                """);
    }

    /**
     * Passes for the host engine, and does with windows what the variable STUB_WINDOWS says: makes none, makes one that
     * can't be given up, or is not done before an abort. Its last error says how much memory was not freed.
     */
    public static Path windows(Path folder, int versionCode) throws IOException {
        return Cxx.library(folder, "windows" + versionCode, ("#define VERSION " + versionCode + "\n") + """
                #include <atomic>
                #include <cstddef>
                #include <cstdlib>
                #include <cstring>
                #include <unistd.h>
                #define API extern "C" int
                static std::atomic<int> live, aborted;
                static thread_local char text[20];
                static bool does(const char* what) { return strcmp(getenv("STUB_WINDOWS"), what) == 0; }
                API nccl4jHostEngineVersion() { return 1; }
                API ncclGetVersion(int* version) { *version = VERSION; return 0; }
                extern "C" const char* ncclGetErrorString(int) { return "stub"; }
                extern "C" const char* ncclGetLastError(void*) {
                  text[0] = '0' + live;
                  strcpy(text + 1, " buffers");
                  return text;
                }
                API ncclGetUniqueId(void*) { return 0; }
                struct Id { char bytes[128]; };
                API ncclCommInitRank(void** c, int, Id, int) { *c = &live; return 0; }
                API ncclCommFinalize(void*) { return 0; }
                API ncclCommDestroy(void*) { return 0; }
                API ncclCommAbort(void*) { aborted = 1; return 0; }
                API ncclCommGetAsyncError(void*, int* error) { *error = 0; return 0; }
                API ncclGroupStart() { return 0; }
                API ncclGroupEnd() { return 0; }
                API ncclMemAlloc(void** memory, size_t) { live++; *memory = aligned_alloc(4096, 4096); return 0; }
                API ncclMemFree(void* memory) { live--; free(memory); return 0; }
                API ncclCommRegister(void*, void*, size_t, void**) { return 0; }
                API ncclCommDeregister(void*, void* handle) { return handle ? 3 : 0; }
                API ncclCommWindowRegister(void*, void* memory, size_t, void** window, int) {
                  if (does("late")) {
                    while (!aborted) usleep(1000);
                    *window = memory;
                    return 2;
                  }
                  *window = does("no-window") ? nullptr : memory;
                  return 0;
                }
                API ncclCommWindowDeregister(void*, void*) { return does("failing-close") ? 1 : 0; }
                #if VERSION >= 22902
                API ncclPutSignal() { return 0; }
                API ncclSignal() { return 0; }
                API ncclWaitSignal() { return 0; }
                #endif
                """);
    }

    /**
     * Passes for the host engine, and does with the structures of the device API what NCCL of that release does: it refuses
     * those of newer releases, and writes the layout of their version. Teams and handles that are passed come back.
     */
    public static Path device(Path folder, int versionCode) throws IOException {
        return Cxx.library(folder, "device" + versionCode, ("#define VERSION " + versionCode + "\n") + """
                #include <cstddef>
                #include <cstdint>
                #include <cstdlib>
                #include <cstring>
                #include <unistd.h>
                #define API extern "C" int
                static int live;
                API nccl4jHostEngineVersion() { return 1; }
                API ncclGetVersion(int* version) { *version = VERSION; return 0; }
                extern "C" const char* ncclGetErrorString(int) { return "stub"; }
                extern "C" const char* ncclGetLastError(void*) { return ""; }
                API ncclGetUniqueId(void*) { return 0; }
                struct Id { char bytes[128]; };
                API ncclCommInitRank(void** c, int, Id, int) { *c = &live; return 0; }
                API ncclCommFinalize(void*) { return 0; }
                API ncclCommDestroy(void*) { return 0; }
                API ncclCommAbort(void*) { return 0; }
                API ncclCommGetAsyncError(void*, int* error) { *error = 0; return 0; }
                API ncclMemAlloc(void** memory, size_t) { *memory = aligned_alloc(4096, 4096); return 0; }
                API ncclMemFree(void* memory) { free(memory); return 0; }
                API ncclCommWindowRegister(void*, void* memory, size_t, void** window, int) { *window = memory; return 0; }
                API ncclCommWindowDeregister(void*, void*) { return 0; }
                API ncclDevCommCreate(void*, void*, void*) { return 0; }
                struct Team { int size, rank, stride; };
                struct Handle { void* base; };
                extern "C" Team ncclTeamWorld(void*) { return {17, 4, 3}; }
                API ncclTeamRankToWorld(void*, Team t, int rank) { return t.size * 10000 + t.rank * 100 + t.stride * 10 + rank; }
                #if VERSION >= 22902
                template <class T> static void put(char* to, size_t at, T value) { memcpy(to + at, &value, sizeof value); }
                API ncclCommQueryProperties(void*, char* p) {
                  unsigned version;
                  memcpy(&version, p + 12, 4);
                  if (version > VERSION) return 5;
                  for (int i = 0; i < 4; i++) put(p, 16 + 4 * i, 10 + i);
                  p[32] = 1;
                  p[33] = 0;
                  if (version < 22907) {
                    p[34] = 3;
                    return 0;
                  }
                  put(p, 36, 2);
                  put(p, 40, 6);
                  p[44] = 1;
                  put(p, 48, 99);
                  if (version < 23100) return 0;
                  put(p, 56, (uint64_t)0xabcdef0123456789u);
                  put(p, 64, 5);
                  put(p, 68, 3);
                  p[72 + 2] = p[72 + 5] = p[72 + 33] = 1;
                  put(p, 136, (size_t)248);
                  if (version < 23200) return 0;
                  p[144] = 1;
                  p[145] = 0;
                  p[146] = 1;
                  return 0;
                }
                API ncclGetPeerDevicePointer(char* window, size_t offset, int peer, char** out) {
                  *out = peer == 2 ? nullptr : window + 65536 * peer + offset;
                  return 0;
                }
                API ncclGetMultimemDevicePointer(void*, size_t offset, Handle handle, char** out) {
                  *out = (char*)handle.base + offset;
                  return 0;
                }
                API ncclGetLsaMultimemDevicePointer(char* window, size_t, char** out) {
                  if (getenv("STUB_LATE")) for (;;) sleep(1);
                  *out = window + (1 << 30);
                  return 0;
                }
                #endif
                """);
    }

    /**
     * Passes for the host engine, and writes a log as NCCL does: in the form of its version, by NCCL_DEBUG and
     * NCCL_DEBUG_FILE, which it reads when it writes first. {@code ncclBroadcast} warns as often as the variable STUB_LINES
     * says; {@code ncclAllReduce} warns twice and fails; {@code ncclReduce} fails without a word.
     */
    public static Path logging(Path folder, int versionCode) throws IOException {
        return Cxx.library(folder, "logging" + versionCode, ("#define VERSION " + versionCode + "\n") + """
                #include <cstdarg>
                #include <cstddef>
                #include <cstdio>
                #include <cstdlib>
                #include <cstring>
                #include <unistd.h>
                #define API extern "C" int
                struct Id { char bytes[128]; };
                struct Comm { int rank, size; };
                static FILE* file = stdout;
                static int level = -1;  // 2 WARN, 3 INFO
                static char lastError[200];
                static void init() {
                  const char* debug = getenv("NCCL_DEBUG");
                  level = !debug ? 0 : strcmp(debug, "WARN") == 0 ? 2 : 3;
                  const char* path = getenv("NCCL_DEBUG_FILE");
                  char name[4000] = "", *end = name;
                  for (const char* c = path ? path : ""; *c; c++) {
                    if (*c != '%') *end++ = *c;
                    else if (*++c == 'p') end += sprintf(end, "%d", getpid());
                    else *end++ = *c;
                  }
                  *end = 0;
                  if (level > 0 && name[0]) file = fopen(name, "w");
                  setlinebuf(file);
                }
                static void say(int need, const char* format, ...) {
                  char text[180];
                  va_list arguments;
                  va_start(arguments, format);
                  vsnprintf(text, sizeof text, format, arguments);
                  va_end(arguments);
                  if (need == 2) strcpy(lastError, text);
                  if (level < 0) init();
                  if (level < need) return;
                  if (need == 3) fprintf(file, "node1:%d:%d [-1] NCCL INFO %s\\n", getpid(), gettid(), text);
                  else if (VERSION < 22400)
                    fprintf(file, "\\nnode1:%d:%d [-1] misc/socket.cc:568 NCCL WARN %s\\n", getpid(), gettid(), text);
                  else
                    fprintf(file, "\\n[2026-11-21 10:00:00] node1:%d:%d [-1] misc/socket.cc:568 (connect) NCCL WARN %s\\n",
                        getpid(), gettid(), text);
                }
                API nccl4jHostEngineVersion() { return 1; }
                API ncclGetVersion(int* version) { *version = VERSION; return 0; }
                extern "C" const char* ncclGetErrorString(int) { return "stub"; }
                extern "C" const char* ncclGetLastError(void*) { return lastError; }
                API ncclGetUniqueId(void*) {
                  if (level < 0) init();
                  if (level > 0) fprintf(file, "NCCL version 2.28.3+cuda13.0\\n");
                  return 0;
                }
                API ncclCommInitRank(Comm** c, int size, Id, int rank) {
                  *c = new Comm{rank, size};
                  say(3, "ncclCommInitRank comm %p rank %d nranks %d - Init COMPLETE", *c, rank, size);
                  return 0;
                }
                API ncclCommInitRankConfig(Comm** c, int size, Id id, int rank, void*) {
                  return ncclCommInitRank(c, size, id, rank);
                }
                API ncclCommFinalize(void*) { return 0; }
                API ncclCommDestroy(void*) { return 0; }
                API ncclCommAbort(void*) { return 0; }
                API ncclCommGetAsyncError(void*, int* error) { *error = 0; return 0; }
                API ncclGroupStart() { return 0; }
                API ncclGroupEnd() { return 0; }
                API ncclBroadcast() {
                  int lines = atoi(getenv("STUB_LINES"));
                  for (int i = 0; i < lines; i++) say(2, "line %d %0100d", i, 0);
                  return 0;
                }
                API ncclAllReduce(const void*, void*, size_t, int, int, Comm* c, void*) {
                  say(2, "comm %p rank %d: connection refused", c, c->rank);
                  say(2, "giving up");
                  return 2;
                }
                API ncclReduce() { return 3; }
                #if VERSION >= 22403
                extern "C" void ncclResetDebugInit() { level = -1; }
                #endif
                """);
    }

    /**
     * Another tensor library, with its own writing of DLPack's structs, behind functions that the bindings can call:
     * {@code ncclReduce} doubles the int32 elements of a tensor that it is given and calls its deleter; {@code ncclRecv}
     * writes a tensor of its own, of [2, 3] float32 from 1 on, into a cell; {@code ncclCommCount} tells how many of these
     * have been deleted. The count of elements of a call says which struct is meant: 0 the old one, else the major version.
     */
    public static Path tensors(Path folder) throws IOException {
        return Cxx.library(folder, "tensors", String.format(Locale.ROOT, COMMON, 23007) + """
                typedef struct { int32_t device_type; int32_t device_id; } DLDevice;
                typedef struct { uint8_t code; uint8_t bits; uint16_t lanes; } DLDataType;
                typedef struct {
                  void* data; DLDevice device; int32_t ndim; DLDataType dtype; int64_t* shape; int64_t* strides;
                  uint64_t byte_offset;
                } DLTensor;
                typedef struct DLManagedTensor {
                  DLTensor dl_tensor; void* manager_ctx; void (*deleter)(struct DLManagedTensor* self);
                } DLManagedTensor;
                typedef struct { uint32_t major; uint32_t minor; } DLPackVersion;
                typedef struct DLManagedTensorVersioned {
                  DLPackVersion version; void* manager_ctx; void (*deleter)(struct DLManagedTensorVersioned* self);
                  uint64_t flags; DLTensor dl_tensor;
                } DLManagedTensorVersioned;
                static int deleted;
                static int64_t shape[] = {2, 3}, strides[] = {3, 1};
                static float* filled(DLTensor& t) {
                  float* data = new float[7];
                  for (int i = 0; i < 7; i++) data[i] = i;
                  t = {data, {1, 0}, 2, {2, 32, 1}, shape, strides, 4};
                  return data;
                }
                static int doubled(const DLTensor& t) {
                  if (t.device.device_type != 1 || t.dtype.code != 0 || t.dtype.bits != 32 || t.dtype.lanes != 1) return 3;
                  if (t.ndim != 1 || t.strides[0] != 1) return 3;
                  for (int64_t i = 0; i < t.shape[0]; i++) ((int32_t*)((char*)t.data + t.byte_offset))[i] *= 2;
                  return 0;
                }
                extern "C" int ncclReduce(void* tensor, void*, size_t major) {
                  int result;
                  if (major) {
                    auto* t = (DLManagedTensorVersioned*)tensor;
                    result = t->version.major == major && t->flags == 0 ? doubled(t->dl_tensor) : 3;
                    t->deleter(t);
                  } else {
                    auto* t = (DLManagedTensor*)tensor;
                    result = doubled(t->dl_tensor);
                    t->deleter(t);
                  }
                  return result;
                }
                extern "C" int ncclRecv(void** cell, size_t major, int change) {
                  DLTensor* tensor;
                  if (major) {
                    auto* t = new DLManagedTensorVersioned{};
                    t->version = {(uint32_t)major, 1};
                    t->flags = change == 1;
                    t->manager_ctx = filled(t->dl_tensor);
                    t->deleter = [](DLManagedTensorVersioned* self) {
                      deleted++;
                      delete[] (float*)self->manager_ctx;
                      delete self;
                    };
                    tensor = &t->dl_tensor;
                    *cell = t;
                  } else {
                    auto* t = new DLManagedTensor{};
                    t->manager_ctx = filled(t->dl_tensor);
                    t->deleter = [](DLManagedTensor* self) {
                      deleted++;
                      delete[] (float*)self->manager_ctx;
                      delete self;
                    };
                    tensor = &t->dl_tensor;
                    *cell = t;
                  }
                  static int64_t other[] = {1, 2};
                  if (change == 2) tensor->strides = other;
                  if (change == 3) tensor->device.device_type = 10;
                  if (change == 4) tensor->strides = nullptr;
                  return 0;
                }
                extern "C" int ncclCommCount(void*, int* count) { *count = deleted; return 0; }
                """);
    }
}

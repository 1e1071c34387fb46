package io.github.nccl4j.tests;

import java.io.IOException;
import java.nio.file.Path;

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

    private StubLibraries() {}

    /** Four functions and no more. */
    public static Path small(Path folder, int versionCode) throws IOException {
        return Cxx.library(folder, "small" + versionCode, COMMON.formatted(versionCode));
    }

    /** As NCCL built for CUDA 12.9, whose unique ids fail with the result in the variable STUB_RESULT. */
    public static Path failing(Path folder, int versionCode) throws IOException {
        return Cxx.library(folder, "failing" + versionCode, COMMON.formatted(versionCode) + """
                #include <cstdlib>
                extern "C" const char* ncclBanner() { return "NCCL version 2.27.3+cuda12.9"; }
                extern "C" int ncclGetUniqueId(void* id) {
                  lastError = "no interface is up";
                  return atoi(getenv("STUB_RESULT"));
                }
                """);
    }

    /** As VCCL before 3e0ac2e: refuses a missing communicator first, as the real one does. */
    public static Path vccl10(Path folder) throws IOException {
        return Cxx.library(folder, "vccl10", COMMON.formatted(22902) + """
                extern "C" int ncclAlltoAllv(const void* sendbuff, const size_t* sendcounts, const size_t* sdispls,
                    void* recvbuff, const size_t* recvcounts, const size_t* rdispls, const void* relaybuff,
                    int datatype, void* comm, void* stream) {
                  if (!comm) { lastError = "AlltoAllv : comm argument is NULL"; return 4; }
                  return datatype == 9 && (uintptr_t)comm == 10 && (uintptr_t)stream == 11 ? 0 : 3;
                }
                extern "C" int pncclAlltoAllv(const void* a, const size_t* b, const size_t* c, void* d, const size_t* e,
                    const size_t* f, const void* g, int h, void* i, void* j) {
                  return ncclAlltoAllv(a, b, c, d, e, f, g, h, i, j);
                }
                """);
    }

    /** As VCCL from 3e0ac2e on: looks into the communicator, which kills the process unless it points to memory. */
    public static Path vccl11(Path folder) throws IOException {
        return Cxx.library(folder, "vccl11", COMMON.formatted(22902) + """
                extern "C" int ncclAlltoAllv(const void* sendbuff, const size_t* sendcounts, const size_t* sdispls,
                    void* recvbuff, const size_t* recvcounts, const size_t* rdispls, void* relaybuff,
                    size_t relaycount, int datatype, void* comm, void* stream) {
                  if (!comm) { lastError = "AlltoAllv : comm argument is NULL"; return 4; }
                  if ((uintptr_t)comm == 10)
                    return datatype == 9 && relaycount == 8 && (uintptr_t)stream == 11 ? 0 : 3;
                  if (((volatile char*)comm)[1 << 20] == 0) { lastError = "Error: corrupted comm object detected"; return 4; }
                  return 3;
                }
                extern "C" int pncclAlltoAllv(const void* a, const size_t* b, const size_t* c, void* d, const size_t* e,
                    const size_t* f, void* g, size_t h, int i, void* j, void* k) {
                  return ncclAlltoAllv(a, b, c, d, e, f, g, h, i, j, k);
                }
                """);
    }

    /** A form that answers the probe as neither known one does. */
    public static Path vcclOfAnotherForm(Path folder) throws IOException {
        return Cxx.library(folder, "vcclother", COMMON.formatted(23100) + """
                extern "C" int ncclAlltoAllv() { lastError = "something else"; return 5; }
                extern "C" int pncclAlltoAllv() { return ncclAlltoAllv(); }
                """);
    }

    /** Keeps the addresses of the last call, in memory that a first call of ncclSend gave it. */
    public static Path addresses(Path folder) throws IOException {
        return Cxx.library(folder, "addresses", COMMON.formatted(23007) + """
                static const void** seen;
                extern "C" int ncclSend(const void* buffer) { seen = (const void**)buffer; return 0; }
                extern "C" int ncclAllReduce(const void* a, void* b) { seen[0] = a; seen[1] = b; return 0; }
                extern "C" int ncclAlltoAllv(const void* a, const size_t* b, const size_t* c, void* d, const size_t* e,
                    const size_t* f, void* g, size_t h, int i, void* j, void* k) {
                  if (seen) { seen[0] = a; seen[1] = d; seen[2] = b; }
                  lastError = "corrupted comm object";
                  return 4;
                }
                """);
    }
}

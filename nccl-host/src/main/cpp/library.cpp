// library.cpp: exported functions about the library itself, memory and registrations, and those that this engine does
// not have: they are exported too, so that a program that binds the whole API can load it, and say what they are.

#include <stdlib.h>

#include <mutex>
#include <set>

#include "comm.h"

using namespace host;

namespace {

struct Allocations {
  std::mutex mutex;
  std::set<void*> live;
};

Allocations& allocations() {
  static Allocations& instance = *new Allocations;
  return instance;
}

ncclResult_t unsupported(const char* function) {
  return guarded([&]() -> ncclResult_t {
    fail(ncclInvalidUsage, "%s is not supported by the host engine", function);
  });
}

}  // namespace

extern "C" const char* nccl4jHostEngineVersion(void) { return "1"; }

extern "C" ncclResult_t ncclGetVersion(int* version) {
  if (version == nullptr) return ncclInvalidArgument;
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
HOST_PROFILER_ALIAS(ncclGetVersion)

extern "C" ncclResult_t ncclMemAlloc(void** ptr, size_t size) {
  return guarded([&]() -> ncclResult_t {
    if (ptr == nullptr) fail(ncclInvalidArgument, "MemAlloc : ptr argument is NULL");
    void* memory = nullptr;
    if (posix_memalign(&memory, NCCL_WIN_REQUIRED_ALIGNMENT, size > 0 ? size : 1) != 0) {
      fail(ncclSystemError, "MemAlloc : cannot allocate %zu bytes of host memory", size);
    }
    std::lock_guard<std::mutex> lock(allocations().mutex);
    allocations().live.insert(memory);
    *ptr = memory;
    return ncclSuccess;
  });
}
HOST_PROFILER_ALIAS(ncclMemAlloc)

extern "C" ncclResult_t ncclMemFree(void* ptr) {
  return guarded([&]() -> ncclResult_t {
    if (ptr == nullptr) return ncclSuccess;
    {
      std::lock_guard<std::mutex> lock(allocations().mutex);
      if (allocations().live.erase(ptr) == 0) {
        fail(ncclInvalidArgument, "MemFree : %p is not memory of ncclMemAlloc, or was freed before", ptr);
      }
    }
    free(ptr);
    return ncclSuccess;
  });
}
HOST_PROFILER_ALIAS(ncclMemFree)

// Host memory needs no registration; the buffer's address serves as the handle.
extern "C" ncclResult_t ncclCommRegister(const ncclComm_t comm, void* buff, size_t size, void** handle) {
  return guarded([&]() -> ncclResult_t {
    requireReadyComm(comm, "CommRegister");
    if (buff == nullptr || size == 0) {
      fail(ncclInvalidArgument, "CommRegister : invalid buffer %p, size %zu", buff, size);
    }
    if (handle == nullptr) fail(ncclInvalidArgument, "CommRegister : handle argument is NULL");
    *handle = buff;
    return ncclSuccess;
  });
}
HOST_PROFILER_ALIAS(ncclCommRegister)

extern "C" ncclResult_t ncclCommDeregister(const ncclComm_t comm, void*) {
  return guarded([&]() -> ncclResult_t {
    requireComm(comm, "CommDeregister");
    return ncclSuccess;
  });
}
HOST_PROFILER_ALIAS(ncclCommDeregister)

#define HOST_UNSUPPORTED(name, ...)                                       \
  extern "C" ncclResult_t name(__VA_ARGS__) { return unsupported(#name); } \
  HOST_PROFILER_ALIAS(name)

HOST_UNSUPPORTED(ncclCommSuspend, ncclComm_t, int)
HOST_UNSUPPORTED(ncclCommResume, ncclComm_t)
HOST_UNSUPPORTED(ncclCommMemStats, ncclComm_t, ncclCommMemStat_t, uint64_t*)
HOST_UNSUPPORTED(ncclParamBind, ncclParamHandle_t*, const char*)
HOST_UNSUPPORTED(ncclParamGetI8, ncclParamHandle_t, int8_t*)
HOST_UNSUPPORTED(ncclParamGetI16, ncclParamHandle_t, int16_t*)
HOST_UNSUPPORTED(ncclParamGetI32, ncclParamHandle_t, int32_t*)
HOST_UNSUPPORTED(ncclParamGetI64, ncclParamHandle_t, int64_t*)
HOST_UNSUPPORTED(ncclParamGetU8, ncclParamHandle_t, uint8_t*)
HOST_UNSUPPORTED(ncclParamGetU16, ncclParamHandle_t, uint16_t*)
HOST_UNSUPPORTED(ncclParamGetU32, ncclParamHandle_t, uint32_t*)
HOST_UNSUPPORTED(ncclParamGetU64, ncclParamHandle_t, uint64_t*)
HOST_UNSUPPORTED(ncclParamGetStr, ncclParamHandle_t, const char**)
HOST_UNSUPPORTED(ncclParamGet, ncclParamHandle_t, void*, int, int*)
HOST_UNSUPPORTED(ncclParamGetParameter, const char*, const char**, int*)
HOST_UNSUPPORTED(ncclParamGetAllParameterKeys, const char***, int*)

extern "C" void ncclParamDumpAll(void) {}
HOST_PROFILER_ALIAS(ncclParamDumpAll)

extern "C" void ncclResetDebugInit() {}
HOST_PROFILER_ALIAS(ncclResetDebugInit)

// library.cpp: exported functions about the library itself, memory and registrations.

#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <mutex>
#include <set>

#include "base/fork.h"
#include "protocol/comm.h"

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

}  // namespace

std::mutex& host::lockOfAllocations() { return allocations().mutex; }

extern "C" const char* nccl4jHostEngineVersion(void) { return "1"; }

extern "C" ncclResult_t ncclGetVersion(int* version) {
  if (version == nullptr) return ncclInvalidArgument;
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
HOST_PROFILER_ALIAS(ncclGetVersion)

extern "C" ncclResult_t ncclSetEncryption(const ncclEncryptionConfig_t* config) {
  return guarded([&]() -> ncclResult_t {
    if (config == nullptr) return ncclSuccess;
    ncclEncryptionConfig_t known = NCCL_ENCRYPTION_CONFIG_INITIALIZER;
    size_t size;
    memcpy(&size, config, sizeof size);
    if (config->magic != NCCL_API_MAGIC || size < offsetof(ncclEncryptionConfig_t, mode)) {
      fail(
          ncclInvalidArgument,
          "SetEncryption : config was not initialized with NCCL_ENCRYPTION_CONFIG_INITIALIZER (size %zu, magic 0x%x, "
          "expected magic 0x%x)",
          size, config->magic, NCCL_API_MAGIC);
    }
    memcpy(&known, config, std::min(size, sizeof known));
    if (known.mode != NCCL_ENCRYPTION_MODE_NONE && known.mode != NCCL_ENCRYPTION_MODE_PSK) {
      fail(ncclInvalidArgument, "SetEncryption : config->mode is %d, but must be in 0..1", known.mode);
    }
    constexpr size_t kLeast = 32;
    size_t length = known.psk == nullptr ? 0 : strnlen(known.psk, kLeast);
    bool encrypts = known.mode == NCCL_ENCRYPTION_MODE_PSK;
    if (encrypts && length < kLeast) {
      fail(
          ncclInvalidArgument, "SetEncryption : config->psk has %zu characters, but must have at least %zu", length,
          kLeast);
    }
    if (!encryptionKeyIsUsed()) {
      setEncryptionKey(encrypts ? known.psk : nullptr);
    } else if (encrypts || encryptionKey()) {
      fail(ncclInvalidUsage, "SetEncryption : must be called before the first unique id and communicator of the process");
    }
    return ncclSuccess;
  });
}
HOST_PROFILER_ALIAS(ncclSetEncryption)

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
    // Operations in streams may still use the memory.
    whenAllDone([ptr] { free(ptr); });
    return ncclSuccess;
  });
}
HOST_PROFILER_ALIAS(ncclMemFree)

// Host memory needs no registration; the buffer's address serves as handle.
extern "C" ncclResult_t ncclCommRegister(const ncclComm_t comm, void* buff, size_t size, void** handle) {
  return guarded([&]() -> ncclResult_t {
    requireReadyComm(comm, "CommRegister", kAllowRevoked | kAllowSuspended);
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

// Suspending frees the scratch memory of reductions, which the next reduction allocates anew. Both calls act at once,
// even inside a group, and on this rank only.
extern "C" ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags) {
  return guarded([&]() -> ncclResult_t {
    std::shared_ptr<Comm> known = requireReadyComm(comm, "CommSuspend", kAllowRevoked | kAllowSuspended);
    if ((flags & NCCL_SUSPEND_MEM) == 0) return ncclSuccess;
    awaitOperations(*known);
    std::lock_guard<Baton> lock(known->operation);
    if (known->suspended.exchange(true)) {
      fail(ncclInvalidUsage, "CommSuspend : rank %d has suspended this communicator before", known->rank);
    }
    known->scratch.drop();
    return ncclSuccess;
  });
}
HOST_PROFILER_ALIAS(ncclCommSuspend)

extern "C" ncclResult_t ncclCommResume(ncclComm_t comm) {
  return guarded([&]() -> ncclResult_t {
    std::shared_ptr<Comm> known = requireReadyComm(comm, "CommResume", kAllowRevoked | kAllowSuspended);
    if (!known->suspended.exchange(false)) {
      fail(ncclInvalidUsage, "CommResume : this communicator of rank %d is not suspended", known->rank);
    }
    return ncclSuccess;
  });
}
HOST_PROFILER_ALIAS(ncclCommResume)

extern "C" ncclResult_t ncclCommMemStats(ncclComm_t comm, ncclCommMemStat_t stat, uint64_t* value) {
  return guarded([&]() -> ncclResult_t {
    std::shared_ptr<Comm> known = requireReadyComm(comm, "CommMemStats", kAllowRevoked | kAllowSuspended);
    if (value == nullptr) fail(ncclInvalidArgument, "CommMemStats : value argument is NULL");
    switch (stat) {
      case ncclStatGpuMemSuspend: *value = known->scratch.bytes(); return ncclSuccess;
      case ncclStatGpuMemSuspended: *value = known->suspended ? 1 : 0; return ncclSuccess;
      case ncclStatGpuMemPersist: *value = known->fixedBytes(); return ncclSuccess;
      case ncclStatGpuMemTotal: *value = known->fixedBytes() + known->scratch.bytes(); return ncclSuccess;
    }
    fail(ncclInvalidArgument, "CommMemStats : invalid stat %d, expected 0 to 3", static_cast<int>(stat));
  });
}
HOST_PROFILER_ALIAS(ncclCommMemStats)

extern "C" void ncclResetDebugInit() {}
HOST_PROFILER_ALIAS(ncclResetDebugInit)

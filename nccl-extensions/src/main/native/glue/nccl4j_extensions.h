/*
 * Binds the JNI library at run time to the libraries of NCCL's extensions, as nccl4j_library.h of the bindings does to
 * libnccl: a slot per function, filled by dlsym at the first call, and lists of functions that are made from the headers.
 *
 * Every failure here is a C++ exception, which the generated code converts to a NcclLibraryException.
 */
#ifndef NCCL4J_EXTENSIONS_H_
#define NCCL4J_EXTENSIONS_H_

#include <string.h>

#include <atomic>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "initialized_struct.h"
#include "library_file.h"

#include <nccl_m2n.h>
#include <nccl_ep.h>

namespace __attribute__((visibility("hidden"))) nccl4j {

enum Slot {
#define NCCL4J_FUNCTION(name, release) SLOT_##name,
#include "nccl_m2n_functions.inc"
#include "nccl_ep_functions.inc"
#undef NCCL4J_FUNCTION
  SLOT_COUNT
};

/** The libraries, in the order of ExtensionLibrary in Java. */
enum Extension { M2N, EP, EXTENSION_COUNT };

constexpr int kM2nFunctions = 0
#define NCCL4J_FUNCTION(name, release) +1
#include "nccl_m2n_functions.inc"
#undef NCCL4J_FUNCTION
    ;

struct Function {
  const char* name;
  const char* release;  // the release that added the function, as text: "NCCL EP 0.2.0"
};

inline const Function functions[] = {
#define NCCL4J_FUNCTION(name, release) {#name, release},
#include "nccl_m2n_functions.inc"
#include "nccl_ep_functions.inc"
#undef NCCL4J_FUNCTION
};

inline std::atomic<void*> slots[SLOT_COUNT];

struct ExtensionLibrary {
  std::mutex lock;
  std::vector<std::string> candidates;  // in the order of the attempts
  std::string problem;                  // why there are no candidates
  std::string advice;                   // end of a failure's message
  // Written once, under the lock, before `handle`; read without the lock afterwards.
  std::string path;
  int version = 0;  // 0 if the library has no function for it, as NCCL M2N
  std::atomic<void*> handle{nullptr};
};

/** Never destroyed: threads may still call the libraries while the process ends. */
inline ExtensionLibrary& extension(int which) {
  static ExtensionLibrary* all = new ExtensionLibrary[EXTENSION_COUNT];
  return all[which];
}

inline const char* titleOf(int which) { return which == M2N ? "NCCL M2N" : "NCCL EP"; }

inline std::string described(int which) {
  const ExtensionLibrary& l = extension(which);
  std::string version = l.version == 0 ? "unknown version"
      : std::string(titleOf(which)) + " " + std::to_string(l.version / 10000) + "." + std::to_string(l.version / 100 % 100) + "."
          + std::to_string(l.version % 100);
  return l.path + " (" + version + ")";
}

/** Opens one candidate; on failure returns NULL and stores the reason in `why`. */
inline void* openCandidate(int which, const std::string& candidate, int& version, std::string& why) {
  size_t skipped = candidate.find(SKIPPED);
  if (skipped != std::string::npos) {
    why = candidate.substr(skipped + 1);
    return nullptr;
  }
  void* handle = openLibrary(candidate, RTLD_NOW | RTLD_LOCAL, why);
  if (!handle) return nullptr;
  const char* needed = which == M2N ? "ncclReshard" : "ncclEpGetVersion";
  void* function = dlsym(handle, needed);
  int result = ncclSuccess;
  if (function && which == EP) result = ((ncclResult_t(*)(int*))function)(&version);
  if (!function || result != ncclSuccess) {
    dlclose(handle);
    why = function ? "its ncclEpGetVersion fails with " + std::to_string(result)
                   : std::string("not a library of ") + titleOf(which) + " (no " + needed + ")";
    return nullptr;
  }
  return handle;
}

/** Returns the library's handle; opens the library at the first call. The caller holds the lock. */
inline void* openLocked(int which) {
  ExtensionLibrary& l = extension(which);
  if (void* handle = l.handle.load(std::memory_order_relaxed)) return handle;
  if (!l.problem.empty()) throw std::runtime_error(l.problem);
  // The libraries depend on libnccl.so.2: the dynamic linker must find the one that the communicators are of.
  if (!isLoadedAs("libnccl.so.2"))
    throw std::runtime_error(std::string(titleOf(which)) + " could not be loaded: it needs NVIDIA's libnccl.so.2, and the loaded"
        " NCCL is another library");
  std::string tried;
  for (const std::string& candidate : l.candidates) {
    std::string why;
    void* handle = openCandidate(which, candidate, l.version, why);
    if (!handle) {
      tried += "\n  " + candidate.substr(0, candidate.find(SKIPPED)) + ": " + why;
      continue;
    }
    struct link_map* map = nullptr;
    bool known = dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name && *map->l_name;
    l.path = known ? map->l_name : candidate;
    l.handle.store(handle, std::memory_order_release);
    return handle;
  }
  throw std::runtime_error(std::string(titleOf(which)) + " could not be loaded; tried in this order:" + tried + "\n" + l.advice);
}

inline void* opened(int which) {
  ExtensionLibrary& l = extension(which);
  if (void* handle = l.handle.load(std::memory_order_acquire)) return handle;
  std::lock_guard<std::mutex> guard(l.lock);
  return openLocked(which);
}

__attribute__((noinline, cold)) inline void* fill(int slot) {
  int which = slot < kM2nFunctions ? M2N : EP;
  void* address = dlsym(opened(which), functions[slot].name);
  if (!address)
    throw std::runtime_error(std::string(functions[slot].name) + " is not provided by " + described(which) + "; it came with "
        + functions[slot].release);
  slots[slot].store(address, std::memory_order_release);
  return address;
}

inline void* addressOf(int slot) {
  void* address = slots[slot].load(std::memory_order_acquire);
  return __builtin_expect(address != nullptr, 1) ? address : fill(slot);
}

/* Functions for io.github.nccl4j.extensions.library.ExtensionLibrary. */

/** Sets the candidates for the first call, separated by newlines, and the texts of failures. */
inline void configure(int which, const char* candidates, const char* problem, const char* advice) {
  ExtensionLibrary& l = extension(which);
  std::lock_guard<std::mutex> guard(l.lock);
  l.candidates = lines(candidates);
  l.problem = problem;
  l.advice = advice;
}

/** Copies the path of the library, without a final zero byte, and returns its length. */
inline int copyPath(int which, char* to, int room) {
  opened(which);
  return (int)extension(which).path.copy(to, (size_t)room);
}

/** Returns the version code, 0 if the library has no function for it. */
inline int versionCode(int which) {
  opened(which);
  return extension(which).version;
}

inline bool provides(int which, const char* function) { return dlsym(opened(which), function) != nullptr; }

/** Returns the release of CUDA that the driver supports, such as 12080; 0 without a driver. */
inline int cudaDriverVersion() {
  std::string why;
  void* driver = openLibrary("libcuda.so.1", RTLD_NOW | RTLD_LOCAL, why);
  if (!driver) return 0;
  auto getVersion = (int (*)(int*))dlsym(driver, "cuDriverGetVersion");
  int version = 0;
  return getVersion && getVersion(&version) == 0 ? version : 0;
}

#define NCCL4J_STRUCT(type, initializer) NCCL4J_INITIALIZED(type, initializer)
#include "nccl_m2n_structs.inc"
#include "nccl_ep_structs.inc"
#undef NCCL4J_STRUCT

}  // namespace nccl4j

/* A macro's own name is not expanded inside its expansion, so ::name is still the prototype. */
#define NCCL4J_SYMBOL(name) ((decltype(&::name))nccl4j::addressOf(nccl4j::SLOT_##name))
#include "nccl_m2n_redirect.inc"
#include "nccl_ep_redirect.inc"

#endif

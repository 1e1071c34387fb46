/*
 * Binds the JNI library to whichever libnccl the program chose, when it is first called: nothing here is linked against
 * NCCL. Every function of nccl.h has one slot, filled by dlsym at the first call of that function. The redirections at
 * the end of this file send each call in the generated code through its slot: the type comes from the prototype, the
 * address from the slot, and the list of functions from the header (nccl_functions.inc, made by the build).
 *
 * Whatever goes wrong here is a C++ exception, which the generated code turns into a NcclLibraryException.
 */
#ifndef NCCL4J_LIBRARY_H_
#define NCCL4J_LIBRARY_H_

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include <nccl.h>
#include <nccl4j_host.h>

namespace __attribute__((visibility("hidden"))) nccl4j {

enum Slot {
#define NCCL4J_FUNCTION(name, release) SLOT_##name,
#include "nccl_functions.inc"
#undef NCCL4J_FUNCTION
  SLOT_COUNT
};

struct Function {
  const char* name;
  const char* release;  // what added it, as text: "NCCL 2.28.3"
};

inline const Function functions[] = {
#define NCCL4J_FUNCTION(name, release) {#name, release},
#include "nccl_functions.inc"
#undef NCCL4J_FUNCTION
};

inline std::atomic<void*> slots[SLOT_COUNT];

/** The forms of ncclAlltoAllv, by their number of arguments; FORM_UNKNOWN where the probe found neither. */
enum Form { FORM_ABSENT = 0, FORM_UNKNOWN = -1, FORM_10 = 10, FORM_11 = 11 };

struct Library {
  std::mutex lock;
  std::vector<std::string> candidates;  // in the order in which they are tried
  std::string problem;                  // why there are no candidates, where the program's choice was impossible
  std::string advice;                   // what the message of a failure ends with
  int declaredForm = 0;
  // Written once, under the lock, before `handle` is; read without the lock after it.
  std::string path;
  int version = 0;
  int form = FORM_ABSENT;
  std::string probeAnswer;
  std::atomic<void*> handle{nullptr};
};

/** Never destroyed: threads may still call NCCL while the process ends. */
inline Library& library() {
  static Library* one = new Library;
  return *one;
}

inline std::string versionText(int code) {
  if (code < 1000) return "unknown version";
  int major = code < 10000 ? code / 1000 : code / 10000;
  int minor = code < 10000 ? code / 100 % 10 : code / 100 % 100;
  return "NCCL " + std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(code % 100);
}

inline std::string described(const Library& l) { return l.path + " (" + versionText(l.version) + ")"; }

/**
 * What is wrong with a file that dlopen would map, or "". dlopen trusts the sizes in the file: a download that was cut
 * short kills the process with SIGBUS when the missing pages are touched.
 */
inline std::string fileProblem(const std::string& path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return strerror(errno);
  struct Close {
    int fd;
    ~Close() { ::close(fd); }
  } closeAtEnd{fd};
  struct stat st;
  if (fstat(fd, &st) != 0) return strerror(errno);
  if (!S_ISREG(st.st_mode)) return "not a regular file";
  ElfW(Ehdr) header;
  if (pread(fd, &header, sizeof header, 0) != (ssize_t)sizeof header || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    return "not a shared library (no ELF header)";
  if (header.e_phentsize != sizeof(ElfW(Phdr))) return "not a shared library for this machine";
  auto size = (unsigned long long)st.st_size;
  for (unsigned i = 0; i < header.e_phnum; i++) {
    ElfW(Phdr) segment;
    if (pread(fd, &segment, sizeof segment, (off_t)(header.e_phoff + i * sizeof segment)) != (ssize_t)sizeof segment)
      return "truncated: its program headers lie beyond its end";
    if (segment.p_type == PT_LOAD && segment.p_offset + segment.p_filesz > size)
      return "truncated: it has " + std::to_string(size) + " bytes and needs "
          + std::to_string((unsigned long long)(segment.p_offset + segment.p_filesz));
  }
  return "";
}

/** Opens one candidate; returns NULL and says why in `why`. */
inline void* openCandidate(const std::string& candidate, std::string& why) {
  if (candidate.find('/') != std::string::npos && !(why = fileProblem(candidate)).empty()) return nullptr;
  void* handle = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* error = dlerror();
    why = error ? error : "dlopen failed";
    if (why.rfind(candidate + ": ", 0) == 0) why.erase(0, candidate.size() + 2);
    return nullptr;
  }
  if (!dlsym(handle, "ncclGetVersion")) {
    dlclose(handle);
    why = "not an NCCL library (no ncclGetVersion)";
    return nullptr;
  }
  return handle;
}

/**
 * Tells the two forms of ncclAlltoAllv apart, without a GPU and without a crash in either. In the form of 10 arguments
 * the zero at place 9 is the communicator; in that of 11, the zeroed block at place 10 is. Both refuse, with different
 * texts. Every argument is a full word: an int would leave the upper half of its place undefined.
 */
inline int probeForm(void* handle, std::string& answer) {
  void* function = dlsym(handle, "ncclAlltoAllv");
  if (!function) return FORM_ABSENT;
  auto lastError = (const char* (*)(ncclComm_t))dlsym(handle, "ncclGetLastError");
  if (!lastError) return FORM_UNKNOWN;
  typedef uintptr_t W;
  const size_t block = 16 << 20;  // larger than any ncclComm; untouched pages cost nothing
  std::unique_ptr<void, void (*)(void*)> zeros(calloc(1, block), free);
  if (!zeros) return FORM_UNKNOWN;
  int result = ((int (*)(W, W, W, W, W, W, W, W, W, W, W))function)(0, 0, 0, 0, 0, 0, 0, 0, 0, (W)zeros.get(), 0);
  const char* text = lastError(nullptr);
  answer = text ? text : "";
  if (result != ncclInvalidArgument) return FORM_UNKNOWN;
  if (answer.find("comm argument is NULL") != std::string::npos) return FORM_10;
  if (answer.find("corrupted comm object") != std::string::npos) return FORM_11;
  return FORM_UNKNOWN;
}

/** The library's handle; opens it at the first call. The caller holds the lock. */
inline void* openLocked(Library& l) {
  if (void* handle = l.handle.load(std::memory_order_relaxed)) return handle;
  if (!l.problem.empty()) throw std::runtime_error(l.problem);
  std::string tried;
  for (const std::string& candidate : l.candidates) {
    std::string why;
    void* handle = openCandidate(candidate, why);
    if (!handle) {
      tried += "\n  " + candidate + ": " + why;
      continue;
    }
    struct link_map* map = nullptr;
    bool known = dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name && *map->l_name;
    l.path = known ? map->l_name : candidate;
    auto getVersion = (ncclResult_t(*)(int*))dlsym(handle, "ncclGetVersion");
    if (getVersion(&l.version) != ncclSuccess) l.version = 0;
    l.form = FORM_ABSENT;
    if (dlsym(handle, "ncclAlltoAllv")) l.form = l.declaredForm ? l.declaredForm : probeForm(handle, l.probeAnswer);
    l.handle.store(handle, std::memory_order_release);
    return handle;
  }
  throw std::runtime_error("NCCL could not be loaded; tried in this order:" + tried + "\n" + l.advice);
}

inline Library& opened() {
  Library& l = library();
  if (!l.handle.load(std::memory_order_acquire)) {
    std::lock_guard<std::mutex> guard(l.lock);
    openLocked(l);
  }
  return l;
}

inline void* addressForSlot(int slot, void* address, void* handle);

__attribute__((noinline, cold)) inline void* fill(int slot) {
  Library& l = opened();
  void* address = dlsym(l.handle.load(std::memory_order_relaxed), functions[slot].name);
  if (!address)
    throw std::runtime_error(std::string(functions[slot].name) + " is not provided by " + described(l) + "; it came with "
        + functions[slot].release);
  // Under the lock, so that no slot keeps what was right before somebody began or ceased to look at calls.
  std::lock_guard<std::mutex> guard(l.lock);
  address = addressForSlot(slot, address, l.handle.load(std::memory_order_relaxed));
  slots[slot].store(address, std::memory_order_release);
  return address;
}

inline void* addressOf(int slot) {
  void* address = slots[slot].load(std::memory_order_acquire);
  return __builtin_expect(address != nullptr, 1) ? address : fill(slot);
}

/** The address of ncclAlltoAllv or its twin, for a caller that passes `arguments` arguments. */
inline void* alltoAllvAddress(int slot, int arguments) {
  void* address = addressOf(slot);
  const Library& l = library();
  if (__builtin_expect(l.form == arguments, 1)) return address;
  std::string call = std::string(functions[slot].name) + " was called with " + std::to_string(arguments) + " arguments, ";
  if (l.form == FORM_UNKNOWN)
    throw std::runtime_error(call + "but which form " + described(l) + " has could not be told (its answer was '"
        + l.probeAnswer + "'): declare it by the system property nccl4j.vccl.alltoallv or the environment variable"
        + " NCCL4J_VCCL_ALLTOALLV, 10 or 11");
  throw std::runtime_error(call + "but " + described(l) + " takes " + std::to_string(l.form));
}

inline std::vector<std::string> lines(const char* text) {
  std::vector<std::string> result;
  while (*text) {
    const char* end = strchrnul(text, '\n');
    result.emplace_back(text, end);
    text = *end ? end + 1 : end;
  }
  return result;
}

/* What io.github.nccl4j.library.NativeLibrary calls. */

/** Sets what the first call will open. `candidates` are separated by newlines. */
inline void configure(const char* candidates, const char* problem, const char* advice, int declaredForm) {
  Library& l = library();
  std::lock_guard<std::mutex> guard(l.lock);
  if (l.handle.load(std::memory_order_relaxed))
    throw std::runtime_error("NCCL is already loaded from " + described(l) + " and stays so for the life of this process;"
        + " it cannot be changed to " + candidates);
  l.candidates = lines(candidates);
  l.problem = problem;
  l.advice = advice;
  l.declaredForm = declaredForm;
}

inline bool isLoaded() { return library().handle.load(std::memory_order_acquire) != nullptr; }
inline const char* path() { return opened().path.c_str(); }
inline int versionCode() { return opened().version; }
inline int alltoAllvForm() { return opened().form; }
inline bool provides(const char* function) {
  return dlsym(opened().handle.load(std::memory_order_relaxed), function) != nullptr;
}

/** What added a function, as text: "NCCL 2.28.3". Empty for a name that is not in nccl.h. Loads nothing. */
inline const char* releaseOf(const char* function) {
  for (const Function& f : functions)
    if (strcmp(f.name, function) == 0) return f.release;
  return "";
}

/** The places that are or were tried, separated by newlines. */
inline std::string candidates() {
  Library& l = library();
  std::lock_guard<std::mutex> guard(l.lock);
  if (!l.problem.empty()) throw std::runtime_error(l.problem);
  std::string all;
  for (const std::string& candidate : l.candidates) all += (all.empty() ? "" : "\n") + candidate;
  return all;
}

/** Why a candidate can't be opened, or ""; then it stays open, and nothing is chosen. */
inline std::string problemOf(const char* candidate) {
  std::string why;
  return openCandidate(candidate, why) ? "" : why;
}

/** Whether one of the candidates could be opened; the one that could stays open, and nothing is chosen. */
inline bool canOpen(const char* candidates) {
  std::string why;
  for (const std::string& candidate : lines(candidates))
    if (openCandidate(candidate, why)) return true;
  return false;
}

/**
 * Makes every running thread of this process pass a full memory barrier, or returns false where the system can't: what
 * one side of a pair of threads does rarely, so that the other side needs no fence in what it does always.
 */
inline bool processBarrier() {
#if defined(__linux__) && defined(SYS_membarrier)
  static const bool registered = syscall(SYS_membarrier, 1 << 4 /* REGISTER_PRIVATE_EXPEDITED */, 0, 0) == 0;
  return registered && syscall(SYS_membarrier, 1 << 3 /* PRIVATE_EXPEDITED */, 0, 0) == 0;
#else
  return false;
#endif
}

/* What io.github.nccl4j.library.HostEngine calls: functions that only the host engine has. */

inline void* hostFunction(const char* name) {
  Library& l = opened();
  void* address = dlsym(l.handle.load(std::memory_order_relaxed), name);
  if (!address) throw std::runtime_error(std::string(name) + " is not provided by " + described(l) + "; the host engine has it");
  return address;
}

#define NCCL4J_HOST_CALL(name, ...) \
  static const auto function = (decltype(&::name))hostFunction(#name); \
  return function(__VA_ARGS__)

inline int hostStreamCreate(long long cell) { NCCL4J_HOST_CALL(nccl4jHostStreamCreate, (cudaStream_t*)cell); }
inline int hostStreamDestroy(long long stream) { NCCL4J_HOST_CALL(nccl4jHostStreamDestroy, (cudaStream_t)stream); }
inline int hostStreamQuery(long long stream) { NCCL4J_HOST_CALL(nccl4jHostStreamQuery, (cudaStream_t)stream); }
inline int hostStreamSynchronize(long long stream) { NCCL4J_HOST_CALL(nccl4jHostStreamSynchronize, (cudaStream_t)stream); }
inline int hostStreamWaitEvent(long long stream, long long event) {
  NCCL4J_HOST_CALL(nccl4jHostStreamWaitEvent, (cudaStream_t)stream, (nccl4jHostEvent_t)event);
}
inline int hostEventCreate(long long cell) { NCCL4J_HOST_CALL(nccl4jHostEventCreate, (nccl4jHostEvent_t*)cell); }
inline int hostEventDestroy(long long event) { NCCL4J_HOST_CALL(nccl4jHostEventDestroy, (nccl4jHostEvent_t)event); }
inline int hostEventRecord(long long event, long long stream) {
  NCCL4J_HOST_CALL(nccl4jHostEventRecord, (nccl4jHostEvent_t)event, (cudaStream_t)stream);
}
inline int hostEventQuery(long long event) { NCCL4J_HOST_CALL(nccl4jHostEventQuery, (nccl4jHostEvent_t)event); }
inline int hostEventSynchronize(long long event) {
  NCCL4J_HOST_CALL(nccl4jHostEventSynchronize, (nccl4jHostEvent_t)event);
}
inline int hostEventElapsedTime(double* seconds, long long start, long long end) {
  NCCL4J_HOST_CALL(nccl4jHostEventElapsedTime, seconds, (nccl4jHostEvent_t)start, (nccl4jHostEvent_t)end);
}
inline int hostMemcpyAsync(long long target, long long source, long long bytes, long long stream) {
  NCCL4J_HOST_CALL(nccl4jHostMemcpyAsync, (void*)target, (const void*)source, (size_t)bytes, (cudaStream_t)stream);
}
inline int hostFree(long long memory) { NCCL4J_HOST_CALL(nccl4jHostFree, (void*)memory); }

#undef NCCL4J_HOST_CALL

/** How many GPUs the CUDA driver shows to this process: 0 too where there is no driver. */
inline int gpuCount() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!driver) return 0;
  auto init = (int (*)(unsigned))dlsym(driver, "cuInit");
  auto getCount = (int (*)(int*))dlsym(driver, "cuDeviceGetCount");
  int count = 0;
  return init && getCount && init(0) == 0 && getCount(&count) == 0 ? count : 0;
}

/** For libraries that are loaded later; Java's own view of the environment does not change. */
inline void setEnvironment(const char* name, const char* value) {
  if (setenv(name, value, 1) != 0) throw std::runtime_error(std::string("setenv ") + name + ": " + strerror(errno));
}

/** Lets the raw-address form of a call pass a unique id, which C takes by value, by its address. */
class UniqueIdAt {
  const ncclUniqueId* id;

 public:
  explicit UniqueIdAt(long long address) : id((const ncclUniqueId*)address) {}
  operator const ncclUniqueId&() const { return *id; }
};

#ifdef NCCL_CONFIG_INITIALIZER
/** What `new ncclConfig_t()` makes in Java: a zeroed one would be refused for its magic, and zeros are not "unset". */
struct InitializedConfig : ncclConfig_t {
  InitializedConfig() : ncclConfig_t(NCCL_CONFIG_INITIALIZER) {}
};
inline void initializeConfig(long long at) { new ((void*)at) InitializedConfig; }
#else
inline void initializeConfig(long long) { throw std::runtime_error("nccl.h of the build has no ncclConfig_t"); }
#endif
#ifdef NCCL_SIM_INFO_INITIALIZER
struct InitializedSimInfo : ncclSimInfo_t {
  InitializedSimInfo() : ncclSimInfo_t(NCCL_SIM_INFO_INITIALIZER) {}
};
inline void initializeSimInfo(long long at) { new ((void*)at) InitializedSimInfo; }
#else
inline void initializeSimInfo(long long) { throw std::runtime_error("nccl.h of the build has no ncclSimInfo_t"); }
#endif

}  // namespace nccl4j

#include "nccl4j_intercept.h"

/* Inside the expansion of a macro its own name is not expanded again, so ::name is still the prototype. */
#define NCCL4J_SYMBOL(name) ((decltype(&::name))nccl4j::addressOf(nccl4j::SLOT_##name))
#include "nccl_redirect.inc"

/* One C symbol, two forms: overloads, each guarded by the form that the loaded library has. */
namespace __attribute__((visibility("hidden"))) nccl4j {

template <int slot, class... A>
inline ncclResult_t callAlltoAllv(A... arguments) {
  auto real = (ncclResult_t(*)(A...))alltoAllvAddress(slot, sizeof...(A));
  const Interceptor* to = slot == SLOT_ncclAlltoAllv ? interceptor.load(std::memory_order_acquire) : nullptr;
  return __builtin_expect(to != nullptr, 0) ? callAndTell<slot>(to, real, arguments...) : real(arguments...);
}

template <int slot>
inline ncclResult_t alltoAllv(const void* sendbuff, const size_t* sendcounts, const size_t* sdispls, void* recvbuff,
    const size_t* recvcounts, const size_t* rdispls, void* relaybuff, size_t relaycount, ncclDataType_t datatype,
    ncclComm_t comm, cudaStream_t stream) {
  return callAlltoAllv<slot>(sendbuff, sendcounts, sdispls, recvbuff, recvcounts, rdispls, relaybuff, relaycount,
      datatype, comm, stream);
}

template <int slot>
inline ncclResult_t alltoAllv(const void* sendbuff, const size_t* sendcounts, const size_t* sdispls, void* recvbuff,
    const size_t* recvcounts, const size_t* rdispls, const void* relaybuff, ncclDataType_t datatype, ncclComm_t comm,
    cudaStream_t stream) {
  return callAlltoAllv<slot>(sendbuff, sendcounts, sdispls, recvbuff, recvcounts, rdispls, relaybuff, datatype, comm,
      stream);
}

}  // namespace nccl4j

#define ncclAlltoAllv nccl4j::alltoAllv<nccl4j::SLOT_ncclAlltoAllv>
#define pncclAlltoAllv nccl4j::alltoAllv<nccl4j::SLOT_pncclAlltoAllv>

#ifdef NCCL_CONFIG_INITIALIZER
#define ncclConfig_t nccl4j::InitializedConfig
#endif
#ifdef NCCL_SIM_INFO_INITIALIZER
#define ncclSimInfo_t nccl4j::InitializedSimInfo
#endif

#endif

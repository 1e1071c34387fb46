/*
 * Binds the JNI library to whichever libnccl the program chose, when it is first called: nothing here is linked against
 * NCCL. Every function of the headers has one slot, filled by dlsym at the first call of that function. The redirections at
 * the end of this file send each call in the generated code through its slot: the type comes from the prototype, the
 * address from the slot, and the list of functions from the header (nccl_functions.inc, made by the build).
 *
 * Whatever goes wrong here is a C++ exception, which the generated code turns into a NcclLibraryException.
 */
#ifndef NCCL4J_LIBRARY_H_
#define NCCL4J_LIBRARY_H_

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
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

#include "nccl_headers.inc"
#include <nccl4j_alltoallv.h>
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

/** Which functions were called, whatever their slots hold now. */
inline std::atomic<bool> called[SLOT_COUNT];

struct Library {
  std::mutex lock;
  std::vector<std::string> candidates;  // in the order in which they are tried
  std::string problem;                  // why there are no candidates, where the program's choice was impossible
  std::string advice;                   // what the message of a failure ends with
  int declaredForm = 0;
  // Written once, under the lock, before `handle` is; read without the lock after it.
  std::string path;
  int version = 0;
  bool isRccl = false;
  bool isVccl = false;
  std::atomic<void*> handle{nullptr};
  // Written once, under the lock, when ncclAlltoAllv is used or asked for first; `formReason` before `form`.
  std::string formReason;
  std::atomic<int> form{FORM_UNDECIDED};
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

/** In a candidate that Java has skipped: between the place and the reason. */
inline const char SKIPPED = '\x1f';

/** Opens one candidate; returns NULL and says why in `why`. */
inline void* openCandidate(const std::string& candidate, std::string& why) {
  size_t skipped = candidate.find(SKIPPED);
  if (skipped != std::string::npos) {
    why = candidate.substr(skipped + 1);
    return nullptr;
  }
  if (candidate.find('/') != std::string::npos && !(why = fileProblem(candidate)).empty()) return nullptr;
  // Where another NCCL is in the global scope (LD_PRELOAD, RTLD_GLOBAL), a library's calls of its own functions would
  // reach that one, unless it looks in itself first. Only there: other libraries are meant to be interposed.
  int deep = dlsym(RTLD_DEFAULT, "ncclGetVersion") ? RTLD_DEEPBIND : 0;
  void* handle = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL | deep);
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

/** The host engine's own form is known; a library that only depends on the host engine may have another. */
inline bool hasHostAlltoAllv(void* handle) { return areInOneFile(handle, "ncclAlltoAllv", "nccl4jHostEngineVersion"); }

/** The library's handle; opens it at the first call. The caller holds the lock. */
inline void* openLocked(Library& l) {
  if (void* handle = l.handle.load(std::memory_order_relaxed)) return handle;
  if (!l.problem.empty()) throw std::runtime_error(l.problem);
  std::string tried;
  for (const std::string& candidate : l.candidates) {
    std::string why;
    void* handle = openCandidate(candidate, why);
    if (!handle) {
      tried += "\n  " + candidate.substr(0, candidate.find(SKIPPED)) + ": " + why;
      continue;
    }
    struct link_map* map = nullptr;
    bool known = dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name && *map->l_name;
    l.path = known ? map->l_name : candidate;
    auto getVersion = (ncclResult_t(*)(int*))dlsym(handle, "ncclGetVersion");
    if (getVersion(&l.version) != ncclSuccess) l.version = 0;
    l.isRccl = isRcclLibrary(handle, l.path.c_str());
    void* function = dlsym(handle, "ncclAlltoAllv");
    // VCCL's own version codes, 2.26.62 and 2.26.69, are none that NVIDIA has used; its other versions keep NVIDIA's.
    l.isVccl = !l.isRccl && (l.version == 22662 || l.version == 22669
        || (function && !hasHostAlltoAllv(handle) && (l.declaredForm >= FORM_10 || hasVcclText(function))));
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

/**
 * Throws where a function of this name takes other structures than those of the headers: they began in 2.28 without a size
 * and a version, by which later releases recognize what they get.
 */
inline void requireStructures(const Function& function, const Library& l) {
  constexpr int kFirstWithVersion = 22902;
  if (strcmp(function.name, "ncclDevCommCreate") != 0 || l.version >= kFirstWithVersion) return;
  throw std::runtime_error(std::string(function.name) + " of " + described(l)
      + " takes other structures than that of NCCL 2.29.2 and newer, which these are made for");
}

__attribute__((noinline, cold)) inline void* fill(int slot) {
  Library& l = opened();
  void* address = dlsym(l.handle.load(std::memory_order_relaxed), functions[slot].name);
  if (!address)
    throw std::runtime_error(std::string(functions[slot].name) + " is not provided by " + described(l) + "; it came with "
        + functions[slot].release);
  requireStructures(functions[slot], l);
  called[slot].store(true, std::memory_order_release);
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

/** Which form of ncclAlltoAllv the open library has. Only VCCL is called for it, and only if no form is declared. */
inline FormFound findForm(const Library& l) {
  void* handle = l.handle.load(std::memory_order_relaxed);
  void* function = dlsym(handle, "ncclAlltoAllv");
  if (!function) return {FORM_ABSENT, ""};
  if (hasHostAlltoAllv(handle)) return {FORM_11, ""};
  if (l.isRccl) return {FORM_9, ""};
  if (l.declaredForm) return {l.declaredForm, ""};
  if (!l.isVccl) return {FORM_UNKNOWN, "it has no sign of being RCCL or VCCL"};
  return formByCall(function, dlsym(handle, "ncclGetLastError"));
}

inline int alltoAllvForm() {
  Library& l = opened();
  int form = l.form.load(std::memory_order_acquire);
  if (form != FORM_UNDECIDED) return form;
  std::lock_guard<std::mutex> guard(l.lock);
  form = l.form.load(std::memory_order_relaxed);
  if (form != FORM_UNDECIDED) return form;
  FormFound found = findForm(l);
  l.formReason = found.reason;
  l.form.store(found.form, std::memory_order_release);
  return found.form;
}

/** The address of ncclAlltoAllv or its twin, for a caller that passes `arguments` arguments. */
inline void* alltoAllvAddress(int slot, int arguments) {
  void* address = addressOf(slot);
  const Library& l = library();
  if (__builtin_expect(l.form.load(std::memory_order_acquire) == arguments, 1)) return address;
  int form = alltoAllvForm();
  if (form == arguments) return address;
  std::string call = std::string(functions[slot].name) + " was called with " + std::to_string(arguments) + " arguments, ";
  if (form == FORM_UNKNOWN)
    throw std::runtime_error(call + "but how many " + described(l) + " takes is not known (" + l.formReason
        + "): declare it by the system property nccl4j.vccl.alltoallv or the environment variable"
        + " NCCL4J_VCCL_ALLTOALLV, 9, 10 or 11");
  throw std::runtime_error(call + "but " + described(l) + (l.isRccl ? " is RCCL, whose form takes " : " takes ")
      + std::to_string(form));
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
/** Copies the path of the library, without a zero at the end, and returns its length. */
inline int copyPath(char* to, int room) {
  const std::string& path = opened().path;
  return (int)path.copy(to, (size_t)room);
}
inline int versionCode() { return opened().version; }
inline bool isRccl() { return opened().isRccl; }
inline bool isVccl() { return opened().isVccl; }
inline bool provides(const char* function) {
  return dlsym(opened().handle.load(std::memory_order_relaxed), function) != nullptr;
}

/** The paths of other copies of NCCL or RCCL in this process, separated by newlines. */
inline std::string otherCopies() {
  struct Search {
    ElfW(Addr) ours = 0;
    std::string found;
    static int look(struct dl_phdr_info* info, size_t, void* data) {
      auto search = (Search*)data;
      const char* slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : nullptr;
      const char* name = slash ? slash + 1 : "";
      bool copy = strncmp(name, "libnccl.so", 10) == 0 || strncmp(name, "librccl.so", 10) == 0;
      if (copy && info->dlpi_addr != search->ours) search->add(info->dlpi_name);
      return 0;
    }
    void add(const char* path) {
      if (("\n" + found + "\n").find(std::string("\n") + path + "\n") == std::string::npos)
        found += (found.empty() ? "" : "\n") + std::string(path);
    }
  } search;
  struct link_map* map = nullptr;
  if (dlinfo(opened().handle.load(std::memory_order_relaxed), RTLD_DI_LINKMAP, &map) == 0 && map) search.ours = map->l_addr;
  dl_iterate_phdr(Search::look, &search);
  // A program or library into which NCCL is linked, and that shows its functions to all.
  Dl_info owner;
  void* global = dlsym(RTLD_DEFAULT, "ncclGetVersion");
  if (global && dladdr(global, &owner) && (ElfW(Addr))owner.dli_fbase != search.ours) search.add(owner.dli_fname);
  return search.found;
}

/** What added a function, as text: "NCCL 2.28.3". Empty for a name that is in none of the headers. Loads nothing. */
inline const char* releaseOf(const char* function) {
  for (const Function& f : functions)
    if (strcmp(f.name, function) == 0) return f.release;
  return "";
}

/** True if the generated code has called a function. False for a name that is not in nccl.h. Loads nothing. */
inline bool wasCalled(const char* function) {
  for (int slot = 0; slot < SLOT_COUNT; slot++)
    if (strcmp(functions[slot].name, function) == 0) return called[slot].load(std::memory_order_acquire);
  return false;
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

/** The same for a structure that C takes by value. */
template <class T>
class ValueAt {
  const T* value;

 public:
  explicit ValueAt(long long address) : value((const T*)address) {}
  operator const T&() const { return *value; }
};

/** What `new ncclConfig_t()` makes in Java: a zeroed one would be refused for its magic, and zeros are not "unset". */
#define NCCL4J_STRUCT(type, initializer) \
  struct Initialized_##type : type { \
    Initialized_##type() : type(initializer) {} \
    Initialized_##type(const type& value) : type(value) {} \
  };
#include "nccl_structs.inc"
#undef NCCL4J_STRUCT

/** Applies the initializer of a struct type to memory that there is already. */
inline void initialize(const char* name, long long at) {
#define NCCL4J_STRUCT(type, initializer) \
  if (strcmp(name, #type) == 0) { \
    new ((void*)at) Initialized_##type; \
    return; \
  }
#include "nccl_structs.inc"
#undef NCCL4J_STRUCT
  throw std::runtime_error(std::string("the nccl.h of the build has no initializer of ") + name);
}

}  // namespace nccl4j

#include "nccl4j_intercept.h"

/* Inside the expansion of a macro its own name is not expanded again, so ::name is still the prototype. */
#define NCCL4J_SYMBOL(name) ((decltype(&::name))nccl4j::addressOf(nccl4j::SLOT_##name))
#include "nccl_redirect.inc"

/* The forms are overloads, each guarded by the form that the loaded library has. */
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

/** RCCL's form. */
template <int slot>
inline ncclResult_t alltoAllv(const void* sendbuff, const size_t* sendcounts, const size_t* sdispls, void* recvbuff,
    const size_t* recvcounts, const size_t* rdispls, ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream) {
  return callAlltoAllv<slot>(sendbuff, sendcounts, sdispls, recvbuff, recvcounts, rdispls, datatype, comm, stream);
}

}  // namespace nccl4j

#define ncclAlltoAllv nccl4j::alltoAllv<nccl4j::SLOT_ncclAlltoAllv>
#define pncclAlltoAllv nccl4j::alltoAllv<nccl4j::SLOT_pncclAlltoAllv>

#endif

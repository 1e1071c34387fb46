/*
 * One C symbol, ncclAlltoAllv, has three forms: RCCL's takes 9 arguments, VCCL's 10 or 11. The form of a library is
 * inferred from its names, symbols and constants, without a call. VCCL's two forms are the exception: a call that both
 * refuse distinguishes them, when the program first uses the function.
 */
#ifndef NCCL4J_ALLTOALLV_H_
#define NCCL4J_ALLTOALLV_H_

#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <nccl.h>

namespace __attribute__((visibility("hidden"))) nccl4j {

/** The forms of ncclAlltoAllv, by number of arguments. FORM_UNDECIDED: not determined yet. */
enum Form { FORM_ABSENT = 0, FORM_UNKNOWN = -1, FORM_UNDECIDED = -2, FORM_9 = 9, FORM_10 = 10, FORM_11 = 11 };

/** A form, and the reason if it is FORM_UNKNOWN. */
struct FormFound {
  int form;
  std::string reason;
};

inline bool hasRcclName(const char* path) {
  const char* slash = strrchr(path, '/');
  return strncmp(slash ? slash + 1 : path, "librccl", 7) == 0;
}

/** True if a library is RCCL: by its file name, before and after links, or by the symbols of RCCL and of HIP. */
inline bool isRcclLibrary(void* handle, const char* path) {
  std::unique_ptr<char, void (*)(void*)> target(realpath(path, nullptr), free);
  return dlsym(handle, "ncclAllReduceWithBias") || dlsym(handle, "hipGetDeviceCount") || hasRcclName(path)
      || (target && hasRcclName(target.get()));
}

/** True if both symbols are in the same file; only files of the handle are searched. */
inline bool areInOneFile(void* handle, const char* first, const char* second) {
  Dl_info one, other;
  void* a = dlsym(handle, first);
  void* b = dlsym(handle, second);
  return a && b && dladdr(a, &one) && dladdr(b, &other) && one.dli_fbase == other.dli_fbase;
}

/** The memory without write access, code and constants, of the library that contains an address. */
inline std::vector<std::pair<const char*, size_t>> constantsAround(const void* address) {
  struct Search {
    ElfW(Addr) address;
    std::vector<std::pair<const char*, size_t>> found;
  } search{(ElfW(Addr))address, {}};
  dl_iterate_phdr(
      [](dl_phdr_info* library, size_t, void* data) {
        auto& s = *(Search*)data;
        bool holds = false;
        std::vector<std::pair<const char*, size_t>> constants;
        for (int i = 0; i < library->dlpi_phnum; i++) {
          const ElfW(Phdr)& segment = library->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD) continue;
          ElfW(Addr) start = library->dlpi_addr + segment.p_vaddr;
          holds = holds || s.address - start < segment.p_memsz;
          if ((segment.p_flags & (PF_R | PF_W)) == PF_R) constants.emplace_back((const char*)start, segment.p_filesz);
        }
        if (holds) s.found = constants;
        return holds ? 1 : 0;
      },
      &search);
  return search.found;
}

/**
 * True if the library that contains the function is VCCL. The text is one of VCCL's own warnings, in all of its
 * versions that have ncclAlltoAllv and can run it; the releases of NCCL and RCCL do not contain it.
 */
inline bool hasVcclText(const void* function) {
  static const char text[] = "RMA coll: sendcounts/sdispls/recvcounts/rdispls must be provided.";
  for (const auto& constants : constantsAround(function))
    if (memmem(constants.first, constants.second, text, sizeof text - 1)) return true;
  return false;
}

/**
 * Distinguishes VCCL's two forms, without a GPU. Every argument that is a pointer in some form points to zeroed memory,
 * so that a read or a count there does no harm. VCCL looks for the magic of a communicator, finds none, and refuses.
 * The kernel reports the touched memory: that of the communicator argument, and no other. Every argument is a full
 * word: an int would leave the upper half of its position undefined.
 */
inline FormFound formByCall(void* function, void* lastError) {
  if (!lastError) return {FORM_UNKNOWN, "it has no ncclGetLastError"};
  // Block 0 is for the arguments 1 to 7, blocks 1 to 4 for the arguments 8 to 11. Each block is larger than any
  // communicator; untouched pages cost nothing.
  const int blocks = 5, sharedArguments = 7;
  const size_t block = 16 << 20, size = blocks * block, page = (size_t)sysconf(_SC_PAGESIZE);
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return {FORM_UNKNOWN, "there was no memory for the probing call"};
  auto unmap = [=](void* start) { munmap(start, size); };
  std::unique_ptr<void, decltype(unmap)> unmapAtEnd(memory, unmap);
  madvise(memory, size, MADV_NOHUGEPAGE);  // A huge page could span two blocks.
  std::vector<unsigned char> resident(size / page);
  auto touched = [&] {
    int mask = mincore(memory, size, resident.data()) == 0 ? 0 : ~0;
    for (size_t i = 0; i < resident.size(); i++)
      if (resident[i] & 1) mask |= 1 << (i * page / block);
    return mask;
  };
  if (touched() != 0) return {FORM_UNKNOWN, "the system does not report which memory a call touches"};

  typedef uintptr_t W;
  W at[blocks];
  for (int i = 0; i < blocks; i++) at[i] = (W)memory + i * block;
  int result = 0;
  std::string answer;
  bool refused = false;
  try {
    // NCCL stores per thread that a group is open and that it failed: a separate thread leaves the program's state
    // alone.
    std::thread([&] {
      // The whole process has one text of the last error: another thread may replace it in between.
      for (int attempt = 0; attempt < 3 && !refused; attempt++) {
        result = ((int (*)(W, W, W, W, W, W, W, W, W, W, W))function)(
            at[0], at[0], at[0], at[0], at[0], at[0], at[0], at[1], at[2], at[3], at[4]);
        const char* text = ((const char* (*)(ncclComm_t))lastError)(nullptr);
        answer = text ? text : "";
        refused = result == ncclInvalidArgument && answer.find("corrupted comm object") != std::string::npos;
      }
    }).join();
  } catch (const std::system_error& e) {
    return {FORM_UNKNOWN, std::string("there was no thread for the probing call: ") + e.what()};
  }
  if (!refused) return {FORM_UNKNOWN, "it answered " + std::to_string(result) + ", '" + answer + "'"};
  for (int form : {FORM_10, FORM_11})
    if (touched() == 1 << (form - 1 - sharedArguments)) return {form, ""};
  return {FORM_UNKNOWN, "its communicator is neither argument 9 nor argument 10"};
}

}  // namespace nccl4j

#endif

/*
 * dlopen for libraries of others. dlopen trusts the sizes in a file: a truncated download kills the process with SIGBUS
 * when the missing pages are touched. It waits for a writer if the file is a pipe, reports a library for another machine as
 * missing, and takes an empty element of LD_LIBRARY_PATH for the working directory. So the file is checked first.
 */
#ifndef NCCL4J_LIBRARY_FILE_H_
#define NCCL4J_LIBRARY_FILE_H_

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "old_systems.h"

namespace __attribute__((visibility("hidden"))) nccl4j {

/** Separates path and reason in a candidate that Java has skipped. */
inline const char SKIPPED = '\x1f';

inline std::vector<std::string> lines(const char* text) {
  std::vector<std::string> result;
  while (*text) {
    const char* end = strchrnul(text, '\n');
    result.emplace_back(text, end);
    text = *end ? end + 1 : end;
  }
  return result;
}

/** A file for reading that is closed at the end of the scope. */
class OpenFile {
 public:
  // Opening a pipe without O_NONBLOCK waits for a writer.
  explicit OpenFile(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  int fd() const { return fd_; }
  template <class T>
  bool read(T* to, unsigned long long at) const {
    return pread(fd_, to, sizeof *to, static_cast<off_t>(at)) == static_cast<ssize_t>(sizeof *to);
  }

 private:
  int fd_;
};

#if defined(__aarch64__)
constexpr unsigned kMachine = EM_AARCH64;
#else
constexpr unsigned kMachine = EM_X86_64;
#endif

inline std::string machineName(unsigned machine, bool is64Bit) {
  switch (machine) {
    case EM_X86_64: return is64Bit ? "x86-64" : "x32";
    case EM_AARCH64: return "aarch64";
    case EM_386: return "32-bit x86";
    case EM_ARM: return "32-bit ARM";
    case EM_PPC64: return "ppc64";
    case EM_RISCV: return is64Bit ? "riscv64" : "riscv32";
    default: return "machine " + std::to_string(machine) + " (" + (is64Bit ? "64" : "32") + "-bit)";
  }
}

struct FileCheck {
  std::string problem;        // empty if dlopen can map the file
  bool otherMachine = false;  // the linker continues its search after such a file
};

/** Returns the defect of a file that dlopen would map. */
inline FileCheck checkFile(const std::string& path) {
  OpenFile file(path);
  if (file.fd() < 0) return {strerror(errno)};
  struct stat st;
  if (fileStatus(file.fd(), &st) != 0) return {strerror(errno)};
  if (!S_ISREG(st.st_mode)) return {"not a regular file"};
  // The first fields are the same for 32 and 64 bits.
  struct {
    unsigned char ident[EI_NIDENT];
    uint16_t type, machine;
  } start;
  if (!file.read(&start, 0) || memcmp(start.ident, ELFMAG, SELFMAG) != 0)
    return {"not a shared library (no ELF header)"};
  bool is64Bit = start.ident[EI_CLASS] == ELFCLASS64;
  if (start.ident[EI_DATA] != ELFDATA2LSB)
    return {"built for a big-endian machine, this machine is little-endian", true};
  if (start.machine != kMachine || is64Bit != (sizeof(void*) == 8))
    return {"built for " + machineName(start.machine, is64Bit) + ", this machine is " + machineName(kMachine, true), true};
  ElfW(Ehdr) header;
  if (!file.read(&header, 0) || header.e_phentsize != sizeof(ElfW(Phdr))) return {"truncated: its header is incomplete"};
  if (header.e_type != ET_DYN) return {"not a shared library (ELF type " + std::to_string(header.e_type) + ")"};
  auto size = static_cast<unsigned long long>(st.st_size);
  for (unsigned i = 0; i < header.e_phnum; i++) {
    ElfW(Phdr) segment;
    if (!file.read(&segment, header.e_phoff + i * sizeof segment))
      return {"truncated: its program headers lie beyond its end"};
    if (segment.p_type == PT_LOAD && segment.p_offset + segment.p_filesz > size)
      return {"truncated: it has " + std::to_string(size) + " bytes and needs "
          + std::to_string(static_cast<unsigned long long>(segment.p_offset + segment.p_filesz))};
  }
  return {};
}

/** Returns the files that the linker's cache has for a name. */
inline std::vector<std::string> cachedFiles(const std::string& name) {
  // The format "1.1" of glibc 2.2 and newer. Between 2.2 and 2.31, an older format can come before it in the file.
  constexpr char kMagic[] = "glibc-ld.so.cache1.1";
  struct Head {
    char magic[sizeof kMagic - 1];
    uint32_t entries, strings, unused[5];
  } head;
  struct Entry {
    int32_t flags;
    uint32_t key, value, osVersion;
    uint64_t capabilities;
  } entry;
  std::vector<std::string> files;
  OpenFile file("/etc/ld.so.cache");
  struct stat st;
  constexpr off_t kLargest = 64 << 20;
  if (file.fd() < 0 || fileStatus(file.fd(), &st) != 0 || st.st_size > kLargest) return files;
  std::string bytes(static_cast<size_t>(st.st_size), 0);
  if (pread(file.fd(), &bytes[0], bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return files;
  size_t start = bytes.find(kMagic);
  if (start == std::string::npos || bytes.size() - start < sizeof head) return files;
  memcpy(&head, &bytes[start], sizeof head);
  for (uint32_t i = 0; i < head.entries; i++) {
    size_t at = start + sizeof head + i * sizeof entry;
    if (at + sizeof entry > bytes.size()) break;
    memcpy(&entry, &bytes[at], sizeof entry);
    // Offsets count from the start of this format. The texts end with a zero.
    if (start + entry.key >= bytes.size() || start + entry.value >= bytes.size()) break;
    if (name == &bytes[start + entry.key]) files.emplace_back(&bytes[start + entry.value]);
  }
  return files;
}

/** True if LD_LIBRARY_PATH names the working directory by "." and not by an empty element. */
inline bool isWorkingDirectoryNamed() {
  const char* variable = getenv("LD_LIBRARY_PATH");
  std::string elements = std::string(":") + (variable ? variable : "") + ":";
  for (char& c : elements)
    if (c == ';') c = ':';
  return elements.find(":.:") != std::string::npos || elements.find(":./:") != std::string::npos;
}

/** The linker's search for a name. */
class LibraryLookup {
 public:
  /** Searches as the linker does: the folders of this library and of LD_LIBRARY_PATH, the cache, the usual folders. */
  explicit LibraryLookup(const std::string& name) : name_(name) {
    std::vector<std::string> usual;
    Dl_info own;
    bool isFound = dladdr(reinterpret_cast<void*>(&cachedFiles), &own) != 0;
    void* self = isFound ? dlopen(own.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
    Dl_serinfo size;
    if (self && dlinfo(self, RTLD_DI_SERINFOSIZE, &size) == 0) {
      std::vector<uint64_t> memory(size.dls_size / sizeof(uint64_t) + 1);
      auto folders = new (memory.data()) Dl_serinfo(size);
      bool known = dlinfo(self, RTLD_DI_SERINFO, folders) == 0;
      for (unsigned i = 0; known && !isDone() && i < size.dls_cnt; i++) {
        const Dl_serpath& folder = folders->dls_serpath[i];
        std::string file = std::string(folder.dls_name) + "/" + name;
        bool isUnnamed = strcmp(folder.dls_name, ".") == 0 && !isWorkingDirectoryNamed();
        if (folder.dls_flags & LA_SER_DEFAULT) usual.push_back(file);
        else if (!isUnnamed) look(file);
        else if (exists(file)) skipsWorkingDirectory_ = true;
      }
    }
    if (self) dlclose(self);
    for (const std::string& file : cachedFiles(name)) look(file);
    for (const std::string& file : usual) look(file);
  }

  /** The argument for dlopen; empty if there is a problem. */
  std::string place() const {
    if (!problem_.empty()) return "";
    return skipsWorkingDirectory_ ? file_ : name_;
  }

  std::string problem() const {
    if (!problem_.empty() || !file_.empty()) return problem_;
    if (!other_.empty()) return other_;
    return !skipsWorkingDirectory_ ? "" : "only in the working directory, which an empty element of LD_LIBRARY_PATH stands"
                                          " for; write \".\"";
  }

 private:
  static bool exists(const std::string& file) { return access(file.c_str(), F_OK) == 0; }
  bool isDone() const { return !file_.empty() || !problem_.empty(); }

  void look(const std::string& file) {
    if (isDone() || !exists(file)) return;
    FileCheck check = checkFile(file);
    std::string text = file + ": " + check.problem;
    if (check.problem.empty()) file_ = file;
    else if (!check.otherMachine) problem_ = text;
    else if (other_.empty()) other_ = text;
  }

  const std::string name_;
  std::string file_, problem_, other_;
  bool skipsWorkingDirectory_ = false;
};

/** True if this process has loaded a library with this name. RTLD_NOLOAD would open the files in the folders, too. */
inline bool isLoadedAs(const std::string& name) {
  struct Search {
    const std::string& name;
    static int look(struct dl_phdr_info* info, size_t, void* data) {
      for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr)& segment = info->dlpi_phdr[i];
        if (segment.p_type != PT_DYNAMIC) continue;
        ElfW(Addr) texts = 0;
        ElfW(Xword) ownName = 0;
        auto entry = reinterpret_cast<const ElfW(Dyn)*>(info->dlpi_addr + segment.p_vaddr);
        for (; entry->d_tag != DT_NULL; entry++) {
          if (entry->d_tag == DT_STRTAB) texts = entry->d_un.d_ptr;
          if (entry->d_tag == DT_SONAME) ownName = entry->d_un.d_val;
        }
        // The kernel's own library keeps its address relative.
        if (texts < info->dlpi_addr) texts += info->dlpi_addr;
        if (ownName && static_cast<Search*>(data)->name == reinterpret_cast<const char*>(texts + ownName)) return 1;
      }
      return 0;
    }
  } search{name};
  return dl_iterate_phdr(Search::look, &search) != 0;
}

/** Returns the argument for dlopen for a path or name; empty, with the reason, if dlopen must not be called. */
inline std::string placeToOpen(const std::string& library, std::string& why) {
  if (library.find('/') != std::string::npos) {
    why = checkFile(library).problem;
    return why.empty() ? library : "";
  }
  // The linker takes the library that is loaded already, whatever lies in the folders.
  if (isLoadedAs(library)) return library;
  LibraryLookup lookup(library);
  why = lookup.problem();
  return why.empty() ? lookup.place() : "";
}

/** As dlopen, for a path or name. On failure returns NULL and stores the reason, without the name of the library. */
inline void* openLibrary(const std::string& library, int flags, std::string& why) {
  std::string place = placeToOpen(library, why);
  if (place.empty()) return nullptr;
  void* handle = dlopen(place.c_str(), flags);
  if (!handle) {
    const char* error = dlerror();
    why = error ? error : "dlopen failed";
    if (why.rfind(place + ": ", 0) == 0) why.erase(0, place.size() + 2);
  }
  return handle;
}

/** Opens a plugin by the value of a variable such as NCCL_PROFILER_PLUGIN: a path, a name, or what follows the prefix in a name. */
inline void* openPlugin(const std::string& plugin, std::string& why, const char* prefix = "libnccl-profiler-") {
  constexpr int kFlags = RTLD_NOW | RTLD_LOCAL;
  if (plugin == "STATIC_PLUGIN") return dlopen(nullptr, kFlags);
  void* handle = openLibrary(plugin, kFlags, why);
  if (handle || plugin.find('/') != std::string::npos) return handle;
  return openLibrary(prefix + plugin + ".so", kFlags, why);
}

}  // namespace nccl4j

#endif

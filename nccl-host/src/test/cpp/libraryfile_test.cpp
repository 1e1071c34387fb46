// libraryfile_test.cpp: the check of a library before it is loaded, and the working directory in the linker's search.

#include "library_file.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace host {
namespace {

constexpr unsigned kOtherMachine = nccl4j::kMachine == EM_X86_64 ? EM_AARCH64 : EM_X86_64;

/** A file that is deleted at the end of the scope. */
class LibraryOfBytes {
 public:
  explicit LibraryOfBytes(const std::string& bytes) {
    int file = mkstemp(path_);
    EXPECT_EQ(static_cast<ssize_t>(bytes.size()), write(file, bytes.data(), bytes.size()));
    close(file);
  }
  ~LibraryOfBytes() { unlink(path_); }
  LibraryOfBytes(const LibraryOfBytes&) = delete;
  const char* path() const { return path_; }

 private:
  char path_[32] = "/tmp/libraryfile.XXXXXX";
};

/** A shared library of this machine with one segment, of all its bytes. */
struct Library {
  ElfW(Ehdr) header{};
  ElfW(Phdr) segment{};

  Library() {
    memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_type = ET_DYN;
    header.e_machine = nccl4j::kMachine;
    header.e_phentsize = sizeof segment;
    header.e_phnum = 1;
    header.e_phoff = sizeof header;
    segment.p_type = PT_LOAD;
    segment.p_filesz = sizeof *this;
  }

  std::string bytes(size_t size = sizeof(Library)) const { return {reinterpret_cast<const char*>(this), size}; }
};

nccl4j::FileCheck checked(const std::string& bytes) { return nccl4j::checkFile(LibraryOfBytes(bytes).path()); }

/** The search of the linker ends at a file with such a problem. */
void expectProblem(const std::string& problem, const nccl4j::FileCheck& check) {
  EXPECT_EQ(problem, check.problem);
  EXPECT_FALSE(check.otherMachine) << problem;
}

void expectOtherMachine(const std::string& machine, const nccl4j::FileCheck& check) {
  std::string problem = "built for " + machine + ", this machine is ";
  EXPECT_EQ(problem, check.problem.substr(0, problem.size()));
  EXPECT_TRUE(check.otherMachine) << machine;
}

TEST(LibraryFileTest, AWholeLibraryHasNoProblem) {
  expectProblem("", checked(Library().bytes()));
  Library noSegment;
  noSegment.header.e_phnum = 0;
  expectProblem("", checked(noSegment.bytes()));
  Library notLoaded;
  notLoaded.segment.p_type = PT_NOTE;
  notLoaded.segment.p_filesz = 1 << 20;
  expectProblem("", checked(notLoaded.bytes()));
}

TEST(LibraryFileTest, WhatIsNoLibraryIsRefused) {
  expectProblem("No such file or directory", nccl4j::checkFile("/tmp/libraryfile/none"));
  expectProblem("not a regular file", nccl4j::checkFile("/tmp"));
  expectProblem("not a shared library (no ELF header)", checked(""));
  expectProblem("not a shared library (no ELF header)", checked("GROUP ( libnccl.so.2 ) # a script of the linker"));
  Library program;
  program.header.e_type = ET_EXEC;
  expectProblem("not a shared library (ELF type 2)", checked(program.bytes()));
}

TEST(LibraryFileTest, ATruncatedLibraryIsRefused) {
  Library library;
  expectProblem("truncated: its header is incomplete", checked(library.bytes(sizeof library.header - 1)));
  expectProblem("truncated: its program headers lie beyond its end", checked(library.bytes(sizeof library - 1)));
  library.segment.p_offset = 1;
  size_t size = sizeof library;
  expectProblem(
      "truncated: it has " + std::to_string(size) + " bytes and needs " + std::to_string(size + 1),
      checked(library.bytes()));
  Library odd;
  odd.header.e_phentsize--;
  expectProblem("truncated: its header is incomplete", checked(odd.bytes()));
}

TEST(LibraryFileTest, ALibraryOfAnotherMachineIsPassedOver) {
  Library other;
  other.header.e_machine = kOtherMachine;
  expectOtherMachine(kOtherMachine == EM_AARCH64 ? "aarch64" : "x86-64", checked(other.bytes()));
  Library narrow;
  narrow.header.e_ident[EI_CLASS] = ELFCLASS32;
  narrow.header.e_machine = EM_386;
  expectOtherMachine("32-bit x86", checked(narrow.bytes()));
  narrow.header.e_machine = EM_X86_64;
  expectOtherMachine("x32", checked(narrow.bytes()));
  narrow.header.e_machine = EM_S390;
  expectOtherMachine("machine 22 (32-bit)", checked(narrow.bytes()));
  Library big;
  big.header.e_ident[EI_DATA] = ELFDATA2MSB;
  nccl4j::FileCheck check = checked(big.bytes());
  EXPECT_EQ("built for a big-endian machine, this machine is little-endian", check.problem);
  EXPECT_TRUE(check.otherMachine);
}

bool isNamed(const char* path) {
  setenv("LD_LIBRARY_PATH", path, 1);
  bool isNamed = nccl4j::isWorkingDirectoryNamed();
  unsetenv("LD_LIBRARY_PATH");
  return isNamed;
}

TEST(LibraryFileTest, TheWorkingDirectoryIsNamedByADot) {
  for (const char* path : {".", "./", "/a:.", ".:/b", "/a:./:/b", "/a;.;/b", "/a;./"}) EXPECT_TRUE(isNamed(path)) << path;
  for (const char* path : {"", ":", "/a", "/a:", ":/b", "/a/.", "./b", "..", "a.:.b"}) EXPECT_FALSE(isNamed(path)) << path;
  unsetenv("LD_LIBRARY_PATH");
  EXPECT_FALSE(nccl4j::isWorkingDirectoryNamed());
}

}  // namespace
}  // namespace host

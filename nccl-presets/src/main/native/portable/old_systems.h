/*
 * Avoids symbols that glibc 2.28 and the libstdc++ of GCC 8 (RHEL 8) lack, although newer systems compile this code.
 * docs/compatibility.md has the versions that the libraries need; NativeCodeTest reads them from the libraries.
 */
#ifndef NCCL4J_OLD_SYSTEMS_H_
#define NCCL4J_OLD_SYSTEMS_H_

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <new>

/* glibc 2.34 gave these functions another version when they moved to libc.so.6. The first versions still exist. */
#if defined(__x86_64__)
#define NCCL4J_FIRST_VERSION "GLIBC_2.2.5"
#define NCCL4J_SECOND_VERSION "GLIBC_2.3.3"
#elif defined(__aarch64__)
#define NCCL4J_FIRST_VERSION "GLIBC_2.17"
#define NCCL4J_SECOND_VERSION NCCL4J_FIRST_VERSION
#endif
#ifdef NCCL4J_FIRST_VERSION
__asm__(".symver dladdr,dladdr@" NCCL4J_FIRST_VERSION);
__asm__(".symver dlclose,dlclose@" NCCL4J_FIRST_VERSION);
__asm__(".symver dlerror,dlerror@" NCCL4J_FIRST_VERSION);
__asm__(".symver dlinfo,dlinfo@" NCCL4J_SECOND_VERSION);
__asm__(".symver dlopen,dlopen@" NCCL4J_FIRST_VERSION);
__asm__(".symver dlsym,dlsym@" NCCL4J_FIRST_VERSION);
__asm__(".symver pthread_condattr_setclock,pthread_condattr_setclock@" NCCL4J_SECOND_VERSION);
/* Of JavaCPP's callbacks. */
__asm__(".symver pthread_getspecific,pthread_getspecific@" NCCL4J_FIRST_VERSION);
__asm__(".symver pthread_key_create,pthread_key_create@" NCCL4J_FIRST_VERSION);
__asm__(".symver pthread_once,pthread_once@" NCCL4J_FIRST_VERSION);
__asm__(".symver pthread_setspecific,pthread_setspecific@" NCCL4J_FIRST_VERSION);
#endif

/*
 * GCC 11 and newer call this function of libstdc++ in containers; GCC 10 and older have no such function. The label is its
 * mangled name: the declaration in libstdc++ has default visibility, and this one must stay inside the library.
 */
extern "C" __attribute__((weak, noreturn, visibility("hidden"))) void nccl4jThrowBadArrayNewLength()
    __asm__("_ZSt28__throw_bad_array_new_lengthv");
extern "C" void nccl4jThrowBadArrayNewLength() { throw std::bad_array_new_length(); }

/** As fstat, which is no symbol before glibc 2.33. On 64-bit platforms the kernel fills the same structure. */
inline int fileStatus(int fd, struct stat* status) { return static_cast<int>(syscall(SYS_fstat, fd, status)); }

#endif

// abi.h: the NCCL C API with default visibility.
// The engine is compiled with hidden visibility; it exports only the declarations of nccl.h, nccl_device.h and
// nccl4j_host.h.
#pragma once

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)
#include <nccl.h>
#include <nccl_device.h>
#include <nccl4j_host.h>
#pragma GCC visibility pop

/** Exports the profiler name of a function that is defined above in the same file. */
#define HOST_PROFILER_ALIAS(name) \
  extern "C" decltype(name) p##name __attribute__((alias(#name), visibility("default")));

static_assert(sizeof(void*) == 8, "the host engine is written for 64-bit Linux");
static_assert(sizeof(ncclConfig_t) == 120, "layout of ncclConfig_t");
static_assert(sizeof(ncclCollConfig_t) == 72, "layout of ncclCollConfig_t");
static_assert(sizeof(ncclCommProperties_t) == 152, "layout of ncclCommProperties_t");

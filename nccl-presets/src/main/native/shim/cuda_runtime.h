/* Replaces CUDA's header to compile a real nccl.h, or the header of an extension; their API needs only these parts of CUDA. */
#ifndef NCCL4J_SHIM_CUDA_RUNTIME_H_
#define NCCL4J_SHIM_CUDA_RUNTIME_H_

#include <stddef.h>
#include <stdint.h>

#define CUDART_VERSION 12000
typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
/* An enumeration in CUDA, of the same size. */
typedef int cudaError_t;

/* NCCL 2.30 and newer declare some functions for Linux only if this is defined; otherwise they are empty macros. */
#ifndef NCCL_OS_LINUX
#define NCCL_OS_LINUX
#endif

#endif

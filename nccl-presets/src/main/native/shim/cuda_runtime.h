/* Stands in for CUDA's header where a real nccl.h is compiled: NCCL's API needs no more of CUDA than this. */
#ifndef NCCL4J_SHIM_CUDA_RUNTIME_H_
#define NCCL4J_SHIM_CUDA_RUNTIME_H_

#include <stddef.h>
#include <stdint.h>

#define CUDART_VERSION 12000
typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;

/* NCCL 2.30 and newer declare some functions for Linux only if this is defined; else they are empty macros. */
#ifndef NCCL_OS_LINUX
#define NCCL_OS_LINUX
#endif

#endif

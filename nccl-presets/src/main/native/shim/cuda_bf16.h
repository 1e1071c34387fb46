/* Replaces CUDA's header: up to NCCL 2.23, nccl.h has ncclBfloat16 only if this is defined. */
#ifndef __CUDA_BF16_TYPES_EXIST__
#define __CUDA_BF16_TYPES_EXIST__
#endif

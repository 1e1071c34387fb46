/* Replaces CUDA's header to compile a real nccl_device.h, whose types name these. */
#ifndef NCCL4J_SHIM_CUDA_H_
#define NCCL4J_SHIM_CUDA_H_

typedef enum { CU_MEM_LOCATION_TYPE_INVALID = 0 } CUmemLocationType;
typedef int CUresult;

#endif

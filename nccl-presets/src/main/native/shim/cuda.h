/* Stands in for CUDA's header where a real nccl_device.h is compiled: its types name these. */
#ifndef NCCL4J_SHIM_CUDA_H_
#define NCCL4J_SHIM_CUDA_H_

typedef enum { CU_MEM_LOCATION_TYPE_INVALID = 0 } CUmemLocationType;
typedef int CUresult;

#endif

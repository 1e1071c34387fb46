/*
 * The C API of NCCL EP 0.2.0, written for nccl4j with our own comments: dispatch of tokens to experts on other ranks, and
 * combination of the experts' results. The library is libnccl_ep.so of the package nccl-extensions, beside libnccl.
 *
 * Two algorithms: low latency (LL) and high throughput (HT). Structures begin with their size and a magic number, and grow
 * at the end only: the library reads the fields that the size covers. NULL stands for a configuration with the defaults.
 */
#ifndef NCCL_EP_H_
#define NCCL_EP_H_

#include <nccl.h>

#define NCCL_EP_MAJOR 0
#define NCCL_EP_MINOR 2
#define NCCL_EP_PATCH 0
/* The release that this header describes: major * 10000 + minor * 100 + patch. */
#define NCCL_EP_VERSION_CODE 200
/* The version of the functions, which the configuration of a group contains. */
#define NCCL_EP_API_VERSION 2
#define NCCL_EP_MAGIC 0xC00FFFEE
#define NCCL_EP_TENSOR_MAGIC 0xCAFECAFE
/* Lets the library choose a size. */
#define NCCL_EP_AUTO 0
/* Two packed floats of 4 bits: a data type that NCCL reserves and only NCCL EP copies. */
#define ncclFloat4x2 12

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  NCCL_EP_ALGO_LOW_LATENCY = 0,
  NCCL_EP_ALGO_HIGH_THROUGHPUT = 1
} ncclEpAlgorithm_t;

/** The reaction of HT to a rank that receives more tokens than its group allows: stop the process, or drop the tokens. */
typedef enum {
  NCCL_EP_OVERFLOW_AUTO = 0,
  NCCL_EP_OVERFLOW_TRAP = 1,
  NCCL_EP_OVERFLOW_DROP = 2
} ncclEpOverflowPolicy_t;

/** The order of received tokens: by expert (LL, HT), by source rank (LL), or without an order (HT). Must be set. */
typedef enum {
  NCCL_EP_LAYOUT_UNSET = 0,
  NCCL_EP_LAYOUT_EXPERT_MAJOR = 1,
  NCCL_EP_LAYOUT_RANK_MAJOR = 2,
  NCCL_EP_LAYOUT_FLAT = 3
} ncclEpLayout_t;

/** Forward or backward pass of a training step; LL ignores it. */
typedef enum {
  NCCL_EP_FWD_PASS = 0,
  NCCL_EP_BWD_PASS = 1
} ncclEpPassDir_t;

/** The use of windows: with ON, tensors must be in windows, and tokens do not go through buffers of the library. */
typedef enum {
  NCCL_EP_ZERO_COPY_AUTO = 0,
  NCCL_EP_ZERO_COPY_OFF = 1,
  NCCL_EP_ZERO_COPY_ON = 2
} ncclEpZeroCopyMode_t;

/** The numbering of experts in received tokens: of this rank's or of all experts. -1 stands for an expert elsewhere. */
typedef enum {
  NCCL_EP_EXPERT_ID_AUTO = 0,
  NCCL_EP_EXPERT_ID_LOCAL = 1,
  NCCL_EP_EXPERT_ID_GLOBAL = 2
} ncclEpExpertIdKind_t;

/** The numbers that a dispatch sends: as they are; with the caller's scales; or BF16 as FP8 with new scales (LL). */
typedef enum {
  NCCL_EP_DISP_QUANT_NONE = 0,
  NCCL_EP_DISP_QUANT_FWD = 1,
  NCCL_EP_DISP_QUANT_DS_FP8E3M4 = 2
} ncclEpDispQuant_t;

/** The numbers that a combination sends: as they are, or as NVFP4 (LL, experimental). */
typedef enum {
  NCCL_EP_COMB_QUANT_NONE = 0,
  NCCL_EP_COMB_QUANT_NVFP4 = 1
} ncclEpCombQuant_t;

/** A tensor: in device memory, or at an offset in a window. The array of sizes stays the caller's. */
typedef struct ncclEpTensor {
  unsigned int size;
  unsigned int magic;
  unsigned int ndim;
  ncclDataType_t datatype;
  void* data;
  ncclWindow_t win_hdl;
  uint64_t win_offset;
  size_t* sizes;
} ncclEpTensor_t;
#define NCCL_EP_TENSOR_INIT { sizeof(ncclEpTensor_t), NCCL_EP_TENSOR_MAGIC }

/** Reserved. */
typedef struct {
  unsigned int size;
  unsigned int magic;
} ncclEpTensorAllocConfig_t;
#define NCCL_EP_TENSOR_ALLOC_CONFIG_INIT { sizeof(ncclEpTensorAllocConfig_t), NCCL_EP_MAGIC }

/** Allocates and frees device memory; each returns a result code of CUDA and gets the context of the configuration. */
typedef int (*ncclEpAllocFn_t)(void** ptr, size_t size, void* context);
typedef int (*ncclEpFreeFn_t)(void* ptr, void* context);

/** The caller's functions for device memory; NULL for those of CUDA. */
typedef struct {
  ncclEpAllocFn_t alloc_fn;
  ncclEpFreeFn_t free_fn;
  void* context;
} ncclEpAllocConfig_t;

/** Settings of a group, the same on all ranks. */
typedef struct {
  unsigned int size;
  unsigned int magic;
  unsigned int version;
  ncclEpAlgorithm_t algorithm;
  unsigned int num_experts;
  /** The most tokens that a rank dispatches. */
  unsigned int max_dispatch_tokens_per_rank;
  /** The most tokens that a rank receives with HT. */
  unsigned int max_recv_tokens_per_rank;
  /** The most bytes of a token with its scales; with HT, a multiple of 16. */
  unsigned int max_token_bytes;
  /** Bytes of the buffer that LL registers with the network. */
  unsigned long rdma_buffer_size;
  unsigned int num_qp_per_rank;
  unsigned int num_channels;
  unsigned int max_num_sms;
  ncclEpAllocConfig_t alloc;
  /** Not 0: LL masks a rank that does not answer in time, instead of a trap on the GPU. */
  unsigned int enable_mask;
  /** The time that kernels wait, in ns; 0 for the default. */
  uint64_t timeout_ns;
  ncclEpZeroCopyMode_t zero_copy;
  ncclEpOverflowPolicy_t overflow_policy;
  /** The most experts of a token; needed by HT with the expert-major layout if max_recv_tokens_per_rank is automatic. */
  unsigned int num_topk;
  unsigned char padding_v2[4];
} ncclEpGroupConfig_t;
#define NCCL_EP_GROUP_CONFIG_INIT { sizeof(ncclEpGroupConfig_t), NCCL_EP_MAGIC, NCCL_EP_API_VERSION }

/** The buffers of a communicator for dispatch and combination. */
typedef struct ncclEpGroup* ncclEpGroup_t;
/** The routing of one step. */
typedef struct ncclEpHandle* ncclEpHandle_t;

/** Tensors that receive counts: of a routing with HT, of a dispatch with LL. Each may be NULL. */
typedef struct {
  unsigned int size;
  unsigned int magic;
  ncclEpTensor_t* expert_counters;
  ncclEpTensor_t* src_rank_counters;
  ncclEpTensor_t* expert_offsets;
  ncclEpTensor_t* recv_total_counter;
  ncclEpExpertIdKind_t recv_topk_idx_kind;
  unsigned char padding_v2[4];
} ncclEpLayoutInfo_t;
#define NCCL_EP_LAYOUT_INFO_INIT { sizeof(ncclEpLayoutInfo_t), NCCL_EP_MAGIC }

/** The input of a dispatch: tokens, and depending on layout and quantization the other two. */
typedef struct {
  unsigned int size;
  unsigned int magic;
  ncclEpTensor_t* tokens;
  ncclEpTensor_t* topk_weights;
  ncclEpTensor_t* scales;
} ncclEpDispatchInputs_t;
#define NCCL_EP_DISPATCH_INPUTS_INIT { sizeof(ncclEpDispatchInputs_t), NCCL_EP_MAGIC }

/** The output of a dispatch. */
typedef struct {
  unsigned int size;
  unsigned int magic;
  ncclEpTensor_t* tokens;
  ncclEpTensor_t* topk_weights;
  ncclEpTensor_t* scales;
  ncclEpTensor_t* topk_idx;
} ncclEpDispatchOutputs_t;
#define NCCL_EP_DISPATCH_OUTPUTS_INIT { sizeof(ncclEpDispatchOutputs_t), NCCL_EP_MAGIC }

/** The input of a combination: the results of this rank's experts in the layout of the dispatch. */
typedef struct {
  unsigned int size;
  unsigned int magic;
  ncclEpTensor_t* tokens;
  ncclEpTensor_t* topk_weights;
  ncclEpTensor_t* scales;
} ncclEpCombineInputs_t;
#define NCCL_EP_COMBINE_INPUTS_INIT { sizeof(ncclEpCombineInputs_t), NCCL_EP_MAGIC }

/** The output of a combination: a sum per token of this rank, in the order of its tokens. */
typedef struct {
  unsigned int size;
  unsigned int magic;
  ncclEpTensor_t* tokens;
  ncclEpTensor_t* topk_weights;
} ncclEpCombineOutputs_t;
#define NCCL_EP_COMBINE_OUTPUTS_INIT { sizeof(ncclEpCombineOutputs_t), NCCL_EP_MAGIC }

/** Settings of a handle. */
typedef struct {
  unsigned int size;
  unsigned int magic;
  /** HT, expert-major: an expert's tokens begin at a multiple of this power of 2; 0 for no padding. */
  size_t dispatch_output_per_expert_alignment;
} ncclEpHandleConfig_t;
#define NCCL_EP_HANDLE_CONFIG_INIT { sizeof(ncclEpHandleConfig_t), NCCL_EP_MAGIC }

/** Settings of a dispatch. */
typedef struct {
  unsigned int size;
  unsigned int magic;
  /** Not 0: only starts (LL); ncclEpComplete ends the dispatch. */
  unsigned int send_only;
  /** Not 0: scales are powers of 2. */
  unsigned int round_scales;
  ncclEpPassDir_t pass_direction;
  ncclEpDispQuant_t quant_recipe;
} ncclEpDispatchConfig_t;
#define NCCL_EP_DISPATCH_CONFIG_INIT { sizeof(ncclEpDispatchConfig_t), NCCL_EP_MAGIC }

/** Settings of a combination. */
typedef struct {
  unsigned int size;
  unsigned int magic;
  /** Not 0: only starts (LL); ncclEpComplete ends the combination. */
  unsigned int send_only;
  ncclEpPassDir_t pass_direction;
  ncclEpCombQuant_t quant_recipe;
} ncclEpCombineConfig_t;
#define NCCL_EP_COMBINE_CONFIG_INIT { sizeof(ncclEpCombineConfig_t), NCCL_EP_MAGIC }

/** Reserved. */
typedef struct ncclEpCompleteConfig {
  unsigned int size;
  unsigned int magic;
} ncclEpCompleteConfig_t;
#define NCCL_EP_COMPLETE_CONFIG_INIT { sizeof(ncclEpCompleteConfig_t), NCCL_EP_MAGIC }

/**
 * The release of the library, as NCCL_EP_VERSION_CODE.
 * @since NCCL EP 0.2.0
 */
ncclResult_t ncclEpGetVersion(int* version);

/**
 * Allocates a tensor's structure.
 * @since NCCL EP 0.2.0
 */
ncclResult_t ncclEpTensorAlloc(ncclEpTensor_t** tensor, unsigned int ndim, ncclDataType_t datatype, const size_t* sizes,
    const ncclEpTensorAllocConfig_t* config);

/**
 * Frees a structure of ncclEpTensorAlloc.
 * @since NCCL EP 0.2.0
 */
ncclResult_t ncclEpTensorDestroy(ncclEpTensor_t* tensor);

/**
 * Creates a group; all ranks of the communicator call it.
 * @since NCCL EP 0.2.0
 */
ncclResult_t ncclEpCreateGroup(ncclEpGroup_t* ep_group, ncclComm_t comm, const ncclEpGroupConfig_t* config);

/**
 * Frees a group.
 * @since NCCL EP 0.2.0
 */
ncclResult_t ncclEpGroupDestroy(ncclEpGroup_t ep_group);

/**
 * The bytes of device memory that a handle needs.
 * @since NCCL EP 0.2.0
 */
ncclResult_t ncclEpHandleMemSize(ncclEpGroup_t ep_group, ncclEpLayout_t layout, const ncclEpHandleConfig_t* config,
    size_t* size_out, int num_topk);

/**
 * Creates a handle without a routing, in the caller's memory or, if that is NULL, in memory of the library.
 * @since NCCL EP 0.2.0
 */
ncclResult_t ncclEpInitHandle(ncclEpHandle_t* handle, ncclEpGroup_t ep_group, ncclEpLayout_t layout,
    const ncclEpHandleConfig_t* config, int num_topk, const ncclEpTensor_t* handle_mem);

/**
 * Gives a handle the routing of a step: the experts of each token of this rank. All ranks call it.
 * @since NCCL EP 0.2.0
 */
ncclResult_t ncclEpUpdateHandle(ncclEpHandle_t handle, const ncclEpTensor_t* topk_idx, const ncclEpLayoutInfo_t* layout_info,
    cudaStream_t stream);

/**
 * As ncclEpInitHandle and ncclEpUpdateHandle.
 * @since NCCL EP 0.2.0
 */
ncclResult_t ncclEpCreateHandle(ncclEpHandle_t* handle, ncclEpGroup_t ep_group, ncclEpLayout_t layout,
    const ncclEpTensor_t* topk_idx, const ncclEpLayoutInfo_t* layout_info, const ncclEpHandleConfig_t* config,
    cudaStream_t stream);

/**
 * Frees a handle.
 * @since NCCL EP 0.2.0
 */
ncclResult_t ncclEpHandleDestroy(ncclEpHandle_t handle);

/**
 * Sends the tokens to the ranks of their experts. All ranks call it.
 * @since NCCL EP 0.2.0
 */
ncclResult_t ncclEpDispatch(ncclEpHandle_t handle, const ncclEpDispatchInputs_t* inputs,
    const ncclEpDispatchOutputs_t* outputs, const ncclEpLayoutInfo_t* layout_info, const ncclEpDispatchConfig_t* config,
    cudaStream_t stream);

/**
 * Returns the experts' results to the ranks of the tokens and adds those of a token. All ranks call it.
 * @since NCCL EP 0.2.0
 */
ncclResult_t ncclEpCombine(ncclEpHandle_t handle, const ncclEpCombineInputs_t* inputs, const ncclEpCombineOutputs_t* outputs,
    const ncclEpCombineConfig_t* config, cudaStream_t stream);

/**
 * Ends a dispatch or combination that has only been started.
 * @since NCCL EP 0.2.0
 */
ncclResult_t ncclEpComplete(ncclEpHandle_t handle, const ncclEpCompleteConfig_t* config, cudaStream_t stream);

/**
 * Copies the mask to device memory: an int per rank, 1 for active and 0 for masked.
 * @since NCCL EP 0.2.0
 */
ncclResult_t ncclEpMaskQuery(ncclEpGroup_t ep_group, int* mask_status, cudaStream_t stream);

/**
 * Sets the mask from host memory.
 * @since NCCL EP 0.2.0
 */
ncclResult_t ncclEpMaskUpdate(ncclEpGroup_t ep_group, const int* mask, cudaStream_t stream);

/**
 * Makes all ranks active again, and resets the buffers. All ranks call it.
 * @since NCCL EP 0.2.0
 */
ncclResult_t ncclEpMaskClean(ncclEpGroup_t ep_group, cudaStream_t stream);

/**
 * Writes 1 if a rank was masked since the last ncclEpErrorClear, else 0. Does not wait for the GPU.
 * @since NCCL EP 0.2.0
 */
ncclResult_t ncclEpGetAsyncError(ncclEpGroup_t ep_group, int* error_out);

/**
 * Resets the error of ncclEpGetAsyncError.
 * @since NCCL EP 0.2.0
 */
ncclResult_t ncclEpErrorClear(ncclEpGroup_t ep_group);

#ifdef __cplusplus
}
#endif

#endif

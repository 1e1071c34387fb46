/*
 * The C API of NCCL M2N 0.2.0, written for nccl4j with our own comments: it moves a tensor from one mesh of ranks to
 * another. The library is libnccl_m2n.so of the package nccl-extensions, beside libnccl; it needs NCCL 2.30.5 or newer.
 *
 * All ranks of a communicator call the function with both descriptors, also ranks that hold no part of the tensor. The
 * library copies the arrays of a descriptor before the call returns, also in a group.
 */
#ifndef NCCL_M2N_H_
#define NCCL_M2N_H_

#include <nccl.h>

#define NCCL_M2N_MAJOR 0
#define NCCL_M2N_MINOR 2
#define NCCL_M2N_PATCH 0
/* The release that this header describes: major * 10000 + minor * 100 + patch. */
#define NCCL_M2N_VERSION_CODE 200
/* The version of the structures. */
#define NCCL_M2N_API_VERSION 2
/* The oldest NCCL that the library runs with: 2.30.5. */
#define NCCL_M2N_MIN_NCCL_VERSION_CODE 23005

/* Limits of the library, not of the structures. */
#define NCCL_RESHARD_MAX_MESH_DIMS 2
#define NCCL_RESHARD_MESH_NDIMS 2
#define NCCL_RESHARD_MAX_TENSOR_DIMS 3

#ifdef __cplusplus
extern "C" {
#endif

/** A block of consecutive ranks with one or two dimensions. The last dimension varies fastest. */
typedef struct ncclMesh_v2 {
  size_t size;
  unsigned int version;
  int ndims;
  int* dims;
  /** The first rank of the block. */
  int startRank;
} ncclMesh_t;
#define NCCL_M2N_MESH_INITIALIZER { sizeof(ncclMesh_t), NCCL_M2N_API_VERSION, 0, NULL, 0 }

/** The placement on a dimension of the mesh whose ranks hold equal parts. */
#define NCCL_RESHARD_REPLICATE (-1)
/** The placement on a dimension of the mesh whose ranks share a dimension of the tensor. */
#define NCCL_RESHARD_SHARD(td) (td)

/** A tensor on a mesh: the part of this rank and the placement of all parts. */
typedef struct ncclDistTensor_v2 {
  size_t size;
  unsigned int version;
  /** The part of this rank in device memory; NULL if this rank is not in the mesh. */
  void* dataPtr;
  /** The shape of a part, in elements; required on all ranks. */
  size_t* localShape;
  int ndims;
  ncclDataType_t dtype;
  const ncclMesh_t* mesh;
  /** A placement for each dimension of the mesh; at most one of them shards. */
  int* placements;
} ncclDistTensor_t;
#define NCCL_M2N_DIST_TENSOR_INITIALIZER \
  { sizeof(ncclDistTensor_t), NCCL_M2N_API_VERSION, NULL, NULL, 0, (ncclDataType_t)0, NULL, NULL }

#define NCCL_M2N_CONFIG_UNDEF_INT INT_MIN
#define NCCL_M2N_API_MAGIC 0x4d324e32

/** Settings of a handle. */
typedef struct ncclM2nConfig_v2 {
  size_t size;
  unsigned int magic;
  unsigned int version;
  /** The most thread blocks of a kernel. The variable NCCL_RESHARD_NUM_CTAS takes precedence. */
  int maxCta;
} ncclM2nConfig_t;
#define NCCL_M2N_CONFIG_INITIALIZER \
  { sizeof(ncclM2nConfig_t), NCCL_M2N_API_MAGIC, NCCL_M2N_API_VERSION, NCCL_M2N_CONFIG_UNDEF_INT }

/** The state of the library. Functions take NULL for a default handle. */
typedef struct ncclM2nHandle* ncclM2nHandle_t;

/**
 * Creates a handle; a NULL configuration has the defaults.
 * @since NCCL M2N 0.2.0
 */
ncclResult_t ncclM2nInit(ncclM2nHandle_t* handle, const ncclM2nConfig_t* config);

/**
 * Frees a handle, or the default handle. The work that it started must be complete.
 * @since NCCL M2N 0.2.0
 */
ncclResult_t ncclM2nFinalize(ncclM2nHandle_t handle);

/**
 * The reason of the last failure in this thread, or an empty text. Valid until the thread's next call.
 * @since NCCL M2N 0.2.0
 */
const char* ncclM2nGetLastError(void);

/**
 * Begins a group: the calls of this thread are recorded until the group ends. Groups may be nested.
 * @since NCCL M2N 0.2.0
 */
ncclResult_t ncclM2nGroupStart(void);

/**
 * Ends a group; the end of the outermost one starts the recorded calls. All ranks record the same calls in the same order.
 * @since NCCL M2N 0.2.0
 */
ncclResult_t ncclM2nGroupEnd(void);

/**
 * Drops all open groups of this thread with their calls.
 * @since NCCL M2N 0.2.0
 */
ncclResult_t ncclM2nGroupAbort(void);

/**
 * Copies a tensor from one mesh to another, in the order of the stream. The meshes must have no rank in common, unless the
 * communicator has one rank only.
 * @since NCCL M2N 0.2.0
 */
ncclResult_t ncclReshard(ncclM2nHandle_t handle, ncclComm_t comm, const ncclDistTensor_t* src, const ncclDistTensor_t* dst,
    cudaStream_t stream);

/**
 * As ncclReshard, with a window, which this release ignores.
 * @since NCCL M2N 0.2.0
 */
ncclResult_t ncclReshardWithWindow(ncclM2nHandle_t handle, ncclComm_t comm, ncclWindow_t window, const ncclDistTensor_t* src,
    const ncclDistTensor_t* dst, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif

/*
 * The C API of NCCL 2.32.3, written for nccl4j: declarations, constants and layouts, with our own comments.
 * No CUDA header is needed. `nccl4j check-header FILE` compares this file with the nccl.h of an installation.
 * NVIDIA's manual: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api.html
 *
 * The build reads the tag "@since" of a function and puts it into the message of the exception that is thrown when the
 * loaded library lacks the function. Every function has a twin under the name p..., for profilers.
 * The release that added a type is stated in the same way; that of a constant or a field begins the comment after it.
 * Declarations without a release exist since NCCL 2.18 or earlier. The header check compares all of these with real
 * releases.
 */
#ifndef NCCL_H_
#define NCCL_H_

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#define NCCL_MAJOR 2
#define NCCL_MINOR 32
#define NCCL_PATCH 3
#define NCCL_SUFFIX ""

/* The version that this header describes; ncclGetVersion returns that of the loaded library. */
#define NCCL_VERSION_CODE 23203
#define NCCL_VERSION(X, Y, Z) \
  (((X) <= 2 && (Y) <= 8) ? (X) * 1000 + (Y) * 100 + (Z) : (X) * 10000 + (Y) * 100 + (Z))

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;

/* Handles: opaque, owned by the library. */
typedef struct ncclComm* ncclComm_t;
#define NCCL_COMM_NULL NULL /* 2.17.1 */
/**
 * A window.
 * @since NCCL 2.27.3
 */
typedef struct ncclWindow_vidmem* ncclWindow_t;
/**
 * A parameter of the library.
 * @since NCCL 2.30.4
 */
typedef struct ncclParamHandle* ncclParamHandle_t;

/** Identifies a communicator during its creation; all ranks pass the same bytes. */
#define NCCL_UNIQUE_ID_BYTES 128
typedef struct {
  char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

/** The result of a call. Newer libraries may return codes that are not listed here. */
typedef enum {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6, /* 2.13.4 */
  ncclInProgress = 7, /* 2.14.3 */
  ncclTimeout = 8, /* 2.30.3 */
  ncclNumResults = 9
} ncclResult_t;

/* Values of unset ncclConfig_t fields. */
#define NCCL_CONFIG_UNDEF_INT INT_MIN /* 2.17.1 */
#define NCCL_CONFIG_UNDEF_PTR NULL /* 2.17.1 */
#define NCCL_UNDEF_FLOAT -1.0f /* 2.22.3 */

/* The color of a rank that joins no communicator of a split. */
#define NCCL_SPLIT_NOCOLOR -1 /* 2.18.1 */

/* Window flags. */
#define NCCL_WIN_DEFAULT 0x00 /* 2.27.3 */
#define NCCL_WIN_COLL_SYMMETRIC 0x01 /* 2.27.3 */
#define NCCL_WIN_STRICT_ORDERING 0x02 /* 2.29.7 */
#define NCCL_WIN_GIN_ONLY 0x04 /* 2.32.3 */
#define NCCL_WIN_CFT_COUNTED 0x08 /* 2.32.3 */
#define NCCL_WIN_REQUIRED_ALIGNMENT 4096 /* 2.28.3 */

/* Policies for the use of the GPU's multiprocessors. */
#define NCCL_CTA_POLICY_DEFAULT 0x00 /* 2.27.3 */
#define NCCL_CTA_POLICY_EFFICIENCY 0x01 /* 2.27.3 */
#define NCCL_CTA_POLICY_ZERO 0x02 /* 2.28.3 */

/* Flags of shrink, revoke and suspend. */
#define NCCL_SHRINK_DEFAULT 0x00 /* 2.27.3 */
#define NCCL_SHRINK_ABORT 0x01 /* 2.27.3 */
#define NCCL_REVOKE_DEFAULT 0x00 /* 2.28.7 */
#define NCCL_SUSPEND_MEM 0x01 /* 2.29.7 */

#define NCCL_API_MAGIC 0xcafebeef /* 2.29.2 */

/**
 * Values of hostCftMode: access of the host to the endpoints of NVIDIA's compute fabric. Fallback continues without
 * them where Enable fails. The same on every rank.
 * @since NCCL 2.31.2
 */
typedef enum {
  ncclHostCftDefault = NCCL_CONFIG_UNDEF_INT,
  ncclHostCftEnable = 1,
  ncclHostCftDisable = 2,
  ncclHostCftFallback = 3
} ncclHostCftMode_t;

/**
 * Values of nvlsHostMode: features that a communicator does without, as bits, to leave the NVLink switch's multicast
 * memory to others. Disable is all bits, including those of future releases.
 * @since NCCL 2.32.3
 */
typedef enum {
  ncclNvlsHostModeDefault = NCCL_CONFIG_UNDEF_INT,
  ncclNvlsHostModeEnable = 0,
  ncclNvlsHostModeDisableTransport = 1,
  ncclNvlsHostModeDisableSymmetricMultimem = 2,
  ncclNvlsHostModeDisable = INT_MAX
} ncclNvlsHostMode_t;

/**
 * Configuration of a communicator: 120 bytes. New releases append fields; size states how much of the struct a library
 * may read. A library ignores the fields of later releases. Start from NCCL_CONFIG_INITIALIZER, and do not change size,
 * magic and version.
 */
typedef struct ncclConfig_v23100 {
  size_t size;
  unsigned int magic;
  unsigned int version;
  int blocking;            /* 2.14.3: 0 or 1 */
  int cgaClusterSize;      /* 2.17.1: 0 to 8 */
  int minCTAs;             /* 2.17.1: from 1; set maxCTAs with it */
  int maxCTAs;             /* 2.17.1: from 1 */
  const char* netName;     /* 2.17.1: copied by the library */
  int splitShare;          /* 2.18.1: 0 or 1 */
  int trafficClass;        /* 2.26.2 */
  const char* commName;    /* 2.27.3: not copied: must outlive the communicator and its descendants */
  int collnetEnable;       /* 2.27.3: 0 or 1 */
  int CTAPolicy;           /* 2.27.3: NCCL_CTA_POLICY_... */
  int shrinkShare;         /* 2.27.3: 0 or 1 */
  int nvlsCTAs;            /* 2.27.3: from 1 */
  int nChannelsPerNetPeer; /* 2.28.3: from 1 */
  int nvlinkCentricSched;  /* 2.28.3: 0 or 1 */
  int graphUsageMode;      /* 2.29.2: 0 to 2 */
  int numRmaCtx;           /* 2.29.2: from 1; 0 from 2.30.7 */
  int maxP2pPeers;         /* 2.30.3: from 1 */
  int graphStreamOrdering; /* 2.30.7: 0 or 1 */
  int launchOrderImplicit; /* 2.31.2: 0 or 1 */
  int numRmaSig;           /* 2.31.2: from 0 */
  int rmaEagerInit;        /* 2.31.2: 0 or 1 */
  int hostCftMode;         /* 2.31.2: ncclHostCftMode_t */
  int nvlsHostMode;        /* 2.32.3: bits of ncclNvlsHostMode_t */
} ncclConfig_t;

#define NCCL_CONFIG_INITIALIZER { \
  sizeof(ncclConfig_t), NCCL_API_MAGIC, NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH), \
  NCCL_CONFIG_UNDEF_INT, /* blocking */ \
  NCCL_CONFIG_UNDEF_INT, /* cgaClusterSize */ \
  NCCL_CONFIG_UNDEF_INT, /* minCTAs */ \
  NCCL_CONFIG_UNDEF_INT, /* maxCTAs */ \
  NCCL_CONFIG_UNDEF_PTR, /* netName */ \
  NCCL_CONFIG_UNDEF_INT, /* splitShare */ \
  NCCL_CONFIG_UNDEF_INT, /* trafficClass */ \
  NCCL_CONFIG_UNDEF_PTR, /* commName */ \
  NCCL_CONFIG_UNDEF_INT, /* collnetEnable */ \
  NCCL_CONFIG_UNDEF_INT, /* CTAPolicy */ \
  NCCL_CONFIG_UNDEF_INT, /* shrinkShare */ \
  NCCL_CONFIG_UNDEF_INT, /* nvlsCTAs */ \
  NCCL_CONFIG_UNDEF_INT, /* nChannelsPerNetPeer */ \
  NCCL_CONFIG_UNDEF_INT, /* nvlinkCentricSched */ \
  NCCL_CONFIG_UNDEF_INT, /* graphUsageMode */ \
  NCCL_CONFIG_UNDEF_INT, /* numRmaCtx */ \
  NCCL_CONFIG_UNDEF_INT, /* maxP2pPeers */ \
  NCCL_CONFIG_UNDEF_INT, /* graphStreamOrdering */ \
  NCCL_CONFIG_UNDEF_INT, /* launchOrderImplicit */ \
  NCCL_CONFIG_UNDEF_INT, /* numRmaSig */ \
  NCCL_CONFIG_UNDEF_INT, /* rmaEagerInit */ \
  NCCL_CONFIG_UNDEF_INT, /* hostCftMode */ \
  NCCL_CONFIG_UNDEF_INT, /* nvlsHostMode */ \
}

/**
 * An option of a vendor's library in a list, in any order, each key at most once. NVIDIA's library reads none of these.
 * @since NCCL 2.31.2
 */
typedef struct ncclConfigExt {
  struct ncclConfigExt* next; /* NULL in the last */
  struct {
    int vendorId; /* from 1 to 2^24-1 */
    int optionId;
  } key;
  union {
    int i;
    const char* s;
    void* raw;
  } val;
} ncclConfigExt_t;

/**
 * Configuration of one collective: 72 bytes, 64 in 2.31. New releases append fields, as in ncclConfig_t. A library
 * copies the fields that it knows; 2.31 selects them by size and version, so leave size, magic and version as
 * NCCL_COLLCONFIG_INITIALIZER sets them. All ranks pass the same values except for the event, which is each rank's own;
 * NCCL does not compare them. The struct, its texts and its list must live until the call, or its group, is launched.
 * @since NCCL 2.31.2
 */
typedef struct ncclCollConfig_v23200 {
  size_t size;
  unsigned int magic;
  unsigned int version;
  ncclConfigExt_t* ext;              /* 2.31.2 */
  int minCTAs;                       /* 2.31.2: 1 to 64; other values are ignored */
  int maxCTAs;                       /* 2.31.2: 1 to 64, not over the communicator's */
  int nvlsCTAs;                      /* 2.31.2: 1 to 64 */
  int cgaClusterSize;                /* 2.31.2: 0 to 8, the same in all of a group */
  const char* algSelection;          /* 2.31.2: starts of algorithms' names, with "," for or, "+" for and, "^" for not */
  int forceAlgSelection;             /* 2.31.2: 1, or 0 to choose freely if the selection is not available */
  int CTAPolicy;                     /* 2.31.2: NCCL_CTA_POLICY_... */
  uint64_t userProfilerTag;          /* 2.31.2: for profilers; the highest bit is NCCL's */
  cudaEvent_t launchCompletionEvent; /* 2.32.3: without timing; on all ranks or none, one per group and communicator */
} ncclCollConfig_t;

#define NCCL_COLLCONFIG_INITIALIZER { /* 2.31.2 */ \
  sizeof(ncclCollConfig_t), NCCL_API_MAGIC, NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH), \
  NCCL_CONFIG_UNDEF_PTR, /* ext */ \
  NCCL_CONFIG_UNDEF_INT, /* minCTAs */ \
  NCCL_CONFIG_UNDEF_INT, /* maxCTAs */ \
  NCCL_CONFIG_UNDEF_INT, /* nvlsCTAs */ \
  NCCL_CONFIG_UNDEF_INT, /* cgaClusterSize */ \
  NCCL_CONFIG_UNDEF_PTR, /* algSelection */ \
  1, /* forceAlgSelection */ \
  NCCL_CONFIG_UNDEF_INT, /* CTAPolicy */ \
  0, /* userProfilerTag */ \
  NCCL_CONFIG_UNDEF_PTR, /* launchCompletionEvent */ \
}

/**
 * Encryption of NCCL's TCP connections: none, or with a key that all ranks share.
 * @since NCCL 2.32.3
 */
typedef enum {
  NCCL_ENCRYPTION_MODE_NONE = 0,
  NCCL_ENCRYPTION_MODE_PSK = 1
} ncclEncryptionMode_t;

/**
 * The argument of ncclSetEncryption: 32 bytes. Start from NCCL_ENCRYPTION_CONFIG_INITIALIZER.
 * @since NCCL 2.32.3
 */
typedef struct ncclEncryptionConfig_v23200 {
  size_t size;
  unsigned int magic;
  unsigned int version;
  int mode;        /* 2.32.3: ncclEncryptionMode_t */
  const char* psk; /* 2.32.3: 32 characters or more */
} ncclEncryptionConfig_t;

#define NCCL_ENCRYPTION_CONFIG_INITIALIZER { /* 2.32.3 */ \
  sizeof(ncclEncryptionConfig_t), NCCL_API_MAGIC, NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH), \
  NCCL_ENCRYPTION_MODE_NONE, /* mode */ \
  NCCL_CONFIG_UNDEF_PTR, /* psk */ \
}

/**
 * The result of ncclGroupSimulateEnd. Start from NCCL_SIM_INFO_INITIALIZER.
 * @since NCCL 2.22.3
 */
typedef struct ncclSimInfo_v22200 {
  size_t size;
  unsigned int magic;
  unsigned int version;
  float estimatedTime; /* microseconds */
} ncclSimInfo_t;

#define NCCL_SIM_INFO_INITIALIZER { /* 2.22.3 */ \
  sizeof(ncclSimInfo_t), 0x74685283, NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH), NCCL_UNDEF_FLOAT \
}

/**
 * A wait of ncclWaitSignal: for opCnt signals of peer at index sigIdx of context ctx.
 * @since NCCL 2.29.2
 */
typedef struct {
  int opCnt;
  int peer;
  int sigIdx;
  int ctx;
} ncclWaitSignalDesc_t;

/**
 * Memory statistics, all in bytes.
 * @since NCCL 2.29.7
 */
typedef enum {
  ncclStatGpuMemSuspend = 0,
  ncclStatGpuMemSuspended = 1,
  ncclStatGpuMemPersist = 2,
  ncclStatGpuMemTotal = 3
} ncclCommMemStat_t;

/** Reduction operators. Operators that a program creates are ints from ncclNumOps to ncclMaxRedOp. */
typedef enum { ncclNumOps_dummy = 5 } ncclRedOp_dummy_t;
typedef enum {
  ncclSum = 0,
  ncclProd = 1,
  ncclMax = 2,
  ncclMin = 3,
  ncclAvg = 4, /* 2.10.3 */
  ncclNumOps = 5,
  ncclMaxRedOp = 0x7fffffff >> (32 - 8 * sizeof(ncclRedOp_dummy_t))
} ncclRedOp_t;

/** Element types. */
typedef enum {
  ncclInt8 = 0,
  ncclChar = 0,
  ncclUint8 = 1,
  ncclInt32 = 2,
  ncclInt = 2,
  ncclUint32 = 3,
  ncclInt64 = 4,
  ncclUint64 = 5,
  ncclFloat16 = 6,
  ncclHalf = 6,
  ncclFloat32 = 7,
  ncclFloat = 7,
  ncclFloat64 = 8,
  ncclDouble = 8,
  ncclBfloat16 = 9, /* 2.10.3 */
  ncclFloat8e4m3 = 10, /* 2.24.3 */
  ncclFloat8e5m2 = 11, /* 2.24.3 */
  ncclNumTypes = 12
} ncclDataType_t;

/**
 * Location of the scalar of ncclRedOpCreatePreMulSum: on the device, read at each call, or on the host, read at once.
 */
typedef enum {
  ncclScalarDevice = 0,
  ncclScalarHostImmediate = 1
} ncclScalarResidence_t;

/* Library. */

/**
 * Writes the version code of the loaded library, in the format of NCCL_VERSION. Not collective.
 * @since NCCL 2.3.5
 */
ncclResult_t ncclGetVersion(int* version);
ncclResult_t pncclGetVersion(int* version);

/**
 * Returns the fixed text for a result code; accepts any int. The library owns the string.
 * @since NCCL 2.3.5
 */
const char* ncclGetErrorString(ncclResult_t result);
const char* pncclGetErrorString(ncclResult_t result);

/**
 * Returns the text of the last error in this process; comm may be NULL. The library owns the string and overwrites it.
 * @since NCCL 2.13.4
 */
const char* ncclGetLastError(ncclComm_t comm);
const char* pncclGetLastError(ncclComm_t comm);

/**
 * Makes the library read NCCL_DEBUG and related variables again. Deprecated by NVIDIA since 2.29.
 * @since NCCL 2.24.3
 */
void ncclResetDebugInit();
void pncclResetDebugInit();

/**
 * Requests encrypted TCP connections. Call before the first unique id and communicator of the process. A library
 * without TLS also accepts the call.
 * @since NCCL 2.32.3
 */
ncclResult_t ncclSetEncryption(const ncclEncryptionConfig_t* config);
ncclResult_t pncclSetEncryption(const ncclEncryptionConfig_t* config);

/* Memory. */

/**
 * Allocates size bytes on the current device, suitable for windows and registrations.
 * @since NCCL 2.19.1
 */
ncclResult_t ncclMemAlloc(void** ptr, size_t size);
ncclResult_t pncclMemAlloc(void** ptr, size_t size);

/**
 * Frees memory of ncclMemAlloc.
 * @since NCCL 2.19.1
 */
ncclResult_t ncclMemFree(void* ptr);
ncclResult_t pncclMemFree(void* ptr);

/* Communicators. */

/**
 * Creates the id that all ranks of a new communicator share. Call it on one rank and pass the bytes to the others.
 * @since NCCL 2.3.5
 */
ncclResult_t ncclGetUniqueId(ncclUniqueId* uniqueId);
ncclResult_t pncclGetUniqueId(ncclUniqueId* uniqueId);

/**
 * Creates this rank's communicator on the current device. Collective over nranks ranks.
 * @since NCCL 2.3.5
 */
ncclResult_t ncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank);
ncclResult_t pncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank);

/**
 * As ncclCommInitRank, with a configuration; config NULL means all defaults. If non-blocking or in a group, comm is
 * written later.
 * @since NCCL 2.14.3
 */
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank, ncclConfig_t* config);
ncclResult_t pncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank, ncclConfig_t* config);

/**
 * As ncclCommInitRankConfig, with nId unique ids that share the work of the bootstrap.
 * @since NCCL 2.23.4
 */
ncclResult_t ncclCommInitRankScalable(
    ncclComm_t* newcomm, int nranks, int myrank, int nId, ncclUniqueId* commIds, ncclConfig_t* config);
ncclResult_t pncclCommInitRankScalable(
    ncclComm_t* newcomm, int nranks, int myrank, int nId, ncclUniqueId* commIds, ncclConfig_t* config);

/**
 * Creates one communicator per device in this process; comm has room for ndev handles, devlist NULL means devices 0
 * to ndev-1.
 * @since NCCL 2.3.5
 */
ncclResult_t ncclCommInitAll(ncclComm_t* comm, int ndev, const int* devlist);
ncclResult_t pncclCommInitAll(ncclComm_t* comm, int ndev, const int* devlist);

/**
 * Completes outstanding work and releases global resources, before ncclCommDestroy. Collective.
 * @since NCCL 2.14.3
 */
ncclResult_t ncclCommFinalize(ncclComm_t comm);
ncclResult_t pncclCommFinalize(ncclComm_t comm);

/**
 * Frees the communicator when its work is done.
 * @since NCCL 2.3.5
 */
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t pncclCommDestroy(ncclComm_t comm);

/**
 * Frees the communicator and stops its outstanding work; allowed while another thread waits in a call on it.
 * @since NCCL 2.4.2
 */
ncclResult_t ncclCommAbort(ncclComm_t comm);
ncclResult_t pncclCommAbort(ncclComm_t comm);

/**
 * Stops outstanding work and makes the communicator unusable except for destroy, split and shrink. revokeFlags is
 * NCCL_REVOKE_DEFAULT.
 * @since NCCL 2.28.7
 */
ncclResult_t ncclCommRevoke(ncclComm_t comm, int revokeFlags);
ncclResult_t pncclCommRevoke(ncclComm_t comm, int revokeFlags);

/**
 * Divides a communicator by color; ranks are ordered by key. NCCL_SPLIT_NOCOLOR gives NULL. Collective over comm.
 * @since NCCL 2.18.1
 */
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* newcomm, ncclConfig_t* config);
ncclResult_t pncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* newcomm, ncclConfig_t* config);

/**
 * Creates a communicator without the listed ranks. Collective over the ranks that remain.
 * @since NCCL 2.27.3
 */
ncclResult_t ncclCommShrink(
    ncclComm_t comm, int* excludeRanksList, int excludeRanksCount, ncclComm_t* newcomm, ncclConfig_t* config,
    int shrinkFlags);
ncclResult_t pncclCommShrink(
    ncclComm_t comm, int* excludeRanksList, int excludeRanksCount, ncclComm_t* newcomm, ncclConfig_t* config,
    int shrinkFlags);

/**
 * Creates the id with which new ranks join comm by ncclCommGrow. Call it on one rank.
 * @since NCCL 2.29.2
 */
ncclResult_t ncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId* uniqueId);
ncclResult_t pncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId* uniqueId);

/**
 * Creates a larger communicator from comm and new ranks. New ranks pass comm NULL and their rank; existing ranks pass
 * rank -1.
 * @since NCCL 2.29.2
 */
ncclResult_t ncclCommGrow(
    ncclComm_t comm, int nRanks, const ncclUniqueId* uniqueId, int rank, ncclComm_t* newcomm, ncclConfig_t* config);
ncclResult_t pncclCommGrow(
    ncclComm_t comm, int nRanks, const ncclUniqueId* uniqueId, int rank, ncclComm_t* newcomm, ncclConfig_t* config);

/**
 * Writes the state of the communicator: ncclSuccess, ncclInProgress or the error that ended it.
 * @since NCCL 2.4.2
 */
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError);
ncclResult_t pncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError);

/**
 * Writes the number of ranks of the communicator.
 * @since NCCL 2.3.5
 */
ncclResult_t ncclCommCount(const ncclComm_t comm, int* count);
ncclResult_t pncclCommCount(const ncclComm_t comm, int* count);

/**
 * Writes the CUDA device of the communicator.
 * @since NCCL 2.3.5
 */
ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device);
ncclResult_t pncclCommCuDevice(const ncclComm_t comm, int* device);

/**
 * Writes the rank of the calling process or thread in the communicator.
 * @since NCCL 2.3.5
 */
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank);
ncclResult_t pncclCommUserRank(const ncclComm_t comm, int* rank);

/**
 * Releases memory of an idle communicator; flags is NCCL_SUSPEND_MEM. Collective.
 * @since NCCL 2.29.7
 */
ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags);
ncclResult_t pncclCommSuspend(ncclComm_t comm, int flags);

/**
 * Restores the memory that ncclCommSuspend released. Collective.
 * @since NCCL 2.29.7
 */
ncclResult_t ncclCommResume(ncclComm_t comm);
ncclResult_t pncclCommResume(ncclComm_t comm);

/**
 * Writes one memory statistic of the communicator, in bytes.
 * @since NCCL 2.29.7
 */
ncclResult_t ncclCommMemStats(ncclComm_t comm, ncclCommMemStat_t stat, uint64_t* value);
ncclResult_t pncclCommMemStats(ncclComm_t comm, ncclCommMemStat_t stat, uint64_t* value);

/* Registrations and windows. */

/**
 * Registers size bytes for zero-copy communication on this communicator.
 * @since NCCL 2.19.1
 */
ncclResult_t ncclCommRegister(const ncclComm_t comm, void* buff, size_t size, void** handle);
ncclResult_t pncclCommRegister(const ncclComm_t comm, void* buff, size_t size, void** handle);

/**
 * Ends a registration.
 * @since NCCL 2.19.1
 */
ncclResult_t ncclCommDeregister(const ncclComm_t comm, void* handle);
ncclResult_t pncclCommDeregister(const ncclComm_t comm, void* handle);

/**
 * Registers memory of ncclMemAlloc as a window. Collective. Success with a NULL window means that windows are not
 * supported here.
 * @since NCCL 2.27.3
 */
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* buff, size_t size, ncclWindow_t* win, int winFlags);
ncclResult_t pncclCommWindowRegister(ncclComm_t comm, void* buff, size_t size, ncclWindow_t* win, int winFlags);

/**
 * Ends a window.
 * @since NCCL 2.27.3
 */
ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win);
ncclResult_t pncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win);

/**
 * Writes the address that this rank registered as the window.
 * @since NCCL 2.29.2
 */
ncclResult_t ncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t win, void** outUserPtr);
ncclResult_t pncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t win, void** outUserPtr);

/* Reduction operators. */

/**
 * Creates a sum whose inputs are first multiplied by this rank's scalar, for this communicator and type only.
 * @since NCCL 2.11.4
 */
ncclResult_t ncclRedOpCreatePreMulSum(
    ncclRedOp_t* op, void* scalar, ncclDataType_t datatype, ncclScalarResidence_t residence, ncclComm_t comm);
ncclResult_t pncclRedOpCreatePreMulSum(
    ncclRedOp_t* op, void* scalar, ncclDataType_t datatype, ncclScalarResidence_t residence, ncclComm_t comm);

/**
 * Frees an operator that was created for comm.
 * @since NCCL 2.11.4
 */
ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm);
ncclResult_t pncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm);

/* Collectives. Counts are elements; work is ordered by stream. */

/**
 * Reduces count elements of all ranks into root's recvbuff. In place when sendbuff == recvbuff.
 * @since NCCL 2.3.5
 */
ncclResult_t ncclReduce(
    const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op, int root,
    ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclReduce(
    const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op, int root,
    ncclComm_t comm, cudaStream_t stream);

/**
 * Copies root's buff to every rank's buff; the in-place form of ncclBroadcast.
 * @since NCCL 2.3.5
 */
ncclResult_t ncclBcast(
    void* buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclBcast(
    void* buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream);

/**
 * Copies count elements of root's sendbuff to every rank's recvbuff; sendbuff is read at root only.
 * @since NCCL 2.3.5
 */
ncclResult_t ncclBroadcast(
    const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
    cudaStream_t stream);
ncclResult_t pncclBroadcast(
    const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
    cudaStream_t stream);

/**
 * Reduces count elements of all ranks into every rank's recvbuff. In place when sendbuff == recvbuff.
 * @since NCCL 2.3.5
 */
ncclResult_t ncclAllReduce(
    const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
    cudaStream_t stream);
ncclResult_t pncclAllReduce(
    const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
    cudaStream_t stream);

/**
 * Reduces nranks*recvcount elements; rank r receives block r. In place when recvbuff == sendbuff + rank*recvcount.
 * @since NCCL 2.3.5
 */
ncclResult_t ncclReduceScatter(
    const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
    cudaStream_t stream);
ncclResult_t pncclReduceScatter(
    const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
    cudaStream_t stream);

/**
 * Concatenates sendcount elements of every rank, by rank, in every recvbuff. In place when sendbuff == recvbuff +
 * rank*sendcount.
 * @since NCCL 2.3.5
 */
ncclResult_t ncclAllGather(
    const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype, ncclComm_t comm,
    cudaStream_t stream);
ncclResult_t pncclAllGather(
    const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype, ncclComm_t comm,
    cudaStream_t stream);

/**
 * Sends block j of sendbuff to rank j and receives rank j's block in block j of recvbuff; blocks have count elements.
 * @since NCCL 2.28.3
 */
ncclResult_t ncclAlltoAll(
    const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclAlltoAll(
    const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream);

/**
 * Concatenates count elements of every rank, by rank, in root's recvbuff.
 * @since NCCL 2.28.3
 */
ncclResult_t ncclGather(
    const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
    cudaStream_t stream);
ncclResult_t pncclGather(
    const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
    cudaStream_t stream);

/**
 * Sends block r of root's sendbuff, count elements, to rank r.
 * @since NCCL 2.28.3
 */
ncclResult_t ncclScatter(
    const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
    cudaStream_t stream);
ncclResult_t pncclScatter(
    const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
    cudaStream_t stream);

/* Collectives with a configuration per call: the arguments of the plain call, and config. NULL means the plain call. */

/**
 * As ncclAllReduce, with a configuration for this call; the same on every rank.
 * @since NCCL 2.31.2
 */
ncclResult_t ncclAllReduceConfig(
    const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
    cudaStream_t stream, const ncclCollConfig_t* config);
ncclResult_t pncclAllReduceConfig(
    const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
    cudaStream_t stream, const ncclCollConfig_t* config);

/**
 * As ncclBroadcast, with a configuration for this call; the same on every rank.
 * @since NCCL 2.31.2
 */
ncclResult_t ncclBroadcastConfig(
    const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
    cudaStream_t stream, const ncclCollConfig_t* config);
ncclResult_t pncclBroadcastConfig(
    const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
    cudaStream_t stream, const ncclCollConfig_t* config);

/**
 * As ncclReduce, with a configuration for this call; the same on every rank.
 * @since NCCL 2.31.2
 */
ncclResult_t ncclReduceConfig(
    const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op, int root,
    ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config);
ncclResult_t pncclReduceConfig(
    const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op, int root,
    ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config);

/**
 * As ncclAllGather, with a configuration for this call; the same on every rank.
 * @since NCCL 2.31.2
 */
ncclResult_t ncclAllGatherConfig(
    const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype, ncclComm_t comm, cudaStream_t
    stream, const ncclCollConfig_t* config);
ncclResult_t pncclAllGatherConfig(
    const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype, ncclComm_t comm, cudaStream_t
    stream, const ncclCollConfig_t* config);

/**
 * As ncclReduceScatter, with a configuration for this call; the same on every rank.
 * @since NCCL 2.31.2
 */
ncclResult_t ncclReduceScatterConfig(
    const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t
    comm, cudaStream_t stream, const ncclCollConfig_t* config);
ncclResult_t pncclReduceScatterConfig(
    const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t
    comm, cudaStream_t stream, const ncclCollConfig_t* config);

/**
 * As ncclAlltoAll, with a configuration for this call; the same on every rank.
 * @since NCCL 2.31.2
 */
ncclResult_t ncclAlltoAllConfig(
    const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclComm_t comm, cudaStream_t
    stream, const ncclCollConfig_t* config);
ncclResult_t pncclAlltoAllConfig(
    const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclComm_t comm, cudaStream_t
    stream, const ncclCollConfig_t* config);

/**
 * As ncclGather, with a configuration for this call; the same on every rank.
 * @since NCCL 2.31.2
 */
ncclResult_t ncclGatherConfig(
    const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
    cudaStream_t stream, const ncclCollConfig_t* config);
ncclResult_t pncclGatherConfig(
    const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
    cudaStream_t stream, const ncclCollConfig_t* config);

/**
 * As ncclScatter, with a configuration for this call; the same on every rank.
 * @since NCCL 2.31.2
 */
ncclResult_t ncclScatterConfig(
    const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
    cudaStream_t stream, const ncclCollConfig_t* config);
ncclResult_t pncclScatterConfig(
    const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
    cudaStream_t stream, const ncclCollConfig_t* config);

/* Point to point. */

/**
 * Sends count elements to peer, which calls ncclRecv with the same count and type.
 * @since NCCL 2.7.3
 */
ncclResult_t ncclSend(
    const void* sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclSend(
    const void* sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm, cudaStream_t stream);

/**
 * Receives count elements from peer, which calls ncclSend with the same count and type.
 * @since NCCL 2.7.3
 */
ncclResult_t ncclRecv(
    void* recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclRecv(
    void* recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm, cudaStream_t stream);

/**
 * Writes count elements into peer's window, peerWinOffset bytes from its start, then signals peer.
 * @since NCCL 2.29.2
 */
ncclResult_t ncclPutSignal(
    const void* localbuff, size_t count, ncclDataType_t datatype, int peer, ncclWindow_t peerWin, size_t peerWinOffset,
    int sigIdx, int ctx, unsigned int flags, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclPutSignal(
    const void* localbuff, size_t count, ncclDataType_t datatype, int peer, ncclWindow_t peerWin, size_t peerWinOffset,
    int sigIdx, int ctx, unsigned int flags, ncclComm_t comm, cudaStream_t stream);

/**
 * Signals peer without data.
 * @since NCCL 2.29.2
 */
ncclResult_t ncclSignal(int peer, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclSignal(int peer, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm, cudaStream_t stream);

/**
 * Makes the stream wait for nDesc counts of signals.
 * @since NCCL 2.29.2
 */
ncclResult_t ncclWaitSignal(int nDesc, ncclWaitSignalDesc_t* signalDescs, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclWaitSignal(int nDesc, ncclWaitSignalDesc_t* signalDescs, ncclComm_t comm, cudaStream_t stream);

/* Groups; bound to the calling thread. */

/**
 * Opens a group: calls up to the matching ncclGroupEnd are launched together.
 * @since NCCL 2.3.5
 */
ncclResult_t ncclGroupStart();
ncclResult_t pncclGroupStart();

/**
 * Closes a group and, when it is the outermost, launches what it holds.
 * @since NCCL 2.3.5
 */
ncclResult_t ncclGroupEnd();
ncclResult_t pncclGroupEnd();

/**
 * Closes a group without launching it and writes an estimate of its time.
 * @since NCCL 2.22.3
 */
ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t* simInfo);
ncclResult_t pncclGroupSimulateEnd(ncclSimInfo_t* simInfo);

/* Parameters of the library. */

/**
 * Finds a parameter by its name, in the form of NCCL_DEBUG.
 * @since NCCL 2.30.4
 */
ncclResult_t ncclParamBind(ncclParamHandle_t* out, const char* key);
ncclResult_t pncclParamBind(ncclParamHandle_t* out, const char* key);

/**
 * Writes the value of a parameter of type int8_t.
 * @since NCCL 2.30.4
 */
ncclResult_t ncclParamGetI8(ncclParamHandle_t h, int8_t* out);
ncclResult_t pncclParamGetI8(ncclParamHandle_t h, int8_t* out);

/**
 * Writes the value of a parameter of type int16_t.
 * @since NCCL 2.30.4
 */
ncclResult_t ncclParamGetI16(ncclParamHandle_t h, int16_t* out);
ncclResult_t pncclParamGetI16(ncclParamHandle_t h, int16_t* out);

/**
 * Writes the value of a parameter of type int32_t.
 * @since NCCL 2.30.4
 */
ncclResult_t ncclParamGetI32(ncclParamHandle_t h, int32_t* out);
ncclResult_t pncclParamGetI32(ncclParamHandle_t h, int32_t* out);

/**
 * Writes the value of a parameter of type int64_t.
 * @since NCCL 2.30.4
 */
ncclResult_t ncclParamGetI64(ncclParamHandle_t h, int64_t* out);
ncclResult_t pncclParamGetI64(ncclParamHandle_t h, int64_t* out);

/**
 * Writes the value of a parameter of type uint8_t.
 * @since NCCL 2.30.4
 */
ncclResult_t ncclParamGetU8(ncclParamHandle_t h, uint8_t* out);
ncclResult_t pncclParamGetU8(ncclParamHandle_t h, uint8_t* out);

/**
 * Writes the value of a parameter of type uint16_t.
 * @since NCCL 2.30.4
 */
ncclResult_t ncclParamGetU16(ncclParamHandle_t h, uint16_t* out);
ncclResult_t pncclParamGetU16(ncclParamHandle_t h, uint16_t* out);

/**
 * Writes the value of a parameter of type uint32_t.
 * @since NCCL 2.30.4
 */
ncclResult_t ncclParamGetU32(ncclParamHandle_t h, uint32_t* out);
ncclResult_t pncclParamGetU32(ncclParamHandle_t h, uint32_t* out);

/**
 * Writes the value of a parameter of type uint64_t.
 * @since NCCL 2.30.4
 */
ncclResult_t ncclParamGetU64(ncclParamHandle_t h, uint64_t* out);
ncclResult_t pncclParamGetU64(ncclParamHandle_t h, uint64_t* out);

/**
 * Writes the value of a string parameter; valid until this thread's next call of this function.
 * @since NCCL 2.30.4
 */
ncclResult_t ncclParamGetStr(ncclParamHandle_t h, const char** out);
ncclResult_t pncclParamGetStr(ncclParamHandle_t h, const char** out);

/**
 * Copies the value of a parameter of any type, at most maxLen bytes, and writes its length in bytes.
 * @since NCCL 2.30.4
 */
ncclResult_t ncclParamGet(ncclParamHandle_t h, void* out, int maxLen, int* len);
ncclResult_t pncclParamGet(ncclParamHandle_t h, void* out, int maxLen, int* len);

/**
 * Writes the value of a parameter as text, by its name; valid until this thread's next call of this function.
 * @since NCCL 2.30.4
 */
ncclResult_t ncclParamGetParameter(const char* key, const char** value, int* valueLen);
ncclResult_t pncclParamGetParameter(const char* key, const char** value, int* valueLen);

/**
 * Writes the names of all parameters.
 * @since NCCL 2.30.4
 */
ncclResult_t ncclParamGetAllParameterKeys(const char*** table, int* tableLen);
ncclResult_t pncclParamGetAllParameterKeys(const char*** table, int* tableLen);

/**
 * Prints every parameter and its value.
 * @since NCCL 2.30.4
 */
void ncclParamDumpAll(void);
void pncclParamDumpAll(void);

/* RCCL only. */

/**
 * As ncclAllReduce, and adds acc, of count elements on the device, to the result. acc must not be NULL.
 * @since RCCL
 */
ncclResult_t ncclAllReduceWithBias(
    const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
    cudaStream_t stream, const void* acc);
ncclResult_t pncclAllReduceWithBias(
    const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
    cudaStream_t stream, const void* acc);

/* VCCL and RCCL: all-to-all with a count and a displacement per pair of ranks, here VCCL's form with 11 arguments.
   VCCL's earlier form, of 10, and RCCL's, of 9, are in alltoallv.h: C has one symbol for all, nccl4j three overloads. */

/**
 * Counts and displacements are nranks*nranks matrices in elements, row i for rank i, the same on every rank; buffers
 * lie in symmetric windows.
 * @since VCCL a2av_base or RCCL 2.28
 */
ncclResult_t ncclAlltoAllv(
    const void* sendbuff, const size_t* sendcounts, const size_t* sdispls, void* recvbuff, const size_t* recvcounts,
    const size_t* rdispls, void* relaybuff, size_t relaycount, ncclDataType_t datatype, ncclComm_t comm,
    cudaStream_t stream);
ncclResult_t pncclAlltoAllv(
    const void* sendbuff, const size_t* sendcounts, const size_t* sdispls, void* recvbuff, const size_t* recvcounts,
    const size_t* rdispls, void* relaybuff, size_t relaycount, ncclDataType_t datatype, ncclComm_t comm,
    cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif

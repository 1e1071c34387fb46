/*
 * The host side of the device API of NCCL 2.32.3, written for nccl4j: the functions of nccl_device.h that host programs
 * call, and the types of their arguments, with our own comments. The other side is C++ for kernels, which is part of
 * neither the library nor this file. `nccl4j check-header FOLDER` compares this file with an installation's.
 * NVIDIA's manual: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/usage/deviceapi.html
 *
 * Comments state releases as in nccl.h; declarations without a release exist since NCCL 2.28.3 or earlier. The
 * libraries export a twin under the name p... of each function; neither NVIDIA's header nor this file declares the
 * twins.
 *
 * Structures with size, magic and version differ from ncclConfig_t: the library uses the version only. It refuses a
 * structure of a newer version with ncclInvalidUsage, unless NCCL_ENABLE_VERSION_CHECK is 0, and reads one of an older
 * version in the layout of that release. A program that was built with a newer header therefore sets version to the
 * result of ncclGetVersion, and leaves unset the fields that this release lacks.
 */
#ifndef NCCL_DEVICE_H_
#define NCCL_DEVICE_H_

#include <nccl.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Start of a resource in the memory of a device communicator, in the library's units. */
typedef uint32_t ncclDevResourceHandle_t;
/**
 * The first of a range of signals of a device communicator.
 * @since NCCL 2.28.7
 */
typedef uint32_t ncclGinSignal_t;
/**
 * The first of a range of counters of a device communicator.
 * @since NCCL 2.28.7
 */
typedef uint32_t ncclGinCounter_t;
/**
 * A logical endpoint of NVIDIA's compute fabric.
 * @since NCCL 2.31.2
 */
typedef uint32_t ncclCftLeId_t;
#define NCCL_LE_ID_INVALID ((ncclCftLeId_t)-1) /* 2.31.2 */

/**
 * The kind of network transfers that GPUs start themselves: none, or (in requirements) any; there is no value 1. In C++
 * the type has one byte before 2.29.7.
 * @since NCCL 2.29.2
 */
typedef enum {
  NCCL_GIN_TYPE_NONE = 0,
  NCCL_GIN_TYPE_PROXY = 2,
  NCCL_GIN_TYPE_GDAKI = 3,
  NCCL_GIN_TYPE_GPI = 4, /* 2.30.7 */
  NCCL_GIN_TYPE_EFA_GDA = 5, /* 2.31.2 */
  NCCL_GIN_MAX_TYPES = 6 /* 2.31.2 */
} ncclGinType_t;

/**
 * The ranks that the network transfers of GPUs reach: none, all, those at the same position of other teams, or those at
 * a stride.
 * @since NCCL 2.29.7
 */
typedef enum {
  NCCL_GIN_CONNECTION_NONE = 0,
  NCCL_GIN_CONNECTION_FULL = 1,
  NCCL_GIN_CONNECTION_RAIL = 2,
  NCCL_GIN_CONNECTION_CUSTOM_STRIDE = 3 /* 2.31.2 */
} ncclGinConnectionType_t;

/**
 * Teams of the compute fabric: a single team, or the inner teams of two levels.
 * @since NCCL 2.31.2
 */
typedef enum {
  NCCL_CFT_TEAM_FLAT = 0,
  NCCL_CFT_TEAM_HIER_MULTIMEM = 1,
  NCCL_CFT_TEAM_HIER_LSA = 2
} ncclCftTeamMode_t;

/**
 * Features of the compute fabric that a device communicator needs, as bits.
 * @since NCCL 2.31.2
 */
typedef enum {
  NCCL_CFT_NONE = 0,
  NCCL_CFT = 1,
  NCCL_CFT_MULTIMEM = 2
} ncclCftCap_t;

/**
 * Ranks at equal distances in a communicator: rank i of the team is rank own + (i - rank) * stride of the communicator.
 * 12 bytes, by value.
 */
typedef struct ncclTeam {
  int nRanks;
  int rank;
  int stride;
} ncclTeam_t;

/** Memory of a team at one address, through which a GPU writes to all ranks or reads a sum of all ranks. By value. */
typedef struct ncclMultimemHandle {
  void* mcBasePtr;
} ncclMultimemHandle_t;

/** Barriers of a team whose GPUs access each other's memory; for kernels. */
typedef struct ncclLsaBarrierHandle {
  ncclDevResourceHandle_t bufHandle;
  int nBarriers;
} ncclLsaBarrierHandle_t;

/**
 * Barriers over the network; for kernels.
 * @since NCCL 2.28.7
 */
typedef struct ncclGinBarrierHandle {
  ncclGinSignal_t signal0;
  ncclDevResourceHandle_t unused;
} ncclGinBarrierHandle_t;

/** An all-to-all of small messages; for kernels. */
typedef struct ncclLLA2AHandle {
  ncclDevResourceHandle_t bufHandle;
  uint32_t nSlots;
} ncclLLA2AHandle_t;

/**
 * A buffer of outgoing messages; for kernels.
 * @since NCCL 2.29.7
 */
typedef struct ncclGinOutboxHandle {
  ncclDevResourceHandle_t bufHandle;
  uint32_t size_log2;
} ncclGinOutboxHandle_t;

/**
 * A buffer of messages from all ranks of a team; for kernels.
 * @since NCCL 2.29.7
 */
typedef struct ncclGinInboxA2AHandle {
  ncclDevResourceHandle_t bufHandle;
  ncclGinSignal_t signals;
  uint32_t size_log2;
  uint32_t nPeers_rcp32;
} ncclGinInboxA2AHandle_t;

/** One resource for ncclDevCommCreate to set up; the functions ...CreateRequirement fill it in. 32 bytes in 2.28.3. */
typedef struct ncclDevResourceRequirements {
  struct ncclDevResourceRequirements* next; /* NULL in the last */
  size_t bufferSize;
  size_t bufferAlign;
  ncclDevResourceHandle_t* outBufferHandle; /* written by ncclDevCommCreate; may be NULL, as the next two */
  int ginSignalCount;                       /* 2.28.7 */
  int ginCounterCount;                      /* 2.28.7 */
  ncclGinSignal_t* outGinSignalStart;       /* 2.28.7 */
  ncclGinCounter_t* outGinCounterStart;     /* 2.28.7 */
} ncclDevResourceRequirements_t;

/** A team that kernels use in addition to the standard teams. */
typedef struct ncclTeamRequirements {
  struct ncclTeamRequirements* next;
  ncclTeam_t team;
  bool multimem;
  ncclMultimemHandle_t* outMultimemHandle; /* written by ncclDevCommCreate; may be NULL */
} ncclTeamRequirements_t;

/**
 * The needs of kernels from a device communicator: 120 bytes; 96 in 2.30, 88 in 2.29.7, 72 in 2.29.2. The structure of
 * 2.28 has neither size, magic nor version, and is a different type. Start from NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER.
 */
typedef struct ncclDevCommRequirements {
  size_t size;          /* 2.29.2 */
  unsigned int magic;   /* 2.29.2 */
  unsigned int version; /* 2.29.2 */
  ncclDevResourceRequirements_t* resourceRequirementsList;
  ncclTeamRequirements_t* teamRequirementsList;
  bool lsaMultimem;
  int barrierCount;        /* 2.28.7 */
  int lsaBarrierCount;
  int railGinBarrierCount; /* 2.28.7 */
  int lsaLLA2ABlockCount;  /* 2.28.7 */
  int lsaLLA2ASlotCount;   /* 2.28.7 */
  bool ginForceEnable;     /* 2.28.7 */
  int ginContextCount;     /* 2.28.7: there may be fewer */
  int ginSignalCount;      /* 2.28.7: numbered from 0 */
  int ginCounterCount;     /* 2.28.7: numbered from 0 */
  ncclGinConnectionType_t ginConnectionType; /* 2.29.7 */
  bool ginExclusiveContexts;     /* 2.29.7 */
  int ginQueueDepth;             /* 2.29.7 */
  int ginTrafficClass;           /* 2.30.3 */
  int worldGinBarrierCount;      /* 2.30.3 */
  bool ginStrongSignalsRequired; /* 2.30.7 */
  bool ginVaSignalsRequired;     /* 2.30.7 */
  int ginCustomStride;           /* 2.31.2 */
  ncclGinType_t ginType;         /* 2.31.2 */
  bool useRuntimeVersion;        /* 2.31.2: kernels are compiled at run time, with the library's own header */
  int cftCaps;                   /* 2.31.2: bits of ncclCftCap_t */
  int cftBarrierCount;           /* 2.31.2 */
} ncclDevCommRequirements_t;

#define NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER { /* 2.29.2 */ \
  sizeof(ncclDevCommRequirements_t), NCCL_API_MAGIC, NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH), \
  NULL, /* resourceRequirementsList */ \
  NULL, /* teamRequirementsList */ \
  false, /* lsaMultimem */ \
  0, /* barrierCount */ \
  0, /* lsaBarrierCount */ \
  0, /* railGinBarrierCount */ \
  0, /* lsaLLA2ABlockCount */ \
  0, /* lsaLLA2ASlotCount */ \
  false, /* ginForceEnable */ \
  4, /* ginContextCount */ \
  0, /* ginSignalCount */ \
  0, /* ginCounterCount */ \
  NCCL_GIN_CONNECTION_NONE, /* ginConnectionType */ \
  false, /* ginExclusiveContexts */ \
  0, /* ginQueueDepth */ \
  NCCL_CONFIG_UNDEF_INT, /* ginTrafficClass */ \
  0, /* worldGinBarrierCount */ \
  true, /* ginStrongSignalsRequired */ \
  true, /* ginVaSignalsRequired */ \
  1, /* ginCustomStride */ \
  NCCL_GIN_TYPE_NONE, /* ginType */ \
  false, /* useRuntimeVersion */ \
  NCCL_CFT_NONE, /* cftCaps */ \
  0, /* cftBarrierCount */ \
}

/**
 * The capabilities of a communicator: 152 bytes; 144 in 2.31, 56 from 2.29.7 on, 40 before, where ginType is one byte
 * at offset 34. Start from NCCL_COMM_PROPERTIES_INITIALIZER.
 * @since NCCL 2.29.2
 */
typedef struct ncclCommProperties {
  size_t size;
  unsigned int magic;
  unsigned int version;
  int rank;
  int nRanks;
  int cudaDev;
  int nvmlDev;
  bool deviceApiSupport;  /* 2.29.2: a device communicator can be made */
  bool multimemSupport;   /* 2.29.2: of its team with shared memory */
  ncclGinType_t ginType;  /* 2.29.2: between all ranks */
  int nLsaTeams;          /* 2.29.7 */
  bool hostRmaSupport;    /* 2.29.7: ncclPutSignal and its companions */
  ncclGinType_t railedGinType; /* 2.29.7: between ranks at the same place of their teams */
  uint64_t commHash;           /* 2.31.2: the same on all ranks */
  int ginMinStride;            /* 2.31.2 */
  ncclGinConnectionType_t ginConnectionType; /* 2.31.2 */
  bool ginSupport[64];              /* 2.31.2: by ncclGinType_t */
  size_t devCommRuntimeVersionSize; /* 2.31.2: bytes of a device communicator with useRuntimeVersion */
  bool cftSupport;          /* 2.32.3 */
  bool cftMulticastSupport; /* 2.32.3 */
  bool cftCountedSupport;   /* 2.32.3 */
} ncclCommProperties_t;

#define NCCL_COMM_PROPERTIES_INITIALIZER { /* 2.29.2 */ \
  sizeof(ncclCommProperties_t), NCCL_API_MAGIC, NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH) \
}

/**
 * A device communicator, passed to kernels by value: 248 bytes; 240 in 2.30, 224 in 2.29.7, 200 before, 88 in 2.28.3.
 * Only kernels of the same release read it. With useRuntimeVersion in the requirements it has devCommRuntimeVersionSize
 * bytes.
 */
typedef struct ncclDevComm {
  unsigned int magic;   /* 2.30.3 */
  unsigned int version; /* 2.30.3 */
  uint64_t content[30]; /* 2.28.3 */
} ncclDevComm_t;

/* Communicators. */

/**
 * Writes the capabilities of a communicator; the caller initializes props. Not collective. From 2.29.7 on, the first
 * call on a communicator with symmetric memory reserves addresses of the device.
 * @since NCCL 2.29.2
 */
ncclResult_t ncclCommQueryProperties(ncclComm_t comm, ncclCommProperties_t* props);

/**
 * Creates a device communicator. Collective; within a group it is created at the end of the group. The objects that the
 * requirements point to must live as long.
 * @since NCCL 2.28.3
 */
ncclResult_t ncclDevCommCreate(ncclComm_t comm, const ncclDevCommRequirements_t* reqs, ncclDevComm_t* outDevComm);

/**
 * Frees a device communicator of ncclDevCommCreate. Call when no kernel uses it any more.
 * @since NCCL 2.28.3
 */
ncclResult_t ncclDevCommDestroy(ncclComm_t comm, const ncclDevComm_t* devComm);

/* Windows: addresses for kernels and copies on this rank's GPU. If there is no address: NULL, with ncclSuccess. */

/**
 * Writes the address at which this rank's GPU accesses the window memory of a rank of its team with shared memory.
 * @since NCCL 2.29.2
 */
ncclResult_t ncclGetLsaDevicePointer(ncclWindow_t window, size_t offset, int lsaRank, void** outPtr);

/**
 * As ncclGetLsaDevicePointer, for a rank of the communicator; NULL for a rank of another team.
 * @since NCCL 2.29.2
 */
ncclResult_t ncclGetPeerDevicePointer(ncclWindow_t window, size_t offset, int peer, void** outPtr);

/**
 * Writes the address of the window memory of all ranks of the team with shared memory; NULL without multicast.
 * @since NCCL 2.29.2
 */
ncclResult_t ncclGetLsaMultimemDevicePointer(ncclWindow_t window, size_t offset, void** outPtr);

/**
 * As ncclGetLsaMultimemDevicePointer, for a team of ncclTeamRequirements_t.
 * @since NCCL 2.29.2
 */
ncclResult_t ncclGetMultimemDevicePointer(
    ncclWindow_t window, size_t offset, ncclMultimemHandle_t multimem, void** outPtr);

/**
 * Writes the endpoint of a rank's window memory in the compute fabric, and the offset there.
 * @since NCCL 2.31.2
 */
ncclResult_t ncclGetPeerDeviceLeInfo(
    ncclWindow_t window, size_t offset, int peerWorld, ncclCftLeId_t* leId, size_t* leOffset);

/**
 * As ncclGetPeerDeviceLeInfo, for a rank of a team of the compute fabric.
 * @since NCCL 2.31.2
 */
ncclResult_t ncclGetCftDeviceLeInfo(
    ncclWindow_t window, size_t offset, int peerCft, ncclTeam_t cftTeam, ncclCftLeId_t* leId, size_t* leOffset);

/**
 * As ncclGetPeerDeviceLeInfo, for all ranks at once.
 * @since NCCL 2.31.2
 */
ncclResult_t ncclGetMultimemDeviceLeInfo(ncclWindow_t window, size_t offset, ncclCftLeId_t* leId, size_t* leOffset);

/* Teams. These functions do not check the communicator, which must be valid. */

/**
 * Returns all ranks.
 * @since NCCL 2.28.3
 */
ncclTeam_t ncclTeamWorld(ncclComm_t comm);

/**
 * Returns the ranks whose memory this rank's GPU accesses by loads and stores.
 * @since NCCL 2.28.3
 */
ncclTeam_t ncclTeamLsa(ncclComm_t comm);

/**
 * Returns the ranks at the same position in other teams with shared memory.
 * @since NCCL 2.28.3
 */
ncclTeam_t ncclTeamRail(ncclComm_t comm);

/**
 * Returns the ranks that the compute fabric connects; mode is a ncclCftTeamMode_t.
 * @since NCCL 2.31.2
 */
ncclTeam_t ncclTeamCft(ncclComm_t comm, ncclCftTeamMode_t mode);

/**
 * Returns the ranks that the compute fabric connects by multicast.
 * @since NCCL 2.31.2
 */
ncclTeam_t ncclTeamCftMultimem(ncclComm_t comm);

/**
 * Returns the rank in the communicator for a rank of a team.
 * @since NCCL 2.28.3
 */
int ncclTeamRankToWorld(ncclComm_t comm, ncclTeam_t team, int rank);

/**
 * Returns the rank in the team with shared memory for a rank of a team.
 * @since NCCL 2.28.3
 */
int ncclTeamRankToLsa(ncclComm_t comm, ncclTeam_t team, int rank);

/* Requirements: each fills in outReq, for the list of ncclDevCommRequirements_t, and the destination of outHandle. */

/**
 * Requires barriers of a team with shared memory.
 * @since NCCL 2.28.3
 */
ncclResult_t ncclLsaBarrierCreateRequirement(
    ncclTeam_t team, int nBarriers, ncclLsaBarrierHandle_t* outHandle, ncclDevResourceRequirements_t* outReq);

/**
 * Requires barriers over the network.
 * @since NCCL 2.28.7
 */
ncclResult_t ncclGinBarrierCreateRequirement(
    ncclComm_t comm, ncclTeam_t team, int nBarriers, ncclGinBarrierHandle_t* outHandle,
    ncclDevResourceRequirements_t* outReq);

/**
 * Requires inboxes of 2^size_log2 bytes for messages from all ranks of a team. NVIDIA's header declares it for Windows
 * only.
 * @since NCCL 2.29.7
 */
ncclResult_t ncclGinInboxA2ACreateRequirement(
    ncclTeam_t peers, int nBlocks, int size_log2, ncclGinInboxA2AHandle_t* outHandle,
    ncclDevResourceRequirements_t* outReq);

/**
 * Requires outboxes of 2^size_log2 bytes. NVIDIA's header declares it for Windows only.
 * @since NCCL 2.29.7
 */
ncclResult_t ncclGinOutboxCreateRequirement(
    int nBlocks, int size_log2, ncclGinOutboxHandle_t* outHandle, ncclDevResourceRequirements_t* outReq);

/**
 * Returns the number of slots that an all-to-all of small messages needs for this number and maximum size of elements.
 * @since NCCL 2.28.3
 */
int ncclLLA2ACalcSlots(int maxElts, int maxEltSize);

/**
 * Requires an all-to-all of small messages.
 * @since NCCL 2.28.3
 */
ncclResult_t ncclLLA2ACreateRequirement(
    int nBlocks, int nSlots, ncclLLA2AHandle_t* outHandle, ncclDevResourceRequirements_t* outReq);

#ifdef __cplusplus
}
#endif
#endif

#!/bin/sh
# Writes an nccl.h as a release to come may have it: newer-header.sh FOLDER. It is ours with what no release has: an opaque
# handle, functions with void** and with numbers of each kind, and ncclAlltoAllv with the nine arguments that RCCL's has.
set -eu
header=$(dirname "$0")/src/main/native/include/nccl.h
mkdir -p "$1"
{
  # Without the declarations of ncclAlltoAllv, and what follows them.
  sed '/^ncclResult_t p*ncclAlltoAllv(/,$d' "$header"
  for p in '' p; do
    cat <<HEADER
ncclResult_t ${p}ncclAlltoAllv(
    const void* sendbuff, const size_t sendcounts[], const size_t sdispls[], void* recvbuff, const size_t recvcounts[],
    const size_t rdispls[], ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream);
HEADER
  done
  cat <<'HEADER'
typedef struct ncclFuture_v29900* ncclFuture_t;
typedef void* ncclToken_t;
typedef enum { ncclFutureFast = 0, ncclFutureSafe = 1 } ncclFutureMode_t;
typedef struct ncclFutureConfig_v29900 {
  size_t size;
  ncclFutureMode_t mode;
  ncclFuture_t parent;
} ncclFutureConfig_t;
HEADER
  for p in '' p; do
    cat <<HEADER
ncclResult_t ${p}ncclFutureCreate(ncclComm_t comm, const ncclFutureConfig_t* config, ncclFuture_t* future);
ncclResult_t ${p}ncclFutureGet(ncclFuture_t future, void** result, size_t* bytes, float* seconds, uint32_t* flags);
ncclResult_t ${p}ncclFutureGetAll(ncclFuture_t** futures, int* count, void* scratch, cudaEvent_t event);
ncclResult_t ${p}ncclFutureWait(const ncclFuture_t future, uint64_t timeout, unsigned int flags, ncclFutureMode_t mode);
ncclResult_t ${p}ncclFutureToken(ncclFuture_t future, ncclToken_t* token, ncclToken_t previous);
const char* ${p}ncclFutureName(ncclFuture_t future);
HEADER
  done
  printf '#ifdef __cplusplus\n}\n#endif\n#endif\n'
} | sed 's/^typedef struct CUstream_st\* cudaStream_t;/&\
typedef struct CUevent_st* cudaEvent_t;/' >"$1/nccl.h"

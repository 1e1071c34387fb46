#!/bin/sh
# Writes an nccl.h as a release to come, 2.33.1, may have it: newer-header.sh FOLDER. It is ours with what no release has: an
# opaque handle, functions with void** and with numbers of each kind, a structure with an initializer, functions that have no
# counterpart in Java, and ncclAlltoAllv with the nine arguments that RCCL's has.
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
typedef struct ncclFuture_v23300* ncclFuture_t;
typedef void* ncclToken_t;
typedef enum { ncclFutureFast = 0, ncclFutureSafe = 1 } ncclFutureMode_t;
typedef struct ncclFutureConfig_v23300 {
  size_t size;
  ncclFutureMode_t mode;
  ncclFuture_t parent;
  struct ncclFutureConfig_v23300* next;
  struct { int low; int high; } range;
} ncclFutureConfig_t;
#define NCCL_FUTURE_CONFIG_INITIALIZER { \
  sizeof(ncclFutureConfig_t), ncclFutureSafe, NULL, NULL, { -1, INT_MAX } \
}
HEADER
  for p in '' p; do
    cat <<HEADER
ncclResult_t ${p}ncclFutureCreate(ncclComm_t comm, const ncclFutureConfig_t* config, ncclFuture_t* future);
ncclResult_t ${p}ncclFutureGet(ncclFuture_t future, void** result, size_t* bytes, float* seconds, uint32_t* flags);
ncclResult_t ${p}ncclFutureGetAll(ncclFuture_t** futures, int* count, void* scratch, cudaEvent_t event);
ncclResult_t ${p}ncclFutureWait(const ncclFuture_t future, uint64_t timeout, unsigned int flags, ncclFutureMode_t mode);
ncclResult_t ${p}ncclFutureToken(ncclFuture_t future, ncclToken_t* token, ncclToken_t previous);
const char* ${p}ncclFutureName(ncclFuture_t future);
ncclResult_t ${p}ncclFutureMake(ncclFutureConfig_t config, ncclFuture_t* future);
ncclResult_t ${p}ncclFutureThen(ncclFuture_t future, void (*call)(void* data, ncclResult_t result), void* data);
HEADER
  done
  printf '#ifdef __cplusplus\n}\n#endif\n#endif\n'
} | sed -e 's/^\(#define NCCL_MINOR\) .*/\1 33/' -e 's/^\(#define NCCL_PATCH\) .*/\1 1/' \
    -e 's/^\(#define NCCL_VERSION_CODE\) .*/\1 23301/' >"$1/nccl.h"

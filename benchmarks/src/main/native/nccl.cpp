/* The libnccl of the benchmark: does nothing. It returns an argument, so that a caller can check that its call got here. */
#include <nccl.h>

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t op, ncclComm_t, cudaStream_t) {
  return (ncclResult_t)op;
}

ncclResult_t ncclAllReduceConfig(
    const void*, void*, size_t, ncclDataType_t, ncclRedOp_t op, ncclComm_t, cudaStream_t, const ncclCollConfig_t*) {
  return (ncclResult_t)op;
}

ncclResult_t ncclGroupStart(void) { return ncclSuccess; }

ncclResult_t ncclGroupEnd(void) { return ncclSuccess; }

/* The queries of highlevel about a wrapped communicator. */

ncclResult_t ncclCommUserRank(const ncclComm_t, int* rank) {
  *rank = 0;
  return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t, int* count) {
  *count = 1;
  return ncclSuccess;
}

ncclResult_t ncclCommCuDevice(const ncclComm_t, int* device) {
  *device = 0;
  return ncclSuccess;
}

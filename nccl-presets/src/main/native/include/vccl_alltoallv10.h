/*
 * The form of ncclAlltoAllv that VCCL had before its commit 3e0ac2e: 10 arguments, no relaycount. The same C symbol as
 * the form in nccl.h, so this file is for the parser of the preset only; no translation unit includes both.
 */

/**
 * As the form with 11 arguments, for libraries built before it.
 * @since VCCL 924fd51 and earlier
 */
ncclResult_t ncclAlltoAllv(
    const void* sendbuff, const size_t* sendcounts, const size_t* sdispls, void* recvbuff, const size_t* recvcounts,
    const size_t* rdispls, const void* relaybuff, ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclAlltoAllv(
    const void* sendbuff, const size_t* sendcounts, const size_t* sdispls, void* recvbuff, const size_t* recvcounts,
    const size_t* rdispls, const void* relaybuff, ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream);

/*
 * What VCCL (branch a2av_base) has beside NCCL: ncclAlltoAllv, in the two forms that it has had under one C symbol. For
 * the parser of the preset only; no translation unit can include it.
 */

/**
 * Sends sendcounts[i*n+j] elements from rank i to rank j, for all of the n ranks. Counts and displacements are n*n
 * matrices in elements, row i for rank i, the same on every rank; buffers lie in symmetric windows.
 * @since VCCL a2av_base
 */
ncclResult_t ncclAlltoAllv(
    const void* sendbuff, const size_t* sendcounts, const size_t* sdispls, void* recvbuff, const size_t* recvcounts,
    const size_t* rdispls, void* relaybuff, size_t relaycount, ncclDataType_t datatype, ncclComm_t comm,
    cudaStream_t stream);
ncclResult_t pncclAlltoAllv(
    const void* sendbuff, const size_t* sendcounts, const size_t* sdispls, void* recvbuff, const size_t* recvcounts,
    const size_t* rdispls, void* relaybuff, size_t relaycount, ncclDataType_t datatype, ncclComm_t comm,
    cudaStream_t stream);

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

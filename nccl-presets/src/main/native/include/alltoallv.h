/*
 * The forms of ncclAlltoAllv besides that of nccl.h: C has one symbol for all of them, nccl4j has overloads. Only the
 * parser of the preset reads this file; no translation unit can include it.
 */

/**
 * As the form with 11 arguments, for earlier VCCL: counts and displacements are n*n matrices, row i for rank i.
 * @since VCCL 924fd51 and earlier
 */
ncclResult_t ncclAlltoAllv(
    const void* sendbuff, const size_t* sendcounts, const size_t* sdispls, void* recvbuff, const size_t* recvcounts,
    const size_t* rdispls, const void* relaybuff, ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclAlltoAllv(
    const void* sendbuff, const size_t* sendcounts, const size_t* sdispls, void* recvbuff, const size_t* recvcounts,
    const size_t* rdispls, const void* relaybuff, ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream);

/**
 * RCCL's form: only the row of this rank, one element of each array for each of the n ranks. Not allowed within a
 * group: the call may wait for the other ranks before it returns.
 * @since RCCL 2.28
 */
ncclResult_t ncclAlltoAllv(
    const void* sendbuff, const size_t* sendcounts, const size_t* sdispls, void* recvbuff, const size_t* recvcounts,
    const size_t* rdispls, ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclAlltoAllv(
    const void* sendbuff, const size_t* sendcounts, const size_t* sdispls, void* recvbuff, const size_t* recvcounts,
    const size_t* rdispls, ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream);

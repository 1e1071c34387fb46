/*
 * The forms of ncclAlltoAllv besides that of nccl.h: C has one symbol for all of them, nccl4j has overloads. For the parser
 * of the preset only; no translation unit can include it.
 */

/**
 * As the form with 11 arguments, for VCCL before that form: counts and displacements are n*n matrices, row i for rank i.
 * @since VCCL 924fd51 and earlier
 */
ncclResult_t ncclAlltoAllv(
    const void* sendbuff, const size_t* sendcounts, const size_t* sdispls, void* recvbuff, const size_t* recvcounts,
    const size_t* rdispls, const void* relaybuff, ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclAlltoAllv(
    const void* sendbuff, const size_t* sendcounts, const size_t* sdispls, void* recvbuff, const size_t* recvcounts,
    const size_t* rdispls, const void* relaybuff, ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream);

/**
 * RCCL's form: the row of this rank alone, an element of each array for each of the n ranks. Not within a group: it may
 * wait for the other ranks before it returns.
 * @since RCCL 2.28
 */
ncclResult_t ncclAlltoAllv(
    const void* sendbuff, const size_t* sendcounts, const size_t* sdispls, void* recvbuff, const size_t* recvcounts,
    const size_t* rdispls, ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclAlltoAllv(
    const void* sendbuff, const size_t* sendcounts, const size_t* sdispls, void* recvbuff, const size_t* recvcounts,
    const size_t* rdispls, ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream);

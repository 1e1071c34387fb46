/*
 * nccl4j_host.h: what the host engine has besides NCCL's API: streams, events and copies, which a GPU has from CUDA.
 *
 * The rules are CUDA's. Work in a stream runs in its order; that of several streams runs at once, unless events order it.
 * The default stream is 0 (1 and 2 mean the same). Each thread has one of its own, and no stream waits for another by
 * itself. Operations of blocking communicators in the default stream, and copies, are done when their call returns; in all
 * other streams they are only begun.
 *
 * All functions may be called from any thread. They return an ncclResult_t; ncclGetLastError(NULL) has the text.
 */
#ifndef NCCL4J_HOST_H_
#define NCCL4J_HOST_H_

#include <nccl.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct nccl4jHostEvent* nccl4jHostEvent_t;

const char* nccl4jHostEngineVersion(void);

ncclResult_t nccl4jHostStreamCreate(cudaStream_t* stream);
/* What is in the stream goes on to its end. */
ncclResult_t nccl4jHostStreamDestroy(cudaStream_t stream);
/*
 * ncclSuccess when all is done, ncclInProgress when not, or the error of an operation in the stream whose communicator was
 * not aborted, destroyed or revoked since.
 */
ncclResult_t nccl4jHostStreamQuery(cudaStream_t stream);
/* As the query, when all is done. */
ncclResult_t nccl4jHostStreamSynchronize(cudaStream_t stream);
/* What comes into the stream from now on waits for what was before the mark. */
ncclResult_t nccl4jHostStreamWaitEvent(cudaStream_t stream, nccl4jHostEvent_t event);

/* A mark in a stream; it may be recorded again, and then stands for the new mark. */
ncclResult_t nccl4jHostEventCreate(nccl4jHostEvent_t* event);
ncclResult_t nccl4jHostEventDestroy(nccl4jHostEvent_t event);
ncclResult_t nccl4jHostEventRecord(nccl4jHostEvent_t event, cudaStream_t stream);
ncclResult_t nccl4jHostEventQuery(nccl4jHostEvent_t event);
ncclResult_t nccl4jHostEventSynchronize(nccl4jHostEvent_t event);
ncclResult_t nccl4jHostEventElapsedTime(double* seconds, nccl4jHostEvent_t start, nccl4jHostEvent_t end);

ncclResult_t nccl4jHostMemcpyAsync(void* target, const void* source, size_t bytes, cudaStream_t stream);
/* free() when all that is in any stream now is done: at once, or later in another thread. */
ncclResult_t nccl4jHostFree(void* memory);

#ifdef __cplusplus
}
#endif

#endif

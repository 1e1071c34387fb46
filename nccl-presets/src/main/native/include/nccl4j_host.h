/*
 * nccl4j_host.h: the host engine's functions besides NCCL's API: streams, events and copies, which CUDA provides on
 * GPUs.
 *
 * The rules are CUDA's. Work in one stream runs in order; work in several streams runs concurrently, unless events
 * order it. The default stream is 0 (1 and 2 are equivalent). Each thread has its own default stream, and no stream
 * waits for another without an event. Operations of blocking communicators in the default stream, and copies, are
 * complete when their call returns; in all other streams they are only enqueued.
 *
 * All functions may be called from any thread. They return an ncclResult_t; ncclGetLastError(NULL) returns the text.
 */
#ifndef NCCL4J_HOST_H_
#define NCCL4J_HOST_H_

#include <nccl.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct nccl4jHostEvent* nccl4jHostEvent_t;

const char* nccl4jHostEngineVersion(void);

/* Returns the number of arguments of ncclAlltoAllv: 11, or 10 if NCCL4J_HOST_ALLTOALLV is 10. */
int nccl4jHostAlltoAllvArguments(void);

ncclResult_t nccl4jHostStreamCreate(cudaStream_t* stream);
/* Work that is already in the stream runs to its end. */
ncclResult_t nccl4jHostStreamDestroy(cudaStream_t stream);
/*
 * Returns ncclSuccess if all work is done, ncclInProgress if not, or the error of an operation in the stream whose
 * communicator was not aborted, destroyed or revoked since.
 */
ncclResult_t nccl4jHostStreamQuery(cudaStream_t stream);
/* Waits until all work is done, and returns as the query. */
ncclResult_t nccl4jHostStreamSynchronize(cudaStream_t stream);
/* As above, for about so many seconds at most: then ncclInProgress. The work continues. */
ncclResult_t nccl4jHostStreamSynchronizeFor(cudaStream_t stream, double seconds);
/*
 * Returns the address of a number. While it is 0, nccl4jHostStreamSynchronize would return ncclSuccess at once for each created
 * stream. To be read as an atomic number with acquire order; valid until the process ends.
 */
const int* nccl4jHostBusyStreams(void);
/* Later work of the stream waits for the work before the event. */
ncclResult_t nccl4jHostStreamWaitEvent(cudaStream_t stream, nccl4jHostEvent_t event);

/* A position in a stream. Recording an event again replaces the position. */
ncclResult_t nccl4jHostEventCreate(nccl4jHostEvent_t* event);
ncclResult_t nccl4jHostEventDestroy(nccl4jHostEvent_t event);
ncclResult_t nccl4jHostEventRecord(nccl4jHostEvent_t event, cudaStream_t stream);
ncclResult_t nccl4jHostEventQuery(nccl4jHostEvent_t event);
ncclResult_t nccl4jHostEventSynchronize(nccl4jHostEvent_t event);
ncclResult_t nccl4jHostEventElapsedTime(double* seconds, nccl4jHostEvent_t start, nccl4jHostEvent_t end);

/*
 * Graphs, by CUDA's rules: from the begin of a capture, the work of a stream is recorded and does not run. Another stream joins by
 * waiting for an event of the capture, and the first stream must wait for it before the end. Waits for captured streams and
 * events, and queries of them, are refused; then the end fails. The default stream cannot be captured. The memory of the work and the
 * communicators must exist at each launch. Launches of one graph never overlap. A scalar that ncclRedOpCreatePreMulSum reads
 * from memory is read at each launch.
 */
typedef struct nccl4jHostGraph* nccl4jHostGraph_t;

ncclResult_t nccl4jHostStreamBeginCapture(cudaStream_t stream);
/* Ends the capture, and makes a graph. After a failure the stream is not captured any more, and there is no graph. */
ncclResult_t nccl4jHostStreamEndCapture(cudaStream_t stream, nccl4jHostGraph_t* graph);
/* Sets the number to 1 or 0. */
ncclResult_t nccl4jHostStreamIsCapturing(cudaStream_t stream, int* capturing);
/* Begins the work behind the work of the stream; captured, too, if the stream is being captured. */
ncclResult_t nccl4jHostGraphLaunch(nccl4jHostGraph_t graph, cudaStream_t stream);
/* Launches that have begun run to their end. */
ncclResult_t nccl4jHostGraphDestroy(nccl4jHostGraph_t graph);

ncclResult_t nccl4jHostMemcpyAsync(void* target, const void* source, size_t bytes, cudaStream_t stream);
/* Calls free() when all present work of all streams is done: at once, or later in another thread. */
ncclResult_t nccl4jHostFree(void* memory);

#ifdef __cplusplus
}
#endif

#endif

/*
 * VCCL's ncclAlltoAllv beside a group of ncclSend and ncclRecv, in C, one process for each GPU: what
 * `nccl4j perf alltoallv --spread 0` with and without `-R 2` does in Java. Every rank sends the same to every rank.
 *
 *   nvcc -O2 -o alltoallv alltoallv.cu -lnccl -lpthread
 *   LD_LIBRARY_PATH=$VCCL ./alltoallv RANKS FORM LEAST MOST FACTOR     (FORM: 10 or 11 arguments; sizes in bytes)
 */
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <nccl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CUDA(call) do { cudaError_t result_ = (call); if (result_) { fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(result_)); _exit(1); } } while (0)
#define NCCL(call) do { ncclResult_t result_ = (call); if (result_) { fprintf(stderr, "%s: %s\n", #call, ncclGetErrorString(result_)); _exit(1); } } while (0)

typedef ncclResult_t (*Ten)(const void*, const size_t*, const size_t*, void*, const size_t*, const size_t*, const void*,
    ncclDataType_t, ncclComm_t, cudaStream_t);
typedef ncclResult_t (*Eleven)(const void*, const size_t*, const size_t*, void*, const size_t*, const size_t*, void*, size_t,
    ncclDataType_t, ncclComm_t, cudaStream_t);

struct Shared {
  ncclUniqueId id;
  pthread_barrier_t barrier;
  double seconds[64];
};

static const int ITERATIONS = 20;
static int ranks, form;

static double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}

struct Rank {
  Shared* shared;
  int rank;
  ncclComm_t comm;
  cudaStream_t stream;
  void *send, *recv, *ready;
  size_t* matrices;  // counts and displacements of what is sent, and of what is received, each ranks x ranks
  void* function;

  void fill(size_t count) {
    size_t cells = (size_t)ranks * ranks;
    for (int from = 0; from < ranks; from++)
      for (int to = 0; to < ranks; to++) {
        size_t cell = (size_t)from * ranks + to;
        matrices[cell] = matrices[2 * cells + cell] = count;
        matrices[cells + cell] = matrices[3 * cells + cell] = to * count;
      }
  }

  void native() {
    size_t cells = (size_t)ranks * ranks;
    const size_t *sends = matrices, *places = matrices + cells, *receives = matrices + 2 * cells, *to = matrices + 3 * cells;
    // VCCL writes into receive buffers before their ranks have made the call: all ranks wait for each other first.
    NCCL(ncclAllReduce(ready, ready, 1, ncclInt8, ncclMax, comm, stream));
    if (form == 10) NCCL(((Ten)function)(send, sends, places, recv, receives, to, nullptr, ncclFloat32, comm, stream));
    else NCCL(((Eleven)function)(send, sends, places, recv, receives, to, nullptr, 0, ncclFloat32, comm, stream));
  }

  void grouped(size_t count) {
    NCCL(ncclGroupStart());
    for (int peer = 0; peer < ranks; peer++) {
      NCCL(ncclSend((float*)send + peer * count, count, ncclFloat32, peer, comm, stream));
      NCCL(ncclRecv((float*)recv + peer * count, count, ncclFloat32, peer, comm, stream));
    }
    NCCL(ncclGroupEnd());
  }

  double time(size_t count, bool inOne) {
    double seconds = 0;
    // A first call, not timed.
    for (int turn = 0; turn < 2; turn++) {
      CUDA(cudaStreamSynchronize(stream));
      pthread_barrier_wait(&shared->barrier);
      double start = now();
      for (int i = 0; i < ITERATIONS; i++) {
        if (inOne) native();
        else grouped(count);
      }
      while (cudaStreamQuery(stream) == cudaErrorNotReady) {}
      CUDA(cudaStreamSynchronize(stream));
      seconds = (now() - start) / ITERATIONS;
    }
    shared->seconds[rank] = seconds;
    pthread_barrier_wait(&shared->barrier);
    double sum = 0;
    for (int r = 0; r < ranks; r++) sum += shared->seconds[r];
    pthread_barrier_wait(&shared->barrier);
    return sum / ranks;
  }
};

static void run(Shared* shared, int rank, size_t least, size_t most, size_t factor) {
  Rank r = {};
  r.shared = shared;
  r.rank = rank;
  CUDA(cudaSetDevice(rank));
  if (rank == 0) NCCL(ncclGetUniqueId(&shared->id));
  pthread_barrier_wait(&shared->barrier);
  NCCL(ncclCommInitRank(&r.comm, ranks, shared->id, rank));
  CUDA(cudaStreamCreateWithFlags(&r.stream, cudaStreamNonBlocking));
  NCCL(ncclMemAlloc(&r.send, most));
  NCCL(ncclMemAlloc(&r.recv, most));
  CUDA(cudaMalloc(&r.ready, 1));
  ncclWindow_t windows[2];
  NCCL(ncclCommWindowRegister(r.comm, r.send, most, &windows[0], NCCL_WIN_COLL_SYMMETRIC));
  NCCL(ncclCommWindowRegister(r.comm, r.recv, most, &windows[1], NCCL_WIN_COLL_SYMMETRIC));
  r.matrices = (size_t*)malloc(4 * sizeof(size_t) * ranks * ranks);
  r.function = dlsym(RTLD_DEFAULT, "ncclAlltoAllv");
  if (!r.function) {
    fprintf(stderr, "the library lacks ncclAlltoAllv\n");
    _exit(1);
  }
  for (size_t bytes = least; bytes <= most; bytes *= factor) {
    size_t count = bytes / sizeof(float) / ranks;
    r.fill(count);
    double native = r.time(count, true), grouped = r.time(count, false);
    if (rank == 0) printf("SIZE %zu native_us %.2f grouped_us %.2f ratio %.3f\n", bytes, native * 1e6, grouped * 1e6, native / grouped);
  }
  fflush(stdout);
  for (ncclWindow_t window : windows) NCCL(ncclCommWindowDeregister(r.comm, window));
  NCCL(ncclCommDestroy(r.comm));
}

int main(int count, char** arguments) {
  if (count != 6) {
    fprintf(stderr, "usage: alltoallv RANKS FORM LEAST MOST FACTOR\n");
    return 2;
  }
  ranks = atoi(arguments[1]);
  form = atoi(arguments[2]);
  size_t factor = strtoull(arguments[5], nullptr, 10);
  if (ranks < 1 || ranks > 64 || (form != 10 && form != 11) || factor < 2) {
    fprintf(stderr, "alltoallv: 1 to 64 ranks, a form of 10 or 11 arguments, and a factor of at least 2\n");
    return 2;
  }
  Shared* shared = (Shared*)mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&shared->barrier, &attributes, ranks);
  for (int rank = 0; rank < ranks; rank++)
    if (fork() == 0) {
      run(shared, rank, strtoull(arguments[3], nullptr, 10), strtoull(arguments[4], nullptr, 10), factor);
      _exit(0);
    }
  int code = 0, status;
  while (wait(&status) > 0)
    if (!WIFEXITED(status) || WEXITSTATUS(status)) code = 1;
  return code;
}

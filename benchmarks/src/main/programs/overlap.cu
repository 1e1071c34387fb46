/*
 * What `nccl4j overlap` does, in C++: products of matrices in one stream, all-reduces in another, alone and together.
 * nvcc -O2 -o overlap overlap.cu -lnccl -lcublas && ./overlap [-g GPUS] [-s ORDER] [-p PRODUCTS] [-m MIB] [-a ALL-REDUCES] [-r ROUNDS]
 */
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#define CHECK(call)                                           \
  do {                                                        \
    int result = (int)(call);                                 \
    if (result != 0) {                                        \
      fprintf(stderr, "overlap: %s is %d\n", #call, result);  \
      exit(1);                                                \
    }                                                         \
  } while (0)

namespace {

int gpus = 0, order = 8192, products = 20, allReduces = 20, rounds = 9;
size_t mebibytes = 512;

class Barrier {
 public:
  explicit Barrier(int count) : count_(count) {}

  void await() {
    std::unique_lock<std::mutex> lock(mutex_);
    long mine = generation_;
    if (++waiting_ == count_) {
      waiting_ = 0;
      generation_++;
      all_.notify_all();
    } else {
      all_.wait(lock, [&] { return generation_ != mine; });
    }
  }

 private:
  const int count_;
  int waiting_ = 0;
  long generation_ = 0;
  std::mutex mutex_;
  std::condition_variable all_;
};

struct Rank {
  int rank;
  ncclComm_t comm;
  cudaStream_t compute, communication;
  float *data, *a, *b, *c;
  cublasHandle_t context;

  static float* zeros(size_t count) {
    float* memory;
    CHECK(cudaMalloc((void**)&memory, count * sizeof(float)));
    CHECK(cudaMemset(memory, 0, count * sizeof(float)));
    return memory;
  }

  void open() {
    CHECK(cudaSetDevice(rank));
    CHECK(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&communication, cudaStreamNonBlocking));
    data = zeros((mebibytes << 20) / sizeof(float));
    a = zeros((size_t)order * order);
    b = zeros((size_t)order * order);
    c = zeros((size_t)order * order);
    CHECK(cublasCreate(&context));
    CHECK(cublasSetStream(context, compute));
    CHECK(cublasSetMathMode(context, CUBLAS_TF32_TENSOR_OP_MATH));
  }

  double time(int someProducts, int someAllReduces, Barrier& barrier, std::vector<double>& seconds) {
    barrier.await();
    auto start = std::chrono::steady_clock::now();
    const float one = 1, zero = 0;
    for (int i = 0; i < std::max(someProducts, someAllReduces); i++) {
      if (i < someAllReduces) {
        CHECK(ncclAllReduce(data, data, (mebibytes << 20) / sizeof(float), ncclFloat, ncclSum, comm, communication));
      }
      if (i < someProducts) {
        CHECK(cublasSgemm(context, CUBLAS_OP_N, CUBLAS_OP_N, order, order, order, &one, a, order, b, order, &zero, c,
                          order));
      }
    }
    CHECK(cudaStreamSynchronize(compute));
    CHECK(cudaStreamSynchronize(communication));
    seconds[rank] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    barrier.await();
    double slowest = *std::max_element(seconds.begin(), seconds.end());
    barrier.await();
    return slowest;
  }

  void run(Barrier& barrier, std::vector<double>& seconds, double* medians) {
    open();
    std::vector<double> times[3];
    for (int round = -1; round < rounds; round++) {
      for (int what = 0; what < 3; what++) {
        double taken = time(what != 1 ? products : 0, what != 0 ? allReduces : 0, barrier, seconds);
        if (round >= 0) times[what].push_back(taken);
      }
    }
    for (int what = 0; what < 3; what++) {
      std::sort(times[what].begin(), times[what].end());
      if (rank == 0) medians[what] = times[what][rounds / 2];
    }
  }
};

}  // namespace

int main(int argc, char** argv) {
  CHECK(cudaGetDeviceCount(&gpus));
  for (int option; (option = getopt(argc, argv, "g:s:p:m:a:r:")) != -1;) {
    int value = optarg ? atoi(optarg) : 0;
    switch (option) {
      case 'g': gpus = value; break;
      case 's': order = value; break;
      case 'p': products = value; break;
      case 'm': mebibytes = (size_t)value; break;
      case 'a': allReduces = value; break;
      case 'r': rounds = value; break;
      default: return 2;
    }
  }
  std::vector<ncclComm_t> comms(gpus);
  CHECK(ncclCommInitAll(comms.data(), gpus, NULL));
  Barrier barrier(gpus);
  std::vector<double> seconds(gpus);
  std::vector<Rank> ranks(gpus);
  std::vector<std::thread> threads;
  double medians[3];
  for (int r = 0; r < gpus; r++) {
    ranks[r].rank = r;
    ranks[r].comm = comms[r];
    threads.emplace_back([&, r] { ranks[r].run(barrier, seconds, medians); });
  }
  for (auto& thread : threads) thread.join();
  printf("%d GPUs: products %.3f ms, all-reduces %.3f ms, together %.3f ms: overlap %.1f %%\n", gpus, medians[0] * 1e3,
         medians[1] * 1e3, medians[2] * 1e3,
         100 * (medians[0] + medians[1] - medians[2]) / std::min(medians[0], medians[1]));
  for (auto comm : comms) CHECK(ncclCommDestroy(comm));
}

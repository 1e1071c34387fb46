// memory.cpp: makes, uses and loses communicators of the host engine, over and over, and prints how many more bytes malloc has
// handed out after so many rounds as after as many before. It is no JVM, whose own bytes come and go: here each one counts.
#include <malloc.h>
#include <nccl.h>
#include <nccl4j_host.h>
#include <unistd.h>

#include "checks.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <thread>
#include <vector>

namespace {

constexpr int kRanks = 3;
constexpr size_t kCount = 5000;
constexpr size_t kWindow = 8192;
constexpr int kRoundsOfAllKinds = 60;

#define FAILS(call) require((call) != ncclSuccess, __LINE__, #call)

template <class Code>
void inThreads(int count, Code code) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; i++) threads.emplace_back(code, i);
  for (std::thread& thread : threads) thread.join();
}

class Rank {
 public:
  Rank(int rank, int round, std::atomic<int>& ready)
      : rank_(rank), round_(round), blocks_(round % 3 != 1), ready_(ready) {
    OK(nccl4jHostStreamCreate(&stream_));
    OK(nccl4jHostEventCreate(&event_));
  }

  ~Rank() {
    OK(nccl4jHostEventDestroy(event_));
    OK(nccl4jHostStreamDestroy(stream_));
  }

  void run(const ncclUniqueId& id) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = blocks_ ? 1 : 0;
    done(ncclCommInitRankConfig(&comm_, kRanks, id, rank_, &config));
    operate();
    refused();
    void* memory = nullptr;
    OK(ncclMemAlloc(&memory, kWindow));
    if (blocks_) window(memory);
    split();
    end();
    OK(ncclMemFree(memory));
  }

 private:
  /** The end of a call that may go on after it has returned. */
  static ncclResult_t await(ncclComm_t comm, ncclResult_t result) {
    while (result == ncclInProgress) {
      usleep(100);
      if (ncclCommGetAsyncError(comm, &result) != ncclSuccess) return ncclInternalError;
    }
    return result;
  }
  void done(ncclResult_t result) { OK(await(comm_, result)); }
  void finish() { OK(nccl4jHostStreamSynchronize(stream_)); }

  ncclResult_t sum(ncclComm_t comm, ncclRedOp_t op = ncclSum) {
    return await(comm, ncclAllReduce(send_.data(), recv_.data(), kCount, ncclFloat, op, comm, stream_));
  }

  void operate() {
    float half = 0.5f;
    ncclRedOp_t halves;
    OK(ncclRedOpCreatePreMulSum(&halves, &half, ncclFloat, ncclScalarHostImmediate, comm_));
    OK(sum(comm_, halves));
    finish();
    if (round_ % 2 == 0) OK(ncclRedOpDestroy(halves, comm_));
    OK(nccl4jHostMemcpyAsync(recv_.data(), send_.data(), 100, stream_));
    OK(nccl4jHostEventRecord(event_, stream_));
    OK(nccl4jHostStreamWaitEvent(stream_, event_));
    finish();
  }

  /** A call with a wrong argument, and a group that is dropped because of another. */
  void refused() {
    FAILS(ncclAllReduce(send_.data(), recv_.data(), 1, static_cast<ncclDataType_t>(77), ncclSum, comm_, stream_));
    ncclGetLastError(comm_);
    OK(ncclGroupStart());
    OK(ncclAllReduce(send_.data(), recv_.data(), 1, ncclFloat, ncclSum, comm_, stream_));
    FAILS(ncclSend(send_.data(), 1, ncclFloat, kRanks, comm_, stream_));
    FAILS(ncclGroupEnd());
    // One that does not block tells it again when it is asked.
    if (!blocks_) await(comm_, ncclInProgress);
  }

  /** Left to the communicator in every other round. */
  void window(void* memory) {
    ncclWindow_t window;
    OK(ncclCommWindowRegister(comm_, memory, kWindow, &window, NCCL_WIN_COLL_SYMMETRIC));
    OK(ncclPutSignal(memory, 100, ncclFloat, (rank_ + 1) % kRanks, window, kWindow / 2, 0, 0, 0, comm_, stream_));
    ncclWaitSignalDesc_t signal{};
    signal.opCnt = 1;
    signal.peer = (rank_ + kRanks - 1) % kRanks;
    OK(ncclWaitSignal(1, &signal, comm_, stream_));
    finish();
    if (round_ % 2 == 0) OK(ncclCommWindowDeregister(comm_, window));
  }

  void split() {
    bool alone = rank_ == kRanks - 1 && round_ % 4 == 0;
    ncclComm_t part = nullptr;
    done(ncclCommSplit(comm_, alone ? NCCL_SPLIT_NOCOLOR : 0, 0, &part, nullptr));
    if (part != nullptr) useAndDestroy(part);
  }

  void useAndDestroy(ncclComm_t comm) {
    OK(await(comm, ncclInProgress));
    OK(sum(comm));
    finish();
    OK(ncclCommDestroy(comm));
  }

  void end() {
    // One that still asks for what it has called last would learn of the others' end instead.
    ready_++;
    while (ready_ < kRanks) usleep(100);
    switch (round_ % 5) {
      case 0: done(ncclCommFinalize(comm_)); break;
      case 1:
        if (rank_ < kRanks - 1) goOn();
        else OK(ncclCommAbort(comm_));
        return;
      case 2: revoke(); break;
      case 3: grow(); break;
      case 4:
        // With work that will never be done.
        if (rank_ == 0 && !blocks_) ncclRecv(recv_.data(), 1, ncclFloat, 1, comm_, stream_);
        OK(ncclCommAbort(comm_));
        nccl4jHostStreamSynchronize(stream_);
        return;
    }
    OK(ncclCommDestroy(comm_));
  }

  void goOn() {
    // One of them finds the other gone, be it when it begins or later.
    bool lost = sum(comm_) != ncclSuccess;
    FAILS(lost ? ncclRemoteError : nccl4jHostStreamSynchronize(stream_));
    ncclComm_t part = nullptr;
    ncclResult_t failure = ncclCommSplit(comm_, 0, 0, &part, nullptr);
    FAILS(part == nullptr ? failure : await(part, failure));
    if (part != nullptr) OK(ncclCommAbort(part));
    int gone = kRanks - 1;
    ncclComm_t rest = nullptr;
    ncclResult_t result = ncclCommShrink(comm_, &gone, 1, &rest, nullptr, NCCL_SHRINK_ABORT);
    OK(await(rest, result));
    OK(ncclCommAbort(comm_));
    useAndDestroy(rest);
  }

  void revoke() {
    OK(ncclCommRevoke(comm_, NCCL_REVOKE_DEFAULT));
    ncclComm_t anew = nullptr;
    ncclResult_t result = ncclCommSplit(comm_, 0, rank_, &anew, nullptr);
    OK(await(anew, result));
    OK(ncclCommDestroy(anew));
  }

  /** In every other round nobody uses the id. */
  void grow() {
    ncclUniqueId id;
    if (rank_ == 0) OK(ncclCommGetUniqueId(comm_, &id));
    if (round_ % 2 == 0) return;
    std::thread newcomer;
    if (rank_ == 0) {
      newcomer = std::thread([id] {
        ncclComm_t grown;
        OK(ncclCommGrow(nullptr, kRanks + 1, &id, kRanks, &grown, nullptr));
        OK(ncclCommDestroy(grown));
      });
    }
    ncclComm_t grown = nullptr;
    ncclResult_t result = ncclCommGrow(comm_, kRanks + 1, nullptr, -1, &grown, nullptr);
    OK(await(grown, result));
    OK(ncclCommDestroy(grown));
    if (newcomer.joinable()) newcomer.join();
  }

  const int rank_;
  const int round_;
  const bool blocks_;
  std::atomic<int>& ready_;  // to end
  ncclComm_t comm_ = nullptr;
  cudaStream_t stream_ = nullptr;
  nccl4jHostEvent_t event_ = nullptr;
  std::vector<float> send_ = std::vector<float>(kCount, 1.0f);
  std::vector<float> recv_ = std::vector<float>(kCount);
};

/** Two ranks of the same number. */
void failedInit() {
  ncclUniqueId id;
  OK(ncclGetUniqueId(&id));
  inThreads(2, [&](int) {
    ncclComm_t comm;
    FAILS(ncclCommInitRank(&comm, 2, id, 0));
    ncclGetLastError(nullptr);
  });
}

void rounds() {
  for (int round = 0; round < kRoundsOfAllKinds; round++) {
    if (round % 7 == 0) failedInit();
    ncclUniqueId id;
    OK(ncclGetUniqueId(&id));
    std::atomic<int> ready{0};
    inThreads(kRanks, [&](int rank) { Rank(rank, round, ready).run(id); });
  }
}

long threads() {
  auto all = std::filesystem::directory_iterator("/proc/self/task");
  return std::distance(begin(all), end(all));
}

/** Once the engine's own threads have ended. */
long inUse() {
  for (int i = 0; i < 10'000 && threads() > 1; i++) usleep(1000);
  require(threads() == 1, __LINE__, "threads are left");
  return static_cast<long>(mallinfo2().uordblks);
}

}  // namespace

int main() {
  rounds();
  long before = inUse();
  rounds();
  printf("%ld bytes more\n", inUse() - before);
  return 0;
}

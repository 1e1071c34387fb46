// nomemory.cpp: two ranks in threads, for which one allocation fails, or all from one on: each in turn. A process of its own for
// each; prints those that end by a signal, hang, or fail without saying that memory was the reason.
#include <nccl.h>
#include <nccl4j_host.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checks.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <thread>

namespace {

constexpr unsigned kMostSeconds = 20;
constexpr size_t kCount = 200'000;
constexpr size_t kWindow = 8192;

std::atomic<long> allocations{-1};  // negative: not counted
long failing = 0;
bool failsFromThenOn = false;

float in[2][kCount], out[2][kCount];
ncclResult_t results[2];
char texts[2][200];

#define TRY(call) \
  if (ncclResult_t result = (call)) return result

ncclResult_t work(int rank, ncclComm_t comm) {
  float* mine = in[rank];
  float* got = out[rank];
  int other = 1 - rank;
  TRY(ncclAllReduce(mine, got, 1, ncclFloat, ncclSum, comm, nullptr));
  TRY(ncclAllReduce(mine, got, kCount, ncclFloat, ncclSum, comm, nullptr));
  cudaStream_t stream = nullptr;
  TRY(nccl4jHostStreamCreate(&stream));
  for (int i = 0; i < 3; i++) {
    TRY(ncclAllReduce(mine, got, kCount, ncclFloat, ncclSum, comm, stream));
    TRY(ncclGroupStart());
    ncclSend(mine, 10, ncclFloat, other, comm, stream);
    ncclRecv(got, 10, ncclFloat, other, comm, stream);
    TRY(ncclGroupEnd());
  }
  TRY(nccl4jHostStreamSynchronize(stream));
  void* memory = nullptr;
  TRY(ncclMemAlloc(&memory, kWindow));
  ncclWindow_t window = nullptr;
  TRY(ncclCommWindowRegister(comm, memory, kWindow, &window, NCCL_WIN_COLL_SYMMETRIC));
  TRY(ncclPutSignal(memory, 100, ncclFloat, other, window, kWindow / 2, 0, 0, 0, comm, stream));
  ncclWaitSignalDesc_t signal{};
  signal.opCnt = 1;
  signal.peer = other;
  TRY(ncclWaitSignal(1, &signal, comm, stream));
  TRY(nccl4jHostStreamSynchronize(stream));
  TRY(ncclCommWindowDeregister(comm, window));
  return ncclSuccess;
}

/** Exits with 0 if no allocation failed, 1 if the ranks said why they failed or did not need it, else 2. */
[[noreturn]] void runRanks() {
  alarm(kMostSeconds);
  ncclUniqueId id;
  OK(ncclGetUniqueId(&id));
  std::atomic<int> ready{0};
  auto run = [&](int rank) {
    ncclComm_t comm;
    OK(ncclCommInitRank(&comm, 2, id, rank));
    ready++;
    while (ready < 2) std::this_thread::yield();
    if (rank == 0) allocations = 0;
    while (allocations < 0) std::this_thread::yield();
    results[rank] = work(rank, comm);
    strncpy(texts[rank], ncclGetLastError(comm), sizeof texts[rank] - 1);
    if (results[rank] != ncclSuccess) ncclCommAbort(comm);
  };
  std::thread first(run, 0), second(run, 1);
  first.join();
  second.join();
  if (allocations <= failing) _exit(0);
  bool failed = results[0] != ncclSuccess || results[1] != ncclSuccess;
  bool said = results[0] == ncclSystemError || results[1] == ncclSystemError;
  if (!failed || said) _exit(1);
  printf("%d %s, %d %s\n", results[0], texts[0], results[1], texts[1]);
  fflush(stdout);
  _exit(2);
}

void refuseInTurn(bool fromThenOn, long step) {
  failsFromThenOn = fromThenOn;
  // The number of allocations depends on which rank is first.
  int unneeded = 0;
  for (failing = 0; unneeded < 3; failing += step) {
    pid_t pid = fork();
    if (pid == 0) runRanks();
    int status = 0;
    waitpid(pid, &status, 0);
    if (WIFSIGNALED(status)) printf("allocation %ld%s: signal %d\n", failing, fromThenOn ? " and on" : "", WTERMSIG(status));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 2) printf("allocation %ld: another reason\n", failing);
    unneeded = WIFEXITED(status) && WEXITSTATUS(status) == 0 ? unneeded + 1 : 0;
  }
}

}  // namespace

// The engine calls these: the symbols of a program come before those of the C++ library.
void* operator new(size_t size) {
  if (allocations >= 0) {
    long number = allocations++;
    if (number == failing || (failsFromThenOn && number > failing)) throw std::bad_alloc();
  }
  void* memory = malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { free(memory); }
void operator delete(void* memory, size_t) noexcept { free(memory); }

int main() {
  refuseInTurn(false, 1);
  refuseInTurn(true, 5);
  puts("done");
  return 0;
}

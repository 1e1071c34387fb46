// stress.cpp: random work of several ranks that are threads of this process, for ThreadSanitizer and AddressSanitizer.
//
//     stress SECONDS [SEED]
//
// Each round creates communicators and runs the same random calls at all ranks: collectives, groups of sends and receives,
// puts, splits, in the default stream and in created ones. In some rounds the ranks are on two hosts, as they believe, and use
// TCP. In some rounds a thread that belongs to no rank aborts one of them in the middle, or revokes its communicator. Rounds
// without that check every result. Prints the number of rounds.

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <algorithm>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "base/abi.h"

namespace {

using Random = std::mt19937;

[[noreturn]] void giveUp(const char* what) {
  fprintf(stderr, "stress: %s: %s\n", what, ncclGetLastError(nullptr));
  _Exit(1);
}

double seconds() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/** The memory of windows: puts to it end with the communicators. */
struct WindowMemory {
  std::mutex mutex;
  std::vector<void*> all;

  void keep(void* memory) {
    std::lock_guard<std::mutex> lock(mutex);
    all.push_back(memory);
  }

  void free() {
    for (void* memory : all) ncclMemFree(memory);
    all.clear();
  }
} windowMemory;

/** The calls of one rank. All ranks draw the same numbers. */
class Rank {
 public:
  Rank(ncclComm_t comm, int rank, int ranks, unsigned seed, bool disturbed, bool onOneHost, int ancestors = 0)
      : comm_(comm), rank_(rank), ranks_(ranks), random_(seed), disturbed_(disturbed), onOneHost_(onOneHost), ancestors_(ancestors) {}

  /** Runs some calls; false after a failure. */
  bool run(int calls) {
    if (draw(2) == 0 && !succeeds(nccl4jHostStreamCreate(&stream_), "nccl4jHostStreamCreate")) return false;
    bool lives = true;
    for (int i = 0; i < calls && lives; i++) lives = call();
    if (stream_ != nullptr) nccl4jHostStreamDestroy(stream_);
    return lives;
  }

 private:
  unsigned draw(unsigned limit) { return random_() % limit; }

  bool succeeds(ncclResult_t result, const char* what) {
    if (result == ncclSuccess) return true;
    if (!disturbed_) giveUp(what);
    return false;
  }

  bool call() {
    // From nothing to more than a ring.
    static const size_t counts[] = {0, 1, 2, 7, 100, 5'000, 20'000, 400'000};
    size_t count = counts[draw(draw(4) == 0 ? 8 : 6)];
    switch (draw(8)) {
      case 0:
      case 1: return allReduce(count);
      case 2: return allGather(count);
      case 3: return messages(count);
      case 4: return reduceScatter(count);
      case 5: return split();
      // Shared memory alone has room for them.
      case 6: return onOneHost_ ? bufferedSends() : messages(count);
      default: return puts();
    }
  }

  bool done(ncclResult_t result, const char* what) {
    return succeeds(result, what) && (stream_ == nullptr || succeeds(nccl4jHostStreamSynchronize(stream_), what));
  }

  void check(bool right, const char* what) {
    if (!right && !disturbed_) giveUp(what);
  }

  bool allReduce(size_t count) {
    std::vector<int> in(count, rank_ + 1), out(count);
    if (!done(ncclAllReduce(in.data(), out.data(), count, ncclInt32, ncclSum, comm_, stream_), "AllReduce")) return false;
    for (int one : out) check(one == ranks_ * (ranks_ + 1) / 2, "a result of AllReduce is wrong");
    return true;
  }

  bool allGather(size_t count) {
    std::vector<short> in(count, static_cast<short>(rank_)), out(count * static_cast<size_t>(ranks_));
    if (!done(ncclAllGather(in.data(), out.data(), 2 * count, ncclInt8, comm_, stream_), "AllGather")) return false;
    for (size_t i = 0; i < out.size(); i++) {
      check(out[i] == static_cast<short>(i / count), "a result of AllGather is wrong");
    }
    return true;
  }

  bool reduceScatter(size_t count) {
    std::vector<float> in(count * static_cast<size_t>(ranks_), 2), out(count);
    ncclResult_t result = ncclReduceScatter(in.data(), out.data(), count, ncclFloat32, ncclProd, comm_, stream_);
    if (!done(result, "ReduceScatter")) return false;
    for (float one : out) check(one == static_cast<float>(1 << ranks_), "a result of ReduceScatter is wrong");
    return true;
  }

  bool messages(size_t count) {
    size_t all = static_cast<size_t>(ranks_);
    std::vector<std::vector<int>> in(all, std::vector<int>(count, rank_)), out(all, std::vector<int>(count));
    ncclGroupStart();
    for (size_t peer = 0; peer < all; peer++) {
      ncclRecv(out[peer].data(), count, ncclInt32, static_cast<int>(peer), comm_, stream_);
      ncclSend(in[peer].data(), count, ncclInt32, static_cast<int>(peer), comm_, stream_);
    }
    if (!done(ncclGroupEnd(), "GroupEnd")) return false;
    for (size_t peer = 0; peer < all; peer++) {
      for (int one : out[peer]) check(one == static_cast<int>(peer), "a result of Recv is wrong");
    }
    return true;
  }

  /** Sends that end before their Recv, with a collective between. */
  bool bufferedSends() {
    // The first Send to a rank waits, and so does every one without shared memory.
    const char* shared = getenv("NCCL4J_HOST_SHARED_MEMORY");
    if (ranks_ == 1 || (shared != nullptr && shared[0] == '0')) return true;
    if (!messages(1)) return false;
    size_t sends = 1 + draw(8), count = draw(65);
    int next = (rank_ + 1) % ranks_, previous = (rank_ + ranks_ - 1) % ranks_;
    std::vector<int> in(count), out(count);
    // Around the ring in one group, whose ranks come late.
    for (unsigned i = draw(8); i > 0; i--) {
      ncclGroupStart();
      ncclRecv(out.data(), count, ncclInt32, previous, comm_, stream_);
      ncclSend(in.data(), count, ncclInt32, next, comm_, stream_);
      if (!done(ncclGroupEnd(), "GroupEnd")) return false;
    }
    for (size_t i = 0; i < sends; i++) {
      std::fill(in.begin(), in.end(), rank_ + static_cast<int>(i));
      if (!done(ncclSend(in.data(), count, ncclInt32, next, comm_, stream_), "Send")) return false;
    }
    if (draw(2) == 0 && !allReduce(100)) return false;
    for (size_t i = 0; i < sends; i++) {
      if (!done(ncclRecv(out.data(), count, ncclInt32, previous, comm_, stream_), "Recv")) return false;
      for (int one : out) check(one == previous + static_cast<int>(i), "a result of Recv is wrong");
    }
    return true;
  }

  bool split() {
    int color = static_cast<int>(draw(2)) == 0 ? 0 : rank_ % 2;
    // The seeds of children may form a circle.
    if (ancestors_ == 4) return true;
    ncclComm_t child = nullptr;
    if (!succeeds(ncclCommSplit(comm_, color, rank_, &child, nullptr), "CommSplit")) return false;
    int rank = 0, ranks = 0;
    ncclCommUserRank(child, &rank);
    ncclCommCount(child, &ranks);
    bool lives = Rank(child, rank, ranks, static_cast<unsigned>(draw(1000)), disturbed_, onOneHost_, ancestors_ + 1).run(3);
    if (disturbed_) {
      ncclCommAbort(child);
    } else {
      lives &= succeeds(ncclCommDestroy(child), "CommDestroy");
    }
    return lives;
  }

  bool puts() {
    constexpr size_t kCount = 5 << 10;
    void* memory = nullptr;
    ncclWindow_t window = nullptr;
    if (!succeeds(ncclMemAlloc(&memory, 2 * kCount * sizeof(int)), "MemAlloc")) return false;
    windowMemory.keep(memory);
    int* in = static_cast<int*>(memory);
    int* out = in + kCount;
    std::fill(in, out, rank_);
    std::fill(out, out + kCount, -1);
    ncclResult_t result =
        ncclCommWindowRegister(comm_, memory, 2 * kCount * sizeof(int), &window, NCCL_WIN_COLL_SYMMETRIC);
    if (!succeeds(result, "CommWindowRegister")) return false;
    int next = (rank_ + 1) % ranks_, previous = (rank_ + ranks_ - 1) % ranks_;
    ncclWaitSignalDesc_t wait{};
    wait.opCnt = 1;
    wait.peer = previous;
    bool lives =
        succeeds(
            ncclPutSignal(in, kCount, ncclInt32, next, window, kCount * sizeof(int), 0, 0, 0, comm_, stream_),
            "PutSignal") &&
        done(ncclWaitSignal(1, &wait, comm_, stream_), "WaitSignal");
    // As on a GPU, the wait of an aborted communicator ends without an error, and the put may still be arriving.
    if (!disturbed_) check(std::all_of(out, out + kCount, [=](int one) { return one == previous; }), "a put is wrong");
    return lives && succeeds(ncclCommWindowDeregister(comm_, window), "CommWindowDeregister");
  }

  const ncclComm_t comm_;
  const int rank_;
  const int ranks_;
  Random random_;
  const bool disturbed_;
  const bool onOneHost_;
  const int ancestors_;
  cudaStream_t stream_ = nullptr;
};

/** Creates the communicator of all ranks; every second rank is on another host. */
ncclResult_t initOnTwoHosts(std::vector<ncclComm_t>& comms) {
  ncclUniqueId id;
  setenv("NCCL_HOSTID", "first", 1);
  ncclResult_t result = ncclGetUniqueId(&id);
  if (result != ncclSuccess) return result;
  ncclGroupStart();
  for (size_t rank = 0; rank < comms.size(); rank++) {
    // Read before the call returns.
    setenv("NCCL_HOSTID", rank % 2 == 0 ? "first" : "second", 1);
    ncclCommInitRank(&comms[rank], static_cast<int>(comms.size()), id, static_cast<int>(rank));
  }
  result = ncclGroupEnd();
  unsetenv("NCCL_HOSTID");
  return result;
}

void round(unsigned seed) {
  Random random(seed);
  int ranks = 2 + static_cast<int>(random() % 3);
  int communicators = 1 + static_cast<int>(random() % 2);
  bool disturbed = random() % 3 == 0;
  int victim = static_cast<int>(random() % static_cast<unsigned>(ranks));
  bool revokes = random() % 2 == 0;
  long patience = static_cast<long>(random() % 20'000'000);
  bool onTwoHosts = random() % 3 == 0;

  std::vector<std::vector<ncclComm_t>> comms(static_cast<size_t>(communicators));
  for (std::vector<ncclComm_t>& one : comms) {
    one.resize(static_cast<size_t>(ranks));
    if (onTwoHosts && initOnTwoHosts(one) != ncclSuccess) giveUp("CommInitRank");
    if (!onTwoHosts && ncclCommInitAll(one.data(), ranks, nullptr) != ncclSuccess) giveUp("CommInitAll");
  }
  std::vector<std::thread> threads;
  for (size_t at = 0; at < comms.size(); at++) {
    for (int rank = 0; rank < ranks; rank++) {
      ncclComm_t comm = comms[at][static_cast<size_t>(rank)];
      threads.emplace_back([=] {
        if (!Rank(comm, rank, ranks, seed + static_cast<unsigned>(at), disturbed, !onTwoHosts).run(8) || disturbed) {
          // Another thread may abort this rank at the same time.
          ncclCommAbort(comm);
        } else if (ncclCommDestroy(comm) != ncclSuccess) {
          giveUp("CommDestroy");
        }
      });
    }
  }
  if (disturbed) {
    timespec wait{0, patience};
    nanosleep(&wait, nullptr);
    for (const std::vector<ncclComm_t>& one : comms) {
      ncclComm_t comm = one[static_cast<size_t>(victim)];
      ncclResult_t error = ncclSuccess;
      ncclCommGetAsyncError(comm, &error);
      revokes ? ncclCommRevoke(comm, 0) : ncclCommAbort(comm);
    }
  }
  for (std::thread& thread : threads) thread.join();
  windowMemory.free();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) giveUp("expected SECONDS [SEED]");
  // A rank that leaves in the middle of a split is missed at this deadline.
  setenv("NCCL4J_HOST_INIT_TIMEOUT", "3", 0);
  setenv("NCCL_SOCKET_IFNAME", "=lo", 1);
  double end = seconds() + atof(argv[1]);
  unsigned seed = argc > 2 ? static_cast<unsigned>(atol(argv[2])) : static_cast<unsigned>(time(nullptr));
  printf("stress: seed %u\n", seed);
  fflush(stdout);
  int rounds = 0;
  for (; seconds() < end; rounds++) round(seed + 1000 * static_cast<unsigned>(rounds));
  printf("stress: %d rounds\n", rounds);
  return 0;
}

// group_test.cpp: groups of calls by several ranks of one thread.

#include "api/group.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <future>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "connected.h"
#include "testthread.h"

namespace host {
namespace {

class GroupTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(ncclSuccess, ncclCommInitAll(comms, kRanks, nullptr)); }
  void TearDown() override {
    for (ncclComm_t comm : comms) EXPECT_EQ(ncclSuccess, ncclCommAbort(comm));
  }

  static constexpr int kRanks = 3;
  ncclComm_t comms[kRanks] = {};
};

TEST_F(GroupTest, SendsAndReceivesRunInTheOrderOfTheCalls) {
  int sent[kRanks][2], got[kRanks][2] = {};
  ncclGroupStart();
  for (int rank = 0; rank < kRanks; rank++) {
    for (int i = 0; i < 2; i++) {
      sent[rank][i] = 10 * rank + i;
      ncclSend(&sent[rank][i], 1, ncclInt32, (rank + 1) % kRanks, comms[rank], nullptr);
    }
    for (int& one : got[rank]) ncclRecv(&one, 1, ncclInt32, (rank + kRanks - 1) % kRanks, comms[rank], nullptr);
  }
  ASSERT_EQ(ncclSuccess, ncclGroupEnd());
  for (int rank = 0; rank < kRanks; rank++) {
    EXPECT_EQ(10 * ((rank + kRanks - 1) % kRanks), got[rank][0]);
    EXPECT_EQ(10 * ((rank + kRanks - 1) % kRanks) + 1, got[rank][1]);
  }
}

TEST_F(GroupTest, EveryRankGetsAllChunksOfALargeBroadcast) {
  constexpr size_t kCount = 150001;
  // A root on a machine with few processors sends all itself.
  for (int round = 0; round < 2 * kRanks; round++) {
    for (ncclComm_t comm : comms) findComm(comm)->crowded = round >= kRanks;
    int root = round % kRanks;
    std::vector<int32_t> elements[kRanks];
    ncclGroupStart();
    for (int rank = 0; rank < kRanks; rank++) {
      elements[rank].assign(kCount + 1, -1);
      if (rank == root) std::iota(elements[rank].begin(), elements[rank].end(), root);
      int32_t* data = elements[rank].data();
      EXPECT_EQ(ncclSuccess, ncclBroadcast(data, data, kCount, ncclInt32, root, comms[rank], nullptr));
    }
    ASSERT_EQ(ncclSuccess, ncclGroupEnd());
    std::vector<int32_t> expected = elements[root];
    expected.back() = -1;
    for (int rank = 0; rank < kRanks; rank++) {
      if (rank == root) continue;
      EXPECT_EQ(expected, elements[rank]);
    }
  }
}

/** Begins a communicator of one rank, which a thread makes or not. */
ncclResult_t init(ncclComm_t& comm, int blocking) {
  ncclUniqueId id;
  EXPECT_EQ(ncclSuccess, ncclGetUniqueId(&id));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = blocking;
  return ncclCommInitRankConfig(&comm, 1, id, 0, &config);
}

TEST(LaunchTest, CommunicatorsOfAFailedOrSimulatedGroupAreNotBeingMade) {
  for (bool simulated : {false, true}) {
    ncclComm_t comm = nullptr;
    ncclGroupStart();
    EXPECT_EQ(ncclInProgress, init(comm, 0));
    ASSERT_NE(nullptr, comm);
    ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
    if (simulated) {
      EXPECT_EQ(ncclSuccess, ncclGroupSimulateEnd(&info));
    } else {
      EXPECT_EQ(ncclInvalidArgument, ncclAllReduce(nullptr, nullptr, 1, ncclInt32, ncclSum, nullptr, nullptr));
      EXPECT_EQ(ncclInvalidArgument, ncclGroupEnd());
    }
    ncclResult_t state = ncclInProgress;
    EXPECT_EQ(ncclSuccess, ncclCommGetAsyncError(comm, &state));
    EXPECT_EQ(ncclInvalidUsage, state);
    EXPECT_EQ(ncclSuccess, ncclCommAbort(comm));
  }
}

TEST(LaunchTest, AGroupMakesBlockingOrNonBlockingCommunicators) {
  for (int first : {0, 1}) {
    ncclComm_t comms[2] = {};
    ncclGroupStart();
    EXPECT_EQ(first ? ncclSuccess : ncclInProgress, init(comms[0], first));
    EXPECT_EQ(ncclInvalidArgument, init(comms[1], 1 - first));
    EXPECT_EQ(ncclInvalidArgument, ncclGroupEnd());
    if (comms[0] != nullptr) {
      EXPECT_EQ(ncclSuccess, ncclCommAbort(comms[0]));
    }
  }
}

/** While it exists, the process gets no thread: no stack is that large. */
class WithoutThreads {
 public:
  WithoutThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t impossible;
    pthread_getattr_default_np(&impossible);
    EXPECT_EQ(0, pthread_attr_setstacksize(&impossible, size_t{1} << 50));
    EXPECT_EQ(0, pthread_setattr_default_np(&impossible));
    pthread_attr_destroy(&impossible);
  }
  ~WithoutThreads() {
    EXPECT_EQ(0, pthread_setattr_default_np(&before_));
    pthread_attr_destroy(&before_);
  }
  WithoutThreads(const WithoutThreads&) = delete;

 private:
  pthread_attr_t before_;
};

TEST(LaunchTest, RanksWithoutAThreadDoNotWaitForEachOther) {
  ncclUniqueId id;
  ASSERT_EQ(ncclSuccess, ncclGetUniqueId(&id));
  ncclComm_t comms[3] = {};
  {
    WithoutThreads none;
    ncclGroupStart();
    for (int rank = 0; rank < 3; rank++) EXPECT_EQ(ncclSuccess, ncclCommInitRank(&comms[rank], 3, id, rank));
    double begun = now();
    EXPECT_EQ(ncclSystemError, ncclGroupEnd());
    EXPECT_GT(30, now() - begun) << "within a minute, each of them gives up by itself";
  }
  std::string text = ncclGetLastError(nullptr);
  EXPECT_EQ(0u, text.find("cannot start a thread that makes a communicator: ")) << text;
  for (ncclComm_t comm : comms) EXPECT_EQ(nullptr, comm);
  ASSERT_EQ(ncclSuccess, ncclCommInitAll(comms, 3, nullptr));
  for (ncclComm_t comm : comms) EXPECT_EQ(ncclSuccess, ncclCommAbort(comm));
}

/** The third operation has the stream of one and the communicator of the other. */
TEST(LaunchTest, OperationsThatAThirdOneJoinsAllRun) {
  constexpr size_t kCalls = 3;
  ncclComm_t comms[2] = {};
  cudaStream_t streams[2] = {};
  for (int i = 0; i < 2; i++) {
    ASSERT_EQ(ncclSuccess, ncclCommInitAll(&comms[i], 1, nullptr));
    ASSERT_EQ(ncclSuccess, nccl4jHostStreamCreate(&streams[i]));
  }
  // Too many for the calling thread.
  std::vector<std::vector<char>> elements(kCalls + 1, std::vector<char>(8 << 20));
  elements[0].assign(elements[0].size(), 'a');
  const int use[kCalls][2] = {{0, 0}, {1, 1}, {0, 1}};
  ncclGroupStart();
  for (size_t call = 0; call < kCalls; call++) {
    auto [comm, stream] = use[call];
    EXPECT_EQ(
        ncclSuccess, ncclAllReduce(
                         elements[0].data(), elements[call + 1].data(), elements[0].size(), ncclInt8, ncclSum, comms[comm],
                         streams[stream]));
  }
  ASSERT_EQ(ncclSuccess, ncclGroupEnd());
  for (cudaStream_t stream : streams) EXPECT_EQ(ncclSuccess, nccl4jHostStreamSynchronize(stream));
  for (const std::vector<char>& one : elements) EXPECT_TRUE(elements[0] == one);
  for (int i = 0; i < 2; i++) {
    EXPECT_EQ(ncclSuccess, ncclCommAbort(comms[i]));
    nccl4jHostStreamDestroy(streams[i]);
  }
}

TEST(LaunchTest, AGroupLeavesNoReferenceToADestroyedCommunicator) {
  ncclComm_t comms[2];
  std::weak_ptr<Comm> known[2];
  for (int i = 0; i < 2; i++) {
    ASSERT_EQ(ncclSuccess, ncclCommInitAll(&comms[i], 1, nullptr));
    known[i] = findComm(comms[i]);
  }
  int value = 3;
  for (ncclComm_t comm : {comms[0], comms[0], comms[1], comms[1], comms[0]}) {
    int result = 0;
    ncclGroupStart();
    ncclAllReduce(&value, &result, 1, ncclInt32, ncclSum, comm, nullptr);
    ASSERT_EQ(ncclSuccess, ncclGroupEnd());
    EXPECT_EQ(3, result);
  }
  for (int i : {1, 0}) {
    EXPECT_EQ(ncclSuccess, ncclCommDestroy(comms[i]));
    EXPECT_TRUE(known[i].expired());
  }
}

TEST(LaunchTest, TheResultOfACallComesBeforeTheAbortOfAnotherRank) {
  for (int round = 0; round < 50; round++) {
    ncclUniqueId id;
    ASSERT_EQ(ncclSuccess, ncclGetUniqueId(&id));
    std::atomic<int> created{0};
    auto rank = [&](int own) {
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.blocking = 0;
      ncclComm_t comm = nullptr;
      ncclCommInitRankConfig(&comm, 2, id, own, &config);
      auto settle = [&] {
        ncclResult_t state = ncclInProgress;
        while (state == ncclInProgress) EXPECT_EQ(ncclSuccess, ncclCommGetAsyncError(comm, &state));
        return state;
      };
      EXPECT_EQ(ncclSuccess, settle());
      created++;
      while (created < 2) std::this_thread::yield();
      int32_t value = 1;
      EXPECT_EQ(ncclInProgress, ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, comm, nullptr));
      EXPECT_EQ(ncclSuccess, settle()) << ncclGetLastError(comm);
      EXPECT_EQ(2, value);
      ncclCommAbort(comm);
    };
    TestThread other(rank, 1);
    rank(0);
    other.join();
  }
}

TEST(LaunchTest, LongOperationsOfAStreamNeedItsThread) {
  for (bool crowded : {false, true}) {
    ncclComm_t comm = nullptr;
    ASSERT_EQ(ncclSuccess, ncclCommInitAll(&comm, 1, nullptr));
    findComm(comm)->crowded = crowded;
    size_t limit = crowded ? 8 << 20 : 2 << 20;
    std::vector<char> in(limit + 1, 'a'), out(limit + 1);
    for (size_t bytes : {limit, limit + 1}) {
      cudaStream_t stream = nullptr;
      ASSERT_EQ(ncclSuccess, nccl4jHostStreamCreate(&stream));
      EXPECT_EQ(ncclSuccess, ncclAllReduce(in.data(), out.data(), bytes, ncclInt8, ncclSum, comm, stream));
      EXPECT_EQ(bytes > limit, requireStream(stream, "test")->thread.joinable());
      EXPECT_EQ(ncclSuccess, nccl4jHostStreamSynchronize(stream));
      EXPECT_EQ('a', out[bytes - 1]);
      nccl4jHostStreamDestroy(stream);
    }
    ncclCommAbort(comm);
  }
}

TEST(LaunchTest, AThreadThatWaitsForALimitedTimeHandsItsOperationsOver) {
  ncclUniqueId id;
  ASSERT_EQ(ncclSuccess, ncclGetUniqueId(&id));
  const size_t sizes[] = {1, 8 << 20};
  std::atomic<int> waited{0};
  auto rank = [&](int own) {
    ncclComm_t comm = nullptr;
    ASSERT_EQ(ncclSuccess, ncclCommInitRank(&comm, 2, id, own));
    cudaStream_t stream = nullptr;
    ASSERT_EQ(ncclSuccess, nccl4jHostStreamCreate(&stream));
    for (size_t count : sizes) {
      std::vector<char> elements(count, 1);
      if (own == 1) {
        while (waited == 0) std::this_thread::yield();
        waited--;
      }
      EXPECT_EQ(ncclSuccess, ncclAllReduce(elements.data(), elements.data(), count, ncclInt8, ncclSum, comm, stream));
      if (own == 0) {
        double begun = now();
        EXPECT_EQ(ncclInProgress, nccl4jHostStreamSynchronizeFor(stream, 0.02));
        EXPECT_LE(0.02, now() - begun);
        EXPECT_EQ(ncclInProgress, nccl4jHostStreamSynchronizeFor(stream, 0));
        EXPECT_EQ(ncclInProgress, nccl4jHostStreamQuery(stream));
        waited++;
      }
      ncclResult_t result;
      do {
        result = nccl4jHostStreamSynchronizeFor(stream, 0.001);
      } while (result == ncclInProgress);
      EXPECT_EQ(ncclSuccess, result) << ncclGetLastError(comm);
      EXPECT_EQ(std::vector<char>(count, 2), elements);
    }
    EXPECT_EQ(ncclSuccess, nccl4jHostStreamSynchronizeFor(stream, 1));
    EXPECT_EQ(ncclInvalidArgument, nccl4jHostStreamSynchronizeFor(reinterpret_cast<cudaStream_t>(17), 1));
    EXPECT_EQ(ncclSuccess, nccl4jHostStreamDestroy(stream));
    EXPECT_EQ(ncclSuccess, ncclCommDestroy(comm));
  };
  TestThread other(rank, 1);
  rank(0);
  other.join();
}

TEST_F(GroupTest, OnlyTheOutermostEndLaunches) {
  int in = 5, out[kRanks] = {};
  ncclGroupStart();
  ncclGroupStart();
  for (int rank = 0; rank < kRanks; rank++) {
    EXPECT_EQ(ncclSuccess, ncclAllReduce(&in, &out[rank], 1, ncclInt32, ncclSum, comms[rank], nullptr));
  }
  EXPECT_EQ(ncclSuccess, ncclGroupEnd());
  EXPECT_EQ(0, out[0]);
  EXPECT_TRUE(insideGroup());
  EXPECT_EQ(ncclSuccess, ncclGroupEnd());
  for (int one : out) EXPECT_EQ(15, one);
  EXPECT_EQ(ncclInvalidUsage, ncclGroupEnd());
}

TEST_F(GroupTest, ARefusedCallDropsTheGroup) {
  int in = 1, out = 0;
  ncclGroupStart();
  EXPECT_EQ(ncclSuccess, ncclAllReduce(&in, &out, 1, ncclInt32, ncclSum, comms[0], nullptr));
  EXPECT_EQ(ncclInvalidArgument, ncclBroadcast(&in, &out, 1, ncclInt32, 3, comms[1], nullptr));
  EXPECT_EQ(ncclInvalidArgument, ncclGroupEnd());
  EXPECT_EQ(0, out);
  EXPECT_FALSE(insideGroup());
}

TEST_F(GroupTest, CallsThatDoNotMatchFailAtAllRanks) {
  int in = 1, out[kRanks] = {};
  ncclGroupStart();
  for (int rank = 0; rank < kRanks; rank++) {
    ncclAllReduce(&in, &out[rank], 1, rank == 1 ? ncclUint32 : ncclInt32, ncclSum, comms[rank], nullptr);
  }
  EXPECT_EQ(ncclInvalidUsage, ncclGroupEnd());
  for (ncclComm_t comm : comms) {
    ncclResult_t error = ncclSuccess;
    EXPECT_EQ(ncclSuccess, ncclCommGetAsyncError(comm, &error));
    EXPECT_EQ(ncclInvalidUsage, error);
  }
}

TEST_F(GroupTest, ShortAndLongMessagesKeepTheirOrder) {
  // On both sides of the limit for eager messages.
  const size_t counts[] = {1, 128, 129, 0, 4096, 128, 2};
  constexpr size_t kMessages = std::size(counts);
  std::vector<int> in[kMessages], out[kMessages];
  ncclGroupStart();
  for (size_t i = 0; i < kMessages; i++) {
    in[i].assign(counts[i], static_cast<int>(i) + 1);
    out[i].assign(counts[i], 0);
    ncclSend(in[i].data(), counts[i], ncclInt32, 1, comms[0], nullptr);
    ncclRecv(out[i].data(), counts[i], ncclInt32, 0, comms[1], nullptr);
  }
  ASSERT_EQ(ncclSuccess, ncclGroupEnd());
  for (size_t i = 0; i < kMessages; i++) EXPECT_EQ(in[i], out[i]) << i;
}

// A call that waits for another rank has an item as soon as another thread needs one.
TEST_F(GroupTest, MemoryIsFreedAfterACallThatUsesIt) {
  int* memory = static_cast<int*>(calloc(2, sizeof(int)));
  int in = 6, out = 0;
  TestThread receiver([&] { EXPECT_EQ(ncclSuccess, ncclRecv(memory, 1, ncclInt32, 0, comms[1], nullptr)); });
  while (!hasCallers(*findComm(comms[1]))) std::this_thread::yield();
  EXPECT_EQ(ncclSuccess, nccl4jHostFree(memory));
  EXPECT_TRUE(hasOperations(*findComm(comms[1])));
  EXPECT_EQ(ncclSuccess, ncclSend(&in, 1, ncclInt32, 1, comms[0], nullptr));
  receiver.join();
  EXPECT_FALSE(hasOperations(*findComm(comms[1])));
  // The communicator continues, in the same order of calls.
  ncclGroupStart();
  ncclSend(&in, 1, ncclInt32, 1, comms[0], nullptr);
  ncclRecv(&out, 1, ncclInt32, 0, comms[1], nullptr);
  EXPECT_EQ(ncclSuccess, ncclGroupEnd());
  EXPECT_EQ(6, out);
}

TEST(RegistryTest, ACommunicatorThatHasEndedIsNotFound) {
  Connected rank(2);
  registerComm(rank.comm);
  ncclComm_t handle = rank.comm->handle();
  EXPECT_EQ(rank.comm, findComm(handle));
  unregisterComm(*rank.comm);
  EXPECT_EQ(nullptr, findComm(handle));
}

/** A communicator that this thread used last. */
class LastCommTest : public testing::Test {
 protected:
  LastCommTest() {
    registerComm(rank.comm);
    EXPECT_EQ(rank.comm, requireReadyComm(handle, "Test", own));
  }

  Connected rank{2};
  const ncclComm_t handle = rank.comm->handle();
  CommRef own;
};

TEST_F(LastCommTest, AThreadKeepsItUntilItsEnd) {
  EXPECT_EQ(rank.comm, requireReadyComm(handle, "Test", own));
  EXPECT_EQ(nullptr, own);
  EXPECT_EQ(3, rank.comm.use_count());
  unregisterComm(*rank.comm);
  EXPECT_EQ(1, rank.comm.use_count());
  EXPECT_THROW(requireReadyComm(handle, "Test", own), Failure);
}

TEST_F(LastCommTest, AThreadDoesNotFindItAfterAnotherOneEndedIt) {
  TestThread([&] { unregisterComm(*rank.comm); }).join();
  EXPECT_THROW(requireReadyComm(handle, "Test", own), Failure);
  EXPECT_EQ(1, rank.comm.use_count());
}

TEST(RegistryTest, AStreamThatWasDestroyedIsNotFound) {
  cudaStream_t handle;
  ASSERT_EQ(ncclSuccess, nccl4jHostStreamCreate(&handle));
  StreamRef stream = requireStream(handle, "Test");
  EXPECT_EQ(stream, requireStream(handle, "Test"));
  EXPECT_EQ(ncclSuccess, nccl4jHostStreamDestroy(handle));
  EXPECT_EQ(ncclInvalidArgument, nccl4jHostStreamQuery(handle));
}

TEST(RegistryTest, AStreamReportsAFailureAfterTheCallOfAnotherCommunicator) {
  Connected failed(2), other(2);
  cudaStream_t handle;
  ASSERT_EQ(ncclSuccess, nccl4jHostStreamCreate(&handle));
  StreamRef stream = requireStream(handle, "Test");
  failed.comm->lifecycle.setError(ncclRemoteError, "rank 1 went away");
  enqueue(stream, failed.comm, RunBy::Thread, [](double) { return true; });
  EXPECT_EQ(ncclRemoteError, nccl4jHostStreamSynchronize(handle));
  { DirectCall call(other.comm, stream); }
  EXPECT_EQ(ncclRemoteError, nccl4jHostStreamSynchronize(handle));
  failed.comm->lifecycle.enter(State::Revoked);
  { DirectCall call(other.comm, stream); }
  EXPECT_EQ(ncclSuccess, nccl4jHostStreamSynchronize(handle));
  EXPECT_EQ(ncclSuccess, nccl4jHostStreamDestroy(handle));
}

TEST(RegistryTest, BusyStreamsAreCountedUntilTheyAreFoundIdle) {
  const int* busy = nccl4jHostBusyStreams();
  const int before = *busy;
  Connected failed(2), other(2);
  cudaStream_t handles[2];
  for (cudaStream_t& handle : handles) ASSERT_EQ(ncclSuccess, nccl4jHostStreamCreate(&handle));
  StreamRef stream = requireStream(handles[0], "Test");
  EXPECT_EQ(before, *busy);
  { DirectCall call(other.comm, stream); }
  EXPECT_EQ(before, *busy) << "a call that ended at once";

  std::atomic<bool> mayEnd{false};
  auto work = [&](double) {
    while (!mayEnd) std::this_thread::yield();
    return true;
  };
  for (int i = 0; i < 2; i++) enqueue(stream, other.comm, RunBy::Thread, work);
  EXPECT_EQ(before + 1, *busy);
  mayEnd = true;
  EXPECT_EQ(ncclSuccess, nccl4jHostStreamSynchronize(handles[0]));
  EXPECT_EQ(before, *busy);

  failed.comm->lifecycle.setError(ncclRemoteError, "rank 1 went away");
  enqueue(stream, failed.comm, RunBy::Thread, [](double) { return true; });
  EXPECT_EQ(ncclRemoteError, nccl4jHostStreamSynchronize(handles[0]));
  EXPECT_EQ(before + 1, *busy) << "the failure stands";
  failed.comm->lifecycle.enter(State::Revoked);
  { DirectCall call(other.comm, stream); }
  EXPECT_EQ(before, *busy);

  mayEnd = false;
  enqueue(stream, other.comm, RunBy::Thread, work);
  enqueue(requireStream(handles[1], "Test"), other.comm, RunBy::Thread, work);
  EXPECT_EQ(before + 2, *busy);
  for (cudaStream_t handle : handles) EXPECT_EQ(ncclSuccess, nccl4jHostStreamDestroy(handle));
  EXPECT_EQ(before, *busy) << "nobody can wait for a stream that was destroyed";
  mayEnd = true;
  while (hasOperations(*other.comm)) std::this_thread::yield();
  stream.reset();
  EXPECT_EQ(before, *busy);
  // The default stream has items, but is not counted.
  runHere(enqueue(requireStream(nullptr, "Test"), {}, RunBy::Caller, [&](double) {
    EXPECT_EQ(before, *busy);
    return true;
  }));
}

TEST(RegistryTest, AStreamStaysBusyIfAnItemCameDuringAWait) {
  const int* busy = nccl4jHostBusyStreams();
  const int before = *busy;
  cudaStream_t handle;
  ASSERT_EQ(ncclSuccess, nccl4jHostStreamCreate(&handle));
  StreamRef stream = requireStream(handle, "Test");
  std::atomic<bool> firstMayEnd{false}, secondMayEnd{false}, waited{false};
  enqueue(stream, {}, RunBy::Thread, [&](double) {
    while (!firstMayEnd) std::this_thread::yield();
    enqueue(stream, {}, RunBy::Thread, [&](double) {
      while (!secondMayEnd) std::this_thread::yield();
      return true;
    });
    return true;
  });
  TestThread waiter([&] {
    EXPECT_EQ(ncclSuccess, nccl4jHostStreamSynchronize(handle));
    waited = true;
  });
  // The wait must begin before the second item comes.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  firstMayEnd = true;
  for (int i = 0; i < 1000 && !waited; i++) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(before + 1, *busy);
  secondMayEnd = true;
  waiter.join();
  EXPECT_EQ(ncclSuccess, nccl4jHostStreamSynchronize(handle));
  EXPECT_EQ(before, *busy);
  EXPECT_EQ(ncclSuccess, nccl4jHostStreamDestroy(handle));
}

TEST(RegistryTest, ALaunchEventFollowsOperationsInOtherStreams) {
  Connected rank(2);
  cudaStream_t handles[2];
  for (cudaStream_t& handle : handles) ASSERT_EQ(ncclSuccess, nccl4jHostStreamCreate(&handle));
  nccl4jHostEvent_t event;
  ASSERT_EQ(ncclSuccess, nccl4jHostEventCreate(&event));
  std::atomic<bool> mayEnd{false};
  enqueue(requireStream(handles[0], "Test"), rank.comm, RunBy::Thread, [&](double) {
    while (!mayEnd) std::this_thread::yield();
    return true;
  });
  recordLaunch(reinterpret_cast<cudaEvent_t>(event), {requireStream(handles[1], "Test")}, {rank.comm});
  EXPECT_EQ(ncclInProgress, nccl4jHostEventQuery(event)) << "an earlier operation of the communicator is not done";
  mayEnd = true;
  EXPECT_EQ(ncclSuccess, nccl4jHostEventSynchronize(event));
  EXPECT_EQ(ncclSuccess, nccl4jHostEventDestroy(event));
  for (cudaStream_t handle : handles) EXPECT_EQ(ncclSuccess, nccl4jHostStreamDestroy(handle));
}

TEST(RegistryTest, AThreadThatWaitsForAStreamRunsItsItems) {
  cudaStream_t handle;
  ASSERT_EQ(ncclSuccess, nccl4jHostStreamCreate(&handle));
  StreamRef stream = requireStream(handle, "Test");
  const std::thread::id own = std::this_thread::get_id();
  bool here = false;
  int ran = 0;
  // The stream's thread may be the first one to see an item, but not always.
  for (int i = 0; i < 1000 && !here; i++) {
    enqueue(stream, {}, RunBy::Thread, [&](double) {
      ran++;
      here = std::this_thread::get_id() == own;
      return true;
    });
    EXPECT_EQ(ncclSuccess, nccl4jHostStreamSynchronize(handle));
    EXPECT_EQ(i + 1, ran);
  }
  EXPECT_TRUE(here);
  EXPECT_EQ(ncclSuccess, nccl4jHostStreamDestroy(handle));
}

TEST(RegistryTest, AStreamMayBeDestroyedWhileAThreadThatWaitsForItRunsAnItem) {
  for (int round = 0; round < 20; round++) {
    cudaStream_t handle;
    ASSERT_EQ(ncclSuccess, nccl4jHostStreamCreate(&handle));
    StreamRef stream = requireStream(handle, "Test");
    std::atomic<bool> begun{false}, destroyed{false}, second{false};
    TestThread destroyer([&] {
      while (!begun) std::this_thread::yield();
      EXPECT_EQ(ncclSuccess, nccl4jHostStreamDestroy(handle));
      destroyed = true;
    });
    enqueue(stream, {}, RunBy::Thread, [&](double) {
      begun = true;
      while (!destroyed) std::this_thread::yield();
      return true;
    });
    enqueue(stream, {}, RunBy::Thread, [&](double) {
      second = true;
      return true;
    });
    nccl4jHostStreamSynchronize(handle);
    destroyer.join();
    // Until its thread has ended; this one keeps the stream that it found last.
    while (stream.use_count() > 2) std::this_thread::yield();
    EXPECT_TRUE(second);
  }
}

TEST(RegistryTest, AStreamThatIsDestroyedDuringAWaitTakesNoMoreCalls) {
  Connected other(2);
  cudaStream_t handle;
  ASSERT_EQ(ncclSuccess, nccl4jHostStreamCreate(&handle));
  StreamRef stream = requireStream(handle, "Test");
  std::atomic<bool> mayEnd{false};
  enqueue(stream, {}, RunBy::Thread, [&](double) {
    while (!mayEnd) std::this_thread::yield();
    return true;
  });
  TestThread waiter([&] { nccl4jHostStreamSynchronize(handle); });
  // The wait should begin first: else it finds no stream, and the test sees less.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(ncclSuccess, nccl4jHostStreamDestroy(handle));
  mayEnd = true;
  waiter.join();
  DirectCall call(other.comm, stream);
  EXPECT_FALSE(call.begun());
}

TEST_F(GroupTest, ACallFollowsAnItemOfItsCommunicatorThatHasNotBegun) {
  ncclComm_t second[kRanks] = {};
  ncclGroupStart();
  for (int rank = 0; rank < kRanks; rank++) ncclCommSplit(comms[rank], 0, rank, &second[rank], nullptr);
  ASSERT_EQ(ncclSuccess, ncclGroupEnd());
  cudaStream_t stream = nullptr;
  ASSERT_EQ(ncclSuccess, nccl4jHostStreamCreate(&stream));
  const size_t many = 1 << 18;
  std::vector<int> in(many, 2), out(many);
  int one = 1, outs[3] = {};
  // The second one waits for the first one, in their stream: it is too long to begin in its call.
  ASSERT_EQ(ncclSuccess, ncclRecv(&outs[0], 1, ncclInt32, 0, comms[1], stream));
  ASSERT_EQ(ncclSuccess, ncclRecv(out.data(), many, ncclInt32, 0, second[1], stream));
  TestThread caller([&] { EXPECT_EQ(ncclSuccess, ncclRecv(&outs[1], 2, ncclInt32, 0, second[1], nullptr)); });
  while (!hasCallers(*findComm(second[1]))) std::this_thread::yield();
  // It must not begin.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(ncclSuccess, ncclSend(&one, 1, ncclInt32, 1, comms[0], nullptr));
  EXPECT_EQ(ncclSuccess, ncclSend(in.data(), many, ncclInt32, 1, second[0], nullptr)) << ncclGetLastError(nullptr);
  EXPECT_EQ(ncclSuccess, ncclSend(in.data(), 2, ncclInt32, 1, second[0], nullptr)) << ncclGetLastError(nullptr);
  caller.join();
  EXPECT_EQ(ncclSuccess, nccl4jHostStreamSynchronize(stream));
  EXPECT_EQ(in, out);
  EXPECT_EQ(1, outs[0]);
  EXPECT_EQ(2, outs[1]);
  EXPECT_EQ(2, outs[2]);
  EXPECT_EQ(ncclSuccess, nccl4jHostStreamDestroy(stream));
  for (ncclComm_t comm : second) EXPECT_EQ(ncclSuccess, ncclCommAbort(comm));
}

TEST_F(GroupTest, AWindowStaysUntilTheOperationsBeforeItsRemovalAreDone) {
  CommRef comm = findComm(comms[0]);
  ncclWindow_t window = comm->windows.add({});
  std::promise<bool> found;
  enqueue({}, comm, RunBy::Thread, [&, caller = ownThread()](double) {
    awaitSleep(caller);
    found.set_value(comm->windows.find(window) != nullptr);
    return true;
  });
  EXPECT_EQ(ncclSuccess, ncclCommWindowDeregister(comms[0], window));
  EXPECT_TRUE(found.get_future().get());
  EXPECT_EQ(nullptr, comm->windows.find(window));
}

TEST_F(GroupTest, TheThreadOfAnItemWithoutACreatedStreamEndsWithIt) {
  std::promise<pid_t> thread;
  enqueue(requireStream(nullptr, "Test"), {}, RunBy::Thread, [&](double) {
    thread.set_value(ownThread());
    return true;
  });
  std::string folder = format("/proc/self/task/%d", thread.get_future().get());
  double end = now() + 60;
  while (access(folder.c_str(), F_OK) == 0 && now() < end) std::this_thread::yield();
  EXPECT_NE(0, access(folder.c_str(), F_OK)) << "the thread still runs";
}

TEST_F(GroupTest, AStreamContinuesMessagesThatBeganInTheirCall) {
  // On any machine.
  for (int rank : {0, 1}) findComm(comms[rank])->crowded = false;
  cudaStream_t stream = nullptr;
  ASSERT_EQ(ncclSuccess, nccl4jHostStreamCreate(&stream));
  auto exchange = [&](int rank, const int& in, int& out, cudaStream_t of) {
    ncclGroupStart();
    ncclSend(&in, 1, ncclInt32, 1 - rank, comms[rank], of);
    ncclRecv(&out, 1, ncclInt32, 1 - rank, comms[rank], of);
    EXPECT_EQ(ncclSuccess, ncclGroupEnd());
  };
  for (int round = 0; round < 3; round++) {
    const int in[] = {10 + round, 20 + round};
    int out[] = {0, 0};
    exchange(0, in[0], out[0], stream);
    exchange(1, in[1], out[1], nullptr);
    EXPECT_EQ(ncclSuccess, nccl4jHostStreamSynchronize(stream));
    EXPECT_EQ(in[1], out[0]);
    EXPECT_EQ(in[0], out[1]);
  }
  EXPECT_EQ(ncclSuccess, nccl4jHostStreamDestroy(stream));
}

TEST_F(GroupTest, AllStreamsOfAGroupWaitForIt) {
  cudaStream_t streams[2] = {};
  for (cudaStream_t& stream : streams) ASSERT_EQ(ncclSuccess, nccl4jHostStreamCreate(&stream));
  int in[] = {7, 8}, out[] = {0, 0};
  ncclGroupStart();
  ncclSend(&in[0], 1, ncclInt32, 1, comms[0], streams[0]);
  ncclRecv(&out[0], 1, ncclInt32, 1, comms[0], streams[1]);
  ASSERT_EQ(ncclSuccess, ncclGroupEnd());
  for (cudaStream_t stream : streams) EXPECT_EQ(ncclInProgress, nccl4jHostStreamQuery(stream));
  ncclGroupStart();
  ncclSend(&in[1], 1, ncclInt32, 0, comms[1], nullptr);
  ncclRecv(&out[1], 1, ncclInt32, 0, comms[1], nullptr);
  ASSERT_EQ(ncclSuccess, ncclGroupEnd());
  for (cudaStream_t stream : streams) {
    EXPECT_EQ(ncclSuccess, nccl4jHostStreamSynchronize(stream));
    EXPECT_EQ(ncclSuccess, nccl4jHostStreamDestroy(stream));
  }
  EXPECT_EQ(in[1], out[0]);
  EXPECT_EQ(in[0], out[1]);
}

// Another thread gives the call an item that follows an unfinished one. The end of that one must not end the call's item.
TEST_F(GroupTest, AStreamIsNotDoneBeforeTheCallThatItsThreadContinues) {
  cudaStream_t handle = nullptr;
  ASSERT_EQ(ncclSuccess, nccl4jHostStreamCreate(&handle));
  StreamRef stream = requireStream(handle, "test");
  CommRef comm = findComm(comms[0]);
  std::atomic<bool> stop{false};
  std::vector<TestThread> others;
  for (int i = 0; i < 2; i++) {
    others.emplace_back([&] {
      while (!stop) whenAllDone([] {});
    });
  }
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  int early = 0, continued = 0;
  for (unsigned round = 0; std::chrono::steady_clock::now() < end; round++) {
    int from = 1, to = 0;
    EXPECT_EQ(ncclSuccess, nccl4jHostMemcpyAsync(&to, &from, sizeof to, handle));
    // The call comes while the copy ends.
    for (volatile unsigned i = 0; i < round * 37 % 20000; i++) {
    }
    std::atomic<bool> ran{false};
    {
      DirectCall call(comm, stream);
      if (call.begun()) {
        continued++;
        call.continueInStream([&](double) {
          std::this_thread::sleep_for(std::chrono::microseconds(20));
          ran = true;
          return true;
        });
      } else {
        ran = true;
      }
    }
    while (nccl4jHostStreamQuery(handle) == ncclInProgress) std::this_thread::yield();
    early += !ran;
    while (!ran) std::this_thread::yield();
  }
  stop = true;
  for (TestThread& other : others) other.join();
  EXPECT_EQ(0, early) << "of " << continued;
  stream.reset();
  EXPECT_EQ(ncclSuccess, nccl4jHostStreamDestroy(handle));
}

/** Creates two communicators of each rank in one group, and uses both. */
void splitTwice(ncclComm_t* comms, int ranks) {
  std::vector<ncclComm_t> children(2 * static_cast<size_t>(ranks));
  ncclGroupStart();
  for (int rank = 0; rank < ranks; rank++) {
    for (int i = 0; i < 2; i++) {
      // The second one in the opposite order of ranks.
      ncclComm_t* child = &children[static_cast<size_t>(i * ranks + rank)];
      EXPECT_EQ(ncclSuccess, ncclCommSplit(comms[rank], 0, i == 0 ? rank : -rank, child, nullptr));
    }
  }
  ASSERT_EQ(ncclSuccess, ncclGroupEnd()) << ncclGetLastError(nullptr);
  for (int i = 0; i < 2; i++) {
    std::vector<int> in(static_cast<size_t>(ranks)), out(in);
    ncclGroupStart();
    for (int rank = 0; rank < ranks; rank++) {
      size_t at = static_cast<size_t>(rank);
      ncclComm_t child = children[static_cast<size_t>(i * ranks + rank)];
      int newRank = -1;
      EXPECT_EQ(ncclSuccess, ncclCommUserRank(child, &newRank));
      EXPECT_EQ(i == 0 ? rank : ranks - 1 - rank, newRank);
      in[at] = rank + 1;
      ncclAllReduce(&in[at], &out[at], 1, ncclInt32, ncclSum, child, nullptr);
    }
    EXPECT_EQ(ncclSuccess, ncclGroupEnd());
    for (int one : out) EXPECT_EQ(ranks * (ranks + 1) / 2, one);
  }
  for (ncclComm_t child : children) EXPECT_EQ(ncclSuccess, ncclCommAbort(child));
}

TEST_F(GroupTest, TwoSplitsOfOneParentRunInTheOrderOfTheCalls) {
  splitTwice(comms, kRanks);
  for (ncclComm_t comm : comms) EXPECT_FALSE(hasCallers(*findComm(comm)));
}

TEST_F(GroupTest, TwoSplitsOfARevokedParentRunInTheOrderOfTheCalls) {
  for (ncclComm_t comm : comms) ASSERT_EQ(ncclSuccess, ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT));
  splitTwice(comms, kRanks);
}

TEST_F(GroupTest, AFailureDiscardsAllCommunicatorsOfTheGroup) {
  ncclComm_t children[2] = {};
  findComm(comms[1])->requestAbort();
  TestThread other([&] {
    int in = 1, out = 0;
    EXPECT_NE(ncclSuccess, ncclAllReduce(&in, &out, 1, ncclInt32, ncclSum, comms[1], nullptr));
    ncclCommAbort(std::exchange(comms[1], nullptr));
  });
  ncclGroupStart();
  for (ncclComm_t& child : children) ncclCommSplit(comms[0], 0, 0, &child, nullptr);
  EXPECT_EQ(ncclRemoteError, ncclGroupEnd());
  other.join();
  for (ncclComm_t child : children) EXPECT_EQ(nullptr, child);
  EXPECT_FALSE(hasCallers(*findComm(comms[0])));
}

TEST_F(GroupTest, MessagesToOneselfMustBePairs) {
  int in = 4, out = 0;
  ncclGroupStart();
  ncclSend(&in, 1, ncclInt32, 0, comms[0], nullptr);
  EXPECT_EQ(ncclInvalidUsage, ncclGroupEnd());
  ncclGroupStart();
  ncclRecv(&out, 1, ncclInt32, 0, comms[0], nullptr);
  ncclSend(&in, 1, ncclInt32, 0, comms[0], nullptr);
  EXPECT_EQ(ncclSuccess, ncclGroupEnd());
  EXPECT_EQ(4, out);
}

TEST(ConfigTest, HasAtLeastTheFieldsThatSayWhatItIs) {
  ncclUniqueId id;
  ASSERT_EQ(ncclSuccess, ncclGetUniqueId(&id));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.size = offsetof(ncclConfig_t, blocking);
  ncclComm_t comm = nullptr;
  ASSERT_EQ(ncclSuccess, ncclCommInitRankConfig(&comm, 1, id, 0, &config));
  EXPECT_EQ(ncclSuccess, ncclCommDestroy(comm));
  config.size--;
  EXPECT_EQ(ncclInvalidArgument, ncclCommInitRankConfig(&comm, 1, id, 0, &config));
}

}  // namespace
}  // namespace host

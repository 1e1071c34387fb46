// broadcast_test.cpp: the tree of short Broadcasts, and how ranks notice that their calls differ although most send no frame.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "pair.h"
#include "protocol/exchange.h"
#include "protocol/tree.h"
#include "testthread.h"

namespace host {
namespace {

TEST(TreeTest, EveryRankHasOneParentThatKnowsIt) {
  for (int ranks = 1; ranks <= 33; ranks++) {
    for (int root : {0, ranks / 2, ranks - 1}) {
      int edges = 0;
      for (int rank = 0; rank < ranks; rank++) {
        SCOPED_TRACE(format("rank %d of %d, root %d", rank, ranks, root));
        Tree tree(rank, root, ranks);
        EXPECT_EQ(rank == root, tree.isRoot());
        if (rank != root) {
          EXPECT_EQ(root, tree.firstAncestor([&](int other) { return other == root; }));
          EXPECT_EQ(tree.parent(), tree.firstAncestor([&](int other) { return other == rank; })) << "not its own ancestor";
        }
        std::vector<int> children;
        tree.eachChild([&](int child) { children.push_back(child); });
        for (int child : children) EXPECT_EQ(rank, Tree(child, root, ranks).parent());
        for (int other = 0; other < ranks; other++) {
          bool listed = std::count(children.begin(), children.end(), other) == 1;
          EXPECT_EQ(listed, tree.isChild(other)) << other;
        }
        edges += static_cast<int>(children.size());
      }
      EXPECT_EQ(ranks - 1, edges);
    }
  }
}

TEST(TreeTest, ElementsPassFewRanks) {
  Tree last(15, 0, 16);
  EXPECT_EQ(14, last.parent());
  std::vector<int> ancestors;
  last.firstAncestor([&](int rank) {
    ancestors.push_back(rank);
    return false;
  });
  EXPECT_EQ((std::vector<int>{14, 12, 8, 0}), ancestors);
  std::vector<int> children;
  Tree(0, 0, 16).eachChild([&](int child) { children.push_back(child); });
  EXPECT_EQ((std::vector<int>{8, 4, 2, 1}), children) << "the one with most ranks below it first";
}

/** Sets a variable of the environment for a test. */
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }

 private:
  const char* name_;
};

/** All ranks in one thread, with shared memory or without. */
class BroadcastTest : public testing::TestWithParam<const char*> {
 protected:
  void open(int ranks) {
    comms.resize(static_cast<size_t>(ranks));
    ASSERT_EQ(ncclSuccess, ncclCommInitAll(comms.data(), ranks, nullptr));
  }
  void TearDown() override {
    for (ncclComm_t comm : comms) ncclCommAbort(comm);
    comms.clear();
  }

  Variable shared{"NCCL4J_HOST_SHARED_MEMORY", GetParam()};
  std::vector<ncclComm_t> comms;
};

INSTANTIATE_TEST_SUITE_P(Memory, BroadcastTest, testing::Values("0", "1"));

TEST_P(BroadcastTest, EveryRankGetsTheElements) {
  for (int ranks : {2, 3, 5, 8}) {
    open(ranks);
    for (int root = 0; root < ranks; root++) {
      for (size_t count : {1, 10, 11, 135, 136, 16384, 16385}) {
        std::vector<std::vector<int32_t>> got(static_cast<size_t>(ranks), std::vector<int32_t>(count + 1, -1));
        std::vector<int32_t> sent(count, 100 * root + static_cast<int32_t>(count));
        ncclGroupStart();
        for (int rank = 0; rank < ranks; rank++) {
          ncclBroadcast(sent.data(), got[static_cast<size_t>(rank)].data(), count, ncclInt32, root, comms[static_cast<size_t>(rank)], nullptr);
        }
        ASSERT_EQ(ncclSuccess, ncclGroupEnd());
        std::vector<int32_t> expected = sent;
        expected.push_back(-1);
        for (const std::vector<int32_t>& one : got) EXPECT_EQ(expected, one) << ranks << " ranks, root " << root;
      }
    }
    TearDown();
  }
}

// The words of the frames hold the configuration then.
TEST_P(BroadcastTest, AConfiguredOneMovesItsElements) {
  open(5);
  ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;
  config.minCTAs = config.maxCTAs = 2;
  int32_t in = 9, out[5] = {};
  ncclGroupStart();
  for (int rank = 0; rank < 5; rank++) {
    EXPECT_EQ(ncclSuccess, ncclBroadcastConfig(&in, &out[rank], 1, ncclInt32, 1, comms[static_cast<size_t>(rank)], nullptr, &config));
  }
  ASSERT_EQ(ncclSuccess, ncclGroupEnd());
  for (int one : out) EXPECT_EQ(9, one);
}

// Without a word of the others, each rank would wait for the next one.
TEST_P(BroadcastTest, RootsInACircleAreAnError) {
  for (int ranks : {2, 3, 8}) {
    open(ranks);
    int32_t in = 1, out = 0;
    ncclGroupStart();
    for (int rank = 0; rank < ranks; rank++) {
      ncclBroadcast(&in, &out, 1, ncclInt32, (rank + 1) % ranks, comms[static_cast<size_t>(rank)], nullptr);
    }
    EXPECT_EQ(ncclInvalidUsage, ncclGroupEnd());
    std::string error = ncclGetLastError(nullptr);
    EXPECT_NE(std::string::npos, error.find(" called Broadcast(ncclInt32, count 1, root ")) << error;
    EXPECT_EQ(0, out);
    TearDown();
  }
}

TEST_P(BroadcastTest, ShortAndLongOnesDoNotMatch) {
  open(4);
  std::vector<int32_t> in(136, 1), out(136);
  for (int odd = 0; odd < 4; odd++) {
    ncclGroupStart();
    for (int rank = 0; rank < 4; rank++) {
      ncclBroadcast(in.data(), out.data(), rank == odd ? 136 : 1, ncclInt32, 0, comms[static_cast<size_t>(rank)], nullptr);
    }
    ncclResult_t result = ncclGroupEnd();
    // The odd one may be a leaf of which no rank needs anything in this call.
    if (result == ncclSuccess) {
      ncclGroupStart();
      for (ncclComm_t comm : comms) ncclAllReduce(in.data(), out.data(), 1, ncclInt32, ncclSum, comm, nullptr);
      result = ncclGroupEnd();
    }
    EXPECT_EQ(ncclInvalidUsage, result) << odd;
    TearDown();
    open(4);
  }
}

TEST_P(BroadcastTest, AllRanksWaitForTheOneThatIsLate) {
  Variable timeout("NCCL4J_HOST_OP_TIMEOUT", "0.5");
  for (int late : {0, 4}) {
    open(8);
    std::vector<std::string> errors;
    std::vector<TestThread> ranks;
    std::mutex mutex;
    for (int rank = 0; rank < 8; rank++) {
      if (rank == late) continue;
      ranks.emplace_back([&, rank] {
        int32_t element = 0;
        ncclResult_t result = ncclBroadcast(&element, &element, 1, ncclInt32, 0, comms[static_cast<size_t>(rank)], nullptr);
        std::lock_guard<std::mutex> lock(mutex);
        if (result != ncclSuccess) errors.push_back(ncclGetLastError(nullptr));
      });
    }
    for (TestThread& rank : ranks) rank.join();
    // Rank 4 has the elements for 5, 6 and 7.
    EXPECT_EQ(late == 0 ? 7u : 3u, errors.size());
    for (const std::string& error : errors) {
      EXPECT_NE(std::string::npos, error.find(format("in Broadcast(ncclInt32, count 1, root 0) for rank %d", late))) << error;
    }
    TearDown();
  }
}

/** Rank 2 of 4. With root 0 it gets the elements from rank 0 and sends them to rank 3. */
class ForwardTest : public testing::Test {
 protected:
  ForwardTest() : rank(4, true, {}, 2) {
    for (int peer : {0, 1, 3}) {
      PeerEnd& end = rank.ends[static_cast<size_t>(peer)];
      ends[peer] = openChannel(std::move(end.data), end.memory, kTestRing, false);
    }
    broadcast.call = Call::Broadcast;
    broadcast.send = broadcast.recv = reinterpret_cast<char*>(&element);
    broadcast.count = 1;
    broadcast.type = ncclInt32;
  }

  void sendFromRoot(int32_t value) {
    Frame frame = broadcast.frame();
    frame.sequence = static_cast<uint16_t>(++collectives);
    frame.add(&value, sizeof value);
    ASSERT_TRUE(ends[0]->sendFrame(frame));
  }

  /** The frames that a peer has received: "Collective 7", or "Waiting". */
  std::string received(int peer) {
    std::string text;
    Frame frame;
    char elements[kMaxInlined];
    while (ends[peer]->receiveFrame(frame, elements) > 0) {
      text += frame.kind == FrameKind::Waiting ? " Waiting" : " Collective";
      if (frame.inlined > 0) text += " " + std::to_string(static_cast<int32_t>(frame.words[0]));
    }
    return text;
  }

  Connected rank;
  std::unique_ptr<Channel> ends[4];
  Operation broadcast;
  Begun begun;
  int32_t element = 0;
  int collectives = 0;
};

TEST_F(ForwardTest, OnlyTheChildGetsAFrame) {
  sendFromRoot(7);
  EXPECT_TRUE(runEagerly(*rank.comm, &broadcast, 1, begun));
  EXPECT_EQ(7, element);
  EXPECT_EQ(" Collective 7", received(3));
  EXPECT_EQ("", received(0) + received(1));
}

/** A broadcast whose elements go through the rings and do not fill them. */
class ForwardRingTest : public ForwardTest {
 protected:
  ForwardRingTest() : sent(kCount), got(kCount) {
    std::iota(sent.begin(), sent.end(), 1);
    broadcast.send = broadcast.recv = reinterpret_cast<char*>(got.data());
    broadcast.count = kCount;
  }

  void putFrame() {
    Frame frame = broadcast.frame();
    frame.sequence = static_cast<uint16_t>(++collectives);
    ASSERT_TRUE(ends[0]->sendFrame(frame));
  }
  void putElements(size_t first, size_t count) {
    ends[0]->putBytes(reinterpret_cast<const char*>(&sent[first]), count * sizeof(int32_t));
    ends[0]->wakeReader();
  }

  /** True if the child has the frame, and the elements in its ring. */
  bool forwarded() {
    std::vector<int32_t> there(kCount);
    bool hasFrame = received(3) == " Collective";
    return hasFrame && ends[3]->receive(there.data(), kBytes) == static_cast<long>(kBytes) && there == sent;
  }

  static constexpr size_t kCount = 10001;
  static constexpr size_t kBytes = kCount * sizeof(int32_t);
  std::vector<int32_t> sent, got;
};

TEST_F(ForwardRingTest, ElementsPassTheRings) {
  // Some of these cross the end of the rings.
  for (int i = 0; i < 5; i++) {
    std::fill(got.begin(), got.end(), 0);
    putElements(0, kCount);
    putFrame();
    EXPECT_TRUE(runEagerly(*rank.comm, &broadcast, 1, begun)) << i;
    EXPECT_EQ(sent, got);
    EXPECT_TRUE(forwarded());
    EXPECT_EQ("", received(0) + received(1));
  }
}

TEST_F(ForwardRingTest, ATaskWaitsForElementsThatAreLate) {
  for (bool frameFirst : {true, false}) {
    std::fill(got.begin(), got.end(), 0);
    if (frameFirst) putFrame();
    putElements(0, kCount - 1);
    Begun mine;
    EXPECT_FALSE(runEagerly(*rank.comm, &broadcast, 1, mine));
    EXPECT_TRUE(mine.isSent());
    EXPECT_EQ("", received(3));
    if (!frameFirst) putFrame();
    TestThread call([&] {
      Operation copy = broadcast;
      runCollective(*rank.comm, std::move(copy), std::move(mine));
    });
    putElements(kCount - 1, 1);
    call.join();
    EXPECT_EQ(sent, got);
    EXPECT_TRUE(forwarded()) << frameFirst;
  }
}

TEST_F(ForwardRingTest, AChildWithoutRoomInItsRingIsWaitedFor) {
  std::vector<char> filling(kTestRing - kBytes + 1), taken(filling.size());
  iovec part{filling.data(), filling.size()};
  ASSERT_EQ(static_cast<long>(filling.size()), rank.peer(3).data->send(&part, 1));
  putElements(0, kCount);
  putFrame();
  EXPECT_FALSE(runEagerly(*rank.comm, &broadcast, 1, begun));
  EXPECT_FALSE(begun.isSent());
  // One byte more is enough.
  ASSERT_EQ(1, ends[3]->receive(taken.data(), 1));
  EXPECT_TRUE(runEagerly(*rank.comm, &broadcast, 1, begun));
  ASSERT_EQ(static_cast<long>(filling.size()) - 1, ends[3]->receive(taken.data(), filling.size() - 1));
  EXPECT_TRUE(forwarded());
}

TEST_F(ForwardTest, SixtyFourKiBAreTheLimit) {
  broadcast.count = (64 << 10) / sizeof(int32_t);
  EXPECT_TRUE(isShortBroadcast(broadcast));
  broadcast.count++;
  EXPECT_FALSE(isShortBroadcast(broadcast));
  broadcast.count = 0;
  EXPECT_FALSE(isShortBroadcast(broadcast));
}

TEST_F(ForwardTest, ATaskForwardsTheElementsOfALateParent) {
  EXPECT_FALSE(runEagerly(*rank.comm, &broadcast, 1, begun));
  EXPECT_EQ("", received(0) + received(1) + received(3));
  sendFromRoot(7);
  Operation copy = broadcast;
  runCollective(*rank.comm, std::move(copy), std::move(begun));
  EXPECT_EQ(7, element);
  EXPECT_EQ(" Collective 7", received(3));
  EXPECT_EQ("", received(0) + received(1));
  EXPECT_EQ(1u, rank.comm->matcher.number());
}

TEST_F(ForwardTest, AChildWithoutRoomIsWaitedFor) {
  for (uint32_t i = 0; i < kTestSlots; i++) ASSERT_TRUE(rank.peer(3).data->sendFrame(Frame()));
  sendFromRoot(7);
  EXPECT_FALSE(runEagerly(*rank.comm, &broadcast, 1, begun));
  EXPECT_FALSE(begun.isSent());
  TestThread call([&] {
    Operation copy = broadcast;
    rank.run(makeCollective(*rank.comm, std::move(copy)));
  });
  std::string got;
  while (got.find("Collective 7") == std::string::npos) got += received(3);
  call.join();
  EXPECT_EQ(7, element);
}

TEST_F(ForwardTest, ASleepingRankTellsTheOthersOnce) {
  int slept = 0;
  // More calls than would fit: frames that nobody awaits must leave room for others.
  for (int i = 0; i < 70; i++) {
    Operation copy = broadcast;
    TestThread call([&] { rank.run(makeCollective(*rank.comm, std::move(copy))); });
    std::string seen;
    while (slept == i && seen.empty()) {
      seen = received(0);
      if (!seen.empty()) slept++;
    }
    EXPECT_EQ(" Waiting", seen);
    if (i == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      EXPECT_EQ("", received(0)) << "told twice";
    }
    sendFromRoot(i);
    call.join();
    EXPECT_EQ(i, element);
    EXPECT_EQ(format(" Waiting Collective %d", i), received(3));
  }
  EXPECT_TRUE(rank.peer(1).data->hasRoomForFrame(kMaxInlined));
  Frame frame;
  char elements[kMaxInlined];
  int untaken = 0;
  while (ends[1]->receiveFrame(frame, elements) > 0) {
    untaken++;
    EXPECT_EQ(FrameKind::Waiting, frame.kind);
    EXPECT_EQ(static_cast<uint64_t>(untaken), frame.settings.collective);
  }
  EXPECT_EQ(kTestSlots / 2 + 1, static_cast<uint32_t>(untaken));
}

TEST_F(ForwardTest, FramesOfRanksThatNobodyAwaitsMakeRoomForOthers) {
  Frame waiting = broadcast.frame();
  waiting.kind = FrameKind::Waiting;
  waiting.settings.collective = 1000;
  while (ends[1]->hasRoomForOptionalFrame()) ASSERT_TRUE(ends[1]->sendFrame(waiting));
  sendFromRoot(7);
  Operation copy = broadcast;
  rank.run(makeCollective(*rank.comm, std::move(copy)));
  EXPECT_TRUE(ends[1]->hasRoomForOptionalFrame());
}

// Ranks without shared memory between them exchange frames.
TEST(MixedBroadcastTest, ElementsPassSocketsToo) {
  for (int bySocket : {0, 1, 3}) {
    for (size_t count : {1, 100}) {
      SCOPED_TRACE(format("rank %d, %zu elements", bySocket, count));
      Connected rank(4, true, {}, 2);
      std::unique_ptr<Channel> ends[4];
      for (int peer : {0, 1, 3}) {
        PeerEnd& end = rank.ends[static_cast<size_t>(peer)];
        if (peer == bySocket) {
          auto [mine, theirs] = newStream();
          rank.peer(peer).data = openChannel(std::move(mine), Fd(), kTestRing, true);
          ends[peer] = openChannel(std::move(theirs), Fd(), kTestRing, false);
        } else {
          ends[peer] = openChannel(std::move(end.data), end.memory, kTestRing, false);
        }
      }
      std::vector<int32_t> sent(count, 6), got(count), forwarded(count);
      Operation broadcast;
      broadcast.call = Call::Broadcast;
      broadcast.send = broadcast.recv = reinterpret_cast<char*>(got.data());
      broadcast.count = count;
      broadcast.type = ncclInt32;
      Begun begun;
      EXPECT_FALSE(runEagerly(*rank.comm, &broadcast, 1, begun));
      EXPECT_FALSE(begun.isSent());
      Frame frame = broadcast.frame();
      frame.sequence = 1;
      if (bySocket == 0) {
        frame.number = kFirstFrame;
        if (count == 1) frame.add(sent.data(), sizeof(int32_t));
        iovec parts[2] = {{&frame, sizeof frame}, {sent.data(), count == 1 ? 0 : count * sizeof(int32_t)}};
        ends[0]->send(parts, 2);
      } else {
        frame.add(sent.data(), count * sizeof(int32_t));
        ASSERT_TRUE(ends[0]->sendFrame(frame, reinterpret_cast<const char*>(sent.data())));
      }
      rank.run(makeCollective(*rank.comm, std::move(broadcast)));
      EXPECT_EQ(sent, got);
      auto receive = [&](int peer, Frame& there) {
        char elements[kMaxInlined];
        if (peer != bySocket) return ends[peer]->receiveFrame(there, elements) > 0;
        return ends[peer]->receive(&there, sizeof there) == sizeof there;
      };
      for (int peer : {0, 1, 3}) {
        Frame there;
        EXPECT_EQ(peer == bySocket || peer == 3, receive(peer, there)) << peer;
        if (peer != 3) continue;
        EXPECT_EQ(count == 100 && bySocket == 3 ? 0u : count * sizeof(int32_t), there.inlined);
        if (there.inlined > 0) continue;
        EXPECT_EQ(static_cast<long>(count * sizeof(int32_t)), ends[3]->receive(forwarded.data(), count * sizeof(int32_t)));
        EXPECT_EQ(sent, forwarded);
      }
      // The frame of that rank is compared when it arrives.
      EXPECT_EQ(bySocket == 0 ? 0u : 1u, rank.peer(bySocket).calls.unverified.size());
    }
  }
}

TEST(BroadcastTimeoutTest, TheErrorNamesTheRankThatIsLate) {
  Variable timeout("NCCL4J_HOST_OP_TIMEOUT", "0.05");
  for (bool parentWaits : {false, true}) {
    Connected rank(4, true, {}, 3);
    Operation broadcast;
    int32_t element = 0;
    broadcast.call = Call::Broadcast;
    broadcast.send = broadcast.recv = reinterpret_cast<char*>(&element);
    broadcast.count = 1;
    broadcast.type = ncclInt32;
    std::unique_ptr<Channel> parent;
    parent = openChannel(std::move(rank.ends[2].data), rank.ends[2].memory, kTestRing, false);
    Frame waiting = broadcast.frame();
    waiting.kind = FrameKind::Waiting;
    waiting.settings.collective = 1;
    if (parentWaits) parent->sendFrame(waiting);
    std::string failure = failureOf([&] { rank.run(makeCollective(*rank.comm, std::move(broadcast))); });
    std::string late = parentWaits ? "for rank 0" : "for rank 2";
    EXPECT_NE(std::string::npos, failure.find("in Broadcast(ncclInt32, count 1, root 0) " + late)) << failure;
  }
}

/** Rank 0 and a peer that calls other collectives, or in another order. */
class OrderTest : public testing::TestWithParam<Path>, protected Pair {
 protected:
  OrderTest() : Pair(GetParam()) {}

  Frame waiting(int number, size_t count = 1, int root = 0) {
    Operation call = operation(Call::Broadcast);
    call.count = count;
    call.root = root;
    Frame frame = call.frame();
    frame.kind = FrameKind::Waiting;
    frame.settings.collective = static_cast<uint64_t>(number);
    return frame;
  }

  void sendSum() {
    Frame frame = operation(Call::AllReduce).frame();
    int32_t element = 7;
    frame.add(&element, sizeof element);
    send(frame);
  }

  void dropReceived() {
    Frame frame;
    char elements[kMaxInlined];
    while (theirs->receiveFrame(frame, elements) > 0) continue;
  }
};

INSTANTIATE_TEST_SUITE_P(Paths, OrderTest, testing::Values(Path::Eager, Path::Task), [](const auto& info) {
  return info.param == Path::Eager ? "Eager" : "Task";
});

TEST_P(OrderTest, ASkippedBroadcastIsFoundByTheNextCall) {
  EXPECT_EQ("", collective(Call::Broadcast));
  sendSum();
  EXPECT_EQ(
      "5: rank 1 called AllReduce(ncclInt32, count 1, ncclSum) while rank 0 called Broadcast(ncclInt32, count 1, root 0)",
      collective(Call::AllReduce));
  EXPECT_EQ(5, out) << "of the Broadcast";
}

TEST_P(OrderTest, ABroadcastThatOnlyThePeerCalledIsFound) {
  collectives = 1;
  sendSum();
  EXPECT_EQ(
      "5: rank 1, which has called more collectives before, called AllReduce(ncclInt32, count 1, ncclSum) while rank 0 called "
      "AllReduce(ncclInt32, count 1, ncclSum)",
      collective(Call::AllReduce));

  Pair other(GetParam());
  other.collectives = 1;
  other.send(operation(Call::AllReduce).frame());
  EXPECT_EQ(
      "5: rank 1, which has called more collectives before, called AllReduce(ncclInt32, count 1, ncclSum) while rank 0 called "
      "Recv(ncclInt32, count 1, from rank 1)",
      other.messages({Call::Recv}));
}

TEST_P(OrderTest, ABroadcastOfAnotherNumberOfBytesIsRefused) {
  Operation broadcast = operation(Call::Broadcast);
  broadcast.root = 1;
  Frame frame = broadcast.frame();
  frame.inlined = 8;
  send(frame);
  EXPECT_EQ("3: rank 1 sent something unintelligible", run(std::move(broadcast)));
  EXPECT_EQ(0, out);
}

TEST_P(OrderTest, ABroadcastBeforeOrAfterAMessageIsFound) {
  EXPECT_EQ("", collective(Call::Broadcast));
  send(post(Call::Send));
  EXPECT_EQ(
      "5: rank 1 called Send(ncclInt32, count 1, to rank 0) while rank 0 called Broadcast(ncclInt32, count 1, root 0)",
      messages({Call::Recv}));

  Pair other(GetParam());
  other.collectives = 1;
  other.send(other.post(Call::Send));
  EXPECT_EQ(
      "5: rank 1, which has called more collectives before, called Send(ncclInt32, count 1, to rank 0) while rank 0 called "
      "Recv(ncclInt32, count 1, from rank 1)",
      other.messages({Call::Recv}));
}

TEST_P(OrderTest, CallsInTheSameOrderMatch) {
  for (int i = 0; i < 600; i++) {
    SCOPED_TRACE(i);
    collectives++;
    ASSERT_EQ("", collective(Call::Broadcast));
    sendSum();
    ASSERT_EQ("", collective(Call::AllReduce));
    send(post(Call::Send));
    ASSERT_EQ("", messages({Call::Recv}));
    dropReceived();
  }
}

TEST_P(OrderTest, WaitingFramesAreComparedWithTheirCall) {
  EXPECT_EQ("", collective(Call::Broadcast));
  collectives++;
  send(waiting(1, 3));
  sendSum();
  EXPECT_EQ(
      "5: rank 1 called Broadcast(ncclInt32, count 3, root 0) while rank 0 called Broadcast(ncclInt32, count 1, root 0)",
      collective(Call::AllReduce));
}

TEST_P(OrderTest, WaitingFramesOfCallsToComeAreKept) {
  send(waiting(2, 1, 1));
  sendSum();
  EXPECT_EQ("", collective(Call::AllReduce));
  Operation broadcast = operation(Call::Broadcast);
  broadcast.count = 2;
  broadcast.root = 1;
  EXPECT_EQ(
      "5: rank 1 called Broadcast(ncclInt32, count 1, root 1) while rank 0 called Broadcast(ncclInt32, count 2, root 1)",
      run(std::move(broadcast)));
}

// The numbers in other frames are modulo 256.
TEST_P(OrderTest, WaitingFramesOfOldCallsDoNotMatter) {
  for (int i = 0; i < 257; i++) {
    if (i == 20) send(waiting(1, 3));
    collectives++;
    ASSERT_EQ("", collective(Call::Broadcast));
    dropReceived();
  }
  sendSum();
  EXPECT_EQ("", collective(Call::AllReduce));
  EXPECT_EQ(12, out);
}

}  // namespace
}  // namespace host

// eager_test.cpp: collectives that end without a task, or that a task continues.

#include <gtest/gtest.h>

#include "pair.h"

namespace host {
namespace {

class EagerTest : public testing::Test, protected Pair {
 protected:
  EagerTest() : Pair(Path::Eager) {}

  /** Runs the call eagerly; true if it has ended. */
  bool ends(const Operation& operation) { return runEagerly(*rank.comm, operation, begun); }

  /** Sends the peer's frame of a call, with these elements. */
  void sendCall(const Operation& operation, std::initializer_list<int32_t> elements = {}) {
    Frame frame = operation.frame();
    if (elements.size() > 0) {
      ASSERT_TRUE(frame.take(elements.begin(), elements.size() * sizeof(int32_t)));
    }
    send(frame);
  }

  /** The elements in the only frame that the peer has received. */
  std::vector<int32_t> sent() {
    Frame frame;
    char elements[kMaxInlined];
    if (!theirs.receiveFrame(frame, elements)) return {-1};
    std::vector<int32_t> found(frame.inlined / sizeof(int32_t));
    if (!found.empty()) memcpy(found.data(), frame.words, frame.inlined);
    if (theirs.receiveFrame(frame, elements)) return {-2};
    return found;
  }

  /** A call of two elements for each rank. */
  Operation blocks(Call call, int root) {
    Operation two = operation(call);
    two.send = reinterpret_cast<const char*>(mine);
    two.recv = reinterpret_cast<char*>(got);
    two.count = 2;
    two.root = isRooted(call) ? root : 0;
    return two;
  }

  using Elements = std::vector<int32_t>;
  Elements all() { return Elements(got, got + 4); }

  Begun begun;
  int32_t mine[4] = {1, 2, 3, 4};
  int32_t got[4] = {};
};

TEST_F(EagerTest, EveryCallMovesItsElements) {
  struct Case {
    Call call;
    int root;
    std::initializer_list<int32_t> theirs;
    Elements sent, got;
  };
  const Case cases[] = {
      {Call::AllReduce, 0, {10, 20}, {1, 2}, {11, 22, 0, 0}},
      {Call::ReduceScatter, 0, {10, 20}, {3, 4}, {11, 22, 0, 0}},
      {Call::Reduce, 0, {10, 20}, {}, {11, 22, 0, 0}},
      {Call::Reduce, 1, {}, {1, 2}, {0, 0, 0, 0}},
      {Call::AllGather, 0, {10, 20}, {1, 2}, {1, 2, 10, 20}},
      {Call::AlltoAll, 0, {10, 20}, {3, 4}, {1, 2, 10, 20}},
      {Call::Gather, 0, {10, 20}, {}, {1, 2, 10, 20}},
      {Call::Gather, 1, {}, {1, 2}, {0, 0, 0, 0}},
      {Call::Scatter, 0, {}, {3, 4}, {1, 2, 0, 0}},
      {Call::Scatter, 1, {10, 20}, {}, {10, 20, 0, 0}},
      {Call::Broadcast, 0, {}, {1, 2}, {1, 2, 0, 0}},
      {Call::Broadcast, 1, {10, 20}, {}, {10, 20, 0, 0}},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(std::string(callName(one.call)) + " " + std::to_string(one.root));
    std::fill(got, got + 4, 0);
    Operation call = blocks(one.call, one.root);
    sendCall(call, one.theirs);
    EXPECT_TRUE(ends(call));
    EXPECT_EQ(one.got, all());
    EXPECT_EQ(one.sent, sent());
    EXPECT_TRUE(rank.comm->operation.try_lock()) << "still held";
    rank.comm->operation.unlock();
  }
}

TEST_F(EagerTest, InPlaceCallsSendWhatWasThere) {
  Operation exchange = blocks(Call::AlltoAll, 0);
  exchange.recv = reinterpret_cast<char*>(mine);
  sendCall(exchange, {10, 20});
  EXPECT_TRUE(ends(exchange));
  EXPECT_EQ((Elements{3, 4}), sent());
  EXPECT_EQ((Elements{1, 2, 10, 20}), Elements(mine, mine + 4));
}

TEST_F(EagerTest, ElementsInSeveralSlots) {
  std::vector<int32_t> ours(135, 4), result(135), others(135, 3);
  Operation sum = operation(Call::AllReduce);
  sum.send = reinterpret_cast<const char*>(ours.data());
  sum.recv = reinterpret_cast<char*>(result.data());
  sum.count = ours.size();
  Frame frame = sum.frame();
  frame.inlined = kMaxInlined;
  ASSERT_TRUE(theirs.sendFrame(frame, reinterpret_cast<const char*>(others.data())));
  EXPECT_TRUE(ends(sum));
  EXPECT_EQ(std::vector<int32_t>(135, 7), result);
}

TEST_F(EagerTest, ATaskAwaitsALateRank) {
  EXPECT_FALSE(ends(operation(Call::AllReduce)));
  EXPECT_TRUE(begun.lock.owns_lock());
  EXPECT_EQ(0u, begun.arrived);
  EXPECT_EQ((Elements{5}), sent());
  sendCall(operation(Call::AllReduce), {7});
  runCollective(*rank.comm, operation(Call::AllReduce), std::move(begun));
  EXPECT_EQ(12, out);
  EXPECT_EQ((Elements{-1}), sent()) << "a second frame";
  EXPECT_TRUE(rank.comm->operation.try_lock()) << "still held";
}

TEST_F(EagerTest, ATaskKeepsTheFramesOfTheOtherRanks) {
  Connected three(3);
  Channel ends[3];
  for (int peer : {1, 2}) {
    PeerEnd& end = three.ends[static_cast<size_t>(peer)];
    ends[peer].open(std::move(end.data), end.memory, kTestRing, false);
  }
  Operation sum = operation(Call::AllReduce);
  auto sendFrom = [&](int peer, int32_t element) {
    Frame frame = sum.frame();
    frame.take(&element, sizeof element);
    ASSERT_TRUE(ends[peer].sendFrame(frame));
  };
  sendFrom(1, 10);
  EXPECT_FALSE(runEagerly(*three.comm, sum, begun));
  EXPECT_EQ(1u << 1, begun.arrived);
  sendFrom(2, 100);
  runCollective(*three.comm, std::move(sum), std::move(begun));
  EXPECT_EQ(115, out);
}

TEST_F(EagerTest, ALateRootFrameOfAnEarlierCallIsNotComparedTwice) {
  // Rank 0 needs no elements of rank 1, which is late by one call.
  EXPECT_TRUE(ends(operation(Call::Broadcast)));
  EXPECT_FALSE(ends(operation(Call::AllReduce)));
  sendCall(operation(Call::Broadcast));
  sendCall(operation(Call::AllReduce), {7});
  runCollective(*rank.comm, operation(Call::AllReduce), std::move(begun));
  EXPECT_EQ(12, out);
  EXPECT_TRUE(rank.peer(1).unverified.empty());
}

TEST_F(EagerTest, ABroadcastThatATaskContinuesIsComparedOnce) {
  Connected three(3, true, {}, 1);
  Channel ends[3];
  for (int peer : {0, 2}) {
    PeerEnd& end = three.ends[static_cast<size_t>(peer)];
    ends[peer].open(std::move(end.data), end.memory, kTestRing, false);
  }
  Operation broadcast = operation(Call::Broadcast);
  EXPECT_FALSE(runEagerly(*three.comm, broadcast, begun));
  int32_t element = 9;
  Frame frame = broadcast.frame();
  frame.take(&element, sizeof element);
  ASSERT_TRUE(ends[0].sendFrame(frame));
  runCollective(*three.comm, operation(Call::Broadcast), std::move(begun));
  EXPECT_EQ(9, out);
  EXPECT_EQ(1u, three.peer(2).unverified.size());
}

TEST_F(EagerTest, WrongFramesFailTheCall) {
  struct Case {
    void (*change)(Frame&);
    const char* failure;
  };
  const Case cases[] = {
      {[](Frame& f) { f.count = 2; },
       "5: rank 1 called AllReduce(ncclInt32, count 2, ncclSum) while rank 0 called AllReduce(ncclInt32, count 1, ncclSum)"},
      {[](Frame& f) { f.op = ncclMax; },
       "5: rank 1 called AllReduce(ncclInt32, count 1, ncclMax) while rank 0 called AllReduce(ncclInt32, count 1, ncclSum)"},
      {[](Frame& f) { f.type = ncclFloat32; },
       "5: rank 1 called AllReduce(ncclFloat32, count 1, ncclSum) while rank 0 called AllReduce(ncclInt32"},
      {[](Frame& f) { f.inlined = 8; }, "3: rank 1 sent something unintelligible"},
      {[](Frame& f) { f.inlined = 0; }, "5: rank 1 called AllReduce with minCTAs"},
  };
  for (const Case& one : cases) {
    Pair fresh(Path::Eager);
    Frame frame = operation(Call::AllReduce).frame();
    frame.take(&in, sizeof in);
    one.change(frame);
    fresh.send(frame);
    std::string failure = fresh.collective(Call::AllReduce);
    EXPECT_EQ(one.failure, failure.substr(0, strlen(one.failure)));
    EXPECT_EQ(0, fresh.out);
  }
}

TEST_F(EagerTest, CallsWithoutElementsAwaitTheOtherRanks) {
  Operation none = operation(Call::AllReduce);
  none.count = 0;
  EXPECT_FALSE(ends(none));
  send(none.frame());
  runCollective(*rank.comm, std::move(none), std::move(begun));
}

TEST_F(EagerTest, AFrameOfAnEarlierCallHasNoElements) {
  EXPECT_TRUE(ends(operation(Call::Broadcast)));
  sendCall(operation(Call::Broadcast), {7});
  EXPECT_EQ("3: rank 1 sent something unintelligible", collective(Call::AllReduce));
}

TEST_F(EagerTest, ARootFindsAWrongCallAmongItsBroadcasts) {
  send(operation(Call::Broadcast).frame());
  Operation other = operation(Call::Broadcast);
  other.count = 3;
  send(other.frame());
  std::string failure;
  int calls = 0;
  while (failure.empty() && calls < 40) {
    failure = collective(Call::Broadcast);
    calls++;
  }
  EXPECT_EQ(
      "5: rank 1 called Broadcast(ncclInt32, count 3, root 0) while rank 0 called Broadcast(ncclInt32, count 1, root 0)",
      failure);
  EXPECT_EQ(16, calls);
}

TEST_F(EagerTest, ARootLeavesTheFramesOfLaterCalls) {
  for (int i = 0; i < 16; i++) send(operation(Call::Broadcast).frame());
  sendCall(operation(Call::AllReduce), {7});
  for (int i = 0; i < 16; i++) ASSERT_EQ("", collective(Call::Broadcast));
  EXPECT_TRUE(rank.peer(1).unverified.empty());
  EXPECT_EQ("", collective(Call::AllReduce));
  EXPECT_EQ(12, out);
}

/** Calls that are left to a task before any frame is sent. */
class NotEagerTest : public EagerTest {
 protected:
  void isLeft(const Operation& operation) {
    EXPECT_FALSE(ends(operation));
    EXPECT_FALSE(begun.lock.owns_lock());
    EXPECT_EQ((Elements{-1}), sent());
  }
};

TEST_F(NotEagerTest, OtherCallsAndMoreElements) {
  for (Call call : {Call::AlltoAllv, Call::CommSplit, Call::CommSplitId, Call::Send, Call::Recv}) isLeft(operation(call));
  Operation many = operation(Call::AllReduce);
  many.count = kMaxInlined / sizeof(int32_t) + 1;
  isLeft(many);
  Operation configured = operation(Call::AllReduce);
  configured.addExtras().config[0] = 1;
  isLeft(configured);
}

TEST_F(NotEagerTest, MoreRanksThanProcessors) {
  rank.comm->crowded = true;
  isLeft(operation(Call::AllReduce));
}

TEST_F(NotEagerTest, ACommunicatorInUse) {
  std::lock_guard<Baton> lock(rank.comm->operation);
  isLeft(operation(Call::AllReduce));
}

TEST_F(NotEagerTest, AFailure) {
  rank.comm->recordPeerFailure(ncclRemoteError, "rank 1 went away");
  isLeft(operation(Call::AllReduce));
  EXPECT_TRUE(rank.comm->operation.try_lock()) << "still held";
}

TEST_F(NotEagerTest, AnAbort) {
  rank.comm->lifecycle.enter(State::Aborted);
  isLeft(operation(Call::AllReduce));
}

TEST_F(NotEagerTest, AnInterrupt) {
  rank.comm->interrupts++;
  isLeft(operation(Call::AllReduce));
}

TEST_F(NotEagerTest, AMessage) {
  sendControl(ControlKind::Fault, ncclInvalidUsage, "rank 1 failed");
  isLeft(operation(Call::AllReduce));
  EXPECT_EQ("5: rank 1 failed", collective(Call::AllReduce));
}

// A rank that died sends none.
TEST_F(NotEagerTest, OneOf64CallsReadsAllMessages) {
  int left = 0;
  for (int i = 0; i < 128; i++) {
    send(operation(Call::Broadcast).frame());
    if (!ends(operation(Call::Broadcast))) {
      left++;
      EXPECT_FALSE(begun.lock.owns_lock());
      runCollective(*rank.comm, operation(Call::Broadcast), {});
    }
    EXPECT_EQ((Elements{5}), sent());
  }
  EXPECT_EQ(2, left);
}

TEST_F(NotEagerTest, MessagesWithoutAMatch) {
  sendCall(operation(Call::AllReduce), {7});
  rank.peer(1).remoteRecvs.push_back(post(Call::Recv));
  isLeft(operation(Call::AllReduce));
  rank.peer(1).remoteRecvs.clear();
  rank.peer(1).remoteSends.push_back({post(Call::Send), {}, 0});
  isLeft(operation(Call::AllReduce));
  rank.peer(1).remoteSends.clear();
  rank.peer(1).queue(&in, sizeof in);
  isLeft(operation(Call::AllReduce));
  rank.peer(1).out.clear();
  EXPECT_TRUE(ends(operation(Call::AllReduce)));
}

TEST_F(NotEagerTest, NoRoomForAFrame) {
  for (uint32_t i = 0; i < kTestSlots; i++) {
    EXPECT_TRUE(rank.peer(1).data.hasRoomForFrame(0));
    EXPECT_EQ(i < kTestSlots - 1, rank.peer(1).data.hasRoomForFrame(sizeof Frame::words + 1));
    ASSERT_TRUE(rank.peer(1).data.sendFrame(operation(Call::Broadcast).frame()));
  }
  EXPECT_FALSE(rank.peer(1).data.hasRoomForFrame(0));
  EXPECT_FALSE(ends(operation(Call::Broadcast)));
  EXPECT_FALSE(begun.lock.owns_lock());
}

TEST(SocketEagerTest, ASocketIsLeftToATask) {
  Pair pair(Path::Socket);
  Begun begun;
  EXPECT_FALSE(runEagerly(*pair.rank.comm, pair.operation(Call::Broadcast), begun));
  EXPECT_FALSE(begun.lock.owns_lock());
}

}  // namespace
}  // namespace host

// eager_test.cpp: operations that end without a task, or that a task continues.

#include <gtest/gtest.h>
#include <sched.h>

#include <vector>

#include "pair.h"
#include "testthread.h"

namespace host {
namespace {

class EagerTest : public testing::Test, protected Pair {
 protected:
  EagerTest() : Pair(Path::Eager) {}

  /** Runs the call eagerly; true if it has ended. */
  bool ends(const Operation& operation) { return runEagerly(*rank.comm, &operation, 1, begun); }

  /** Sends the peer's frame of a call, with these elements. */
  void sendCall(const Operation& operation, std::initializer_list<int32_t> elements = {}) {
    Frame frame = operation.frame();
    frame.add(elements.begin(), elements.size() * sizeof(int32_t));
    send(frame);
  }

  /** The elements in the only frame that the peer has received. */
  std::vector<int32_t> sent() {
    Frame frame;
    char elements[kMaxInlined];
    if (!theirs->receiveFrame(frame, elements)) return {-1};
    std::vector<int32_t> found(frame.inlined / sizeof(int32_t));
    if (!found.empty()) memcpy(found.data(), frame.words, frame.inlined);
    if (theirs->receiveFrame(frame, elements)) return {-2};
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
      // Its receivers send nothing.
      {Call::Broadcast, 0, {}, {1, 2}, {1, 2, 0, 0}},
      {Call::Broadcast, 1, {10, 20}, {-1}, {10, 20, 0, 0}},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(std::string(callName(one.call)) + " " + std::to_string(one.root));
    std::fill(got, got + 4, 0);
    Operation call = blocks(one.call, one.root);
    if (one.call == Call::Broadcast && one.root == 0) {
      collectives++;
    } else {
      sendCall(call, one.theirs);
    }
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
  frame.sequence = 1;
  frame.inlined = kMaxInlined;
  ASSERT_TRUE(theirs->sendFrame(frame, reinterpret_cast<const char*>(others.data())));
  EXPECT_TRUE(ends(sum));
  EXPECT_EQ(std::vector<int32_t>(135, 7), result);
}

TEST_F(EagerTest, ElementsThatFillTheWordsAndOneMore) {
  for (size_t count : {std::size(Frame().words) * 2, std::size(Frame().words) * 2 + 1}) {
    std::vector<int32_t> ours(count, 4), result(count), others(count, 3), seen(count);
    Operation sum = operation(Call::AllReduce);
    sum.send = reinterpret_cast<const char*>(ours.data());
    sum.recv = reinterpret_cast<char*>(result.data());
    sum.count = count;
    Frame frame = sum.frame();
    frame.sequence = static_cast<uint16_t>(++collectives);
    frame.add(others.data(), sum.bytes());
    ASSERT_TRUE(theirs->sendFrame(frame, reinterpret_cast<const char*>(others.data())));
    EXPECT_TRUE(ends(sum));
    EXPECT_EQ(std::vector<int32_t>(count, 7), result);
    ASSERT_TRUE(theirs->receiveFrame(frame, reinterpret_cast<char*>(seen.data())));
    if (MemoryChannel::slotsOf(frame) == 1) memcpy(seen.data(), frame.words, sizeof frame.words);
    EXPECT_EQ(ours, seen);
  }
}

TEST_F(EagerTest, NoDoorbellOfAnyKindOfCallIsLost) {
  for (Call call : {Call::Send, Call::Reduce, Call::Broadcast}) {
    Operation operation = this->operation(call);
    if (call == Call::Reduce) operation.root = 1;
    auto makeCallOfPeer = [&] {
      if (call == Call::Reduce) send(operation.frame());
      if (call == Call::Send) send(post(Call::Recv));
    };
    EXPECT_FALSE(losesDoorbell(*theirs, 30000, makeCallOfPeer, [&] { return ends(operation); })) << callName(call);
  }
}

TEST_F(EagerTest, ALongAllReduceIsLeftToATask) {
  constexpr int kRanks = 18;
  constexpr size_t kMost = kRanks * (kMaxInlined / 16 * 16);  // chunks of whole units fit their frames
  Connected many(kRanks);
  std::vector<int8_t> elements(kMost + 1);
  Operation sum = operation(Call::AllReduce);
  sum.send = sum.recv = reinterpret_cast<char*>(elements.data());
  sum.type = ncclInt8;
  // 17 frames of 481 bytes are the most that one rank sends of all its elements; of more, each frame has a chunk.
  for (size_t count : {481ul, 482ul, kMost, kMost + 1}) {
    sum.count = count;
    EXPECT_FALSE(runEagerly(*many.comm, &sum, 1, begun));
    EXPECT_EQ(count <= kMost, begun.isSent()) << count;
    begun = {};
  }
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

TEST_F(EagerTest, ACallThatHasBegunTakesWhatARankSentBeforeItLeft) {
  EXPECT_FALSE(ends(operation(Call::AllReduce)));
  sendCall(operation(Call::AllReduce), {7});
  sendControl(ControlKind::Abort, ncclSuccess, "");
  EXPECT_EQ("", failureOf([&] { runCollective(*rank.comm, operation(Call::AllReduce), std::move(begun)); }));
  EXPECT_EQ(12, out);
  begun = {};
  EXPECT_FALSE(ends(operation(Call::AllReduce)));
  EXPECT_EQ(
      "6: rank 1 aborted its communicator; rank 0 noticed it during AllReduce",
      failureOf([&] { runCollective(*rank.comm, operation(Call::AllReduce), std::move(begun)); }));
}

TEST_F(EagerTest, AGroupThatHasBegunTakesWhatARankSentBeforeItLeft) {
  Operation recv = operation(Call::Recv);
  EXPECT_FALSE(ends(recv));
  ASSERT_TRUE(begun.isSent());
  Frame send = post(Call::Send);
  int32_t theirElement = 7;
  send.add(&theirElement, sizeof theirElement);
  this->send(send);
  sendControl(ControlKind::Abort, ncclSuccess, "");
  EXPECT_EQ("", failureOf([&] { runPointToPoint(*rank.comm, &recv, 1, std::move(begun)); }));
  EXPECT_EQ(7, out);
}

TEST_F(EagerTest, ALookLeavesTheProcessorToTheOtherRank) {
  constexpr int kCalls = 40;
  cpu_set_t allowed, one;
  ASSERT_EQ(0, sched_getaffinity(0, sizeof allowed, &allowed));
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  // The peer's thread inherits this.
  ASSERT_EQ(0, sched_setaffinity(0, sizeof one, &one));
  TestThread peer([&] {
    for (int calls = 0; calls < kCalls; calls++) {
      Frame frame;
      char elements[kMaxInlined];
      // A task that waits long says so in a frame.
      do {
        while (!theirs->receiveFrame(frame, elements)) sched_yield();
      } while (frame.kind != FrameKind::Collective);
      sendCall(operation(Call::AllReduce), {7});
    }
  });
  int ended[2] = {};
  for (int calls = 0; calls < kCalls; calls++) {
    rank.comm->crowded = calls >= kCalls / 2;
    begun = {};
    if (ends(operation(Call::AllReduce))) {
      ended[rank.comm->crowded]++;
    } else {
      runCollective(*rank.comm, operation(Call::AllReduce), std::move(begun));
    }
    EXPECT_EQ(12, out);
  }
  peer.join();
  ASSERT_EQ(0, sched_setaffinity(0, sizeof allowed, &allowed));
  // Other threads of this processor may use the time of some looks.
  for (int calls : ended) EXPECT_LT(kCalls / 4, calls);
}

TEST_F(EagerTest, ATaskKeepsTheFramesOfTheOtherRanks) {
  Connected three(3);
  std::unique_ptr<Channel> ends[3];
  for (int peer : {1, 2}) {
    PeerEnd& end = three.ends[static_cast<size_t>(peer)];
    ends[peer] = openChannel(std::move(end.data), end.memory, kTestRing, false);
  }
  Operation sum = operation(Call::AllReduce);
  auto sendFrom = [&](int peer, int32_t element) {
    Frame frame = sum.frame();
    frame.sequence = 1;
    frame.add(&element, sizeof element);
    ASSERT_TRUE(ends[peer]->sendFrame(frame));
  };
  sendFrom(1, 10);
  EXPECT_FALSE(runEagerly(*three.comm, &sum, 1, begun));
  EXPECT_EQ(1u << 1, begun.arrived);
  sendFrom(2, 100);
  runCollective(*three.comm, std::move(sum), std::move(begun));
  EXPECT_EQ(115, out);
}

TEST_F(EagerTest, ALateFrameOfAnEarlierCallIsNotComparedTwice) {
  // Rank 0 needs no elements of rank 1, which is late by one call.
  EXPECT_TRUE(ends(reduceToPeer()));
  EXPECT_FALSE(ends(operation(Call::AllReduce)));
  send(reduceToPeer().frame());
  sendCall(operation(Call::AllReduce), {7});
  runCollective(*rank.comm, operation(Call::AllReduce), std::move(begun));
  EXPECT_EQ(12, out);
  EXPECT_TRUE(rank.peer(1).calls.unverified.empty());
}

TEST_F(EagerTest, AScatterThatATaskContinuesIsComparedOnce) {
  Connected three(3, true, {}, 1);
  std::unique_ptr<Channel> ends[3];
  for (int peer : {0, 2}) {
    PeerEnd& end = three.ends[static_cast<size_t>(peer)];
    ends[peer] = openChannel(std::move(end.data), end.memory, kTestRing, false);
  }
  Operation scatter = operation(Call::Scatter);
  EXPECT_FALSE(runEagerly(*three.comm, &scatter, 1, begun));
  int32_t element = 9;
  Frame frame = scatter.frame();
  frame.sequence = 1;
  frame.add(&element, sizeof element);
  ASSERT_TRUE(ends[0]->sendFrame(frame));
  runCollective(*three.comm, operation(Call::Scatter), std::move(begun));
  EXPECT_EQ(9, out);
  EXPECT_EQ(1u, three.peer(2).calls.unverified.size());
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
    frame.add(&in, sizeof in);
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

TEST_F(EagerTest, EveryWordOfAConfigurationIsCompared) {
  const Frame mine = operation(Call::Broadcast).frame();
  EXPECT_TRUE(isSameCall(mine, mine));
  for (size_t word = 0; word < std::tuple_size_v<ConfigWords>; word++) {
    Frame other = mine;
    other.words[word] = 1;
    EXPECT_FALSE(isSameCall(mine, other)) << word;
  }
}

TEST_F(EagerTest, AFrameOfAnEarlierCallHasNoElements) {
  EXPECT_TRUE(ends(reduceToPeer()));
  sendCall(reduceToPeer(), {7});
  EXPECT_EQ("3: rank 1 sent something unintelligible", collective(Call::AllReduce));
}

TEST_F(EagerTest, ARankFindsAWrongCallAmongEarlierOnes) {
  send(reduceToPeer().frame());
  Operation other = reduceToPeer();
  other.count = 3;
  send(other.frame());
  std::string failure;
  int calls = 0;
  while (failure.empty() && calls < 40) {
    failure = run(reduceToPeer());
    calls++;
  }
  EXPECT_EQ(
      "5: rank 1 called Reduce(ncclInt32, count 3, ncclSum, root 1) while rank 0 called Reduce(ncclInt32, count 1, ncclSum, root 1)",
      failure);
  EXPECT_EQ(16, calls);
}

TEST_F(EagerTest, ARankLeavesTheFramesOfLaterCalls) {
  for (int i = 0; i < 16; i++) send(reduceToPeer().frame());
  sendCall(operation(Call::AllReduce), {7});
  for (int i = 0; i < 16; i++) ASSERT_EQ("", run(reduceToPeer()));
  EXPECT_TRUE(rank.peer(1).calls.unverified.empty());
  EXPECT_EQ("", collective(Call::AllReduce));
  EXPECT_EQ(12, out);
}

/** Send and Recv calls of one group. */
/** Rank 2 of 5 in an AllReduce in chunks of 124 elements, the last of which has fewer. */
class ChunksTest : public testing::TestWithParam<bool> {
 protected:
  ChunksTest() : rank(kRanks, true, {}, kRank), in(kCount, 1), out(kCount) {
    for (int peer : kPeers) {
      PeerEnd& end = rank.ends[static_cast<size_t>(peer)];
      ends[peer] = openChannel(std::move(end.data), end.memory, kTestRing, false);
    }
    bool inPlace = GetParam();
    if (inPlace) out = in;
    sum.call = Call::AllReduce;
    sum.send = reinterpret_cast<const char*>(inPlace ? out.data() : in.data());
    sum.recv = reinterpret_cast<char*>(out.data());
    sum.count = kCount;
    sum.type = ncclInt32;
    for (int chunk = 0; chunk < kRanks; chunk++) {
      // This rank has 1 for each element, the others 10, 20, 40 and 50.
      expected.insert(expected.end(), sizeOf(chunk), chunk == kRank ? 121 : 1000 * chunk);
    }
  }

  static size_t sizeOf(int chunk) { return chunk < kRanks - 1 ? 124 : kCount - 4 * 124; }
  static size_t bytesOf(int chunk) { return sizeOf(chunk) * sizeof(int32_t); }

  /** Sends the elements of the peer for the chunk of this rank. */
  void sendFrame(int peer) {
    std::vector<int32_t> elements(sizeOf(kRank), 10 * (peer + 1));
    Frame frame = sum.frame();
    frame.sequence = 1;
    frame.add(elements.data(), bytesOf(kRank));
    ASSERT_TRUE(ends[peer]->sendFrame(frame, reinterpret_cast<const char*>(elements.data())));
  }
  /** Sends the folded chunk of the peer. */
  void sendChunk(int peer) {
    std::vector<int32_t> elements(sizeOf(peer), 1000 * peer);
    iovec part{elements.data(), bytesOf(peer)};
    ASSERT_EQ(static_cast<long>(bytesOf(peer)), ends[peer]->send(&part, 1));
  }

  /** Checks that each peer has the elements for its chunk, and the folded chunk of this rank, once. */
  void checkSent() {
    for (int peer : kPeers) {
      SCOPED_TRACE(peer);
      Frame frame;
      char inlined[kMaxInlined];
      ASSERT_TRUE(ends[peer]->receiveFrame(frame, inlined));
      ASSERT_EQ(bytesOf(peer), frame.inlined);
      std::vector<int32_t> elements(sizeOf(peer), 1), folded(sizeOf(kRank), 121), got(sizeOf(kRank));
      EXPECT_EQ(0, memcmp(elements.data(), inlined, bytesOf(peer)));
      EXPECT_FALSE(ends[peer]->receiveFrame(frame, inlined));
      ASSERT_EQ(bytesOf(kRank), ends[peer]->available());
      ends[peer]->receive(got.data(), bytesOf(kRank));
      EXPECT_EQ(folded, got);
    }
  }

  static constexpr int kRanks = 5, kRank = 2;
  static constexpr int kPeers[] = {0, 1, 3, 4};
  static constexpr size_t kCount = 601;
  Connected rank;
  std::unique_ptr<Channel> ends[kRanks];
  Operation sum;
  Begun begun;
  std::vector<int32_t> in, out, expected;
};

INSTANTIATE_TEST_SUITE_P(Buffers, ChunksTest, testing::Bool(), [](const auto& info) {
  return info.param ? "InPlace" : "OutOfPlace";
});

TEST_P(ChunksTest, EndsWithTheChunksOfAllRanks) {
  for (int peer : kPeers) {
    sendFrame(peer);
    sendChunk(peer);
  }
  EXPECT_TRUE(runEagerly(*rank.comm, &sum, 1, begun));
  EXPECT_EQ(expected, out);
  checkSent();
}

TEST_P(ChunksTest, ATaskAwaitsALateFrame) {
  for (int peer : {0, 1, 4}) {
    sendFrame(peer);
    sendChunk(peer);
  }
  EXPECT_FALSE(runEagerly(*rank.comm, &sum, 1, begun));
  EXPECT_TRUE(begun.isSent());
  EXPECT_FALSE(begun.isShared);
  sendFrame(3);
  sendChunk(3);
  runCollective(*rank.comm, Operation(sum), std::move(begun));
  EXPECT_EQ(expected, out);
  checkSent();
}

TEST_P(ChunksTest, ATaskAwaitsALateChunk) {
  for (int peer : kPeers) sendFrame(peer);
  for (int peer : {0, 1, 4}) sendChunk(peer);
  EXPECT_FALSE(runEagerly(*rank.comm, &sum, 1, begun));
  EXPECT_TRUE(begun.isShared);
  sendChunk(3);
  runCollective(*rank.comm, Operation(sum), std::move(begun));
  EXPECT_EQ(expected, out);
  checkSent();
}

TEST_P(ChunksTest, AnotherCallIsAMismatch) {
  for (int peer : {0, 1, 4}) sendFrame(peer);
  for (int peer : kPeers) sendChunk(peer);
  Operation other = sum;
  other.op = ncclMax;
  Frame frame = other.frame();
  frame.sequence = 1;
  frame.inlined = static_cast<uint16_t>(bytesOf(kRank));
  const char elements[kMaxInlined] = {};
  ASSERT_TRUE(ends[3]->sendFrame(frame, elements));
  EXPECT_FALSE(runEagerly(*rank.comm, &sum, 1, begun));
  EXPECT_EQ(
      "5: rank 3 called AllReduce(ncclInt32, count 601, ncclMax) while rank 2 called AllReduce(ncclInt32, count 601, ncclSum)",
      failureOf([&] { runCollective(*rank.comm, Operation(sum), std::move(begun)); }));
}

TEST_P(ChunksTest, ARingWithoutRoomIsLeftToATask) {
  std::vector<char> filling(kTestRing - bytesOf(kRank) + 1);
  iovec part{filling.data(), filling.size()};
  ASSERT_EQ(static_cast<long>(filling.size()), rank.peer(3).data->send(&part, 1));
  EXPECT_FALSE(runEagerly(*rank.comm, &sum, 1, begun));
  EXPECT_FALSE(begun.isSent());
}

TEST(ChunksOfThreadsTest, AllRanksGetTheSum) {
  constexpr int kRanks = 6;
  constexpr size_t kCount = 700;
  ncclComm_t comms[kRanks] = {};
  ASSERT_EQ(ncclSuccess, ncclCommInitAll(comms, kRanks, nullptr));
  std::vector<TestThread> ranks;
  for (int rank = 0; rank < kRanks; rank++) {
    ranks.emplace_back([&, rank] {
      for (int call = 0; call < 200; call++) {
        std::vector<int32_t> elements(kCount);
        for (size_t i = 0; i < kCount; i++) elements[i] = call * rank + static_cast<int32_t>(i);
        ASSERT_EQ(ncclSuccess, ncclAllReduce(elements.data(), elements.data(), kCount, ncclInt32, ncclSum, comms[rank], nullptr));
        for (size_t i = 0; i < kCount; i++) ASSERT_EQ(15 * call + kRanks * static_cast<int32_t>(i), elements[i]) << i;
      }
    });
  }
  for (TestThread& rank : ranks) rank.join();
  for (ncclComm_t comm : comms) ncclCommAbort(comm);
}

class EagerMessagesTest : public EagerTest {
 protected:
  bool ends(const std::vector<Operation>& group) { return runEagerly(*rank.comm, group.data(), group.size(), begun); }

  Operation send(int32_t count = 2) { return message(Call::Send, count); }
  Operation recv(int32_t count = 2) { return message(Call::Recv, count); }
  using Pair::send;

  Operation message(Call call, int32_t count) {
    Operation one = blocks(call, 0);
    one.count = static_cast<size_t>(count);
    one.root = 1;
    return one;
  }

  /** Sends the peer's announcement of a call, with these elements. */
  void announce(Call call, std::initializer_list<int32_t> elements, bool both = false) {
    Frame frame = message(call, 2).frame();
    frame.kind = FrameKind::Post;
    frame.root = 0;
    if (both) frame.send = SendKind::AlsoReceives;
    frame.add(elements.begin(), elements.size() * sizeof(int32_t));
    send(frame);
  }

  /** The only frame that the peer has received: "Send 1 2", or "Send+ 1 2" if it announces a Recv too. */
  std::string sentFrame() {
    Frame frame;
    char elements[kMaxInlined];
    if (!theirs->receiveFrame(frame, elements)) return "none";
    std::string text = callName(frame.call);
    if (frame.send == SendKind::AlsoReceives) text += "+";
    if (frame.kind != FrameKind::Post || frame.root != 1) text += " wrong";
    int32_t words[10];
    memcpy(words, frame.words, sizeof words);
    for (size_t i = 0; i < frame.inlined / sizeof(int32_t); i++) text += " " + std::to_string(words[i]);
    return theirs->receiveFrame(frame, elements) ? "two" : text;
  }
};

TEST_F(EagerMessagesTest, EveryGroupMovesItsElements) {
  announce(Call::Send, {10, 20});
  EXPECT_TRUE(ends({recv()}));
  EXPECT_EQ((Elements{10, 20, 0, 0}), all());
  EXPECT_EQ("Recv", sentFrame());

  announce(Call::Recv, {});
  EXPECT_TRUE(ends({send()}));
  EXPECT_EQ("Send 1 2", sentFrame());

  announce(Call::Send, {30, 40}, true);
  EXPECT_TRUE(ends({send(), recv()}));
  EXPECT_EQ((Elements{30, 40, 0, 0}), all());
  EXPECT_EQ("Send+ 1 2", sentFrame());

  announce(Call::Send, {50, 60}, true);
  EXPECT_TRUE(ends({recv(), send()}));
  EXPECT_EQ((Elements{50, 60, 0, 0}), all());
  EXPECT_EQ("Send+ 1 2", sentFrame());
  EXPECT_TRUE(rank.comm->operation.try_lock()) << "still held";
}

TEST_F(EagerMessagesTest, NoElements) {
  Frame frame = send(0).frame();
  frame.kind = FrameKind::Post;
  frame.root = 0;
  frame.send = SendKind::AlsoReceives;
  send(frame);
  EXPECT_TRUE(ends({send(0), recv(0)}));
  EXPECT_EQ("Send+", sentFrame());
}

TEST_F(EagerMessagesTest, ElementsInSeveralSlots) {
  std::vector<int32_t> ours(135, 4), result(135), others(135, 3);
  Operation out = send(135), in = recv(135);
  out.send = reinterpret_cast<const char*>(ours.data());
  in.recv = reinterpret_cast<char*>(result.data());
  Frame frame = out.frame();
  frame.kind = FrameKind::Post;
  frame.root = 0;
  frame.send = SendKind::AlsoReceives;
  frame.inlined = kMaxInlined;
  ASSERT_TRUE(theirs->sendFrame(frame, reinterpret_cast<const char*>(others.data())));
  EXPECT_TRUE(ends({out, in}));
  EXPECT_EQ(others, result);
  std::vector<int32_t> seen(135);
  ASSERT_TRUE(theirs->receiveFrame(frame, reinterpret_cast<char*>(seen.data())));
  EXPECT_EQ(ours, seen);
}

TEST_F(EagerMessagesTest, ATaskAwaitsALateRank) {
  std::vector<Operation> group = {send(), recv()};
  EXPECT_FALSE(ends(group));
  EXPECT_TRUE(begun.lock.owns_lock());
  EXPECT_EQ(0u, begun.arrived);
  EXPECT_EQ("Send+ 1 2", sentFrame());
  announce(Call::Send, {10, 20}, true);
  runPointToPoint(*rank.comm, group.data(), group.size(), std::move(begun));
  EXPECT_EQ((Elements{10, 20, 0, 0}), all());
  EXPECT_EQ("none", sentFrame());
  EXPECT_TRUE(rank.comm->operation.try_lock()) << "still held";
}

// To rank 1 and from rank 2, as in a ring.
TEST_F(EagerMessagesTest, SeveralRanks) {
  for (bool late : {false, true}) {
    std::fill(got, got + 4, 0);
    Connected three(3);
    std::unique_ptr<Channel> ends[3];
    for (int peer : {1, 2}) {
      PeerEnd& end = three.ends[static_cast<size_t>(peer)];
      ends[peer] = openChannel(std::move(end.data), end.memory, kTestRing, false);
    }
    std::vector<Operation> group = {send(), recv()};
    group[1].root = 2;
    Frame ready = recv().frame(), elements = send().frame();
    ready.kind = elements.kind = FrameKind::Post;
    ready.root = elements.root = 0;
    const int32_t theirs[] = {10, 20};
    elements.add(theirs, sizeof theirs);
    ASSERT_TRUE(ends[1]->sendFrame(ready));
    if (!late) {
      ASSERT_TRUE(ends[2]->sendFrame(elements));
    }
    Begun half;
    EXPECT_EQ(!late, runEagerly(*three.comm, group.data(), group.size(), half));
    if (late) {
      EXPECT_EQ(1u << 1, half.arrived);
      ASSERT_TRUE(ends[2]->sendFrame(elements));
      runPointToPoint(*three.comm, group.data(), group.size(), std::move(half));
    }
    EXPECT_EQ((Elements{10, 20, 0, 0}), all());
    Frame frame;
    ASSERT_TRUE(ends[1]->receiveFrame(frame, nullptr));
    EXPECT_EQ(Call::Send, frame.call);
    EXPECT_EQ(0, frame.op);
    EXPECT_EQ(8, frame.inlined);
    ASSERT_TRUE(ends[2]->receiveFrame(frame, nullptr));
    EXPECT_EQ(Call::Recv, frame.call);
    EXPECT_EQ(0, frame.inlined);
  }
}

// The Send to rank 1 needs nothing of that rank, of which an older frame is there.
TEST_F(EagerMessagesTest, ATaskAwaitsTheOtherRankOfABufferedSend) {
  for (bool sendsFirst : {true, false}) {
    std::fill(got, got + 4, 0);
    Connected three(3);
    PeerEnd& end = three.ends[2];
    std::unique_ptr<Channel> other;
    other = openChannel(std::move(end.data), end.memory, kTestRing, false);
    three.peer(1).credits.hasSent();
    three.peer(1).frame = post(Call::Recv);
    three.peer(1).frame.count = 2;
    std::vector<Operation> group = {send(), recv()};
    group[1].root = 2;
    if (!sendsFirst) std::swap(group[0], group[1]);
    Begun half;
    EXPECT_FALSE(runEagerly(*three.comm, group.data(), group.size(), half));
    EXPECT_EQ(0u, half.arrived);
    Frame elements = send().frame();
    elements.kind = FrameKind::Post;
    elements.root = 0;
    const int32_t theirs[] = {10, 20};
    elements.add(theirs, sizeof theirs);
    ASSERT_TRUE(other->sendFrame(elements));
    runPointToPoint(*three.comm, group.data(), group.size(), std::move(half));
    EXPECT_EQ((Elements{10, 20, 0, 0}), all());
    EXPECT_EQ(1u, three.peer(1).credits.open());
  }
}

// The first Recv is announced, and the second one only if its Send is not buffered.
TEST_F(EagerMessagesTest, ATaskAwaitsABufferedSend) {
  for (bool buffered : {true, false}) {
    std::vector<Operation> group = {recv()};
    rank.peer(1).credits = {};
    for (bool first : {true, false}) {
      EXPECT_FALSE(ends(group));
      EXPECT_EQ(first ? "Recv" : "none", sentFrame());
      Frame frame = send().frame();
      frame.kind = FrameKind::Post;
      frame.root = 0;
      const int32_t elements[] = {10, 20};
      frame.add(elements, sizeof elements);
      if (buffered) frame.send = SendKind::Buffered;
      ASSERT_TRUE(theirs->sendFrame(frame));
      runPointToPoint(*rank.comm, group.data(), group.size(), std::move(begun));
      begun = {};
      EXPECT_EQ((Elements{10, 20, 0, 0}), all());
    }
    EXPECT_EQ(buffered ? "none" : "Recv", sentFrame());
    EXPECT_EQ(buffered ? 1u : 0u, theirs->takeCredits());
  }
}

TEST_F(EagerMessagesTest, ARecvOfManyElementsIsAnnounced) {
  rank.peer(1).credits.hasReceived();
  EXPECT_FALSE(ends({recv(kMaxBuffered / sizeof(int32_t) + 1)}));
  EXPECT_EQ("Recv", sentFrame());
}

TEST_F(EagerMessagesTest, AnotherCallOfThePeerIsKept) {
  std::vector<Operation> first = {recv()};
  announce(Call::Send, {10, 20}, true);
  EXPECT_EQ("", run(first));
  EXPECT_EQ((Elements{10, 20, 0, 0}), all());
  EXPECT_EQ("Recv", sentFrame());
  ASSERT_EQ(1u, rank.peer(1).calls.recvs.size());
  std::vector<Operation> second = {send()};
  EXPECT_EQ("", run(second));
  EXPECT_EQ("Send 1 2", sentFrame());

  // The peer's Send comes before the Recv for which this rank waits.
  rank.peer(1).credits = {};
  announce(Call::Send, {30, 40});
  announce(Call::Recv, {});
  EXPECT_EQ("", run(second));
  ASSERT_EQ(1u, rank.peer(1).calls.sends.size());
  EXPECT_EQ("", run(first));
  EXPECT_EQ((Elements{30, 40, 0, 0}), all());
}

TEST_F(EagerMessagesTest, FramesOfEarlierCollectivesComeFirst) {
  EXPECT_TRUE(EagerTest::ends(reduceToPeer()));
  send(reduceToPeer().frame());
  announce(Call::Send, {10, 20});
  EXPECT_TRUE(ends({recv()}));
  EXPECT_EQ((Elements{10, 20, 0, 0}), all());
  EXPECT_TRUE(rank.peer(1).calls.unverified.empty());
}

TEST_F(EagerMessagesTest, WrongFramesFailTheCalls) {
  struct Case {
    void (*change)(Frame&);
    const char* failure;
  };
  const Case cases[] = {
      {[](Frame& f) { f.count = 3; },
       "5: rank 1 called Send(ncclInt32, count 3, to rank 0) while rank 0 called Recv(ncclInt32, count 2, from rank 1)"},
      {[](Frame& f) { f.type = ncclFloat32; },
       "5: rank 1 called Send(ncclFloat32, count 2, to rank 0) while rank 0 called Recv(ncclInt32, count 2, from rank 1)"},
      {[](Frame& f) { f.kind = FrameKind::Collective; f.call = Call::AllGather; },
       "5: rank 1 called AllGather(ncclInt32, count 2) while rank 0 called Recv(ncclInt32, count 2, from rank 1)"},
      {[](Frame& f) { f.kind = FrameKind::Data; }, "3: rank 1 sent elements that rank 0 does not expect"},
      {[](Frame& f) { f.root = 1; }, "3: rank 1 sent something unintelligible"},
      {[](Frame& f) { f.call = Call::AllReduce; }, "3: rank 1 sent something unintelligible"},
      {[](Frame& f) { f.inlined = 4; }, "3: rank 1 sent something unintelligible"},
      {[](Frame& f) { f.inlined = 0; }, "3: rank 1 sent something unintelligible"},
  };
  for (const Case& one : cases) {
    Pair fresh(Path::Eager);
    Frame frame = send().frame();
    frame.kind = FrameKind::Post;
    frame.root = 0;
    frame.add(mine, 2 * sizeof(int32_t));
    one.change(frame);
    if (frame.count == 3) frame.add(mine, 3 * sizeof(int32_t));
    fresh.send(frame);
    std::vector<Operation> group = {recv()};
    EXPECT_EQ(one.failure, fresh.run(group));
    EXPECT_EQ((Elements{0, 0, 0, 0}), all());
  }
}

TEST_F(EagerMessagesTest, ARecvOfAnotherCountFailsTheSend) {
  Frame frame = recv(3).frame();
  frame.kind = FrameKind::Post;
  frame.root = 0;
  send(frame);
  std::vector<Operation> group = {send()};
  EXPECT_EQ(
      "5: rank 1 called Recv(ncclInt32, count 3, from rank 0) while rank 0 called Send(ncclInt32, count 2, to rank 1)",
      run(group));
}

TEST_F(EagerMessagesTest, TheDeathOfThePeerEndsTheWait) {
  std::pair<std::vector<Operation>, const char*> groups[] = {
      {{send(), recv()}, "Send/Recv"}, {{send()}, "Send"}, {{recv()}, "Recv"}};
  for (auto& [group, name] : groups) {
    Pair fresh(Path::Eager);
    fresh.theirs.reset();
    fresh.rank.ends[1].control.reset();
    EXPECT_EQ(std::string("6: rank 1 (pid 0) went away during ") + name, fresh.run(group));
  }
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
  for (Call call : {Call::AlltoAllv, Call::CommSplit, Call::CommSplitId}) isLeft(operation(call));
  Operation many = operation(Call::AllReduce);
  many.count = kMaxInlined / sizeof(int32_t) + 1;
  isLeft(many);
  Operation configured = operation(Call::AllReduce);
  configured.addExtras().config[0] = 1;
  isLeft(configured);
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

// A rank that died sends no message.
TEST_F(EagerTest, ADeadRankIsFoundAmongItsLastCalls) {
  for (int death = 0; death < 2; death++) {
    Pair fresh(Path::Eager);
    auto calls = [&] {
      for (int i = 1; i <= 200; i++) {
        fresh.send(fresh.reduceToPeer().frame());
        Frame frame;
        std::string failure = fresh.run(fresh.reduceToPeer());
        if (!failure.empty()) return std::to_string(i) + " " + failure;
        fresh.theirs->receiveFrame(frame, nullptr);
      }
      return std::string();
    };
    // The second time, all messages were read before; the next time is due after 10 ms.
    if (death == 1) {
      EXPECT_EQ("", calls());
      usleep(20'000);
    }
    fresh.rank.ends[1].control.reset();
    std::string found = calls();
    EXPECT_EQ((death == 0 ? "64 6:" : "56 6:") + std::string(" rank 1 (pid 0) went away during Reduce"), found);
  }
}

TEST_F(NotEagerTest, MessagesWithoutAMatch) {
  sendCall(operation(Call::AllReduce), {7});
  rank.peer(1).calls.recvs.push_back(post(Call::Recv));
  isLeft(operation(Call::AllReduce));
  rank.peer(1).calls.recvs.clear();
  rank.peer(1).calls.sends.push_back({post(Call::Send), {}, 0});
  isLeft(operation(Call::AllReduce));
  rank.peer(1).calls.sends.clear();
  rank.peer(1).queue(&in, sizeof in);
  isLeft(operation(Call::AllReduce));
  rank.peer(1).out.clear();
  EXPECT_TRUE(ends(operation(Call::AllReduce)));
}

TEST_F(NotEagerTest, NoRoomForAFrame) {
  for (uint32_t i = 0; i < kTestSlots; i++) {
    EXPECT_TRUE(rank.peer(1).data->hasRoomForFrame(0));
    EXPECT_EQ(i < kTestSlots - 1, rank.peer(1).data->hasRoomForFrame(sizeof Frame::words + 1));
    ASSERT_TRUE(rank.peer(1).data->sendFrame(operation(Call::Broadcast).frame()));
  }
  EXPECT_FALSE(rank.peer(1).data->hasRoomForFrame(0));
  EXPECT_FALSE(ends(operation(Call::Broadcast)));
  EXPECT_FALSE(begun.lock.owns_lock());
}

TEST_F(EagerMessagesTest, OtherGroupsAreLeftToATask) {
  Operation toOneself = send();
  toOneself.root = 0;
  Operation many = send(kMaxInlined / sizeof(int32_t) + 1);
  Operation other = recv();
  other.type = ncclFloat32;
  Operation with = send();
  with.addExtras();
  const std::vector<Operation> groups[] = {
      {send(), send()}, {recv(), recv()},     {send(), recv(1)},
      {send(), other},  {toOneself},          {many},
      {with},           {send(), blocks(Call::Broadcast, 1)}, {operation(Call::AllReduce), operation(Call::AllReduce)},
  };
  for (const std::vector<Operation>& group : groups) {
    EXPECT_FALSE(ends(group)) << &group - groups;
    EXPECT_FALSE(begun.lock.owns_lock());
    EXPECT_EQ("none", sentFrame());
  }
}

TEST_F(EagerMessagesTest, ManyRanksAreLeftToATask) {
  for (int ranks : {9, 10, 32, 33}) {
    Connected several(ranks);
    std::vector<Operation> group;
    for (int peer = 1; peer < std::min(ranks, 10); peer++) {
      group.push_back(send());
      group.back().root = peer;
    }
    Begun half;
    EXPECT_FALSE(runEagerly(*several.comm, group.data(), group.size(), half));
    EXPECT_EQ(ranks == 9, half.isSent()) << ranks;
    if (ranks < 32) continue;
    Operation last = send();
    last.root = ranks - 1;
    EXPECT_FALSE(runEagerly(*several.comm, &last, 1, half));
    EXPECT_EQ(ranks == 32, half.isSent()) << ranks;
  }
}

TEST(SocketEagerTest, ASocketIsLeftToATask) {
  Pair pair(Path::Socket);
  Begun begun;
  Operation broadcast = pair.operation(Call::Broadcast);
  EXPECT_FALSE(runEagerly(*pair.rank.comm, &broadcast, 1, begun));
  EXPECT_FALSE(begun.lock.owns_lock());
}

}  // namespace
}  // namespace host

// buffered_test.cpp: Sends that end before their Recv.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>
#include <vector>

#include "pair.h"
#include "status/rasreport.h"

namespace host {
namespace {

using Texts = std::vector<std::string>;

class BufferedTest : public testing::TestWithParam<Path>, protected Pair {
 protected:
  BufferedTest() : Pair(GetParam()) {}

  Operation message(Call call, size_t count) {
    Operation one = operation(call);
    one.count = count;
    if (call == Call::Send) one.send = reinterpret_cast<const char*>(many);
    if (call == Call::Recv) one.recv = reinterpret_cast<char*>(got);
    return one;
  }

  std::string run(Operation one) {
    if (!isPointToPoint(one.call)) return Pair::run(std::move(one));
    std::vector<Operation> group = {std::move(one)};
    return Pair::run(group);
  }

  /** Makes later Sends buffered. */
  void receiveFirst() {
    send(post(Call::Recv));
    ASSERT_EQ("", run(message(Call::Send, 1)));
    ASSERT_EQ((Texts{"Send"}), sent());
  }

  /** Sends the frame of a buffered Send of the peer, of the numbers 100, 101, ... */
  void sendBuffered(size_t count) {
    int32_t elements[64];
    for (size_t i = 0; i < count; i++) elements[i] = 100 + static_cast<int32_t>(i);
    Frame frame = message(Call::Send, count).frame();
    frame.kind = FrameKind::Post;
    frame.root = 0;
    frame.send = SendKind::Buffered;
    frame.sequence = static_cast<uint16_t>(collectives);
    frame.add(elements, count * sizeof *elements);
    ASSERT_TRUE(theirs->sendFrame(frame, reinterpret_cast<const char*>(elements)));
  }

  Frame allReduce() {
    Frame frame = operation(Call::AllReduce).frame();
    frame.add(&in, sizeof in);
    return frame;
  }

  /** The calls of the frames that the peer has received. */
  Texts sent() {
    Texts calls;
    char elements[kMaxInlined];
    for (Frame frame; theirs->receiveFrame(frame, elements) > 0;) {
      calls.push_back(std::string(frame.isBuffered() ? "buffered " : "") + callName(frame.call));
    }
    return calls;
  }

  /** Number of buffered Sends without their Recv. */
  size_t buffered() {
    rank.peer(1).takeCredits();
    return rank.peer(1).credits.open();
  }

  /** Receives a frame at the peer; false if `ended` comes first. */
  bool awaitFrame(const std::atomic<bool>& ended) {
    Frame frame;
    char elements[kMaxInlined];
    while (!theirs->receiveFrame(frame, elements)) {
      if (ended) return false;
      std::this_thread::yield();
    }
    return true;
  }

  /** Runs the call; true if it waits for the peer, which then sends the frame. */
  bool waitsFor(const Frame& frame, std::vector<Operation> group) {
    std::future<std::string> result = std::async(std::launch::async, [&] { return Pair::run(group); });
    bool waits = result.wait_for(std::chrono::milliseconds(50)) == std::future_status::timeout;
    send(frame);
    EXPECT_EQ("", result.get());
    return waits;
  }

  int32_t many[80] = {1, 2, 3};
  int32_t got[80] = {};
};

TEST_P(BufferedTest, TheFirstSendWaits) {
  EXPECT_FALSE(rank.peer(1).credits.buffers(0));
  EXPECT_TRUE(waitsFor(post(Call::Recv), {message(Call::Send, 1)}));
  EXPECT_TRUE(rank.peer(1).credits.buffers(0));
  EXPECT_EQ(0u, buffered());
}

TEST_P(BufferedTest, EightSendsMayLackTheirRecv) {
  receiveFirst();
  for (size_t i = 0; i < kMostBuffered; i++) {
    ASSERT_EQ("", run(message(Call::Send, 1)));
    ASSERT_EQ((Texts{"buffered Send"}), sent());
  }
  EXPECT_TRUE(waitsFor(post(Call::Recv), {message(Call::Send, 1)}));
  EXPECT_EQ(kMostBuffered, buffered());
  EXPECT_TRUE(waitsFor(post(Call::Recv), {message(Call::Send, 1)}));
}

TEST_P(BufferedTest, AGroupOfManySends) {
  receiveFirst();
  std::vector<Operation> group(kMostBuffered, message(Call::Send, 1));
  EXPECT_EQ("", Pair::run(group));
  EXPECT_TRUE(waitsFor(post(Call::Recv), {message(Call::Send, 1)}));
  send(post(Call::Recv));
  group.assign(2, message(Call::Send, 1));
  EXPECT_TRUE(waitsFor(post(Call::Recv), group));
  EXPECT_EQ(kMostBuffered, buffered());
}

TEST_P(BufferedTest, ManyElementsAreNotBuffered) {
  receiveFirst();
  EXPECT_EQ("", run(message(Call::Send, kMaxBuffered / sizeof(int32_t))));
  EXPECT_EQ((Texts{"buffered Send"}), sent());
  Frame recv = message(Call::Recv, 65).frame();
  recv.kind = FrameKind::Post;
  recv.root = 0;
  // The Sends of a group end in their order.
  Frame first = recv;
  first.count = 64;
  send(first);
  send(recv);
  EXPECT_TRUE(waitsFor(post(Call::Recv), {message(Call::Send, 65), message(Call::Send, 1)}));
  EXPECT_EQ((Texts{"Send", "Send"}), sent());
}

TEST_P(BufferedTest, ASendWithARecvIsNotBuffered) {
  receiveFirst();
  Frame both = post(Call::Send);
  both.send = SendKind::AlsoReceives;
  EXPECT_TRUE(waitsFor(both, {message(Call::Send, 1), message(Call::Recv, 1)}));
  EXPECT_EQ((Texts{"Send"}), sent());
  EXPECT_EQ(5, got[0]);
}

TEST_P(BufferedTest, TheRecvComesDuringACollective) {
  receiveFirst();
  EXPECT_EQ("", run(message(Call::Send, 1)));
  send(post(Call::Recv));
  send(allReduce());
  EXPECT_EQ("", collective(Call::AllReduce));
  EXPECT_EQ(0u, buffered());
}

TEST_P(BufferedTest, TheRecvComesAfterACollective) {
  receiveFirst();
  EXPECT_EQ("", run(message(Call::Send, 1)));
  send(allReduce());
  EXPECT_EQ("", collective(Call::AllReduce));
  EXPECT_EQ(1u, buffered());
  send(post(Call::Recv));
  send(allReduce());
  EXPECT_EQ("", collective(Call::AllReduce));
  EXPECT_EQ(0u, buffered());
}

TEST_P(BufferedTest, TheRecvComesWithASendOfThePeer) {
  receiveFirst();
  EXPECT_EQ("", run(message(Call::Send, 1)));
  // The peer's group is that of this Send; the next Recv is that of the group of this rank.
  Frame both = post(Call::Send);
  both.send = SendKind::AlsoReceives;
  send(both);
  EXPECT_TRUE(waitsFor(post(Call::Recv), {message(Call::Send, 1), message(Call::Recv, 1)}));
  EXPECT_EQ(0u, buffered());
  EXPECT_EQ(5, got[0]);
}

TEST_P(BufferedTest, TheRecvComesAmongFramesOfEarlierCalls) {
  receiveFirst();
  EXPECT_EQ("", run(reduceToPeer()));
  EXPECT_EQ("", run(message(Call::Send, 1)));
  send(reduceToPeer().frame());
  send(post(Call::Recv));
  send(allReduce());
  EXPECT_EQ("", collective(Call::AllReduce));
  EXPECT_EQ(0u, buffered());
  EXPECT_TRUE(rank.peer(1).calls.unverified.empty());

  EXPECT_EQ("", run(message(Call::Send, 1)));
  EXPECT_EQ("", run(reduceToPeer()));
  send(post(Call::Recv));
  send(reduceToPeer().frame());
  send(post(Call::Send));
  EXPECT_EQ("", run(message(Call::Recv, 1)));
  EXPECT_EQ(0u, buffered());
}

TEST_P(BufferedTest, ARecvThatWasThereBefore) {
  receiveFirst();
  rank.peer(1).calls.recvs.push_back(post(Call::Recv));
  EXPECT_EQ("", run(message(Call::Send, 1)));
  EXPECT_EQ(0u, buffered());
  EXPECT_TRUE(rank.peer(1).calls.recvs.empty());
}

/** With the elements in the frame, and in the slots after it. */
TEST_P(BufferedTest, ASendOfThePeerComesBeforeACollective) {
  for (size_t count : {1u, 20u, 64u}) {
    sendBuffered(count);
    send(allReduce());
    EXPECT_EQ("", collective(Call::AllReduce));
    EXPECT_EQ(1u, rank.peer(1).calls.sends.size());
    // So does another one.
    sendBuffered(2);
    send(allReduce());
    EXPECT_EQ("", collective(Call::AllReduce));
    sent();
    std::fill(std::begin(got), std::end(got), 0);
    EXPECT_EQ("", run(message(Call::Recv, count)));
    for (size_t i = 0; i < count; i++) EXPECT_EQ(100 + static_cast<int32_t>(i), got[i]);
    EXPECT_EQ(0, got[count]);
    EXPECT_EQ("", run(message(Call::Recv, 2)));
    EXPECT_EQ((Texts{"Recv", "Recv"}), sent());
    EXPECT_TRUE(rank.peer(1).calls.sends.empty());
  }
}

TEST_P(BufferedTest, ASendOfThePeerComesBeforeAFrameOfAnEarlierCall) {
  EXPECT_EQ("", run(reduceToPeer()));
  sendBuffered(20);
  send(reduceToPeer().frame());
  EXPECT_EQ("", run(message(Call::Recv, 20)));
  EXPECT_EQ(119, got[19]);
  send(allReduce());
  EXPECT_EQ("", collective(Call::AllReduce));
  EXPECT_TRUE(rank.peer(1).calls.unverified.empty());
}

TEST_P(BufferedTest, ASendOfThePeerIsReceivedAtOnce) {
  sendBuffered(20);
  EXPECT_EQ("", run(message(Call::Recv, 20)));
  EXPECT_EQ(119, got[19]);
  EXPECT_TRUE(rank.peer(1).calls.sends.empty());
}

TEST_P(BufferedTest, ASendThatWaitsFailsACollective) {
  sendBuffered(1);
  send(post(Call::Send));
  EXPECT_EQ(
      "5: rank 1 called Send(ncclInt32, count 1, to rank 0) while rank 0 called AllReduce(ncclInt32, count 1, ncclSum)",
      collective(Call::AllReduce));
}

TEST_P(BufferedTest, ASendThatWaitsBehindABufferedOneFailsACollective) {
  Frame buffered = post(Call::Send);
  buffered.send = SendKind::Buffered;
  rank.peer(1).calls.sends.push_back({buffered, {}, 0});
  rank.peer(1).calls.sends.push_back({post(Call::Send), {}, 0});
  EXPECT_EQ(
      "5: rank 1 called Send(ncclInt32, count 1, to rank 0) while rank 0 called AllReduce(ncclInt32, count 1, ncclSum)",
      collective(Call::AllReduce));
}

TEST_P(BufferedTest, ATaskWithoutFramesKeepsASend) {
  sendBuffered(20);
  Peer& peer = rank.peer(1);
  ASSERT_EQ(1, peer.receiveFrame());
  makeOneSided(*rank.comm, {})->framed(peer);
  EXPECT_EQ(1u, peer.calls.sends.size());
  EXPECT_EQ("", run(message(Call::Recv, 20)));
  EXPECT_EQ(119, got[19]);
}

// Also one that is not announced.
TEST_P(BufferedTest, ARecvOfAnotherCountFails) {
  for (bool announced : {true, false}) {
    Pair fresh(GetParam());
    if (!announced) fresh.rank.peer(1).credits.hasReceived();
    Frame frame = post(Call::Send);
    frame.send = SendKind::Buffered;
    fresh.send(frame);
    std::vector<Operation> recv = {message(Call::Recv, 3)};
    EXPECT_EQ(
        "5: rank 1 called Send(ncclInt32, count 1, to rank 0) while rank 0 called Recv(ncclInt32, count 3, from rank 1)",
        fresh.run(recv));
  }
}

TEST_P(BufferedTest, OnlyTheFirstRecvOfABufferedSendIsAnnounced) {
  for (size_t count : {1u, 20u, 64u}) {
    sendBuffered(count);
    EXPECT_EQ("", run(message(Call::Recv, count)));
    bool announced = count == 1 || GetParam() == Path::Task;
    EXPECT_EQ(announced ? (Texts{"Recv"}) : Texts(), sent());
    EXPECT_EQ(announced ? 0u : 1u, theirs->takeCredits());
    EXPECT_EQ(99 + static_cast<int32_t>(count), got[count - 1]);
  }
  send(post(Call::Send));
  EXPECT_EQ("", run(message(Call::Recv, 1)));
  EXPECT_EQ((Texts{"Recv"}), sent()) << "the Send waits for it";
  Frame both = post(Call::Send);
  both.send = SendKind::AlsoReceives;
  send(both);
  EXPECT_EQ("", run(message(Call::Recv, 1)));
  EXPECT_EQ((Texts{"Recv"}), sent()) << "the Send waits for it";
  EXPECT_EQ(1u, rank.peer(1).calls.recvs.size());
  EXPECT_EQ(0u, theirs->takeCredits());
}

// The peer may be in another call, which then fails.
TEST_P(BufferedTest, ARecvThatWaitsIsAnnounced) {
  rank.peer(1).credits.hasReceived();
  std::future<std::string> result = std::async(std::launch::async, [&] { return run(message(Call::Recv, 1)); });
  while (!theirs->isNext(FrameKind::Post)) std::this_thread::yield();
  sendBuffered(1);
  EXPECT_EQ("", result.get());
  EXPECT_EQ((Texts{"Recv"}), sent());
  EXPECT_EQ(0u, theirs->takeCredits());
}

TEST_P(BufferedTest, ACreditStandsForARecv) {
  receiveFirst();
  for (size_t i = 0; i < kMostBuffered; i++) ASSERT_EQ("", run(message(Call::Send, 1)));
  theirs->returnCredit();
  EXPECT_EQ("", run(message(Call::Send, 1)));
  EXPECT_EQ(kMostBuffered, buffered());

  std::future<std::string> result = std::async(std::launch::async, [&] { return run(message(Call::Send, 1)); });
  // The rank sleeps from 0.63 s to 1.27 s, unless a doorbell wakes it.
  EXPECT_EQ(std::future_status::timeout, result.wait_for(std::chrono::milliseconds(700)));
  theirs->returnCredit();
  EXPECT_EQ(std::future_status::ready, result.wait_for(std::chrono::milliseconds(300)));
  EXPECT_EQ("", result.get());
  for (size_t i = 0; i < kMostBuffered - 1; i++) theirs->returnCredit();
  EXPECT_EQ(1u, buffered());

  // Announced Recvs come in between.
  send(post(Call::Recv));
  send(allReduce());
  EXPECT_EQ("", collective(Call::AllReduce));
  EXPECT_EQ(0u, buffered());
  EXPECT_EQ("", run(message(Call::Send, 1)));
  theirs->returnCredit();
  Frame both = post(Call::Send);
  both.send = SendKind::AlsoReceives;
  send(both);
  std::vector<Operation> group = {message(Call::Send, 1), message(Call::Recv, 1)};
  EXPECT_EQ("", Pair::run(group));
  EXPECT_EQ(0u, buffered());
}

// The Send must not take the frame that follows the credit.
TEST_P(BufferedTest, ACollectiveOfThePeerComesRightAfterACredit) {
  receiveFirst();
  for (size_t i = 0; i < kMostBuffered; i++) ASSERT_EQ("", run(message(Call::Send, 1)));
  theirs->returnCredit();
  send(allReduce());
  EXPECT_EQ("", run(message(Call::Send, 1)));
  EXPECT_EQ("", collective(Call::AllReduce));
  sent();

  // Also if they arrive while it waits.
  std::atomic<bool> ended{false};
  auto peer = std::async(std::launch::async, [&] {
    for (;;) {
      if (!awaitFrame(ended)) return;
      theirs->returnCredit();
      send(allReduce());
      if (!awaitFrame(ended)) return;
    }
  });
  std::string failure;
  for (int round = 0; round < 3000 && failure.empty(); round++) {
    failure = run(message(Call::Send, 1)) + collective(Call::AllReduce);
  }
  ended = true;
  EXPECT_EQ("", failure);
}

TEST_P(BufferedTest, ARecvAfterACreditIsThatOfALaterSend) {
  receiveFirst();
  EXPECT_EQ("", run(message(Call::Send, 1)));
  theirs->returnCredit();
  send(post(Call::Recv));
  EXPECT_EQ(
      "5: rank 1 called Recv(ncclInt32, count 1, from rank 0) while rank 0 called AllReduce(ncclInt32, count 1, ncclSum)",
      collective(Call::AllReduce));
}

TEST_P(BufferedTest, MoreCreditsThanSendsAreUnintelligible) {
  receiveFirst();
  EXPECT_EQ("", run(message(Call::Send, 1)));
  theirs->returnCredit();
  theirs->returnCredit();
  send(post(Call::Recv));
  EXPECT_EQ("3: rank 1 sent something unintelligible", collective(Call::AllReduce));
}

TEST_P(BufferedTest, TooManySendsFailIfThePeerLeavesOrIsInACollective) {
  for (bool leaves : {true, false}) {
    Pair fresh(GetParam());
    fresh.rank.peer(1).credits.hasSent();
    for (size_t i = 0; i < kMostBuffered; i++) ASSERT_EQ("", fresh.messages({Call::Send}));
    if (leaves) {
      fresh.sendControl(ControlKind::Close, 0, "");
      EXPECT_EQ(
          "6: rank 1 (pid 0 on " + nodeName() +
              ") closed its communicator, but rank 0 called Send(ncclInt32, count 1, to rank 1); its program may have "
              "failed: see its log",
          fresh.messages({Call::Send}));
    } else {
      fresh.send(allReduce());
      EXPECT_EQ(
          "5: rank 1 called AllReduce(ncclInt32, count 1, ncclSum) while rank 0 called Send(ncclInt32, count 1, to rank 1)",
          fresh.messages({Call::Send}));
    }
  }
}

TEST_P(BufferedTest, WrongFramesAreUnintelligible) {
  void (*const changes[])(Frame&) = {
      [](Frame& frame) { frame.root = 1; },       [](Frame& frame) { frame.inlined = 0; },
      [](Frame& frame) { frame.inlined = 260; },  [](Frame& frame) { frame.count = 2; },
      [](Frame& frame) { frame.count = 1u << 31; }, [](Frame& frame) { frame.type = 99; },
      [](Frame& frame) { frame.count = 65; frame.inlined = 260; },
  };
  for (auto change : changes) {
    for (Call call : {Call::AllReduce, Call::Recv}) {
      Pair fresh(GetParam());
      Frame frame = post(Call::Send);
      frame.send = SendKind::Buffered;
      change(frame);
      fresh.send(frame);
      std::vector<Operation> recv = {operation(Call::Recv)};
      EXPECT_EQ(
          "3: rank 1 sent something unintelligible", call == Call::Recv ? fresh.run(recv) : fresh.collective(call));
    }
  }
}

TEST_P(BufferedTest, OnlyAnAnnouncementIsARecv) {
  receiveFirst();
  EXPECT_EQ("", run(message(Call::Send, 1)));
  Frame data = post(Call::Recv);
  data.kind = FrameKind::Data;
  send(data);
  EXPECT_EQ("3: rank 1 sent elements that rank 0 does not expect", run(message(Call::Recv, 1)));
  EXPECT_EQ(1u, buffered());
}

INSTANTIATE_TEST_SUITE_P(
    Paths, BufferedTest, testing::Values(Path::Eager, Path::Task),
    [](const auto& path) { return path.param == Path::Eager ? "Eager" : "Task"; });

// Without shared memory the elements would not be in the frame.
TEST(SocketTest, SendsAreNotBuffered) {
  Pair pair(Path::Socket);
  for (int i = 0; i < 3; i++) {
    pair.send(pair.post(Call::Recv));
    EXPECT_EQ("", pair.messages({Call::Send}));
    EXPECT_EQ(0u, pair.rank.peer(1).credits.open());
  }
  Frame frame = pair.post(Call::Send);
  frame.send = SendKind::Buffered;
  pair.send(frame);
  EXPECT_EQ("3: rank 1 sent something unintelligible", pair.collective(Call::AllReduce));
}

TEST_P(BufferedTest, APeerKeepsToItsNumber) {
  for (size_t sends : {kMostBuffered + 1, kMostBuffered + 2}) {
    Pair fresh(GetParam());
    for (size_t i = 0; i < sends; i++) {
      Frame frame = fresh.post(Call::Send);
      frame.send = SendKind::Buffered;
      fresh.send(frame);
    }
    Frame frame = fresh.operation(Call::AllReduce).frame();
    frame.add(&in, sizeof in);
    fresh.send(frame);
    EXPECT_EQ(
        sends <= kMostBuffered + 1 ? "" : "3: rank 1 sent something unintelligible", fresh.collective(Call::AllReduce));
    EXPECT_LE(fresh.rank.peer(1).calls.sends.size(), kMostBuffered + 1);
  }
}

}  // namespace
}  // namespace host

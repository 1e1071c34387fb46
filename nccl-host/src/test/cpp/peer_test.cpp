// peer_test.cpp: operations of a rank whose peer says anything.

#include <gtest/gtest.h>
#include <string.h>

#include "connected.h"

namespace host {
namespace {

/** Rank 0 and the other end of its connection to rank 1. */
class Pair {
 public:
  explicit Pair(bool shared) : rank(2, shared) {
    theirs.open(std::move(rank.ends[1].data), rank.ends[1].memory, kTestRing, false);
  }

  Operation operation(Call call) {
    Operation operation;
    operation.call = call;
    operation.send = reinterpret_cast<const char*>(&in);
    operation.recv = reinterpret_cast<char*>(&out);
    operation.count = 1;
    operation.type = ncclInt32;
    operation.root = isPointToPoint(call) ? 1 : 0;
    return operation;
  }

  /** The announcement of the peer's call. */
  Frame post(Call call) {
    Frame frame = operation(call).frame();
    frame.kind = FrameKind::Post;
    frame.root = 0;
    frame.bytes = call == Call::Send ? sizeof in : 0;
    return frame;
  }

  void send(const void* data, size_t size) {
    iovec part{const_cast<void*>(data), size};
    ASSERT_EQ(static_cast<long>(size), theirs.send(&part, 1));
  }

  void sendControl(ControlKind kind, int code, const char* text) {
    Control message;
    message.kind = kind;
    message.code = code;
    strncpy(message.text, text, sizeof message.text - 1);
    sendSome(rank.ends[1].control.get(), &message, sizeof message);
    theirs.announceMessage();
  }

  std::string collective(Call call) {
    return failureOf([&] { rank.run(makeCollective(*rank.comm, operation(call))); });
  }

  std::string messages(std::initializer_list<Call> calls) {
    std::vector<Operation> operations;
    for (Call call : calls) operations.push_back(operation(call));
    return failureOf([&] { rank.run(makePointToPoint(*rank.comm, std::move(operations))); });
  }

  Connected rank;
  Channel theirs;
  int32_t in = 5;
  int32_t out = 0;
};

class PeerTest : public testing::TestWithParam<bool>, protected Pair {
 protected:
  PeerTest() : Pair(GetParam()) {}
};

INSTANTIATE_TEST_SUITE_P(SharedAndSockets, PeerTest, testing::Bool(), [](const auto& info) {
  return info.param ? "Shared" : "Socket";
});

TEST_P(PeerTest, AnAllReduceAddsThePeersElement) {
  Frame frame = operation(Call::AllReduce).frame();
  int32_t element = 7;
  send(&frame, sizeof frame);
  send(&element, sizeof element);
  EXPECT_EQ("", collective(Call::AllReduce));
  EXPECT_EQ(12, out);
}

TEST_P(PeerTest, ACallThatDiffersWritesNothing) {
  Frame frame = operation(Call::AllReduce).frame();
  frame.count = UINT64_MAX;
  frame.op = -3;
  frame.type = 200;
  send(&frame, sizeof frame);
  EXPECT_EQ(
      "5: rank 1 called AllReduce(an invalid type, count 18446744073709551615, an invalid operator) while rank 0 called "
      "AllReduce(ncclInt32, count 1, ncclSum)",
      collective(Call::AllReduce));
  EXPECT_EQ(0, out);
}

TEST_P(PeerTest, FramesOfNoRankAreRefused) {
  const char* unintelligible = "3: rank 1 sent something unintelligible";
  for (auto change : {+[](Frame& f) { f.magic = 0; }, +[](Frame& f) { f.kind = static_cast<FrameKind>(77); },
                      +[](Frame& f) { f.call = Call::AllReduce; }, +[](Frame& f) { f.root = 1; }}) {
    Pair fresh(GetParam());
    Frame frame = post(Call::Send);
    change(frame);
    fresh.send(&frame, sizeof frame);
    fresh.send(&frame, frame.bytes);
    EXPECT_EQ(unintelligible, fresh.messages({Call::Recv}));
  }
}

TEST_P(PeerTest, AShortSendNeedsNoAnswer) {
  Frame frame = post(Call::Send);
  int32_t element = 7;
  send(&frame, sizeof frame);
  send(&element, sizeof element);
  EXPECT_EQ("", messages({Call::Recv}));
  EXPECT_EQ(7, out);
}

TEST_P(PeerTest, AShortSendWaitsForItsRecv) {
  for (Call call : {Call::Send, Call::Recv}) {
    Frame frame = post(call);
    send(&frame, sizeof frame);
    send(&in, frame.bytes);
  }
  EXPECT_EQ("", messages({Call::Send}));
  EXPECT_EQ(1u, rank.peer(1).remoteSends.size()) << "for a later Recv";
  EXPECT_EQ("", messages({Call::Recv}));
  EXPECT_EQ(5, out);
}

TEST_P(PeerTest, AShortSendOfAnotherSizeIsRefused) {
  for (uint64_t bytes : {uint64_t{0}, uint64_t{3}, uint64_t{5}, uint64_t{513}, UINT64_MAX}) {
    Pair fresh(GetParam());
    Frame frame = post(Call::Send);
    frame.bytes = bytes;
    fresh.send(&frame, sizeof frame);
    fresh.send(std::string(600, 'x').data(), 600);
    EXPECT_EQ("3: rank 1 sent something unintelligible", fresh.messages({Call::Recv}));
  }
}

TEST_P(PeerTest, ElementsThatNobodyExpectsAreRefused) {
  Frame frame = operation(Call::Send).frame();
  frame.kind = FrameKind::Data;
  frame.bytes = 1 << 20;
  send(&frame, sizeof frame);
  EXPECT_EQ("3: rank 1 sent elements that rank 0 does not expect", messages({Call::Recv}));
}

TEST_P(PeerTest, AFailureOfThePeerIsNeverASuccess) {
  for (int code : {0, static_cast<int>(ncclInProgress), -1, 1 << 30}) {
    Pair fresh(GetParam());
    fresh.sendControl(ControlKind::Fault, code, "reason");
    EXPECT_EQ("6: reason", fresh.collective(Call::AllReduce));
  }
  sendControl(ControlKind::Fault, ncclInvalidUsage, "reason");
  EXPECT_EQ("5: reason", collective(Call::AllReduce));
}

TEST_P(PeerTest, AnUnknownControlMessageIsRefused) {
  sendControl(static_cast<ControlKind>(99), 0, "");
  EXPECT_EQ("3: rank 1 sent something unintelligible", collective(Call::AllGather));
}

TEST_P(PeerTest, ALaneWithoutASocketIsRefused) {
  sendControl(ControlKind::Lane, 0, "");
  EXPECT_EQ("2: rank 0 could not take a socket from rank 1: too many open files", collective(Call::AllGather));
}

TEST_P(PeerTest, APeerThatLeavesBeforeItTakesALaneEndsTheWait) {
  auto [mine, lane] = newStream();
  Control message;
  message.kind = ControlKind::Lane;
  sendWithDescriptor(rank.ends[1].control.get(), &message, sizeof message, lane.get());
  sendControl(ControlKind::Close, 0, "");
  rank.ends[1].control.reset();
  Operation window = operation(Call::CommWindowRegister);
  window.windowBytes = sizeof out;
  Frame frame = window.frame();
  send(&frame, sizeof frame);
  EXPECT_EQ(
      "5: rank 1 destroyed its communicator before it took puts",
      failureOf([&] { rank.run(makeRegistration(*rank.comm, window)); }));
}

TEST_P(PeerTest, TheDeathOfThePeerEndsTheWait) {
  theirs.reset();
  rank.ends[1].control.reset();
  EXPECT_EQ("6: rank 1 (pid 0) went away during AllReduce", collective(Call::AllReduce));
}

}  // namespace
}  // namespace host

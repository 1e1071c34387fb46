// timeout_test.cpp: the ranks that the error of a late call names.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "connected.h"

namespace host {
namespace {

/** More than what comes with a frame, and less than what a rank offers. */
constexpr size_t kBytes = 32 << 10;

/** Rank 0 and two peers, of which this test writes the frames and the elements. */
class LateRanks : public testing::Test {
 protected:
  LateRanks() : timeout_("NCCL4J_HOST_OP_TIMEOUT", "0.05"), rank_(3) {
    for (size_t peer : {1, 2}) peers_[peer] = openChannel(std::move(rank_.ends[peer].data), rank_.ends[peer].memory, kTestRing, false);
  }

  static Operation operation(Call call, int root, size_t bytes = kBytes) {
    Operation operation;
    operation.call = call;
    operation.count = bytes;
    operation.type = ncclInt8;
    operation.root = root;
    return operation;
  }

  static Frame gatherFrame() {
    Frame frame = operation(Call::Gather, 0).frame();
    frame.sequence = 1;
    return frame;
  }

  /** Sends the frame and so many of the elements. */
  void send(size_t peer, const Frame& frame, size_t bytes) {
    ASSERT_TRUE(peers_[peer]->sendFrame(frame));
    if (bytes == 0) return;
    iovec part{elements_.data(), bytes};
    ASSERT_EQ(static_cast<long>(bytes), peers_[peer]->send(&part, 1));
  }

  /** The ranks in the error of a Gather. */
  std::string lateInGather() {
    Operation gather = operation(Call::Gather, 0);
    gather.send = elements_.data();
    gather.recv = gathered_.data();
    return ranksIn(failureOf([&] { rank_.run(makeCollective(*rank_.comm, std::move(gather))); }));
  }

  static std::string ranksIn(const std::string& failure) {
    size_t at = failure.rfind(" for ");
    return at == std::string::npos ? failure : failure.substr(at + 5);
  }

  Variable timeout_;
  Connected rank_;
  std::unique_ptr<Channel> peers_[3];
  std::vector<char> elements_ = std::vector<char>(kBytes);
  std::vector<char> gathered_ = std::vector<char>(3 * kBytes);
};

TEST_F(LateRanks, AreThoseThatHaveNotCalledIfOthersHave) {
  send(1, gatherFrame(), 100);
  EXPECT_EQ("rank 2", lateInGather());
}

TEST_F(LateRanks, AreThoseWhoseElementsAreMissingIfAllHaveCalled) {
  send(1, gatherFrame(), 100);
  send(2, gatherFrame(), kBytes);
  EXPECT_EQ("rank 1", lateInGather());
}

/** Rank 1 is in the call, although it has not taken the elements of this rank. */
TEST_F(LateRanks, DoNotIncludeOneThatDoesNotReceive) {
  constexpr size_t kMore = 2 * kTestRing;
  std::vector<char> elements(3 * kMore), received(3 * kMore);
  Operation exchange = operation(Call::AlltoAll, 0, kMore);
  exchange.send = elements.data();
  exchange.recv = received.data();
  Frame frame = exchange.frame();
  frame.sequence = 1;
  send(1, frame, 0);
  EXPECT_EQ("rank 2", ranksIn(failureOf([&] { rank_.run(makeCollective(*rank_.comm, std::move(exchange))); })));
}

/** A root waits for no elements, but for room. */
TEST_F(LateRanks, OfARootAreThoseThatDoNotReceive) {
  constexpr size_t kMore = 2 * kTestRing;
  std::vector<char> elements(3 * kMore), received(kMore);
  Operation scatter = operation(Call::Scatter, 0, kMore);
  scatter.send = elements.data();
  scatter.recv = received.data();
  EXPECT_EQ("ranks 1, 2", ranksIn(failureOf([&] { rank_.run(makeCollective(*rank_.comm, std::move(scatter))); })));
}

TEST_F(LateRanks, OfARecvIsTheOneWhoseElementsAreMissing) {
  Frame frame = operation(Call::Send, 0).frame();
  frame.kind = FrameKind::Post;
  send(1, frame, 0);
  frame.kind = FrameKind::Data;
  send(1, frame, 100);
  Operation recv = operation(Call::Recv, 1);
  recv.recv = gathered_.data();
  std::vector<Operation> operations{recv};
  EXPECT_EQ("rank 1", ranksIn(failureOf([&] { rank_.run(makePointToPoint(*rank_.comm, std::move(operations))); })));
}

}  // namespace
}  // namespace host

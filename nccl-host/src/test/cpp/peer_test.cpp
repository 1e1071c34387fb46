// peer_test.cpp: operations of a rank whose peer says anything.

#include <gtest/gtest.h>
#include <string.h>

#include <numeric>
#include <thread>

#include "pair.h"
#include "protocol/bootstrap.h"
#include "status/rasreport.h"
#include "testthread.h"

namespace host {
namespace {

class PeerTest : public testing::TestWithParam<Path>, protected Pair {
 protected:
  PeerTest() : Pair(GetParam()) {}
};

INSTANTIATE_TEST_SUITE_P(
    Paths, PeerTest, testing::Values(Path::Eager, Path::Task, Path::Socket), [](const auto& info) {
      return info.param == Path::Eager ? "Eager" : info.param == Path::Task ? "Task" : "Socket";
    });

TEST_P(PeerTest, AnAllReduceAddsThePeersElement) {
  Frame frame = operation(Call::AllReduce).frame();
  int32_t element = 7;
  frame.add(&element, sizeof element);
  send(frame);
  EXPECT_EQ("", collective(Call::AllReduce));
  EXPECT_EQ(12, out);
}

TEST_P(PeerTest, ACallThatDiffersWritesNothing) {
  Frame frame = operation(Call::AllReduce).frame();
  frame.count = UINT64_MAX;
  frame.op = -3;
  frame.type = 200;
  send(frame);
  EXPECT_EQ(
      "5: rank 1 called AllReduce(an invalid type, count 18446744073709551615, an invalid operator) while rank 0 called "
      "AllReduce(ncclInt32, count 1, ncclSum)",
      collective(Call::AllReduce));
  EXPECT_EQ(0, out);
}

TEST_P(PeerTest, FramesOfNoRankAreRefused) {
  const char* unintelligible = "3: rank 1 sent something unintelligible";
  for (auto change : {+[](Frame& f) { f.kind = static_cast<FrameKind>(77); }, +[](Frame& f) { f.call = Call::AllReduce; },
                      +[](Frame& f) { f.root = 1; }}) {
    Pair fresh(GetParam());
    Frame frame = post(Call::Send);
    change(frame);
    fresh.send(frame);
    EXPECT_EQ(unintelligible, fresh.messages({Call::Recv}));
  }
  for (uint16_t bytes : {0, 3, 5, 40, 255, 540, 541, 65535}) {
    Pair fresh(GetParam());
    Frame frame = operation(Call::AllReduce).frame();
    frame.inlined = bytes;
    fresh.send(frame);
    EXPECT_EQ(unintelligible, fresh.collective(Call::AllReduce));
  }
  if (GetParam() != Path::Socket) return;
  // In shared memory it has not arrived; see ImpossibleNumbersOfFramesGiveNone.
  Frame frame = post(Call::Send);
  frame.number = kFirstFrame + 1;
  send(&frame, sizeof frame);
  EXPECT_EQ(unintelligible, messages({Call::Recv}));
}

TEST_P(PeerTest, ARankThatNeedsNoElementsComparesCallsLater) {
  EXPECT_EQ("", run(reduceToPeer()));
  send(reduceToPeer().frame());
  EXPECT_EQ("", run(reduceToPeer()));
  send(operation(Call::AllGather).frame());
  EXPECT_EQ(
      "5: rank 1 called AllGather(ncclInt32, count 1) while rank 0 called Reduce(ncclInt32, count 1, ncclSum, root 1)",
      collective(Call::AllReduce));
}

// Neither rank waits for the other one's calls, so each must read them without waiting.
TEST_P(PeerTest, FramesThatNobodyAwaitsDoNotFillTheConnection) {
  for (int i = 0; i < 1000; i++) {
    send(reduceToPeer().frame());
    ASSERT_EQ("", run(reduceToPeer()));
    Frame frame;
    char elements[kMaxInlined];
    ASSERT_TRUE(theirs->has(Capability::Polling) ? theirs->receiveFrame(frame, elements) : theirs->receive(&frame, sizeof frame) == sizeof frame);
    ASSERT_EQ(sizeof in, frame.inlined);
    ASSERT_LE(rank.peer(1).calls.unverified.size(), 16u);
  }
}

TEST_P(PeerTest, ASendThatAnnouncesARecvNeedsNoOther) {
  Frame frame = post(Call::Send);
  frame.send = SendKind::AlsoReceives;
  send(frame);
  EXPECT_EQ("", messages({Call::Recv, Call::Send}));
  EXPECT_EQ(5, out);
}

TEST_P(PeerTest, ASendAnnouncesNoRecvOfAnotherType) {
  for (ncclDataType_t type : {ncclInt32, ncclFloat32}) {
    Frame sent = post(Call::Send);
    sent.type = type;
    send(post(Call::Recv));
    send(sent);
    std::vector<Operation> group{operation(Call::Send), operation(Call::Recv)};
    group[1].type = type;
    ASSERT_EQ("", run(group));
    std::string calls;
    for (bool both = false; !both && calls != "Send Recv ";) {
      Frame frame;
      char elements[kMaxInlined];
      ASSERT_TRUE(theirs->has(Capability::Polling) ? theirs->receiveFrame(frame, elements) : theirs->receive(&frame, sizeof frame) == sizeof frame);
      both = frame.call == Call::Send && frame.send == SendKind::AlsoReceives;
      calls += both ? "both" : frame.call == Call::Send ? "Send " : "Recv ";
    }
    EXPECT_EQ(type == ncclInt32 ? "both" : "Send Recv ", calls);
  }
}

TEST_P(PeerTest, ElementsOfASendWaitForALaterRecv) {
  std::vector<int32_t> sent(300, 9), got(300);
  Operation recv = operation(Call::Recv);
  recv.recv = reinterpret_cast<char*>(got.data());
  recv.count = got.size();
  for (bool readBefore : {false, true}) {
    std::fill(got.begin(), got.end(), 0);
    Frame frame = recv.frame();
    frame.kind = FrameKind::Post;
    frame.call = Call::Send;
    frame.root = 0;
    send(frame);
    send(sent.data(), sent.size() * sizeof(int32_t));
    if (readBefore) {
      send(post(Call::Recv));
      EXPECT_EQ("", messages({Call::Send}));
    }
    EXPECT_EQ("", failureOf([&] { rank.run(makePointToPoint(*rank.comm, {recv})); }));
    EXPECT_EQ(sent, got) << readBefore;
  }
}

// Of one rank they come with its frame, of the other one after it.
TEST(MixedPeersTest, AFoldTakesElementsFromSharedMemoryAndFromASocket) {
  const size_t count = 100;
  Connected rank(3, true);
  auto [mine, theirs] = newStream();
  rank.peer(2).data = openChannel(std::move(mine), Fd(), kTestRing, true);
  std::unique_ptr<Channel> one, two;
  one = openChannel(std::move(rank.ends[1].data), rank.ends[1].memory, kTestRing, false);
  two = openChannel(std::move(theirs), Fd(), kTestRing, false);
  std::vector<int32_t> ofZero(count, 1), ofOne(count, 20), ofTwo(count, 300);
  Operation operation;
  operation.send = operation.recv = reinterpret_cast<char*>(ofZero.data());
  operation.count = count;
  operation.type = ncclInt32;
  Frame frame = operation.frame();
  frame.sequence = 1;
  frame.inlined = count * sizeof(int32_t);
  ASSERT_TRUE(one->sendFrame(frame, reinterpret_cast<const char*>(ofOne.data())));
  frame.inlined = 0;
  frame.number = kFirstFrame;
  iovec parts[2] = {{&frame, sizeof frame}, {ofTwo.data(), count * sizeof(int32_t)}};
  ASSERT_EQ(static_cast<long>(sizeof frame + count * sizeof(int32_t)), two->send(parts, 2));
  EXPECT_EQ("", failureOf([&] { rank.run(makeCollective(*rank.comm, std::move(operation))); }));
  EXPECT_EQ(std::vector<int32_t>(count, 321), ofZero);
  // Its own elements left before the result took their place.
  std::vector<char> got(kMaxInlined);
  ASSERT_TRUE(one->receiveFrame(frame, got.data()));
  ASSERT_EQ(count * sizeof(int32_t), frame.inlined);
  for (size_t i = 0; i < count; i++) ASSERT_EQ(1, reinterpret_cast<int32_t*>(got.data())[i]);
}

TEST(PeerQueueTest, ElementsOfAFrameWaitWithIt) {
  Pair pair(Path::Task);
  std::vector<int32_t> in(100, 4);
  Operation broadcast = pair.operation(Call::Broadcast);
  broadcast.send = broadcast.recv = reinterpret_cast<char*>(in.data());
  broadcast.count = in.size();
  int queued = 0;
  while (pair.rank.peer(1).out.empty()) {
    pair.rank.peer(1).postInlined(broadcast.frame(), in.data(), in.size() * sizeof(int32_t));
    queued++;
  }
  in.assign(in.size(), -1);
  for (int i = 0; i < queued; i++) {
    Frame frame;
    alignas(4) char got[kMaxInlined];
    if (i == 1) {
      // Room for the queued one.
      pair.rank.peer(1).data->sendFrame(pair.rank.peer(1).out.front().frame, pair.rank.peer(1).out.front().elements.data());
    }
    ASSERT_TRUE(pair.theirs->receiveFrame(frame, got)) << i;
    ASSERT_EQ(in.size() * sizeof(int32_t), frame.inlined);
    for (size_t k = 0; k < in.size(); k++) ASSERT_EQ(4, reinterpret_cast<int32_t*>(got)[k]);
  }
}

TEST(PeerQueueTest, AShortFrameDoesNotOvertakeAQueuedOne) {
  Pair pair(Path::Task);
  Peer& peer = pair.rank.peer(1);
  for (uint32_t i = 0; i < kTestSlots; i++) ASSERT_TRUE(peer.data->sendFrame(pair.operation(Call::Broadcast).frame()));
  peer.postInlined(pair.post(Call::Send), nullptr, 0);
  Frame frame;
  char elements[kMaxInlined];
  for (uint32_t i = 0; i < kTestSlots; i++) ASSERT_TRUE(pair.theirs->receiveFrame(frame, elements));
  // There is room again.
  peer.postInlined(pair.operation(Call::AllReduce).frame(), &pair.in, sizeof pair.in);
  EXPECT_FALSE(pair.theirs->receiveFrame(frame, elements)) << callName(frame.call);
  EXPECT_EQ(2u, peer.out.size());
}

TEST(PeerQueueTest, AMatchedSendWaitsForRoom) {
  Pair pair(Path::Task);
  pair.rank.peer(1).calls.recvs.push_back(pair.post(Call::Recv));
  for (uint32_t i = 0; i < kTestSlots; i++) {
    ASSERT_TRUE(pair.rank.peer(1).data->sendFrame(pair.operation(Call::Broadcast).frame()));
  }
  std::string failure = "none";
  TestThread other([&] { failure = pair.messages({Call::Send}); });
  // It sleeps.
  Mapped mapped(pair.rank.ends[1].memory);
  while (mapped.words(0).flags[1] == 0) std::this_thread::yield();
  Frame frame;
  char elements[kMaxInlined];
  for (uint32_t i = 0; i < kTestSlots; i++) ASSERT_TRUE(pair.theirs->receiveFrame(frame, elements));
  other.join();
  EXPECT_EQ("", failure);
  ASSERT_TRUE(pair.theirs->receiveFrame(frame, elements));
  EXPECT_EQ(Call::Send, frame.call);
}

TEST_P(PeerTest, ElementsInSlotsWaitForALaterRecv) {
  if (GetParam() == Path::Socket) GTEST_SKIP() << "there are no slots";
  std::vector<int32_t> first(100, 3), second(50, 8), got(100);
  Operation recv = operation(Call::Recv);
  recv.recv = reinterpret_cast<char*>(got.data());
  for (const auto* sent : {&first, &second}) {
    recv.count = sent->size();
    Frame frame = recv.frame();
    frame.kind = FrameKind::Post;
    frame.call = Call::Send;
    frame.root = 0;
    frame.inlined = static_cast<uint16_t>(sent->size() * sizeof(int32_t));
    ASSERT_TRUE(theirs->sendFrame(frame, reinterpret_cast<const char*>(sent->data())));
  }
  send(post(Call::Recv));
  EXPECT_EQ("", messages({Call::Send})) << "reads the three frames";
  for (const auto* sent : {&first, &second}) {
    recv.count = sent->size();
    EXPECT_EQ("", failureOf([&] { rank.run(makePointToPoint(*rank.comm, {recv})); }));
    got.resize(sent->size());
    EXPECT_EQ(*sent, got);
  }
}

TEST_P(PeerTest, AShortSendNeedsNoAnswer) {
  Frame frame = post(Call::Send);
  int32_t element = 7;
  frame.add(&element, sizeof element);
  send(frame);
  EXPECT_EQ("", messages({Call::Recv}));
  EXPECT_EQ(7, out);
}

TEST_P(PeerTest, AShortSendWaitsForItsRecv) {
  for (Call call : {Call::Send, Call::Recv}) {
    send(post(call));
  }
  EXPECT_EQ("", messages({Call::Send}));
  EXPECT_EQ(1u, rank.peer(1).calls.sends.size()) << "for a later Recv";
  EXPECT_EQ("", messages({Call::Recv}));
  EXPECT_EQ(5, out);
}

TEST_P(PeerTest, AShortSendOfAnotherSizeIsRefused) {
  for (uint16_t bytes : {0, 3, 5, 41, 255, 540, 541, 65535}) {
    Pair fresh(GetParam());
    Frame frame = post(Call::Send);
    frame.inlined = bytes;
    fresh.send(frame);
    EXPECT_EQ("3: rank 1 sent something unintelligible", fresh.messages({Call::Recv}));
  }
}

TEST_P(PeerTest, ElementsThatNobodyExpectsAreRefused) {
  Frame frame = operation(Call::Send).frame();
  frame.kind = FrameKind::Data;
  send(frame);
  EXPECT_EQ("3: rank 1 sent elements that rank 0 does not expect", messages({Call::Recv}));
}

/** A rank that exchanges many elements with its peer in shared memory. */
class ManyElementsTest : public testing::Test, protected Pair {
 protected:
  ManyElementsTest() : Pair(Path::Task) {
    rank.peer(1).data->permitCopies();
    rank.peer(1).process = processToken();
  }

  Operation many(Call call) {
    Operation many = operation(call);
    many.send = reinterpret_cast<const char*>(sent.data());
    many.recv = reinterpret_cast<char*>(got.data());
    many.count = kCount;
    return many;
  }

  /** The Data frame of the peer for its elements. */
  Frame data(Operation operation, const void* address) {
    Frame frame = operation.frame();
    frame.kind = FrameKind::Data;
    frame.offer.address = reinterpret_cast<uintptr_t>(address);
    frame.offer.token = address != nullptr ? reinterpret_cast<uintptr_t>(&processToken()) : 0;
    return frame;
  }

  /** Runs the call while the body acts as the peer; returns the failure of the rank. */
  template <class Body>
  std::string during(Call call, Body&& body) {
    return during(many(call), body);
  }
  template <class Body>
  std::string during(const Operation& call, Body&& body) {
    std::string failure;
    TestThread other([&] {
      failure = failureOf([&] {
        rank.run(
            isPointToPoint(call.call) ? makePointToPoint(*rank.comm, {call}) : makeCollective(*rank.comm, Operation(call)));
      });
    });
    body();
    other.join();
    return failure;
  }

  Frame awaitFrame() { return awaitFrame(theirs); }
  static Frame awaitFrame(const std::unique_ptr<Channel>& from) {
    Frame frame;
    char elements[kMaxInlined];
    while (!from->receiveFrame(frame, elements)) std::this_thread::yield();
    return frame;
  }

  /** Sends the announcement of the peer's call. */
  void announce(Call call, size_t count, const void* offered = nullptr) {
    Frame frame = data(many(call), offered);
    frame.kind = FrameKind::Post;
    frame.root = 0;
    frame.count = count;
    send(frame);
  }

  /** Calls Recv as the peer, and returns the frame that offers the elements of the rank's Send, or comes before them. */
  Frame frameForRecv(size_t count = kCount) {
    announce(Call::Recv, count);
    Frame frame = awaitFrame();
    return frame.offer.address != 0 ? frame : awaitFrame();
  }

  /** The bytes that the rank leaves after an offer of the peer. */
  size_t awaitAnswer() {
    size_t left;
    while (!theirs->takeAnswer(left)) std::this_thread::yield();
    return left;
  }

  /** Takes the elements after the frames of the rank. */
  std::vector<int32_t> awaitElements(size_t count) { return awaitElements(count, theirs); }
  static std::vector<int32_t> awaitElements(size_t count, const std::unique_ptr<Channel>& from) {
    std::vector<int32_t> elements(count);
    char* at = reinterpret_cast<char*>(elements.data());
    for (size_t left = count * sizeof(int32_t); left > 0;) {
      long step = from->receive(at, left);
      if (step < 0) return {};
      at += step;
      left -= static_cast<size_t>(step);
    }
    return elements;
  }

  /** Opens the connections of three ranks to the two peers. */
  static void permitCopies(Connected& three, std::unique_ptr<Channel>* ends) {
    for (int peer : {1, 2}) {
      PeerEnd& end = three.ends[static_cast<size_t>(peer)];
      ends[peer] = openChannel(std::move(end.data), end.memory, kTestRing, false);
      three.peer(peer).data->permitCopies();
      three.peer(peer).process = processToken();
    }
  }

  static constexpr size_t kCount = 20'000;
  std::vector<int32_t> sent = std::vector<int32_t>(2 * kCount, 3), got = std::vector<int32_t>(2 * kCount),
                       peers = std::vector<int32_t>(kCount, 8);
};

TEST_F(ManyElementsTest, ARecvCopiesFromTheMemoryOfThePeer) {
  for (bool announced : {false, true}) {
    std::fill(got.begin(), got.end(), 0);
    std::string failure = during(Call::Recv, [&] {
      announce(Call::Send, kCount, announced ? peers.data() : nullptr);
      if (!announced) send(data(many(Call::Send), peers.data()));
      EXPECT_EQ(0u, awaitAnswer());
    });
    EXPECT_EQ("", failure);
    std::vector<int32_t> expected(kCount, 8);
    expected.resize(got.size());
    EXPECT_EQ(expected, got) << announced;
  }
}

TEST_F(ManyElementsTest, AnOfferWaitsForALaterRecv) {
  announce(Call::Send, kCount, peers.data());
  send(post(Call::Recv));
  EXPECT_EQ("", messages({Call::Send})) << "reads both frames";
  EXPECT_EQ("", during(Call::Recv, [&] { EXPECT_EQ(0u, awaitAnswer()); }));
  EXPECT_EQ(8, got[kCount - 1]);
}

TEST_F(ManyElementsTest, AnnouncementsComeBeforeOffers) {
  theirs->permitCopies();
  constexpr size_t kFew = kMany / sizeof(int32_t) - 1;
  Operation few = many(Call::Send), recv = many(Call::Recv);
  few.count = kFew;
  recv.count = kCount + 1;
  for (std::vector<Operation> group : {std::vector{few, many(Call::Send)}, std::vector{many(Call::Send), few}, std::vector{many(Call::Send), recv}}) {
    bool receives = group[1].call == Call::Recv;
    std::string failure;
    TestThread other([&] { failure = run(group); });
    for (const Operation& one : group) {
      Frame frame = awaitFrame();
      EXPECT_EQ(one.call, frame.call);
      EXPECT_EQ(one.count, frame.count);
      EXPECT_EQ(0u, frame.offer.address);
    }
    for (const Operation& one : group) {
      if (one.call == Call::Send) announce(Call::Recv, one.count);
    }
    if (receives) announce(Call::Send, recv.count, peers.data());
    for (const Operation& one : group) {
      if (one.call == Call::Recv) continue;
      Frame frame = awaitFrame();
      EXPECT_EQ(FrameKind::Data, frame.kind);
      EXPECT_EQ(one.count == kCount, frame.offer.address != 0);
      if (one.count == kCount) theirs->accept({frame.offer.address, frame.offer.token, processToken(), one.bytes()});
      EXPECT_EQ(std::vector<int32_t>(one.count, 3), awaitElements(one.count));
    }
    if (receives) {
      EXPECT_EQ(0u, awaitAnswer());
    }
    other.join();
    EXPECT_EQ("", failure);
  }
}

TEST_F(ManyElementsTest, ASendEndsWithTheAnswer) {
  std::string failure = during(Call::Send, [&] {
    Frame offered = frameForRecv();
    EXPECT_EQ(FrameKind::Post, offered.kind);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(sent.data()), offered.offer.address);
    theirs->permitCopies();
    theirs->accept({offered.offer.address, offered.offer.token, processToken(), kCount * sizeof(int32_t)});
    EXPECT_EQ(std::vector<int32_t>(kCount, 3), awaitElements(kCount));
  });
  EXPECT_EQ("", failure);
}

TEST_F(ManyElementsTest, ElementsThatThePeerCannotCopyFollow) {
  std::iota(sent.begin(), sent.end(), 1);
  for (size_t copied : {size_t{1000}, size_t{0}}) {
    std::string failure = during(Call::Send, [&] {
      Frame offered = frameForRecv();
      EXPECT_EQ(copied > 0, offered.offer.address != 0) << "no second offer";
      size_t left = (kCount - copied) * sizeof(int32_t);
      if (copied > 0) theirs->accept({offered.offer.address, offered.offer.token, 1, left});
      std::vector<int32_t> rest(sent.begin() + static_cast<long>(copied), sent.begin() + kCount);
      EXPECT_EQ(rest, awaitElements(rest.size()));
    });
    EXPECT_EQ("", failure);
  }
}

TEST_F(ManyElementsTest, AnAnswerLeavesNoMoreThanWasOffered) {
  std::string failure = during(Call::Send, [&] {
    frameForRecv();
    theirs->accept({1, 1, 1, kCount * sizeof(int32_t) + 1});
  });
  EXPECT_EQ("3: rank 1 sent something unintelligible", failure);
}

TEST_F(ManyElementsTest, ARankThatFailsWithdrawsItsOffer) {
  Mapped mapped(rank.ends[1].memory);
  volatile uint32_t& withdrawn = mapped.words(0).flags[3];
  std::string failure = during(Call::Send, [&] {
    frameForRecv();
    EXPECT_EQ(0u, withdrawn);
    sendControl(ControlKind::Fault, ncclInvalidUsage, "reason");
  });
  EXPECT_EQ("5: reason", failure);
  EXPECT_EQ(1u, withdrawn);
}

TEST_F(ManyElementsTest, CollectivesCopyElementsForOneRank) {
  for (Call call : {Call::AlltoAll, Call::AllGather}) {
    std::fill(got.begin(), got.end(), 0);
    std::string failure = during(call, [&] {
      send(many(call).frame());
      send(data(many(call), peers.data()));
      awaitFrame();
      Frame offered = awaitFrame();
      EXPECT_EQ(FrameKind::Data, offered.kind);
      theirs->accept({offered.offer.address, offered.offer.token, 1, kCount * sizeof(int32_t)});
      EXPECT_EQ(std::vector<int32_t>(kCount, 3), awaitElements(kCount));
    });
    EXPECT_EQ("", failure);
    EXPECT_EQ(3, got[kCount - 1]) << callName(call);
    EXPECT_EQ(8, got[kCount]) << callName(call);
    EXPECT_EQ(8, got[2 * kCount - 1]) << callName(call);
    size_t left;
    EXPECT_TRUE(theirs->takeAnswer(left));
  }
}

TEST_F(ManyElementsTest, AnAllGatherOfThreeRanksCopiesFrom128KiBOn) {
  constexpr size_t kLeast = (128 << 10) / sizeof(int32_t);
  for (size_t count : {kLeast - 1, kLeast}) {
    bool offers = count == kLeast;
    got.assign(3 * count, 0);
    peers.assign(count, 8);
    Operation gather = many(Call::AllGather);
    gather.count = count;
    Connected three(3);
    std::unique_ptr<Channel> ends[3];
    permitCopies(three, ends);
    std::string failure;
    TestThread other([&] { failure = failureOf([&] { three.run(makeCollective(*three.comm, Operation(gather))); }); });
    Frame call = gather.frame(), offer = data(gather, peers.data());
    call.sequence = offer.sequence = 1;
    for (int peer : {1, 2}) EXPECT_TRUE(ends[peer]->sendFrame(call));
    for (int peer : {1, 2}) {
      if (offers) {
        EXPECT_TRUE(ends[peer]->sendFrame(offer));
      } else {
        iovec part{peers.data(), gather.bytes()};
        while (part.iov_len > 0 && ends[peer]->send(&part, 1) >= 0) {
        }
      }
      EXPECT_EQ(FrameKind::Collective, awaitFrame(ends[peer]).kind);
      if (offers) {
        Frame offered = awaitFrame(ends[peer]);
        EXPECT_EQ(reinterpret_cast<uintptr_t>(sent.data()), offered.offer.address);
        ends[peer]->accept({offered.offer.address, offered.offer.token, 1, gather.bytes()});
      }
      EXPECT_EQ(std::vector<int32_t>(count, 3), awaitElements(count, ends[peer]));
    }
    other.join();
    EXPECT_EQ("", failure);
    std::vector<int32_t> expected(count, 3);
    expected.resize(3 * count, 8);
    EXPECT_EQ(expected, got);
  }
}

TEST_F(ManyElementsTest, AScatterCopiesFromTheRoot) {
  Operation scatter = many(Call::Scatter);
  scatter.root = 1;
  send(scatter.frame());
  send(data(scatter, peers.data()));
  EXPECT_EQ("", failureOf([&] { rank.run(makeCollective(*rank.comm, std::move(scatter))); }));
  EXPECT_EQ(8, got[0]);
  EXPECT_EQ(8, got[kCount - 1]);
  EXPECT_EQ(0, got[kCount]);
}

TEST_F(ManyElementsTest, ABroadcastOfThreeRanksThatShareProcessorsCopiesFromTheRoot) {
  constexpr size_t kElements = 300'000;
  for (bool crowded : {false, true}) {
    sent.resize(kElements);
    std::iota(sent.begin(), sent.end(), 1);
    got.resize(kElements);
    Operation broadcast = many(Call::Broadcast);
    broadcast.count = kElements;
    Connected three(3);
    three.comm->crowded = crowded;
    std::unique_ptr<Channel> ends[3];
    permitCopies(three, ends);
    std::string failure;
    TestThread other([&] { failure = failureOf([&] { three.run(makeCollective(*three.comm, Operation(broadcast))); }); });
    Frame call = broadcast.frame();
    call.sequence = 1;
    for (int peer : {1, 2}) {
      EXPECT_TRUE(ends[peer]->sendFrame(call));
      EXPECT_EQ(FrameKind::Collective, awaitFrame(ends[peer]).kind);
      size_t count = crowded ? kElements : kElements / 2;
      if (crowded) {
        Frame offered = awaitFrame(ends[peer]);
        EXPECT_EQ(reinterpret_cast<uintptr_t>(sent.data()), offered.offer.address);
        ends[peer]->accept({offered.offer.address, offered.offer.token, 1, broadcast.bytes()});
      }
      auto first = sent.begin() + (crowded || peer == 1 ? 0 : kElements / 2);
      EXPECT_EQ(std::vector<int32_t>(first, first + static_cast<long>(count)), awaitElements(count, ends[peer])) << crowded;
    }
    other.join();
    EXPECT_EQ("", failure);
  }
}

TEST_F(ManyElementsTest, ABroadcastToARankWithItsOwnProcessorCopiesUpTo1MiBFromTheRoot) {
  constexpr size_t kMost = (1 << 20) / sizeof(int32_t);
  theirs->permitCopies();
  for (bool crowded : {false, true}) {
    rank.comm->crowded = crowded;
    for (size_t count : {kCount, kMost, kMost + 1}) {
      sent.assign(count, 3);
      got.resize(count);
      Operation broadcast = many(Call::Broadcast);
      broadcast.count = count;
      std::string failure = during(broadcast, [&] {
        send(broadcast.frame());
        EXPECT_EQ(FrameKind::Collective, awaitFrame().kind);
        if (!crowded && count <= kMost) {
          Frame offered = awaitFrame();
          EXPECT_EQ(reinterpret_cast<uintptr_t>(sent.data()), offered.offer.address);
          theirs->accept({offered.offer.address, offered.offer.token, processToken(), broadcast.bytes()});
        }
        EXPECT_EQ(std::vector<int32_t>(count, 3), awaitElements(count)) << crowded << ", " << count;
      });
      EXPECT_EQ("", failure);
    }
  }
}

TEST_F(ManyElementsTest, FewElementsOfASendAreNotOffered) {
  Operation few = many(Call::Send);
  few.count = kMany / sizeof(int32_t) - 1;
  std::string failure;
  TestThread other([&] { failure = failureOf([&] { rank.run(makePointToPoint(*rank.comm, {few})); }); });
  EXPECT_EQ(0u, frameForRecv(few.count).offer.address);
  EXPECT_EQ(std::vector<int32_t>(few.count, 3), awaitElements(few.count));
  other.join();
  EXPECT_EQ("", failure);
}

TEST_F(ManyElementsTest, OtherElementsPassTheRing) {
  rank.comm->crowded = true;
  Operation few = operation(Call::AlltoAll);
  few.send = reinterpret_cast<const char*>(sent.data());
  few.recv = reinterpret_cast<char*>(got.data());
  few.count = kMany / sizeof(int32_t) - 1;
  Operation reduce = many(Call::Reduce), gather = many(Call::Gather);
  reduce.root = gather.root = 1;
  for (const Operation& call : {few, reduce, gather, many(Call::Broadcast)}) {
    Operation copy = call;
    std::string failure;
    TestThread other([&] { failure = failureOf([&] { rank.run(makeCollective(*rank.comm, std::move(copy))); }); });
    send(call.frame());
    if (call.call == Call::AlltoAll) {
      send(peers.data(), call.bytes());
      EXPECT_EQ(std::vector<int32_t>(call.count, 3), awaitElements(call.count));
    } else {
      EXPECT_EQ(std::vector<int32_t>(kCount, 3), awaitElements(kCount));
    }
    other.join();
    EXPECT_EQ("", failure);
    EXPECT_EQ(FrameKind::Collective, awaitFrame().kind);
    Frame none;
    char elements[kMaxInlined];
    EXPECT_FALSE(theirs->receiveFrame(none, elements)) << callName(call.call);
  }
}

TEST_F(ManyElementsTest, ARankThatFillsTheRingAwaitsRoom) {
  Mapped mapped(rank.ends[1].memory);
  volatile uint32_t& writerWaits = mapped.words(0).flags[1];
  Operation gather = many(Call::Gather);
  gather.root = 1;
  EXPECT_EQ("", during(gather, [&] {
    // Without the flag, the rank would find room only when it next looks by itself.
    for (double end = now() + 60; writerWaits == 0 && now() < end;) std::this_thread::yield();
    EXPECT_EQ(1u, writerWaits);
    EXPECT_EQ(std::vector<int32_t>(kCount, 3), awaitElements(kCount));
  }));
}

TEST(SocketPeerTest, AnOfferWithoutSharedMemoryIsRefused) {
  Pair pair(Path::Socket);
  std::vector<int32_t> got(10'000);
  Operation recv = pair.operation(Call::Recv);
  recv.recv = reinterpret_cast<char*>(got.data());
  recv.count = got.size();
  Frame frame = recv.frame();
  frame.kind = FrameKind::Post;
  frame.call = Call::Send;
  frame.root = 0;
  pair.send(frame);
  frame = recv.frame();
  frame.kind = FrameKind::Data;
  frame.offer.address = reinterpret_cast<uintptr_t>(got.data());
  pair.send(frame);
  EXPECT_EQ(
      "3: rank 1 sent something unintelligible",
      failureOf([&] { pair.rank.run(makePointToPoint(*pair.rank.comm, {recv})); }));
}

TEST_F(ManyElementsTest, ADataFrameMustFitItsCall) {
  for (auto change : {+[](Frame& f) { f.kind = FrameKind::Collective; }, +[](Frame& f) { f.call = Call::AllGather; },
                      +[](Frame& f) { f.count++; }, +[](Frame& f) { f.inlined = 40; }}) {
    ManyElementsTest::Pair fresh(Path::Task);
    Operation scatter = many(Call::Scatter);
    scatter.root = 1;
    fresh.send(scatter.frame());
    Frame frame = data(scatter, nullptr);
    change(frame);
    fresh.send(frame);
    EXPECT_EQ(
        "3: rank 1 sent something unintelligible",
        failureOf([&] { fresh.rank.run(makeCollective(*fresh.rank.comm, std::move(scatter))); }));
  }
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

TEST_P(PeerTest, WindowsMustBeOfOneSizeAndHaveTheSameFlags) {
  for (auto change : {+[](Extras& extras) { extras.windowBytes = 8; }, +[](Extras& extras) { extras.windowFlags = 1; }}) {
    Pair fresh(GetParam());
    Operation window = fresh.operation(Call::CommWindowRegister), other = window;
    window.addExtras().windowBytes = other.addExtras().windowBytes = 4;
    change(other.addExtras());
    fresh.send(other.frame());
    EXPECT_EQ(
        "5: rank 1 called " + describe(other.frame()) + " while rank 0 called CommWindowRegister(4 bytes, flags 0)",
        failureOf([&] { fresh.rank.run(makeRegistration(*fresh.rank.comm, window)); }));
    EXPECT_NE(describe(window.frame()), describe(other.frame()));
  }
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
  window.addExtras().windowBytes = sizeof out;
  send(window.frame());
  EXPECT_EQ(
      "6: rank 1 (pid 0 on " + nodeName() +
          ") closed its communicator before it took puts; its program may have failed: see its log",
      failureOf([&] { rank.run(makeRegistration(*rank.comm, window)); }));
}

TEST(LaneTest, ARankThatTakesNoSocketHasTheTimeOfAnInitForIt) {
  Variable timeout("NCCL4J_HOST_INIT_TIMEOUT", "0.1");
  Connected rank(2);
  char unread[4096] = {};
  while (sendSome(rank.peer(1).control.fd.get(), unread, sizeof unread) > 0) {
  }
  double start = now();
  std::string failure;
  for (; failure.empty() && now() < start + 10; std::this_thread::yield()) {
    failure = failureOf([&] { EXPECT_FALSE(rank.comm->openLane(rank.peer(1))); });
  }
  EXPECT_GE(now() - start, 0.1);
  EXPECT_EQ(0u, failure.find("2: rank 0 could not send a socket to rank 1 within 0.1 s")) << failure;
}

TEST_P(PeerTest, TheDeathOfThePeerEndsTheWait) {
  theirs.reset();
  rank.ends[1].control.reset();
  EXPECT_EQ("6: rank 1 (pid 0) went away during AllReduce", collective(Call::AllReduce));
}

}  // namespace
}  // namespace host

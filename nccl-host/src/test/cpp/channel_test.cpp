// channel_test.cpp: the rings and sockets between two ranks.

#include "transport/channel.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <random>
#include <vector>

#include "connected.h"
#include "testthread.h"

namespace host {
namespace {

class ChannelTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    auto [one, other] = newStream();
    if (GetParam()) memory = MemoryChannel::newMemory(kTestRing);
    left = openChannel(std::move(one), memory, kTestRing, true);
    right = openChannel(std::move(other), memory, kTestRing, false);
    ASSERT_EQ(GetParam(), left->has(Capability::Polling));
  }

  static long send(const std::unique_ptr<Channel>& to, const void* data, size_t size) {
    iovec part{const_cast<void*>(data), size};
    return to->send(&part, 1);
  }

  static Channel::Wait bytes(size_t wanted) {
    Channel::Wait wait;
    wait.bytes = wanted;
    return wait;
  }

  static bool readable(const std::unique_ptr<Channel>& channel) {
    pollfd polled{channel->descriptor(), POLLIN, 0};
    return poll(&polled, 1, 0) == 1;
  }

  Fd memory;
  std::unique_ptr<Channel> left, right;
  char elements[kMaxInlined];  // of the last frame
};

INSTANTIATE_TEST_SUITE_P(SharedAndSockets, ChannelTest, testing::Bool(), [](const auto& info) {
  return info.param ? "Shared" : "Socket";
});

TEST_P(ChannelTest, BytesArriveInOrderAcrossTheEndOfTheRing) {
  std::mt19937 random(1);
  std::vector<unsigned char> sent(20 * kTestRing), got(sent.size());
  for (auto& byte : sent) byte = static_cast<unsigned char>(random());
  for (size_t out = 0, in = 0; in < sent.size();) {
    size_t size = std::min<size_t>(1 + random() % kTestRing, sent.size() - out);
    size_t first = size / 3;
    iovec parts[2] = {{sent.data() + out, first}, {sent.data() + out + first, size - first}};
    if (size > 0) out += static_cast<size_t>(left->send(parts, 2));
    long step = right->receive(got.data() + in, std::min<size_t>(1 + random() % kTestRing, sent.size() - in));
    ASSERT_GE(step, 0);
    in += static_cast<size_t>(step);
    ASSERT_LE(in, out);
  }
  EXPECT_EQ(sent, got);
}

TEST_P(ChannelTest, BothDirectionsAreIndependent) {
  char byte = 'l';
  ASSERT_EQ(1, send(left, &byte, 1));
  byte = 'r';
  ASSERT_EQ(1, send(right, &byte, 1));
  ASSERT_EQ(1, left->receive(&byte, 1));
  EXPECT_EQ('r', byte);
  ASSERT_EQ(1, right->receive(&byte, 1));
  EXPECT_EQ('l', byte);
  EXPECT_EQ(0, right->receive(&byte, 1));
}

TEST_P(ChannelTest, BytesBeforeTheEndArrive) {
  ASSERT_EQ(3, send(left, "abc", 3));
  left.reset();
  char text[4] = {};
  right->arm(bytes(1));
  right->disarm();
  ASSERT_EQ(3, right->receive(text, sizeof text));
  EXPECT_STREQ("abc", text);
  EXPECT_EQ(-1, right->receive(text, sizeof text));
}

class SharedChannelTest : public ChannelTest {};
INSTANTIATE_TEST_SUITE_P(Shared, SharedChannelTest, testing::Values(true));

TEST_P(SharedChannelTest, AFullRingTakesNoMore) {
  std::vector<char> bytes(2 * kTestRing);
  EXPECT_EQ(static_cast<long>(kTestRing), send(left, bytes.data(), bytes.size()));
  EXPECT_EQ(0, send(left, bytes.data(), 1));
  EXPECT_EQ(kTestRing, right->available());
  right->consume(10);
  EXPECT_EQ(10, send(left, bytes.data(), bytes.size()));
}

TEST_P(SharedChannelTest, ADoorbellRingsOnlyForWhoWaits) {
  ASSERT_EQ(1, send(left, "x", 1));
  EXPECT_FALSE(readable(right));
  EXPECT_TRUE(right->arm(bytes(1))) << "a byte is there already";
  right->disarm();
  EXPECT_FALSE(right->arm(bytes(2)));
  ASSERT_EQ(1, send(left, "y", 1));
  EXPECT_TRUE(readable(right));
  right->disarm();
  EXPECT_FALSE(readable(right));

  std::vector<char> all(kTestRing);
  send(left, all.data(), all.size());
  Channel::Wait room;
  room.room = true;
  EXPECT_FALSE(left->arm(room));
  right->consume(1);
  EXPECT_TRUE(readable(left));
}

TEST_P(SharedChannelTest, FramesArriveInOrderWhileTheirNumbersWrapAround) {
  Frame got;
  for (uint64_t count = 0; count < 1000;) {
    EXPECT_FALSE(right->receiveFrame(got, elements));
    uint64_t first = count;
    for (Frame frame; count - first < 1 + first % (kTestSlots / 2); count++) {
      frame.count = count;
      frame.words[4] = ~count;
      ASSERT_TRUE(left->sendFrame(frame));
    }
    for (uint64_t next = first; next < count; next++) {
      ASSERT_TRUE(right->receiveFrame(got, elements));
      ASSERT_EQ(next, got.count);
      ASSERT_EQ(~next, got.words[4]);
      ASSERT_EQ(kFirstFrame + static_cast<uint32_t>(next), got.number);
    }
  }
}

TEST_P(SharedChannelTest, AFrameNeedsAFreeSlot) {
  // In each position of the slots, and across the end of their numbers.
  Frame frame, got;
  for (uint32_t round = 0; round < 300; round++) {
    uint32_t free = 0;
    while (left->sendFrame(frame)) free++;
    // The reader reports a quarter of the slots at a time.
    ASSERT_GT(free, round == 0 ? kTestSlots - 1 : 0u) << round;
    ASSERT_LE(free, kTestSlots) << round;
    for (uint32_t i = 0; i < kTestSlots / 4; i++) ASSERT_TRUE(right->receiveFrame(got, elements));
  }
}

TEST_P(SharedChannelTest, ElementsOfAFrameArriveWithIt) {
  std::mt19937 random(3);
  const size_t words = sizeof(Frame::words);
  for (int round = 0; round < 2000; round++) {
    size_t size = random() % 8 == 0 ? random() % (words + 1) : words + random() % (kMaxInlined - words + 1);
    // The first words of slots with elements must not pass for numbers of frames.
    std::vector<uint32_t> sent(kMaxInlined / 4, kFirstFrame + static_cast<uint32_t>(random() % 2000));
    Frame frame, got;
    frame.count = random();
    frame.inlined = static_cast<uint16_t>(size);
    ASSERT_TRUE(left->sendFrame(frame, reinterpret_cast<const char*>(sent.data())));
    ASSERT_TRUE(right->receiveFrame(got, elements));
    ASSERT_EQ(frame.count, got.count);
    ASSERT_EQ(size, got.inlined);
    if (size > words) {
      ASSERT_EQ(0, memcmp(sent.data(), elements, size)) << size;
    }
    ASSERT_FALSE(right->receiveFrame(got, elements)) << size;
  }
}

// With frames of one size some slots never have a frame, until the numbers wrap around.
TEST(ChannelSlotsTest, AFrameIsNotThereBeforeItsNumber) {
  for (size_t size = sizeof(Frame::words) + 1; size <= kMaxInlined; size += 20) {
    std::unique_ptr<Channel> left, right;
    auto [one, other] = newStream();
    Fd memory = MemoryChannel::newMemory(kTestRing);
    left = openChannel(std::move(one), memory, kTestRing, true);
    right = openChannel(std::move(other), memory, kTestRing, false);
    std::vector<char> sent(kMaxInlined, 'x'), got(kMaxInlined);
    Frame frame;
    frame.inlined = static_cast<uint16_t>(size);
    for (uint64_t count = 0; count < 500; count++) {
      ASSERT_FALSE(right->receiveFrame(frame, got.data())) << size << " bytes, frame " << count;
      frame.count = count;
      ASSERT_TRUE(left->sendFrame(frame, sent.data()));
      ASSERT_TRUE(right->receiveFrame(frame, got.data()));
      ASSERT_EQ(count, frame.count);
      ASSERT_EQ(0, memcmp(sent.data(), got.data(), size));
    }
  }
}

TEST_P(SharedChannelTest, AFrameWithElementsWaitsForAllItsSlots) {
  Frame frame, got;
  frame.inlined = kMaxInlined;
  const uint32_t slots = 1 + kMaxInlined / 60;
  ASSERT_EQ(slots, MemoryChannel::slotsOf(frame));
  std::vector<char> sent(kMaxInlined, 'x');
  uint32_t frames = 0;
  while (left->sendFrame(frame, sent.data())) frames++;
  EXPECT_EQ(kTestSlots / slots, frames);
  Channel::Wait wait;
  wait.outgoing = &frame;
  EXPECT_FALSE(left->arm(wait));
  // A single slot is free.
  left->disarm();
  ASSERT_TRUE(left->sendFrame(Frame()));
  for (uint32_t i = 0; i < frames; i++) ASSERT_TRUE(right->receiveFrame(got, elements));
  EXPECT_TRUE(left->arm(wait));
  left->disarm();
}

TEST_P(SharedChannelTest, ANumberOfElementsThatNoFrameHasTakesNoSlots) {
  Frame frame, got;
  frame.inlined = kMaxInlined + 1;
  ASSERT_TRUE(left->sendFrame(frame));
  ASSERT_TRUE(left->sendFrame(Frame()));
  ASSERT_TRUE(right->receiveFrame(got, elements));
  EXPECT_EQ(kMaxInlined + 1, got.inlined);
  ASSERT_TRUE(right->receiveFrame(got, elements));
  EXPECT_EQ(0, got.inlined);
}

TEST_P(SharedChannelTest, NoDoorbellIsLostBetweenALookAndAWait) {
  EXPECT_FALSE(losesDoorbell(*right, 100000, [] {}, [&] { return left->sendFrame(Frame()); }));
}

TEST_P(SharedChannelTest, ADoorbellRingsForAFrameAndForAFreeSlot) {
  Channel::Wait frameWait, slotWait;
  frameWait.frame = true;
  Frame frame;
  slotWait.outgoing = &frame;
  EXPECT_FALSE(right->arm(frameWait));
  EXPECT_FALSE(readable(right));
  ASSERT_TRUE(left->sendFrame(frame));
  EXPECT_TRUE(readable(right));
  right->disarm();
  EXPECT_TRUE(right->arm(frameWait)) << "a frame is there already";
  right->disarm();
  EXPECT_FALSE(readable(right));

  EXPECT_TRUE(left->arm(slotWait)) << "a slot is free";
  left->disarm();
  while (left->sendFrame(frame)) continue;
  EXPECT_FALSE(left->arm(slotWait));
  for (uint32_t i = 0; i < kTestSlots; i++) ASSERT_TRUE(right->receiveFrame(frame, elements));
  EXPECT_TRUE(readable(left));
}

TEST_P(SharedChannelTest, ADoorbellRingsForACredit) {
  Channel::Wait wait;
  wait.credit = true;
  EXPECT_FALSE(left->arm(wait));
  EXPECT_FALSE(readable(left));
  right->returnCredit();
  EXPECT_TRUE(readable(left));
  left->disarm();
  EXPECT_TRUE(left->arm(wait)) << "a credit is there already";
  left->disarm();
  right->returnCredit();
  EXPECT_EQ(2u, left->takeCredits());
  EXPECT_EQ(0u, left->takeCredits());
  EXPECT_EQ(0u, right->takeCredits());
  EXPECT_FALSE(left->arm(wait));
}

TEST_P(SharedChannelTest, AnAnnouncementIsSeenOnce) {
  EXPECT_FALSE(right->messageAnnounced());
  left->announceMessage();
  left->announceMessage();
  EXPECT_TRUE(right->messageAnnounced());
  EXPECT_FALSE(right->messageAnnounced());
  EXPECT_FALSE(left->messageAnnounced());
}

/** Elements of the left side for the right side, in this process. */
class OfferTest : public ChannelTest {
 protected:
  void SetUp() override {
    ChannelTest::SetUp();
    left->permitCopies();
    right->permitCopies();
    std::iota(sent.begin(), sent.end(), 1);
    got.resize(sent.size());
  }

  Channel::Offer offer() {
    Channel::Offer offer;
    offer.address = reinterpret_cast<uintptr_t>(sent.data());
    offer.token = reinterpret_cast<uintptr_t>(&token);
    offer.process = token;
    offer.size = sent.size();
    return offer;
  }

  const uint64_t token = 0x1234567890abcdef;
  std::vector<unsigned char> sent = std::vector<unsigned char>(3 * kTestRing), got;
  size_t unsent = 7;
};
INSTANTIATE_TEST_SUITE_P(Shared, OfferTest, testing::Values(true));

TEST_P(OfferTest, TheLastByteOfAnOfferIsAnswered) {
  right->accept(offer());
  ASSERT_EQ(100, right->receive(got.data(), 100));
  EXPECT_FALSE(left->takeAnswer(unsent));
  ASSERT_EQ(static_cast<long>(sent.size() - 100), right->receive(got.data() + 100, sent.size()));
  EXPECT_EQ(sent, got);
  ASSERT_TRUE(left->takeAnswer(unsent));
  EXPECT_EQ(0u, unsent);
  EXPECT_FALSE(left->takeAnswer(unsent)) << "once";
  EXPECT_TRUE(left->offers());
  // The ring follows.
  ASSERT_EQ(1, send(left, "x", 1));
  EXPECT_EQ(1, right->receive(got.data(), 1));
  EXPECT_EQ('x', got[0]);
}

TEST_P(OfferTest, AnOfferThatIsRefusedIsTheLastOne) {
  Channel::Offer wrong = offer();
  wrong.process++;
  right->accept(wrong);
  EXPECT_EQ(0, right->receive(got.data(), got.size())) << "the memory of another process";
  ASSERT_TRUE(left->takeAnswer(unsent));
  EXPECT_EQ(sent.size(), unsent);
  EXPECT_FALSE(left->offers());
  EXPECT_TRUE(right->offers()) << "of the other direction";
  ASSERT_EQ(static_cast<long>(kTestRing), send(left, sent.data(), sent.size()));
  ASSERT_EQ(static_cast<long>(kTestRing), right->receive(got.data(), got.size()));
  EXPECT_EQ(0, memcmp(sent.data(), got.data(), kTestRing));
}

TEST_P(OfferTest, TheRestOfMemoryThatCannotBeReadIsRefused) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* pages = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(MAP_FAILED, pages);
  memset(pages, 'p', page);
  ASSERT_EQ(0, munmap(static_cast<char*>(pages) + page, page));
  std::fill(got.begin(), got.end(), 0);
  Channel::Offer partly = offer();
  partly.address = reinterpret_cast<uintptr_t>(pages);
  partly.size = 2 * page;
  right->accept(partly);
  EXPECT_EQ(static_cast<long>(page), right->receive(got.data(), got.size()));
  EXPECT_EQ(static_cast<long>(page), std::count(got.begin(), got.end(), 'p'));
  EXPECT_FALSE(left->takeAnswer(unsent));
  EXPECT_EQ(0, right->receive(got.data(), got.size()));
  ASSERT_TRUE(left->takeAnswer(unsent));
  EXPECT_EQ(page, unsent);
  munmap(pages, page);
}

TEST_P(OfferTest, WithoutPermissionAnOfferIsRefused) {
  Channel::Offer any = offer();
  std::unique_ptr<Channel> one, other;
  auto [mine, theirs] = newStream();
  Fd rings = MemoryChannel::newMemory(kTestRing);
  one = openChannel(std::move(mine), rings, kTestRing, true);
  other = openChannel(std::move(theirs), rings, kTestRing, false);
  EXPECT_FALSE(one->offers());
  other->accept(any);
  ASSERT_TRUE(one->takeAnswer(unsent));
  EXPECT_EQ(any.size, unsent);
}

// The memory may have other content by now, or other owners.
TEST_P(OfferTest, NothingOfAWithdrawnOfferIsKept) {
  right->accept(offer());
  ASSERT_EQ(10, right->receive(got.data(), 10));
  left->withdraw();
  EXPECT_EQ(0, right->receive(got.data(), got.size()));
  EXPECT_FALSE(left->takeAnswer(unsent));
  left.reset();
  right->arm(bytes(1));
  right->disarm();
  EXPECT_EQ(-1, right->receive(got.data(), got.size()));
}

TEST_P(OfferTest, AConnectionThatClosesWithdrawsItsOffers) {
  right->accept(offer());
  left.reset();
  EXPECT_EQ(0, right->receive(got.data(), got.size()));
}

/** As OfferTest, without the kernel. */
class OfferWithinProcessTest : public OfferTest {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "ThreadSanitizer does not see the order of accesses through memory that is mapped twice";
#endif
    OfferTest::SetUp();
    left->permitCopies(true);
    right->permitCopies(true);
  }
};
INSTANTIATE_TEST_SUITE_P(Shared, OfferWithinProcessTest, testing::Values(true));

TEST_P(OfferWithinProcessTest, TheElementsAreCopied) {
  Channel::Offer own = offer();
  // The kernel would refuse to read it.
  own.token = 1;
  right->accept(own);
  size_t total = 0;
  while (total < sent.size()) {
    long step = right->receive(got.data() + total, got.size() - total);
    ASSERT_GT(step, 0);
    total += static_cast<size_t>(step);
  }
  EXPECT_EQ(sent, got);
  ASSERT_TRUE(left->takeAnswer(unsent));
  EXPECT_EQ(0u, unsent);
}

TEST_P(OfferWithinProcessTest, NothingOfAWithdrawnOfferIsRead) {
  right->accept(offer());
  ASSERT_EQ(10, right->receive(got.data(), 10));
  left->withdraw();
  std::fill(got.begin(), got.end(), 0);
  EXPECT_EQ(0, right->receive(got.data(), got.size()));
  EXPECT_EQ(std::vector<unsigned char>(got.size()), got);
  EXPECT_FALSE(left->takeAnswer(unsent));
}

// The sender may free or change its memory then.
TEST_P(OfferWithinProcessTest, WithdrawingAwaitsTheEndOfACopy) {
  sent.resize(1 << 20);
  got.resize(sent.size());
  for (int round = 0; round < 300; round++) {
    SetUp();
    std::fill(sent.begin(), sent.end(), 1);
    right->accept(offer());
    std::atomic<bool> begun{false};
    TestThread reader([&] {
      begun = true;
      right->receive(got.data(), got.size());
    });
    while (!begun) {
    }
    for (volatile int i = 0; i < round % 100 * 100; i++) {
    }
    left->withdraw();
    sent.back() = 2;
    reader.join();
    ASSERT_NE(2, got.back()) << "in round " << round;
    left.reset();
    right.reset();
  }
}

TEST_P(OfferTest, ADoorbellRingsForAnAnswer) {
  Channel::Wait wait;
  wait.answer = true;
  EXPECT_FALSE(left->arm(wait));
  right->accept(offer());
  EXPECT_FALSE(readable(left));
  ASSERT_EQ(static_cast<long>(sent.size()), right->receive(got.data(), got.size()));
  EXPECT_TRUE(readable(left));
  left->disarm();
  EXPECT_FALSE(readable(left));
  EXPECT_TRUE(left->arm(wait)) << "an answer is there already";
}

// A peer can write any number into the shared words.
TEST_P(SharedChannelTest, ImpossiblePositionsGiveNothingOutsideTheRing) {
  Mapped mapped(memory);
  std::vector<char> bytes(2 * kTestRing);
  const uint64_t positions[] = {1, kTestRing - 1, kTestRing, kTestRing + 1, 1ull << 32, 1ull << 63, UINT64_MAX};
  for (uint64_t position : positions) {
    mapped.words(1).written = position;
    EXPECT_LE(left->available(), kTestRing);
    size_t size = 0;
    left->readable(size);
    EXPECT_LE(size, kTestRing);
    EXPECT_LE(left->receive(bytes.data(), bytes.size()), static_cast<long>(bytes.size()));
    mapped.words(0).read = position;
    EXPECT_LE(send(left, bytes.data(), bytes.size()), static_cast<long>(bytes.size()));
  }
}

TEST_P(SharedChannelTest, ImpossibleNumbersOfFramesGiveNone) {
  Mapped mapped(memory);
  Frame frame;
  for (uint32_t number : {1u, kTestSlots, kFirstFrame - 1, kFirstFrame + 1, kFirstFrame + kTestSlots, UINT32_MAX}) {
    mapped.slot(1, 0) = number;
    EXPECT_FALSE(left->receiveFrame(frame, elements)) << number;
  }
  while (left->sendFrame(frame)) continue;
  for (uint32_t read : {kTestSlots + 1, 1u << 31, UINT32_MAX}) {
    mapped.words(0).readFrames = read;
    EXPECT_FALSE(left->sendFrame(frame)) << read;
  }
}

TEST(ChannelMemoryTest, MemoryThatAPeerCanChangeIsRefused) {
  auto [one, other] = newStream();
  Fd unsealed(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(0, ftruncate(unsealed.get(), kTestHead + 2 * kTestRing));
  std::unique_ptr<Channel> channel;
  EXPECT_EQ(
      "3: the memory of a connection must have F_SEAL_SHRINK (2), but its seals are 0",
      failureOf([&, end = &one] { channel = openChannel(std::move(*end), unsealed, kTestRing, true); }));
  Fd larger = MemoryChannel::newMemory(2 * kTestRing);
  EXPECT_EQ(
      "3: the memory of a connection has 282624 bytes, expected 151552",
      failureOf([&, end = &other] { channel = openChannel(std::move(*end), larger, kTestRing, true); }));
}

TEST(ChannelMemoryTest, RingsShrinkWithTheNumberOfRanks) {
  EXPECT_EQ(size_t{1} << 20, MemoryChannel::ringBytes(2));
  EXPECT_EQ(size_t{1} << 20, MemoryChannel::ringBytes(8));
  EXPECT_EQ(size_t{512} << 10, MemoryChannel::ringBytes(16));
  EXPECT_EQ(size_t{16} << 10, MemoryChannel::ringBytes(100'000));
}

}  // namespace
}  // namespace host

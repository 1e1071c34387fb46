// inbox_test.cpp: puts and signals on lanes.

#include "protocol/inbox.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <string.h>

#include <atomic>
#include <memory>
#include <thread>

#include "connected.h"
#include "testthread.h"

namespace host {
namespace {

class InboxTest : public testing::Test {
 protected:
  InboxTest() : inbox(0, 3, 2, 4), memory(64, '.') {
    inbox.addWindow(7, memory.data(), memory.size());
    Fd end;
    std::tie(end, lane) = newStream();
    inbox.addLane(1, std::move(end));
  }

  void put(uint64_t offset, const std::string& bytes, uint64_t window = 7, int context = 0, int signal = 0) {
    PutFrame frame;
    frame.window = window;
    frame.offset = offset;
    frame.bytes = bytes.size();
    frame.context = context;
    frame.signal = signal;
    sendSome(lane.get(), &frame, sizeof frame);
    sendSome(lane.get(), bytes.data(), bytes.size());
  }

  /** Waits until the inbox has something to tell. */
  void await() {
    pollfd polled{inbox.notification(), POLLIN, 0};
    ASSERT_EQ(1, poll(&polled, 1, 10'000));
    inbox.clearNotification();
  }

  void awaitEnd() {
    while (!inbox.ended(1) && !HasFatalFailure()) await();
  }

  std::string fault() {
    return failureOf([&] { inbox.throwIfFaulty(); });
  }

  Inbox inbox;
  std::string memory;
  Fd lane;
};

TEST_F(InboxTest, APutIsInTheWindowBeforeItsSignal) {
  put(3, "hello");
  while (!inbox.take({{{1, 0, 0}, 1}})) await();
  EXPECT_EQ("...hello...", memory.substr(0, 11));
  EXPECT_FALSE(inbox.take({{{1, 0, 0}, 1}}));
}

TEST_F(InboxTest, SignalsAreTakenAllOrNone) {
  put(0, "", 7, 1, 3);
  while (inbox.lacks({{{1, 1, 3}, 1}}, 1)) await();
  EXPECT_FALSE(inbox.take({{{1, 1, 3}, 1}, {{2, 0, 0}, 1}}));
  inbox.raise({2, 0, 0});
  EXPECT_TRUE(inbox.take({{{1, 1, 3}, 1}, {{2, 0, 0}, 1}}));
}

TEST_F(InboxTest, ASignalOfTheOwnRankEndsAWait) {
  inbox.clearNotification();
  inbox.raise({0, 0, 0});
  await();
  EXPECT_TRUE(inbox.take({{{0, 0, 0}, 1}}));
}

TEST_F(InboxTest, APutOutsideItsWindowWritesNothing) {
  for (auto [offset, bytes] : {std::pair<uint64_t, int>{60, 5}, {65, 1}, {UINT64_MAX, 1}, {UINT64_MAX - 3, 8}}) {
    put(offset, std::string(static_cast<size_t>(bytes), 'x'));
  }
  put(0, "yes");
  while (!inbox.take({{{1, 0, 0}, 1}})) await();
  EXPECT_EQ("yes" + std::string(61, '.'), memory);
  EXPECT_EQ("5: rank 1 put 5 bytes into a window that rank 0 had deregistered", fault());
}

TEST_F(InboxTest, NoByteArrivesAfterTheRemovalOfAWindow) {
  inbox.removeWindow(7);
  put(0, "late");
  while (fault().empty()) await();
  EXPECT_EQ(std::string(64, '.'), memory);
}

TEST_F(InboxTest, BytesThatAreNoPutEndTheLane) {
  sendSome(lane.get(), "gibberish", 9);
  awaitEnd();
  EXPECT_EQ("5: rank 1 sent something unintelligible in place of a put", fault());
}

TEST_F(InboxTest, ASignalThatTheCommunicatorLacksEndsTheLane) {
  put(0, "", 7, 2, 0);
  awaitEnd();
  EXPECT_EQ("5: rank 1 sent signal 0 in context 2, but rank 0 has 4 signals in each of 2 contexts", fault());
}

TEST_F(InboxTest, ALaneIsPassedOnlyOnce) {
  auto [one, other] = newStream();
  EXPECT_EQ(
      "3: rank 1 passed a second socket for its puts",
      failureOf([&, end = &one] { inbox.addLane(1, std::move(*end)); }));
}

TEST_F(InboxTest, TheEndOfALaneIsSeen) {
  EXPECT_FALSE(inbox.ended(1));
  EXPECT_TRUE(inbox.ended(2)) << "has no lane";
  lane.reset();
  awaitEnd();
  EXPECT_EQ("", fault());
}

// If the rank looked at its signals first, the notification of one that is raised in between would be lost.
TEST(OneSidedTest, ASignalThatIsRaisedWhileARankBeginsToWaitEndsTheWait) {
  Connected rank(2);
  Operation wait;
  wait.call = Call::WaitSignal;
  wait.addExtras().signals = std::make_shared<SignalCounts>(SignalCounts{{{1, 0, 0}, 1}});
  std::unique_ptr<Task> task = makeOneSided(*rank.comm, {wait});
  task->start();
  Inbox& inbox = *rank.comm->windows.inbox();
  // Holds the rank where it clears the notification.
  ASSERT_EQ(0, fcntl(inbox.notification(), F_SETFL, 0));
  std::atomic<pid_t> id{0};
  TestThread waiter([&] {
    id = ownThread();
    task->advanceOwn();
  });
  while (id == 0) std::this_thread::yield();
  awaitSleep(id);
  inbox.raise({1, 0, 0});
  waiter.join();
  EXPECT_TRUE(task->complete()) << "sleeps, although the signal has come";
}

}  // namespace
}  // namespace host

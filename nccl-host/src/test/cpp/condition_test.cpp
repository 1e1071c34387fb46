// condition_test.cpp: the lock that one thread may enter and another leave.

#include "base/condition.h"

#include <gtest/gtest.h>
#include <stdio.h>
#include <stdlib.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "base/processors.h"
#include "testthread.h"

namespace host {
namespace {

constexpr size_t kLine = 64 / sizeof(int);

TEST(BatonTest, OneThreadAtATimeIsInside) {
  Baton baton;
  baton.lock();
  EXPECT_FALSE(baton.try_lock());
  TestThread other([&] { baton.unlock(); });
  other.join();
  EXPECT_TRUE(baton.try_lock());
  baton.unlock();
}

// In each round a thread begins to wait while the other one leaves. A waiter that is forgotten would wait forever.
TEST(BatonTest, NoWaiterIsForgotten) {
  constexpr int kRounds = 20000;
  // Where other programs take turns on the processors, a round takes two of their turns.
  auto enough = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  Baton baton;
  std::atomic<int> begun{-1}, done{-1};
  // These cache lines go to and fro, so that the unlock becomes visible late.
  std::vector<int> lines(32 * kLine);
  auto leave = [&](int round) {
    for (size_t i = 0; i < lines.size(); i += kLine) lines[i] = round;
    baton.unlock();
  };
  TestThread waiter([&] {
    for (int round = 0;; round++) {
      // The other thread may need this processor.
      for (int looks = 0; begun < round; looks++) looks < 1000 ? relax() : std::this_thread::yield();
      if (begun == kRounds) break;
      baton.lock();
      leave(round);
      done = round;
    }
  });
  for (int round = 0; round < kRounds && std::chrono::steady_clock::now() < enough; round++) {
    baton.lock();
    begun = round;
    for (int i = round % 64; i > 0; i--) relax();
    leave(round);
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (done != round) {
      std::this_thread::yield();
      if (std::chrono::steady_clock::now() < end) continue;
      // The thread cannot be ended.
      fprintf(stderr, "a thread waits for a baton that nobody has, in round %d\n", round);
      abort();
    }
  }
  begun = kRounds;
}

}  // namespace
}  // namespace host

// condition_test.cpp: the lock that one thread may enter and another leave.

#include "condition.h"

#include <gtest/gtest.h>
#include <stdio.h>
#include <stdlib.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "processors.h"

namespace host {
namespace {

constexpr size_t kLine = 64 / sizeof(int);

TEST(BatonTest, OneThreadAtATimeIsInside) {
  Baton baton;
  baton.lock();
  EXPECT_FALSE(baton.try_lock());
  std::thread other([&] { baton.unlock(); });
  other.join();
  EXPECT_TRUE(baton.try_lock());
  baton.unlock();
}

// In each round a thread begins to wait while the other one leaves. A waiter that is forgotten would wait forever.
TEST(BatonTest, NoWaiterIsForgotten) {
  constexpr int kRounds = 20000;
  Baton baton;
  std::atomic<int> begun{-1}, done{-1};
  // These cache lines go to and fro, so that the unlock becomes visible late.
  std::vector<int> lines(32 * kLine);
  auto leave = [&](int round) {
    for (size_t i = 0; i < lines.size(); i += kLine) lines[i] = round;
    baton.unlock();
  };
  std::thread waiter([&] {
    for (int round = 0; round < kRounds; round++) {
      // The other thread may need this processor.
      for (int looks = 0; begun != round; looks++) looks < 1000 ? relax() : std::this_thread::yield();
      baton.lock();
      leave(round);
      done = round;
    }
  });
  for (int round = 0; round < kRounds; round++) {
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
  waiter.join();
}

}  // namespace
}  // namespace host

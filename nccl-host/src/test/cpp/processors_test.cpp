// processors_test.cpp: how long a rank polls.

#include "base/processors.h"

#include <gtest/gtest.h>

#include "transport/socket.h"

namespace host {
namespace {

TEST(PollingTime, DoublesWhenARankIsWokenSoon) {
  PollingTime time;
  double before = time.seconds();
  EXPECT_EQ(PollingTime::kLeast, before);
  time.slept(3.9 * before);
  EXPECT_EQ(2 * before, time.seconds());
}

TEST(PollingTime, HasALimit) {
  PollingTime time;
  for (int i = 0; i < 100; i++) time.slept(0);
  EXPECT_EQ(PollingTime::kMost, time.seconds());
}

TEST(PollingTime, HalvesAfterALongSleep) {
  PollingTime time;
  for (int i = 0; i < 3; i++) time.slept(0);
  double before = time.seconds();
  time.slept(4 * before);
  EXPECT_EQ(before / 2, time.seconds());
  for (int i = 0; i < 100; i++) time.slept(1);
  EXPECT_EQ(PollingTime::kLeast, time.seconds());
}

TEST(Polling, EndsAfterItsTime) {
  for (size_t peers : {size_t{1}, size_t{16}, size_t{1024}}) {
    for (bool crowded : {false, true}) {
      double begun = now();
      Polling polling(crowded, peers, 0.01);
      while (polling.again()) {
      }
      EXPECT_GE(now() - begun, 0.01) << peers << " peers";
    }
  }
}

TEST(Polling, LooksAtTheClockAtOnceIfThereAreManyPeers) {
  Polling few(false, 2, 0);
  EXPECT_TRUE(few.again());
  Polling many(false, 1024, 0);
  EXPECT_FALSE(many.again());
}

TEST(Polling, YieldsOnceWithoutTheClockIfCrowded) {
  Polling polling(true, 1024, 0);
  EXPECT_TRUE(polling.again());
  EXPECT_FALSE(polling.again());
}

}  // namespace
}  // namespace host

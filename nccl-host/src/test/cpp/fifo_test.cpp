// fifo_test.cpp: the order and the memory of a queue.

#include "base/fifo.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace host {
namespace {

TEST(FifoTest, KeepsTheOrder) {
  Fifo<std::string> queue;
  int next = 0;
  for (int i = 0; i < 1000; i++) {
    EXPECT_EQ(std::to_string(i), queue.push_back(std::to_string(i)));
    EXPECT_EQ(std::to_string(i), queue.back());
    if (i % 3 == 0) continue;
    EXPECT_EQ(std::to_string(next), queue.front());
    queue.pop_front();
    next++;
  }
  EXPECT_EQ(static_cast<size_t>(1000 - next), queue.size());
  for (size_t i = 0; i < queue.size(); i++) EXPECT_EQ(std::to_string(static_cast<size_t>(next) + i), queue[i]);
  queue.clear();
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(0u, queue.size());
}

TEST(FifoTest, AQueueThatIsNeverEmptyDoesNotGrow) {
  struct Counted {
    explicit Counted(int& alive) : count(&alive) { ++*count; }
    Counted(Counted&& other) noexcept : count(other.count) { ++*count; }
    Counted& operator=(Counted&&) noexcept { return *this; }
    ~Counted() { --*count; }
    int* count;
  };
  int alive = 0;
  Fifo<Counted> queue;
  for (int i = 0; i < 5; i++) queue.push_back(Counted(alive));
  for (int i = 0; i < 10000; i++) {
    queue.push_back(Counted(alive));
    queue.pop_front();
    ASSERT_LE(alive, 40);
  }
  EXPECT_EQ(5u, queue.size());
}

TEST(FifoTest, AnEmptyQueueHoldsNothing) {
  Fifo<std::shared_ptr<int>> queue;
  auto element = std::make_shared<int>(1);
  queue.push_back(element);
  queue.push_back(element);
  queue.pop_front();
  queue.pop_front();
  EXPECT_EQ(1, element.use_count());
}

}  // namespace
}  // namespace host

// windowtable_test.cpp: the windows and the operators of a communicator.

#include "protocol/windowtable.h"

#include <gtest/gtest.h>
#include <poll.h>

#include "connected.h"
#include "protocol/operators.h"

namespace host {
namespace {

Window windowAt(char* base, size_t size, int flags) {
  Window window;
  window.number = 7;
  window.base = base;
  window.size = size;
  window.flags = flags;
  return window;
}

TEST(WindowTable, AHandleIsNeverUsedTwice) {
  char memory[8];
  WindowTable table;
  ncclWindow_t first = table.add(windowAt(memory, 8, 0));
  EXPECT_EQ(memory, table.find(first)->base);
  EXPECT_TRUE(table.remove(first));
  EXPECT_FALSE(table.remove(first));
  EXPECT_EQ(nullptr, table.find(first));
  EXPECT_NE(first, table.add(windowAt(memory, 8, 0)));
}

TEST(WindowTable, OnlySymmetricWindowsCoverAnAddress) {
  char memory[16];
  Window window = windowAt(memory + 4, 8, NCCL_WIN_COLL_SYMMETRIC);
  EXPECT_FALSE(window.isSymmetricAt(memory + 3));
  EXPECT_TRUE(window.isSymmetricAt(memory + 4));
  EXPECT_TRUE(window.isSymmetricAt(memory + 11));
  EXPECT_FALSE(window.isSymmetricAt(memory + 12));
  EXPECT_FALSE(windowAt(memory, 16, 0).isSymmetricAt(memory));
}

TEST(WindowTable, ARemovedWindowTakesNoPut) {
  char memory[8] = {};
  WindowTable table;
  Inbox& inbox = table.openInbox(0, 2, 1, 1);
  EXPECT_EQ(&inbox, &table.openInbox(0, 2, 1, 1));
  auto [end, lane] = newStream();
  inbox.addWindow(7, memory, sizeof memory);
  inbox.addLane(1, std::move(end));
  ASSERT_TRUE(table.remove(table.add(windowAt(memory, sizeof memory, 0))));
  PutFrame frame;
  frame.window = 7;
  frame.bytes = 1;
  sendSome(lane.get(), &frame, sizeof frame);
  sendSome(lane.get(), "x", 1);
  while (failureOf([&] { inbox.throwIfFaulty(); }).empty()) {
    pollfd polled{inbox.notification(), POLLIN, 0};
    ASSERT_EQ(1, poll(&polled, 1, 10'000));
    inbox.clearNotification();
  }
  EXPECT_EQ(0, memory[0]);
}

TEST(Operators, AreNumberedAfterThoseOfNccl) {
  Operators operators;
  PreMulSum sum;
  sum.value = 3;
  ncclRedOp_t first = operators.add(sum);
  EXPECT_EQ(static_cast<int>(ncclNumOps), static_cast<int>(first));
  EXPECT_EQ(3u, operators.find(first)->value);
  EXPECT_TRUE(operators.remove(first));
  EXPECT_FALSE(operators.remove(first));
  EXPECT_FALSE(operators.find(first));
  EXPECT_NE(first, operators.add(sum));
}

}  // namespace
}  // namespace host

// fork_test.cpp: children of a process that uses the engine in other threads.

#include "base/fork.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "child.h"
#include "connected.h"
#include "protocol/bootstrap.h"
#include "testthread.h"

namespace host {
namespace {

TEST(ForkTest, AChildDoesNotHideTheEndOfAConnection) {
  auto [mine, theirs] = newStream();
  int number = mine.get();
  int pipes[2];
  ASSERT_EQ(0, pipe(pipes));
  pid_t child = inChild([&] {
    char byte = 0;
    // The number stays in use, or another file of the child could get it and be closed with the connection.
    if (fcntl(number, F_GETFD) != FD_CLOEXEC || send(number, &byte, 1, MSG_NOSIGNAL) >= 0) return 1;
    if (write(pipes[1], &byte, 1) != 1) return 1;
    for (;;) pause();
  });
  close(pipes[1]);
  char byte;
  ASSERT_EQ(1, read(pipes[0], &byte, 1)) << "the child lives";
  mine.reset();
  EXPECT_EQ(-1, receiveSome(theirs.get(), &byte, 1));
  kill(child, SIGKILL);
  EXPECT_EQ(SIGKILL, WTERMSIG(statusOf(child)));
  close(pipes[0]);
}

TEST(ForkTest, AChildDoesNotListenForItsParent) {
  std::string name = socketName("of no other test");
  Fd listener = listenAt(name);
  pid_t child = inChild([]() -> int {
    for (;;) pause();
  });
  listener.reset();
  Fd socket;
  // The child replaces it before fork returns there, which may be later than here.
  while (connectTo(name, socket) != Connect::Refused) std::this_thread::yield();
  kill(child, SIGKILL);
  EXPECT_EQ(SIGKILL, WTERMSIG(statusOf(child)));
}

TEST(ForkTest, ReceivedDescriptorsAreReplacedToo) {
  auto [mine, theirs] = newStream();
  auto [passed, end] = newStream();
  char byte = 0;
  ASSERT_EQ(1, sendWithDescriptor(mine.get(), &byte, 1, passed.get()));
  passed.reset();
  Fd received;
  ASSERT_EQ(1, receiveWithDescriptor(theirs.get(), &byte, 1, received));
  int number = received.get();
  EXPECT_EQ(0, statusOf(inChild([&] { return send(number, "", 1, MSG_NOSIGNAL) < 0 ? 0 : 1; })));
  EXPECT_EQ(1, sendSome(received.get(), &byte, 1)) << "that of the parent still works";
}

TEST(ForkTest, NoLockIsHeldInAChild) {
  for (size_t i = 0; i < locksOfAllThreads().size(); i++) {
    std::mutex& lock = *locksOfAllThreads()[i];
    std::atomic<bool> stop{false}, begun{false};
    TestThread holder([&] {
      while (!stop) {
        std::lock_guard<std::mutex> held(lock);
        begun = true;
        // Held nearly all the time.
        for (int turn = 0; turn < 1000; turn++) relax();
      }
    });
    while (!begun) std::this_thread::yield();
    for (int turn = 0; turn < 5; turn++) {
      EXPECT_EQ(0, statusOf(inChild([&] {
                  for (std::mutex* one : locksOfAllThreads()) {
                    if (!one->try_lock()) return 1;
                  }
                  return 0;
                })));
    }
    stop = true;
    holder.join();
  }
}

/** A communicator of one rank, and an operation in a created stream. */
int useAlone() {
  ncclUniqueId id;
  ncclComm_t comm;
  cudaStream_t stream;
  float in = 2, out = 0;
  if (ncclGetUniqueId(&id) != ncclSuccess || ncclCommInitRank(&comm, 1, id, 0) != ncclSuccess) return 2;
  if (nccl4jHostStreamCreate(&stream) != ncclSuccess) return 3;
  if (ncclAllReduce(&in, &out, 1, ncclFloat, ncclSum, comm, stream) != ncclSuccess) return 4;
  if (nccl4jHostStreamSynchronize(stream) != ncclSuccess || out != 2) return 5;
  void* memory;
  if (ncclMemAlloc(&memory, 1) != ncclSuccess || ncclMemFree(memory) != ncclSuccess) return 6;
  return ncclCommDestroy(comm) == ncclSuccess ? 0 : 7;
}

TEST(ForkTest, AChildUsesTheEngineWhileThreadsOfItsParentAreInCalls) {
  std::atomic<bool> stop{false};
  std::atomic<int> calls{0};
  ncclUniqueId id = makeUniqueId();
  auto inCalls = [&](int rank) {
    ncclComm_t comm;
    ASSERT_EQ(ncclSuccess, ncclCommInitRank(&comm, 2, id, rank));
    float value = 1;
    // Rank 0 stops first; its abort ends the call of the other one.
    while (!stop && ncclAllReduce(&value, &value, 1, ncclFloat, ncclMax, comm, nullptr) == ncclSuccess) calls++;
    ncclCommAbort(comm);
  };
  TestThread first(inCalls, 0), second(inCalls, 1);
  while (calls == 0) std::this_thread::yield();
  cudaStream_t ofParent;
  ASSERT_EQ(ncclSuccess, nccl4jHostStreamCreate(&ofParent));
  for (int i = 0; i < 10; i++) EXPECT_EQ(0, statusOf(inChild(useAlone)));
  EXPECT_EQ(0, statusOf(inChild([&] { return nccl4jHostStreamQuery(ofParent) == ncclInvalidArgument ? 0 : 1; })));
  stop = true;
  first.join();
  second.join();
  nccl4jHostStreamDestroy(ofParent);
}

}  // namespace
}  // namespace host

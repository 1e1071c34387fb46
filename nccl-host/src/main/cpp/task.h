// task.h: the steps of one communicator inside a group, and the loop that drives them.
//
// A task says what it wants from each rank next and is told what has come. All tasks of a thread's group advance
// together in one loop over non-blocking sockets, so that no order of sends and receives inside a group can block.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm.h"

namespace host {

/** A call of a user, checked and with everything it needs. */
struct Operation {
  Call call = Call::AllReduce;
  const char* send = nullptr;
  char* recv = nullptr;
  size_t count = 0;
  ncclDataType_t type = ncclInt8;
  int op = 0;
  int root = 0;  // or peer
  uint64_t scalar = 0;

  // AlltoAllv: this rank's row of each matrix, and hashes of the matrices that all ranks must agree on.
  std::vector<size_t> sendCounts, sendDisplacements, recvCounts, recvDisplacements;
  uint64_t hashes[3] = {};

  // CommSplit: this rank's color and key go out, everybody's come in.
  int64_t color = 0, key = 0;
  std::vector<std::pair<int64_t, int64_t>>* colors = nullptr;

  size_t bytes() const { return count * typeSize(type); }
  Frame frame() const;
};

/** Where the next bytes from a rank go. */
struct Space {
  char* data = nullptr;
  size_t size = 0;
};

class Task {
 public:
  explicit Task(Comm& comm) : comm_(comm) {}
  virtual ~Task() = default;
  virtual void start() = 0;
  /** What is wanted from this rank now; size 0 for nothing. */
  virtual Space want(Peer& peer) = 0;
  virtual void received(Peer& peer, size_t bytes) = 0;
  /** Everything has been received and handed to the peers' queues. */
  virtual bool complete() const = 0;
  /** True while something from this rank is still needed. */
  virtual bool needs(Peer& peer) = 0;
  /** "AllReduce". */
  virtual std::string name() const = 0;
  /** With arguments. */
  virtual std::string description() const = 0;

 protected:
  [[noreturn]] void failMismatch(const Peer& peer, const Frame& theirs, const Frame& mine) const;
  Comm& comm_;
};

std::unique_ptr<Task> makeCollective(Comm& comm, Operation operation);

/** All Send and Recv calls of one group on one communicator, in the order of the calls. */
std::unique_ptr<Task> makePointToPoint(Comm& comm, std::vector<Operation> operations);

/** What one communicator has to do in a group. */
struct Work {
  std::shared_ptr<Comm> comm;
  std::vector<std::unique_ptr<Task>> tasks;
};

/**
 * Runs all work to its end. A communicator that fails does not stop the others; the first failure is thrown at the end.
 */
void runWork(std::vector<Work> work);

}  // namespace host

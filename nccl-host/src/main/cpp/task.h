// task.h: the steps of one communicator inside a group, and the loop that drives them.
//
// A task says what it wants from each rank next and is told what has come. All tasks of a thread's group advance
// together in one loop over non-blocking sockets, so that no order of sends and receives inside a group can block.
#pragma once

#include <math.h>
#include <poll.h>

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
  const void* scalarAt = nullptr;  // where it is when the operation runs, if it is not known yet

  // AlltoAllv: this rank's row of each matrix, and hashes of the matrices that all ranks must agree on.
  std::vector<size_t> sendCounts, sendDisplacements, recvCounts, recvDisplacements;
  uint64_t hashes[3] = {};

  // This rank's two numbers go out, everybody's come in. CommSplit: color and key; CommWindowRegister: size and number.
  std::pair<int64_t, int64_t> told;
  std::vector<std::pair<int64_t, int64_t>>* heard = nullptr;

  // CommWindowRegister has its memory in recv.
  size_t windowBytes = 0;
  int windowFlags = 0;
  ncclWindow_t* windowOut = nullptr;

  // PutSignal: the target; PutSignal and Signal: context and index; WaitSignal: how many signals of which.
  uint64_t windowNumber = 0;
  size_t windowOffset = 0;
  int context = 0;
  int signal = 0;
  SignalCounts signals;

  std::vector<Fault> faults;  // before it begins

  ConfigWords config = {};           // of a configurable call
  cudaEvent_t launchEvent = nullptr;  // of this rank alone, to be recorded when the operation is launched

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
  /** Does what does not go through the peers' data streams; true when something moved. */
  virtual bool advanceOwn() { return false; }
  /** What to wait for before advanceOwn can do more. */
  virtual void addDescriptors(std::vector<pollfd>&) {}
  /** When advanceOwn can do more although nothing comes; HUGE_VAL for never. */
  virtual double wakeTime() const { return HUGE_VAL; }
  /** Everything has been received and handed to the peers' queues. */
  virtual bool complete() const = 0;
  /** Called once, after it is complete and everything was sent. */
  virtual void finish() {}
  /** True while something from this rank is still needed. */
  virtual bool needs(Peer& peer) = 0;
  /** True when this rank is known to be in the call: if it is slow, it may be waiting itself. */
  virtual bool arrived(const Peer&) const { return false; }
  /** True when nothing is on its way any more from a rank that has said farewell. */
  virtual bool drained(Peer&) const { return true; }
  /** True when nothing that came before bad news is still on its way beside the peers' data streams. */
  virtual bool settled() const { return true; }
  /** True when this work may be done even though a rank has gone: it only takes in what has come already. */
  virtual bool onlyTakes() const { return false; }
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

std::unique_ptr<Task> makeRegistration(Comm& comm, Operation operation);

/** All puts, signals and waits of one group on one communicator, in the order of the calls. */
std::unique_ptr<Task> makeOneSided(Comm& comm, std::vector<Operation> operations);

/** What one communicator has to do in a group. */
struct Work {
  std::shared_ptr<Comm> comm;
  uint64_t epoch = 0;  // of the communicator, when it was told
  std::vector<std::unique_ptr<Task>> tasks;
  std::vector<Fault> faults;  // before the first begins
  const Comm* child = nullptr;  // being made by this work: its abort ends the work
};

/**
 * Runs all work to its end. A communicator that fails does not stop the others; the first failure is thrown at the end.
 */
void runWork(std::vector<Work> work);

}  // namespace host

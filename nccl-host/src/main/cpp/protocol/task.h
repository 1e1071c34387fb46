// task.h: the steps of one communicator inside a group, and the loop that drives them.
//
// A task states whether it wants a frame or bytes from each rank next, and is notified of arrivals. All tasks of a thread's group
// advance together in one loop over non-blocking sockets, so that no order of sends and receives inside a group blocks.
#pragma once

#include <math.h>
#include <poll.h>

#include <functional>
#include <memory>
#include <string>
#include <new>
#include <type_traits>
#include <vector>

#include "protocol/comm.h"

namespace host {

/** AlltoAllv: this rank's row of each matrix, and hashes of the matrices that must agree on all ranks. */
struct AlltoAllvRows {
  std::vector<size_t> sendCounts, sendDisplacements, recvCounts, recvDisplacements;
  uint64_t hashes[3] = {};
};

/** The arguments and the state that few operations have. */
struct Extras {
  // PreMulSum.
  uint64_t scalar = 0;
  const void* scalarAt = nullptr;  // address to read at run time, or NULL if scalar is set

  std::shared_ptr<const AlltoAllvRows> rows;

  // Two numbers of this rank, and those of all ranks. CommSplit: color and key; CommWindowRegister: address and 0.
  std::pair<int64_t, int64_t> ownPair;
  std::vector<std::pair<int64_t, int64_t>>* allPairs = nullptr;

  // CommWindowRegister; the address of the memory is in Operation::recv.
  size_t windowBytes = 0;
  int windowFlags = 0;
  ncclWindow_t* windowOut = nullptr;

  // PutSignal: the target; PutSignal and Signal: context and index; WaitSignal: the wanted signals and their counts.
  uint64_t windowNumber = 0;
  size_t windowOffset = 0;
  int context = 0;
  int signal = 0;
  std::shared_ptr<const SignalCounts> signals;

  std::vector<Fault> faults;  // to apply before the operation begins

  ProfiledOperation profiled;

  ConfigWords config = {};           // of a configurable call
  cudaEvent_t launchEvent = nullptr;  // of this rank alone; recorded at the launch of the operation
};

/** A checked call of a user with all its arguments. */
class Operation {
 public:
  Call call = Call::AllReduce;
  const char* send = nullptr;
  char* recv = nullptr;
  size_t count = 0;
  ncclDataType_t type = ncclInt8;
  int op = 0;
  int root = 0;  // or peer
  const Operation* next = nullptr;  // Send and Recv: the next one of the same kind with the same peer

  bool hasExtras() const { return extras_ != nullptr; }
  const Extras& extras() const { return extras_ ? *extras_ : kNoExtras; }
  /** The extras, to be set. */
  Extras& addExtras();

  size_t bytes() const { return count * typeSize(type); }
  Frame frame() const;

 private:
  static const Extras& kNoExtras;
  std::shared_ptr<Extras> extras_;  // also of copies, until one of them changes them
};

/** The first Send and the first Recv of a group with one peer that are not matched. Without initial values: most are unused. */
struct Messages {
  const Operation* send;
  const Operation* recv;
  bool unannounced;  // the only Recv

  /** True if the Send, of so many bytes, need not wait for its Recv. */
  bool isBuffered(const Peer& peer, size_t bytes) const {
    return send != nullptr && recv == nullptr && peer.data->has(Capability::Credits) && peer.credits.buffers(bytes);
  }
  /** True if the Recv, of so many bytes, may find a buffered Send, and need not be announced. */
  bool mayFindBuffered(const Peer& peer, size_t bytes) const {
    return recv != nullptr && send == nullptr && peer.credits.mayBeBuffered(bytes);
  }
  /** True if one frame announces both calls. */
  bool areOne() const { return send != nullptr && recv != nullptr && haveSameElements(*send, *recv); }
};

/** The name of a collective, or of the Send and Recv calls of a group. */
std::string nameOf(const Operation* operations, size_t count);

/** An element for each rank; those of few ranks need no allocation. */
template <class T>
class ByRank {
 public:
  explicit ByRank(size_t ranks)
      : many_(ranks > kFew ? new T[ranks]() : nullptr),
        data_(many_ ? many_.get() : reinterpret_cast<T*>(few_)),
        size_(ranks) {
    static_assert(std::is_trivially_destructible_v<T>, "nothing destroys the few ones");
    if (many_) return;
    for (size_t i = 0; i < size_; i++) new (data_ + i) T();
  }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T* data() { return data_; }
  size_t size() const { return size_; }
  T& operator[](size_t rank) { return data_[rank]; }
  const T& operator[](size_t rank) const { return data_[rank]; }

 private:
  static constexpr size_t kFew = 4;
  alignas(T) char few_[kFew * sizeof(T)];
  const std::unique_ptr<T[]> many_;
  T* const data_;
  const size_t size_;
};

/** The destination of the next bytes from a rank. */
struct Space {
  char* data = nullptr;
  size_t size = 0;
};

/** The frame, or the bytes, that a task wants from a rank next; or neither. */
struct Wanted {
  bool frame = false;
  Space bytes;
  size_t least = 0;  // bytes without which the task cannot continue; it may read them in place, without a destination

  bool any() const { return frame || least > 0; }
};

/** The dependence of a task on a rank. */
struct Dependence {
  bool needed = false;    // the task needs data from this rank
  bool awaited = false;   // the task cannot end before this rank is in the call
  bool arrived = false;   // this rank is known to be in the call; a slow one may itself be waiting
};

/** Sources of the events for which a task waits. */
enum class Source {
  DataStreams,  // of the peers: advancing without an arrival costs at most a system call for each
  Lane,         // for a put of this rank
  Inbox,        // signals of other ranks, even of ranks that have left
};

class Task {
 public:
  explicit Task(Comm& comm) : comm_(comm) {}
  virtual ~Task() = default;
  virtual void start() = 0;
  /** Tells the other ranks the call of this task, if they do not know it. Called when the thread has slept for a while. */
  virtual void announceWait() {}
  /** True if the started task may send to this peer or receive from it. */
  virtual bool involves(const Peer&) const { return true; }
  /** The frame or the bytes that are wanted from this peer now. */
  virtual Wanted wants(Peer& peer) = 0;
  /** Called with the wanted frame in peer.frame. */
  virtual void framed(Peer& peer) = 0;
  /** Called with the number of wanted bytes that have arrived. */
  virtual void received(Peer& peer, size_t bytes) = 0;
  /** Advances the work outside the peers' data streams; true if something moved. */
  virtual bool advanceOwn() { return false; }
  /**
   * Adds the descriptors to poll before the next advanceOwn. Returns the time at which to call it without an arrival: 0 if
   * it can continue with data that arrived in the meantime, HUGE_VAL for never.
   */
  virtual double addDescriptors(std::vector<pollfd>&) { return HUGE_VAL; }
  /** True if all data has been received and all sends are in the peers' queues. */
  virtual bool complete() const = 0;
  /** Called once, when the task is complete and all data has been sent. */
  virtual void finish() {}
  virtual Dependence dependsOn(Peer& peer) {
    bool any = wants(peer).any();
    return {any, any, false};
  }
  virtual Source waitsFor() const { return Source::DataStreams; }
  /** True if the work may complete although a rank is gone: this rank has sent its part, or has none. */
  virtual bool completesWithoutPeers() const { return false; }
  /** The operations of the task that a profiler observes; usually empty. */
  std::vector<ProfiledOperation> profiled;
  /** The name, as "AllReduce". */
  virtual std::string name() const = 0;
  /** The name with arguments. */
  virtual std::string description() const = 0;

 protected:
  Comm& comm_;
};

/** Operations that runEagerly has begun; or none, without the lock. */
struct Begun {
  std::unique_lock<Baton> lock;  // of the communicator
  uint32_t arrived = 0;          // a bit for each rank of which a frame is in Peer::frame, still to be taken
  bool isShared = false;         // this rank's folded chunk of an AllReduce is sent

  /** True if the frames of this rank are sent. */
  bool isSent() const { return lock.owns_lock(); }
  bool hasArrived(const Peer& peer) const { return arrived != 0 && (arrived >> peer.rank & 1) != 0; }
};

/**
 * Runs a collective, or the Send and Recv calls of a group, of few elements if the other ranks are in them, too. Returns false
 * if a task must run them; if this rank's frames are sent, `begun` then has the lock, and the task continues.
 */
bool runEagerly(Comm& comm, const Operation* operations, size_t count, Begun& begun);
/** `begun`: the operation, if runEagerly has begun it. */
std::unique_ptr<Task> makeCollective(Comm& comm, Operation&& operation, const Begun& begun = {});
/** Runs a collective to its end, without an allocation for the task. */
void runCollective(Comm& comm, Operation&& operation, Begun&& begun);

/** All Send and Recv calls of one group on one communicator, in the order of the calls. `isSent`: their frames are sent. */
std::unique_ptr<Task> makePointToPoint(Comm& comm, std::vector<Operation> operations, bool isSent = false);
/** Runs such calls to their end, without an allocation for the task. */
void runPointToPoint(Comm& comm, Operation* operations, size_t count, Begun&& begun);

std::unique_ptr<Task> makeRegistration(Comm& comm, Operation operation);

/** All puts, signals and waits of one group on one communicator, in the order of the calls. */
std::unique_ptr<Task> makeOneSided(Comm& comm, std::vector<Operation> operations);

/** The work of one communicator in a group. */
struct Work {
  Comm* comm = nullptr;  // which the caller keeps
  uint64_t epoch = 0;    // of the communicator, at the call
  Task* borrowed = nullptr;                  // the only task, if it belongs to the caller
  std::unique_ptr<Task> task;                // the first one
  std::vector<std::unique_ptr<Task>> tasks;  // after it
  std::vector<Fault> faults;  // to apply before the first task begins
  Begun begun;                // the first task
  const Comm* child = nullptr;  // created by this work: an abort of the child ends the work

  Task& last() { return *(tasks.empty() ? task : tasks.back()); }
  void add(std::unique_ptr<Task> next) { (task ? tasks.emplace_back() : task) = std::move(next); }
};

/** Work that another thread continues. */
class Progress {
 public:
  Progress(const Progress&) = delete;
  ~Progress();

  /**
   * Runs the work until it would have to sleep, and then takes it; returns NULL if it has ended, and throws if it failed.
   * Without the lock of the communicator, which another thread may hold, it has not begun.
   */
  static std::unique_ptr<Progress> runBriefly(Work& work);
  /** Work that has not begun. */
  explicit Progress(std::vector<Work> work);
  /**
   * Runs the work until a time of now(); returns true if it has ended. A failing communicator does not stop the others; the
   * first failure is thrown at the end.
   */
  bool run(double until);

 private:
  struct State;
  explicit Progress(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/**
 * Runs all work to its end. A failing communicator does not stop the others; the first failure is thrown at the end.
 */
void runWork(std::vector<Work> work);
void runWork(Work& work);
/** Runs one task of the caller. */
void runTask(Comm& comm, Task& task, Begun&& begun);

}  // namespace host

// stream.h: streams as queues, and the order of their items.
//
// All work is one graph of items: operations (launch.h), the creation of communicators (jobs.h), and copies. They differ
// only in the thread that runs an item, since creations and calls in the default stream block their caller, while a stream
// must continue without its caller. An item runs when all its predecessors are done: the earlier items in its streams, and the
// earlier operations of its communicators, since all ranks of a communicator must run them in one order. Every
// predecessor of an item exists before the item, so there is no cyclic wait.
//
// Each created stream has a thread, which runs its items; a thread that waits for the stream runs those that have not begun.
// A short operation that nothing precedes begins in the call, and becomes an item for the stream's thread if it moves no
// data for about 50 us. The default stream (0, and CUDA's other handles for it) has none: operations of blocking
// communicators run in the call itself. Programs without CUDA cannot wait for a stream, and find their results when the call
// returns. Every thread has its own default stream, which waits for other streams only on request. (On GPUs each rank has a
// default stream, that of its device; ranks that are threads of one process would deadlock on a shared one.)
//
// When an operation fails, the items after it continue. A stream or an event after it reports the failure until the
// program reacts, that is, until it aborts, destroys, or revokes the communicator, or shrinks it with
// NCCL_SHRINK_ABORT. On a GPU the stream would be blocked until then.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/condition.h"
#include "base/error.h"

namespace host {

class Capture;
class Comm;
struct Item;
using ItemRef = std::shared_ptr<Item>;
using CommRef = std::shared_ptr<Comm>;

/** The order of the items of a stream or of a communicator. */
struct Order {
  ItemRef tail;  // the last item; guarded by the lock of stream.cpp
  /**
   * False if no item is unfinished and no failure is to be reported: a direct call or a wait needs no lock then. Set with
   * the lock, before direct calls are shown.
   */
  std::atomic<bool> hasItems{false};
};

/** A queue. The lock of stream.cpp guards all members except handle, order.hasItems and isCapturing. */
struct Stream {
  explicit Stream(uintptr_t number) : handle(number) {}
  const uintptr_t handle;  // 0: the default stream of a thread
  Order order;
  std::atomic<bool> isCapturing{false};  // has a capture; changed with the lock
  ItemRef ready;              // the first of the items that wait for nothing and have not begun; see Item::next
  Item* lastReady = nullptr;
  size_t unfinished = 0;      // items of the thread, ready or not
  Condition wake;
  std::thread thread;
  bool closed = false;
  std::shared_ptr<Capture> capture;  // that records the work of the stream, or NULL
  size_t lane = 0;                   // in the capture

  bool isDefault() const { return handle == 0; }
  /** Changes order.hasItems. Needs the lock. */
  void setHasItems(bool has);
  /** Needs the lock, as close does. */
  void setCapture(std::shared_ptr<Capture> by, size_t asLane);
  void close();
};
using StreamRef = std::shared_ptr<Stream>;

/** Returns the stream of a call; throws if no stream has this handle. Valid until the thread's next call. */
const StreamRef& requireStream(cudaStream_t handle, const char* call);

StreamRef createStream();
/** Work in it runs to its end. */
void destroyStream(const StreamRef& stream);

/** The end of the present work of a stream. */
ItemRef endOf(const StreamRef& stream);
/** Makes later work of a stream wait for an item. */
void delay(const StreamRef& stream, ItemRef item);

/** Throws if no event has this handle. */
void checkEvent(cudaEvent_t handle, const char* call);

/** Records an event, if it still exists, after all items of the streams and all operations of the communicators. */
void recordLaunch(cudaEvent_t handle, const std::vector<StreamRef>& streams, const std::vector<CommRef>& comms);

/** The elements of a vector, or a single one. */
template <class T>
class View {
 public:
  View() = default;
  View(const T& one) : first_(&one), size_(1) {}
  View(const std::vector<T>& all) : first_(all.data()), size_(all.size()) {}

  const T* begin() const { return first_; }
  const T* end() const { return first_ + size_; }
  const T& front() const { return *first_; }

 private:
  const T* first_ = nullptr;
  size_t size_ = 0;
};

/** The work of an item: runs until a time, and returns true if it has ended. Throws nothing: the communicators keep the failures. */
using Body = std::function<bool(double until)>;

enum class RunBy {
  Thread,  // that of the first created stream, or of a stream that the item has for itself
  Caller,  // the thread that calls runHere
};

/**
 * Adds an item after all present items of the streams and all earlier operations of the communicators. Unless the caller runs it,
 * later items of the streams report the failures of the communicators.
 */
ItemRef enqueue(View<StreamRef> streams, View<CommRef> comms, RunBy by, Body body);

/**
 * Waits until an item can run, and runs it; at once if an abort, a revoke or a shrink cancels one of its communicators.
 */
void runHere(const ItemRef& item);

/**
 * A call that runs its operations itself. It has no item, which costs more than a small operation, unless another thread
 * needs one to follow. Each thread has a slot in which other threads find its call: a call and the creation of an item
 * both store, then load (Dekker): one sees the other. Only then does the call take the lock.
 */
class DirectCall {
 public:
  DirectCall(const CommRef& comm, const StreamRef& stream);
  ~DirectCall();
  DirectCall(const DirectCall&) = delete;

  /** False if an item precedes the call in its stream or its communicator: the operations must be enqueued. */
  bool begun() const { return begun_; }
  /** Later items of the stream report the failure of the communicator. */
  void reportFailure();
  /** Ends the call; the thread of the created stream does the rest. Throws if there is no such thread. */
  void continueInStream(Body body);
  /** Gives the call an item, and the one around it. Needs the lock of stream.cpp. */
  void publish();

 private:
  void leave();
  const CommRef& comm_;
  const StreamRef& stream_;
  std::atomic<DirectCall*>& slot_;
  DirectCall* const outer_;  // the call in which a profiler makes this one, or NULL
  ItemRef item_;
  bool begun_ = false;
};

/** Waits until all operations of a communicator are done or cancelled. */
void awaitOperations(Comm& comm);
bool hasOperations(Comm& comm);
/** True if a thread is inside a call on the communicator. */
bool hasCallers(Comm& comm);

/** Makes callers in runHere and awaitOperations check whether their communicators were cancelled. */
void wakeCallers();

/** Runs a short action when all present items of all streams are done, possibly in this call. */
void whenAllDone(std::function<void()> action);

}  // namespace host

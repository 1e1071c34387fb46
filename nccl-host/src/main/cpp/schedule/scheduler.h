// scheduler.h: the items of streams and communicators, and the state with which their files order them.
#pragma once

#include <math.h>

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/lastfound.h"
#include "base/ofthread.h"
#include "protocol/comm.h"
#include "schedule/stream.h"

namespace host {

/**
 * A communicator whose failure an item reports: one of its own, or one that a predecessor reports. All entries exist before the item
 * can run, since the end of an item must allocate nothing.
 */
struct ReportedFailure {
  std::weak_ptr<Comm> comm;
  bool isOwn = false;
  bool failed = false;  // in this item or before it
};

struct Item {
  Body body;                      // empty: done as soon as it can run, or running
  StreamRef home;                 // whose thread runs the body, until it has run
  size_t index = 0;               // in Scheduler::items
  int pendingPredecessors = 0;    // number of unfinished predecessors
  std::vector<ItemRef> followers;
  ItemRef next;                   // in Stream::ready, or in the list of finish
  std::vector<CommRef> comms;     // of RunBy::Caller, until it has run
  uint64_t epoch = 0;             // sum over comms, at creation
  std::vector<ReportedFailure> reports;    // of a done item: those that failed
  std::function<void()> action;   // runs with the lock held when the item is done
  Condition changed;
  bool done = false;
  bool ownedByCall = false;  // by a direct call: only that ends it
  bool hadBody = false;      // has or had a body
  double time = 0;           // of completion, unless it had a body
};

/** A position in a stream. */
struct Event {
  ItemRef item;         // the last item of the stream at the record
  double recorded = 0;  // 0: never
  std::shared_ptr<Capture> capture;  // in which it was recorded, or NULL
  size_t mark = 0;                   // of the capture
};

/** The place for the direct call of a thread: NULL, the call, or the mark that it has an item. */
struct Slot {
  std::atomic<DirectCall*> call{nullptr};
  // Threads write to their slots in each call: two must not share a cache line. (alignas needs the libstdc++ of GCC 7.)
  char unused[64 - sizeof call];
};

/** The mutex guards all members but removals; the functions below need it. */
struct Scheduler {
  std::mutex mutex;
  std::map<uintptr_t, StreamRef> streams;
  std::atomic<uint64_t> removals{0};  // of streams
  std::vector<ItemRef> items;  // unfinished items with a body, in any order
  std::map<uintptr_t, Event> events;
  // Numbers, not addresses, as for communicators.
  uintptr_t nextStream = 0x6e63637300000000u;
  uintptr_t nextEvent = 0x6e63636500000000u;
  std::deque<Slot> slots;        // see Caller
  std::vector<Slot*> freeSlots;  // of threads that have ended; has room for all
};

Scheduler& scheduler();
using Lock = std::unique_lock<std::mutex>;

/** The state of a thread that calls the engine. */
class Caller {
 public:
  Caller() {
    Lock lock(scheduler().mutex);
    std::vector<Slot*>& free = scheduler().freeSlots;
    if (free.empty()) {
      free.reserve(scheduler().slots.size() + 1);
      free.push_back(&scheduler().slots.emplace_back());
    }
    slot_ = free.back();
    free.pop_back();
  }
  ~Caller() {
    Lock lock(scheduler().mutex);
    scheduler().freeSlots.push_back(slot_);
  }
  Caller(const Caller&) = delete;

  std::atomic<DirectCall*>& slot() { return slot_->call; }
  /** Only calls of this thread refer to it, so that the reference needs no count. */
  const StreamRef& defaultStream() { return defaultStreamRef_; }
  LastFound<uintptr_t, Stream> lastStream;

 private:
  Slot* slot_;
  Stream defaultStream_{0};
  const StreamRef defaultStreamRef_{StreamRef(), &defaultStream_};
};

/** Makes item a successor of tail. A finished tail is not waited for, but its failures are inherited. */
void follow(const ItemRef& item, ItemRef& tail);

inline bool isDone(const ItemRef& item) { return !item || item->done; }

/** Forgets the last item of an order whose items are done; false if a failure is to be reported. */
bool forgetDone(Order& order);

/** Creates an item without a body; done at once if it has no unfinished predecessor. */
template <class Follow>
ItemRef join(Follow&& followAll) {
  auto item = std::make_shared<Item>();
  followAll(item);
  if (item->pendingPredecessors == 0) {
    item->done = true;
    item->time = now();
  }
  return item;
}

/** An item that ends with all present items of a stream. */
ItemRef allIn(Stream& stream);

/** Returns ncclSuccess, ncclInProgress, or the unhandled failure of an operation. */
ncclResult_t stateOf(const Item& item);

/** Makes items of all direct calls. */
void showDirectCalls();

/** Runs an item until a time; returns false if it has not ended, and then makes it ready again. */
bool runBody(const ItemRef& item, Lock& lock, double until = HUGE_VAL);

/** Starts the thread of a stream, unless it has one. */
void startThreadOf(const StreamRef& stream);

}  // namespace host

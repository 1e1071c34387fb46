// stream.cpp: the order of items, and the threads of streams.

#include "schedule/stream.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <new>
#include <thread>

#include "base/fork.h"
#include "base/lastfound.h"
#include "base/ofthread.h"
#include "base/thread.h"
#include "protocol/comm.h"
#include "schedule/capture.h"
#include "transport/socket.h"

namespace host {

/**
 * A communicator whose failure an item reports: one of its own, or one that a predecessor reports. All entries exist before the item
 * can run, since the end of an item must allocate nothing.
 */
struct Report {
  std::weak_ptr<Comm> comm;
  bool isOwn = false;
  bool failed = false;  // in this item or before it
};

struct Item {
  Advance advance;                // of RunBy::Stream and Thread, or empty
  Body body;                      // empty: done as soon as it can run
  StreamRef home;                 // whose thread runs the body, until it has run
  size_t index = 0;               // in Scheduler::items
  int pendingPredecessors = 0;    // number of unfinished predecessors
  std::vector<ItemRef> followers;
  ItemRef next;                   // in Stream::ready, or in the list of finish
  std::vector<CommRef> comms;     // of RunBy::Caller, until it has run
  uint64_t epoch = 0;             // sum over comms, at creation
  std::vector<Report> reports;    // of a done item: those that failed
  std::function<void()> action;   // runs with the lock held when the item is done
  Condition changed;
  bool done = false;
  bool ownedByCall = false;  // by a direct call: only that ends it
  bool hadBody = false;      // has or had a body
  double time = 0;           // of completion, unless it had a body
};

namespace {

/** A position in a stream. */
struct Event {
  ItemRef item;         // the last item of the stream at the record
  double recorded = 0;  // 0: never
  std::shared_ptr<Capture> capture;  // in which it was recorded, or NULL
  size_t mark = 0;                   // of the capture
};

/** The place for the direct call of a thread: NULL, the call, or kPublished. */
struct Slot {
  std::atomic<DirectCall*> call{nullptr};
  // Threads write to their slots in each call: two must not share a cache line. (alignas needs the libstdc++ of GCC 7.)
  char unused[64 - sizeof call];
};

/** An item for which a thread waits; on the stack of that thread. */
struct Awaited {
  Item* item;
  Awaited* next;
};

struct Scheduler {
  std::mutex mutex;
  std::map<uintptr_t, StreamRef> streams;
  std::atomic<uint64_t> removals{0};  // of streams
  std::vector<ItemRef> items;  // unfinished items with a body, in any order
  std::map<uintptr_t, Event> events;
  // Numbers, not addresses, as for communicators.
  uintptr_t nextStream = 0x6e63637300000000u;
  uintptr_t nextEvent = 0x6e63636500000000u;
  Awaited* awaitedByCallers = nullptr;  // the first one
  std::deque<Slot> slots;        // see Caller
  std::vector<Slot*> freeSlots;  // of threads that have ended; has room for all
};

// Never destroyed: threads of streams continue while the process ends.
Scheduler* current = new Scheduler;
Scheduler& scheduler() { return *current; }

using Lock = std::unique_lock<std::mutex>;

/** Number of created streams that have items and are not closed. */
std::atomic<int> busyStreams{0};
static_assert(sizeof busyStreams == sizeof(int), "read through nccl4jHostBusyStreams");

/** In a slot: the call has an item, and needs the lock to end. */
DirectCall* const kPublished = reinterpret_cast<DirectCall*>(1);

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

bool isSame(const std::weak_ptr<Comm>& one, const std::weak_ptr<Comm>& other) {
  return !one.owner_before(other) && !other.owner_before(one);
}

/** The entry of an item for a communicator, or NULL. */
Report* reportOf(Item& item, const std::weak_ptr<Comm>& comm) {
  auto found = std::find_if(
      item.reports.begin(), item.reports.end(), [&](const Report& report) { return isSame(report.comm, comm); });
  return found == item.reports.end() ? nullptr : &*found;
}

/** True if the failure is unhandled. */
bool stands(const Report& report) {
  CommRef comm = report.comm.lock();
  return comm && comm->failureStands();
}

bool failureStands(const Item& item) {
  return std::any_of(item.reports.begin(), item.reports.end(), [](const Report& report) {
    return report.failed && stands(report);
  });
}

/** Makes the item report what its predecessor reports. */
void inherit(Item& item, const Item& before) {
  for (const Report& report : before.reports) {
    bool failed = report.failed && stands(report);
    if (before.done && !failed) continue;
    Report* own = reportOf(item, report.comm);
    if (own == nullptr) {
      item.reports.push_back({report.comm, false, failed});
    } else {
      own->failed |= failed;
    }
  }
}

/** Makes item a successor of tail. A finished tail is not waited for, but its failures are inherited. */
void follow(const ItemRef& item, ItemRef& tail) {
  if (!tail) return;
  inherit(*item, *tail);
  if (!tail->done) {
    tail->followers.push_back(item);
    item->pendingPredecessors++;
  } else {
    if (!failureStands(*tail)) tail.reset();
  }
}

/** Makes the body of an item run if its stream's thread runs it. Needs the lock. */
void makeReady(const ItemRef& item) {
  Stream& stream = *item->home;
  (stream.ready ? stream.lastReady->next : stream.ready) = item;
  stream.lastReady = item.get();
  stream.wake.notify_one();
}

/** As makeReady, before all others. Needs the lock. */
void makeReadyFirst(const ItemRef& item) {
  Stream& stream = *item->home;
  if (!stream.ready) stream.lastReady = item.get();
  item->next = std::move(stream.ready);
  stream.ready = item;
  stream.wake.notify_one();
}

void addUnfinished(const ItemRef& item) {
  std::vector<ItemRef>& items = scheduler().items;
  item->index = items.size();
  items.push_back(item);
}

void removeUnfinished(Item& item) {
  std::vector<ItemRef>& items = scheduler().items;
  if (item.index >= items.size() || items[item.index].get() != &item) return;
  items.back()->index = item.index;
  std::swap(items[item.index], items.back());
  items.pop_back();
}

/** Finishes the item, and successors without a body that wait for nothing else. Needs the lock. */
void finish(const ItemRef& first) {
  for (ItemRef ending = first; ending;) {
    ItemRef item = std::move(ending);
    ending = std::move(item->next);
    item->done = true;
    for (Report& report : item->reports) report.failed = (report.failed || report.isOwn) && stands(report);
    // Events refer to items without work.
    if (!item->hadBody) item->time = now();
    removeUnfinished(*item);
    if (item->home) {
      // The thread of a closed stream waits for its last item.
      if (--item->home->unfinished == 0 && item->home->closed) item->home->wake.notify_one();
      item->home.reset();
    }
    if (item->action) item->action();
    item->action = nullptr;
    for (const ItemRef& follower : item->followers) {
      for (const Report& report : item->reports) {
        Report* inherited = report.failed ? reportOf(*follower, report.comm) : nullptr;
        if (inherited != nullptr) inherited->failed = true;
      }
      if (--follower->pendingPredecessors > 0) continue;
      if (follower->home) {
        makeReady(follower);
      } else if (follower->body) {
        follower->changed.notify_all();
      } else if (!follower->ownedByCall) {
        follower->next = std::move(ending);
        ending = follower;
      }
    }
    item->followers.clear();
    item->reports.erase(
        std::remove_if(item->reports.begin(), item->reports.end(), [](const Report& report) { return !report.failed; }),
        item->reports.end());
    item->changed.notify_all();
  }
}

/** Runs an item until a time; returns false if it has not ended, and then makes it ready again. */
bool runBody(const ItemRef& item, Lock& lock, double until = HUGE_VAL) {
  if (Advance advance = std::move(item->advance)) {
    item->advance = nullptr;
    lock.unlock();
    bool ended = advance(until);
    if (ended) advance = nullptr;
    lock.lock();
    if (!ended) {
      item->advance = std::move(advance);
      makeReadyFirst(item);
      return false;
    }
  }
  Body body = std::move(item->body);
  item->body = nullptr;
  lock.unlock();
  body();
  // The body's references are released before other threads can see that the item is done.
  body = nullptr;
  lock.lock();
  finish(item);
  return true;
}

/** Runs the first item that waits for nothing, until a time; returns false if it has not ended. */
bool runReady(Stream& stream, Lock& lock, double until = HUGE_VAL) {
  ItemRef item = std::move(stream.ready);
  stream.ready = std::move(item->next);
  return runBody(item, lock, until);
}

void serve(const StreamRef& stream) {
  Lock lock(scheduler().mutex);
  for (;;) {
    stream->wake.wait(lock, [&] { return stream->ready || (stream->closed && stream->unfinished == 0); });
    if (!stream->ready) return;
    runReady(*stream, lock);
  }
}

/** Needs the lock. */
void startThreadOf(const StreamRef& stream) {
  if (stream->thread.joinable()) return;
  stream->thread = startThread("the thread of a stream", [stream] { serve(stream); });
  // Nobody joins the thread of a stream that was destroyed during the call.
  if (stream->closed) stream->thread.detach();
}

/** Makes items of all direct calls. Needs the lock. */
void showDirectCalls() {
  for (Slot& slot : scheduler().slots) {
    DirectCall* call = slot.call;
    while (call != nullptr && call != kPublished && !slot.call.compare_exchange_weak(call, kPublished)) {
    }
    if (call == nullptr || call == kPublished) continue;
    try {
      call->publish();
    } catch (const std::bad_alloc&) {
      // It has no item: the next thread that needs one makes it.
      DirectCall* published = kPublished;
      slot.call.compare_exchange_strong(published, call);
      throw;
    }
  }
}

/** Makes an item the last one of all orders, unless `last` or an allocation throws. Needs the lock. */
template <class Last>
void place(const ItemRef& item, View<StreamRef> streams, View<CommRef> comms, Last&& last) {
  addUnfinished(item);
  try {
    for (const StreamRef& stream : streams) follow(item, stream->order.tail);
    for (const CommRef& comm : comms) follow(item, comm->order.tail);
    last();
  } catch (const std::exception&) {
    // Its predecessors may still refer to it. Nothing follows it, and it runs nothing.
    removeUnfinished(*item);
    item->advance = nullptr;
    item->body = nullptr;
    throw;
  }
  for (const StreamRef& stream : streams) stream->order.tail = item;
  for (const CommRef& comm : comms) comm->order.tail = item;
}

bool isDone(const ItemRef& item) { return !item || item->done; }

/** Forgets the last item of an order whose items are done; false if a failure is to be reported. Needs the lock. */
bool forgetDone(Order& order) {
  if (order.tail && failureStands(*order.tail)) return false;
  order.tail.reset();
  return true;
}

uint64_t epochOf(View<CommRef> comms) {
  uint64_t sum = 0;
  for (const CommRef& comm : comms) sum += comm->epoch;
  return sum;
}

/** Creates an item without a body; done at once if it has no unfinished predecessor. Needs the lock. */
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

ItemRef allIn(Stream& stream) {
  showDirectCalls();
  return join([&](const ItemRef& item) { follow(item, stream.order.tail); });
}

/** Registers the caller as waiting for an item, so that an abort can end the wait. Needs the lock. */
template <class Condition>
void waitAsCaller(const ItemRef& item, Lock& lock, Condition&& condition) {
  Awaited mine{item.get(), scheduler().awaitedByCallers};
  scheduler().awaitedByCallers = &mine;
  item->changed.wait(lock, condition);
  Awaited** at = &scheduler().awaitedByCallers;
  while (*at != &mine) at = &(*at)->next;
  *at = mine.next;
}

/** Returns ncclSuccess, ncclInProgress, or the unhandled failure of an operation. */
ncclResult_t stateOf(const Item& item) {
  if (!item.done) return ncclInProgress;
  for (const Report& report : item.reports) {
    CommRef comm = report.failed ? report.comm.lock() : nullptr;
    if (comm && comm->failureStands()) throw Failure(comm->lifecycle.error(), comm->lifecycle.errorText());
  }
  return ncclSuccess;
}

/** Throws if the work of a stream is captured, and so never done. Needs the lock. */
void requireRunning(const Stream& stream, const char* call) {
  if (stream.capture) stream.capture->refuse(call, "a stream that is being captured does no work");
}

/** Waits for the present items of a stream until a time, and runs them unless the stream's thread has begun to. */
ncclResult_t synchronize(StreamRef stream, double until) {
  Lock lock(scheduler().mutex);
  requireRunning(*stream, "HostStreamSynchronize");
  showDirectCalls();
  Order& order = stream->order;
  if (!order.tail) return ncclSuccess;
  ItemRef all = order.tail->done ? order.tail : allIn(*stream);
  // Until that thread is awake, other ranks wait for this one, and then leave their own operations to threads.
  while (!all->done && stream->ready && runReady(*stream, lock, until)) {
  }
  all->changed.waitUntil(lock, until, [&] { return all->done; });
  // Unless another thread has added an item, or destroyed the stream, meanwhile.
  if (isDone(order.tail) && !stream->closed && forgetDone(order)) stream->setHasItems(false);
  return stateOf(*all);
}

Event& requireEvent(nccl4jHostEvent_t handle, const char* call, bool recorded) {
  auto found = scheduler().events.find(reinterpret_cast<uintptr_t>(handle));
  if (found == scheduler().events.end()) {
    fail(ncclInvalidArgument, "%s : %p is not an event of the host engine", call, static_cast<void*>(handle));
  }
  if (recorded && found->second.recorded == 0) {
    fail(ncclInvalidUsage, "%s : event %p was not recorded yet", call, static_cast<void*>(handle));
  }
  return found->second;
}

/** As above, for an event that marks work which was not captured. */
Event& requireMark(nccl4jHostEvent_t handle, const char* call) {
  Event& event = requireEvent(handle, call, true);
  if (event.capture) {
    fail(ncclInvalidUsage, "%s : event %p was recorded in a capture", call, static_cast<void*>(handle));
  }
  return event;
}

void copyIn(const StreamRef& stream, void* target, const void* source, size_t bytes) {
  RunBy by = stream->isDefault() ? RunBy::Caller : RunBy::Stream;
  ItemRef item = enqueue(stream, {}, by, [=] { memmove(target, source, bytes); });
  if (stream->isDefault()) runHere(item);
}

double timeOf(const Event& event, const char* call) {
  if (!event.item->done) fail(ncclInvalidUsage, "%s : the event is not done", call);
  return std::max(event.recorded, event.item->time);
}

}  // namespace

std::mutex& lockOfStreams() { return scheduler().mutex; }

// The items of the parent's threads never end, and their calls are on stacks that the child uses again: all of it is left alone.
void forgetStreams() {
  auto* fresh = new Scheduler;
  fresh->nextStream = scheduler().nextStream;
  fresh->nextEvent = scheduler().nextEvent;
  current = fresh;
  busyStreams = 0;
  OfThread<Caller>::object = nullptr;
}

const StreamRef& requireStream(cudaStream_t handle, const char* call) {
  auto number = reinterpret_cast<uintptr_t>(handle);
  // cudaStreamLegacy and cudaStreamPerThread.
  if (number <= 2) return ofThread<Caller>().defaultStream();
  const StreamRef& stream = ofThread<Caller>().lastStream.get(number, scheduler().removals, [&] {
    Lock lock(scheduler().mutex);
    auto found = scheduler().streams.find(number);
    return found == scheduler().streams.end() ? nullptr : found->second;
  });
  if (!stream) {
    fail(
        ncclInvalidArgument, "%s : %p is not a stream of the host engine: neither 0 nor made by nccl4jHostStreamCreate",
        call, static_cast<void*>(handle));
  }
  return stream;
}

void Stream::setHasItems(bool has) {
  if (order.hasItems.exchange(has) != has && !isDefault() && !closed) busyStreams += has ? 1 : -1;
}

void Stream::setCapture(std::shared_ptr<Capture> by, size_t asLane) {
  capture = std::move(by);
  lane = asLane;
  isCapturing = capture != nullptr;
  // Waits and queries look at it with the lock.
  if (isCapturing || (isDone(order.tail) && forgetDone(order))) setHasItems(isCapturing);
}

void Stream::close() {
  setHasItems(false);
  closed = true;
  // Later calls look at it with the lock.
  setHasItems(true);
}

void checkEvent(cudaEvent_t handle, const char* call) {
  Lock lock(scheduler().mutex);
  requireEvent(reinterpret_cast<nccl4jHostEvent_t>(handle), call, false);
}

void recordLaunch(cudaEvent_t handle, const std::vector<StreamRef>& streams, const std::vector<CommRef>& comms) {
  Lock lock(scheduler().mutex);
  auto found = scheduler().events.find(reinterpret_cast<uintptr_t>(handle));
  if (found == scheduler().events.end()) return;
  showDirectCalls();
  found->second.item = join([&](const ItemRef& item) {
    for (const StreamRef& stream : streams) follow(item, stream->order.tail);
    for (const CommRef& comm : comms) follow(item, comm->order.tail);
  });
  found->second.recorded = now();
  found->second.capture.reset();
}

StreamRef createStream() {
  Lock lock(scheduler().mutex);
  uintptr_t handle = scheduler().nextStream += 16;
  return scheduler().streams[handle] = std::make_shared<Stream>(handle);
}

void destroyStream(const StreamRef& stream) {
  Lock lock(scheduler().mutex);
  showDirectCalls();
  stream->close();
  stream->wake.notify_all();
  scheduler().streams.erase(stream->handle);
  scheduler().removals++;
  if (!stream->thread.joinable()) return;
  bool idle = isDone(stream->order.tail);
  std::thread thread = std::move(stream->thread);
  lock.unlock();
  if (idle) {
    thread.join();
  } else {
    thread.detach();
  }
}

ItemRef endOf(const StreamRef& stream) {
  Lock lock(scheduler().mutex);
  return allIn(*stream);
}

void delay(const StreamRef& stream, ItemRef item) {
  Lock lock(scheduler().mutex);
  stream->setHasItems(true);
  showDirectCalls();
  stream->order.tail = join([&](const ItemRef& next) {
    follow(next, stream->order.tail);
    follow(next, item);
  });
}

ItemRef enqueue(View<StreamRef> streams, View<CommRef> comms, RunBy by, Body body, Advance advance) {
  auto item = std::make_shared<Item>();
  item->advance = std::move(advance);
  item->body = std::move(body);
  item->hadBody = true;
  if (by == RunBy::Caller) {
    item->comms.assign(comms.begin(), comms.end());
  } else {
    for (const CommRef& comm : comms) item->reports.push_back({comm, true, false});
  }
  item->epoch = epochOf(comms);
  Lock lock(scheduler().mutex);
  for (const StreamRef& stream : streams) {
    if (stream->closed) fail(ncclInvalidArgument, "the stream was destroyed during the call");
  }
  if (by == RunBy::Stream) startThreadOf(streams.front());
  for (const StreamRef& stream : streams) stream->setHasItems(true);
  for (const CommRef& comm : comms) comm->order.hasItems = true;
  showDirectCalls();
  place(item, streams, comms, [&] {
    if (by != RunBy::Thread) return;
    startThread("a thread for a call", [item] {
      Lock own(scheduler().mutex);
      item->changed.wait(own, [&] { return item->pendingPredecessors == 0; });
      runBody(item, own);
    }).detach();
  });
  if (by == RunBy::Stream) {
    item->home = streams.front();
    item->home->unfinished++;
    if (item->pendingPredecessors == 0) makeReady(item);
  }
  return item;
}

void runHere(const ItemRef& item) {
  Lock lock(scheduler().mutex);
  waitAsCaller(item, lock, [&] {
    return item->pendingPredecessors == 0 || epochOf(item->comms) != item->epoch;
  });
  std::vector<CommRef> comms = std::move(item->comms);
  if (item->pendingPredecessors == 0) {
    runBody(item, lock);
    return;
  }
  // The body detects the cancellation. Successors of the item still wait for its predecessors.
  Body body = std::move(item->body);
  item->body = nullptr;
  lock.unlock();
  body();
}

DirectCall::DirectCall(const CommRef& comm, const StreamRef& stream)
    : comm_(comm), stream_(stream), slot_(ofThread<Caller>().slot()), outer_(slot_) {
  // From here on other threads call show.
  slot_ = this;
  begun_ = !stream->order.hasItems && !comm->order.hasItems;
  if (begun_) return;
  Lock lock(scheduler().mutex);
  bool isFirst = item_ ? item_->pendingPredecessors == 0 : isDone(stream->order.tail) && isDone(comm->order.tail);
  begun_ = isFirst && !stream->closed;
  if (!begun_) {
    leave();
  } else if (!item_) {
    if (forgetDone(stream->order)) stream->setHasItems(false);
    if (forgetDone(comm->order)) comm->order.hasItems = false;
  }
}

DirectCall::~DirectCall() {
  if (!begun_ || (outer_ == nullptr && slot_.exchange(nullptr) == this && !item_)) return;
  Lock lock(scheduler().mutex);
  leave();
}

/** Empties the slot, and finishes the item unless it waits for others. Needs the lock. */
void DirectCall::leave() {
  slot_ = outer_;
  if (!item_) return;
  comm_->callers--;
  item_->ownedByCall = false;
  if (item_->pendingPredecessors == 0) finish(item_);
}

void DirectCall::publish() {
  if (item_) return;
  if (outer_ != nullptr && outer_ != kPublished) outer_->publish();
  auto item = std::make_shared<Item>();
  item->hadBody = true;
  item->ownedByCall = true;
  item->reports.push_back({comm_, false, false});
  stream_->setHasItems(true);
  comm_->order.hasItems = true;
  place(item, stream_, comm_, [] {});
  comm_->callers++;
  item_ = std::move(item);
}

void DirectCall::reportFailure() {
  Lock lock(scheduler().mutex);
  publish();
  reportOf(*item_, comm_)->isOwn = true;
}

void DirectCall::continueInStream(Body body, Advance advance) {
  Lock lock(scheduler().mutex);
  startThreadOf(stream_);
  publish();
  item_->ownedByCall = false;
  item_->advance = std::move(advance);
  item_->body = std::move(body);
  reportOf(*item_, comm_)->isOwn = true;
  item_->home = stream_;
  stream_->unfinished++;
  if (item_->pendingPredecessors == 0) makeReady(item_);
  slot_ = outer_;
  comm_->callers--;
  begun_ = false;
}

void awaitOperations(Comm& comm) {
  Lock lock(scheduler().mutex);
  showDirectCalls();
  ItemRef last = comm.order.tail;
  uint64_t epoch = comm.epoch;
  if (last) waitAsCaller(last, lock, [&] { return last->done || comm.epoch != epoch; });
}

bool hasOperations(Comm& comm) {
  Lock lock(scheduler().mutex);
  showDirectCalls();
  return !isDone(comm.order.tail);
}

bool hasCallers(Comm& comm) {
  Lock lock(scheduler().mutex);
  showDirectCalls();
  return comm.callers > 0;
}

void wakeCallers() {
  Lock lock(scheduler().mutex);
  for (Awaited* one = scheduler().awaitedByCallers; one != nullptr; one = one->next) one->item->changed.notify_all();
}

void whenAllDone(std::function<void()> action) {
  Lock lock(scheduler().mutex);
  showDirectCalls();
  ItemRef all = join([](const ItemRef& item) {
    for (ItemRef other : scheduler().items) follow(item, other);
  });
  if (all->done) {
    action();
  } else {
    all->action = std::move(action);
  }
}

}  // namespace host

using namespace host;

extern "C" ncclResult_t nccl4jHostStreamCreate(cudaStream_t* stream) {
  return guarded([&]() -> ncclResult_t {
    if (stream == nullptr) fail(ncclInvalidArgument, "HostStreamCreate : stream argument is NULL");
    *stream = reinterpret_cast<cudaStream_t>(createStream()->handle);
    return ncclSuccess;
  });
}

extern "C" ncclResult_t nccl4jHostStreamDestroy(cudaStream_t stream) {
  return guarded([&]() -> ncclResult_t {
    StreamRef known = requireStream(stream, "HostStreamDestroy");
    if (known->isDefault()) fail(ncclInvalidArgument, "HostStreamDestroy : the default stream cannot be destroyed");
    destroyStream(known);
    return ncclSuccess;
  });
}

extern "C" ncclResult_t nccl4jHostStreamQuery(cudaStream_t stream) {
  return guarded([&]() -> ncclResult_t {
    const StreamRef& known = requireStream(stream, "HostStreamQuery");
    if (!known->order.hasItems) return ncclSuccess;
    Lock lock(scheduler().mutex);
    requireRunning(*known, "HostStreamQuery");
    showDirectCalls();
    return known->order.tail ? stateOf(*known->order.tail) : ncclSuccess;
  });
}

extern "C" ncclResult_t nccl4jHostStreamSynchronize(cudaStream_t stream) {
  return guarded([&]() -> ncclResult_t {
    const StreamRef& known = requireStream(stream, "HostStreamSynchronize");
    if (!known->order.hasItems) return ncclSuccess;
    return synchronize(known, HUGE_VAL);
  });
}

extern "C" ncclResult_t nccl4jHostStreamSynchronizeFor(cudaStream_t stream, double seconds) {
  return guarded([&]() -> ncclResult_t {
    const StreamRef& known = requireStream(stream, "HostStreamSynchronizeFor");
    if (!known->order.hasItems) return ncclSuccess;
    return synchronize(known, now() + seconds);
  });
}

extern "C" const int* nccl4jHostBusyStreams(void) { return reinterpret_cast<const int*>(&busyStreams); }

extern "C" ncclResult_t nccl4jHostStreamWaitEvent(cudaStream_t stream, nccl4jHostEvent_t event) {
  return guarded([&]() -> ncclResult_t {
    const char* call = "HostStreamWaitEvent";
    const StreamRef& known = requireStream(stream, call);
    Lock lock(scheduler().mutex);
    Event& marked = requireEvent(event, call, true);
    if (std::shared_ptr<Capture> capture = marked.capture) {
      if (capture->hasEnded()) requireMark(event, call);
      if (known->isDefault() || (known->capture && known->capture != capture)) {
        capture->refuse(call, "only a stream that no other graph captures, and not the default stream, can join a capture");
      }
      capture->await(known, marked.mark);
      return ncclSuccess;
    }
    if (known->capture) known->capture->refuse(call, "the event was not recorded in the capture");
    // The event keeps its item for further waits.
    ItemRef last = marked.item;
    lock.unlock();
    delay(known, last);
    return ncclSuccess;
  });
}

extern "C" ncclResult_t nccl4jHostEventCreate(nccl4jHostEvent_t* event) {
  return guarded([&]() -> ncclResult_t {
    if (event == nullptr) fail(ncclInvalidArgument, "HostEventCreate : event argument is NULL");
    Lock lock(scheduler().mutex);
    uintptr_t handle = scheduler().nextEvent += 16;
    scheduler().events[handle];
    *event = reinterpret_cast<nccl4jHostEvent_t>(handle);
    return ncclSuccess;
  });
}

extern "C" ncclResult_t nccl4jHostEventDestroy(nccl4jHostEvent_t event) {
  return guarded([&]() -> ncclResult_t {
    Lock lock(scheduler().mutex);
    requireEvent(event, "HostEventDestroy", false);
    scheduler().events.erase(reinterpret_cast<uintptr_t>(event));
    return ncclSuccess;
  });
}

extern "C" ncclResult_t nccl4jHostEventRecord(nccl4jHostEvent_t event, cudaStream_t stream) {
  return guarded([&]() -> ncclResult_t {
    const StreamRef& known = requireStream(stream, "HostEventRecord");
    Lock lock(scheduler().mutex);
    Event& marked = requireEvent(event, "HostEventRecord", false);
    marked.recorded = now();
    marked.capture = known->capture;
    if (known->capture) {
      marked.mark = known->capture->mark(known);
      marked.item.reset();
    } else {
      marked.item = allIn(*known);
    }
    return ncclSuccess;
  });
}

extern "C" ncclResult_t nccl4jHostEventQuery(nccl4jHostEvent_t event) {
  return guarded([&]() -> ncclResult_t {
    Lock lock(scheduler().mutex);
    return stateOf(*requireMark(event, "HostEventQuery").item);
  });
}

extern "C" ncclResult_t nccl4jHostEventSynchronize(nccl4jHostEvent_t event) {
  return guarded([&]() -> ncclResult_t {
    Lock lock(scheduler().mutex);
    ItemRef item = requireMark(event, "HostEventSynchronize").item;
    item->changed.wait(lock, [&] { return item->done; });
    return stateOf(*item);
  });
}

extern "C" ncclResult_t nccl4jHostEventElapsedTime(double* seconds, nccl4jHostEvent_t start, nccl4jHostEvent_t end) {
  return guarded([&]() -> ncclResult_t {
    const char* call = "HostEventElapsedTime";
    if (seconds == nullptr) fail(ncclInvalidArgument, "%s : seconds argument is NULL", call);
    Lock lock(scheduler().mutex);
    *seconds = timeOf(requireMark(end, call), call) - timeOf(requireMark(start, call), call);
    return ncclSuccess;
  });
}

extern "C" ncclResult_t nccl4jHostMemcpyAsync(void* target, const void* source, size_t bytes, cudaStream_t stream) {
  return guarded([&]() -> ncclResult_t {
    const char* call = "HostMemcpyAsync";
    const StreamRef& known = requireStream(stream, call);
    if (bytes == 0) return ncclSuccess;
    if (target == nullptr || source == nullptr) {
      fail(ncclInvalidArgument, "%s : target is %p and source is %p", call, target, source);
    }
    if (known->isCapturing) {
      Lock lock(scheduler().mutex);
      if (known->capture) {
        size_t lane = known->lane;
        known->capture->add(
            {{known}}, {[=](Replay& replay) { copyIn(replay.streams[lane], target, source, bytes); }, {}});
        return ncclSuccess;
      }
    }
    copyIn(known, target, source, bytes);
    return ncclSuccess;
  });
}

extern "C" ncclResult_t nccl4jHostFree(void* memory) {
  return guarded([&]() -> ncclResult_t {
    whenAllDone([memory] { free(memory); });
    return ncclSuccess;
  });
}

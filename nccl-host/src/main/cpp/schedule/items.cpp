// items.cpp: the order of items, and the calls that run their operations without one.

#include <algorithm>
#include <new>
#include <utility>

#include "schedule/scheduler.h"

namespace host {
namespace {

/** In a slot: the call has an item, and needs the lock to end. */
DirectCall* const kPublished = reinterpret_cast<DirectCall*>(1);

bool isSame(const std::weak_ptr<Comm>& one, const std::weak_ptr<Comm>& other) {
  return !one.owner_before(other) && !other.owner_before(one);
}

/** The entry of an item for a communicator, or NULL. */
ReportedFailure* reportOf(Item& item, const std::weak_ptr<Comm>& comm) {
  auto found = std::find_if(
      item.reports.begin(), item.reports.end(), [&](const ReportedFailure& report) { return isSame(report.comm, comm); });
  return found == item.reports.end() ? nullptr : &*found;
}

/** True if the failure is unhandled. */
bool stands(const ReportedFailure& report) {
  CommRef comm = report.comm.lock();
  return comm && comm->failureStands();
}

bool failureStands(const Item& item) {
  return std::any_of(item.reports.begin(), item.reports.end(), [](const ReportedFailure& report) {
    return report.failed && stands(report);
  });
}

/** Makes the item report what its predecessor reports. */
void inherit(Item& item, const Item& before) {
  for (const ReportedFailure& report : before.reports) {
    bool failed = report.failed && stands(report);
    if (before.done && !failed) continue;
    ReportedFailure* own = reportOf(item, report.comm);
    if (own == nullptr) {
      item.reports.push_back({report.comm, false, failed});
    } else {
      own->failed |= failed;
    }
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
    for (ReportedFailure& report : item->reports) report.failed = (report.failed || report.isOwn) && stands(report);
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
      for (const ReportedFailure& report : item->reports) {
        ReportedFailure* inherited = report.failed ? reportOf(*follower, report.comm) : nullptr;
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
        std::remove_if(item->reports.begin(), item->reports.end(), [](const ReportedFailure& report) { return !report.failed; }),
        item->reports.end());
    item->changed.notify_all();
  }
}

/** Makes an item the last one of all orders, unless an allocation throws. Needs the lock. */
void place(const ItemRef& item, View<StreamRef> streams, View<CommRef> comms) {
  addUnfinished(item);
  try {
    for (const StreamRef& stream : streams) follow(item, stream->order.tail);
    for (const CommRef& comm : comms) follow(item, comm->order.tail);
  } catch (const std::exception&) {
    // Its predecessors may still refer to it. Nothing follows it, and it runs nothing.
    removeUnfinished(*item);
    item->body = nullptr;
    throw;
  }
  for (const StreamRef& stream : streams) stream->order.tail = item;
  for (const CommRef& comm : comms) comm->order.tail = item;
}

/** A stream whose thread ends with its item. */
StreamRef streamOfOneItem() {
  auto stream = std::make_shared<Stream>(0);
  stream->closed = true;
  return stream;
}

uint64_t epochOf(View<CommRef> comms) {
  uint64_t sum = 0;
  for (const CommRef& comm : comms) sum += comm->epoch;
  return sum;
}

}  // namespace

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

bool forgetDone(Order& order) {
  if (order.tail && failureStands(*order.tail)) return false;
  order.tail.reset();
  return true;
}

ItemRef allIn(Stream& stream) {
  showDirectCalls();
  return join([&](const ItemRef& item) { follow(item, stream.order.tail); });
}

ncclResult_t stateOf(const Item& item) {
  if (!item.done) return ncclInProgress;
  for (const ReportedFailure& report : item.reports) {
    CommRef comm = report.failed ? report.comm.lock() : nullptr;
    if (comm && comm->failureStands()) throw Failure(comm->lifecycle.error(), comm->lifecycle.errorText());
  }
  return ncclSuccess;
}

bool runBody(const ItemRef& item, Lock& lock, double until) {
  Body body = std::exchange(item->body, nullptr);
  lock.unlock();
  bool ended = body(until);
  // The body's references are released before other threads can see that the item is done.
  if (ended) body = nullptr;
  lock.lock();
  if (ended) {
    finish(item);
  } else {
    item->body = std::move(body);
    makeReadyFirst(item);
  }
  return ended;
}

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

ItemRef enqueue(View<StreamRef> streams, View<CommRef> comms, RunBy by, Body body) {
  auto item = std::make_shared<Item>();
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
  StreamRef home;
  if (by == RunBy::Thread) {
    auto created = std::find_if(streams.begin(), streams.end(), [](const StreamRef& stream) { return !stream->isDefault(); });
    home = created != streams.end() ? *created : streamOfOneItem();
    startThreadOf(home);
  }
  for (const StreamRef& stream : streams) stream->setHasItems(true);
  for (const CommRef& comm : comms) comm->order.hasItems = true;
  showDirectCalls();
  place(item, streams, comms);
  if (home) {
    home->unfinished++;
    item->home = std::move(home);
    if (item->pendingPredecessors == 0) makeReady(item);
  }
  return item;
}

void runHere(const ItemRef& item) {
  Lock lock(scheduler().mutex);
  item->changed.wait(lock, [&] { return item->pendingPredecessors == 0 || epochOf(item->comms) != item->epoch; });
  std::vector<CommRef> comms = std::move(item->comms);
  if (item->pendingPredecessors == 0) {
    runBody(item, lock);
    return;
  }
  // The body detects the cancellation. Successors of the item still wait for its predecessors.
  Body body = std::exchange(item->body, nullptr);
  lock.unlock();
  body(HUGE_VAL);
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
  place(item, stream_, comm_);
  comm_->callers++;
  item_ = std::move(item);
}

void DirectCall::reportFailure() {
  Lock lock(scheduler().mutex);
  publish();
  reportOf(*item_, comm_)->isOwn = true;
}

void DirectCall::continueInStream(Body body) {
  Lock lock(scheduler().mutex);
  startThreadOf(stream_);
  publish();
  item_->ownedByCall = false;
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
  if (last) last->changed.wait(lock, [&] { return last->done || comm.epoch != epoch; });
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
  for (const ItemRef& item : scheduler().items) item->changed.notify_all();
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

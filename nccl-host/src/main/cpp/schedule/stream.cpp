// stream.cpp: streams and their threads, and the exported functions for streams and memory.

#include "schedule/stream.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fork.h"
#include "base/thread.h"
#include "schedule/capture.h"
#include "schedule/scheduler.h"

namespace host {
namespace {

// Never destroyed: threads of streams continue while the process ends.
Scheduler* current = new Scheduler;

/** Number of created streams that have items and are not closed. */
std::atomic<int> busyStreams{0};
static_assert(sizeof busyStreams == sizeof(int), "read through nccl4jHostBusyStreams");

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

void copyIn(const StreamRef& stream, void* target, const void* source, size_t bytes) {
  RunBy by = stream->isDefault() ? RunBy::Caller : RunBy::Thread;
  ItemRef item = enqueue(stream, {}, by, [=](double) {
    memmove(target, source, bytes);
    return true;
  });
  if (stream->isDefault()) runHere(item);
}

}  // namespace

Scheduler& scheduler() { return *current; }

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

void startThreadOf(const StreamRef& stream) {
  if (stream->thread.joinable()) return;
  stream->thread = startThread("the thread of a stream", [stream] { serve(stream); });
  // Nobody joins the thread of a stream that was destroyed during the call, or of an item that has it for itself.
  if (stream->closed) stream->thread.detach();
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
  return nccl4jHostStreamSynchronizeFor(stream, HUGE_VAL);
}

extern "C" ncclResult_t nccl4jHostStreamSynchronizeFor(cudaStream_t stream, double seconds) {
  return guarded([&]() -> ncclResult_t {
    const StreamRef& known = requireStream(stream, "HostStreamSynchronizeFor");
    if (!known->order.hasItems) return ncclSuccess;
    return synchronize(known, now() + seconds);
  });
}

extern "C" const int* nccl4jHostBusyStreams(void) { return reinterpret_cast<const int*>(&busyStreams); }

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

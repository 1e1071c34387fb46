// event.cpp: events, which mark positions in streams, and the exported functions for them.

#include <algorithm>

#include "schedule/capture.h"
#include "schedule/scheduler.h"

namespace host {
namespace {

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

double timeOf(const Event& event, const char* call) {
  if (!event.item->done) fail(ncclInvalidUsage, "%s : the event is not done", call);
  return std::max(event.recorded, event.item->time);
}

}  // namespace

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

}  // namespace host

using namespace host;

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

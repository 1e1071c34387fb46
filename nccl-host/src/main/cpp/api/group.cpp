// group.cpp: groups, including nested ones, and the exported functions that open and close them.
//
// Closing the outermost group first creates communicators (one thread each, since each waits for other ranks), and then
// launches the operations; see launch.h.

#include "api/group.h"

#include <algorithm>
#include <optional>

#include "base/ofthread.h"
#include "schedule/jobs.h"
#include "schedule/launch.h"

namespace host {
namespace {

/** Maximum number of operations for which a thread keeps the memory for its next group. */
constexpr size_t kKeptOperations = 256;

struct Group {
  Queue queue;
  std::vector<InitJob> jobs;
  std::optional<Failure> failure;
};

struct Groups {
  int depth = 0;
  std::unique_ptr<Group> outermost;  // while one is open; else memory for the next one, or NULL
};

Groups& groups() { return ofThread<Groups>(); }

ncclResult_t closeGroup(ncclSimInfo_t* simulated) {
  Groups& mine = groups();
  if (mine.depth == 0) {
    fail(ncclInvalidUsage, "%s: not in a group call.", simulated != nullptr ? "ncclGroupSimulateEnd" : "ncclGroupEnd");
  }
  if (--mine.depth > 0) return ncclSuccess;
  // Taken before it runs: a profiler may open the next group meanwhile.
  std::unique_ptr<Group> group = std::move(mine.outermost);
  auto& [queue, jobs, failure] = *group;
  for (InitJob& job : jobs) {
    if (!failure && simulated == nullptr) continue;
    drop(job);
  }
  if (failure) throw Failure(*failure);
  if (simulated != nullptr) {
    // A rough model of this engine: a fixed cost per call, and copies at 2 GB/s.
    double microseconds = 0;
    queue.each([&](const Target& target, const Operation& operation) {
      microseconds += 50 + static_cast<double>(operation.bytes()) * target.comm->ranks / 2e3;
    });
    simulated->estimatedTime = static_cast<float>(microseconds);
    return ncclSuccess;
  }
  ncclResult_t result = jobs.empty() ? ncclSuccess : runJobs(std::move(jobs));
  if (!queue.operations.empty()) {
    ncclResult_t launched = launch(queue);
    if (result == ncclSuccess) result = launched;
    queue.clear();
    if (!mine.outermost && queue.operations.capacity() <= kKeptOperations) mine.outermost = std::move(group);
  }
  forgetThreadError();
  return result;
}

}  // namespace

bool insideGroup() { return groups().depth > 0; }

void noteGroupFailure(const Failure& failure) {
  if (insideGroup() && !groups().outermost->failure) groups().outermost->failure = failure;
}

ncclResult_t submit(const CommRef& comm, Operation&& operation, const StreamRef& stream) {
  // Those of captured operations apply to each launch.
  if (comm->faults && !(stream && stream->isCapturing)) operation.addExtras().faults = comm->faults->at(operation.call);
  if (Groups& mine = groups(); mine.depth > 0) {
    mine.outermost->queue.add(comm, stream, std::move(operation));
    return ncclSuccess;
  }
  // A profiler may make calls in other streams meanwhile.
  ncclResult_t result = comm->profiler ? launch(comm, StreamRef(stream), std::move(operation))
                                       : launch(comm, stream, std::move(operation));
  forgetThreadError();
  return result;
}

ncclResult_t submit(std::vector<InitJob> jobs) {
  std::vector<InitJob>* earlier = insideGroup() ? &groups().outermost->jobs : nullptr;
  if (earlier != nullptr && !earlier->empty() && earlier->front().background != jobs.front().background) {
    fail(ncclInvalidArgument, "a group can't create both blocking and non-blocking communicators");
  }
  for (InitJob& job : jobs) announce(job);
  if (earlier == nullptr) return runJobs(std::move(jobs));
  bool background = false;
  for (InitJob& job : jobs) {
    background |= job.background;
    earlier->push_back(std::move(job));
  }
  return background ? ncclInProgress : ncclSuccess;
}

}  // namespace host

using namespace host;

extern "C" ncclResult_t ncclGroupStart() {
  return guarded([]() -> ncclResult_t {
    Groups& mine = groups();
    if (!mine.outermost) mine.outermost = std::make_unique<Group>();
    mine.depth++;
    return ncclSuccess;
  });
}
HOST_PROFILER_ALIAS(ncclGroupStart)

extern "C" ncclResult_t ncclGroupEnd() {
  return guarded([] { return closeGroup(nullptr); });
}
HOST_PROFILER_ALIAS(ncclGroupEnd)

extern "C" ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t* simInfo) {
  return guarded([&]() -> ncclResult_t {
    if (simInfo == nullptr) fail(ncclInvalidArgument, "GroupSimulateEnd : simInfo argument is NULL");
    if (simInfo->magic != 0x74685283 || simInfo->size < sizeof(ncclSimInfo_t)) {
      fail(ncclInvalidArgument, "GroupSimulateEnd : simInfo was not initialized with NCCL_SIM_INFO_INITIALIZER");
    }
    return closeGroup(simInfo);
  });
}
HOST_PROFILER_ALIAS(ncclGroupSimulateEnd)

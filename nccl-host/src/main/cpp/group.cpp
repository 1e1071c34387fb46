// group.cpp: groups, including nested ones, and the exported functions that open and close them.
//
// Closing the outermost group first creates communicators (one thread each, since each waits for other ranks), and then
// launches the operations; see launch.h.

#include "group.h"

#include <algorithm>

#include "jobs.h"
#include "launch.h"
#include "ofthread.h"

namespace host {
namespace {

/** Maximum number of operations for which a thread keeps the memory for its next group. */
constexpr size_t kKeptOperations = 256;

struct Group {
  int depth = 0;
  Queue queue;
  std::vector<InitJob> jobs;
  std::unique_ptr<Failure> failure;
};

Group& group() { return ofThread<Group>(); }

ncclResult_t closeGroup(ncclSimInfo_t* simulated) {
  Group& mine = group();
  const char* name = simulated != nullptr ? "ncclGroupSimulateEnd" : "ncclGroupEnd";
  if (mine.depth == 0) fail(ncclInvalidUsage, "%s: not in a group call.", name);
  if (--mine.depth > 0) return ncclSuccess;
  // Taken before they run: a profiler may open the next group while they do.
  std::vector<InitJob> jobs = std::move(mine.jobs);
  std::unique_ptr<Failure> failure = std::move(mine.failure);
  Queue queue = std::move(mine.queue);
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
    // The next group of this thread uses the memory again.
    queue.clear();
    if (queue.operations.capacity() <= kKeptOperations) mine.queue = std::move(queue);
  }
  forgetThreadError();
  return result;
}

}  // namespace

bool insideGroup() { return group().depth > 0; }

void noteGroupFailure(const Failure& failure) {
  Group& mine = group();
  if (mine.depth > 0 && !mine.failure) mine.failure = std::make_unique<Failure>(failure);
}

ncclResult_t submit(const CommRef& comm, Operation&& operation, const StreamRef& stream) {
  if (comm->faults) operation.addExtras().faults = comm->faults->at(operation.call);
  Group& mine = group();
  if (mine.depth > 0) {
    mine.queue.add(comm, stream, std::move(operation));
    return ncclSuccess;
  }
  // A profiler may make calls in other streams meanwhile.
  ncclResult_t result = comm->profiler ? launch(comm, StreamRef(stream), std::move(operation))
                                       : launch(comm, stream, std::move(operation));
  forgetThreadError();
  return result;
}

ncclResult_t submit(std::vector<InitJob> jobs) {
  const std::vector<InitJob>& earlier = group().jobs;
  if (insideGroup() && !earlier.empty() && earlier.front().background != jobs.front().background) {
    fail(ncclInvalidArgument, "a group can't create both blocking and non-blocking communicators");
  }
  for (InitJob& job : jobs) announce(job);
  if (!insideGroup()) return runJobs(std::move(jobs));
  bool background = false;
  for (InitJob& job : jobs) {
    background |= job.background;
    group().jobs.push_back(std::move(job));
  }
  return background ? ncclInProgress : ncclSuccess;
}

}  // namespace host

using namespace host;

extern "C" ncclResult_t ncclGroupStart() {
  group().depth++;
  return ncclSuccess;
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

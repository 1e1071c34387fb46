// group.cpp: groups, including nested ones, and the exported functions that open and close them.
//
// Closing the outermost group first creates communicators (one thread each, since each waits for other ranks), and then
// launches the operations; see launch.h.

#include "group.h"

#include <algorithm>

#include "jobs.h"
#include "launch.h"

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

Group& group() {
  thread_local Group instance;
  return instance;
}

ncclResult_t closeGroup(ncclSimInfo_t* simulated) {
  Group& mine = group();
  const char* name = simulated != nullptr ? "ncclGroupSimulateEnd" : "ncclGroupEnd";
  if (mine.depth == 0) fail(ncclInvalidUsage, "%s: not in a group call.", name);
  if (--mine.depth > 0) return ncclSuccess;
  Group closed;
  std::swap(closed, mine);
  for (InitJob& job : closed.jobs) {
    if (!closed.failure && simulated == nullptr) continue;
    drop(job);
  }
  if (closed.failure) throw Failure(*closed.failure);
  if (simulated != nullptr) {
    // A rough model of this engine: a fixed cost per call, and copies at 2 GB/s.
    double microseconds = 0;
    for (size_t i = 0; i < closed.queue.operations.size(); i++) {
      double bytes = static_cast<double>(closed.queue.operations[i].bytes());
      microseconds += 50 + bytes * closed.queue.targets[i].comm->ranks / 2e3;
    }
    simulated->estimatedTime = static_cast<float>(microseconds);
    return ncclSuccess;
  }
  ncclResult_t result = closed.jobs.empty() ? ncclSuccess : runJobs(std::move(closed.jobs));
  if (!closed.queue.operations.empty()) {
    ncclResult_t launched = launch(closed.queue);
    if (result == ncclSuccess) result = launched;
    // The next group of this thread uses the memory again.
    closed.queue.clear();
    if (closed.queue.operations.capacity() <= kKeptOperations) std::swap(mine.queue, closed.queue);
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

ncclResult_t submit(const std::shared_ptr<Comm>& comm, Operation&& operation, StreamRef stream) {
  if (comm->faults) operation.faults = comm->faults->at(operation.call);
  if (insideGroup()) {
    group().queue.add(comm, std::move(stream), std::move(operation));
    return ncclSuccess;
  }
  ncclResult_t result = launch(comm, stream, std::move(operation));
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

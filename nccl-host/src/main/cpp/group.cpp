// group.cpp: groups, nested ones too, and the exported functions that open and close them.
//
// Closing the outermost group first makes communicators (one thread each, since each waits for other ranks), then runs
// the operations of all communicators together in the calling thread: on each communicator first the registration of
// windows, then puts, signals and waits, then collectives, then Send and Recv, each kind in the order of the calls, as
// NCCL does. Operations are complete when ncclGroupEnd returns; the
// stream argument is ignored.

#include "group.h"

#include <math.h>
#include <poll.h>

#include <algorithm>

namespace host {
namespace {

struct QueuedOperation {
  std::shared_ptr<Comm> comm;
  Operation operation;
};

struct Group {
  int depth = 0;
  std::vector<QueuedOperation> operations;
  std::vector<InitJob> jobs;
  std::unique_ptr<Failure> failure;

  void clear() {
    operations.clear();
    jobs.clear();
    failure.reset();
  }
};

Group& group() {
  thread_local Group instance;
  return instance;
}

void checkMessagesToOneself(const Comm& comm, const std::vector<Operation>& messages) {
  std::vector<const Operation*> sends, recvs;
  for (const Operation& message : messages) {
    if (message.root == comm.rank) (message.call == Call::Send ? sends : recvs).push_back(&message);
  }
  if (sends.size() != recvs.size()) {
    fail(
        ncclInvalidUsage,
        "rank %d called Send to itself %zu times but Recv from itself %zu times in one group: both must be in the same "
        "group",
        comm.rank, sends.size(), recvs.size());
  }
  for (size_t i = 0; i < sends.size(); i++) {
    if (sends[i]->count == recvs[i]->count && sends[i]->type == recvs[i]->type) continue;
    fail(
        ncclInvalidUsage, "rank %d called %s while rank %d called %s", comm.rank, describe(sends[i]->frame()).c_str(),
        comm.rank, describe(recvs[i]->frame()).c_str());
  }
}

void runOperations(std::vector<QueuedOperation> operations) {
  /** The operations of one communicator in the order in which they run. */
  struct Sorted {
    std::shared_ptr<Comm> comm;
    std::vector<Fault> faults;
    std::vector<Operation> registrations, oneSided, collectives, messages;
  };
  std::vector<Sorted> sorted;
  for (QueuedOperation& queued : operations) {
    size_t at = 0;
    while (at < sorted.size() && sorted[at].comm != queued.comm) at++;
    if (at == sorted.size()) {
      sorted.emplace_back();
      sorted.back().comm = queued.comm;
    }
    for (Fault& fault : queued.operation.faults) sorted[at].faults.push_back(std::move(fault));
    Call call = queued.operation.call;
    std::vector<Operation>& kind = call == Call::CommWindowRegister ? sorted[at].registrations
                                   : isOneSided(call)               ? sorted[at].oneSided
                                   : isPointToPoint(call)           ? sorted[at].messages
                                                                    : sorted[at].collectives;
    kind.push_back(std::move(queued.operation));
  }
  std::vector<Work> work;
  for (Sorted& one : sorted) {
    Comm& comm = *one.comm;
    work.push_back({one.comm, {}, std::move(one.faults)});
    std::vector<std::unique_ptr<Task>>& tasks = work.back().tasks;
    for (Operation& operation : one.registrations) tasks.push_back(makeRegistration(comm, std::move(operation)));
    if (!one.oneSided.empty()) tasks.push_back(makeOneSided(comm, std::move(one.oneSided)));
    for (Operation& operation : one.collectives) tasks.push_back(makeCollective(comm, std::move(operation)));
    if (one.messages.empty()) continue;
    checkMessagesToOneself(comm, one.messages);
    tasks.push_back(makePointToPoint(comm, std::move(one.messages)));
  }
  runWork(std::move(work));
}

/** What NCCL4J_HOST_FAULT has in store for the making of a communicator. */
void applyFaults(Comm& comm) {
  if (!comm.faults) return;
  std::string what = format("the init of rank %d", comm.rank);
  for (const Fault& fault : comm.faults->atCreation()) {
    double until = fault.kind == FaultKind::Hang ? HUGE_VAL : now() + fault.seconds;
    while (now() < until && !comm.aborted) {
      pollfd wake{comm.wake.get(), POLLIN, 0};
      poll(&wake, 1, static_cast<int>(std::min(until - now(), 1000.0) * 1000) + 1);
    }
    if (comm.aborted) fail(ncclInternalError, "%s was aborted by ncclCommAbort", what.c_str());
    strike(fault, what);
  }
}

/** Runs one job to its end; throws its failure. */
void runJob(InitJob& job) {
  try {
    if (job.comm->aborted) fail(ncclInternalError, "the init of a communicator was aborted by ncclCommAbort");
    applyFaults(*job.comm);
    job.connect(*job.comm);
  } catch (const Failure& failure) {
    job.comm->breakDown(failure.code(), failure.text());
    throw;
  } catch (const std::exception& other) {
    job.comm->breakDown(ncclSystemError, other.what());
    throw Failure(ncclSystemError, other.what());
  }
}

/** Goes on in a thread of the new communicator; its state is what ncclCommGetAsyncError tells. */
void startInBackground(std::vector<InitJob> jobs) {
  SignalsBlocked blocked;
  std::shared_ptr<Comm> owner = jobs.front().comm;
  auto body = [jobs = std::move(jobs)]() mutable {
    for (InitJob& job : jobs) {
      try {
        std::lock_guard<std::mutex> lock(job.comm->operation);
        runJob(job);
      } catch (const Failure& failure) {
        recordError(failure.text());
      }
      job.comm->initializing = false;
      if (job.parent) job.parent->pendingSplits--;
    }
    // Give up the references here, not in the destruction of the thread object.
    jobs.clear();
  };
  owner->initThread = std::thread(std::move(body));
}

/** The jobs of one group: those that work on the same parent keep their order, all others run side by side. */
ncclResult_t runJobs(std::vector<InitJob> jobs) {
  std::vector<std::vector<InitJob>> chains;
  std::vector<std::vector<InitJob>> background;
  bool inProgress = false;
  for (InitJob& job : jobs) {
    std::vector<std::vector<InitJob>>& kind = job.comm->blocking ? chains : background;
    auto sameParent = [&](const std::vector<InitJob>& chain) {
      return job.parent && chain.front().parent == job.parent;
    };
    auto chain = std::find_if(kind.begin(), kind.end(), sameParent);
    if (chain == kind.end()) chain = kind.emplace(kind.end());
    chain->push_back(std::move(job));
  }
  for (auto& chain : background) {
    inProgress = true;
    startInBackground(std::move(chain));
  }

  std::vector<std::unique_ptr<Failure>> failures(chains.size());
  auto runChain = [&](size_t at) {
    try {
      for (InitJob& job : chains[at]) runJob(job);
    } catch (const Failure& failure) {
      failures[at] = std::make_unique<Failure>(failure);
    }
  };
  std::vector<std::thread> threads;
  std::unique_ptr<Failure> first;
  try {
    SignalsBlocked blocked;
    for (size_t at = 1; at < chains.size(); at++) threads.emplace_back(runChain, at);
  } catch (const std::exception& error) {
    first = std::make_unique<Failure>(ncclSystemError, format("cannot start a thread: %s", error.what()));
    for (auto& chain : chains) {
      for (InitJob& job : chain) job.comm->requestAbort();
    }
  }
  if (!chains.empty()) runChain(0);
  for (std::thread& thread : threads) thread.join();
  for (auto& failure : failures) {
    if (!first && failure) first = std::move(failure);
  }
  for (auto& chain : chains) {
    for (InitJob& job : chain) {
      job.comm->initializing = false;
      if (first) {
        // All or nothing: what did come about is dropped with the group.
        std::lock_guard<std::mutex> lock(job.comm->operation);
        job.comm->leave(ControlKind::Abort);
        if (job.out != nullptr) *job.out = nullptr;
      } else if (job.out != nullptr) {
        // A rank that a split left out has no communicator.
        if (job.comm->ranks > 0) registerComm(job.comm);
        *job.out = job.comm->ranks > 0 ? job.comm->handle() : nullptr;
      }
    }
  }
  if (first) throw Failure(*first);
  return inProgress ? ncclInProgress : ncclSuccess;
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
    // Never started: a handle that was given out early tells so.
    job.comm->setError(ncclInvalidUsage, "the group that should have made this communicator was dropped");
    job.comm->initializing = false;
    if (!job.comm->blocking && job.parent) job.parent->pendingSplits--;
  }
  if (closed.failure) throw Failure(*closed.failure);
  if (simulated != nullptr) {
    // A rough model of this engine: a fixed cost for each call, and the copies at 2 GB/s.
    double microseconds = 0;
    for (const QueuedOperation& queued : closed.operations) {
      double bytes = static_cast<double>(queued.operation.bytes());
      microseconds += 50 + bytes * queued.comm->ranks / 2e3;
    }
    simulated->estimatedTime = static_cast<float>(microseconds);
    return ncclSuccess;
  }
  ncclResult_t result = closed.jobs.empty() ? ncclSuccess : runJobs(std::move(closed.jobs));
  if (!closed.operations.empty()) runOperations(std::move(closed.operations));
  forgetThreadError();
  return result;
}

}  // namespace

bool insideGroup() { return group().depth > 0; }

void noteGroupFailure(const Failure& failure) {
  Group& mine = group();
  if (mine.depth > 0 && !mine.failure) mine.failure = std::make_unique<Failure>(failure);
}

void submit(const std::shared_ptr<Comm>& comm, Operation operation) {
  if (comm->faults) operation.faults = comm->faults->at(operation.call);
  if (insideGroup()) {
    group().operations.push_back({comm, std::move(operation)});
    return;
  }
  std::vector<QueuedOperation> single;
  single.push_back({comm, std::move(operation)});
  runOperations(std::move(single));
  forgetThreadError();
}

ncclResult_t submit(std::vector<InitJob> jobs) {
  for (InitJob& job : jobs) {
    job.comm->initializing = true;
    if (job.comm->blocking) continue;
    // A non-blocking caller gets the handle at once and polls it.
    if (job.parent) job.parent->pendingSplits++;
    registerComm(job.comm);
    *job.out = job.comm->handle();
  }
  if (!insideGroup()) return runJobs(std::move(jobs));
  bool background = false;
  for (InitJob& job : jobs) {
    background |= !job.comm->blocking;
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

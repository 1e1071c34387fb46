// jobs.cpp: creates communicators in this thread or others, since each creation waits for other ranks.

#include "schedule/jobs.h"

#include <math.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>

#include "base/thread.h"

namespace host {
namespace {

/** Waits until a fault is due, with the descriptor `also` besides that of the communicator; `check` throws if the wait is over. */
template <class Check>
void awaitFault(const Fault& fault, const Comm& comm, int also, double deadline, Check&& check) {
  double until = fault.kind == FaultKind::Hang ? HUGE_VAL : now() + fault.seconds;
  while (now() < until) {
    check();
    pollfd wakes[] = {{comm.wake.get(), POLLIN, 0}, {also, POLLIN, 0}};
    double left = std::min({until, deadline, now() + 1000}) - now();
    poll(wakes, 2, static_cast<int>(std::max(left, 0.0) * 1000) + 1);
  }
  check();
}

/** Applies the faults of NCCL4J_HOST_FAULT for the creation of the communicator. */
void applyFaults(Comm& comm) {
  if (!comm.faults) return;
  std::string what = format("the init of rank %d", comm.rank);
  for (const Fault& fault : comm.faults->atCreation()) {
    awaitFault(fault, comm, -1, HUGE_VAL, [&] {
      if (comm.lifecycle.is(State::Aborted)) fail(ncclInternalError, "%s was aborted by ncclCommAbort", what.c_str());
    });
    injectFault(fault, what);
  }
}

/** Applies those of the parent for the call that makes this communicator. */
void applyFaultsOfParent(const InitJob& job) {
  if (job.faults.empty()) return;
  Comm& parent = *job.parent;
  std::lock_guard<Baton> lock(parent.operation);
  double started = now();
  double deadline = parent.operationTimeout > 0 ? started + parent.operationTimeout : HUGE_VAL;
  auto isEnded = [&] {
    return parent.lifecycle.is(State::Aborted) || job.comm->lifecycle.is(State::Aborted) || parent.interrupts > 0;
  };
  try {
    for (const Fault& fault : job.faults) {
      awaitFault(fault, *job.comm, parent.wake.get(), deadline, [&] {
        if (isEnded()) {
          fail(ncclInternalError, "%s of rank %d was ended by an abort or revoke", fault.call.c_str(), parent.rank);
        }
        if (now() < deadline) return;
        fail(
            ncclTimeout, "rank %d waited %.1f s in %s for the end of a fault", parent.rank, now() - started,
            fault.call.c_str());
      });
      if (fault.kind == FaultKind::Drop) parent.closeSockets();
      injectFault(fault, fault.call);
    }
  } catch (const Failure& failure) {
    if (parent.lifecycle.is(State::Aborted)) {
      parent.lifecycle.setError(failure);
    } else {
      parent.breakDown(failure, isEnded() ? ncclRemoteError : failure.code());
    }
    throw;
  }
}

/** Runs one job to its end; throws its failure. */
void runJob(InitJob& job) {
  try {
    if (job.comm->lifecycle.is(State::Aborted)) fail(ncclInternalError, "the init of a communicator was aborted by ncclCommAbort");
    applyFaults(*job.comm);
    applyFaultsOfParent(job);
    job.connect(*job.comm);
    job.comm->profiler = Profiler::open(*job.comm);
  } catch (const std::exception&) {
    Failure failure = failureInFlight();
    job.comm->breakDown(failure);
    throw failure;
  }
}

void giveHandle(InitJob& job) {
  if (job.hasHandle) registerComm(job.comm);
  *job.out = job.hasHandle ? job.comm->handle() : nullptr;
}

/** A job, and its item: jobs with the same parent follow each other, and the earlier operations of the parent. */
class Creation {
 public:
  /**
   * Takes the position of the job: after `before`, the last job in the sequence of its parent. If that fails, run() has nothing to
   * do.
   */
  Creation(InitJob job, const StreamRef& sequence, std::shared_ptr<const Creation> before) noexcept
      : job_(std::move(job)), before_(std::move(before)) {
    if (!job_.parent) return;
    users()++;
    try {
      std::vector<CommRef> comms{job_.comm};
      if (job_.ordered) comms.push_back(job_.parent);
      item_ = enqueue(sequence, comms, RunBy::Caller, [this](double) {
        create();
        return true;
      });
    } catch (const std::exception&) {
      failWith(failureInFlight());
      job_.comm->lifecycle.setError(*failure_);
    }
  }
  Creation(const Creation&) = delete;

  const std::optional<Failure>& failure() const { return failure_; }

  /** Waits until the job can run, or is cancelled, and runs it. */
  void run() noexcept {
    if (failed_) return;
    if (item_) {
      runHere(item_);
    } else {
      create();
    }
  }

  /**
   * Continues in a thread, which the end of the communicator joins; ncclCommGetAsyncError reports the state of the
   * communicator.
   */
  static void runInBackground(const std::shared_ptr<Creation>& creation) {
    CommRef comm = creation->job_.comm;
    try {
      std::lock_guard<std::mutex> lock(comm->initThreadMutex);
      comm->initThread = startThread("the thread that makes a communicator", [held = creation]() mutable {
        held->run();
        held->finish(std::nullopt);
        // Released here, not in the destructor of the thread object.
        held.reset();
      });
    } catch (const std::exception&) {
      creation->job_.comm->lifecycle.setError(failureInFlight());
      creation->abort();
      creation->run();
      creation->finish(std::nullopt);
    }
  }

  void abort() { job_.comm->requestAbort(); }

  /** Stores the handle of a waiting caller. */
  void giveHandle() { host::giveHandle(job_); }

  /** If anything in the group failed, discards the communicator. */
  void finish(const std::optional<Failure>& failure) noexcept {
    job_.comm->lifecycle.created();
    if (job_.parent) users()--;
    if (job_.background || !failure) return;
    unregisterComm(*job_.comm);
    std::lock_guard<Baton> lock(job_.comm->operation);
    job_.comm->leave(ControlKind::Abort);
    *job_.out = nullptr;
  }

 private:
  std::atomic<int>& users() { return job_.background ? job_.parent->pendingSplits : job_.parent->callers; }

  void create() {
    // A caller that waits gets the first failure of its jobs, a polling one that of each communicator.
    if (!job_.background && job_.parent && before_ && before_->failed_) {
      failed_ = true;
      return;
    }
    try {
      std::lock_guard<Baton> lock(job_.comm->operation);
      runJob(job_);
    } catch (const Failure& failure) {
      failWith(failure);
    }
  }

  void failWith(const Failure& failure) {
    recordError(failure);
    failure_ = failure;
    failed_ = true;
  }

  InitJob job_;
  const std::shared_ptr<const Creation> before_;
  std::atomic<bool> failed_{false};  // or skipped
  std::optional<Failure> failure_;
  ItemRef item_;
};

}  // namespace

void announce(InitJob& job) {
  if (job.background) giveHandle(job);
}

void drop(InitJob& job) {
  // Reported through a handle that was stored early.
  job.comm->lifecycle.setError(ncclInvalidUsage, "the group that should have made this communicator was dropped");
  job.comm->lifecycle.created();
}

ncclResult_t runJobs(std::vector<InitJob> jobs) {
  // By parent.
  struct Sequence {
    StreamRef items = std::make_shared<Stream>(0);
    std::shared_ptr<const Creation> last;
  };
  std::map<CommRef, Sequence> sequences;
  std::vector<std::shared_ptr<Creation>> waited, polled;
  std::vector<std::thread> threads;
  std::optional<Failure> first;
  // All jobs take their positions before the first one runs.
  size_t placed = 0;
  try {
    waited.reserve(jobs.size());
    polled.reserve(jobs.size());
    for (; placed < jobs.size(); placed++) {
      InitJob& job = jobs[placed];
      auto& list = job.background ? polled : waited;
      Sequence& sequence = sequences[job.parent];
      list.push_back(std::make_shared<Creation>(std::move(job), sequence.items, sequence.last));
      sequence.last = list.back();
    }
  } catch (const std::exception&) {
    first = failureInFlight();
    for (; placed < jobs.size(); placed++) {
      jobs[placed].comm->lifecycle.setError(*first);
      jobs[placed].comm->lifecycle.created();
    }
    for (const auto* list : {&waited, &polled}) {
      for (const auto& creation : *list) creation->abort();
    }
  }
  for (const auto& creation : polled) Creation::runInBackground(creation);

  size_t started = std::min<size_t>(waited.size(), 1);
  try {
    threads.reserve(waited.size());
    for (; started < waited.size(); started++) {
      threads.push_back(
          startThread("a thread that makes a communicator", [creation = waited[started]] { creation->run(); }));
    }
  } catch (const std::exception&) {
    if (!first) first = failureInFlight();
    for (const auto& creation : waited) creation->abort();
    for (size_t at = started; at < waited.size(); at++) waited[at]->run();
  }
  if (!waited.empty()) waited.front()->run();
  for (std::thread& thread : threads) thread.join();
  for (const auto& creation : waited) {
    if (!first && creation->failure()) first = creation->failure();
  }
  try {
    for (size_t at = 0; at < waited.size() && !first; at++) waited[at]->giveHandle();
  } catch (const std::exception&) {
    first = failureInFlight();
  }
  for (const auto& creation : waited) creation->finish(first);
  if (first) throw Failure(*first);
  return polled.empty() ? ncclSuccess : ncclInProgress;
}

}  // namespace host

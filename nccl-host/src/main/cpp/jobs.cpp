// jobs.cpp: creates communicators in this thread or others, since each creation waits for other ranks.

#include "jobs.h"

#include <math.h>
#include <poll.h>

#include <algorithm>
#include <system_error>

namespace host {
namespace {

/** Applies the faults of NCCL4J_HOST_FAULT for the creation of the communicator. */
void applyFaults(Comm& comm) {
  if (!comm.faults) return;
  std::string what = format("the init of rank %d", comm.rank);
  for (const Fault& fault : comm.faults->atCreation()) {
    double until = fault.kind == FaultKind::Hang ? HUGE_VAL : now() + fault.seconds;
    while (now() < until && !comm.lifecycle.is(State::Aborted)) {
      pollfd wake{comm.wake.get(), POLLIN, 0};
      poll(&wake, 1, static_cast<int>(std::min(until - now(), 1000.0) * 1000) + 1);
    }
    if (comm.lifecycle.is(State::Aborted)) fail(ncclInternalError, "%s was aborted by ncclCommAbort", what.c_str());
    injectFault(fault, what);
  }
}

/** Runs one job to its end; throws its failure. */
void runJob(InitJob& job) {
  try {
    if (job.comm->lifecycle.is(State::Aborted)) fail(ncclInternalError, "the init of a communicator was aborted by ncclCommAbort");
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

void giveHandle(InitJob& job) {
  if (job.hasHandle) registerComm(job.comm);
  *job.out = job.hasHandle ? job.comm->handle() : nullptr;
}

/** Jobs that run in sequence, after the earlier operations of their parent. */
class Chain {
 public:
  explicit Chain(InitJob job) { add(std::move(job)); }

  bool takes(const InitJob& job) const { return job.parent && jobs_.front().parent == job.parent; }

  void add(InitJob job) {
    inBackground_ &= job.background;
    jobs_.push_back(std::move(job));
  }

  bool inBackground() const { return inBackground_; }
  const std::unique_ptr<Failure>& failure() const { return failure_; }

  /** Takes the chain's position in the order of the parent. The caller must then run the chain. */
  void take() {
    for (InitJob& job : jobs_) {
      if (!job.parent) continue;
      (job.background ? job.parent->pendingSplits : job.parent->callers)++;
    }
    if (!jobs_.front().parent || !std::all_of(jobs_.begin(), jobs_.end(), [](const auto& job) { return job.ordered; })) {
      return;
    }
    std::vector<CommRef> comms{jobs_.front().parent};
    for (const InitJob& job : jobs_) comms.push_back(job.comm);
    item_ = enqueue({}, comms, RunBy::Caller, [this]() -> std::vector<CommRef> {
      runAll();
      return {};
    });
  }

  void run() {
    if (item_) {
      runHere(item_);
    } else {
      runAll();
    }
  }

  /**
   * Continues in a thread; ncclCommGetAsyncError reports the states of the communicators. Ending the communicator of a
   * single job joins the thread. Ending one of several must not wait for the others.
   */
  static void runInBackground(const std::shared_ptr<Chain>& chain) {
    SignalsBlocked blocked;
    CommRef owner = chain->jobs_.front().comm;
    try {
      std::lock_guard<std::mutex> lock(owner->initThreadMutex);
      bool isOnlyOne = chain->jobs_.size() == 1;
      std::thread thread([held = chain]() mutable {
        held->run();
        held->finish(nullptr);
        // Released here, not in the destructor of the thread object.
        held.reset();
      });
      if (isOnlyOne) {
        owner->initThread = std::move(thread);
      } else {
        thread.detach();
      }
    } catch (const std::system_error& error) {
      chain->abort();
      chain->run();
      chain->finish(nullptr);
    }
  }

  void abort() {
    for (InitJob& job : jobs_) job.comm->requestAbort();
  }

  /** Stores the handles; if anything in the group failed, discards all communicators of the group instead. */
  void finish(const Failure* failure) {
    for (InitJob& job : jobs_) {
      job.comm->lifecycle.created();
      if (job.parent) (job.background ? job.parent->pendingSplits : job.parent->callers)--;
      if (job.background) continue;
      if (failure != nullptr) {
        std::lock_guard<Baton> lock(job.comm->operation);
        job.comm->leave(ControlKind::Abort);
        *job.out = nullptr;
      } else {
        giveHandle(job);
      }
    }
    jobs_.clear();
  }

 private:
  void runAll() {
    for (InitJob& job : jobs_) {
      try {
        std::lock_guard<Baton> lock(job.comm->operation);
        runJob(job);
      } catch (const Failure& failure) {
        recordError(failure.text());
        if (!failure_) failure_ = std::make_unique<Failure>(failure);
        // A polling caller gets the failure of its own communicator only.
        if (!job.background) return;
      }
    }
  }

  std::vector<InitJob> jobs_;
  bool inBackground_ = true;
  std::unique_ptr<Failure> failure_;
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
  std::vector<std::shared_ptr<Chain>> chains;
  for (InitJob& job : jobs) {
    auto chain = std::find_if(chains.begin(), chains.end(), [&](const auto& other) { return other->takes(job); });
    if (chain == chains.end()) {
      chains.push_back(std::make_shared<Chain>(std::move(job)));
    } else {
      (*chain)->add(std::move(job));
    }
  }
  for (const auto& chain : chains) chain->take();
  auto foreground = std::stable_partition(
      chains.begin(), chains.end(), [](const std::shared_ptr<Chain>& chain) { return chain->inBackground(); });
  bool inProgress = foreground != chains.begin();
  std::for_each(chains.begin(), foreground, Chain::runInBackground);
  chains.erase(chains.begin(), foreground);

  std::vector<std::thread> threads;
  std::unique_ptr<Failure> first;
  size_t started = std::min<size_t>(chains.size(), 1);
  try {
    SignalsBlocked blocked;
    for (; started < chains.size(); started++) {
      threads.emplace_back([chain = chains[started]] { chain->run(); });
    }
  } catch (const std::system_error& error) {
    first = std::make_unique<Failure>(ncclSystemError, format("cannot start a thread: %s", error.what()));
    for (const auto& chain : chains) chain->abort();
    for (size_t at = started; at < chains.size(); at++) chains[at]->run();
  }
  if (!chains.empty()) chains.front()->run();
  for (std::thread& thread : threads) thread.join();
  for (const auto& chain : chains) {
    if (!first && chain->failure()) first = std::make_unique<Failure>(*chain->failure());
  }
  for (const auto& chain : chains) chain->finish(first.get());
  if (first) throw Failure(*first);
  return inProgress ? ncclInProgress : ncclSuccess;
}

}  // namespace host

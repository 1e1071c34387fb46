// progress.cpp: the loop that moves bytes for all communicators of a thread's group.
//
// The failure of a peer (it died, aborted, or failed) does not stop a task at once: the task first receives the data
// that this rank had sent, and fails only when nothing moves any more. An operation that a rank completed before it
// left therefore completes at the other ranks in it, too.

#include <math.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include <algorithm>
#include <new>
#include <optional>

#include "base/processors.h"
#include "protocol/transfer.h"

namespace host {
namespace {

/** Seconds by which elements may arrive after the news that their rank on another host has failed or left. */
constexpr double kTransitSeconds = 0.5;

/** Seconds from the first sleep to the first comparison of calls that this rank does not await, and the maximum between two. */
constexpr double kFirstComparison = 0.01;
constexpr double kComparisonPeriod = 1;

class Runner {
 public:
  explicit Runner(Work& work) : work_(&work), lock_(std::move(work.begun.lock)), task_(work.borrowed != nullptr ? work.borrowed : work.task.get()), transfer_(*work.comm) {
    if (lock_.owns_lock()) {
      setTimes();
    } else {
      lock_ = std::unique_lock<Baton>(work.comm->operation, std::defer_lock);
    }
  }

  /** Waits until no other operation communicates on the communicator. */
  void lock() {
    if (lock_.owns_lock()) return;
    lock_.lock();
    setTimes();
  }
  bool tryLock() {
    if (lock_.owns_lock()) return true;
    if (!lock_.try_lock()) return false;
    setTimes();
    return true;
  }

  /** The work was moved to this place. */
  void follow(Work& work) { work_ = &work; }

  bool finished() const { return finished_; }
  const Failure* failure() const { return failure_ ? &*failure_ : nullptr; }

  /** Moves all bytes that can be moved now; true if any did. */
  bool advance() {
    return attempt([&] {
      throwIfEnded();
      if (!begun_ && !begin()) return false;
      bool moved = false;
      while (task_ != nullptr) {
        moved |= transfer_.move();
        if (!task().complete() || !transfer_.allSent()) return moved;
        moved = true;
        task().finish();
        for (ProfiledOperation& one : task().profiled) comm().profiler->kernelStops(one);
        task_ = next_ < work_->tasks.size() ? work_->tasks[next_++].get() : nullptr;
        if (task_ != nullptr) transfer_.start(task());
      }
      // A later failure of a peer concerns the next work.
      release();
      return true;
    });
  }

  /** Call when nothing moved: fails if nothing more can arrive. Returns true if the work ended. */
  bool failIfStuck() {
    return attempt([&] {
      if (!begun_) {
        if (now() < deadline()) return false;
        fail(
            ncclTimeout, "rank %d waited %.1f s in %s for the end of a fault", comm().rank, now() - started_,
            task().description().c_str());
      }
      if (comm().peerFailure() != nullptr && settled()) {
        // Decisive data may have arrived since the last call.
        if (task().advanceOwn()) return true;
        throw Failure(*comm().peerFailure());
      }
      for (Peer& peer : comm().peers) {
        if (!peer.control.announcedClose || !drained(peer) || isInTransit(peer) || !(task().dependsOn(peer).needed || !peer.out.empty())) continue;
        // Calls of a rank after its reported failure are no misuse.
        if (comm().peerFailure() != nullptr) break;
        Comm::failAsClosed(peer, format(", but rank %d called %s", comm().rank, task().description().c_str()));
      }
      if (now() >= deadline()) {
        std::vector<int> missing, absent;
        transfer_.takeUnawaited();
        for (Peer& peer : comm().peers) {
          Dependence dependence = task().dependsOn(peer);
          if (peer.rank == comm().rank || (!dependence.awaited && peer.out.empty())) continue;
          missing.push_back(peer.rank);
          if (!dependence.arrived) absent.push_back(peer.rank);
        }
        if (!absent.empty()) missing = absent;
        fail(
            ncclTimeout, "rank %d waited %.1f s in %s for %s", comm().rank, now() - started_, task().description().c_str(),
            rankList(missing).c_str());
      }
      if (now() >= comm().matcher.reportDeadline()) comm().matcher.failAhead(task().description());
      if (now() >= nextComparison_) compareUnawaited();
      return false;
    });
  }

  /** True if the work waits for nothing but data streams. */
  bool canPoll() const { return begun_ && task().waitsFor() == Source::DataStreams; }
  /** True if polling must yield the processor: to other ranks, or to the system, which passes the bytes of a socket on. */
  bool mustYield() const { return comm().crowded || hasSockets(); }
  bool hasSockets() const {
    return std::any_of(comm().peers.begin(), comm().peers.end(), [](const Peer& peer) {
             return peer.data->valid() && !peer.data->has(Capability::Polling);
           });
  }
  size_t peers() const { return comm().peers.size(); }
  PollingTime& pollingTime() const { return comm().pollingTime; }

  /** Takes the doorbells that ended a wait. */
  void disarm() {
    if (!begun_) return;
    attempt([&] {
      for (Peer& peer : comm().peers) peer.data->disarm();
      return true;
    });
  }

  /** Adds the descriptors to poll, and returns the time of the next advance without an arrival. */
  double collectDescriptors(std::vector<pollfd>& polled) {
    firstPolled_ = polled.size();
    if (!begun_) {
      polled.push_back({comm().wake.get(), POLLIN, 0});
      return std::min(notBefore_, deadline());
    }
    double wakeTime = deadline();
    // Control streams come first, in the order of the ranks: readControl relies on this order.
    for (Peer& peer : comm().peers) {
      if (peer.control.isOpen()) polled.push_back({peer.control.fd.get(), POLLIN, 0});
    }
    polled.push_back({comm().wake.get(), POLLIN, 0});
    if (work_->child != nullptr) polled.push_back({work_->child->wake.get(), POLLIN, 0});
    for (Peer& peer : comm().peers) {
      if (!peer.data->valid()) continue;
      Channel::Wait wait;
      if (!peer.dataEnded) {
        Wanted wanted = transfer_.wants(peer);
        wait.frame = wanted.frame;
        wait.bytes = wanted.least;
      }
      if (!peer.out.empty()) {
        const Outgoing& first = peer.out.front();
        if (first.data == nullptr) {
          wait.outgoing = &first.frame;
        } else {
          (first.offered ? wait.answer : wait.room) = true;
        }
      }
      wait.credit = peer.credits.areAwaited();
      if (peer.data->arm(wait)) wakeTime = 0;
      wakeTime = std::min(wakeTime, peer.data->nextLook(wait));
      short events = peer.data->events(wait);
      if (events != 0) polled.push_back({peer.data->descriptor(), events, 0});
    }
    wakeTime = std::min({wakeTime, nextComparison_, comm().matcher.reportDeadline()});
    if (transitEnd_ > now()) wakeTime = std::min(wakeTime, transitEnd_);
    // After the doorbells are armed: later data rings one.
    return std::min(wakeTime, task().addDescriptors(polled));
  }

  void readControl(const std::vector<pollfd>& polled) {
    if (!begun_) return;
    attempt([&] {
      size_t at = firstPolled_;
      for (Peer& peer : comm().peers) {
        if (!peer.control.isOpen()) continue;
        if (polled[at++].revents != 0) comm().readControl(peer, ("during " + what()).c_str());
      }
      return true;
    });
  }

  void stop(const Failure& failure) noexcept {
    failure_ = failure;
    for (Peer& peer : comm().peers) peer.data->withdraw();
    if (comm().lifecycle.is(State::Aborted)) {
      comm().lifecycle.setError(failure);
    } else if (comm().interrupts > 0 || childAborted()) {
      comm().breakDown(failure, ncclRemoteError);
    } else {
      comm().breakDown(failure);
    }
    release();
  }

 private:
  template <class Body>
  bool attempt(Body&& body) {
    try {
      return body();
    } catch (const std::bad_alloc&) {
      stop(outOfMemory());
    } catch (const std::exception&) {
      stop(failureInFlight());
    }
    return true;
  }

  /** Names the operation if there is memory for that. */
  Failure outOfMemory() const noexcept {
    try {
      return Failure(ncclSystemError, "out of host memory in " + what());
    } catch (const std::bad_alloc&) {
      return failureInFlight();
    }
  }

  void throwIfEnded() const {
    if (comm().lifecycle.is(State::Aborted)) {
      fail(ncclInternalError, "%s was aborted: ncclCommAbort was called on rank %d", what().c_str(), comm().rank);
    }
    if (childAborted()) {
      fail(
          ncclInternalError, "%s was aborted: ncclCommAbort was called on the communicator that rank %d was making",
          what().c_str(), comm().rank);
    }
    if (comm().interrupts > 0) failAsInterrupted();
  }

  [[noreturn]] void failAsInterrupted() const {
    fail(ncclInvalidUsage, "%s was ended at rank %d by %s", what().c_str(), comm().rank, comm().interruptReason.load());
  }

  /** Starts the first task; false before the end of its faults. */
  bool begin() {
    if (!work_->faults.empty() && now() < notBefore_) return false;
    begun_ = true;
    for (const Fault& fault : work_->faults) {
      if (fault.kind == FaultKind::Drop) comm().closeSockets();
      injectFault(fault, what());
    }
    if (comm().lifecycle.is(State::Revoked)) {
      fail(ncclInvalidUsage, "%s : rank %d has revoked this communicator", what().c_str(), comm().rank);
    }
    comm().lifecycle.throwIfFailed();
    if (work_->epoch != comm().epoch) failAsInterrupted();
    // A rank that failed or left earlier may have sent its part of this call before. The call fails nevertheless,
    // or some ranks would complete a call that failed at others.
    comm().readNewControl([&] { return "during " + what(); });
    const Failure* failure = comm().peerFailure();
    if (failure != nullptr && !task().completesWithoutPeers()) throw Failure(*failure);
    transfer_.start(task());
    for (Peer& peer : comm().peers) {
      if (work_->begun.hasArrived(peer)) transfer_.take(peer);
    }
    for (Peer& peer : comm().peers) transfer_.takeWaiting(peer);
    return true;
  }

  void setTimes() {
    // Only limits and faults need the time.
    if (work_->comm->operationTimeout == 0 && work_->faults.empty()) return;
    started_ = now();
    for (const Fault& fault : work_->faults) {
      notBefore_ += fault.kind == FaultKind::Hang ? HUGE_VAL : fault.seconds;
    }
    notBefore_ += started_;
  }

  /** Ranks whose calls differ may all wait for others: compares also the calls that they do not await. */
  void compareUnawaited() {
    bool first = nextComparison_ == 0;
    comparisonPeriod_ = first ? kFirstComparison : std::min(2 * comparisonPeriod_, kComparisonPeriod);
    nextComparison_ = now() + comparisonPeriod_;
    if (first) return;
    task().announceWait();
    transfer_.takeUnawaited();
  }

  /** Releases the communicator while the rest of the group continues: an abort may be waiting. */
  void release() {
    finished_ = true;
    lock_.unlock();
  }

  double deadline() const {
    return comm().operationTimeout > 0 ? started_ + comm().operationTimeout : HUGE_VAL;
  }

  /** True if nothing of a peer that has left is in transit. */
  bool drained(const Peer& peer) const {
    switch (task().waitsFor()) {
      case Source::DataStreams: return true;
      case Source::Lane: return peer.puts.broken;
      case Source::Inbox: return comm().windows.inbox()->ended(peer.rank);
    }
    return true;
  }

  /**
   * True if elements that the task needs may follow the failure or the end that a rank on another host has reported: they arrive by
   * another connection. It ends when that connection does, or after a while.
   */
  bool isInTransit(Peer& peer) {
    bool reported = peer.control.announcedFault || peer.control.isOver();
    if (!peer.onOtherHost || !reported || peer.dataEnded || peer.sendBroken || !task().dependsOn(peer).needed) return false;
    if (transitEnd_ == 0) transitEnd_ = now() + kTransitSeconds;
    return now() < transitEnd_;
  }

  /** True if all that the peers sent before a failure has arrived: signals of a dead rank count. */
  bool settled() {
    if (std::any_of(comm().peers.begin(), comm().peers.end(), [&](Peer& peer) { return isInTransit(peer); })) return false;
    if (task().waitsFor() != Source::Inbox) return true;
    return std::all_of(comm().peers.begin(), comm().peers.end(), [&](const Peer& peer) {
      return !peer.control.ended || drained(peer);
    });
  }

  bool childAborted() const { return work_->child != nullptr && work_->child->lifecycle.is(State::Aborted); }
  Comm& comm() const { return *work_->comm; }
  Task& task() const { return *task_; }
  std::string what() const { return task_ != nullptr ? task().name() : "an operation"; }

  Work* work_;
  std::unique_lock<Baton> lock_;
  double started_ = 0;
  double notBefore_ = 0;
  Task* task_;
  Transfer transfer_;
  size_t next_ = 0;  // in the tasks after the first one
  size_t firstPolled_ = 0;
  bool begun_ = false;
  bool finished_ = false;
  double transitEnd_ = 0;  // 0: nothing is in transit
  double nextComparison_ = 0;
  double comparisonPeriod_ = 0;
  std::optional<Failure> failure_;
};

/** Advances runners together. */
class Loop {
 public:
  Loop(Runner* runners, size_t count) : begin_(runners), end_(runners + count) {}

  /** Advances all work until nothing moves for this many seconds, or until a time; true if all has ended. */
  bool advance(double seconds, double until = HUGE_VAL) {
    std::optional<Polling> polling;
    for (;;) {
      bool moved = false;
      bool running = false;
      for (Runner* runner = begin_; runner != end_; runner++) {
        if (runner->finished()) continue;
        moved |= runner->advance();
        running |= !runner->finished();
      }
      if (!running) return true;
      if (moved) {
        if (isPast(until)) return false;
        if (polling) polling->restart();
        continue;
      }
      bool canPoll = std::all_of(begin_, end_, [](const Runner& runner) { return runner.finished() || runner.canPoll(); });
      if (!canPoll) return false;
      if (!polling) polling.emplace(makePolling(seconds));
      if (!polling->again()) return false;
    }
  }

  void throwFirstFailure() {
    keepFirstFailure();
    if (failure_) throw Failure(*failure_);
  }

  /** Runs all work until a time; true if it has ended. */
  bool run(double until = HUGE_VAL) {
    while (!advance(pollingTime(), until)) {
      if (isPast(until)) return false;
      bool ended = endStuck();
      keepFirstFailure();
      if (!ended) sleep(until);
    }
    throwFirstFailure();
    return true;
  }

 private:
  /** Calls action with the runners that have not finished. */
  template <class Action>
  void each(Action&& action) {
    for (Runner* runner = begin_; runner != end_; runner++) {
      if (!runner->finished()) action(*runner);
    }
  }

  Polling makePolling(double seconds) const {
    bool mustYield = false;
    size_t peers = 0;
    for (Runner* runner = begin_; runner != end_; runner++) {
      mustYield |= runner->mustYield();
      peers += runner->peers();
    }
    return Polling(mustYield, peers, seconds);
  }

  double pollingTime() {
    double longest = 0;
    each([&](Runner& runner) {
      // A look at a socket is a system call, and beside other load a thread that yields runs later than one that is woken.
      longest = std::max(longest, runner.hasSockets() ? PollingTime::kLeast : runner.pollingTime().seconds());
    });
    return longest;
  }

  /** Ends the work for which nothing more can arrive; true if there was some. */
  bool endStuck() {
    bool ended = false;
    each([&](Runner& runner) { ended |= runner.failIfStuck(); });
    return ended;
  }

  static bool isPast(double time) { return time != HUGE_VAL && now() >= time; }

  /** Sleeps until something may have arrived, or until a time. */
  void sleep(double until) {
    double begun = now();
    try {
      polled_.clear();
      double wakeTime = until;
      each([&](Runner& runner) { wakeTime = std::min(wakeTime, runner.collectDescriptors(polled_)); });
      begun = now();
      double left = std::max(0.0, std::min(wakeTime - begun, 1e6));
      pollAll(polled_, wakeTime == HUGE_VAL ? -1 : left > 0 ? static_cast<int>(left * 1000) + 1 : 0);
    } catch (const std::exception&) {
      Failure failure = failureInFlight();
      each([&](Runner& runner) { runner.stop(failure); });
    }
    double slept = now() - begun;
    each([&](Runner& runner) { runner.pollingTime().slept(slept); });
    each([&](Runner& runner) { runner.readControl(polled_); });
    each([&](Runner& runner) { runner.disarm(); });
  }

  void keepFirstFailure() {
    for (Runner* runner = begin_; runner != end_; runner++) {
      if (!failure_ && runner->failure()) failure_ = *runner->failure();
    }
  }

  Runner* const begin_;
  Runner* const end_;
  std::optional<Failure> failure_;
  std::vector<pollfd> polled_;
};

/** One global lock order prevents a deadlock of two threads with the same communicators. */
void sortBySerial(std::vector<Work>& work) {
  std::sort(work.begin(), work.end(), [](const Work& a, const Work& b) { return a.comm->serial < b.comm->serial; });
}

}  // namespace

struct Progress::State {
  State(Work&& begun, Runner&& runner) {
    work.push_back(std::move(begun));
    runners.push_back(std::move(runner));
    runners.front().follow(work.front());
  }
  explicit State(std::vector<Work>&& all) : work(std::move(all)) {
    sortBySerial(work);
    runners.reserve(work.size());
    for (Work& one : work) runners.emplace_back(one);
  }
  std::vector<Work> work;
  std::vector<Runner> runners;
};

Progress::Progress(std::unique_ptr<State> state) : state_(std::move(state)) {}
Progress::Progress(std::vector<Work> work) : Progress(std::make_unique<State>(std::move(work))) {}
Progress::~Progress() = default;

std::unique_ptr<Progress> Progress::runBriefly(Work& work) {
  Runner runner(work);
  if (runner.tryLock()) {
    Loop loop(&runner, 1);
    if (loop.advance(PollingTime::kLeast)) {
      loop.throwFirstFailure();
      return nullptr;
    }
  }
  return std::unique_ptr<Progress>(new Progress(std::make_unique<State>(std::move(work), std::move(runner))));
}

bool Progress::run(double until) {
  for (Runner& runner : state_->runners) {
    if (runner.finished()) continue;
    if (until == HUGE_VAL) {
      runner.lock();
    } else if (!runner.tryLock()) {
      return false;
    }
  }
  return Loop(state_->runners.data(), state_->runners.size()).run(until);
}

void runWork(std::vector<Work> work) { Progress(std::move(work)).run(HUGE_VAL); }

void runWork(Work& work) {
  Runner runner(work);
  runner.lock();
  // Most work ends here.
  runner.advance();
  if (!runner.finished()) {
    Loop(&runner, 1).run();
  } else if (runner.failure()) {
    throw Failure(*runner.failure());
  }
}

void runTask(Comm& comm, Task& task, Begun&& begun) {
  Work work;
  work.begun = std::move(begun);
  work.comm = &comm;
  work.epoch = comm.epoch;
  work.borrowed = &task;
  runWork(work);
}

}  // namespace host

// launch.cpp: turns the operations of a group into items of streams.

#include "schedule/launch.h"

#include <math.h>
#include <string.h>

#include <algorithm>
#include <iterator>
#include <new>
#include <optional>
#include <utility>

#include "schedule/graph.h"

namespace host {
namespace {

/** Limit for the bytes of all ranks in a unit that the launching thread tries to run; about 100 us. */
constexpr size_t kShort = 2 << 20;
/** The same with more ranks than processors: the thread of the stream would take a processor from another rank. */
constexpr size_t kShortIfCrowded = 8 << 20;

void checkMessagesToOneself(const Comm& comm, const Operation* operations, size_t count) {
  auto toOneself = [&](const Operation& operation) {
    return isPointToPoint(operation.call) && operation.root == comm.rank;
  };
  if (std::none_of(operations, operations + count, toOneself)) return;
  std::vector<const Operation*> sends, recvs;
  for (const Operation* message = operations; message != operations + count; message++) {
    if (!toOneself(*message)) continue;
    (message->call == Call::Send ? sends : recvs).push_back(message);
  }
  if (sends.size() != recvs.size()) {
    fail(
        ncclInvalidUsage,
        "rank %d called Send to itself %zu times but Recv from itself %zu times in one group: both must be in the same "
        "group",
        comm.rank, sends.size(), recvs.size());
  }
  for (size_t i = 0; i < sends.size(); i++) {
    if (haveSameElements(*sends[i], *recvs[i])) continue;
    fail(
        ncclInvalidUsage, "rank %d called %s while rank %d called %s", comm.rank, describe(sends[i]->frame()).c_str(),
        comm.rank, describe(recvs[i]->frame()).c_str());
  }
}

void checkLaunchEvents(const Comm& comm, const std::vector<Operation>& operations) {
  long events = std::count_if(operations.begin(), operations.end(), [](const Operation& operation) {
    return operation.extras().launchEvent != nullptr;
  });
  if (events > 1) {
    fail(
        ncclInvalidUsage, "rank %d gave %ld collectives of one group a launchCompletionEvent, only 1 may have one",
        comm.rank, events);
  }
}

/** The kinds of operations, in the order of execution. */
enum class Kind { Registration, OneSided, Collective, Message };

Kind kindOf(const Operation& operation) {
  return operation.call == Call::CommWindowRegister ? Kind::Registration
         : isOneSided(operation.call)               ? Kind::OneSided
         : isPointToPoint(operation.call)           ? Kind::Message
                                                    : Kind::Collective;
}

/** Reports an operation to the profiler of its communicator, before it runs. */
void profileLaunch(Comm& comm, Operation& operation) {
  if (!comm.profiler) return;
  void* group = comm.profiler->beginLaunch();
  comm.profiler->launched(operation, group);
  comm.profiler->endLaunch(group);
}

/** A scalar "on the device" is read when the operation runs. */
void readScalar(Operation& operation) {
  const void* at = operation.extras().scalarAt;
  if (at != nullptr) memcpy(&operation.addExtras().scalar, at, typeSize(operation.type));
}

void addFaults(Work& work, const Operation& operation) {
  const std::vector<Fault>& faults = operation.extras().faults;
  work.faults.insert(work.faults.end(), faults.begin(), faults.end());
}

/** Moves the operations of a kind, with their faults, out of a list. */
std::vector<Operation> take(Kind kind, Operation* operations, size_t count, Work& work) {
  std::vector<Operation> taken;
  taken.reserve(count);
  for (Operation* operation = operations; operation != operations + count; operation++) {
    if (kindOf(*operation) != kind) continue;
    addFaults(work, *operation);
    taken.push_back(std::move(*operation));
  }
  return taken;
}

void addCollective(Work& work, Operation& operation) {
  ProfiledOperation profiled = operation.extras().profiled;
  addFaults(work, operation);
  work.add(makeCollective(*work.comm, std::move(operation), work.begun));
  if (profiled.operation != nullptr) work.last().profiled.push_back(profiled);
}

/** Makes tasks of operations of one communicator. */
Work workOf(Comm& comm, uint64_t epoch, Operation* operations, size_t count, Begun&& begun = {}) {
  Work work;
  work.begun = std::move(begun);
  work.comm = &comm;
  work.epoch = epoch;
  unsigned kinds = 0;
  for (Operation* operation = operations; operation != operations + count; operation++) {
    kinds |= 1u << static_cast<int>(kindOf(*operation));
    readScalar(*operation);
  }
  auto has = [&](Kind kind) { return (kinds >> static_cast<int>(kind) & 1) != 0; };
  if (has(Kind::Registration)) {
    for (Operation& registration : take(Kind::Registration, operations, count, work)) {
      work.add(makeRegistration(comm, std::move(registration)));
    }
  }
  if (has(Kind::OneSided)) work.add(makeOneSided(comm, take(Kind::OneSided, operations, count, work)));
  if (has(Kind::Collective)) {
    for (Operation* operation = operations; operation != operations + count; operation++) {
      if (kindOf(*operation) == Kind::Collective) addCollective(work, *operation);
    }
  }
  if (has(Kind::Message)) {
    std::vector<Operation> messages = take(Kind::Message, operations, count, work);
    std::vector<ProfiledOperation> profiled;
    for (const Operation& message : messages) {
      if (message.extras().profiled.operation != nullptr) profiled.push_back(message.extras().profiled);
    }
    work.add(makePointToPoint(comm, std::move(messages), work.begun.isSent()));
    work.last().profiled = std::move(profiled);
  }
  return work;
}

/** The operations of one communicator. */
struct Part {
  CommRef comm;
  uint64_t epoch = 0;
  std::vector<Operation> operations;

  Work work() { return workOf(*comm, epoch, operations.data(), operations.size()); }

  bool hangs() const {
    return std::any_of(operations.begin(), operations.end(), [](const Operation& operation) {
      return std::any_of(operation.extras().faults.begin(), operation.extras().faults.end(), [](const Fault& fault) {
        return fault.kind == FaultKind::Hang;
      });
    });
  }
};

std::vector<CommRef> commsOf(const std::vector<Part>& parts) {
  std::vector<CommRef> comms;
  comms.reserve(parts.size());
  for (const Part& part : parts) comms.push_back(part.comm);
  return comms;
}

/** Parts that share streams; they form one item. */
struct Unit {
  std::vector<Part> parts;
  std::vector<StreamRef> streams;

  bool uses(const CommRef& comm, const StreamRef& stream) const {
    return std::find(streams.begin(), streams.end(), stream) != streams.end() ||
           std::any_of(parts.begin(), parts.end(), [&](const Part& part) { return part.comm == comm; });
  }

  Part& partOf(const CommRef& comm) {
    for (Part& part : parts) {
      if (part.comm == comm) return part;
    }
    parts.emplace_back();
    parts.back().comm = comm;
    parts.back().epoch = comm->epoch;
    return parts.back();
  }

  /** Takes over the contents of another unit; the two have no communicator in common. */
  void absorb(Unit&& other) {
    std::move(other.parts.begin(), other.parts.end(), std::back_inserter(parts));
    streams.insert(streams.end(), other.streams.begin(), other.streams.end());
  }

  void add(const Target& target, Operation&& operation) {
    if (target.stream && std::find(streams.begin(), streams.end(), target.stream) == streams.end()) {
      streams.push_back(target.stream);
    }
    partOf(target.comm).operations.push_back(std::move(operation));
  }

  /** Throws if the operations do not go together. */
  void check() const {
    for (const Part& part : parts) {
      checkMessagesToOneself(*part.comm, part.operations.data(), part.operations.size());
      checkLaunchEvents(*part.comm, part.operations);
    }
  }

  /** Counts the collectives, and records the launch events of this rank's operations. */
  void recordLaunches() const {
    for (const Part& part : parts) {
      for (const Operation& collective : part.operations) {
        part.comm->ras.countLaunch(collective.call);
        cudaEvent_t event = collective.extras().launchEvent;
        if (event != nullptr) recordLaunch(event, streams, commsOf(parts));
      }
    }
  }

  /** True if the unit is complete when the call returns. */
  bool runsInCall() const {
    return hasDefault() &&
           std::any_of(parts.begin(), parts.end(), [](const Part& part) { return part.comm->blocking; });
  }

  /** True if the unit uses the default stream, or no stream. */
  bool hasDefault() const {
    return streams.empty() ||
           std::any_of(streams.begin(), streams.end(), [](const StreamRef& stream) { return stream->isDefault(); });
  }
};

std::vector<Work> workOf(std::vector<Part>& parts) {
  std::vector<Work> work;
  work.reserve(parts.size());
  for (Part& part : parts) work.push_back(part.work());
  return work;
}

/** True if the operations may begin in the call that launches them: they take little time once all ranks are there. */
bool areShort(const Comm& comm, const Operation* operations, size_t count) {
  size_t left = comm.crowded ? kShortIfCrowded : kShort;
  return std::all_of(operations, operations + count, [&](const Operation& operation) {
    // The rows of AlltoAllv are not added up here.
    if (isOneSided(operation.call) || operation.call == Call::AlltoAllv) return false;
    size_t bytes = operation.bytes() * (isPointToPoint(operation.call) ? 1 : static_cast<size_t>(comm.ranks));
    if (bytes > left) return false;
    left -= bytes;
    return true;
  });
}

/** Runs short work of a call in a created stream, whose thread continues it if other ranks come late. */
void runBriefly(DirectCall& call, const CommRef& comm, Work& work) {
  auto report = [](const CommRef& comm, auto&& body) {
    try {
      body();
      return;
    } catch (const Failure& failure) {
      recordError(failure);
    } catch (const std::exception&) {
      comm->failOperation(failureInFlight());
    }
  };
  std::shared_ptr<Progress> rest;
  report(comm, [&] { rest = Progress::runBriefly(work); });
  if (!rest) {
    comm->backOff.onTime();
    if (comm->failureStands()) call.reportFailure();
    return;
  }
  comm->backOff.late();
  try {
    call.continueInStream([comm = comm, rest, report](double until) {
      bool ended = true;
      report(comm, [&] { ended = rest->run(until); });
      return ended;
    });
  } catch (const std::exception&) {
    report(comm, [&] { rest->run(HUGE_VAL); });
    throw;
  }
}

/** Runs the operations of one communicator, which nothing precedes. */
void runNow(DirectCall& call, const CommRef& comm, const StreamRef& stream, Operation* operations, size_t count) {
  bool plain = !comm->profiler && !comm->faults;
  for (const Operation* operation = operations; operation != operations + count; operation++) {
    comm->ras.countLaunch(operation->call);
  }
  Begun begun;
  if (plain && runEagerly(*comm, operations, count, begun)) {
    comm->backOff.onTime();
    return;
  }
  checkMessagesToOneself(*comm, operations, count);
  if (plain && stream->isDefault()) {
    if (count == 1 && kindOf(*operations) == Kind::Collective) {
      readScalar(*operations);
      return runCollective(*comm, std::move(*operations), std::move(begun));
    }
    bool messages = std::all_of(operations, operations + count, [](const Operation& one) { return isPointToPoint(one.call); });
    if (messages) return runPointToPoint(*comm, operations, count, std::move(begun));
  }
  Work work = workOf(*comm, comm->epoch, operations, count, std::move(begun));
  if (stream->isDefault()) {
    runWork(work);
  } else {
    runBriefly(call, comm, work);
  }
}

/**
 * Runs the operations of one communicator, unless an item precedes them or they have to be enqueued for another reason: then
 * returns false and leaves them as they are.
 */
bool runDirectly(const CommRef& comm, const StreamRef& stream, Operation* operations, size_t count) {
  if (!stream || std::any_of(operations, operations + count, [](const Operation& operation) {
        return operation.hasExtras() && operation.extras().launchEvent != nullptr;
      })) {
    return false;
  }
  if (!stream->isDefault()) {
    if (comm->faults || !areShort(*comm, operations, count)) return false;
    if (comm->backOff.takesNext()) return false;
  } else if (!comm->blocking) {
    return false;
  }
  DirectCall call(comm, stream);
  if (!call.begun()) return false;
  try {
    runNow(call, comm, stream, operations, count);
  } catch (const std::bad_alloc&) {
    // The frames of the operation may have been sent.
    comm->failOperation(failureInFlight());
    throw;
  }
  return true;
}

/** As above for a group, if it has operations of one communicator and stream only. */
bool runDirectly(Queue& queue) {
  if (queue.runs.size() > 1) return false;
  const Target& target = queue.runs.front().target;
  return runDirectly(target.comm, target.stream, queue.operations.data(), queue.operations.size());
}

/** A unit whose failure is thrown by the call. */
class SynchronousUnit {
 public:
  explicit SynchronousUnit(Unit unit) : parts_(std::move(unit.parts)) {
    std::vector<CommRef> comms = commsOf(parts_);
    item_ = enqueue(unit.streams, comms, RunBy::Caller, [this](double) {
      try {
        runWork(workOf(parts_));
      } catch (const std::exception&) {
        failure_ = failureInFlight();
      }
      return true;
    });
    // Other threads must not destroy the communicators while this thread is in the call.
    for (const CommRef& comm : comms) comm->callers++;
  }
  ~SynchronousUnit() {
    for (const Part& part : parts_) part.comm->callers--;
  }
  SynchronousUnit(const SynchronousUnit&) = delete;

  void run(std::optional<Failure>& first) {
    runHere(item_);
    if (failure_ && !first) first = failure_;
  }

 private:
  std::vector<Part> parts_;
  ItemRef item_;
  std::optional<Failure> failure_;
};

/** A unit whose failures are reported by its communicators. */
class EnqueuedUnit {
 public:
  explicit EnqueuedUnit(Unit unit) : comms_(commsOf(unit.parts)), parts_(std::move(unit.parts)) {
    // A non-blocking communicator is in progress until the end of operations that use the default stream or hang by a
    // fault.
    for (const Part& part : parts_) {
      if (!part.comm->blocking && (unit.hasDefault() || part.hangs())) inProgress_.push_back(part.comm);
    }
    for (const CommRef& comm : inProgress_) comm->pendingCalls++;
  }
  ~EnqueuedUnit() {
    for (const CommRef& comm : inProgress_) comm->pendingCalls--;
  }
  EnqueuedUnit(const EnqueuedUnit&) = delete;

  const std::vector<CommRef>& comms() const { return comms_; }

  /** Runs the unit until a time; returns true if it has ended. */
  bool run(double until) {
    int result = ncclSuccess;
    try {
      if (!progress_) progress_ = std::make_unique<Progress>(workOf(parts_));
      if (!progress_->run(until)) return false;
    } catch (const Failure& failure) {
      recordError(failure);
      result = failure.code();
    } catch (const std::exception&) {
      // None of the operations has begun.
      for (const CommRef& comm : comms_) comm->failOperation(failureInFlight());
    }
    progress_.reset();
    parts_.clear();
    for (const CommRef& comm : std::exchange(inProgress_, {})) {
      // A revoked communicator has no error, so the result of the call is kept.
      comm->callResult = comm->lifecycle.is(State::Revoked) ? result : ncclSuccess;
      comm->pendingCalls--;
    }
    return true;
  }

 private:
  const std::vector<CommRef> comms_;
  std::vector<Part> parts_;
  std::vector<CommRef> inProgress_;
  std::unique_ptr<Progress> progress_;
};

/** Enqueues an item whose failures are reported by its communicators. */
void begin(Unit unit) {
  std::vector<StreamRef> streams = unit.streams;
  auto work = std::make_shared<EnqueuedUnit>(std::move(unit));
  enqueue(streams, work->comms(), RunBy::Thread, [work](double until) { return work->run(until); });
}

/**
 * Registrations, those of all communicators, form the first unit: a thread may have several ranks. Other operations with
 * common streams or communicators form one unit.
 */
std::vector<Unit> unitsOf(Queue& queue) {
  std::vector<Unit> units(1);
  queue.each([&](const Target& target, Operation& operation) {
    if (!target.stream) {
      units.front().add(target, std::move(operation));
      return;
    }
    Unit* home = nullptr;
    for (size_t k = 1; k < units.size(); k++) {
      if (!units[k].uses(target.comm, target.stream)) continue;
      if (home == nullptr) {
        home = &units[k];
      } else {
        home->absorb(std::move(units[k]));
        units[k] = Unit();
      }
    }
    if (home == nullptr) home = &units.emplace_back();
    home->add(target, std::move(operation));
  });
  units.erase(
      std::remove_if(units.begin(), units.end(), [](const Unit& unit) { return unit.parts.empty(); }), units.end());
  return units;
}

/** Makes items of the operations, and waits for those that are complete when the call returns. */
void enqueueAll(Queue& queue) {
  // In order of execution.
  std::vector<Unit> units = unitsOf(queue);
  for (const Unit& unit : units) unit.check();

  // All items are enqueued before the first one runs.
  std::vector<std::unique_ptr<SynchronousUnit>> synchronous;
  std::optional<Failure> first;
  try {
    synchronous.reserve(units.size());
    for (Unit& unit : units) {
      unit.recordLaunches();
      if (unit.runsInCall()) {
        synchronous.push_back(std::make_unique<SynchronousUnit>(std::move(unit)));
      } else {
        begin(std::move(unit));
      }
    }
  } catch (const std::exception&) {
    // No thread or no memory was available. Items that are already enqueued must run.
    first = failureInFlight();
  }
  for (const auto& item : synchronous) item->run(first);
  if (first) throw Failure(*first);
}

}  // namespace

ncclResult_t launch(const CommRef& comm, const StreamRef& stream, Operation&& operation) {
  bool inProgress = !comm->blocking;
  if (stream && stream->isCapturing) {
    Queue queue;
    queue.add(comm, stream, std::move(operation));
    return launch(queue);
  }
  profileLaunch(*comm, operation);
  if (runDirectly(comm, stream, &operation, 1)) return inProgress ? ncclInProgress : ncclSuccess;
  Queue queue;
  queue.add(comm, stream, std::move(operation));
  enqueueAll(queue);
  return inProgress ? ncclInProgress : ncclSuccess;
}

ncclResult_t launch(Queue& queue) {
  bool inProgress = false, profiled = false, capturing = false;
  for (const Run& run : queue.runs) {
    inProgress |= !run.target.comm->blocking;
    profiled |= run.target.comm->profiler != nullptr;
    capturing |= run.target.stream && run.target.stream->isCapturing;
  }
  if (capturing) {
    Queue copy = queue;
    std::vector<std::vector<StreamRef>> joined;
    for (const Unit& unit : unitsOf(copy)) {
      unit.check();
      joined.push_back(unit.streams);
    }
    captureOperations(queue, joined);
    if (queue.operations.empty()) return inProgress ? ncclInProgress : ncclSuccess;
  }
  if (profiled) queue.each([](const Target& target, Operation& operation) { profileLaunch(*target.comm, operation); });
  if (runDirectly(queue)) return inProgress ? ncclInProgress : ncclSuccess;
  enqueueAll(queue);
  return inProgress ? ncclInProgress : ncclSuccess;
}

}  // namespace host

// registry.cpp: the live communicators, and the checks of their handles.

#include <map>
#include <mutex>

#include "base/fork.h"
#include "base/lastfound.h"
#include "base/ofthread.h"
#include "protocol/comm.h"

namespace host {
namespace {

// Never destroyed: helper threads may outlive static destructors.
struct Registry {
  std::mutex mutex;
  std::map<ncclComm_t, std::shared_ptr<Comm>> comms;
};

/** Number of communicators that left the registry. */
std::atomic<uint64_t> removals{0};

Registry& registry() {
  static Registry& instance = *new Registry;
  return instance;
}

[[noreturn]] void failNotLive(ncclComm_t handle, const char* call) {
  fail(
      ncclInvalidArgument,
      "%s : Error: corrupted comm object detected (%p is no live communicator: destroyed, aborted, or never made)", call,
      static_cast<void*>(handle));
}

/** The communicator that the calling thread used last. */
using LastComm = LastFound<ncclComm_t, Comm>;
LastComm& lastComm() { return ofThread<LastComm>(); }

void checkFound(const Comm* comm, ncclComm_t handle, const char* call) {
  if (handle == nullptr) fail(ncclInvalidArgument, "%s : comm argument is NULL", call);
  if (comm == nullptr) failNotLive(handle, call);
  if (comm->pid != currentProcess()) {
    fail(
        ncclInvalidUsage, "%s : this communicator was made in process %d and cannot be used after fork in process %d",
        call, static_cast<int>(comm->pid), static_cast<int>(currentProcess()));
  }
}

void checkReady(const Comm* found, ncclComm_t handle, const char* call, unsigned allowed) {
  checkFound(found, handle, call);
  const Comm& comm = *found;
  State state = comm.lifecycle.state();
  bool inUse = comm.suspended || comm.pendingSplits > 0 || comm.pendingCalls > 0;
  if (state == State::Ready && !inUse) return;
  if (state == State::Revoked && (allowed & kAllowRevoked) == 0) {
    fail(ncclInvalidUsage, "%s : rank %d has revoked this communicator", call, comm.rank);
  }
  if ((allowed & kAllowFailed) == 0) comm.lifecycle.throwIfFailed();
  if (comm.lifecycle.ended()) failNotLive(handle, call);
  if (comm.suspended && (allowed & kAllowSuspended) == 0) {
    fail(ncclInvalidUsage, "%s : rank %d has suspended this communicator", call, comm.rank);
  }
  if (state == State::Creating || comm.pendingSplits > 0) {
    fail(
        ncclInvalidArgument,
        "%s : the communicator is still being made: poll "
        "ncclCommGetAsyncError until it is no longer ncclInProgress",
        call);
  }
  if (comm.pendingCalls > 0) {
    fail(
        ncclInvalidArgument,
        "%s : an earlier call of the communicator is in progress: poll ncclCommGetAsyncError until it is no longer "
        "ncclInProgress",
        call);
  }
  if (state == State::Finalized) fail(ncclInvalidUsage, "%s : rank %d has finalized this communicator", call, comm.rank);
}

}  // namespace

std::mutex& lockOfComms() { return registry().mutex; }

void registerComm(const std::shared_ptr<Comm>& comm) {
  std::lock_guard<std::mutex> lock(registry().mutex);
  registry().comms[comm->handle()] = comm;
}

void unregisterComm(const Comm& comm) {
  if (auto* last = ofThreadIfAny<LastComm>()) last->forget();
  std::shared_ptr<Comm> last;  // declared before the lock, so released after it
  std::lock_guard<std::mutex> lock(registry().mutex);
  auto found = registry().comms.find(comm.handle());
  if (found == registry().comms.end()) return;
  last = std::move(found->second);
  registry().comms.erase(found);
  removals++;
}

std::shared_ptr<Comm> findComm(ncclComm_t handle) {
  std::lock_guard<std::mutex> lock(registry().mutex);
  auto found = registry().comms.find(handle);
  return found == registry().comms.end() ? nullptr : found->second;
}

std::shared_ptr<Comm> findCommOf(ncclWindow_t window) {
  std::vector<std::shared_ptr<Comm>> all;
  {
    std::lock_guard<std::mutex> lock(registry().mutex);
    for (const auto& [handle, comm] : registry().comms) all.push_back(comm);
  }
  for (const std::shared_ptr<Comm>& comm : all) {
    if (comm->windows.find(window)) return comm;
  }
  return nullptr;
}

std::shared_ptr<Comm> requireComm(ncclComm_t handle, const char* call) {
  std::shared_ptr<Comm> comm = findComm(handle);
  checkFound(comm.get(), handle, call);
  return comm;
}

const std::shared_ptr<Comm>& requireReadyComm(ncclComm_t handle, const char* call, std::shared_ptr<Comm>& own) {
  const std::shared_ptr<Comm>& last = lastComm().get(handle, removals, [&] { return findComm(handle); });
  checkReady(last.get(), handle, call, kAllowNone);
  if (!last->profiler) return last;
  own = last;
  lastComm().forget();
  return own;
}

std::shared_ptr<Comm> requireReadyComm(ncclComm_t handle, const char* call, unsigned allowed) {
  std::shared_ptr<Comm> comm = findComm(handle);
  checkReady(comm.get(), handle, call, allowed);
  return comm;
}

}  // namespace host

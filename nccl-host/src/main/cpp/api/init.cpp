// init.cpp: exported functions that create, query and end communicators.
//
// For a non-blocking communicator (config.blocking = 0) the handle is written at once and a helper thread connects the
// ranks; ncclCommGetAsyncError returns ncclInProgress meanwhile.

#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "api/init.h"
#include "protocol/bootstrap.h"

namespace host {
namespace {

/** As in NCCL, unsets fields newer than the caller's header: there they are padding, or not initialized. */
void forgetNewerFields(ncclConfig_t& config) {
  const ncclConfig_t unset = NCCL_CONFIG_INITIALIZER;
  if (config.version < NCCL_VERSION(2, 14, 0)) config.blocking = unset.blocking;
  if (config.version < NCCL_VERSION(2, 17, 0)) {
    config.cgaClusterSize = unset.cgaClusterSize;
    config.minCTAs = unset.minCTAs;
    config.maxCTAs = unset.maxCTAs;
    config.netName = unset.netName;
  }
  if (config.version < NCCL_VERSION(2, 25, 0)) config.trafficClass = unset.trafficClass;
  if (config.version < NCCL_VERSION(2, 27, 0)) {
    config.collnetEnable = unset.collnetEnable;
    config.CTAPolicy = unset.CTAPolicy;
    config.shrinkShare = unset.shrinkShare;
    config.nvlsCTAs = unset.nvlsCTAs;
  }
  if (config.version < NCCL_VERSION(2, 28, 0)) {
    config.nChannelsPerNetPeer = unset.nChannelsPerNetPeer;
    config.nvlinkCentricSched = unset.nvlinkCentricSched;
  }
  if (config.version < NCCL_VERSION(2, 29, 0)) {
    config.graphUsageMode = unset.graphUsageMode;
    config.numRmaCtx = unset.numRmaCtx;
  }
  if (config.version < NCCL_VERSION(2, 30, 0)) config.maxP2pPeers = unset.maxP2pPeers;
  if (config.version < NCCL_VERSION(2, 30, 5)) config.graphStreamOrdering = unset.graphStreamOrdering;
  if (config.version < NCCL_VERSION(2, 31, 0)) {
    config.launchOrderImplicit = unset.launchOrderImplicit;
    config.numRmaSig = unset.numRmaSig;
    config.rmaEagerInit = unset.rmaEagerInit;
    config.hostCftMode = unset.hostCftMode;
    config.nvlsHostMode = unset.nvlsHostMode;
  }
}

/** Reads the caller's configuration up to its size and version; all other fields are unset. */
ncclConfig_t readConfig(const ncclConfig_t* given, const char* call) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  constexpr size_t kHeader = offsetof(ncclConfig_t, blocking);
  size_t size;
  memcpy(&size, given, sizeof size);
  // As in NCCL, the magic word is read even if the argument is no ncclConfig_t.
  if (given->magic != NCCL_API_MAGIC || size < kHeader) {
    fail(
        ncclInvalidArgument,
        "%s : config was not initialized with NCCL_CONFIG_INITIALIZER (size %zu, magic 0x%x, expected magic 0x%x)",
        call, size, given->magic, NCCL_API_MAGIC);
  }
  memcpy(&config, given, std::min(size, sizeof config));
  forgetNewerFields(config);
  auto check = [&](const char* field, int value, int least, int most) {
    if (value == NCCL_CONFIG_UNDEF_INT || (value >= least && value <= most)) return;
    if (most == INT_MAX) {
      fail(ncclInvalidArgument, "%s : config.%s is %d, but must be at least %d", call, field, value, least);
    }
    fail(ncclInvalidArgument, "%s : config.%s is %d, but must be in %d..%d", call, field, value, least, most);
  };
  check("blocking", config.blocking, 0, 1);
  check("cgaClusterSize", config.cgaClusterSize, 0, INT_MAX);
  check("minCTAs", config.minCTAs, 1, INT_MAX);
  check("maxCTAs", config.maxCTAs, 1, INT_MAX);
  check("splitShare", config.splitShare, 0, 1);
  check("collnetEnable", config.collnetEnable, 0, 1);
  check("CTAPolicy", config.CTAPolicy, 0, 3);
  check("shrinkShare", config.shrinkShare, 0, 1);
  check("nvlsCTAs", config.nvlsCTAs, 1, INT_MAX);
  check("nChannelsPerNetPeer", config.nChannelsPerNetPeer, 1, INT_MAX);
  check("nvlinkCentricSched", config.nvlinkCentricSched, 0, 1);
  check("graphUsageMode", config.graphUsageMode, 0, 2);
  check("numRmaCtx", config.numRmaCtx, 0, INT_MAX);
  check("maxP2pPeers", config.maxP2pPeers, 1, INT_MAX);
  check("graphStreamOrdering", config.graphStreamOrdering, 0, 1);
  check("launchOrderImplicit", config.launchOrderImplicit, 0, 1);
  check("numRmaSig", config.numRmaSig, 0, INT_MAX);
  check("rmaEagerInit", config.rmaEagerInit, 0, 1);
  check("hostCftMode", config.hostCftMode, ncclHostCftEnable, ncclHostCftFallback);
  if (config.nvlsHostMode != ncclNvlsHostModeDisable) check("nvlsHostMode", config.nvlsHostMode, 0, 3);
  if (config.minCTAs != NCCL_CONFIG_UNDEF_INT && config.maxCTAs != NCCL_CONFIG_UNDEF_INT &&
      config.minCTAs > config.maxCTAs) {
    fail(
        ncclInvalidArgument, "%s : config.minCTAs is %d, but config.maxCTAs is %d", call, config.minCTAs,
        config.maxCTAs);
  }
  return config;
}

}  // namespace

CommSettings settingsOf(const ncclConfig_t* given, const CommSettings& inherited, const char* call) {
  if (given == nullptr) return inherited;
  ncclConfig_t config = readConfig(given, call);
  CommSettings settings;
  // As in NCCL, a configuration that leaves the field unset makes a communicator that blocks, whatever the parent does.
  settings.blocking = config.blocking == NCCL_CONFIG_UNDEF_INT || config.blocking != 0;
  if (config.commName != nullptr) settings.name = config.commName;
  if (config.numRmaCtx != NCCL_CONFIG_UNDEF_INT) settings.rmaContexts = config.numRmaCtx;
  if (config.numRmaSig != NCCL_CONFIG_UNDEF_INT) settings.rmaSignals = config.numRmaSig;
  return settings;
}

InitJob initJob(
    ncclComm_t* out, int ranks, const ncclUniqueId& id, int rank, int device, const CommSettings& settings,
    const char* call) {
  if (out == nullptr) fail(ncclInvalidArgument, "%s : comm argument is NULL", call);
  if (ranks < 1) fail(ncclInvalidArgument, "%s : invalid nranks %d, expected at least 1", call, ranks);
  if (rank < 0 || rank >= ranks) {
    fail(ncclInvalidArgument, "%s : invalid rank %d (rank should be in the 0..%d range)", call, rank, ranks - 1);
  }
  checkUniqueId(id, call);
  InitJob job;
  job.comm = std::make_shared<Comm>(rank, ranks, device, settings);
  job.comm->faults = Faults::fromEnvironment(rank);
  job.background = !settings.blocking;
  job.out = out;
  job.connect = [id](Comm& comm) { connectRanks(comm, id); };
  return job;
}

ncclResult_t initOne(InitJob job) {
  std::vector<InitJob> jobs;
  jobs.push_back(std::move(job));
  return submit(std::move(jobs));
}

}  // namespace host

using namespace host;

namespace {

/** An id that nobody else knows: with the last of its ranks, or of those that should have become one, its server ends. */
struct ServedId {
  const ncclUniqueId id = makeUniqueId(Reach::OwnHost);

  ServedId() = default;
  ServedId(const ServedId&) = delete;
  ~ServedId() { cancelUniqueId(id); }
};

void end(const std::shared_ptr<Comm>& comm, ControlKind farewell) {
  unregisterComm(*comm);
  if (comm->lifecycle.is(State::Creating) || farewell == ControlKind::Abort) {
    comm->requestAbort();
  } else {
    comm->lifecycle.enter(State::Destroyed);
  }
  {
    std::lock_guard<std::mutex> lock(comm->initThreadMutex);
    if (comm->initThread.joinable()) comm->initThread.join();
  }
  std::lock_guard<Baton> lock(comm->operation);
  comm->leave(farewell);
}

}  // namespace

extern "C" ncclResult_t ncclGetUniqueId(ncclUniqueId* uniqueId) {
  return guarded([&]() -> ncclResult_t {
    if (uniqueId == nullptr) fail(ncclInvalidArgument, "GetUniqueId : uniqueId argument is NULL");
    *uniqueId = makeUniqueId(expectsOtherHosts() ? Reach::AtCommIdAddress : Reach::OwnHost);
    return ncclSuccess;
  });
}
HOST_PROFILER_ALIAS(ncclGetUniqueId)

extern "C" ncclResult_t ncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank) {
  return guardedCall([&] { return initOne(initJob(comm, nranks, commId, rank, 0, {}, "CommInitRank")); });
}
HOST_PROFILER_ALIAS(ncclCommInitRank)

extern "C" ncclResult_t ncclCommInitRankConfig(
    ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank, ncclConfig_t* config) {
  return guardedCall([&] {
    CommSettings settings = settingsOf(config, {}, "CommInitRankConfig");
    return initOne(initJob(comm, nranks, commId, rank, 0, settings, "CommInitRankConfig"));
  });
}
HOST_PROFILER_ALIAS(ncclCommInitRankConfig)

extern "C" ncclResult_t ncclCommInitRankScalable(
    ncclComm_t* newcomm, int nranks, int myrank, int nId, ncclUniqueId* commIds, ncclConfig_t* config) {
  return guardedCall([&] {
    const char* call = "CommInitRankScalable";
    if (commIds == nullptr) fail(ncclInvalidArgument, "%s : commIds argument is NULL", call);
    if (nId < 1 || nId > nranks) {
      fail(ncclInvalidArgument, "%s : invalid nId %d (nId should be in the 1..%d range)", call, nId, nranks);
    }
    for (int i = 0; i < nId; i++) checkUniqueId(commIds[i], call);
    CommSettings settings = settingsOf(config, {}, call);
    InitJob job = initJob(newcomm, nranks, commIds[0], myrank, 0, settings, call);
    // On one machine a single rendezvous suffices, that of the first id. The servers of the other ids end.
    for (int i = 1; i < nId && myrank == 0; i++) cancelUniqueId(commIds[i]);
    return initOne(std::move(job));
  });
}
HOST_PROFILER_ALIAS(ncclCommInitRankScalable)

extern "C" ncclResult_t ncclCommInitAll(ncclComm_t* comm, int ndev, const int* devlist) {
  return guardedCall([&] {
    if (comm == nullptr) fail(ncclInvalidArgument, "CommInitAll : comm argument is NULL");
    if (ndev < 1) fail(ncclInvalidArgument, "CommInitAll : invalid ndev %d, expected at least 1", ndev);
    std::set<int> seen;
    for (int i = 0; devlist != nullptr && i < ndev; i++) {
      if (devlist[i] < 0) fail(ncclInvalidArgument, "CommInitAll : invalid device %d at devlist[%d]", devlist[i], i);
      if (!seen.insert(devlist[i]).second) {
        fail(ncclInvalidUsage, "CommInitAll : device %d is in devlist more than once", devlist[i]);
      }
    }
    auto served = std::make_shared<ServedId>();
    std::vector<InitJob> jobs;
    for (int i = 0; i < ndev; i++) {
      jobs.push_back(initJob(comm + i, ndev, served->id, i, devlist != nullptr ? devlist[i] : i, {}, "CommInitAll"));
      jobs.back().connect = [served](Comm& rank) { connectRanks(rank, served->id); };
    }
    return submit(std::move(jobs));
  });
}
HOST_PROFILER_ALIAS(ncclCommInitAll)

extern "C" ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  return guarded([&]() -> ncclResult_t {
    if (comm == nullptr) return ncclSuccess;
    std::shared_ptr<Comm> known = requireReadyComm(comm, "CommFinalize", kAllowRevoked | kAllowSuspended);
    if (known->lifecycle.is(State::Revoked)) {
      fail(ncclInvalidArgument, "CommFinalize : rank %d has revoked this communicator", known->rank);
    }
    if (!known->lifecycle.enter(State::Finalized)) {
      // Another thread was faster.
      requireReadyComm(comm, "CommFinalize", kAllowSuspended);
    }
    if (!known->blocking) return hasOperations(*known) ? ncclInProgress : ncclSuccess;
    awaitOperations(*known);
    known->lifecycle.throwIfFailed();
    return ncclSuccess;
  });
}
HOST_PROFILER_ALIAS(ncclCommFinalize)

extern "C" ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  return guarded([&]() -> ncclResult_t {
    if (comm == nullptr) return ncclSuccess;
    std::shared_ptr<Comm> known = requireComm(comm, "CommDestroy");
    if (!known->lifecycle.is(State::Creating)) {
      if (hasCallers(*known) || known->pendingSplits > 0) {
        fail(
            ncclInvalidUsage,
            "CommDestroy : another thread is inside an operation of rank %d: wait for it, or use ncclCommAbort",
            known->rank);
      }
      // After a failure or a revoke, no waiting operation runs.
      if (known->operationsRun()) awaitOperations(*known);
      if (hasOperations(*known)) known->requestAbort();
    }
    end(known, ControlKind::Close);
    return ncclSuccess;
  });
}
HOST_PROFILER_ALIAS(ncclCommDestroy)

extern "C" ncclResult_t ncclCommAbort(ncclComm_t comm) {
  return guarded([&]() -> ncclResult_t {
    if (comm == nullptr) return ncclSuccess;
    end(requireComm(comm, "CommAbort"), ControlKind::Abort);
    return ncclSuccess;
  });
}
HOST_PROFILER_ALIAS(ncclCommAbort)

// Ends the running operations. This rank takes no further part in them, so they end at the other ranks, too, with
// ncclRemoteError; those ranks may then revoke as well. In NCCL they wait until they do.
extern "C" ncclResult_t ncclCommRevoke(ncclComm_t comm, int revokeFlags) {
  return guarded([&]() -> ncclResult_t {
    if (comm == nullptr) return ncclSuccess;
    // Allowed while a child is being created, which ends as well.
    std::shared_ptr<Comm> known = requireComm(comm, "CommRevoke");
    if (revokeFlags != NCCL_REVOKE_DEFAULT) {
      fail(ncclInvalidArgument, "CommRevoke : invalid revokeFlags %d, expected NCCL_REVOKE_DEFAULT (0)", revokeFlags);
    }
    State before = known->lifecycle.state();
    if (!known->lifecycle.enter(State::Revoked)) {
      if (before == State::Creating) fail(ncclInvalidArgument, "CommRevoke : the communicator is still being made");
      const char* reason = before == State::Finalized ? "has finalized this communicator"
                           : before == State::Revoked ? "has revoked this communicator before"
                                                      : "has ended this communicator";
      fail(ncclInvalidArgument, "CommRevoke : rank %d %s", known->rank, reason);
    }
    std::unique_lock<Baton> lock = known->interrupt("ncclCommRevoke");
    known->breakDown(
        Failure(ncclSuccess, format("rank %d revoked its communicator", known->rank)), ncclRemoteError);
    return ncclSuccess;
  });
}
HOST_PROFILER_ALIAS(ncclCommRevoke)

extern "C" ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError) {
  return guarded([&]() -> ncclResult_t {
    std::shared_ptr<Comm> known = requireComm(comm, "CommGetAsyncError");
    if (asyncError == nullptr) fail(ncclInvalidArgument, "CommGetAsyncError : asyncError argument is NULL");
    Lifecycle& lifecycle = known->lifecycle;
    // An abort may wait for the thread that connects the ranks.
    bool aborting = lifecycle.is(State::Aborted) && lifecycle.error() == ncclSuccess;
    if (lifecycle.is(State::Creating) || known->pendingSplits > 0 || aborting) {
      *asyncError = ncclInProgress;
      return ncclSuccess;
    }
    // The result of a call comes first; it does not include later failures. A pending call reads the control streams itself.
    bool pending = known->pendingCalls > 0;
    if (!pending && lifecycle.error() == ncclSuccess) {
      int result = known->callResult.exchange(Comm::kNoCall);
      if (result != Comm::kNoCall) {
        *asyncError = static_cast<ncclResult_t>(result);
        forgetThreadError();
        return ncclSuccess;
      }
    }
    // Between operations no thread reads the control streams. This call does, so a watchdog sees the death of a rank.
    std::unique_lock<Baton> lock(known->operation, std::defer_lock);
    if (!pending && lock.try_lock() && known->operationsRun()) {
      known->readAllControl("while no operation was running");
      if (const Failure* failure = known->peerFailure()) known->breakDown(*failure);
    }
    *asyncError = lifecycle.error();
    lock = std::unique_lock<Baton>();
    bool finalizing = lifecycle.is(State::Finalized) && !known->blocking && hasOperations(*known);
    if (*asyncError == ncclSuccess && (pending || finalizing)) *asyncError = ncclInProgress;
    forgetThreadError();
    return ncclSuccess;
  });
}
HOST_PROFILER_ALIAS(ncclCommGetAsyncError)

namespace {

ncclResult_t query(ncclComm_t comm, int* out, const char* call, const char* name, int Comm::*field) {
  return guarded([&]() -> ncclResult_t {
    std::shared_ptr<Comm> known = requireComm(comm, call);
    if (out == nullptr) fail(ncclInvalidArgument, "%s : %s argument is NULL", call, name);
    if (known->lifecycle.is(State::Creating)) {
      fail(
          ncclInvalidArgument, "%s : the communicator is still being made",
          call);
    }
    *out = (*known).*field;
    return ncclSuccess;
  });
}

}  // namespace

extern "C" ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  return query(comm, count, "CommCount", "count", &Comm::ranks);
}
HOST_PROFILER_ALIAS(ncclCommCount)

extern "C" ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device) {
  return query(comm, device, "CommCuDevice", "device", &Comm::device);
}
HOST_PROFILER_ALIAS(ncclCommCuDevice)

extern "C" ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  return query(comm, rank, "CommUserRank", "rank", &Comm::rank);
}
HOST_PROFILER_ALIAS(ncclCommUserRank)

// children.cpp: exported functions that create communicators from others: split, shrink and grow. A child has
// connections of its own and does not depend on its parent.
//
// With a healthy parent, split is a collective. If ranks do not take part (shrink), if operations were cancelled
// (revoke), or if ranks are added (grow), the ranks agree over the control streams; see regroup.h.

#include <string.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>

#include "api/init.h"
#include "protocol/bootstrap.h"
#include "protocol/regroup.h"

using namespace host;

namespace {

/** Counts the call at the parent, whose faults apply to it. */
void takeFaults(InitJob& job, Call call) {
  if (job.parent->faults) job.faults = job.parent->faults->at(call);
}

/** Children may have the hosts of their parent. */
Reach reachOfChild(const Comm& parent) { return parent.onSeveralHosts || expectsOtherHosts() ? Reach::OtherHosts : Reach::OwnHost; }

/** An id of this process. The destructor ends its server unless the id was handed out. */
class OwnId {
 public:
  ~OwnId() {
    if (made_ && !used_) cancelUniqueId(id_);
  }

  /**
   * Creates the id. use() throws a failure of it later: the exchange must continue, since other ranks take part in it.
   */
  void make(Reach reach) {
    try {
      id_ = makeUniqueId(reach);
      made_ = true;
    } catch (const Failure& failure) {
      failure_ = failure;
    }
  }
  void use() {
    if (failure_) throw Failure(*failure_);
    used_ = true;
  }
  const ncclUniqueId& id() const { return id_; }

 private:
  ncclUniqueId id_{};
  bool made_ = false;
  bool used_ = false;
  std::optional<Failure> failure_;
};

/** The ranks are those of the parent that become ranks of the child; the first one serves the rendezvous. */
void connectAt(
    Comm& child, const ncclUniqueId& id, const std::shared_ptr<Comm>& parent, const std::vector<int>& ranks, Call call) {
  if (id.internal[0] == 0) {
    fail(ncclRemoteError, "%s: rank %d of the parent could not start the rendezvous", callName(call), ranks.front());
  }
  Members members(*parent, call, ranks);
  connectRanks(child, id, &members);
}

/** Runs one of the engine's own collectives on the parent of a communicator that is being created. */
void runInternal(const std::shared_ptr<Comm>& parent, const Comm& child, Operation operation) {
  Work work;
  work.comm = parent.get();
  work.epoch = parent->epoch;
  work.child = &child;
  work.add(makeCollective(*parent, std::move(operation)));
  runWork(work);
}

/**
 * Exchanges colors and keys, or ids, of all ranks of the parent; over its control streams if regrouping is not NULL.
 */
std::vector<RegroupNote> exchangeForSplit(
    const std::shared_ptr<Comm>& parent, const Comm& child, Regrouping* regrouping, RegroupNote mine, Call call) {
  size_t ranks = static_cast<size_t>(parent->ranks);
  if (regrouping != nullptr) {
    std::vector<int> members(ranks);
    for (size_t rank = 0; rank < ranks; rank++) members[rank] = static_cast<int>(rank);
    mine.call = call;
    return regrouping->exchange(members, mine);
  }
  std::vector<std::pair<int64_t, int64_t>> pairs(ranks);
  std::vector<ncclUniqueId> ids(ranks);
  Operation exchange;
  exchange.call = call;
  exchange.addExtras().ownPair = mine.pair;
  exchange.addExtras().allPairs = &pairs;
  if (call == Call::CommSplitId) {
    exchange.send = mine.id.internal;
    exchange.recv = ids[0].internal;
    exchange.count = sizeof mine.id;
  }
  runInternal(parent, child, std::move(exchange));
  std::vector<RegroupNote> notes(ranks);
  for (size_t rank = 0; rank < ranks; rank++) {
    notes[rank].pair = pairs[rank];
    notes[rank].id = ids[rank];
  }
  return notes;
}

void connectSplit(const std::shared_ptr<Comm>& parent, int color, int key, Comm& child) {
  std::unique_ptr<Regrouping> regrouping;
  if (parent->lifecycle.is(State::Revoked)) regrouping = std::make_unique<Regrouping>(*parent, child, Call::CommSplit);
  RegroupNote mine;
  mine.pair = {color, key};
  std::vector<RegroupNote> colors = exchangeForSplit(parent, child, regrouping.get(), mine, Call::CommSplit);

  // Ranks of one color, ordered by key and then by rank in the parent. The first rank serves the rendezvous.
  std::vector<std::pair<int64_t, int>> members;
  for (int rank = 0; rank < parent->ranks; rank++) {
    auto [otherColor, otherKey] = colors[static_cast<size_t>(rank)].pair;
    if (color >= 0 && otherColor == color) members.emplace_back(otherKey, rank);
  }
  std::sort(members.begin(), members.end());

  OwnId own;
  if (!members.empty() && members.front().second == parent->rank) own.make(reachOfChild(*parent));
  mine.id = own.id();
  std::vector<RegroupNote> ids = exchangeForSplit(parent, child, regrouping.get(), mine, Call::CommSplitId);
  if (regrouping != nullptr) regrouping->complete();
  regrouping.reset();
  own.use();

  child.ranks = static_cast<int>(members.size());
  if (members.empty()) return;
  std::vector<int> ranks;
  for (const auto& [otherKey, rank] : members) {
    if (rank == parent->rank) child.rank = static_cast<int>(ranks.size());
    ranks.push_back(rank);
  }
  connectAt(child, ids[static_cast<size_t>(ranks.front())].id, parent, ranks, Call::CommSplit);
}

/** members are the remaining ranks of the parent, in order. */
void connectShrink(const std::shared_ptr<Comm>& parent, const std::vector<int>& members, Comm& child) {
  OwnId own;
  if (members.front() == parent->rank) own.make(reachOfChild(*parent));
  RegroupNote mine;
  mine.call = Call::CommShrink;
  for (int rank : members) mine.members = (mine.members ^ static_cast<uint64_t>(rank + 1)) * 0x100000001b3u;
  mine.id = own.id();
  std::vector<RegroupNote> notes = Regrouping(*parent, child, Call::CommShrink).exchange(members, mine);
  own.use();
  connectAt(child, notes.front().id, parent, members, Call::CommShrink);
}

void connectGrow(const std::shared_ptr<Comm>& parent, const ncclUniqueId* given, Comm& child) {
  ncclUniqueId id = Regrouping(*parent, child, Call::CommGrow).takeGrowId();
  if (given != nullptr && memcmp(given, &id, sizeof id) != 0) {
    fail(
        ncclInvalidArgument,
        "CommGrow : uniqueId of rank %d is not the one that ncclCommGetUniqueId made for this communicator",
        parent->rank);
  }
  std::vector<int> ranks(static_cast<size_t>(parent->ranks));
  std::iota(ranks.begin(), ranks.end(), 0);
  Members members(*parent, Call::CommGrow, std::move(ranks));
  connectRanks(child, id, &members);
}

}  // namespace

extern "C" ncclResult_t ncclCommSplit(
    ncclComm_t comm, int color, int key, ncclComm_t* newcomm, ncclConfig_t* config) {
  return guardedCall([&] {
    std::shared_ptr<Comm> parent = requireReadyComm(comm, "CommSplit", kAllowRevoked);
    if (newcomm == nullptr) fail(ncclInvalidArgument, "CommSplit : newcomm argument is NULL");
    if (color < 0 && color != NCCL_SPLIT_NOCOLOR) {
      fail(ncclInvalidArgument, "CommSplit : invalid color %d, expected at least 0, or NCCL_SPLIT_NOCOLOR", color);
    }
    CommSettings settings = settingsOf(config, parent->settings, "CommSplit");
    InitJob job;
    job.comm = std::make_shared<Comm>(0, 0, parent->device, settings);
    job.parent = parent;
    job.ordered = !parent->lifecycle.is(State::Revoked);
    job.background = !settings.blocking;
    job.hasHandle = color != NCCL_SPLIT_NOCOLOR;
    job.out = newcomm;
    job.connect = [parent, color, key](Comm& child) { connectSplit(parent, color, key, child); };
    takeFaults(job, Call::CommSplit);
    return initOne(std::move(job));
  });
}
HOST_PROFILER_ALIAS(ncclCommSplit)

// NCCL_SHRINK_ABORT ends the running operations and also allows a failed communicator.
extern "C" ncclResult_t ncclCommShrink(
    ncclComm_t comm, int* excludeRanksList, int excludeRanksCount, ncclComm_t* newcomm, ncclConfig_t* config,
    int shrinkFlags) {
  return guardedCall([&] {
    const char* call = "CommShrink";
    bool abort = (shrinkFlags & NCCL_SHRINK_ABORT) != 0;
    std::shared_ptr<Comm> parent = requireReadyComm(comm, call, kAllowRevoked | (abort ? kAllowFailed : kAllowNone));
    if (newcomm == nullptr) fail(ncclInvalidArgument, "%s : newcomm argument is NULL", call);
    if (excludeRanksList == nullptr) fail(ncclInvalidArgument, "%s : excludeRanksList argument is NULL", call);
    if (excludeRanksCount < 1) {
      fail(ncclInvalidArgument, "%s : invalid excludeRanksCount %d, expected at least 1", call, excludeRanksCount);
    }
    std::set<int> excluded;
    for (int i = 0; i < excludeRanksCount; i++) {
      int rank = excludeRanksList[i];
      if (rank < 0 || rank >= parent->ranks) {
        fail(
            ncclInvalidArgument, "%s : invalid rank %d at excludeRanksList[%d] (rank should be in the 0..%d range)",
            call, rank, i, parent->ranks - 1);
      }
      if (rank == parent->rank) {
        fail(ncclInvalidArgument, "%s : rank %d is in excludeRanksList and must not call this function", call, rank);
      }
      if (!excluded.insert(rank).second) {
        fail(ncclInvalidArgument, "%s : rank %d is in excludeRanksList more than once", call, rank);
      }
    }
    CommSettings settings = settingsOf(config, parent->settings, call);
    *newcomm = nullptr;
    if (abort) parent->interrupt("ncclCommShrink with NCCL_SHRINK_ABORT");
    std::vector<int> members;
    for (int rank = 0; rank < parent->ranks; rank++) {
      if (excluded.count(rank) == 0) members.push_back(rank);
    }
    auto newRank = std::find(members.begin(), members.end(), parent->rank) - members.begin();
    InitJob job;
    job.comm = std::make_shared<Comm>(
        static_cast<int>(newRank), static_cast<int>(members.size()), parent->device, settings);
    job.parent = parent;
    job.ordered = !abort && !parent->lifecycle.is(State::Revoked);
    job.background = !settings.blocking;
    job.out = newcomm;
    job.connect = [parent, members](Comm& child) { connectShrink(parent, members, child); };
    takeFaults(job, Call::CommShrink);
    return initOne(std::move(job));
  });
}
HOST_PROFILER_ALIAS(ncclCommShrink)

// Sends the id to the other ranks for their ncclCommGrow.
extern "C" ncclResult_t ncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId* uniqueId) {
  return guarded([&]() -> ncclResult_t {
    std::shared_ptr<Comm> known = requireReadyComm(comm, "CommGetUniqueId", kAllowRevoked);
    if (uniqueId == nullptr) fail(ncclInvalidArgument, "CommGetUniqueId : uniqueId argument is NULL");
    std::lock_guard<Baton> lock(known->operation);
    known->readAllControl("during CommGetUniqueId");
    int maker = known->growId ? known->rank : -1;
    for (const Peer& peer : known->peers) {
      if (peer.control.growId) maker = peer.rank;
    }
    if (maker >= 0) {
      fail(
          ncclInvalidUsage, "CommGetUniqueId : the id that rank %d made has not been used by ncclCommGrow yet", maker);
    }
    known->growId = std::make_unique<ncclUniqueId>(makeUniqueId(reachOfChild(*known)));
    std::string body(known->growId->internal, sizeof known->growId->internal);
    for (Peer& peer : known->peers) known->sendControl(peer, ControlKind::GrowId, 0, body);
    *uniqueId = *known->growId;
    return ncclSuccess;
  });
}
HOST_PROFILER_ALIAS(ncclCommGetUniqueId)

extern "C" ncclResult_t ncclCommGrow(
    ncclComm_t comm, int nRanks, const ncclUniqueId* uniqueId, int rank, ncclComm_t* newcomm, ncclConfig_t* config) {
  return guardedCall([&] {
    const char* call = "CommGrow";
    if (newcomm == nullptr) fail(ncclInvalidArgument, "%s : newcomm argument is NULL", call);
    if (nRanks <= 0) fail(ncclInvalidArgument, "%s : invalid nRanks %d, expected at least 1", call, nRanks);
    *newcomm = nullptr;
    if (comm == nullptr) {
      if (uniqueId == nullptr) fail(ncclInvalidArgument, "%s : uniqueId argument of a new rank is NULL", call);
      CommSettings settings = settingsOf(config, {}, call);
      InitJob job = initJob(newcomm, nRanks, *uniqueId, rank, 0, settings, call);
      // No faults, as at the ranks of the old communicator.
      job.comm->faults.reset();
      return initOne(std::move(job));
    }
    std::shared_ptr<Comm> parent = requireReadyComm(comm, call, kAllowRevoked);
    if (nRanks <= parent->ranks) {
      fail(
          ncclInvalidArgument, "%s : nRanks %d must be more than the %d of the communicator that grows", call, nRanks,
          parent->ranks);
    }
    if (rank != -1) fail(ncclInvalidArgument, "%s : invalid rank %d, existing ranks pass -1", call, rank);
    CommSettings settings = settingsOf(config, parent->settings, call);
    std::shared_ptr<ncclUniqueId> given;
    if (uniqueId != nullptr) {
      checkUniqueId(*uniqueId, call);
      given = std::make_shared<ncclUniqueId>(*uniqueId);
    }
    InitJob job;
    job.comm = std::make_shared<Comm>(parent->rank, nRanks, parent->device, settings);
    job.parent = parent;
    job.ordered = !parent->lifecycle.is(State::Revoked);
    job.background = !settings.blocking;
    job.out = newcomm;
    job.connect = [parent, given](Comm& child) { connectGrow(parent, given.get(), child); };
    takeFaults(job, Call::CommGrow);
    return initOne(std::move(job));
  });
}
HOST_PROFILER_ALIAS(ncclCommGrow)

// jobs.h: the creation of communicators, as jobs of a group.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "protocol/comm.h"

namespace host {

/** The creation of one communicator. */
struct InitJob {
  CommRef comm;                        // being created
  CommRef parent;                      // of a split, shrink or grow, else NULL
  bool ordered = true;                 // after the earlier operations of the parent
  bool background = false;             // the caller polls, and already has its handle
  bool hasHandle = true;               // false for a rank that a split excludes: it polls its parent
  ncclComm_t* out = nullptr;           // the handle of a waiting caller is stored here
  std::vector<Fault> faults;           // of the parent, for this call
  std::function<void(Comm&)> connect;  // throws Failure; a split also sets rank and ranks
};

/** Runs at the call itself: stores the handles of background jobs. */
void announce(InitJob& job);

/** Discards a job of a group that fails. */
void drop(InitJob& job);

/**
 * Runs jobs: those with the same parent in sequence and in order, all others in parallel. Returns ncclInProgress if a
 * helper thread continues with some of them.
 */
ncclResult_t runJobs(std::vector<InitJob> jobs);

}  // namespace host

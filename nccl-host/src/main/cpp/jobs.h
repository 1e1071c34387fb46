// jobs.h: the making of communicators, as the jobs of a group.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "comm.h"

namespace host {

/** The making of one communicator. */
struct InitJob {
  CommRef comm;                        // being made
  CommRef parent;                      // of a split, shrink or grow, else empty
  bool ordered = true;                 // behind what the parent was told before
  bool background = false;             // the caller polls, and has its handle already
  bool hasHandle = true;               // false for a rank that a split leaves out: it polls its parent
  ncclComm_t* out = nullptr;           // where a caller who waits finds the handle
  std::function<void(Comm&)> connect;  // throws Failure; for splits also sets rank and ranks
};

/** What is done when the call is made: handles of jobs in the background are given out. */
void announce(InitJob& job);

/** A job of a group that is not run in the end. */
void drop(InitJob& job);

/**
 * Runs jobs: those that work on the same parent in their order, one after the other, all others side by side.
 * ncclInProgress when some are left to a helper thread.
 */
ncclResult_t runJobs(std::vector<InitJob> jobs);

}  // namespace host

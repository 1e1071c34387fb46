// group.h: what a thread has collected between ncclGroupStart and ncclGroupEnd.
#pragma once

#include <functional>
#include <memory>

#include "task.h"

namespace host {

/** The making of a communicator, run when the group is closed. */
struct InitJob {
  std::shared_ptr<Comm> comm;           // being made
  std::shared_ptr<Comm> parent;         // of a split, shrink or grow, else empty
  ncclComm_t* out = nullptr;            // where a blocking caller finds the handle
  std::function<void(Comm&)> connect;   // throws Failure; for splits also sets rank and ranks
};

bool insideGroup();

/** Runs an operation now, or at the end of the open group. */
void submit(const std::shared_ptr<Comm>& comm, Operation operation);

/** As above for the making of communicators; ncclInProgress when a helper thread goes on with it. */
ncclResult_t submit(std::vector<InitJob> jobs);

/** Runs body, the checks of a call, and drops the open group, if there is one, when it fails. */
template <class Body>
ncclResult_t guardedCall(Body&& body);

/** Remembers the first failed call in an open group: ncclGroupEnd returns its error and runs nothing. */
void noteGroupFailure(const Failure& failure);

template <class Body>
ncclResult_t guardedCall(Body&& body) {
  return guarded([&]() -> ncclResult_t {
    try {
      return body();
    } catch (const Failure& failure) {
      noteGroupFailure(failure);
      throw;
    }
  });
}

}  // namespace host

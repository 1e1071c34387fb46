// group.h: what a thread has collected between ncclGroupStart and ncclGroupEnd.
#pragma once

#include <vector>

#include "jobs.h"
#include "task.h"

namespace host {

bool insideGroup();

/** Launches an operation now, or at the end of the open group. No stream is for operations that are in none. */
ncclResult_t submit(const std::shared_ptr<Comm>& comm, Operation operation, StreamRef stream);

/** Makes communicators now, or at the end of the open group; ncclInProgress when a helper thread goes on with it. */
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

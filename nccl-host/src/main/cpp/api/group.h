// group.h: the calls of a thread between ncclGroupStart and ncclGroupEnd.
#pragma once

#include <vector>

#include "protocol/task.h"
#include "schedule/jobs.h"

namespace host {

bool insideGroup();

/** Launches an operation now, or at the end of the open group. The stream is NULL for operations outside streams. */
ncclResult_t submit(const CommRef& comm, Operation&& operation, const StreamRef& stream);

/** Creates communicators now, or at the end of the open group. Returns ncclInProgress if a helper thread continues. */
ncclResult_t submit(std::vector<InitJob> jobs);

/** Runs body, the checks of a call. A failure drops the open group, if any. */
template <class Body>
ncclResult_t guardedCall(Body&& body);

/** Stores the first failure in an open group: ncclGroupEnd then runs nothing and returns this error. */
void noteGroupFailure(const Failure& failure);

template <class Body>
ncclResult_t guardedCall(Body&& body) {
  return guarded([&]() -> ncclResult_t {
    try {
      return body();
    } catch (const std::exception&) {
      noteGroupFailure(failureInFlight());
      throw;
    }
  });
}

}  // namespace host

// launch.h: launches operations, single ones and those of a group, into streams.
#pragma once

#include <memory>
#include <vector>

#include "protocol/task.h"
#include "schedule/stream.h"

namespace host {

/** The communicator and the stream of an operation. */
struct Target {
  CommRef comm;
  StreamRef stream;  // NULL for the registration of windows, which uses no stream
};

/** Successive operations of a group with the same target. */
struct Run {
  Target target;
  size_t count = 0;
};

/** The operations of a group, in the order of the calls. */
struct Queue {
  std::vector<Operation> operations;
  std::vector<Run> runs;  // of the operations

  void add(const CommRef& comm, const StreamRef& stream, Operation&& operation) {
    bool same = !runs.empty() && runs.back().target.comm == comm && runs.back().target.stream == stream;
    if (!same) runs.push_back({{comm, stream}, 0});
    runs.back().count++;
    operations.push_back(std::move(operation));
  }
  /** Calls `body` with each operation and its target. */
  template <class Body>
  void each(Body&& body) {
    Operation* operation = operations.data();
    for (const Run& run : runs) {
      for (size_t i = 0; i < run.count; i++) body(run.target, *operation++);
    }
  }
  void clear() {
    operations.clear();
    runs.clear();
  }
};

/**
 * Launches operations, and moves them out of the queue. Those of one communicator form a unit and run in this order:
 * registration of windows, then puts, signals and waits, then collectives, then Send and Recv; each kind in the order of
 * the calls, as in NCCL. A unit with several streams waits for all of them, and all of them wait for the unit.
 *
 * Operations in the default stream and registrations, both of blocking communicators, are complete on return, and their
 * failures are thrown. All other operations are only enqueued. As in NCCL, the result is ncclInProgress if one of them
 * belongs to a non-blocking communicator.
 */
ncclResult_t launch(Queue& queue);
ncclResult_t launch(const CommRef& comm, const StreamRef& stream, Operation&& operation);

}  // namespace host

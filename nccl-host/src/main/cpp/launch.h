// launch.h: the operations of a group, or a single one, on their way into streams.
#pragma once

#include <memory>
#include <vector>

#include "stream.h"
#include "task.h"

namespace host {

struct QueuedOperation {
  CommRef comm;
  StreamRef stream;  // empty for the registration of windows, which is in none
  Operation operation;
};

/**
 * Launches operations, those of one communicator as a unit: first the registration of windows, then puts, signals and
 * waits, then collectives, then Send and Recv, each kind in the order of the calls, as NCCL does. A unit with several
 * streams waits for all of them, and all wait for it.
 *
 * Operations in the default stream and registrations, both of blocking communicators, are done when this returns, and their
 * failures are thrown; all others are begun only. ncclInProgress when one of a communicator that does not block is among
 * them, as NCCL has it.
 */
ncclResult_t launch(std::vector<QueuedOperation> operations);

}  // namespace host

// exchange.h: which elements of a collective go from which rank to which.
#pragma once

#include "task.h"

namespace host {

/** The elements of a collective at one rank, in blocks of Operation::bytes(). Not for AlltoAllv. */
class Exchange {
 public:
  Exchange(const Operation& operation, int rank)
      : operation_(operation), isRoot_(operation.root == rank), bytes_(operation.bytes()) {}

  /** This rank's elements for a rank, also for itself; NULL if there are none. */
  const char* elementsFor(int other) const {
    switch (operation_.call) {
      case Call::AllReduce:
      case Call::AllGather:
      case Call::CommSplitId: return operation_.send;
      case Call::ReduceScatter:
      case Call::AlltoAll: return operation_.send + block(other);
      case Call::Reduce:
      case Call::Gather: return other == operation_.root ? operation_.send : nullptr;
      case Call::Broadcast: return isRoot_ ? operation_.send : nullptr;
      case Call::Scatter: return isRoot_ ? operation_.send + block(other) : nullptr;
      default: return nullptr;
    }
  }

  /** True if this rank folds the elements that it gets. */
  bool folds() const {
    Call call = operation_.call;
    return call == Call::AllReduce || call == Call::ReduceScatter || (call == Call::Reduce && isRoot_);
  }

  /** The destination of a rank's elements, also of this rank's own; NULL if there are none or this rank folds them. */
  char* placeOf(int other) const {
    switch (operation_.call) {
      case Call::AllGather:
      case Call::CommSplitId:
      case Call::AlltoAll: return operation_.recv + block(other);
      case Call::Gather: return isRoot_ ? operation_.recv + block(other) : nullptr;
      case Call::Broadcast:
      case Call::Scatter: return other == operation_.root ? operation_.recv : nullptr;
      default: return nullptr;
    }
  }

 private:
  size_t block(int rank) const { return static_cast<size_t>(rank) * bytes_; }

  const Operation& operation_;
  const bool isRoot_;
  const size_t bytes_;
};

}  // namespace host

// exchange.h: which elements of a collective go from which rank to which.
#pragma once

#include <algorithm>

#include "task.h"

namespace host {

/** True for a Broadcast whose elements pass a Tree. */
inline bool isShortBroadcast(const Operation& operation) {
  constexpr size_t kMost = 64 << 10;
  return operation.call == Call::Broadcast && operation.count > 0 && operation.bytes() <= kMost;
}

/** True for an AllReduce of which each rank folds a chunk and distributes it. Of shorter ones, every rank folds everything. */
inline bool isInChunks(const Operation& operation, int ranks) {
  // For all elements that a rank would send.
  constexpr size_t kMost = 8 << 10;
  return operation.call == Call::AllReduce && operation.bytes() * static_cast<size_t>(ranks - 1) > kMost;
}

/** Offset in bytes of one of so many chunks of the elements; that of the chunk after the last is their end. */
inline size_t chunkStart(const Operation& operation, size_t chunk, size_t chunks) {
  size_t whole = operation.count / chunks;
  size_t rest = operation.count % chunks;
  return (whole * chunk + std::min(chunk, rest)) * typeSize(operation.type);
}

/** The elements of a collective at one rank, in blocks of Operation::bytes(). Not for AlltoAllv. */
class Exchange {
 public:
  Exchange(const Operation& operation, int rank) {
    const size_t bytes = operation.bytes();
    const bool isRoot = operation.root == rank;
    switch (operation.call) {
      case Call::AllReduce:
        sent_ = {operation.send};
        folds_ = true;
        break;
      case Call::ReduceScatter:
        sent_ = {operation.send, bytes};
        folds_ = true;
        break;
      case Call::Reduce:
        sent_ = {operation.send, 0, operation.root};
        folds_ = isRoot;
        break;
      case Call::AllGather:
      case Call::CommSplitId:
        sent_ = {operation.send};
        received_ = {operation.recv, bytes};
        break;
      case Call::AlltoAll:
        sent_ = {operation.send, bytes};
        received_ = {operation.recv, bytes};
        break;
      case Call::Gather:
        sent_ = {operation.send, 0, operation.root};
        if (isRoot) received_ = {operation.recv, bytes};
        break;
      case Call::Broadcast:
        if (isRoot) sent_ = {operation.send};
        received_ = {operation.recv, 0, operation.root};
        break;
      case Call::Scatter:
        if (isRoot) sent_ = {operation.send, bytes};
        received_ = {operation.recv, 0, operation.root};
        break;
      default: break;
    }
  }

  /** This rank's elements for a rank, also for itself; NULL if there are none. */
  const char* elementsFor(int rank) const { return sent_.of(rank); }

  /** True if this rank folds the elements that it gets. */
  bool folds() const { return folds_; }

  /** The destination of a rank's elements, also of this rank's own; NULL if there are none or this rank folds them. */
  char* placeOf(int rank) const { return received_.of(rank); }

 private:
  static constexpr int kAll = -1;

  template <class Byte>
  struct Blocks {
    Byte* first = nullptr;  // of rank 0; NULL: no rank has one
    size_t stride = 0;      // to the next rank's; 0: all ranks have the same
    int only = kAll;        // the rank that has one

    Byte* of(int rank) const {
      bool has = first != nullptr && (only == kAll || only == rank);
      return has ? first + stride * static_cast<size_t>(rank) : nullptr;
    }
  };

  Blocks<const char> sent_;
  Blocks<char> received_;
  bool folds_ = false;
};

}  // namespace host

// exchange.h: which elements of a collective go from which rank to which.
#pragma once

#include <algorithm>

#include "protocol/reduce.h"
#include "protocol/task.h"

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

/** Elements of a chunk, of so many chunks; the last ones may have fewer, or none. As with NCCL, a multiple of 16 bytes. */
inline size_t chunkElements(const Operation& operation, size_t chunks) {
  size_t unit = 16u / static_cast<unsigned>(typeSize(operation.type));
  size_t least = (operation.count + chunks - 1) / chunks;
  return (least + unit - 1) & ~(unit - 1);
}

/** Offset in bytes of one of so many chunks of the elements; that of the chunk after the last is their end. */
inline size_t chunkStart(const Operation& operation, size_t chunk, size_t chunks) {
  return std::min(chunk * chunkElements(operation, chunks), operation.count) * typeSize(operation.type);
}

/**
 * Folds elements of a reduction, of which `last` is this rank, from this one on, in the order of a ring of NCCL: it ends with the rank
 * that gets the result or, in an AllReduce, with that of the chunk. With more than two ranks, NCCL's order in an AllReduce depends on more than the
 * call, and here it is that of the ranks.
 */
inline void foldElements(const Operation& operation, Reduction reduction, size_t from, size_t count, void* target) {
  const int ranks = reduction.ranks;
  size_t first = count;
  if (operation.call == Call::AllReduce && ranks > 2) {
    reduction.last = ranks - 1;
  } else if (operation.call == Call::AllReduce && !isInChunks(operation, ranks)) {
    size_t chunk = chunkElements(operation, 2);
    first = std::min(count, chunk - std::min(chunk, from));
    reduction.last = 0;
  }
  fold(reduction, 0, first, target);
  if (first == count) return;
  reduction.last = 1;
  fold(reduction, first, count, target);
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

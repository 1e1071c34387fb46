// fold.h: the fold of a reduction at one rank, straight from the rings of the other ranks, or from windows.
#pragma once

#include <string.h>

#include <algorithm>
#include <vector>

#include "protocol/exchange.h"

namespace host {

/** Queues elements for all other ranks but one. */
inline void queueForOthers(Comm& comm, const char* elements, size_t bytes, int except = -1) {
  for (Peer& peer : comm.peers) {
    if (peer.rank != comm.rank && peer.rank != except) peer.queue(elements, bytes);
  }
}

class Fold {
 public:
  Fold(Comm& comm, const Operation& operation)
      : comm_(comm),
        operation_(operation),
        element_(typeSize(operation.type)),
        inputs_(comm.peers.size()),
        scalars_(comm.peers.size()),
        inWindow_(comm.peers.size()) {}

  /** Call if this rank folds so many elements of each rank, its own from `own` on. */
  void start(char* target, const char* own, size_t count) {
    isOpen_ = true;
    target_ = target;
    own_ = own;
    left_ = count;
    setScalar(comm_.rank, operation_.extras().scalar);
    inRings_ = comm_.allHave(Capability::ReadInPlace);
    if (inRings_) return;
    windowElements_ = std::min(count, kWindow / element_);
    // Each window starts on a cache line.
    windowStride_ = (windowElements_ * element_ + 63) / 64 * 64;
    scratch_ = comm_.scratch.ofSize(windowStride_ * inputs_.size());
  }
  /** True: the other ranks get the folded elements. */
  void setShares(bool shares) { shares_ = shares; }
  /** True: the result overwrites elements that are to be sent first. */
  void setSendsFirst(bool first) { sendsFirst_ = first; }
  /** For PreMulSum. */
  void setScalar(int rank, uint64_t scalar) { scalars_[static_cast<size_t>(rank)] = scalar; }

  /** True if this rank folds, and has not folded all elements. */
  bool isOpen() const { return isOpen_; }
  /** True if the elements are folded where they arrive. */
  bool isInRings() const { return isOpen_ && inRings_; }
  /** Bytes of each rank that are to be folded. */
  size_t bytesLeft() const { return left_ * element_; }
  /** Bytes from this peer without which no element can be folded. */
  size_t unfoldedFrom(Peer& peer) const {
    return peer.rank != comm_.rank && left_ > 0 && peer.data->available() < element_ ? element_ : 0;
  }
  /** True if elements of all ranks are in the rings. */
  bool canFold() const {
    if (sendsFirst_ && !allSent()) return false;
    return std::all_of(comm_.peers.begin(), comm_.peers.end(), [&](Peer& peer) { return unfoldedFrom(peer) == 0; });
  }

  /** The destination of the next elements from a rank. */
  Space spaceFor(int rank) const {
    size_t there = inWindow_[static_cast<size_t>(rank)];
    return {window(rank) + there, windowBytes() - there};
  }
  void received(int rank, size_t bytes) { inWindow_[static_cast<size_t>(rank)] += bytes; }

  /** Takes the elements of the peer's last frame. */
  void addInlined(const Peer& peer, size_t bytes) {
    inputs_[static_cast<size_t>(peer.rank)] = peer.inlined();
    received(peer.rank, bytes);
  }
  /** Call after addInlined: folds the elements of all ranks, or keeps those of some until the others arrive. */
  void foldInlined(bool fromAll) {
    if (fromAll) {
      foldInputs(left_);
      isOpen_ = false;
      return;
    }
    // The elements of ranks without shared memory follow their frames.
    for (size_t rank = 0; rank < inputs_.size(); rank++) {
      if (inWindow_[rank] > 0) memcpy(window(static_cast<int>(rank)), inputs_[rank], inWindow_[rank]);
    }
  }

  /** Folds elements of full windows. */
  void foldWindows() {
    if (inRings_ || (sendsFirst_ && !allSent())) return;
    while (left_ > 0) {
      for (size_t rank = 0; rank < inputs_.size(); rank++) {
        if (static_cast<int>(rank) != comm_.rank && inWindow_[rank] < windowBytes()) return;
        inputs_[rank] = window(static_cast<int>(rank));
      }
      foldInputs(std::min(windowElements_, left_));
      for (size_t& bytes : inWindow_) bytes = 0;
    }
    isOpen_ = false;
  }

  /** Folds elements that all other ranks have put into their rings; true if there were some. */
  bool foldRings() {
    if (sendsFirst_ && !allSent()) return false;
    bool moved = false;
    while (left_ > 0) {
      size_t bytes = std::min(bytesLeft(), kPiece);
      comm_.eachPeer([&](Peer& peer) {
        size_t there;
        inputs_[static_cast<size_t>(peer.rank)] = peer.data->readable(there);
        bytes = std::min(bytes, there);
      });
      if (bytes >= element_) {
        foldInputs(bytes / element_);
        comm_.eachPeer([&](Peer& peer) { peer.data->consume(bytes / element_ * element_); });
      } else if (!foldAcrossEnd()) {
        return moved;
      }
      moved = true;
    }
    isOpen_ = false;
    return true;
  }

 private:
  static constexpr size_t kWindow = 256 << 10;
  // Maximum size of the elements that are folded before they are sent on.
  static constexpr size_t kPiece = 32 << 10;

  bool allSent() const {
    return std::all_of(comm_.peers.begin(), comm_.peers.end(), [](const Peer& peer) { return peer.out.empty(); });
  }

  char* window(int rank) const { return scratch_ + windowStride_ * static_cast<size_t>(rank); }
  size_t windowBytes() const { return std::min(windowElements_, left_) * element_; }

  /** Folds one element that may begin at the end of a ring and end at its start; false if a rank has sent none. */
  bool foldAcrossEnd() {
    if (!canFold()) return false;
    std::vector<uint64_t> elements(inputs_.size());
    comm_.eachPeer([&](Peer& peer) {
      uint64_t& copied = elements[static_cast<size_t>(peer.rank)];
      peer.data->receive(&copied, element_);
      inputs_[static_cast<size_t>(peer.rank)] = &copied;
    });
    foldInputs(1);
    return true;
  }

  /** Folds the next elements of inputs_ and of this rank. */
  void foldInputs(size_t count) {
    size_t bytes = count * element_;
    inputs_[static_cast<size_t>(comm_.rank)] = own_;
    size_t done = operation_.count - left_;
    Reduction reduction{operation_.type, operation_.op, comm_.ranks, comm_.rank, inputs_.data(), scalars_.data()};
    foldElements(operation_, reduction, done, count, target_);
    if (shares_) queueForOthers(comm_, target_, bytes);
    target_ += bytes;
    own_ += bytes;
    left_ -= count;
  }

  Comm& comm_;
  const Operation& operation_;
  const size_t element_;  // bytes
  ByRank<const void*> inputs_;
  ByRank<uint64_t> scalars_;
  ByRank<size_t> inWindow_;  // bytes in the current window
  bool isOpen_ = false;
  bool inRings_ = false;
  bool sendsFirst_ = false;
  bool shares_ = false;
  char* target_ = nullptr;
  const char* own_ = nullptr;
  size_t left_ = 0;  // elements
  size_t windowElements_ = 0;
  size_t windowStride_ = 0;
  char* scratch_ = nullptr;
};

}  // namespace host

// eager.cpp: collectives whose elements come with the frames of the ranks.
//
// Most small collectives end here: they make no task, queue nothing, and do not sleep.

#include <string.h>

#include "exchange.h"
#include "processors.h"
#include "reduce.h"
#include "task.h"

namespace host {
namespace {

/** Maximum number of ranks. With more, their messages take longer than the rest of a call. */
constexpr int kMostRanks = 32;

/** Looks at the frames of other ranks before a task waits for them; about 10 us. */
constexpr int kLooks = 128;

bool isEager(const Comm& comm, const Operation& operation) {
  Call call = operation.call;
  bool listed = isReduction(call) || isRooted(call) || call == Call::AllGather || call == Call::AlltoAll;
  return listed && !operation.hasExtras() && operation.bytes() <= kMaxInlined && comm.ranks <= kMostRanks && !comm.crowded;
}

class EagerCollective {
 public:
  EagerCollective(Comm& comm, const Operation& operation)
      : comm_(comm),
        operation_(operation),
        exchange_(operation, comm.rank),
        folds_(exchange_.folds()),
        mine_(operation.frame()),
        bytes_(operation.bytes()) {}

  /** False if a frame cannot be sent at once, or other messages of a peer come first. Reserves the memory for send. */
  bool prepare() {
    for (Peer& peer : comm_.peers) {
      if (peer.rank == comm_.rank) continue;
      bool usual = peer.data.shared() && peer.out.empty() && peer.remoteSends.empty() && peer.remoteRecvs.empty();
      if (!usual || !peer.data.hasRoomForFrame(bytes_)) return false;
      if (!awaits(peer)) peer.unverified.makeRoom();
    }
    return true;
  }

  void send() {
    for (int rank = comm_.next(comm_.rank); rank != comm_.rank; rank = comm_.next(rank)) {
      Peer& peer = comm_.peers[static_cast<size_t>(rank)];
      const char* elements = exchange_.elementsFor(rank);
      peer.postInlined(mine_, elements, elements != nullptr ? bytes_ : 0);
      // Compared when it arrives.
      if (!awaits(peer)) peer.unverified.push_back(mine_);
    }
  }

  /** True if all awaited frames are there and of this call. Else sets the ranks of which one is in Peer::frame. */
  bool receive(uint32_t& arrived) {
    int looks = kLooks;
    for (Peer& peer : comm_.peers) {
      if (peer.rank == comm_.rank) continue;
      Arrival arrival = Arrival::Right;
      if (awaits(peer)) {
        arrival = takeFrame(peer, looks);
        if (arrival != Arrival::None) arrived |= 1u << peer.rank;
      } else if (peer.unverified.size() >= kLateFrames && takeLate(peer) == Arrival::Wrong) {
        arrival = Arrival::Wrong;
        arrived |= 1u << peer.rank;
      }
      if (arrival != Arrival::Right) return false;
    }
    return true;
  }

  void finish() {
    const char* own = exchange_.elementsFor(comm_.rank);
    if (folds_) {
      const void* inputs[kMostRanks];
      for (const Peer& peer : comm_.peers) inputs[peer.rank] = peer.rank == comm_.rank ? own : peer.inlined();
      fold(operation_.type, operation_.op, operation_.recv, inputs, comm_.ranks, operation_.count, nullptr);
      return;
    }
    if (bytes_ == 0) return;
    for (const Peer& peer : comm_.peers) {
      char* place = exchange_.placeOf(peer.rank);
      if (place == nullptr) continue;
      if (peer.rank != comm_.rank) {
        memcpy(place, peer.inlined(), bytes_);
      } else if (place != own) {
        memmove(place, own, bytes_);
      }
    }
  }

 private:
  /** Bytes of elements in the frame of a peer. */
  size_t expected(const Peer& peer) const {
    return folds_ || exchange_.placeOf(peer.rank) != nullptr ? bytes_ : 0;
  }
  bool awaits(const Peer& peer) const { return !isRooted(operation_.call) || expected(peer) > 0; }

  enum class Arrival { None, Right, Wrong };

  /** Takes the frames of earlier calls: Right if all have arrived, Wrong if the last one taken is. */
  Arrival takeLate(Peer& peer) {
    while (!peer.unverified.empty()) {
      if (peer.receiveFrame() <= 0) return Arrival::None;
      if (!isSameCall(peer.frame, peer.unverified.front()) || peer.frame.inlined > 0) return Arrival::Wrong;
      peer.unverified.pop_front();
    }
    return Arrival::Right;
  }

  /** Takes the frames of earlier calls and that of this call. */
  Arrival takeFrame(Peer& peer, int& looks) {
    for (;;) {
      Arrival late = takeLate(peer);
      if (late == Arrival::Wrong) return late;
      if (late == Arrival::Right && peer.receiveFrame() > 0) {
        bool right = isSameCall(peer.frame, mine_) && peer.frame.inlined == expected(peer);
        return right ? Arrival::Right : Arrival::Wrong;
      }
      if (looks-- <= 0) return Arrival::None;
      relax();
    }
  }

  Comm& comm_;
  const Operation& operation_;
  const Exchange exchange_;
  const bool folds_;
  const Frame mine_;
  const size_t bytes_;
};

}  // namespace

bool runEagerly(Comm& comm, const Operation& operation, Begun& begun) {
  if (!isEager(comm, operation)) return false;
  std::unique_lock<Baton> lock(comm.operation, std::try_to_lock);
  if (!lock.owns_lock() || comm.mayBeDisturbed()) return false;
  EagerCollective collective(comm, operation);
  if (!collective.prepare()) return false;
  collective.send();
  uint32_t arrived = 0;
  if (!collective.receive(arrived)) {
    begun = {std::move(lock), arrived};
    return false;
  }
  collective.finish();
  return true;
}

}  // namespace host

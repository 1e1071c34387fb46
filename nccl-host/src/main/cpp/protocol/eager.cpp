// eager.cpp: operations whose elements come with the frames of the ranks.
//
// Most small operations end here: they make no task, queue nothing, and do not sleep.

#include <string.h>

#include <algorithm>

#include "base/processors.h"
#include "protocol/exchange.h"
#include "protocol/task.h"
#include "protocol/tree.h"

namespace host {
namespace {

/** Maximum number of ranks. With more, the messages of a collective take longer than the rest of the call. */
constexpr int kMostRanks = 32;

/** Maximum number of Send and Recv calls of a group. */
constexpr size_t kMostMessages = 8;

bool isEager(const Operation& operation, const Comm& comm) {
  Call call = operation.call;
  bool listed = isReduction(call) || isRooted(call) || isPointToPoint(call) || call == Call::AllGather ||
                call == Call::AlltoAll;
  if (!listed || operation.hasExtras()) return false;
  if (call == Call::Broadcast) return isShortBroadcast(operation);
  // The chunk of rank 0 is the longest.
  bool inChunks = isInChunks(operation, comm.ranks);
  size_t elements = inChunks ? chunkStart(operation, 1, static_cast<size_t>(comm.ranks)) : operation.bytes();
  return elements <= kMaxInlined;
}

/** True if a frame to the peer can be sent now, and its next frame is that of this operation or of earlier collectives. */
bool isIdle(Peer& peer, size_t elements) {
  bool idle = peer.out.empty() && !peer.calls.hasMessages();
  return idle && peer.data->hasRoomForFrame(elements);
}

enum class FrameCheck { None, Match, Mismatch };

/** For the frames of other ranks, before a task waits for them. */
Polling pollingOf(const Comm& comm) { return Polling(comm.crowded, 1, comm.crowded ? PollingTime::kLeast : 10e-6); }

/** Takes the frames of earlier calls: Match if all have arrived, Mismatch if the last one taken is of another call. */
FrameCheck takeLate(Peer& peer) {
  while (!peer.calls.unverified.empty()) {
    if (peer.receiveFrame() <= 0) return FrameCheck::None;
    if (!peer.takeEarlier()) return FrameCheck::Mismatch;
  }
  return FrameCheck::Match;
}

/** Takes the frames of earlier calls, and one more: Match if isRight accepts it. */
template <class IsRight>
FrameCheck takeFrame(Peer& peer, Polling& polling, IsRight&& isRight) {
  for (;;) {
    FrameCheck late = takeLate(peer);
    if (late == FrameCheck::Mismatch) return late;
    if (late == FrameCheck::Match && peer.receiveFrame() > 0) {
      if (peer.takeEarlier()) continue;
      return isRight(peer.frame) ? FrameCheck::Match : FrameCheck::Mismatch;
    }
    if (!polling.again()) return FrameCheck::None;
  }
}

/** As takeFrame; sets the rank in `begun` if a frame has arrived. */
template <class IsRight>
bool await(Peer& peer, Polling& polling, Begun& begun, IsRight&& isRight) {
  FrameCheck check = takeFrame(peer, polling, isRight);
  if (check != FrameCheck::None) begun.arrived |= 1u << peer.rank;
  return check == FrameCheck::Match;
}

class EagerCollective {
 public:
  EagerCollective(Comm& comm, const Operation* operation, size_t)
      : comm_(comm),
        operation_(*operation),
        exchange_(*operation, comm.rank),
        mine_(operation->frame()),
        bytes_(operation->bytes()) {
    bool rooted = isRooted(operation->call);
    for (int rank = 0; rank < comm.ranks; rank++) {
      if (rank != comm.rank && (!rooted || expected(rank) > 0)) awaited_ |= 1u << rank;
    }
  }

  /** False if a frame cannot be sent at once, or other messages of a peer come first. Reserves the memory for send. */
  bool prepare() {
    for (Peer& peer : comm_.peers) {
      if (peer.rank == comm_.rank) continue;
      if (!isIdle(peer, bytes_)) return false;
      peer.data->prefetchForPut(exchange_.elementsFor(peer.rank) != nullptr ? bytes_ : 0);
      if (!awaits(peer)) peer.calls.unverified.makeRoom();
    }
    return true;
  }

  void send() {
    comm_.matcher.enter(mine_);
    comm_.eachPeer([&](Peer& peer) {
      const char* elements = exchange_.elementsFor(peer.rank);
      Frame frame = mine_;
      if (elements != nullptr) frame.add(elements, bytes_);
      peer.data->putFrame(frame, elements);
      // Compared when it arrives.
      if (!awaits(peer)) peer.calls.unverified.push_back(mine_);
    });
    Channel::fence();
    comm_.eachPeer([&](Peer& peer) {
      peer.data->wakeReader();
      if (awaits(peer)) peer.data->prefetchForReceive(expected(peer.rank));
    });
  }

  /** True if all awaited frames are there and of this call. Else sets the ranks in `begun`. */
  bool receive(Begun& begun) {
    Polling polling = pollingOf(comm_);
    for (Peer& peer : comm_.peers) {
      if (peer.rank == comm_.rank) continue;
      if (awaits(peer)) {
        auto isRight = [&](const Frame& frame) { return isSameCall(frame, mine_) && frame.inlined == expected(peer.rank); };
        if (!await(peer, polling, begun, isRight)) return false;
      } else if (peer.calls.unverified.size() >= kLateFrames && takeLate(peer) == FrameCheck::Mismatch) {
        begun.arrived |= 1u << peer.rank;
        return false;
      }
    }
    return true;
  }

  void finish() {
    const char* own = exchange_.elementsFor(comm_.rank);
    if (exchange_.folds()) {
      const void* inputs[kMostRanks];
      for (const Peer& peer : comm_.peers) inputs[peer.rank] = peer.rank == comm_.rank ? own : peer.inlined();
      Reduction reduction{operation_.type, operation_.op, comm_.ranks, comm_.rank, inputs, nullptr};
      foldElements(operation_, reduction, 0, operation_.count, operation_.recv);
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
  /** Bytes of elements in the frame of a rank. */
  size_t expected(int rank) const { return exchange_.folds() || exchange_.placeOf(rank) != nullptr ? bytes_ : 0; }
  bool awaits(const Peer& peer) const { return (awaited_ >> peer.rank & 1) != 0; }

  Comm& comm_;
  const Operation& operation_;
  const Exchange exchange_;
  Frame mine_;
  const size_t bytes_;
  uint32_t awaited_ = 0;  // a bit for each rank without whose frame this call cannot end
};

/** An AllReduce of which each rank folds a chunk, which comes with the frames, and sends the result to the others. */
class EagerChunks {
 public:
  EagerChunks(Comm& comm, const Operation* operation, size_t)
      : comm_(comm), operation_(*operation), mine_(operation->frame()) {}

  /** As for other collectives. */
  bool prepare() {
    for (Peer& peer : comm_.peers) {
      if (peer.rank == comm_.rank) continue;
      if (!isIdle(peer, bytesOf(peer.rank)) || !peer.data->hasRoomFor(bytesOf(comm_.rank))) return false;
      peer.data->prefetchForPut(bytesOf(peer.rank));
    }
    return true;
  }

  void send() {
    comm_.matcher.enter(mine_);
    comm_.eachPeer([&](Peer& peer) {
      const char* elements = operation_.send + startOf(peer.rank);
      Frame frame = mine_;
      frame.add(elements, bytesOf(peer.rank));
      peer.data->putFrame(frame, elements);
    });
    wakePeers();
  }

  /** As for other collectives. */
  bool receive(Begun& begun) {
    Polling polling = pollingOf(comm_);
    for (Peer& peer : comm_.peers) {
      if (peer.rank == comm_.rank) continue;
      auto isRight = [&](const Frame& frame) { return frame.inlined == bytesOf(comm_.rank) && isSameCall(frame, mine_); };
      if (!await(peer, polling, begun, isRight)) return false;
    }
    share();
    begun.isShared = true;
    for (Peer& peer : comm_.peers) {
      while (peer.rank != comm_.rank && peer.data->available() < bytesOf(peer.rank)) {
        if (!polling.again()) return false;
      }
    }
    return true;
  }

  void finish() {
    for (Peer& peer : comm_.peers) {
      char* chunk = operation_.recv + startOf(peer.rank);
      if (peer.rank == comm_.rank) {
        memcpy(chunk, folded_, bytesOf(peer.rank));
      } else {
        peer.data->receive(chunk, bytesOf(peer.rank));
      }
    }
  }

 private:
  size_t startOf(int rank) const {
    return chunkStart(operation_, static_cast<size_t>(rank), static_cast<size_t>(comm_.ranks));
  }
  size_t bytesOf(int rank) const { return startOf(rank + 1) - startOf(rank); }

  void wakePeers() {
    Channel::fence();
    comm_.eachPeer([](Peer& peer) { peer.data->wakeReader(); });
  }

  /** Folds this rank's chunk and sends it to the other ranks. Not in place: a task may have to fold it again. */
  void share() {
    size_t bytes = bytesOf(comm_.rank);
    const void* inputs[kMostRanks];
    for (const Peer& peer : comm_.peers) inputs[peer.rank] = peer.inlined();
    inputs[comm_.rank] = operation_.send + startOf(comm_.rank);
    Reduction reduction{operation_.type, operation_.op, comm_.ranks, comm_.rank, inputs, nullptr};
    foldElements(operation_, reduction, 0, bytes / typeSize(operation_.type), folded_);
    comm_.eachPeer([&](Peer& peer) { peer.data->putBytes(folded_, bytes); });
    wakePeers();
  }

  Comm& comm_;
  const Operation& operation_;
  Frame mine_;
  alignas(16) char folded_[kMaxInlined];
};

/** A Broadcast of elements that pass a tree. */
class EagerBroadcast {
 public:
  EagerBroadcast(Comm& comm, const Operation* operation, size_t)
      : comm_(comm),
        operation_(*operation),
        tree_(comm.rank, operation->root, comm.ranks),
        mine_(operation->frame()),
        bytes_(operation->bytes()),
        inlined_(bytes_ <= kMaxInlined ? bytes_ : 0) {}

  /** As for other collectives. */
  bool prepare() {
    bool idle = comm_.haveOptionalFrames() && (tree_.isRoot() || isIdle(parent(), 0));
    tree_.eachChild([&](int rank) {
      idle = idle && isIdle(peer(rank), inlined_) && peer(rank).data->hasRoomFor(bytes_ - inlined_);
    });
    if (!idle) return false;
    if (tree_.isRoot()) {
      tree_.eachChild([&](int rank) { peer(rank).data->prefetchForPut(inlined_); });
    } else {
      parent().data->prefetchForReceive(inlined_);
    }
    return true;
  }

  void send() {
    comm_.matcher.enter(mine_);
    if (tree_.isRoot()) forward(operation_.send);
  }

  /** As for other collectives. */
  bool receive(Begun& begun) {
    if (tree_.isRoot()) return true;
    Polling polling = pollingOf(comm_);
    auto isRight = [&](const Frame& frame) { return frame.inlined == inlined_ && isSameCall(frame, mine_); };
    if (!await(parent(), polling, begun, isRight)) return false;
    // If the parent runs a task, its elements come after their frame.
    while (parent().data->available() < bytes_ - inlined_) {
      if (!polling.again()) return false;
    }
    return true;
  }

  void finish() {
    if (tree_.isRoot()) {
      if (operation_.recv != operation_.send) memmove(operation_.recv, operation_.send, bytes_);
    } else if (inlined_ > 0) {
      forward(parent().inlined());
      memcpy(operation_.recv, parent().inlined(), bytes_);
    } else {
      parent().data->receive(operation_.recv, bytes_);
      forward(operation_.recv);
    }
  }

 private:
  Peer& peer(int rank) { return comm_.peers[static_cast<size_t>(rank)]; }
  Peer& parent() { return peer(tree_.parent()); }

  void forward(const char* elements) {
    if (!tree_.hasChildren()) return;
    Frame frame = mine_;
    frame.add(elements, inlined_);
    tree_.eachChild([&](int rank) {
      if (inlined_ == 0) peer(rank).data->putBytes(elements, bytes_);
      peer(rank).data->putFrame(frame, elements);
    });
    Channel::fence();
    tree_.eachChild([&](int rank) { peer(rank).data->wakeReader(); });
  }

  Comm& comm_;
  const Operation& operation_;
  const Tree tree_;
  Frame mine_;
  const size_t bytes_;
  const size_t inlined_;  // bytes of elements that come with a frame: all or none
};

/** Send and Recv calls of a group, at most one of each for a rank. This rank has no connection to itself. */
class EagerMessages {
 public:
  EagerMessages(Comm& comm, const Operation* operations, size_t count)
      : comm_(comm), operations_(operations), count_(count) {}

  /** As for collectives; also false for other calls. */
  bool prepare() {
    for (const Operation* operation = operations_; operation != operations_ + count_; operation++) {
      Lane& lane = laneOf(comm_.peers[static_cast<size_t>(operation->root)]);
      bool sends = operation->call == Call::Send;
      const Operation*& place = sends ? lane.send : lane.recv;
      if (place != nullptr) return false;
      place = operation;
      (sends ? lane.sent : lane.received) = operation->bytes();
    }
    for (Lane* lane = lanes_; lane != end_; lane++) {
      if (!isIdle(*lane->peer, lane->sent)) return false;
      // Two frames would be needed.
      if (lane->send != nullptr && lane->recv != nullptr && !lane->areOne()) return false;
      lane->buffered = lane->isBuffered(*lane->peer, lane->sent);
      lane->unannounced = lane->mayFindBuffered(*lane->peer, lane->received);
    }
    return true;
  }

  void send() {
    for (Lane* lane = lanes_; lane != end_; lane++) {
      if (lane->unannounced) continue;
      const Operation& first = lane->send != nullptr ? *lane->send : *lane->recv;
      Frame frame = first.frame();
      comm_.matcher.toPost(frame);
      frame.send = lane->buffered ? SendKind::Buffered : lane->both() ? SendKind::AlsoReceives : SendKind::Alone;
      frame.add(first.send, lane->sent);
      lane->peer->data->putFrame(frame, first.send);
      if (lane->buffered) lane->peer->credits.add(frame);
    }
    Channel::fence();
    for (Lane* lane = lanes_; lane != end_; lane++) {
      if (!lane->unannounced) lane->peer->data->wakeReader();
    }
  }

  /** As for collectives. */
  bool receive(Begun& begun) {
    Polling polling = pollingOf(comm_);
    for (Lane* lane = lanes_; lane != end_; lane++) {
      Peer& peer = *lane->peer;
      if (lane->buffered) {
        FrameCheck check = awaitCredit(peer, polling);
        if (check == FrameCheck::Mismatch) begun.arrived |= 1u << peer.rank;
        if (check != FrameCheck::Match) return false;
      } else {
        auto isRight = [&](const Frame& frame) {
          // Of Recvs that the peer called before.
          peer.takeCredits();
          return lane->isMatch(frame, comm_);
        };
        if (!await(peer, polling, begun, isRight)) return false;
      }
    }
    return true;
  }

  void finish() {
    for (const Lane* lane = lanes_; lane != end_; lane++) {
      if (lane->received > 0) memcpy(lane->recv->recv, lane->peer->inlined(), lane->received);
      if (lane->unannounced) lane->peer->data->returnCredit();
      if (lane->send != nullptr) lane->peer->credits.hasSent();
      if (lane->recv != nullptr) lane->peer->credits.hasReceived();
    }
  }

 private:
  /** The calls that concern a peer, or NULL. */
  struct Lane : Messages {
    Peer* peer;
    size_t sent;    // bytes
    size_t received;
    bool buffered;  // the Send need not wait for its Recv

    bool both() const { return send != nullptr && recv != nullptr; }

    /** True if the peer's frame announces the calls that match these, and no other. */
    bool isMatch(const Frame& frame, const Comm& comm) const {
      const Operation& own = recv != nullptr ? *recv : *send;
      return frame.kind == FrameKind::Post && frame.sequence == comm.matcher.sequence() && frame.peer == comm.rank &&
             haveSameElements(frame, own) && frame.call == (recv != nullptr ? Call::Send : Call::Recv) &&
             (both() ? frame.send == SendKind::AlsoReceives && peer->credits.open() == 0
                     : frame.isBuffered() || (frame.send == SendKind::Alone && !unannounced)) &&
             frame.inlined == received;
    }
  };

  /** Waits until few enough buffered Sends lack their Recv. */
  static FrameCheck awaitCredit(Peer& peer, Polling& polling) {
    while (peer.credits.areAwaited()) {
      if (peer.receiveFrame() > 0) {
        if (!peer.takeEarlier()) return FrameCheck::Mismatch;
      } else if (peer.credits.areAwaited() && !polling.again()) {
        return FrameCheck::None;
      }
    }
    return FrameCheck::Match;
  }

  Lane& laneOf(Peer& peer) {
    for (Lane* lane = lanes_; lane != end_; lane++) {
      if (lane->peer == &peer) return *lane;
    }
    *end_ = {};
    end_->peer = &peer;
    return *end_++;
  }

  Comm& comm_;
  const Operation* const operations_;
  const size_t count_;
  Lane lanes_[kMostMessages];
  Lane* end_ = lanes_;
};

/** See runEagerly. */
template <class Eager>
bool run(Comm& comm, const Operation* operations, size_t count, Begun& begun) {
  std::unique_lock<Baton> lock(comm.operation, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  Eager eager(comm, operations, count);
  if (!eager.prepare() || comm.isDisturbed([&] { return "during " + nameOf(operations, count); })) return false;
  eager.send();
  if (!eager.receive(begun)) {
    begun.lock = std::move(lock);
    return false;
  }
  eager.finish();
  return true;
}

}  // namespace

bool runEagerly(Comm& comm, const Operation* operations, size_t count, Begun& begun) {
  if (comm.ranks > kMostRanks || count > kMostMessages) return false;
  size_t messages = 0;
  for (const Operation* operation = operations; operation != operations + count; operation++) {
    if (!isEager(*operation, comm)) return false;
    messages += isPointToPoint(operation->call);
  }
  if (messages == count) return run<EagerMessages>(comm, operations, count, begun);
  if (count != 1) return false;
  if (isShortBroadcast(*operations)) return run<EagerBroadcast>(comm, operations, count, begun);
  if (isInChunks(*operations, comm.ranks)) return run<EagerChunks>(comm, operations, count, begun);
  return run<EagerCollective>(comm, operations, count, begun);
}

}  // namespace host

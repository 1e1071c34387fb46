// pointtopoint.cpp: the Send and Recv calls of one group.
//
// Both ranks first announce their calls; the k-th Send to a rank matches the k-th Recv there. When both calls are known
// and agree, elements flow directly into the receiver's buffer. The elements of a short Send are eager: they belong to its
// announcement, or follow it. Many elements of the only Send to a rank are offered in its announcement; see channel.h.
//
// Credits has the rules for Sends that do not wait for their Recv. The Recv of a Send that may be buffered is not announced before
// the Send arrives, unless that takes long.

#include <string.h>

#include <algorithm>
#include <utility>

#include "protocol/task.h"

namespace host {
namespace {

class PointToPoint final : public Task {
 public:
  PointToPoint(Comm& comm, Operation* operations, size_t count, bool isSent)
      : Task(comm), operations_(operations), count_(count), isSent_(isSent), lanes_(comm.peers.size()) {}
  PointToPoint(Comm& comm, std::vector<Operation>&& operations, bool isSent)
      : PointToPoint(comm, operations.data(), operations.size(), isSent) {
    // The elements stay where they are.
    owned_ = std::move(operations);
  }

  void start() override {
    // Backwards, so that each call is put before the later ones.
    for (size_t i = count_; i-- > 0;) {
      Operation& operation = operations_[i];
      Lane& lane = lanes_[static_cast<size_t>(operation.root)];
      const Operation*& first = operation.call == Call::Send ? lane.send : lane.recv;
      operation.next = std::exchange(first, &operation);
    }
    if (isSent_) {
      for (const Peer& peer : comm_.peers) {
        Lane& lane = laneOf(peer);
        lane.unannounced = lane.mayFindBuffered(peer, bytesOf(lane.recv));
        if (lane.isBuffered(peer, bytesOf(lane.send))) lane.send = nullptr;
      }
      return;
    }
    copyOwn();
    for (Peer& peer : comm_.peers) {
      announce(peer);
      // Announcements that arrived during earlier waits.
      if (unfinished(peer) || peer.credits.open() > 0) match(peer);
    }
  }

  bool involves(const Peer& peer) const override { return unfinished(peer); }

  void announceWait() override {
    for (Peer& peer : comm_.peers) announceRecv(peer);
  }

  Wanted wants(Peer& peer) override {
    const Lane& lane = laneOf(peer);
    if (lane.incoming.size > 0) return {false, lane.incoming, 1};
    if (!unfinished(peer)) return {};
    PeerCalls::Send* send = arriving(peer);
    if (send == nullptr) return {true, {}, 0};
    send->elements.resize(eagerBytes(send->frame));
    return {false, {&send->elements[send->elements.size() - send->missing], send->missing}, 1};
  }

  void framed(Peer& peer) override {
    Lane& lane = laneOf(peer);
    const Frame& frame = peer.frame;
    switch (frame.kind) {
      case FrameKind::Collective:
        if (comm_.matcher.stopIfAhead(peer, 1)) return;
        comm_.matcher.failMismatch(peer, frame, firstUnfinished(peer));
      case FrameKind::Post:
        comm_.matcher.checkPost(peer);
        // A buffered Send may be older than collectives that this rank has called.
        if (!frame.isBuffered()) {
          if (comm_.matcher.stopIfAhead(peer, 0)) return;
          if (frame.sequence != comm_.matcher.sequence()) comm_.matcher.failBehind(peer, frame, description());
        }
        if (frame.receives()) peer.calls.recvs.push_back(frame);
        if (frame.sends()) peer.calls.sends.push_back({frame, {}, eagerBytes(frame) - frame.inlined});
        match(peer);
        peer.keepElements();
        break;
      case FrameKind::Data:
        if (lane.large == nullptr) {
          fail(ncclInternalError, "rank %d sent elements that rank %d does not expect", peer.rank, comm_.rank);
        }
        if (frame.count != lane.large->count) peer.failUnintelligible();
        lane.receive(*lane.large, lane.large->bytes());
        lane.large = nextLarge(lane, lane.large->next);
        peer.acceptOffer(frame, lane.incoming.size);
        break;
      default: peer.failUnintelligible();
    }
  }

  void received(Peer& peer, size_t bytes) override {
    Lane& lane = laneOf(peer);
    if (lane.incoming.size > 0) {
      lane.incoming.data += bytes;
      lane.incoming.size -= bytes;
    } else {
      arriving(peer)->missing -= bytes;
    }
    match(peer);
  }

  bool complete() const override {
    return std::none_of(comm_.peers.begin(), comm_.peers.end(), [&](const Peer& peer) { return unfinished(peer); });
  }

  bool completesWithoutPeers() const override { return isSent_; }
  std::string name() const override { return nameOf(operations_, count_); }

  std::string description() const override {
    for (const Lane& lane : lanes_) {
      if (isOpen(lane)) return describe(first(lane).frame());
    }
    return describe(operations_->frame());
  }

 private:
  /** The traffic with one rank in both directions, each in the order of the calls. */
  struct Lane : Messages {
    bool offered = false;  // the elements of the only Send
    const Operation* large = nullptr;  // the first matched Recv whose Data frame is to come
    const Operation* last = nullptr;   // the last Recv whose elements arrive
    Space incoming;

    void receive(const Operation& recv, size_t bytes) {
      last = &recv;
      incoming = {recv.recv, bytes};
    }
  };

  Lane& laneOf(const Peer& peer) { return lanes_[static_cast<size_t>(peer.rank)]; }

  static bool isOpen(const Lane& lane) {
    return lane.send != nullptr || lane.recv != nullptr || lane.large != nullptr || lane.incoming.size > 0;
  }
  bool unfinished(const Peer& peer) const {
    return isOpen(lanes_[static_cast<size_t>(peer.rank)]) || peer.credits.areAwaited();
  }

  static const Operation& first(const Lane& lane) {
    if (lane.incoming.size > 0) return *lane.last;
    return lane.large != nullptr ? *lane.large : lane.recv != nullptr ? *lane.recv : *lane.send;
  }
  Frame firstUnfinished(Peer& peer) { return isOpen(laneOf(peer)) ? first(laneOf(peer)).frame() : peer.credits.last(); }

  static size_t bytesOf(const Operation* message) { return message != nullptr ? message->bytes() : 0; }
  static bool isEager(const Operation& message) { return message.bytes() <= kEager; }

  void announce(Peer& peer) {
    Lane& lane = laneOf(peer);
    for (; lane.isBuffered(peer, bytesOf(lane.send)); lane.send = lane.send->next) {
      Frame frame = post(*lane.send);
      frame.send = SendKind::Buffered;
      peer.postInlined(frame, lane.send->send, lane.send->bytes());
      peer.credits.add(frame);
    }
    Messages left = lane;
    for (; left.send != nullptr; left.send = left.send->next) {
      Frame frame = post(*left.send);
      if (left.areOne()) {
        frame.send = SendKind::AlsoReceives;
        left.recv = left.recv->next;
      }
      if (isEager(*left.send)) {
        peer.postInlined(frame, left.send->send, left.send->bytes());
        continue;
      }
      // Frames after an offer wait for its answer.
      bool isOnly = left.send == lane.send && left.send->next == nullptr && left.recv == nullptr;
      lane.offered = isOnly && peer.postOffer(frame, left.send->send, left.send->bytes());
      if (!lane.offered) peer.post(frame, nullptr, 0);
    }
    for (; left.recv != nullptr; left.recv = left.recv->next) peer.post(post(*left.recv), nullptr, 0);
  }

  /** Announces the only Recv from a peer, unless it is announced. */
  void announceRecv(Peer& peer) {
    Lane& lane = laneOf(peer);
    if (std::exchange(lane.unannounced, false)) peer.post(post(*lane.recv), nullptr, 0);
  }

  Frame post(const Operation& operation) const {
    Frame frame = operation.frame();
    comm_.matcher.toPost(frame);
    return frame;
  }

  /** The Send whose elements are the next bytes of the peer, unless they have a Recv; or NULL. */
  static PeerCalls::Send* arriving(Peer& peer) {
    Fifo<PeerCalls::Send>& sends = peer.calls.sends;
    return sends.empty() || sends.back().missing == 0 ? nullptr : &sends.back();
  }

  /** The first Recv from this one on that is matched and not eager, or NULL. */
  static const Operation* nextLarge(const Lane& lane, const Operation* recv) {
    while (recv != lane.recv && isEager(*recv)) recv = recv->next;
    return recv != lane.recv ? recv : nullptr;
  }

  void match(Peer& peer) {
    Lane& lane = laneOf(peer);
    Fifo<Frame>& recvs = peer.calls.recvs;
    while (!recvs.empty() && peer.endBufferedSend()) recvs.pop_front();
    while (!recvs.empty() && lane.send != nullptr) {
      const Operation& mine = *lane.send;
      agree(peer, recvs.front(), mine);
      recvs.pop_front();
      lane.send = mine.next;
      peer.credits.hasSent();
      if (!isEager(mine) && !lane.offered) peer.postData(mine.frame(), mine.send, mine.bytes());
    }
    Fifo<PeerCalls::Send>& sends = peer.calls.sends;
    while (!sends.empty() && lane.recv != nullptr && lane.incoming.size == 0) {
      const Operation& mine = *lane.recv;
      const PeerCalls::Send& theirs = sends.front();
      agree(peer, theirs.frame, mine);
      // The beginning of the elements is in their string already.
      if (theirs.missing > 0 && !theirs.elements.empty()) break;
      if (theirs.frame.isBuffered() && std::exchange(lane.unannounced, false)) peer.data->returnCredit();
      announceRecv(peer);
      lane.recv = mine.next;
      peer.credits.hasReceived();
      if (!isEager(mine)) {
        if (lane.large == nullptr) {
          if (peer.acceptOffer(theirs.frame, mine.bytes())) {
            lane.receive(mine, mine.bytes());
          } else {
            lane.large = &mine;
          }
        }
      } else if (theirs.missing > 0) {
        lane.receive(mine, theirs.missing);
      } else if (mine.count > 0) {
        memcpy(mine.recv, elementsOf(peer, theirs), mine.bytes());
      }
      sends.pop_front();
    }
  }

  /** The elements of a Send that have all arrived. */
  static const char* elementsOf(const Peer& peer, const PeerCalls::Send& send) {
    return send.elements.empty() ? send.frame.elements(peer.elements) : send.elements.data();
  }

  void agree(const Peer& peer, const Frame& theirs, const Operation& mine) const {
    if (haveSameElements(theirs, mine)) return;
    // A Send that announced a Recv too.
    Frame call = theirs;
    if (mine.call == Call::Send) call.call = Call::Recv;
    comm_.matcher.failMismatch(peer, call, mine.frame());
  }

  /** Messages of this rank to itself; their match was checked when the group was closed. */
  void copyOwn() {
    Lane& lane = lanes_[static_cast<size_t>(comm_.rank)];
    for (const Operation *send = lane.send, *recv = lane.recv; send != nullptr; send = send->next, recv = recv->next) {
      if (send->count > 0 && recv->recv != send->send) memmove(recv->recv, send->send, send->bytes());
    }
    lane.send = lane.recv = nullptr;
  }

  std::vector<Operation> owned_;
  Operation* const operations_;
  const size_t count_;
  const bool isSent_;  // this rank's frames, by runEagerly
  ByRank<Lane> lanes_;
};

}  // namespace

std::unique_ptr<Task> makePointToPoint(Comm& comm, std::vector<Operation> operations, bool isSent) {
  return std::make_unique<PointToPoint>(comm, std::move(operations), isSent);
}

void runPointToPoint(Comm& comm, Operation* operations, size_t count, Begun&& begun) {
  PointToPoint messages(comm, operations, count, begun.isSent());
  runTask(comm, messages, std::move(begun));
}

}  // namespace host

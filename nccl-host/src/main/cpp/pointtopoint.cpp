// pointtopoint.cpp: the Send and Recv calls of one group.
//
// Both ranks first announce their calls; the k-th Send to a rank matches the k-th Recv there. When both calls are known
// and agree, elements flow directly into the receiver's buffer. The elements of a short Send are eager: they follow its
// announcement. Either Send ends only after the Recv was called: programs that rely on buffering inside NCCL hang here, as
// they may on GPUs.

#include <string.h>

#include "task.h"

namespace host {
namespace {

/** Limit for the bytes of an eager Send. Equal at all ranks. */
constexpr size_t kEager = 512;

class PointToPoint : public Task {
 public:
  PointToPoint(Comm& comm, std::vector<Operation> operations)
      : Task(comm), operations_(std::move(operations)), lanes_(comm.peers.size()) {}

  void start() override {
    for (Operation& operation : operations_) {
      Lane& lane = lanes_[static_cast<size_t>(operation.root)];
      (operation.call == Call::Send ? lane.sends : lane.recvs).push_back(&operation);
    }
    copyOwn();
    for (Operation& operation : operations_) {
      if (operation.root == comm_.rank) continue;
      Frame frame = operation.frame();
      frame.kind = FrameKind::Post;
      if (operation.call == Call::Send) frame.bytes = eagerBytes(operation);
      peer(operation.root).post(frame, operation.send, frame.bytes);
    }
    // Announcements that arrived during earlier waits.
    for (Peer& peer : comm_.peers) {
      if (peer.rank != comm_.rank) matchAnnounced(peer);
    }
  }

  Space want(Peer& peer) override {
    Lane& lane = laneOf(peer);
    if (lane.incoming.size > 0) return lane.incoming;
    if (!unfinished(peer)) return {};
    if (RemoteSend* send = arriving(peer)) return {&send->elements[send->arrived], send->elements.size() - send->arrived};
    return {reinterpret_cast<char*>(&peer.frame) + peer.frameBytes, sizeof peer.frame - peer.frameBytes};
  }

  void received(Peer& peer, size_t bytes) override {
    Lane& lane = laneOf(peer);
    if (lane.incoming.size > 0) {
      lane.incoming.data += bytes;
      lane.incoming.size -= bytes;
      if (lane.incoming.size == 0) {
        lane.received++;
        skipEager(lane);
      }
      return;
    }
    if (RemoteSend* send = arriving(peer)) {
      send->arrived += bytes;
      if (arriving(peer) == nullptr) matchAnnounced(peer);
      return;
    }
    peer.frameBytes += bytes;
    if (peer.frameBytes < sizeof peer.frame) return;
    peer.frameBytes = 0;
    const Frame& frame = peer.frame;
    if (frame.magic != kWireMagic) failUnintelligible(peer);
    switch (frame.kind) {
      case FrameKind::Collective: failMismatch(peer, frame, firstUnfinished(peer).frame());
      case FrameKind::Post:
        if (!isPointToPoint(frame.call) || frame.root != comm_.rank) failUnintelligible(peer);
        if (frame.bytes > (frame.call == Call::Send ? kEager : 0)) failUnintelligible(peer);
        if (frame.call == Call::Send) {
          peer.remoteSends.push_back({frame, std::string(frame.bytes, '\0'), 0});
        } else {
          peer.remoteRecvs.push_back(frame);
        }
        matchAnnounced(peer);
        break;
      case FrameKind::Data:
        skipEager(lane);
        if (lane.received >= lane.recvsMatched || frame.bytes != lane.recvs[lane.received]->bytes()) {
          fail(ncclInternalError, "rank %d sent elements that rank %d does not expect", peer.rank, comm_.rank);
        }
        lane.incoming = {lane.recvs[lane.received]->recv, lane.recvs[lane.received]->bytes()};
        break;
      default: failUnintelligible(peer);
    }
  }

  bool complete() const override {
    for (const Lane& lane : lanes_) {
      if (lane.sendsMatched < lane.sends.size() || lane.received < lane.recvs.size()) return false;
    }
    return true;
  }

  std::string name() const override {
    bool sends = false, recvs = false;
    for (const Operation& operation : operations_) (operation.call == Call::Send ? sends : recvs) = true;
    return sends && recvs ? "Send/Recv" : sends ? "Send" : "Recv";
  }

  std::string description() const override {
    for (size_t rank = 0; rank < lanes_.size(); rank++) {
      const Lane& lane = lanes_[rank];
      if (lane.received < lane.recvs.size()) return describe(lane.recvs[lane.received]->frame());
      if (lane.sendsMatched < lane.sends.size()) return describe(lane.sends[lane.sendsMatched]->frame());
    }
    return describe(operations_.front().frame());
  }

 private:
  /** The traffic with one rank in both directions, each in the order of the calls. */
  struct Lane {
    std::vector<const Operation*> sends, recvs;
    size_t sendsMatched = 0;
    size_t recvsMatched = 0;
    size_t received = 0;
    Space incoming;
  };

  Lane& laneOf(const Peer& peer) { return lanes_[static_cast<size_t>(peer.rank)]; }
  Peer& peer(int rank) { return comm_.peers[static_cast<size_t>(rank)]; }

  bool unfinished(const Peer& peer) {
    const Lane& lane = laneOf(peer);
    return lane.sendsMatched < lane.sends.size() || lane.received < lane.recvs.size();
  }

  const Operation& firstUnfinished(const Peer& peer) {
    const Lane& lane = laneOf(peer);
    return lane.sendsMatched < lane.sends.size() ? *lane.sends[lane.sendsMatched] : *lane.recvs[lane.received];
  }

  static bool isEager(const Operation& message) { return message.bytes() <= kEager; }
  static size_t eagerBytes(const Operation& message) { return isEager(message) ? message.bytes() : 0; }

  /** The Send whose elements are the next bytes of the peer, or NULL. */
  static RemoteSend* arriving(Peer& peer) {
    if (peer.remoteSends.empty()) return nullptr;
    RemoteSend& last = peer.remoteSends.back();
    return last.arrived < last.elements.size() ? &last : nullptr;
  }

  /** Eager calls have no data frame: they are complete when matched. */
  static void skipEager(Lane& lane) {
    while (lane.received < lane.recvsMatched && isEager(*lane.recvs[lane.received])) lane.received++;
  }

  void matchAnnounced(Peer& peer) {
    Lane& lane = laneOf(peer);
    while (!peer.remoteRecvs.empty() && lane.sendsMatched < lane.sends.size()) {
      const Operation& mine = *lane.sends[lane.sendsMatched];
      agree(peer, peer.remoteRecvs.front(), mine);
      peer.remoteRecvs.pop_front();
      lane.sendsMatched++;
      if (isEager(mine)) continue;
      Frame frame = mine.frame();
      frame.kind = FrameKind::Data;
      frame.bytes = mine.bytes();
      peer.post(frame, mine.send, mine.bytes());
    }
    while (!peer.remoteSends.empty() && lane.recvsMatched < lane.recvs.size()) {
      const Operation& mine = *lane.recvs[lane.recvsMatched];
      const RemoteSend& theirs = peer.remoteSends.front();
      agree(peer, theirs.frame, mine);
      if (theirs.elements.size() != eagerBytes(mine)) failUnintelligible(peer);
      if (theirs.arrived < theirs.elements.size()) break;
      if (theirs.arrived > 0) memcpy(mine.recv, theirs.elements.data(), theirs.arrived);
      peer.remoteSends.pop_front();
      lane.recvsMatched++;
    }
    if (lane.incoming.size == 0) skipEager(lane);
  }

  void agree(const Peer& peer, const Frame& theirs, const Operation& mine) const {
    if (theirs.count != mine.count || theirs.type != static_cast<uint8_t>(mine.type)) {
      failMismatch(peer, theirs, mine.frame());
    }
  }

  /** Messages of this rank to itself; their match was checked when the group was closed. */
  void copyOwn() {
    Lane& lane = lanes_[static_cast<size_t>(comm_.rank)];
    for (size_t i = 0; i < lane.sends.size(); i++) {
      size_t bytes = lane.sends[i]->bytes();
      if (bytes > 0 && lane.recvs[i]->recv != lane.sends[i]->send) {
        memmove(lane.recvs[i]->recv, lane.sends[i]->send, bytes);
      }
    }
    lane.sendsMatched = lane.recvsMatched = lane.received = lane.sends.size();
  }

  std::vector<Operation> operations_;
  std::vector<Lane> lanes_;
};

}  // namespace

std::unique_ptr<Task> makePointToPoint(Comm& comm, std::vector<Operation> operations) {
  return std::make_unique<PointToPoint>(comm, std::move(operations));
}

}  // namespace host

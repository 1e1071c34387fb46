// pointtopoint.cpp: the Send and Recv calls of one group.
//
// Both ranks first announce their calls; the k-th Send to a rank matches the k-th Recv there. When both calls are known
// and agree, elements flow directly into the receiver's buffer. A Send therefore ends only after the Recv was called:
// programs that rely on buffering inside NCCL hang here, as they may on GPUs.

#include <string.h>

#include "task.h"

namespace host {
namespace {

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
      peer(operation.root).post(frame, nullptr, 0);
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
    return {reinterpret_cast<char*>(&peer.frame) + peer.frameBytes, sizeof peer.frame - peer.frameBytes};
  }

  void received(Peer& peer, size_t bytes) override {
    Lane& lane = laneOf(peer);
    if (lane.incoming.size > 0) {
      lane.incoming.data += bytes;
      lane.incoming.size -= bytes;
      if (lane.incoming.size == 0) {
        lane.received++;
        skipEmpty(lane);
      }
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
        (frame.call == Call::Send ? peer.remoteSends : peer.remoteRecvs).push_back(frame);
        matchAnnounced(peer);
        break;
      case FrameKind::Data:
        skipEmpty(lane);
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

  bool needs(Peer& peer) override { return unfinished(peer); }

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

  /** Calls without elements have no data frame: they are complete when matched. */
  static void skipEmpty(Lane& lane) {
    while (lane.received < lane.recvsMatched && lane.recvs[lane.received]->bytes() == 0) lane.received++;
  }

  void matchAnnounced(Peer& peer) {
    Lane& lane = laneOf(peer);
    while (!peer.remoteRecvs.empty() && lane.sendsMatched < lane.sends.size()) {
      const Operation& mine = *lane.sends[lane.sendsMatched];
      agree(peer, peer.remoteRecvs.front(), mine);
      peer.remoteRecvs.pop_front();
      lane.sendsMatched++;
      if (mine.bytes() == 0) continue;
      Frame frame = mine.frame();
      frame.kind = FrameKind::Data;
      frame.bytes = mine.bytes();
      peer.post(frame, mine.send, mine.bytes());
    }
    while (!peer.remoteSends.empty() && lane.recvsMatched < lane.recvs.size()) {
      agree(peer, peer.remoteSends.front(), *lane.recvs[lane.recvsMatched]);
      peer.remoteSends.pop_front();
      lane.recvsMatched++;
    }
    if (lane.incoming.size == 0) skipEmpty(lane);
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

// pointtopoint.cpp: the Send and Recv calls of one group.
//
// Both ranks first announce their calls; the k-th Send to a rank matches the k-th Recv there. When both calls are known
// and agree, elements flow directly into the receiver's buffer. The elements of a short Send are eager: they belong to its
// announcement, or follow it. Many elements of the only Send to a rank are offered in its announcement; see channel.h.
//
// As in NCCL, the first Send to a rank waits for its Recv. Later short ones are buffered in the channel: they do not wait while
// at most kMostBuffered of them lack their Recv. The Recv of a Send that may be buffered is not announced before the Send arrives,
// unless that takes long. If the Send is buffered, the Recv returns a credit instead.

#include <string.h>

#include <algorithm>
#include <utility>

#include "task.h"

namespace host {
namespace {

/** Limit for the bytes of an eager Send. Equal at all ranks. */
constexpr size_t kEager = 4 << 10;

class PointToPoint final : public Task {
 public:
  PointToPoint(Comm& comm, Operation* operations, size_t count, bool isSent)
      : Task(comm),
        operations_(operations),
        count_(count),
        isSent_(isSent),
        lanes_(comm.peers.size()) {}
  PointToPoint(Comm& comm, std::vector<Operation>&& operations, bool isSent)
      : Task(comm),
        owned_(std::move(operations)),
        operations_(owned_.data()),
        count_(owned_.size()),
        isSent_(isSent),
        lanes_(comm.peers.size()) {}

  void start() override {
    // Backwards, so that each call is put before the later ones.
    for (size_t i = count_; i-- > 0;) {
      Operation& operation = operations_[i];
      Lane& lane = lanes_[static_cast<size_t>(operation.root)];
      Operation*& first = operation.call == Call::Send ? lane.send : lane.recv;
      operation.next = std::exchange(first, &operation);
    }
    if (isSent_) {
      for (const Peer& peer : comm_.peers) {
        Lane& lane = laneOf(peer);
        if (isBuffered(peer)) lane.send = nullptr;
        lane.unannounced = lane.recv != nullptr && lane.send == nullptr && peer.mayBuffer(lane.recv->bytes());
      }
      return;
    }
    copyOwn();
    for (Peer& peer : comm_.peers) {
      Lane& lane = laneOf(peer);
      sendBuffered(peer);
      const Operation* recv = lane.recv;
      for (const Operation* send = lane.send; send != nullptr; send = send->next) {
        Frame frame = post(*send);
        if (recv != nullptr && recv->count == send->count && recv->type == send->type) {
          frame.op = kAlsoReceives;
          recv = recv->next;
        }
        if (isEager(*send)) {
          peer.postInlined(frame, send->send, send->bytes());
          continue;
        }
        // Frames after an offer wait for its answer.
        bool isLast = send == lane.send && send->next == nullptr && recv == nullptr;
        lane.offered = isLast && peer.postOffer(frame, send->send, send->bytes());
        if (!lane.offered) peer.post(frame, nullptr, 0);
      }
      for (; recv != nullptr; recv = recv->next) peer.post(post(*recv), nullptr, 0);
      // Announcements that arrived during earlier waits.
      if (unfinished(peer) || peer.buffered > 0) match(peer);
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
    RemoteSend* send = arriving(peer);
    if (send == nullptr) return {true, {}, 0};
    send->elements.resize(eagerBytes(send->frame));
    return {false, {&send->elements[send->elements.size() - send->missing], send->missing}, 1};
  }

  void framed(Peer& peer) override {
    Lane& lane = laneOf(peer);
    const Frame& frame = peer.frame;
    switch (frame.kind) {
      case FrameKind::Collective:
        if (markIfAhead(peer, 1)) return;
        failMismatch(peer, frame, firstUnfinished(peer));
      case FrameKind::Post: {
        bool sends = frame.call == Call::Send;
        bool receives = frame.call == Call::Recv || (sends && frame.op == kAlsoReceives);
        size_t eager = sends ? eagerBytes(frame) : 0;
        bool fits = eager <= peer.maxInlined();
        if ((!sends && !receives) || frame.root != comm_.rank || frame.inlined != (fits ? eager : 0)) {
          peer.failUnintelligible();
        }
        // A buffered Send may be older than collectives that this rank has called.
        if (host::isBuffered(frame)) {
          checkBuffered(peer);
        } else {
          if (markIfAhead(peer, 0)) return;
          if (frame.sequence != comm_.entered.sequence()) failBehind(peer, frame, description());
        }
        if (receives) peer.remoteRecvs.push_back(frame);
        if (sends) peer.remoteSends.push_back({frame, {}, fits ? 0 : eager});
        match(peer);
        // The next frame takes the place of these elements.
        if (frame.inlined > sizeof frame.words && !peer.remoteSends.empty()) {
          peer.remoteSends.back().elements.assign(peer.inlined(), eager);
        }
        break;
      }
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

  bool onlyTakes() const override { return isSent_; }
  std::string name() const override { return nameOf(operations_, count_); }

  std::string description() const override {
    for (const Lane& lane : lanes_) {
      if (isOpen(lane)) return describe(first(lane).frame());
    }
    return describe(operations_->frame());
  }

 private:
  /** The traffic with one rank in both directions, each in the order of the calls. */
  struct Lane {
    // The first calls of this rank that are not matched.
    Operation* send = nullptr;
    Operation* recv = nullptr;
    bool unannounced = false;  // the only Recv
    bool offered = false;  // the elements of the only Send
    Operation* large = nullptr;  // the first matched Recv whose Data frame is to come
    Operation* last = nullptr;   // the last Recv whose elements arrive
    Space incoming;

    void receive(Operation& recv, size_t bytes) {
      last = &recv;
      incoming = {recv.recv, bytes};
    }
  };

  Lane& laneOf(const Peer& peer) { return lanes_[static_cast<size_t>(peer.rank)]; }

  static bool isOpen(const Lane& lane) {
    return lane.send != nullptr || lane.recv != nullptr || lane.large != nullptr || lane.incoming.size > 0;
  }
  bool unfinished(const Peer& peer) const {
    return isOpen(lanes_[static_cast<size_t>(peer.rank)]) || peer.awaitsCredit();
  }

  static const Operation& first(const Lane& lane) {
    if (lane.incoming.size > 0) return *lane.last;
    return lane.large != nullptr ? *lane.large : lane.recv != nullptr ? *lane.recv : *lane.send;
  }
  Frame firstUnfinished(Peer& peer) { return isOpen(laneOf(peer)) ? first(laneOf(peer)).frame() : peer.lastBuffered; }

  static bool isEager(const Operation& message) { return message.bytes() <= kEager; }

  /** The bytes of a peer's Send that come with its announcement. */
  static size_t eagerBytes(const Frame& send) {
    if (!validType(send.type) || send.count > kEager) return 0;
    size_t bytes = static_cast<size_t>(send.count) * typeSize(static_cast<ncclDataType_t>(send.type));
    return bytes <= kEager ? bytes : 0;
  }

  /** True if the first Send to a peer need not wait for its Recv. */
  bool isBuffered(const Peer& peer) {
    const Lane& lane = laneOf(peer);
    return lane.send != nullptr && lane.recv == nullptr && peer.buffers(lane.send->bytes());
  }

  void sendBuffered(Peer& peer) {
    Lane& lane = laneOf(peer);
    for (; isBuffered(peer); lane.send = lane.send->next) {
      Frame frame = post(*lane.send);
      frame.op = kBuffered;
      peer.postInlined(frame, lane.send->send, lane.send->bytes());
      peer.addBuffered(frame);
    }
  }

  /** Announces the only Recv from a peer, unless it is announced. */
  void announceRecv(Peer& peer) {
    Lane& lane = laneOf(peer);
    if (std::exchange(lane.unannounced, false)) peer.post(post(*lane.recv), nullptr, 0);
  }

  Frame post(const Operation& operation) const {
    Frame frame = operation.frame();
    frame.kind = FrameKind::Post;
    frame.sequence = comm_.entered.sequence();
    return frame;
  }

  /** The Send whose elements are the next bytes of the peer, unless they have a Recv; or NULL. */
  static RemoteSend* arriving(Peer& peer) {
    return peer.remoteSends.empty() || peer.remoteSends.back().missing == 0 ? nullptr : &peer.remoteSends.back();
  }

  /** The first Recv from this one on that is matched and not eager, or NULL. */
  static Operation* nextLarge(const Lane& lane, Operation* recv) {
    while (recv != lane.recv && isEager(*recv)) recv = recv->next;
    return recv != lane.recv ? recv : nullptr;
  }

  void match(Peer& peer) {
    Lane& lane = laneOf(peer);
    while (!peer.remoteRecvs.empty() && peer.endBufferedSend()) peer.remoteRecvs.pop_front();
    while (!peer.remoteRecvs.empty() && lane.send != nullptr) {
      const Operation& mine = *lane.send;
      agree(peer, peer.remoteRecvs.front(), mine.frame());
      peer.remoteRecvs.pop_front();
      lane.send = mine.next;
      peer.buffersSends = true;
      if (!isEager(mine) && !lane.offered) peer.postData(mine.frame(), mine.send, mine.bytes());
    }
    while (!peer.remoteSends.empty() && lane.recv != nullptr && lane.incoming.size == 0) {
      Operation& mine = *lane.recv;
      const RemoteSend& theirs = peer.remoteSends.front();
      agree(peer, theirs.frame, mine.frame());
      // The beginning of the elements is in their string already.
      if (theirs.missing > 0 && !theirs.elements.empty()) break;
      if (host::isBuffered(theirs.frame) && std::exchange(lane.unannounced, false)) peer.data.returnCredit();
      announceRecv(peer);
      lane.recv = mine.next;
      peer.receivesBuffered = true;
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
      peer.remoteSends.pop_front();
    }
  }

  /** The elements of a Send that have all arrived. */
  static const char* elementsOf(const Peer& peer, const RemoteSend& send) {
    if (!send.elements.empty()) return send.elements.data();
    bool inWords = send.frame.inlined <= sizeof send.frame.words;
    return inWords ? reinterpret_cast<const char*>(send.frame.words) : peer.inlined();
  }

  void agree(const Peer& peer, const Frame& theirs, const Frame& mine) const {
    if (theirs.count != mine.count || theirs.type != mine.type) {
      // A Send that announced a Recv too.
      Frame call = theirs;
      if (mine.call == Call::Send) call.call = Call::Recv;
      failMismatch(peer, call, mine);
    }
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

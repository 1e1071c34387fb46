// collectives.cpp: every collective as direct exchanges between pairs of ranks.
//
// 1. All ranks exchange frames that describe their calls; a difference fails both sides before any element reaches a
//    buffer of the user. Few elements come with the frame; others follow it at once, as far as the connection takes them. In
//    calls with a root, a rank that needs no elements of the other one compares the frames at its next call, and does not
//    wait for them. A short Broadcast is an exception, see 4.
// 2. Elements go directly to the ranks that need them. Many elements are offered to their receiver in a Data frame; see
//    channel.h. In an AllGather of several ranks they must be more, since readers of the same pages wait for each other.
//    Others pass the rings, as do those of a Gather or of a Broadcast between two ranks, since both sides of a ring work at
//    the same time. Reductions are folded where their result is needed: straight from the rings of the other ranks, or in
//    windows if a connection has no shared memory.
// 3. A large AllReduce folds chunk r at rank r only, which distributes its folded elements while it folds the next ones. The
//    root of a large Broadcast to several ranks sends each of them another chunk, which they distribute in the same way. Where
//    ranks share processors, such a Broadcast is offered to all ranks instead: they need not wait for each other, and few copy
//    at the same time.
// 4. The elements of a short Broadcast pass a tree. Each rank compares its call with that of its parent, and sends no frame to
//    ranks that need no elements. If a rank has not made the call, the numbers in later frames show it. Ranks that name
//    different roots may wait for each other, so a rank that has slept for a while tells its call to all others. Without
//    shared memory such optional messages could block, so all ranks exchange frames there as in other calls.

#include <string.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "protocol/collconfig.h"
#include "protocol/fold.h"
#include "protocol/task.h"
#include "protocol/tree.h"

namespace host {
namespace {

// As kMany, for elements that several ranks read at the same time.
constexpr size_t kManyForAll = 128 << 10;
// Maximum size of a broadcast to one rank that is offered: the root helps to send more through the ring.
constexpr size_t kMostForOne = 1 << 20;

class Collective final : public Task {
 public:
  Collective(Comm& comm, Operation&& operation, const Begun& begun)
      : Task(comm),
        operation_(std::move(operation)),
        isSent_(begun.isSent()),
        isShared_(begun.isShared),
        mine_(operation_.frame()),
        pairs_(comm.peers.size()),
        fold_(comm, operation_) {}

  void start() override {
    if (isSent_) {
      mine_.sequence = comm_.matcher.sequence();
    } else {
      comm_.matcher.enter(mine_);
    }
    for (const Peer& peer : comm_.peers) comm_.matcher.verifyWaiting(peer);
    plan();
    if (tree_) {
      startTree();
    } else {
      startPairs();
    }
    if (ownTo_ != ownFrom_ && ownBytes_ > 0) memmove(ownTo_, ownFrom_, ownBytes_);
    advance();
  }

  bool advanceOwn() override {
    if (finishing_) return false;
    bool moved = isFolding() && fold_.foldRings();
    advance();
    return moved || finishing_;
  }

  bool involves(const Peer& peer) const override {
    return !tree_ || !peer.data->has(Capability::OptionalFrames) || isParent(peer) || tree_->isChild(peer.rank);
  }

  Dependence dependsOn(Peer& peer) override {
    Dependence dependence = Task::dependsOn(peer);
    dependence.arrived = arrived(peer);
    if (tree_ && !tree_->isRoot() && !released_) {
      int first = tree_->firstAncestor([&](int rank) { return !arrived(comm_.peers[static_cast<size_t>(rank)]); });
      dependence.awaited = peer.rank == first;
    }
    return dependence;
  }

  void announceWait() override {
    if (!tree_ || released_ || announced_) return;
    announced_ = true;
    Frame frame = mine_;
    frame.kind = FrameKind::Waiting;
    frame.settings.collective = comm_.matcher.number();
    comm_.eachPeer([&](Peer& peer) {
      if (!peer.data->has(Capability::OptionalFrames)) {
        // Other ranks have the frame of this call.
        if (tree_->isChild(peer.rank)) peer.post(frame, nullptr, 0);
      } else if (peer.out.empty() && peer.data->hasRoomForOptionalFrame()) {
        peer.data->sendFrame(frame);
      }
    });
  }

  Wanted wants(Peer& peer) override {
    if (peer.rank == comm_.rank) return {};
    if (wantsFrame(peer)) return {true, {}, 0};
    Space bytes = spaceFor(peer);
    return {false, bytes, isFolding() ? fold_.unfoldedFrom(peer) : bytes.size > 0};
  }

  void framed(Peer& peer) override {
    if (peer.frame.isBuffered()) return comm_.matcher.keepBuffered(peer);
    Pair& pair = pairOf(peer);
    if (!pair.verified) {
      bool isCall = peer.frame.kind == FrameKind::Collective || peer.frame.kind == FrameKind::Post;
      if (isCall && comm_.matcher.stopIfAhead(peer, 0)) return;
      verify(peer);
      pair.verified = true;
    } else {
      takeData(peer);
      pair.awaitsData = false;
    }
    if (pair.awaitsData) return;
    unverified_--;
    advance();
  }

  void received(Peer& peer, size_t bytes) override {
    Pair& pair = pairOf(peer);
    if (fold_.isOpen()) {
      fold_.received(peer.rank, bytes);
    } else {
      Space& space = pair.in.size > 0 ? pair.in : pair.in2;
      if (sharesChunk_ && peer.rank == operation_.root) queueForOthers(comm_, space.data, bytes, operation_.root);
      space.data += bytes;
      space.size -= bytes;
    }
    advance();
  }

  bool complete() const override {
    if (!finishing_) return false;
    for (const Pair& pair : pairs_) {
      if (pair.in.size > 0 || pair.in2.size > 0) return false;
    }
    return true;
  }

  double addDescriptors(std::vector<pollfd>&) override {
    return isFolding() && fold_.canFold() ? 0 : HUGE_VAL;
  }

  std::string name() const override { return callName(operation_.call); }
  /** A root does not wait: it may have left since it sent its elements. */
  bool completesWithoutPeers() const override {
    bool fromRoot = operation_.call == Call::Broadcast || operation_.call == Call::Scatter;
    return isSent_ || (fromRoot && operation_.root != comm_.rank);
  }

  std::string description() const override { return describe(mine_); }

 private:
  /** Traffic with one rank. */
  struct Pair {
    bool verified = false;
    bool awaitsData = false;  // a Data frame before the elements
    size_t inlined = 0;   // bytes of elements that come with the peer's frame
    Space out;            // sent after the frames
    Space in;             // unused by folds
    Space in2;            // chunk of a large AllReduce, folded, or Broadcast
  };

  Pair& pairOf(const Peer& peer) { return pairs_[static_cast<size_t>(peer.rank)]; }
  Pair& pairOf(int rank) { return pairs_[static_cast<size_t>(rank)]; }

  /** True if few elements come with the frame. The words of other frames hold numbers. */
  bool inlinesElements() const {
    return !operation_.hasExtras() || (operation_.call != Call::AlltoAllv && operation_.op != kPreMulSum &&
                                       operation_.extras().config == ConfigWords{});
  }

  bool wantsFrame(Peer& peer) const {
    const Pair& pair = pairs_[static_cast<size_t>(peer.rank)];
    if (pair.verified) return pair.awaitsData;
    // The peer cannot be in this collective.
    if (const Frame* message = peer.calls.awaited()) comm_.matcher.failMismatch(peer, *message, mine_);
    return true;
  }

  /** The destination of the next elements from this peer; empty if they are folded where they arrive. */
  Space spaceFor(Peer& peer) {
    if (!released_ || isFolding()) return {};
    if (fold_.isOpen()) return fold_.spaceFor(peer.rank);
    Pair& pair = pairOf(peer);
    return pair.in.size > 0 ? pair.in : pair.in2;
  }

  /** True while elements are folded where they arrive. */
  bool isFolding() const { return released_ && fold_.isInRings(); }

  /** True if this peer is known to be in the call. */
  bool arrived(const Peer& peer) const {
    if (peer.calls.waiting.kind == FrameKind::Waiting && peer.calls.waiting.settings.collective == comm_.matcher.number()) return true;
    bool compared = pairs_[static_cast<size_t>(peer.rank)].verified;
    return compared && (!tree_ || (!peer.data->has(Capability::OptionalFrames) && peer.calls.unverified.empty()));
  }

  bool isParent(const Peer& peer) const { return tree_ && !tree_->isRoot() && tree_->parent() == peer.rank; }

  void startPairs() {
    bool inlines = inlinesElements();
    comm_.eachPeer([&](Peer& peer) {
      Pair& pair = pairOf(peer);
      Frame frame = frameFor(peer);
      if (isSent_) {
        pair.out = {};
      } else if (isOffered(peer, pair.out.size)) {
        peer.post(frame, nullptr, 0);
        peer.postData(mine_, pair.out.data, pair.out.size);
      } else if (inlines) {
        peer.postInlined(frame, pair.out.data, pair.out.size);
      } else {
        peer.post(frame, pair.out.data, pair.out.size);
      }
      size_t expected = fold_.isOpen() ? fold_.bytesLeft() : pair.in.size + pair.in2.size;
      if (inlines && expected <= peer.data->maxInlined()) pair.inlined = expected;
      pair.awaitsData = isOffered(peer, expected);
      if (isRooted(operation_.call) && expected == 0) {
        // Compared when it arrives.
        if (!isSent_) peer.calls.unverified.push_back(frame);
        pair.verified = true;
      } else {
        unverified_++;
      }
    });
  }

  void startTree() {
    const Operation& op = operation_;
    comm_.eachPeer([&](Peer& peer) {
      Pair& pair = pairOf(peer);
      // A child gets the frame with the elements.
      if (!peer.data->has(Capability::OptionalFrames) && !tree_->isChild(peer.rank)) peer.post(mine_, nullptr, 0);
      if (isParent(peer)) {
        pair.in = {op.recv, op.bytes()};
        if (inlinesElements() && op.bytes() <= peer.data->maxInlined()) pair.inlined = op.bytes();
        unverified_++;
        return;
      }
      pair.verified = true;
      if (!peer.data->has(Capability::OptionalFrames)) peer.calls.unverified.push_back(mine_);
    });
    // runEagerly has sent the root's elements.
    forwarded_ = tree_->isRoot() && isSent_;
  }

  /** Sends the elements to the children, once this rank has them. */
  void forward() {
    if (!tree_->isRoot() && pairOf(tree_->parent()).in.size > 0) return;
    forwarded_ = true;
    tree_->eachChild([&](int rank) {
      Peer& peer = comm_.peers[static_cast<size_t>(rank)];
      if (inlinesElements()) {
        peer.postInlined(mine_, operation_.recv, operation_.bytes());
      } else {
        peer.post(mine_, operation_.recv, operation_.bytes());
      }
    });
  }

  /** True if a Data frame precedes this many bytes to or from the peer; equal at both ranks. */
  bool isOffered(const Peer& peer, size_t bytes) const {
    return bytes >= leastOffered() && bytes <= mostOffered() && peer.data->has(Capability::Offers);
  }

  size_t leastOffered() const {
    switch (operation_.call) {
      case Call::AlltoAll:
      case Call::AlltoAllv:
      case Call::Scatter: return kMany;
      case Call::AllGather: return comm_.ranks == 2 ? kMany : kManyForAll;
      // To one rank with a processor of its own, or to several that share processors.
      case Call::Broadcast: return (comm_.ranks == 2) != comm_.crowded ? kMany : SIZE_MAX;
      default: return SIZE_MAX;
    }
  }

  size_t mostOffered() const {
    return operation_.call == Call::Broadcast && comm_.ranks == 2 ? kMostForOne : SIZE_MAX;
  }

  void takeData(Peer& peer) {
    const Frame& frame = peer.frame;
    if (frame.kind != FrameKind::Data || frame.call != mine_.call || frame.count != mine_.count || frame.inlined != 0) {
      peer.failUnintelligible();
    }
    peer.acceptOffer(frame, pairOf(peer).in.size);
  }

  /** Removes const: a send only reads, but shares Space with receives. */
  static Space readable(const char* data, size_t size) { return {const_cast<char*>(data), size}; }

  /** Sets the elements of this rank to copy when the other ranks have theirs. */
  void copy(char* to, const char* from, size_t size) {
    ownTo_ = to;
    ownFrom_ = from;
    ownBytes_ = size;
  }

  void plan() {
    const Operation& op = operation_;
    size_t bytes = op.bytes();
    size_t me = static_cast<size_t>(comm_.rank);
    if (exchangesPairs(op.call)) {
      (*op.extras().allPairs)[me] = op.extras().ownPair;
      return;
    }
    if (op.call == Call::AlltoAllv) return planRows();
    if (isInChunks(op, comm_.ranks)) return planChunks();
    if (isShortBroadcast(op)) {
      tree_.emplace(comm_.rank, op.root, comm_.ranks);
      if (tree_->isRoot()) copy(op.recv, op.send, bytes);
      return;
    }
    if (op.call == Call::Broadcast && bytes > 0 && pairs_.size() > 2 && !comm_.crowded) {
      planChunkedBroadcast();
      return;
    }
    Exchange exchange(op, comm_.rank);
    const char* own = exchange.elementsFor(comm_.rank);
    const char* staged = nullptr;
    if (op.call == Call::AlltoAll && op.send == op.recv && bytes > 0) {
      staged_.assign(op.send, op.send + bytes * pairs_.size());
      staged = staged_.data();
      own = staged + me * bytes;
    }
    eachOther([&](size_t rank, Pair& pair) {
      const char* elements = staged != nullptr ? staged + rank * bytes : exchange.elementsFor(static_cast<int>(rank));
      if (elements != nullptr) pair.out = readable(elements, bytes);
      char* place = exchange.placeOf(static_cast<int>(rank));
      if (place != nullptr) pair.in = {place, bytes};
    });
    if (exchange.folds()) {
      fold_.start(op.recv, own, op.count);
      // Every rank folds all elements. In place, the result would overwrite elements still to be sent.
      fold_.setSendsFirst(op.call == Call::AllReduce && op.send == op.recv);
    } else if (exchange.placeOf(comm_.rank) != nullptr) {
      copy(exchange.placeOf(comm_.rank), own, bytes);
    }
  }

  /** Offset of a rank's chunk in bytes. */
  size_t startOf(size_t rank) const { return chunkStart(operation_, rank, pairs_.size()); }

  /** Calls action with the other ranks and their pairs. */
  template <class Action>
  void eachOther(Action&& action) {
    for (size_t rank = 0; rank < pairs_.size(); rank++) {
      if (static_cast<int>(rank) != comm_.rank) action(rank, pairs_[rank]);
    }
  }

  void planRows() {
    const Operation& op = operation_;
    const AlltoAllvRows& rows = *op.extras().rows;
    size_t me = static_cast<size_t>(comm_.rank);
    size_t element = typeSize(op.type);
    auto from = [&](size_t rank) { return op.send + rows.sendDisplacements[rank] * element; };
    auto to = [&](size_t rank) { return op.recv + rows.recvDisplacements[rank] * element; };
    eachOther([&](size_t rank, Pair& pair) {
      pair.out = readable(from(rank), rows.sendCounts[rank] * element);
      pair.in = {to(rank), rows.recvCounts[rank] * element};
    });
    copy(to(me), from(me), rows.sendCounts[me] * element);
  }

  /** Each rank folds a chunk. */
  void planChunks() {
    const Operation& op = operation_;
    eachOther([&](size_t rank, Pair& pair) {
      pair.out = readable(op.send + startOf(rank), startOf(rank + 1) - startOf(rank));
      pair.in2 = {op.recv + startOf(rank), startOf(rank + 1) - startOf(rank)};
    });
    size_t me = static_cast<size_t>(comm_.rank);
    size_t start = startOf(me);
    fold_.start(op.recv + start, op.send + start, (startOf(me + 1) - start) / typeSize(op.type));
    fold_.setShares(!isShared_);
  }

  /** Each rank but the root has a chunk. */
  void planChunkedBroadcast() {
    const Operation& op = operation_;
    size_t chunks = pairs_.size() - 1;
    bool isRoot = op.root == comm_.rank;
    size_t chunk = 0;
    for (int rank = 0; rank < comm_.ranks; rank++) {
      if (rank == op.root) continue;
      size_t start = chunkStart(op, chunk, chunks);
      size_t size = chunkStart(op, chunk + 1, chunks) - start;
      chunk++;
      if (isRoot) {
        pairOf(rank).out = readable(op.send + start, size);
      } else if (rank == comm_.rank) {
        pairOf(op.root).in = {op.recv + start, size};
      } else {
        pairOf(rank).in2 = {op.recv + start, size};
      }
    }
    sharesChunk_ = !isRoot;
    if (isRoot) copy(op.recv, op.send, op.bytes());
  }

  /** Performs all steps that are possible now. */
  void advance() {
    if (unverified_ > 0) return;
    if (!std::exchange(released_, true)) takeInlined();
    if (fold_.isOpen()) fold_.foldWindows();
    if (tree_ && !forwarded_) forward();
    finishing_ = !fold_.isOpen() && (!tree_ || forwarded_);
  }

  /** Takes the elements that came with frames. */
  void takeInlined() {
    bool fromAll = comm_.ranks > 1;
    for (Peer& peer : comm_.peers) {
      Pair& pair = pairOf(peer);
      if (peer.rank == comm_.rank) continue;
      if (pair.inlined == 0) {
        fromAll = false;
      } else if (fold_.isOpen()) {
        fold_.addInlined(peer, pair.inlined);
      } else {
        memcpy(pair.in.data, peer.inlined(), pair.inlined);
        pair.in = {};
      }
    }
    if (fold_.isOpen()) fold_.foldInlined(fromAll);
  }

  Frame frameFor(const Peer& peer) const {
    Frame frame = mine_;
    if (operation_.call == Call::AlltoAllv) {
      frame.matrices.sendCount = operation_.extras().rows->sendCounts[static_cast<size_t>(peer.rank)];
      frame.matrices.recvCount = operation_.extras().rows->recvCounts[static_cast<size_t>(peer.rank)];
    }
    return frame;
  }

  void verify(const Peer& peer) {
    const Frame& theirs = peer.frame;
    comm_.matcher.verify(peer, theirs, mine_);
    if (theirs.inlined != pairOf(peer).inlined) peer.failUnintelligible();
    if (mine_.call == Call::AlltoAllv) verifyMatrices(peer, frameFor(peer));
    if (exchangesPairs(mine_.call)) {
      (*operation_.extras().allPairs)[static_cast<size_t>(peer.rank)] = {theirs.pair[0], theirs.pair[1]};
    }
    fold_.setScalar(peer.rank, theirs.settings.scalar);
  }

  void verifyMatrices(const Peer& peer, const Frame& own) const {
    const auto& theirs = peer.frame.matrices;
    auto differs = [&](int sender, int receiver, uint64_t sent, uint64_t expected) {
      fail(
          ncclInvalidUsage,
          "AlltoAllv: rank %d sends %llu elements to rank %d (sendcounts[%d][%d]) while rank %d expects %llu "
          "(recvcounts[%d][%d])",
          sender, static_cast<unsigned long long>(sent), receiver, sender, receiver, receiver,
          static_cast<unsigned long long>(expected), receiver, sender);
    };
    const auto& mine = own.matrices;
    if (theirs.sendCount != mine.recvCount) differs(peer.rank, comm_.rank, theirs.sendCount, mine.recvCount);
    if (theirs.recvCount != mine.sendCount) differs(comm_.rank, peer.rank, mine.sendCount, theirs.recvCount);
    static const char* const names[] = {"sendcounts", "recvcounts", "rdispls"};
    for (size_t matrix = 0; matrix < std::size(names); matrix++) {
      if (theirs.hashes[matrix] == mine.hashes[matrix]) continue;
      fail(
          ncclInvalidUsage,
          "AlltoAllv: rank %d and rank %d passed different %s: every rank must pass the same matrices", peer.rank,
          comm_.rank, names[matrix]);
    }
  }

  const Operation operation_;
  const bool isSent_;  // the frames, and their elements
  const bool isShared_;  // as in Begun
  Frame mine_;
  ByRank<Pair> pairs_;
  std::vector<char> staged_;
  char* ownTo_ = nullptr;
  const char* ownFrom_ = nullptr;
  size_t ownBytes_ = 0;
  int unverified_ = 0;
  bool released_ = false;   // all ranks are in this call, so elements may flow
  bool finishing_ = false;  // all sends of this rank are queued

  // A short Broadcast.
  std::optional<Tree> tree_;
  bool forwarded_ = false;
  bool announced_ = false;

  Fold fold_;
  bool sharesChunk_ = false;  // of a Broadcast
};

}  // namespace

std::unique_ptr<Task> makeCollective(Comm& comm, Operation&& operation, const Begun& begun) {
  return std::make_unique<Collective>(comm, std::move(operation), begun);
}

void runCollective(Comm& comm, Operation&& operation, Begun&& begun) {
  Collective collective(comm, std::move(operation), begun);
  runTask(comm, collective, std::move(begun));
}

}  // namespace host

// task.cpp: descriptions of calls, and the error for calls that do not match.

#include "task.h"

#include <string.h>

#include <algorithm>

#include "collconfig.h"

namespace host {
namespace {

/** Seconds for a peer that has called more collectives to report what differs. */
constexpr double kPatience = 0.5;

}  // namespace

// Never destroyed: threads of streams continue while the process ends.
const Extras& Operation::kNoExtras = *new Extras;

Extras& Operation::addExtras() {
  if (extras_.use_count() != 1) extras_ = std::make_shared<Extras>(extras());
  return *extras_;
}

Frame Operation::frame() const {
  Frame frame;
  frame.call = call;
  frame.type = static_cast<uint8_t>(type);
  frame.op = static_cast<int8_t>(op);
  frame.root = root;
  frame.count = count;
  if (!hasExtras()) return frame;
  if (call == Call::AlltoAllv) std::copy_n(extras().rows->hashes, 3, frame.words);
  if (call == Call::CommWindowRegister) {
    frame.count = extras().windowBytes;
    frame.root = extras().windowFlags;
  }
  if (exchangesPairs(call)) {
    frame.words[0] = static_cast<uint64_t>(extras().ownPair.first);
    frame.words[1] = static_cast<uint64_t>(extras().ownPair.second);
  }
  if (isConfigurable(call)) std::copy_n(extras().config.begin(), extras().config.size(), frame.words);
  if (op == kPreMulSum) frame.words[kScalar] = extras().scalar;
  return frame;
}

std::string nameOf(const Operation* operations, size_t count) {
  Call call = operations->call;
  bool same = std::all_of(operations, operations + count, [&](const Operation& other) { return other.call == call; });
  return same ? callName(call) : "Send/Recv";
}

void Frame::add(const void* elements, size_t bytes) {
  inlined = static_cast<uint16_t>(bytes);
  if (bytes > 0 && bytes <= sizeof words) memcpy(words, elements, bytes);
}

ncclResult_t failureOfPeer(int32_t code) {
  bool isError = code > ncclSuccess && code < ncclNumResults && code != ncclInProgress;
  return isError ? static_cast<ncclResult_t>(code) : ncclRemoteError;
}

std::string describe(const Frame& frame) {
  std::string text = callName(frame.call);
  if (frame.call == Call::CommWindowRegister) {
    return text + format("(%llu bytes, flags %d)", static_cast<unsigned long long>(frame.count), frame.root);
  }
  if (exchangesPairs(frame.call) || frame.call == Call::CommSplitId || frame.call == Call::WaitSignal) return text;
  text += format("(%s", typeName(frame.type));
  if (frame.call != Call::AlltoAllv) text += format(", count %llu", static_cast<unsigned long long>(frame.count));
  if (isReduction(frame.call)) text += format(", %s", opName(frame.op));
  if (isRooted(frame.call)) text += format(", root %d", frame.root);
  if (frame.call == Call::Send || frame.call == Call::PutSignal || frame.call == Call::Signal) {
    text += format(", to rank %d", frame.root);
  }
  if (frame.call == Call::Recv) text += format(", from rank %d", frame.root);
  return text + ")";
}

void Task::verify(const Peer& peer, const Frame& theirs, const Frame& mine) const {
  if (theirs.kind == FrameKind::Collective && theirs.sequence != mine.sequence) failBehind(peer, theirs, describe(mine));
  if (theirs.kind != FrameKind::Collective || theirs.call != mine.call || theirs.type != mine.type ||
      theirs.op != mine.op || theirs.root != mine.root || theirs.count != mine.count) {
    failMismatch(peer, theirs, mine);
  }
  // A call with elements in its frame has no configuration.
  if (!isConfigurable(mine.call) || (theirs.inlined != 0 && mine.inlined != 0)) return;
  ConfigWords their{}, my{};
  if (theirs.inlined == 0) std::copy_n(theirs.words, their.size(), their.begin());
  if (mine.inlined == 0) std::copy_n(mine.words, my.size(), my.begin());
  if (their == my) return;
  auto [theirField, myField] = configDifference(their, my);
  fail(
      ncclInvalidUsage, "rank %d called %s with %s in its configuration while rank %d called it with %s", peer.rank,
      callName(mine.call), theirField.c_str(), comm_.rank, myField.c_str());
}

void Task::verifyLate(Peer& peer) const {
  verify(peer, peer.frame, peer.unverified.front());
  if (peer.frame.inlined > 0) peer.failUnintelligible();
  peer.unverified.pop_front();
}

void Task::checkBuffered(Peer& peer) const {
  const Frame& send = peer.frame;
  bool valid = peer.data.shared() && send.root == comm_.rank && validType(send.type) && send.count <= kMaxBuffered &&
               send.inlined <= kMaxBuffered &&
               send.inlined == send.count * typeSize(static_cast<ncclDataType_t>(send.type));
  // Those that this rank has kept already: it would take memory without end for a peer that does not count them.
  size_t kept = 0;
  size_t all = peer.remoteSends.size();
  while (kept < all && isBuffered(peer.remoteSends[all - 1 - kept].frame)) kept++;
  if (!valid || kept > kMostBuffered) peer.failUnintelligible();
}

void Task::keepBuffered(Peer& peer) const {
  checkBuffered(peer);
  const Frame& send = peer.frame;
  RemoteSend& kept = peer.remoteSends.push_back({send, {}, 0});
  if (send.inlined > sizeof send.words) kept.elements.assign(peer.inlined(), send.inlined);
}

void Task::compareWaiting(const Peer& peer) const {
  const Frame* mine = comm_.entered.find(peer.waiting.words[kCollective]);
  if (peer.waiting.kind != FrameKind::Waiting || mine == nullptr) return;
  Frame theirs = peer.waiting;
  theirs.kind = FrameKind::Collective;
  theirs.sequence = mine->sequence;
  verify(peer, theirs, *mine);
}

void Task::failBehind(const Peer& peer, const Frame& theirs, const std::string& mine) const {
  int missing = static_cast<uint16_t>(comm_.entered.sequence() - theirs.sequence);
  // A Send or Recv came in place of the collective after those that the peer has called.
  if (theirs.kind == FrameKind::Post) missing--;
  const Frame* skipped = comm_.entered.find(comm_.entered.number() - static_cast<uint64_t>(missing));
  if (skipped != nullptr && describe(*skipped) != describe(theirs)) failMismatch(peer, theirs, *skipped);
  fail(
      ncclInvalidUsage, "rank %d called %s while rank %d, which has called more collectives before, called %s", peer.rank,
      describe(theirs).c_str(), comm_.rank, mine.c_str());
}

bool Task::markIfAhead(const Peer& peer, int allowed) {
  int more = static_cast<int16_t>(static_cast<uint16_t>(peer.frame.sequence - comm_.entered.sequence()));
  if (more <= allowed) return false;
  comm_.ahead = &peer;
  comm_.patience = now() + kPatience;
  return true;
}

void Task::failAhead() const {
  fail(
      ncclInvalidUsage, "rank %d, which has called more collectives before, called %s while rank %d called %s",
      comm_.ahead->rank, describe(comm_.ahead->frame).c_str(), comm_.rank, description().c_str());
}

void Task::failMismatch(const Peer& peer, const Frame& theirs, const Frame& mine) const {
  fail(
      ncclInvalidUsage, "rank %d called %s while rank %d called %s", peer.rank, describe(theirs).c_str(), comm_.rank,
      describe(mine).c_str());
}

}  // namespace host

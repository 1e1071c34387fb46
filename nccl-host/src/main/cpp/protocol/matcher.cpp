// matcher.cpp: the comparison of calls, and the errors for those that do not match.

#include "protocol/matcher.h"

#include "protocol/collconfig.h"
#include "protocol/comm.h"

namespace host {
namespace {

/** Seconds for a peer that has called more collectives to report what differs. */
constexpr double kPatience = 0.5;

}  // namespace

size_t eagerBytes(const Frame& send) {
  if (!validType(send.type) || send.count > kEager) return 0;
  size_t bytes = static_cast<size_t>(send.count) * typeSize(static_cast<ncclDataType_t>(send.type));
  return bytes <= kEager ? bytes : 0;
}

bool Matcher::takeEarlier(Peer& peer) const {
  if (peer.takeEarlier()) return true;
  if (peer.frame.kind == FrameKind::Waiting) {
    peer.calls.waiting = peer.frame;
    verifyWaiting(peer);
    return true;
  }
  if (peer.calls.unverified.empty() || peer.frame.isBuffered()) return false;
  verify(peer, peer.frame, peer.calls.unverified.front());
  // It has elements that this rank did not expect.
  peer.failUnintelligible();
}

void Matcher::verify(const Peer& peer, const Frame& theirs, const Frame& mine) const {
  if (isSameCall(theirs, mine)) return;
  if (theirs.kind == FrameKind::Collective && theirs.sequence != mine.sequence) failBehind(peer, theirs, describe(mine));
  if (!haveSameArguments(theirs, mine)) failMismatch(peer, theirs, mine);
  auto [theirField, myField] = configDifference(theirs.config(), mine.config());
  fail(
      ncclInvalidUsage, "rank %d called %s with %s in its configuration while rank %d called it with %s", peer.rank,
      callName(mine.call), theirField.c_str(), rank_, myField.c_str());
}

void Matcher::verifyWaiting(const Peer& peer) const {
  Frame theirs = peer.calls.waiting;
  if (theirs.kind != FrameKind::Waiting) return;
  const Frame* mine = find(theirs.settings.collective);
  if (mine == nullptr) return;
  theirs.kind = FrameKind::Collective;
  theirs.sequence = mine->sequence;
  verify(peer, theirs, *mine);
}

void Matcher::checkPost(Peer& peer) const {
  const Frame& frame = peer.frame;
  size_t eager = frame.sends() ? eagerBytes(frame) : 0;
  bool valid = (frame.sends() || frame.receives()) && frame.peer == rank_ &&
               frame.inlined == (eager <= peer.data->maxInlined() ? eager : 0);
  if (frame.isBuffered()) {
    // Those that this rank has kept already: it would take memory without end for a peer that does not count them.
    size_t kept = 0;
    size_t all = peer.calls.sends.size();
    while (kept < all && peer.calls.sends[all - 1 - kept].frame.isBuffered()) kept++;
    valid &= peer.data->has(Capability::Credits) && validType(frame.type) && frame.count <= kMaxBuffered &&
             eager <= kMaxBuffered && kept <= kMostBuffered;
  }
  if (!valid) peer.failUnintelligible();
}

void Matcher::keepBuffered(Peer& peer) const {
  checkPost(peer);
  peer.calls.sends.push_back({peer.frame, {}, 0});
  peer.keepElements();
}

bool Matcher::stopIfAhead(const Peer& peer, int allowed) {
  int more = static_cast<int16_t>(static_cast<uint16_t>(peer.frame.sequence - sequence()));
  if (more <= allowed) return false;
  ahead_ = &peer;
  reportDeadline_ = now() + kPatience;
  return true;
}

void Matcher::failAhead(const std::string& mine) const {
  fail(
      ncclInvalidUsage, "rank %d, which has called more collectives before, called %s while rank %d called %s", ahead_->rank,
      describe(ahead_->frame).c_str(), rank_, mine.c_str());
}

void Matcher::failBehind(const Peer& peer, const Frame& theirs, const std::string& mine) const {
  int missing = static_cast<uint16_t>(sequence() - theirs.sequence);
  // A Send or Recv came in place of the collective after those that the peer has called.
  if (theirs.kind == FrameKind::Post) missing--;
  const Frame* skipped = find(number_ - static_cast<uint64_t>(missing));
  if (skipped != nullptr && describe(*skipped) != describe(theirs)) failMismatch(peer, theirs, *skipped);
  fail(
      ncclInvalidUsage, "rank %d called %s while rank %d, which has called more collectives before, called %s", peer.rank,
      describe(theirs).c_str(), rank_, mine.c_str());
}

void Matcher::failMismatch(const Peer& peer, const Frame& theirs, const Frame& mine) const {
  fail(
      ncclInvalidUsage, "rank %d called %s while rank %d called %s", peer.rank, describe(theirs).c_str(), rank_,
      describe(mine).c_str());
}

}  // namespace host

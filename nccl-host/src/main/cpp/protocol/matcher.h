// matcher.h: the rules by which the calls of two ranks match. Operations that end without a task, in eager.cpp, and tasks follow
// the same rules; only a task fails.
#pragma once

#include <math.h>

#include <string>

#include "base/fifo.h"
#include "transport/wire.h"

namespace host {

struct Peer;

/** Maximum number of bytes of a Send whose elements come with its announcement. Equal at all ranks. */
constexpr size_t kEager = 4 << 10;

/** The bytes of elements that come with the announcement of a Send. */
size_t eagerBytes(const Frame& send);

/** True if the frames of two ranks announce the same collective, but for its configuration. */
inline bool haveSameArguments(const Frame& one, const Frame& other) {
  return one.kind == FrameKind::Collective && other.kind == FrameKind::Collective && one.sequence == other.sequence &&
         one.call == other.call && one.type == other.type && one.op == other.op && one.root == other.root &&
         one.count == other.count;
}
inline bool isSameCall(const Frame& one, const Frame& other) {
  if (!haveSameArguments(one, other)) return false;
  // Few instructions, without branches.
  uint64_t mask = one.hasConfig() ? ~0ull : 0, otherMask = other.hasConfig() ? ~0ull : 0, difference = 0;
  for (size_t i = 0; i < std::tuple_size_v<ConfigWords>; i++) {
    difference |= (one.settings.config[i] & mask) ^ (other.settings.config[i] & otherMask);
  }
  return difference == 0;
}

/** True if a Send and a Recv, each a call or its frame, have the same elements. */
template <class One, class Other>
bool haveSameElements(const One& one, const Other& other) {
  return one.count == other.count && static_cast<int>(one.type) == static_cast<int>(other.type);
}

/** The calls of a peer that are not matched. */
struct PeerCalls {
  /** A Send. */
  struct Send {
    Frame frame;
    std::string elements;  // that follow the frame, if they had to leave the connection
    size_t missing = 0;    // of the bytes that follow
  };
  /** Calls that this rank completed without the peer's frames. The next frames of the peer must agree. */
  Fifo<Frame> unverified;
  Fifo<Send> sends;
  Fifo<Frame> recvs;
  /** The last Waiting frame; of another kind if there was none. */
  Frame waiting;

  bool hasMessages() const { return !sends.empty() || !recvs.empty(); }
  /** The call in which the peer waits, or NULL. */
  const Frame* awaited() {
    if (!sends.empty() && !sends.back().frame.isBuffered()) return &sends.back().frame;
    return recvs.empty() ? nullptr : &recvs.front();
  }
};

/**
 * The Send calls between two ranks that do not wait for their Recv. As in NCCL, the first Send in a direction waits; later short
 * ones are buffered in the channel while at most kMostBuffered of them lack their Recv. A Recv that may find a buffered Send is
 * not announced; it returns a credit instead.
 */
class Credits {
 public:
  /** Call when this rank's Send was received, and when its Recv has received. */
  void hasSent() { sends_ = true; }
  void hasReceived() { receives_ = true; }

  /** True if a Send of so many bytes is buffered, over a channel that permits it; if its group has no Recv of the peer. */
  bool buffers(size_t bytes) const { return sends_ && bytes <= kMaxBuffered; }
  /** True if the peer may have buffered a Send of so many bytes. */
  bool mayBeBuffered(size_t bytes) const { return receives_ && bytes <= kMaxBuffered; }

  /** Call with the frame of a buffered Send that was sent. */
  void add(const Frame& send) {
    last_ = send;
    open_++;
  }
  const Frame& last() const { return last_; }
  /** Number of buffered Sends of this rank without their Recv, as far as this rank has taken the credits of the peer. */
  size_t open() const { return open_; }
  /** True if they are too many: the last one has to wait. */
  bool areAwaited() const { return open_ > kMostBuffered; }
  /** Ends so many of them; false if there are fewer. */
  bool end(size_t count) {
    if (count > open_) return false;
    open_ -= count;
    return true;
  }

 private:
  bool sends_ = false;
  bool receives_ = false;
  size_t open_ = 0;
  Frame last_;
};

/** The collectives that a rank has entered, numbered in their order, and the comparison of its calls with those of its peers. */
class Matcher {
 public:
  explicit Matcher(const int& rank) : rank_(rank) {}

  void enter(Frame& call) {
    number_++;
    call.sequence = sequence();
    recent_[number_ % kKept] = call;
  }
  /** The number of the last collective. */
  uint64_t number() const { return number_; }
  /** The same in frames. */
  uint16_t sequence() const { return static_cast<uint16_t>(number_); }

  /** Makes the frame of a Send or Recv its announcement. */
  void toPost(Frame& call) const {
    call.kind = FrameKind::Post;
    call.sequence = sequence();
  }

  /** Takes the peer's last frame if it is of no call that continues. Throws if it does not agree with an earlier call. */
  bool takeEarlier(Peer& peer) const;
  /** Throws unless the frames of two ranks announce the same collective. */
  void verify(const Peer& peer, const Frame& theirs, const Frame& mine) const;
  /** Compares the last Waiting frame of a peer with the call of that number, unless this rank has still to call it. */
  void verifyWaiting(const Peer& peer) const;
  /** Throws unless the peer's last frame announces a Send, a Recv or both that a rank can announce. */
  void checkPost(Peer& peer) const;
  /** Keeps the peer's last frame, a buffered Send, for a later Recv. */
  void keepBuffered(Peer& peer) const;

  /** If the peer called more collectives before its last frame than this rank, plus `allowed`: takes no more frames; true. */
  bool stopIfAhead(const Peer& peer, int allowed);
  /** True if a peer has called more collectives. The operation takes no more frames, and fails with what that peer reports. */
  bool isStopped() const { return ahead_ != nullptr; }
  /** The time from which on it fails without a report. */
  double reportDeadline() const { return reportDeadline_; }
  [[noreturn]] void failAhead(const std::string& mine) const;
  /** For a frame before which the peer has called fewer collectives than this rank. */
  [[noreturn]] void failBehind(const Peer& peer, const Frame& theirs, const std::string& mine) const;
  [[noreturn]] void failMismatch(const Peer& peer, const Frame& theirs, const Frame& mine) const;

 private:
  /** The collective with this number, if it is one of the last; else NULL. */
  const Frame* find(uint64_t number) const {
    bool kept = number > 0 && number <= number_ && number_ - number < kKept;
    return kept ? &recent_[number % kKept] : nullptr;
  }

  static constexpr size_t kKept = 16;
  const int& rank_;  // set later for a communicator made from another one
  uint64_t number_ = 0;
  Frame recent_[kKept];
  const Peer* ahead_ = nullptr;
  double reportDeadline_ = HUGE_VAL;
};

}  // namespace host

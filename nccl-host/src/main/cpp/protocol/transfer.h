// transfer.h: moves the frames and bytes of a task between its queues and the channels of its peers.
#pragma once

#include "protocol/task.h"

namespace host {

/** Maximum number of bytes of one rank before other ranks are served. */
constexpr size_t kTurn = 1 << 20;

/** Maximum number of frames of a rank, which no call awaits, that are taken in a row. */
constexpr size_t kMostUnawaited = 64;

/** The traffic of the tasks of one communicator, which run one after the other. */
class Transfer {
 public:
  explicit Transfer(Comm& comm) : comm_(comm) {}

  void start(Task& task) {
    task_ = &task;
    for (ProfiledOperation& one : task.profiled) comm_.profiler->kernelStarts(one);
    task.start();
    involved_ = 0;
    for (Peer& peer : comm_.peers) {
      if (peer.rank == comm_.rank || (peer.out.empty() && !hasManyLate(peer) && !task.involves(peer))) continue;
      if (involved_ < kFew) few_[involved_] = &peer;
      involved_++;
    }
  }

  /** Moves all bytes that can be moved now; true if any did. */
  bool move() {
    bool moved = task_->advanceOwn();
    eachInvolved([&](Peer& peer) {
      if (!peer.out.empty()) moved |= sendTo(peer);
    });
    eachInvolved([&](Peer& peer) { moved |= receiveFrom(peer); });
    return moved;
  }

  bool allSent() {
    bool all = true;
    eachInvolved([&](const Peer& peer) { all &= peer.out.empty(); });
    return all;
  }

  /** The frame or the bytes that are wanted from this peer now. The frames of earlier calls come first. */
  Wanted wants(Peer& peer) {
    Wanted wanted = task_->wants(peer);
    wanted.frame = !comm_.matcher.isStopped() && (wanted.frame || hasManyLate(peer));
    return wanted;
  }

  /** Takes the Waiting frames that come next, also those of a peer of which the task wants none. */
  void takeWaiting(Peer& peer) {
    for (size_t turn = 0; turn < kMostUnawaited && peer.takeWaiting(); turn++) comm_.matcher.verifyWaiting(peer);
  }

  /** Takes the frames that no call awaits. */
  void takeUnawaited() {
    for (Peer& peer : comm_.peers) {
      takeWaiting(peer);
      for (size_t turn = 0; turn < kMostUnawaited && !peer.calls.unverified.empty() && peer.receiveFrame() > 0; turn++) take(peer);
    }
  }

  /** Passes the frame that arrived to its task. */
  void take(Peer& peer) {
    if (!comm_.matcher.takeEarlier(peer)) task_->framed(peer);
  }

 private:
  /** Calls action with the peers of the task. */
  template <class Action>
  void eachInvolved(Action&& action) {
    if (involved_ <= kFew) {
      for (size_t i = 0; i < involved_; i++) action(*few_[i]);
      return;
    }
    for (Peer& peer : comm_.peers) {
      if (peer.rank != comm_.rank) action(peer);
    }
  }

  bool sendTo(Peer& peer) {
    size_t total = 0;
    while (!peer.out.empty() && total < kTurn) {
      if (peer.out.front().offered) {
        if (!takeAnswer(peer)) break;
        total++;
        continue;
      }
      long sent = peer.data->sendQueued(peer.out);
      if (sent < 0) {
        endSendingTo(peer);
        return true;
      }
      if (sent == 0) break;
      total += static_cast<size_t>(sent);
    }
    return total > 0;
  }

  /** Continues the queue after an offer; false if the peer has not answered. */
  bool takeAnswer(Peer& peer) {
    size_t left;
    if (!peer.data->takeAnswer(left)) {
      if (!peer.data->ended()) return false;
      endSendingTo(peer);
      return true;
    }
    Outgoing& out = peer.out.front();
    if (left > out.size) peer.failUnintelligible();
    if (left == 0) {
      peer.out.pop_front();
    } else {
      out.sent = out.size - left;
      out.offered = false;
    }
    return true;
  }

  void endSendingTo(Peer& peer) {
    peer.out.clear();
    peer.sendBroken = true;
    comm_.readEndReason(peer, ("during " + task_->name()).c_str());
  }

  void endReceivingFrom(Peer& peer) {
    peer.dataEnded = true;
    comm_.readEndReason(peer, ("during " + task_->name()).c_str());
  }

  static bool hasManyLate(const Peer& peer) { return peer.calls.unverified.size() >= kLateFrames; }

  bool receiveFrom(Peer& peer) {
    size_t total = 0;
    while (!peer.dataEnded && total < kTurn) {
      Wanted wanted = wants(peer);
      if (wanted.frame) {
        int got = peer.receiveFrame();
        if (got < 0) endReceivingFrom(peer);
        if (got <= 0) break;
        total += sizeof(Frame);
        take(peer);
        continue;
      }
      if (wanted.bytes.size == 0) {
        // The task reads in place.
        if (peer.data->ended() && wanted.least > 0) endReceivingFrom(peer);
        break;
      }
      long got = peer.data->receive(wanted.bytes.data, wanted.bytes.size);
      if (got < 0) endReceivingFrom(peer);
      if (got <= 0) break;
      total += static_cast<size_t>(got);
      task_->received(peer, static_cast<size_t>(got));
      // After a partial read there is probably no more.
      if (static_cast<size_t>(got) < wanted.bytes.size) break;
    }
    return total > 0;
  }

  Comm& comm_;
  Task* task_ = nullptr;
  static constexpr size_t kFew = 4;
  size_t involved_ = 0;  // number of peers of the task
  Peer* few_[kFew];      // these peers, if they are few
};

}  // namespace host

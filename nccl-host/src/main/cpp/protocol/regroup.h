// regroup.h: agreement between ranks of a communicator whose data streams may be broken.
//
// After a failure or ncclCommRevoke a data stream may end inside a frame and is then unreadable. Control streams carry
// whole messages only and stay usable while both ranks live; the data for a new communicator goes through them.
//
// An exchange may fail at some ranks and succeed at others; the former try again. Attempts are therefore numbered: a
// rank drops the messages of earlier attempts, and joins a later attempt when it receives a message of it. A rank that
// succeeded may begin the next attempt while others still read its messages for this one: each message names the last
// attempt that its sender completed.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "protocol/comm.h"

namespace host {

/** Blocks the parent's operations while the ranks agree. Fails after the init timeout. */
class Regrouping {
 public:
  Regrouping(Comm& parent, Comm& child, Call call);

  /**
   * Exchanges notes; returns one per member, in the order of members. This rank is a member. A second exchange of the
   * same attempt fails at a rank that receives a note of a newer attempt.
   */
  std::vector<RegroupNote> exchange(const std::vector<int>& members, const RegroupNote& mine);

  /**
   * Call after the last exchange, from where the ranks continue independently: this rank's notes stay valid for slower
   * ranks when this rank begins the next attempt.
   */
  void complete();

  /** Takes the id that one rank of the parent created with ncclCommGetUniqueId. */
  ncclUniqueId takeGrowId();

 private:
  void sendNote(const std::vector<int>& members, const RegroupNote& mine);
  RegroupNote* newest(Peer& peer);
  void waitFor(const std::vector<int>& ranks, const std::string& purpose);

  Comm& parent_;
  Comm& child_;
  const Call call_;
  std::unique_lock<Baton> lock_;
  const double started_;
  uint64_t attempt_;
  bool first_ = true;
};

/**
 * The ranks of a communicator that join one made from it. Each of them may end without joining; the server of the id does not know
 * where.
 */
class Members {
 public:
  Members(Comm& parent, Call call, std::vector<int> ranks)
      : parent_(parent), call_(call), ranks_(std::move(ranks)), epoch_(parent.epoch) {}
  /** Throws if one of them will not join, or if this rank's communicator is being aborted or revoked. */
  void check();
  /** Adds what may end a wait. */
  void addDescriptors(std::vector<pollfd>& polled) const;

 private:
  Comm& parent_;
  const Call call_;
  const std::vector<int> ranks_;
  const uint64_t epoch_;
};

}  // namespace host

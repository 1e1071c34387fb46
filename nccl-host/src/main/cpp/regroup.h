// regroup.h: agreement between ranks of a communicator whose data streams may be broken.
//
// After a failure or ncclCommRevoke a data stream may have stopped amid a frame, and nothing can be read from it any
// more. Control streams carry whole messages only and stay good as long as both ends live; what is needed to make a new
// communicator goes through them.
//
// An exchange may fail at some ranks and not at others, and those try again. So attempts have numbers: what is left of an
// earlier one is dropped, and a rank that hears of a later one takes part in that. A rank that succeeded may begin the next
// attempt while others still read what it told for this one: each rank tells which attempt it completed last.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm.h"

namespace host {

/** Holds the parent's operations off while ranks agree. Gives up after the init timeout. */
class Regrouping {
 public:
  Regrouping(Comm& parent, Comm& child, Call call);

  /**
   * What each member told, in the order of members; this rank is one of them. Where a second exchange follows a first, it
   * fails at a rank that hears that another began anew.
   */
  std::vector<RegroupNote> exchange(const std::vector<int>& members, const RegroupNote& mine);

  /**
   * After the last exchange, where ranks go on without waiting for each other: what this rank told stays good for those that have
   * not read it when this rank begins the next attempt.
   */
  void complete();

  /** The id that one rank of the parent made with ncclCommGetUniqueId. */
  ncclUniqueId takeGrowId();

 private:
  void tell(const std::vector<int>& members, const RegroupNote& mine);
  RegroupNote* newest(Peer& peer);
  void waitFor(const std::vector<int>& ranks, const std::string& purpose);

  Comm& parent_;
  Comm& child_;
  const Call call_;
  std::unique_lock<std::mutex> lock_;
  const double started_;
  uint64_t attempt_;
  bool first_ = true;
};

}  // namespace host

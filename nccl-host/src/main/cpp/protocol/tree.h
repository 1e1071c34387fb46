// tree.h: the binomial tree by which the elements of a short Broadcast pass from rank to rank.
#pragma once

#include <algorithm>

namespace host {

/** The place of one rank in the tree. Places count from the root. */
class Tree {
 public:
  Tree(int rank, int root, int ranks)
      : rank_(rank), ranks_(ranks), place_((rank - root + ranks) % ranks), step_(place_ == 0 ? ranks : place_ & -place_) {}

  bool isRoot() const { return place_ == 0; }
  /** The rank from which this one gets the elements. Not for the root. */
  int parent() const { return rankAt(place_ - step_); }

  bool hasChildren() const { return limit() > 1; }

  /** True if this rank sends the elements to that one. */
  bool isChild(int rank) const {
    int step = (rank - rank_ + ranks_) % ranks_;
    return step > 0 && (step & (step - 1)) == 0 && step < limit();
  }

  /** The first rank from the parent to the root for which the condition holds; the parent if there is none. Not for the root. */
  template <class Condition>
  int firstAncestor(Condition&& condition) const {
    for (int place = place_; place != 0;) {
      place &= place - 1;
      if (condition(rankAt(place))) return rankAt(place);
    }
    return parent();
  }

  /** Calls action with each child. The one with the most ranks below it comes first. */
  template <class Action>
  void eachChild(Action&& action) const {
    int step = 1;
    while (step < limit()) step *= 2;
    for (step /= 2; step > 0; step /= 2) action(rankAt(place_ + step));
  }

 private:
  /** The distance from which on there is no child. */
  int limit() const { return std::min(step_, ranks_ - place_); }
  int rankAt(int place) const { return (rank_ + place - place_ + ranks_) % ranks_; }

  const int rank_;
  const int ranks_;
  const int place_;
  const int step_;  // distance from the parent
};

}  // namespace host

// regroup.cpp: messages over control streams; regroup.h tells why.

#include "regroup.h"

#include <poll.h>
#include <string.h>

#include <algorithm>

#include "bootstrap.h"

namespace host {

Regrouping::Regrouping(Comm& parent, Comm& child, Call call)
    : parent_(parent), child_(child), call_(call), lock_(parent.operation), started_(now()) {}

std::vector<RegroupNote> Regrouping::exchange(const std::vector<int>& members, const RegroupNote& mine) {
  std::string body(reinterpret_cast<const char*>(&mine), sizeof mine);
  for (int rank : members) {
    if (rank != parent_.rank) parent_.tell(parent_.peers[static_cast<size_t>(rank)], ControlKind::Regroup, 0, body);
  }
  std::vector<RegroupNote> notes(members.size());
  std::vector<bool> there(members.size());
  for (;;) {
    std::vector<int> missing;
    for (size_t i = 0; i < members.size(); i++) {
      if (there[i]) continue;
      Peer& peer = parent_.peers[static_cast<size_t>(members[i])];
      if (members[i] == parent_.rank) {
        notes[i] = mine;
      } else if (peer.regroups.empty()) {
        missing.push_back(members[i]);
        continue;
      } else {
        notes[i] = peer.regroups.front();
        peer.regroups.pop_front();
      }
      there[i] = true;
      if (notes[i].call == mine.call && notes[i].members == mine.members) continue;
      fail(
          ncclInvalidUsage, "rank %d called %s while rank %d called %s%s", members[i], callName(notes[i].call),
          parent_.rank, callName(mine.call), notes[i].call == mine.call ? " with another list of ranks" : "");
    }
    if (missing.empty()) return notes;
    waitFor(missing, "for " + rankList(missing));
  }
}

ncclUniqueId Regrouping::takeGrowId() {
  if (parent_.growId) {
    ncclUniqueId id = *parent_.growId;
    parent_.growId.reset();
    return id;
  }
  std::vector<int> others;
  for (const Peer& peer : parent_.peers) {
    if (peer.rank != parent_.rank) others.push_back(peer.rank);
  }
  for (;;) {
    for (Peer& peer : parent_.peers) {
      if (peer.growIds.empty()) continue;
      ncclUniqueId id = peer.growIds.front();
      peer.growIds.pop_front();
      return id;
    }
    waitFor(others, "for a rank that calls ncclCommGetUniqueId");
  }
}

/** Reads what these ranks say, and waits for more when it was nothing. */
void Regrouping::waitFor(const std::vector<int>& ranks, const std::string& purpose) {
  std::string during = format("during %s", callName(call_));
  std::vector<pollfd> polled;
  for (int rank : ranks) {
    Peer& peer = parent_.peers[static_cast<size_t>(rank)];
    size_t before = peer.regroups.size() + peer.growIds.size();
    parent_.readControl(peer, during.c_str());
    if (peer.regroups.size() + peer.growIds.size() > before) return;
    if (peer.saidBye || peer.controlEnded || !peer.control.valid()) {
      fail(
          ncclRemoteError, "rank %d (pid %d) %s %s", rank, static_cast<int>(peer.pid),
          peer.saidBye ? "closed its communicator" : "went away", during.c_str());
    }
    polled.push_back({peer.control.get(), POLLIN, 0});
  }
  if (parent_.aborted || child_.aborted || parent_.interrupts > 0) {
    fail(ncclInternalError, "%s of rank %d was ended by an abort or revoke", callName(call_), parent_.rank);
  }
  double left = started_ + initTimeout() - now();
  if (left <= 0) {
    fail(
        ncclTimeout, "rank %d waited %.1f s in %s %s", parent_.rank, now() - started_, callName(call_),
        purpose.c_str());
  }
  polled.push_back({parent_.wake.get(), POLLIN, 0});
  polled.push_back({child_.wake.get(), POLLIN, 0});
  poll(polled.data(), polled.size(), static_cast<int>(std::min(left, 1000.0) * 1000) + 1);
}

}  // namespace host

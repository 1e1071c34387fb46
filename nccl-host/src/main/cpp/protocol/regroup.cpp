// regroup.cpp: messages over control streams; see regroup.h for the reasons.

#include "protocol/regroup.h"

#include <string.h>

#include <algorithm>

#include "protocol/bootstrap.h"

namespace host {
namespace {

/** Throws if a peer that was read now takes no part in a call that makes a communicator. */
void checkTakesPart(Comm& parent, const Peer& peer, Call call) {
  // After a failure or a revoke, all ranks report one, and continue.
  if (peer.control.announcedFault && parent.lifecycle.is(State::Ready)) throw Failure(*parent.peerFailure());
  if (!peer.control.isOver() && peer.control.fd.valid()) return;
  if (peer.control.announcedClose && !peer.control.announcedAbort) {
    Comm::failAsClosed(peer, format(" while rank %d was in %s", parent.rank, callName(call)));
  }
  const char* what = peer.control.announcedAbort ? "aborted its communicator" : "went away";
  fail(
      ncclRemoteError, "rank %d (pid %d) %s while rank %d was in %s", peer.rank, static_cast<int>(peer.pid), what,
      parent.rank, callName(call));
}

[[noreturn]] void failEnded(const Comm& parent, Call call) {
  fail(ncclInternalError, "%s of rank %d was ended by an abort or revoke", callName(call), parent.rank);
}

}  // namespace

Regrouping::Regrouping(Comm& parent, Comm& child, Call call)
    : parent_(parent),
      child_(child),
      call_(call),
      lock_(parent.operation),
      started_(now()),
      attempt_(++parent.regroupAttempts) {}

std::vector<RegroupNote> Regrouping::exchange(const std::vector<int>& members, const RegroupNote& mine) {
  sendNote(members, mine);
  for (;;) {
    std::vector<RegroupNote> notes;
    std::vector<int> missing;
    for (int rank : members) {
      if (rank == parent_.rank) {
        notes.push_back(mine);
        continue;
      }
      RegroupNote* note = newest(parent_.peers[static_cast<size_t>(rank)]);
      if (note == nullptr) {
        missing.push_back(rank);
        continue;
      }
      if (note->attempt > attempt_ && !first_) {
        fail(ncclRemoteError, "rank %d began %s anew while rank %d was in it", rank, callName(call_), parent_.rank);
      }
      if (note->call != mine.call || note->members != mine.members) {
        fail(
            ncclInvalidUsage, "rank %d called %s while rank %d called %s%s", rank, callName(note->call), parent_.rank,
            callName(mine.call), note->call == mine.call ? " with another list of ranks" : "");
      }
      if (note->attempt > attempt_) {
        parent_.regroupAttempts = attempt_ = note->attempt;
        sendNote(members, mine);
        // The notes of the earlier members must be checked again.
        notes.clear();
        break;
      }
      notes.push_back(*note);
    }
    if (notes.size() == members.size()) {
      for (int rank : members) {
        if (rank != parent_.rank) parent_.peers[static_cast<size_t>(rank)].control.regroups.pop_front();
      }
      first_ = false;
      return notes;
    }
    if (!missing.empty()) waitFor(missing, "for " + rankList(missing));
  }
}

void Regrouping::sendNote(const std::vector<int>& members, const RegroupNote& mine) {
  RegroupNote note = mine;
  note.attempt = attempt_;
  note.completed = parent_.regroupsCompleted;
  std::string body(reinterpret_cast<const char*>(&note), sizeof note);
  for (int rank : members) {
    if (rank == parent_.rank) continue;
    parent_.sendControl(parent_.peers[static_cast<size_t>(rank)], ControlKind::Regroup, 0, body);
  }
}

void Regrouping::complete() { parent_.regroupsCompleted = attempt_; }

/** Returns the peer's note for this attempt or a later one. Drops notes of earlier ones. */
RegroupNote* Regrouping::newest(Peer& peer) {
  while (!peer.control.regroups.empty() && peer.control.regroups.front().attempt < attempt_) peer.control.regroups.pop_front();
  return peer.control.regroups.empty() ? nullptr : &peer.control.regroups.front();
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
      if (!peer.control.growId) continue;
      ncclUniqueId id = *peer.control.growId;
      peer.control.growId.reset();
      return id;
    }
    waitFor(others, "for a rank that calls ncclCommGetUniqueId");
  }
}

/** Reads the control streams of these ranks; if nothing has arrived, waits. */
void Regrouping::waitFor(const std::vector<int>& ranks, const std::string& purpose) {
  std::string during = format("during %s", callName(call_));
  std::vector<pollfd> polled;
  for (int rank : ranks) {
    Peer& peer = parent_.peers[static_cast<size_t>(rank)];
    size_t before = peer.control.messagesForNew();
    parent_.readControl(peer, during.c_str());
    if (peer.control.messagesForNew() > before) return;
    checkTakesPart(parent_, peer, call_);
    polled.push_back({peer.control.fd.get(), POLLIN, 0});
  }
  if (parent_.lifecycle.is(State::Aborted) || child_.lifecycle.is(State::Aborted) || parent_.interrupts > 0) {
    failEnded(parent_, call_);
  }
  double left = started_ + initTimeout() - now();
  if (left <= 0) {
    fail(
        ncclTimeout, "rank %d waited %.1f s in %s %s", parent_.rank, now() - started_, callName(call_),
        purpose.c_str());
  }
  polled.push_back({parent_.wake.get(), POLLIN, 0});
  polled.push_back({child_.wake.get(), POLLIN, 0});
  pollAll(polled, static_cast<int>(std::min(left, 1000.0) * 1000) + 1);
}

void Members::check() {
  if (parent_.epoch != epoch_) failEnded(parent_, call_);
  // Another thread that has it reads the control streams.
  std::unique_lock<Baton> lock(parent_.operation, std::try_to_lock);
  if (!lock.owns_lock()) return;
  std::string during = format("during %s", callName(call_));
  for (int rank : ranks_) {
    if (rank == parent_.rank) continue;
    Peer& peer = parent_.peers[static_cast<size_t>(rank)];
    parent_.readControl(peer, during.c_str());
    checkTakesPart(parent_, peer, call_);
  }
}

void Members::addDescriptors(std::vector<pollfd>& polled) const {
  // Another thread that has it may close the sockets, and reads what arrives there.
  std::unique_lock<Baton> lock(parent_.operation, std::try_to_lock);
  if (lock.owns_lock()) {
    for (int rank : ranks_) {
      const Peer& peer = parent_.peers[static_cast<size_t>(rank)];
      if (peer.control.fd.valid()) polled.push_back({peer.control.fd.get(), POLLIN, 0});
    }
  }
  polled.push_back({parent_.wake.get(), POLLIN, 0});
}

}  // namespace host

// comm.cpp: life cycle, state and shutdown of a communicator.

#include "protocol/comm.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/processors.h"
#include "base/settings.h"
#include "protocol/bootstrap.h"
#include "status/rasreport.h"
#include "transport/network.h"

namespace host {
namespace {

/** Seconds to deliver the reason for the end of a communicator to other hosts: as long as that takes over a cut link. */
constexpr double kFaultDelivery = 1;

/** Seconds between attempts to open a lane. */
constexpr double kLaneRetry = 0.005;

/**
 * Seconds between reads of the control streams of all peers. These reads cost a system call for each peer, and each rank
 * makes them at another time, while the other ranks wait.
 */
constexpr double kFullReadPeriod = 0.01;
/** Reads of announced messages for each look at the clock. */
constexpr unsigned kReadsPerLookAtClock = 64;

/** Maximum number of messages of a peer that are read in a row. */
constexpr int kControlTurn = 64;

/** Milliseconds between the ends of two streams of a rank that dies. */
constexpr int kEndMillis = 200;

/** Milliseconds by which the reason for the end of a connection from another host may be late. */
constexpr int kLateMillis = 500;

/** Limit for the unused notes of a peer: an attempt has at most 2, and those of the one before may be unused as well. */
constexpr size_t kMostNotes = 8;

std::atomic<uint64_t> nextSerial{1};

}  // namespace

void Peer::queue(const Frame& frame, const char* inlined) {
  Outgoing& last = out.push_back({});
  last.frame = frame;
  last.size = sizeof frame;
  if (frame.inlined > sizeof frame.words) last.elements.assign(inlined, frame.inlined);
}

void Peer::queue(const void* data, size_t size) {
  if (size == 0) return;
  // Continues the bytes before.
  if (!out.empty() && out.back().data != nullptr && out.back().data + out.back().size == data) {
    out.back().size += size;
    return;
  }
  Outgoing& last = out.push_back({});
  last.data = static_cast<const char*>(data);
  last.size = size;
}

void Peer::post(const Frame& frame, const void* bytes, size_t size) {
  size_t sent = 0;
  if (!out.empty() || !data->sendFrame(frame)) {
    queue(frame, nullptr);
  } else if (size > 0) {
    iovec part{const_cast<void*>(bytes), size};
    // A broken connection is reported by the next attempt.
    sent = static_cast<size_t>(std::max(0L, data->send(&part, 1)));
  }
  if (sent < size) queue(static_cast<const char*>(bytes) + sent, size - sent);
}

void Peer::postInlined(Frame own, const void* bytes, size_t size) {
  if (size == 0 || size > data->maxInlined()) return post(own, bytes, size);
  const char* first = static_cast<const char*>(bytes);
  own.add(bytes, size);
  if (!out.empty() || !data->sendFrame(own, first)) queue(own, first);
}

bool Peer::postOffer(Frame own, const void* bytes, size_t size) {
  if (size < kMany || !data->offers()) return false;
  own.offer = {reinterpret_cast<uintptr_t>(bytes), reinterpret_cast<uintptr_t>(&processToken())};
  post(own, nullptr, 0);
  Outgoing& last = out.push_back({});
  last.data = static_cast<const char*>(bytes);
  last.size = size;
  last.offered = true;
  return true;
}

void Peer::postData(Frame own, const void* bytes, size_t size) {
  own.kind = FrameKind::Data;
  std::fill(std::begin(own.words), std::end(own.words), 0);
  if (!postOffer(own, bytes, size)) post(own, bytes, size);
}

bool Peer::acceptOffer(const Frame& theirs, size_t size) {
  if (theirs.offer.address == 0) return false;
  if (!data->has(Capability::Offers)) failUnintelligible();
  data->accept({theirs.offer.address, theirs.offer.token, process, size});
  return true;
}

void Peer::failUnintelligible() const {
  fail(ncclInternalError, "rank %d sent something unintelligible", rank);
}

bool Peer::takeWaiting() {
  if (!data->isNext(FrameKind::Waiting)) return false;
  char unused[kMaxInlined];
  data->receiveFrame(calls.waiting, unused);
  if (calls.waiting.kind != FrameKind::Waiting) failUnintelligible();
  return true;
}

void Peer::takeCredits() {
  if (credits.open() > 0 && !credits.end(data->takeCredits())) failUnintelligible();
}

bool Peer::endBufferedSend() {
  takeCredits();
  return credits.end(1);
}

int Peer::receiveFrame() {
  if (credits.areAwaited()) {
    // In this order: all credits that the peer returned before it sent the frame are then there.
    bool arrived = data->hasFrame() || data->ended();
    takeCredits();
    if (!arrived || !credits.areAwaited()) return 0;
  }
  int got = data->receiveFrame(frame, elements);
  if (got == Channel::kGarbled) failUnintelligible();
  return got;
}

Comm::Comm(int rankOfComm, int ranksOfComm, int deviceOfComm, const CommSettings& settingsOfComm)
    : serial(nextSerial++),
      pid(currentProcess()),
      rank(rankOfComm),
      ranks(ranksOfComm),
      device(deviceOfComm),
      host(hostNumber()),
      settings(settingsOfComm),
      blocking(settings.blocking),
      operationTimeout(operationTimeoutSetting.value()),
      sharesMemory(sharedMemorySetting.value() != 0),
      singleCopy(singleCopySetting.value() != 0),
      matcher(rank),
      wake(newEvent()) {}

Comm::~Comm() {
  if (initThread.joinable()) {
    // This may be the helper thread itself, if it holds the last reference.
    if (initThread.get_id() == std::this_thread::get_id()) {
      initThread.detach();
    } else {
      initThread.join();
    }
  }
}

ncclComm_t Comm::handle() const {
  // Outside a process's address range, so that code that dereferences the handle fails at once.
  return reinterpret_cast<ncclComm_t>(static_cast<uintptr_t>(0x6e63636c00000000u + serial * 16));
}

std::unique_lock<Baton> Comm::interrupt(const char* reason) {
  interruptReason = reason;
  interrupts++;
  epoch++;
  raiseEvent(wake);
  wakeCallers();
  std::unique_lock<Baton> lock(operation);
  interrupts--;
  // A concurrent abort is seen by its flag: no operation waits while the lock is held.
  if (!lifecycle.ended()) clearEvent(wake);
  return lock;
}

void Comm::failOperation(const Failure& failure) noexcept {
  std::lock_guard<Baton> lock(operation);
  if (lifecycle.is(State::Aborted)) {
    lifecycle.setError(failure);
  } else {
    breakDown(failure);
  }
}

void Comm::breakDown(const Failure& failure, ncclResult_t codeForOthers) noexcept {
  lifecycle.setError(failure);
  if (std::exchange(reported_, true)) return;
  for (Peer& peer : peers) {
    peer.out.clear();
    // The end of the stream replaces the unsent reason: a rank that only waits for signals sees nothing else.
    if (!sendControl(peer, ControlKind::Fault, codeForOthers, failure.text()) && peer.control.fd.valid()) {
      shutdown(peer.control.fd.get(), SHUT_WR);
      peer.data->announceMessage();
    }
    // This rank sends no more elements; the peer can still read those in transit.
    peer.data->endSending();
  }
}

void Comm::recordPeerFailure(const Failure& failure) {
  if (!peerFailure_) peerFailure_ = failure;
}

bool Comm::sendControl(Peer& peer, ControlKind kind, int code, const std::string& text) noexcept {
  if (!peer.control.isOpen()) return false;
  Control message;
  message.kind = kind;
  message.code = code;
  size_t length = std::min(text.size(), sizeof message.text - 1);
  memcpy(message.text, text.data(), length);
  try {
    // Control streams carry only a few short messages, so their buffers have space.
    bool sent = sendSome(peer.control.fd.get(), &message, sizeof message) == sizeof message;
    peer.data->announceMessage();
    return sent;
  } catch (const std::exception&) {
    return false;
  }
}

void Comm::readControl(Peer& peer, const char* during) {
  for (int turn = 0; turn < kControlTurn && peer.control.isOpen(); turn++) {
    char* into = reinterpret_cast<char*>(&peer.control.message) + peer.control.messageBytes;
    size_t left = sizeof peer.control.message - peer.control.messageBytes;
    long got = receiveWithDescriptor(peer.control.fd.get(), into, left, peer.control.passed);
    if (got == 0) return;
    if (got < 0) {
      peer.control.ended = true;
      if (!peer.control.announcedClose) {
        recordPeerFailure(
            ncclRemoteError, format("rank %d (pid %d) went away %s", peer.rank, static_cast<int>(peer.pid), during));
      }
      return;
    }
    peer.control.messageBytes += static_cast<size_t>(got);
    if (peer.control.messageBytes < sizeof peer.control.message) continue;
    peer.control.messageBytes = 0;
    peer.control.message.text[sizeof peer.control.message.text - 1] = '\0';
    switch (peer.control.message.kind) {
      case ControlKind::Close: peer.control.announcedClose = true; break;
      case ControlKind::Abort:
        peer.control.announcedClose = peer.control.announcedAbort = true;
        recordPeerFailure(
            ncclRemoteError, format("rank %d aborted its communicator; rank %d noticed it %s", peer.rank, rank, during));
        break;
      case ControlKind::Fault:
        peer.control.announcedFault = true;
        recordPeerFailure(failureOfPeer(peer.control.message.code), peer.control.message.text);
        break;
      case ControlKind::Lane:
        if (!peer.control.passed.valid()) {
          recordPeerFailure(
              ncclSystemError,
              format("rank %d could not take a socket from rank %d: too many open files", rank, peer.rank));
          break;
        }
        try {
          openInbox().addLane(peer.rank, std::move(peer.control.passed));
        } catch (const Failure& failure) {
          // A lost lane is not passed again.
          recordPeerFailure(
              failure.code(),
              format("rank %d could not take a socket from rank %d: %s", rank, peer.rank, failure.text().c_str()));
        }
        break;
      case ControlKind::Regroup: {
        RegroupNote note;
        memcpy(static_cast<void*>(&note), peer.control.message.text, sizeof note);
        keepNote(peer, note);
        break;
      }
      case ControlKind::GrowId:
        // The peer made another one, so nobody will serve the one before.
        memcpy(&peer.control.growId.emplace(), peer.control.message.text, sizeof(ncclUniqueId));
        break;
      default:
        recordPeerFailure(ncclInternalError, format("rank %d sent something unintelligible", peer.rank));
    }
  }
}

/** Keeps a note of a peer in place of those that it supersedes. */
void Comm::keepNote(Peer& peer, const RegroupNote& note) {
  // The peer abandoned the attempts between the last one that it completed and this one.
  while (!peer.control.regroups.empty() && peer.control.regroups.back().attempt > note.completed &&
         peer.control.regroups.back().attempt < note.attempt) {
    peer.control.regroups.pop_back();
  }
  if (peer.control.regroups.size() < kMostNotes) {
    peer.control.regroups.push_back(note);
  } else {
    recordPeerFailure(
        ncclInternalError, format("rank %d sent more than %zu notes for new communicators", peer.rank, kMostNotes));
  }
}

void Comm::readAllControl(const char* during) {
  for (Peer& peer : peers) readControl(peer, during);
}

bool Comm::isFullReadDue() {
  if (++controlReads_ % kReadsPerLookAtClock != 0) return false;
  double time = now();
  if (time < nextFullRead_) return false;
  nextFullRead_ = time + kFullReadPeriod;
  return true;
}

const Failure* Comm::peerFailure() {
  if (windows.inbox()) {
    try {
      windows.inbox()->throwIfFaulty();
    } catch (const Failure& failure) {
      // The other ranks may have told what followed from it.
      peerFailure_ = failure;
    }
  }
  return peerFailure_ ? &*peerFailure_ : nullptr;
}

void Comm::readEndReason(Peer& peer, const char* during) {
  readControl(peer, during);
  if (peer.onOtherHost && !peer.control.isOver() && peerFailure() == nullptr) {
    // The reason arrives by another connection, and may be late.
    awaitInput(peer.control.fd.get(), kLateMillis);
    readControl(peer, during);
  }
  if (peer.control.announcedClose) return;
  recordPeerFailure(
      ncclRemoteError, format("rank %d (pid %d) went away %s", peer.rank, static_cast<int>(peer.pid), during));
}

void Comm::readEndReasonOfLane(Peer& peer, const char* during) {
  readControl(peer, during);
  if (!peer.control.isOver() && peerFailure() == nullptr) {
    // The streams of a rank that dies end one after the other.
    awaitInput(peer.control.fd.get(), kEndMillis);
    readControl(peer, during);
  }
  if (!peer.control.isOver()) {
    recordPeerFailure(
        ncclRemoteError, format("rank %d (pid %d) takes no more puts", peer.rank, static_cast<int>(peer.pid)));
  }
}

void Comm::failAsClosed(const Peer& peer, const std::string& what) {
  fail(
      ncclRemoteError, "rank %d (pid %d on %s) closed its communicator%s; its program may have failed: see its log",
      peer.rank, static_cast<int>(peer.pid), (peer.host.empty() ? nodeName() : peer.host).c_str(), what.c_str());
}

Inbox& Comm::openInbox() {
  Inbox& inbox = windows.openInbox(rank, ranks, settings.rmaContexts, settings.rmaSignals);
  for (Peer& peer : peers) {
    if (peer.puts.ofPeer.valid()) inbox.addLane(peer.rank, std::move(peer.puts.ofPeer));
  }
  return inbox;
}

bool Comm::openLane(Peer& peer) {
  if (peer.rank == rank || peer.puts.fd.valid() || !peer.control.fd.valid()) return true;
  double time = now();
  if (time < peer.puts.nextTry) return false;
  auto [mine, theirs] = newStream();
  enlargeBuffers(mine);
  enlargeBuffers(theirs);
  Control message;
  message.kind = ControlKind::Lane;
  long sent = sendWithDescriptor(peer.control.fd.get(), &message, sizeof message, theirs.get());
  peer.data->announceMessage();
  if (sent == sizeof message) {
    peer.puts.fd = std::move(mine);
    return true;
  }
  if (sent < 0) {
    readEndReason(peer, "before it took puts");
    if (peerFailure() == nullptr) failAsClosed(peer, " before it took puts");
    return false;
  }
  if (peer.puts.deadline == 0) peer.puts.deadline = time + initTimeout();
  if (time >= peer.puts.deadline) {
    fail(
        ncclSystemError,
        "rank %d could not send a socket to rank %d within %.1f s: more descriptors of this user are on their way than "
        "RLIMIT_NOFILE allows",
        rank, peer.rank, initTimeout());
  }
  peer.puts.nextTry = time + kLaneRetry;
  return false;
}

void Comm::leave(ControlKind kind) {
  ras.end();
  for (Peer& peer : peers) sendControl(peer, kind, ncclSuccess, "");
  awaitDelivery(kind);
  closeSockets();
  windows.clear();
  if (growId) {
    cancelUniqueId(*growId);
    growId.reset();
  }
  scratch.drop();
}

/**
 * To close a TCP socket with unread bytes discards those that are still to be sent, as does the end of the process. Between hosts,
 * the systems of the peers must therefore have the last elements and messages.
 */
void Comm::awaitDelivery(ControlKind farewell) {
  if (!onSeveralHosts) return;
  bool all = farewell == ControlKind::Close && lifecycle.error() == ncclSuccess;
  std::vector<int> sockets;
  for (const Peer& peer : peers) {
    if (!peer.onOtherHost) continue;
    sockets.push_back(peer.control.fd.get());
    if (!all) continue;
    sockets.push_back(peer.data->descriptor());
    sockets.push_back(peer.puts.fd.get());
  }
  host::awaitDelivery(sockets, all ? initTimeout() : kFaultDelivery);
}

void Comm::closeSockets() {
  for (Peer& peer : peers) {
    peer.control.fd.reset();
    peer.data->announceMessage();
    peer.data = std::make_unique<Channel>();
    peer.puts.fd.reset();
    peer.puts.ofPeer.reset();
    peer.control.passed.reset();
    peer.out.clear();
  }
  ringBytes = 0;
  windows.closeInbox();
}

void Comm::requestAbort() {
  lifecycle.enter(State::Aborted);
  epoch++;
  raiseEvent(wake);
  wakeCallers();
}

size_t Comm::fixedBytes() {
  return sizeof *this + peers.capacity() * sizeof(Peer) + ringBytes + windows.inboxBytes();
}

}  // namespace host

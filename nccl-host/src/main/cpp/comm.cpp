// comm.cpp: life cycle, state and shutdown of a communicator.

#include "comm.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "bootstrap.h"
#include "fork.h"
#include "lastfound.h"
#include "ofthread.h"
#include "processors.h"
#include "rasreport.h"
#include "settings.h"

namespace host {
namespace {

// Never destroyed: helper threads may outlive static destructors.
struct Registry {
  std::mutex mutex;
  std::map<ncclComm_t, std::shared_ptr<Comm>> comms;
};

/** Number of communicators that left the registry. */
std::atomic<uint64_t> removals{0};

Registry& registry() {
  static Registry& instance = *new Registry;
  return instance;
}

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

/** Limit for the unused notes of a peer: an attempt has at most 2, and those of the one before may be unused as well. */
constexpr size_t kMostNotes = 8;

std::atomic<uint64_t> nextSerial{1};

[[noreturn]] void failNotLive(ncclComm_t handle, const char* call) {
  fail(
      ncclInvalidArgument,
      "%s : Error: corrupted comm object detected (%p is no live communicator: destroyed, aborted, or never made)", call,
      static_cast<void*>(handle));
}

/** The communicator that the calling thread used last. */
using LastComm = LastFound<ncclComm_t, Comm>;
LastComm& lastComm() { return ofThread<LastComm>(); }

void checkFound(const Comm* comm, ncclComm_t handle, const char* call) {
  if (handle == nullptr) fail(ncclInvalidArgument, "%s : comm argument is NULL", call);
  if (comm == nullptr) failNotLive(handle, call);
  if (comm->pid != currentProcess()) {
    fail(
        ncclInvalidUsage, "%s : this communicator was made in process %d and cannot be used after fork in process %d",
        call, static_cast<int>(comm->pid), static_cast<int>(currentProcess()));
  }
}

void checkReady(const Comm* found, ncclComm_t handle, const char* call, unsigned allowed) {
  checkFound(found, handle, call);
  const Comm& comm = *found;
  State state = comm.lifecycle.state();
  bool inUse = comm.suspended || comm.pendingSplits > 0 || comm.pendingCalls > 0;
  if (state == State::Ready && !inUse) return;
  if (state == State::Revoked && (allowed & kAllowRevoked) == 0) {
    fail(ncclInvalidUsage, "%s : rank %d has revoked this communicator", call, comm.rank);
  }
  if ((allowed & kAllowFailed) == 0) comm.lifecycle.throwIfFailed();
  if (comm.lifecycle.ended()) failNotLive(handle, call);
  if (comm.suspended && (allowed & kAllowSuspended) == 0) {
    fail(ncclInvalidUsage, "%s : rank %d has suspended this communicator", call, comm.rank);
  }
  if (state == State::Creating || comm.pendingSplits > 0) {
    fail(
        ncclInvalidArgument,
        "%s : the communicator is still being made: poll "
        "ncclCommGetAsyncError until it is no longer ncclInProgress",
        call);
  }
  if (comm.pendingCalls > 0) {
    fail(
        ncclInvalidArgument,
        "%s : an earlier call of the communicator is in progress: poll ncclCommGetAsyncError until it is no longer "
        "ncclInProgress",
        call);
  }
  if (state == State::Finalized) fail(ncclInvalidUsage, "%s : rank %d has finalized this communicator", call, comm.rank);
}

}  // namespace

std::mutex& lockOfComms() { return registry().mutex; }

void Peer::queue(const Frame& frame, const char* inlined) {
  Outgoing& last = out.push_back({});
  last.frame = frame;
  last.frame.number = nextOut++;
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
  if (!out.empty() || !data.shared() || !data.sendFrame(frame)) {
    queue(frame, nullptr);
  } else if (size > 0) {
    iovec part{const_cast<void*>(bytes), size};
    // A broken connection is reported by the next attempt.
    sent = static_cast<size_t>(std::max(0L, data.send(&part, 1)));
  }
  if (sent < size) queue(static_cast<const char*>(bytes) + sent, size - sent);
}

void Peer::postInlined(Frame own, const void* bytes, size_t size) {
  if (size == 0 || size > maxInlined()) return post(own, bytes, size);
  const char* first = static_cast<const char*>(bytes);
  own.add(bytes, size);
  if (!out.empty() || !data.shared() || !data.sendFrame(own, first)) queue(own, first);
}

bool Peer::postOffer(Frame own, const void* bytes, size_t size) {
  if (size < kMany || !data.offers()) return false;
  own.words[kAddress] = reinterpret_cast<uintptr_t>(bytes);
  own.words[kToken] = reinterpret_cast<uintptr_t>(&processToken());
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
  if (theirs.words[kAddress] == 0) return false;
  if (!data.shared()) failUnintelligible();
  data.accept({theirs.words[kAddress], theirs.words[kToken], process, size});
  return true;
}

void Peer::failUnintelligible() const {
  fail(ncclInternalError, "rank %d sent something unintelligible", rank);
}

bool Peer::takeWaiting() {
  if (!data.shared() || !data.isNext(FrameKind::Waiting)) return false;
  char unused[kMaxInlined];
  data.receiveFrame(waiting, unused);
  if (waiting.kind != FrameKind::Waiting) failUnintelligible();
  return true;
}

void Peer::takeCredits() {
  if (buffered == 0) return;
  uint32_t credits = data.takeCredits();
  if (credits > buffered) failUnintelligible();
  buffered -= credits;
}

bool Peer::takeCreditsBeforeFrame() {
  // In this order: all credits that the peer returned before it sent the frame are then there.
  bool arrived = data.hasFrame() || data.ended();
  takeCredits();
  return arrived && awaitsCredit();
}

bool Peer::endBufferedSend() {
  takeCredits();
  if (buffered == 0) return false;
  buffered--;
  return true;
}

bool Peer::endBufferedSendByFrame() {
  return frame.kind == FrameKind::Post && frame.call == Call::Recv && endBufferedSend();
}

int Peer::receiveFrame() {
  if (data.shared()) {
    if (data.receiveFrame(frame, elements)) return 1;
    // Frames that arrived before the end are still valid.
    return !data.ended() ? 0 : data.receiveFrame(frame, elements) ? 1 : -1;
  }
  long got = data.receive(reinterpret_cast<char*>(&frame) + frameBytes, sizeof frame - frameBytes);
  if (got <= 0) return static_cast<int>(got);
  frameBytes += static_cast<size_t>(got);
  if (frameBytes < sizeof frame) return 0;
  frameBytes = 0;
  if (frame.number != nextIn++) failUnintelligible();
  return 1;
}

Comm::Comm(int rankOfComm, int ranksOfComm, int deviceOfComm, const CommSettings& settingsOfComm)
    : serial(nextSerial++),
      pid(currentProcess()),
      rank(rankOfComm),
      ranks(ranksOfComm),
      device(deviceOfComm),
      settings(settingsOfComm),
      blocking(settings.blocking),
      operationTimeout(operationTimeoutSetting.value()),
      sharesMemory(sharedMemorySetting.value() != 0),
      singleCopy(singleCopySetting.value() != 0),
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
    if (!sendControl(peer, ControlKind::Fault, codeForOthers, failure.text()) && peer.control.valid()) {
      shutdown(peer.control.get(), SHUT_WR);
      peer.data.announceMessage();
    }
    // This rank sends no more elements; the peer can still read those in transit.
    peer.data.endSending();
  }
}

void Comm::recordPeerFailure(const Failure& failure) {
  if (!peerFailure_) peerFailure_ = failure;
}

bool Comm::sendControl(Peer& peer, ControlKind kind, int code, const std::string& text) noexcept {
  if (!peer.control.valid() || peer.controlEnded) return false;
  Control message;
  message.kind = kind;
  message.code = code;
  size_t length = std::min(text.size(), sizeof message.text - 1);
  memcpy(message.text, text.data(), length);
  try {
    // Control streams carry only a few short messages, so their buffers have space.
    bool sent = sendSome(peer.control.get(), &message, sizeof message) == sizeof message;
    peer.data.announceMessage();
    return sent;
  } catch (const std::exception&) {
    return false;
  }
}

void Comm::readControl(Peer& peer, const char* during) {
  for (int turn = 0; turn < kControlTurn && peer.control.valid() && !peer.controlEnded; turn++) {
    char* into = reinterpret_cast<char*>(&peer.message) + peer.messageBytes;
    size_t left = sizeof peer.message - peer.messageBytes;
    long got = receiveWithDescriptor(peer.control.get(), into, left, peer.passed);
    if (got == 0) return;
    if (got < 0) {
      peer.controlEnded = true;
      if (!peer.announcedClose) {
        recordPeerFailure(
            ncclRemoteError, format("rank %d (pid %d) went away %s", peer.rank, static_cast<int>(peer.pid), during));
      }
      return;
    }
    peer.messageBytes += static_cast<size_t>(got);
    if (peer.messageBytes < sizeof peer.message) continue;
    peer.messageBytes = 0;
    peer.message.text[sizeof peer.message.text - 1] = '\0';
    switch (peer.message.kind) {
      case ControlKind::Close: peer.announcedClose = true; break;
      case ControlKind::Abort:
        peer.announcedClose = peer.announcedAbort = true;
        recordPeerFailure(
            ncclRemoteError, format("rank %d aborted its communicator; rank %d noticed it %s", peer.rank, rank, during));
        break;
      case ControlKind::Fault:
        peer.announcedFault = true;
        recordPeerFailure(failureOfPeer(peer.message.code), peer.message.text);
        break;
      case ControlKind::Lane:
        if (!peer.passed.valid()) {
          recordPeerFailure(
              ncclSystemError,
              format("rank %d could not take a socket from rank %d: too many open files", rank, peer.rank));
          break;
        }
        try {
          openInbox().addLane(peer.rank, std::move(peer.passed));
        } catch (const Failure& failure) {
          // A lost lane is not passed again.
          recordPeerFailure(
              failure.code(),
              format("rank %d could not take a socket from rank %d: %s", rank, peer.rank, failure.text().c_str()));
        }
        break;
      case ControlKind::Regroup: {
        RegroupNote note;
        memcpy(static_cast<void*>(&note), peer.message.text, sizeof note);
        keepNote(peer, note);
        break;
      }
      case ControlKind::GrowId:
        // The peer made another one, so nobody will serve the one before.
        memcpy(&peer.growId.emplace(), peer.message.text, sizeof(ncclUniqueId));
        break;
      default:
        recordPeerFailure(ncclInternalError, format("rank %d sent something unintelligible", peer.rank));
    }
  }
}

/** Keeps a note of a peer in place of those that it supersedes. */
void Comm::keepNote(Peer& peer, const RegroupNote& note) {
  // The peer abandoned the attempts between the last one that it completed and this one.
  while (!peer.regroups.empty() && peer.regroups.back().attempt > note.completed &&
         peer.regroups.back().attempt < note.attempt) {
    peer.regroups.pop_back();
  }
  if (peer.regroups.size() < kMostNotes) {
    peer.regroups.push_back(note);
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
  if (peer.announcedClose) return;
  recordPeerFailure(
      ncclRemoteError, format("rank %d (pid %d) went away %s", peer.rank, static_cast<int>(peer.pid), during));
}

void Comm::readEndReasonOfLane(Peer& peer, const char* during) {
  readControl(peer, during);
  if (!peer.announcedClose && !peer.controlEnded && peerFailure() == nullptr) {
    // The streams of a rank that dies end one after the other.
    pollfd polled{peer.control.get(), POLLIN, 0};
    poll(&polled, 1, kEndMillis);
    readControl(peer, during);
  }
  if (!peer.announcedClose && !peer.controlEnded) {
    recordPeerFailure(
        ncclRemoteError, format("rank %d (pid %d) takes no more puts", peer.rank, static_cast<int>(peer.pid)));
  }
}

void Comm::failAsClosed(const Peer& peer, const std::string& what) {
  fail(
      ncclRemoteError, "rank %d (pid %d on %s) closed its communicator%s; its program may have failed: see its log",
      peer.rank, static_cast<int>(peer.pid), nodeName().c_str(), what.c_str());
}

Inbox& Comm::openInbox() {
  return windows.openInbox(rank, ranks, settings.rmaContexts, settings.rmaSignals);
}

bool Comm::openLane(Peer& peer) {
  if (peer.rank == rank || peer.lane.valid() || !peer.control.valid()) return true;
  double time = now();
  if (time < peer.nextLaneTry) return false;
  auto [mine, theirs] = newStream();
  enlargeBuffers(mine);
  enlargeBuffers(theirs);
  Control message;
  message.kind = ControlKind::Lane;
  long sent = sendWithDescriptor(peer.control.get(), &message, sizeof message, theirs.get());
  peer.data.announceMessage();
  if (sent == sizeof message) {
    peer.lane = std::move(mine);
    return true;
  }
  if (sent < 0) {
    readEndReason(peer, "before it took puts");
    if (peerFailure() == nullptr) failAsClosed(peer, " before it took puts");
    return false;
  }
  if (peer.laneDeadline == 0) peer.laneDeadline = time + initTimeout();
  if (time >= peer.laneDeadline) {
    fail(
        ncclSystemError,
        "rank %d could not send a socket to rank %d within %.1f s: more descriptors of this user are on their way than "
        "RLIMIT_NOFILE allows",
        rank, peer.rank, initTimeout());
  }
  peer.nextLaneTry = time + kLaneRetry;
  return false;
}

void Comm::leave(ControlKind kind) {
  ras.end();
  for (Peer& peer : peers) sendControl(peer, kind, ncclSuccess, "");
  closeSockets();
  windows.clear();
  if (growId) {
    cancelUniqueId(*growId);
    growId.reset();
  }
  dropScratch();
}

void Comm::closeSockets() {
  for (Peer& peer : peers) {
    peer.control.reset();
    peer.data.announceMessage();
    peer.data.reset();
    peer.lane.reset();
    peer.passed.reset();
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

void Comm::dropScratch() {
  scratch.reset();
  scratchBytes = 0;
}

size_t Comm::fixedBytes() {
  return sizeof *this + peers.capacity() * sizeof(Peer) + ringBytes + windows.inboxBytes();
}

char* Comm::scratchOf(size_t bytes) {
  if (bytes > scratchBytes) {
    dropScratch();
    scratch.reset(new char[bytes]);
    scratchBytes = bytes;
  }
  return scratch.get();
}

void registerComm(const std::shared_ptr<Comm>& comm) {
  std::lock_guard<std::mutex> lock(registry().mutex);
  registry().comms[comm->handle()] = comm;
}

void unregisterComm(const Comm& comm) {
  if (auto* last = ofThreadIfAny<LastComm>()) last->forget();
  std::shared_ptr<Comm> last;  // declared before the lock, so released after it
  std::lock_guard<std::mutex> lock(registry().mutex);
  auto found = registry().comms.find(comm.handle());
  if (found == registry().comms.end()) return;
  last = std::move(found->second);
  registry().comms.erase(found);
  removals++;
}

std::shared_ptr<Comm> findComm(ncclComm_t handle) {
  std::lock_guard<std::mutex> lock(registry().mutex);
  auto found = registry().comms.find(handle);
  return found == registry().comms.end() ? nullptr : found->second;
}

std::shared_ptr<Comm> findCommOf(ncclWindow_t window) {
  std::vector<std::shared_ptr<Comm>> all;
  {
    std::lock_guard<std::mutex> lock(registry().mutex);
    for (const auto& [handle, comm] : registry().comms) all.push_back(comm);
  }
  for (const std::shared_ptr<Comm>& comm : all) {
    if (comm->windows.find(window)) return comm;
  }
  return nullptr;
}

std::shared_ptr<Comm> requireComm(ncclComm_t handle, const char* call) {
  std::shared_ptr<Comm> comm = findComm(handle);
  checkFound(comm.get(), handle, call);
  return comm;
}

const std::shared_ptr<Comm>& requireReadyComm(ncclComm_t handle, const char* call, std::shared_ptr<Comm>& own) {
  const std::shared_ptr<Comm>& last = lastComm().get(handle, removals, [&] { return findComm(handle); });
  checkReady(last.get(), handle, call, kAllowNone);
  if (!last->profiler) return last;
  own = last;
  lastComm().forget();
  return own;
}

std::shared_ptr<Comm> requireReadyComm(ncclComm_t handle, const char* call, unsigned allowed) {
  std::shared_ptr<Comm> comm = findComm(handle);
  checkReady(comm.get(), handle, call, allowed);
  return comm;
}

}  // namespace host

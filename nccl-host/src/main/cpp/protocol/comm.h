// comm.h: a communicator of one rank, its connections to the other ranks, and the registry of live communicators.
//
// Handles are numbers from a counter, never addresses. An invalid or destroyed handle is therefore recognised without
// access to memory, and no later communicator gets the same number.
//
// After fork() a child must not use the communicators of its parent; see fork.h.
//
// The death of a rank is noticed at once, by the end of its sockets. A stopped (SIGSTOP) or hanging rank cannot be told
// from a slow one: only a deadline for operations, NCCL4J_HOST_OP_TIMEOUT, ends the waiting for that rank.
#pragma once

#include <math.h>
#include <sys/types.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/fifo.h"
#include "base/processors.h"
#include "base/settings.h"
#include "protocol/lifecycle.h"
#include "protocol/matcher.h"
#include "protocol/operators.h"
#include "protocol/windowtable.h"
#include "schedule/stream.h"
#include "status/faults.h"
#include "status/profiler.h"
#include "status/ras.h"
#include "transport/channel.h"
#include "transport/network.h"
#include "transport/socket.h"
#include "transport/wire.h"

namespace host {

/** The control stream from and to a peer. */
struct ControlStream {
  Fd fd;
  bool ended = false;

  Control message;  // the one being received
  size_t messageBytes = 0;
  Fd passed;  // descriptor that came with it

  bool announcedClose = false;
  bool announcedAbort = false;  // and announcedClose
  bool announcedFault = false;

  // Unused messages for new communicators.
  Fifo<RegroupNote> regroups;
  std::optional<ncclUniqueId> growId;
  size_t messagesForNew() const { return regroups.size() + (growId ? 1 : 0); }

  /** True while messages may come and go. */
  bool isOpen() const { return fd.valid() && !ended; }
  /** True if the peer sends no more calls. */
  bool isOver() const { return announcedClose || ended; }
};

/** The lane for this rank's puts to a peer; opened with the first window or signal, or when the ranks of two hosts connect. */
struct PutLane {
  Fd fd;
  Fd ofPeer;  // for its puts, until the inbox takes it; only of another host
  bool broken = false;
  double nextTry = 0;   // after the system refused to pass the peer's end
  double deadline = 0;  // 0: no refusal yet
};

/** The connection to one other rank. Only the holder of Comm::operation may use it. */
struct Peer {
  int rank = -1;
  pid_t pid = 0;
  uint64_t process = 0;  // equal for ranks of one process
  std::string host;      // its name
  uint64_t hostNumber = 0;
  bool onOtherHost = false;
  NetworkAddress status;  // of the status service of its process, for those of other hosts
  std::unique_ptr<Channel> data = std::make_unique<Channel>();
  ControlStream control;
  PutLane puts;

  Fifo<Outgoing> out;
  bool sendBroken = false;
  bool dataEnded = false;

  Frame frame;            // the last one received, or the one being received
  alignas(16) char elements[kMaxInlined];  // of this frame, if they are not in its words

  PeerCalls calls;
  Credits credits;
  void takeCredits();
  /** Ends a buffered Send with an announced Recv; returns false if none lacks its Recv. */
  bool endBufferedSend();
  /** Takes the last frame if it ends a buffered Send, or agrees with the first unverified call. */
  bool takeEarlier() {
    if (frame.kind == FrameKind::Post && frame.call == Call::Recv && endBufferedSend()) return true;
    if (calls.unverified.empty() || !isSameCall(frame, calls.unverified.front()) || frame.inlined > 0) return false;
    calls.unverified.pop_front();
    return true;
  }
  /** Keeps the elements of the last frame, whose place the next frame takes, if their Send is not matched. */
  void keepElements() {
    if (frame.inlined > sizeof frame.words && !calls.sends.empty()) calls.sends.back().elements.assign(elements, frame.inlined);
  }

  /** The elements that belong to the last frame received. */
  const char* inlined() const { return frame.elements(elements); }
  void queue(const Frame& frame, const char* elements);
  void queue(const void* data, size_t size);
  /** Sends a frame, and bytes after it; at once what the channel accepts. */
  void post(const Frame& frame, const void* data, size_t size);
  /** As above, but the bytes belong to the frame if they are few. */
  void postInlined(Frame frame, const void* data, size_t size);
  /** Sends a frame that offers these elements; false if they are few or the connection permits no offers. */
  bool postOffer(Frame frame, const void* data, size_t size);
  /** Sends a Data frame, and offers these elements or sends them after it. */
  void postData(Frame frame, const void* data, size_t size);
  /** Prepares to copy the elements that a frame offers; false if it offers none. */
  bool acceptOffer(const Frame& frame, size_t size);
  /** For bytes that no rank sends. */
  [[noreturn]] void failUnintelligible() const;
  /** Takes the next frame if it is a Waiting frame in shared memory. */
  bool takeWaiting();
  /**
   * Receives a frame without waiting: 1, 0 if there is none, -1 at the end. Throws if it is none of this connection. If a Send waits for
   * credits, takes them first, and no frame if they suffice: it may belong to a later call.
   */
  int receiveFrame();
};

/** The part of a communicator's configuration that this engine uses. */
struct CommSettings {
  bool blocking = true;
  int rmaContexts = 1;
  int rmaSignals = 1;  // per context
  std::string name;    // for a profiler
};

/** Memory for the windows of a fold, which its operations share. */
class Scratch {
 public:
  char* ofSize(size_t bytes) {
    if (bytes > bytes_) {
      drop();
      memory_.reset(new char[bytes]);
      bytes_ = bytes;
    }
    return memory_.get();
  }
  void drop() {
    memory_.reset();
    bytes_ = 0;
  }
  size_t bytes() const { return bytes_; }

 private:
  std::unique_ptr<char[]> memory_;
  std::atomic<size_t> bytes_{0};
};

/**
 * Decides which operations in created streams run in the stream's thread from the start. After successive late operations these are
 * 0, 1, 3, 7, 15: that thread takes longer for one and makes the other ranks late in turn.
 */
class BackOff {
 public:
  /** Call for each operation: true if it is one of them. */
  bool takesNext() {
    if (left_ == 0) return false;
    left_--;
    return true;
  }
  /** Call after an operation that the thread has to continue. */
  void late() {
    int count = next_;
    left_ = count;
    next_ = std::min(2 * count + 1, 15);
  }
  /** Call after an operation that its call completed. Writes only a change: a write costs a locked instruction. */
  void onTime() {
    if (next_.load(std::memory_order_relaxed) != 0) next_ = 0;
  }

 private:
  std::atomic<int> left_{0};
  std::atomic<int> next_{0};
};

class Comm {
 public:
  Comm(int rank, int ranks, int device, const CommSettings& settings);
  ~Comm();
  Comm(const Comm&) = delete;

  const uint64_t serial;
  const pid_t pid;
  int rank;
  int ranks;
  int device;
  const uint64_t host;  // of this rank; see hostNumber
  const CommSettings settings;
  const bool blocking;
  const double operationTimeout;  // seconds; 0: none
  const bool sharesMemory;        // on connections to lower ranks
  const bool singleCopy;          // on connections with shared memory
  /** True if the ranks of a host are more than the processors that one of them may use. */
  bool crowded = false;  // equal at all ranks
  bool onSeveralHosts = false;
  PollingTime pollingTime;             // needs `operation`
  std::unique_ptr<Faults> faults;      // NULL if the rank has none
  std::unique_ptr<Profiler> profiler;  // NULL if there is no plugin

  ncclComm_t handle() const;
  /** Calls action with the peers. Each rank begins with another one. */
  template <class Action>
  void eachPeer(Action&& action) {
    for (int one = next(rank); one != rank; one = next(one)) action(peers[static_cast<size_t>(one)]);
  }

  /** Held while an operation communicates, which another thread may continue; ncclCommAbort waits for it. */
  Baton operation;
  std::vector<Peer> peers;        // by rank; this rank's entry has no sockets
  uint64_t hash = 0;              // equal on all ranks
  Scratch scratch;
  std::atomic<size_t> ringBytes{0};  // of the rings that this rank writes

  // These need `operation`.
  Matcher matcher;
  /** True if the channels to all other ranks can do this. */
  bool allHave(Capability capability) const {
    return std::all_of(peers.begin(), peers.end(), [&](const Peer& peer) {
      return peer.rank == rank || peer.data->has(capability);
    });
  }
  /** As allHave(Capability::OptionalFrames), looked up once. Call when all ranks are connected. */
  bool haveOptionalFrames() {
    if (!haveOptionalFrames_) haveOptionalFrames_ = allHave(Capability::OptionalFrames);
    return *haveOptionalFrames_;
  }

  Lifecycle lifecycle;
  /** Readable from an abort on, and during an interrupt. */
  Fd wake;
  /** Number of interrupts and aborts; a change cancels the operations that were enqueued earlier. */
  std::atomic<uint64_t> epoch{0};
  /** False if operations that are still enqueued will fail before they begin. */
  bool operationsRun() const { return lifecycle.error() == ncclSuccess && !lifecycle.is(State::Revoked); }
  Order order;
  BackOff backOff;
  /** Number of threads inside a call on this communicator, without direct calls that have no item; see hasCallers. */
  std::atomic<int> callers{0};
  /** Number of unfinished calls on a non-blocking communicator. */
  std::atomic<int> pendingCalls{0};
  /** Result of the last of these calls; kNoCall after ncclCommGetAsyncError has returned it. */
  std::atomic<int> callResult{kNoCall};
  static constexpr int kNoCall = -1;
  /** True until the program reacts to the error; see stream.h. */
  bool failureStands() const {
    return lifecycle.error() != ncclSuccess && epoch == 0 && !lifecycle.ended();
  }
  /** Above 0 while a thread waits for the end of another thread's operation. */
  std::atomic<int> interrupts{0};
  /** The call that interrupted last. */
  std::atomic<const char*> interruptReason{""};
  /** Ends the running operation, if any. No other operation runs until the returned lock is released. */
  std::unique_lock<Baton> interrupt(const char* reason);

  std::atomic<int> pendingSplits{0};  // children in construction by helper threads
  /** Set by ncclCommSuspend, which concerns memory only: a revoked communicator may be suspended as well. */
  std::atomic<bool> suspended{false};
  std::mutex initThreadMutex;  // for start and join: several threads may abort at once
  std::thread initThread;

  /** Keeps the error, and reports it to all other ranks. Needs `operation`. */
  void breakDown(const Failure& failure) noexcept { breakDown(failure, failure.code()); }
  /** As above with a different code for the other ranks. */
  void breakDown(const Failure& failure, ncclResult_t codeForOthers) noexcept;
  /** For a failure outside the communication of an operation, whose locks have been released. */
  void failOperation(const Failure& failure) noexcept;

  /** Reads the control stream without waiting. Needs `operation`. */
  void readControl(Peer& peer, const char* during);
  void readAllControl(const char* during);
  /** As readAllControl, but in most calls only the streams of peers that announced a message. */
  template <class During>
  void readNewControl(During&& during) {
    // A rank that died announced nothing.
    bool all = isFullReadDue();
    for (Peer& peer : peers) {
      bool announced = peer.data->messageAnnounced();
      if ((all || announced) && peer.control.fd.valid()) readControl(peer, during().c_str());
    }
  }
  /** True if an operation that begins now would fail; its task reports the reason. Needs `operation`. */
  template <class During>
  bool isDisturbed(During&& during) {
    if (!lifecycle.is(State::Ready) || interrupts > 0) return true;
    readNewControl(during);
    return peerFailure() != nullptr;
  }
  /** The first failure that a peer reported, or NULL. Not yet this communicator's error: data in transit comes first. */
  const Failure* peerFailure();
  void recordPeerFailure(ncclResult_t code, const std::string& text) { recordPeerFailure(Failure(code, text)); }
  void recordPeerFailure(const Failure& failure);
  /** Call when a stream of the peer ended. Reads the reason from the control stream; without one the rank is dead. */
  void readEndReason(Peer& peer, const char* during);
  /** As above for the lane to this peer, which may also end because of a failure of the peer's inbox. */
  void readEndReasonOfLane(Peer& peer, const char* during);
  /**
   * The failure of a call that needs a rank that has closed its communicator. Not a wrong call: a program that fails
   * closes its communicators, too. `what` continues the sentence: ", but rank 0 called AllReduce".
   */
  [[noreturn]] static void failAsClosed(const Peer& peer, const std::string& what);

  /** Sends a message of this kind to all ranks and closes all sockets. Needs `operation`. */
  void leave(ControlKind kind);
  /** Closes all sockets without a message, as the death of the process would. Needs `operation`. */
  void closeSockets();
  void requestAbort();

  /** Bytes of memory of this communicator without scratch. */
  size_t fixedBytes();

  Operators operators;
  WindowTable windows;
  uint64_t nextWindow = 0;  // needs `operation`
  Inbox& openInbox();
  /**
   * Passes the peer its end of the lane for this rank's puts, unless the lane is open. Returns false if the caller must
   * try again at PutLane::nextTry. Throws after the init timeout. Needs `operation`.
   */
  bool openLane(Peer& peer);

  /** Number of attempts to create communicators over the control streams. Needs `operation`. */
  uint64_t regroupAttempts = 0;
  uint64_t regroupsCompleted = 0;

  /** The unused id that ncclCommGetUniqueId created at this rank. Needs `operation`. */
  std::unique_ptr<ncclUniqueId> growId;

  RasPresence ras;

  /** Sends a control message; returns false if it was not sent. */
  bool sendControl(Peer& peer, ControlKind kind, int code, const std::string& text) noexcept;

 private:
  void awaitDelivery(ControlKind farewell);
  void keepNote(Peer& peer, const RegroupNote& note);
  int next(int one) const { return one + 1 == ranks ? 0 : one + 1; }

  std::optional<Failure> peerFailure_;
  std::optional<bool> haveOptionalFrames_;
  bool reported_ = false;  // the other ranks know that this rank takes no further part
  bool isFullReadDue();
  unsigned controlReads_ = 0;
  double nextFullRead_ = 0;
};

/** Makes the communicator available under its handle. */
void registerComm(const std::shared_ptr<Comm>& comm);
void unregisterComm(const Comm& comm);

/** Returns the live communicator with this handle, or NULL. */
std::shared_ptr<Comm> findComm(ncclComm_t handle);

/** Returns the live communicator with this window, or NULL. */
std::shared_ptr<Comm> findCommOf(ncclWindow_t window);

/**
 * Returns the communicator of a call. Throws if the handle is NULL, unknown, or of the parent of this forked process.
 */
std::shared_ptr<Comm> requireComm(ncclComm_t handle, const char* call);

/** States in which a call is allowed nevertheless. */
enum Allow : unsigned { kAllowNone = 0, kAllowFailed = 1, kAllowRevoked = 2, kAllowSuspended = 4 };

/** As requireComm; also throws if the communicator is not ready for the call. */
std::shared_ptr<Comm> requireReadyComm(ncclComm_t handle, const char* call, unsigned allowed = kAllowNone);

/**
 * The same for operations, without a lock or a count of references if the thread used the communicator last. The thread keeps the
 * communicator until its next operation. It does not keep one with a profiler, because the plugin is told its end: the reference
 * is in `own` then.
 */
const CommRef& requireReadyComm(ncclComm_t handle, const char* call, CommRef& own);

}  // namespace host

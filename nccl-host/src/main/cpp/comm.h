// comm.h: a communicator of one rank, its connections to the other ranks, and the registry of live communicators.
//
// Handles given to callers are numbers from a counter, never addresses: a handle that was destroyed, or was never one,
// is recognised without touching memory, and no later communicator gets the same number.
//
// After fork() a child must not use the communicators of its parent: both would read from the same sockets. Calls from
// the child are refused. Note that the child also keeps the sockets open until it calls exec or exits, so the death of
// the parent is noticed only then.
//
// The death of a rank shows at once, as the end of its sockets. A rank that is stopped (SIGSTOP) or hangs looks like a
// slow one: only a deadline for operations, NCCL4J_HOST_OP_TIMEOUT, ends the waiting for it.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "channel.h"
#include "error.h"
#include "faults.h"
#include "inbox.h"
#include "socket.h"
#include "stream.h"
#include "wire.h"

namespace host {

/** Bytes on their way out: a frame that is kept here, or memory of the caller. */
struct Outgoing {
  Frame frame;
  const char* data = nullptr;  // NULL: the frame itself
  size_t size = 0;
  size_t sent = 0;
};

/** The connection to one other rank. Used only by the thread that holds Comm::operation. */
struct Peer {
  int rank = -1;
  pid_t pid = 0;
  uint64_t process = 0;  // the same for ranks of one process
  Channel data;
  Fd control;
  Fd lane;  // for puts to this rank; opened with the first window or signal
  bool laneBroken = false;
  double nextLaneTry = 0;   // when the system has refused to carry the other end
  double laneDeadline = 0;  // 0: it has not

  std::deque<Outgoing> out;
  bool sendBroken = false;
  bool dataEnded = false;

  Frame frame;            // being received
  size_t frameBytes = 0;  // of it so far

  // Send and Recv calls of the peer that this rank has not matched yet.
  std::deque<Frame> remoteSends;
  std::deque<Frame> remoteRecvs;

  // What it told for new communicators, not yet used.
  std::deque<RegroupNote> regroups;
  std::deque<ncclUniqueId> growIds;

  Control message;
  Fd passed;  // came with the message
  size_t messageBytes = 0;
  bool controlEnded = false;
  bool saidBye = false;

  void queue(const Frame& frame);
  void queue(const void* data, size_t size);
};

/** A reduction operator made with ncclRedOpCreatePreMulSum. */
struct PreMulSum {
  ncclDataType_t type = ncclInt8;
  bool onDevice = false;
  const void* address = nullptr;
  uint64_t value = 0;
};

/** Memory of all ranks that ncclCommWindowRegister made known to this one. */
struct Window {
  uint64_t number = 0;  // the same on all ranks
  char* base = nullptr;
  size_t size = 0;
  int flags = 0;
  std::vector<size_t> sizes;  // by rank
  std::vector<char*> bases;   // by rank; valid in the process of that rank
};

/** What this engine uses of a communicator's configuration. */
struct CommSettings {
  bool blocking = true;
  int rmaContexts = 1;
  int rmaSignals = 1;  // of each context
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
  const CommSettings settings;
  const bool blocking;
  const double operationTimeout;  // seconds, 0 for none
  const bool sharesMemory;        // with lower ranks
  std::unique_ptr<Faults> faults;  // mostly empty

  ncclComm_t handle() const;

  /** Held by the thread that communicates; abort waits for it. */
  std::mutex operation;
  std::vector<Peer> peers;        // by rank; the own entry has no sockets
  uint64_t hash = 0;              // the same on all ranks
  std::unique_ptr<char[]> scratch;  // windows of the fold
  std::atomic<size_t> scratchBytes{0};
  std::atomic<size_t> ringBytes{0};  // those that this rank writes

  /** Set by ncclCommAbort; wake is readable from then on. */
  std::atomic<bool> aborted{false};
  Fd wake;

  std::atomic<bool> revoked{false};
  /** Changes when what was told to the communicator before is not to run any more. */
  std::atomic<uint64_t> epoch{0};
  /** The last that it was told; guarded by the lock of stream.cpp. */
  ItemRef lastItem;
  /** Threads that are in a call with it. */
  std::atomic<int> callers{0};
  /** Calls of one that does not block, which are begun and not done. */
  std::atomic<int> pendingCalls{0};
  /** What came of the last of them, or kNoCall when somebody has asked since. */
  std::atomic<int> callResult{kNoCall};
  static constexpr int kNoCall = -1;
  /** Somebody did something about its failure. */
  std::atomic<bool> answered{false};
  bool failureStands() const { return !answered && error() != ncclSuccess; }
  /** Above 0 while a thread waits for the end of the operation that another one runs. */
  std::atomic<int> interrupts{0};
  /** Ends the operation that runs now, if any, and keeps others off until the lock is given up. */
  std::unique_lock<std::mutex> interrupt(const char* reason);
  std::string interruptReason() const;

  std::atomic<bool> initializing{false};
  std::atomic<int> pendingSplits{0};  // children being made by helper threads
  std::atomic<bool> finalized{false};
  std::atomic<bool> suspended{false};
  std::mutex initThreadMutex;  // to start and to join it: several threads may abort at once
  std::thread initThread;

  // State, readable at any time.
  ncclResult_t error() const;
  std::string errorText() const;
  /** Throws the first error of this communicator, if it had one. */
  void throwIfFailed() const;
  /** Keeps the first error only. */
  void setError(ncclResult_t code, const std::string& text);
  /** A revoked communicator has no error: it is what new ones are made of. */
  void clearError();
  /** setError, and tells all other ranks. Needs `operation`. */
  void breakDown(ncclResult_t code, const std::string& text);
  /** As above where the others get another code. */
  void breakDown(ncclResult_t code, const std::string& text, ncclResult_t codeForOthers);

  /** Reads the control streams without waiting. Needs `operation`. */
  void readControl(Peer& peer, const char* during);
  void readAllControl(const char* during);
  /** Bad news from a peer that is not yet this communicator's error: running data is taken in first. */
  bool hasBadNews();
  ncclResult_t badNewsCode() const { return badNewsCode_; }
  const std::string& badNewsText() const { return badNewsText_; }
  void badNews(ncclResult_t code, const std::string& text);
  /** A stream of a rank ended: its control stream says why; when it does not, the rank is gone. */
  void lookForReason(Peer& peer, const char* during);

  /** Says farewell and closes all sockets. Needs `operation`. */
  void leave(ControlKind kind);
  /** Closes all sockets without a word, as the death of the process would. Needs `operation`. */
  void vanish();
  void requestAbort();

  char* scratchOf(size_t bytes);
  void dropScratch();
  /** Memory of this communicator besides scratch. */
  size_t fixedBytes();

  std::mutex redOpsMutex;
  std::map<int, PreMulSum> redOps;
  int nextRedOp = ncclNumOps;

  /** Changed only with both `operation` and windowsMutex, so that either is enough to use it. */
  std::unique_ptr<Inbox> inbox;
  Inbox& openInbox();
  /**
   * Gives a rank the other end of the lane for this rank's puts, if it has none yet; false when that is to be tried again
   * at nextLaneTry. Throws after the init timeout. Needs `operation`.
   */
  bool openLane(Peer& peer);

  std::mutex windowsMutex;
  std::map<ncclWindow_t, Window> windows;
  uint64_t nextWindow = 0;
  ncclWindow_t keepWindow(Window window);
  /** Stops puts to a window of this rank. */
  void forgetWindow(uint64_t number);

  /** How often ranks of this communicator tried to make others over the control streams. Needs `operation`. */
  uint64_t regroupAttempts = 0;
  uint64_t regroupsCompleted = 0;

  /** Made by ncclCommGetUniqueId here and not yet used. Needs `operation`. */
  std::unique_ptr<ncclUniqueId> growId;

  /** False when the message was not sent. */
  bool tell(Peer& peer, ControlKind kind, int code, const std::string& text) noexcept;

 private:
  mutable std::mutex stateMutex_;
  ncclResult_t error_ = ncclSuccess;
  std::string errorText_;
  ncclResult_t badNewsCode_ = ncclSuccess;
  std::string badNewsText_;
  std::string interruptReason_;
  bool brokenDown_ = false;
};

/** Makes a communicator known under its handle. */
void registerComm(const std::shared_ptr<Comm>& comm);
void unregisterComm(const Comm& comm);

/** The live communicator behind a handle, or empty. */
std::shared_ptr<Comm> findComm(ncclComm_t handle);

/** The live communicator with a window, or empty. */
std::shared_ptr<Comm> findCommOf(ncclWindow_t window);

/** The communicator of a call; throws when it is NULL, unknown, or belongs to the parent of this forked process. */
std::shared_ptr<Comm> requireComm(ncclComm_t handle, const char* call);

/** States that do not keep a communicator from a call. */
enum Allow : unsigned { kAllowNone = 0, kAllowFailed = 1, kAllowRevoked = 2, kAllowSuspended = 4 };

/** As requireComm; also throws when the communicator is not ready for the call. */
std::shared_ptr<Comm> requireReadyComm(ncclComm_t handle, const char* call, unsigned allowed = kAllowNone);

}  // namespace host

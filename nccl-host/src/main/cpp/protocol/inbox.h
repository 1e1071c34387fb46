// inbox.h: receives the puts and signals of other ranks.
//
// A put needs no call of its target. Each communicator with windows therefore has a thread that receives puts on
// arrival, on one lane (a one-way stream) per other rank, and writes them directly into the window. A sender waits only
// while this thread serves other senders, never for a call of its target.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/error.h"
#include "transport/socket.h"
#include "transport/wire.h"

namespace host {

class Inbox {
 public:
  Inbox(int rank, int ranks, int contexts, int signalsPerContext);
  ~Inbox();
  Inbox(const Inbox&) = delete;

  void addWindow(uint64_t number, char* base, size_t size);
  /** When this returns, no more bytes are written to the window's memory. */
  void removeWindow(uint64_t number);

  void addLane(int from, Fd lane);
  bool hasLane(int from) const;
  /** True if this rank can send no more signals. */
  bool ended(int from) const;

  void raise(const SignalKey& signal);
  /** True if `wanted` has signals of this rank that have not arrived. */
  bool lacks(const SignalCounts& wanted, int from) const;
  /** Consumes the signals if all have arrived; otherwise none. */
  bool take(const SignalCounts& wanted);

  /** Throws if a put arrived that fits no window of this rank. */
  void throwIfFaulty() const;

  size_t heldBytes() const;

  /** Descriptor, readable after a signal, the end of a lane, or a fault. */
  int notification() const { return notification_.get(); }
  void clearNotification();

 private:
  struct Lane {
    Fd fd;
    bool ended = false;
    PutFrame frame;
    size_t frameBytes = 0;
    uint64_t received = 0;
    bool dropped = false;
  };
  struct Window {
    char* base = nullptr;
    size_t size = 0;
  };

  void run();
  void takePuts();
  void noteFault(const Failure& fault) noexcept;
  void receive(int from, Lane& lane);
  void endLane(Lane& lane);
  bool isSignal(const PutFrame& frame) const;
  char* targetOf(const Lane& lane) const;
  void finishPut(int from, Lane& lane);
  uint64_t count(const SignalKey& signal) const;

  const int rank_;
  const int contexts_;
  const int signalsPerContext_;
  mutable std::mutex mutex_;
  std::vector<Lane> lanes_;  // by rank; this rank's entry is unused
  SignalCounts signals_;     // arrived and not consumed
  std::map<uint64_t, Window> windows_;
  std::optional<Failure> fault_;
  bool stopping_ = false;
  Fd notification_;
  Fd wake_;
  std::thread thread_;
};

}  // namespace host

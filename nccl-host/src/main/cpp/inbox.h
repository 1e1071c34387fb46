// inbox.h: where the puts and signals of other ranks arrive.
//
// A put needs no call of its target. So each communicator with windows has a thread that takes puts as they come, on a
// lane (a one-way stream) of its own from each other rank, and writes them straight into the window. A sender is held up
// only while that thread is busy with others, never because its target is in no call.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "error.h"
#include "socket.h"
#include "wire.h"

namespace host {

class Inbox {
 public:
  Inbox(int rank, int ranks);
  ~Inbox();
  Inbox(const Inbox&) = delete;

  void addWindow(uint64_t number, char* base, size_t size);
  /** After it nothing is written to the window's memory. */
  void removeWindow(uint64_t number);

  void addLane(int from, Fd lane);
  bool hasLane(int from) const;
  /** True when no more signals of this rank can come. */
  bool ended(int from) const;

  void raise(const SignalKey& signal);
  /** True if signals of this rank are wanted that have not come yet. */
  bool lacks(const SignalCounts& wanted, int from) const;
  /** Takes the signals if all are there; else none. */
  bool take(const SignalCounts& wanted);

  /** Throws when a put came that no window of this rank can take. */
  void throwIfFaulty() const;

  size_t heldBytes() const;

  /** Readable when there is news: signals, the end of a lane, a fault. */
  int news() const { return news_.get(); }
  void forgetNews();

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
  void noteFault(ncclResult_t code, const std::string& text);
  void receive(int from, Lane& lane);
  char* targetOf(const Lane& lane) const;
  void finishPut(int from, Lane& lane);
  uint64_t count(const SignalKey& signal) const;

  const int rank_;
  mutable std::mutex mutex_;
  std::vector<Lane> lanes_;  // by rank; the own one is not used
  SignalCounts signals_;     // that came and were not taken
  std::map<uint64_t, Window> windows_;
  std::unique_ptr<Failure> fault_;
  bool stopping_ = false;
  Fd news_;
  Fd wake_;
  std::thread thread_;
};

}  // namespace host

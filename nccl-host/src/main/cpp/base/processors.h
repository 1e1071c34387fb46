// processors.h: what this process is, how many processors it may use, and polling.
#pragma once

#include <sys/types.h>

#include <algorithm>

namespace host {

/** As getpid(), without a system call. */
pid_t currentProcess();

/** Number of processors that the affinity of this thread and the quota of its control group allow; at least 1. */
int usableProcessors();

/**
 * The time that a rank polls before it sleeps. About the cost of a sleep at first, so that an idle rank uses no processor. Ranks
 * that wake each other do so one after the other, which takes longer than that with many of them, and then all sleep
 * again in the next operation: a rank that was woken soon therefore polls longer the next time.
 */
class PollingTime {
 public:
  static constexpr double kLeast = 50e-6;
  static constexpr double kMost = 2e-3;

  double seconds() const { return seconds_; }
  /** Call after a sleep of this many seconds. */
  void slept(double seconds);

 private:
  double seconds_ = kLeast;
};

/** Pauses for a moment between two looks at memory that another thread is about to write. */
void relax();

/** A wait without a system call for a peer that is about to write. */
class Polling {
 public:
  /**
   * `crowded`: there are more ranks than processors, so each turn yields to another thread. `peers`: those that a turn
   * looks at. `seconds` count from the first look at the clock.
   */
  Polling(bool crowded, size_t peers, double seconds)
      : crowded_(crowded),
        clockTurn_(crowded ? 2 : static_cast<unsigned>(std::max<size_t>(1, kLooksWithoutYield / std::max<size_t>(1, peers)))),
        seconds_(seconds) {}

  /** Pauses for a moment; false if the time is used up. */
  bool again();
  /** Starts the time anew. */
  void restart() { turns_ = 0; }

 private:
  /** Looks at a peer before the first yield and the first look at the clock; about 2 us. */
  static constexpr size_t kLooksWithoutYield = 32;

  const bool crowded_;
  const unsigned clockTurn_;  // the first turn that reads the clock
  const double seconds_;
  unsigned turns_ = 0;
  double end_ = 0;
};

}  // namespace host

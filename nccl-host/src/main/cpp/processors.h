// processors.h: what this process is, and how many processors it may use.
#pragma once

#include <sys/types.h>

namespace host {

/** As getpid(), without a system call. */
pid_t currentProcess();

/** Number of processors that the affinity of this thread and the quota of its control group allow; at least 1. */
int usableProcessors();

/**
 * A wait without a system call for a peer that is about to write. It ends after about 50 us, so that an idle rank uses no
 * processor.
 */
class Polling {
 public:
  /** `crowded`: there are more ranks than processors, so each turn yields to another thread. */
  explicit Polling(bool crowded) : crowded_(crowded) {}

  /** Pauses for a moment; false if the time is used up. */
  bool again();
  /** Starts the time anew. */
  void restart() { turns_ = 0; }

 private:
  const bool crowded_;
  unsigned turns_ = 0;
  double end_ = 0;
};

}  // namespace host

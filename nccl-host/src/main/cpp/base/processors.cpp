// processors.cpp: the process id, the number of processors, and polling.

#include "base/processors.h"

#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <string>

#include "base/fork.h"
#include "transport/socket.h"

namespace host {
namespace {

std::atomic<pid_t> process{0};

/** Processors of a quota of control group version 2 at this folder; 0 if it sets none. */
int quotaAt(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");
  std::string quota;
  long period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return 0;
  long limit = atol(quota.c_str());
  return static_cast<int>(std::max(1L, (limit + period - 1) / period));
}

/** The smallest quota of this process's control group and the groups around it; 0 for none. */
int quotaOfProcess() {
  std::ifstream groups("/proc/self/cgroup");
  int least = 0;
  for (std::string line; std::getline(groups, line);) {
    if (line.compare(0, 3, "0::") != 0) continue;
    std::string group = line.substr(3);
    for (;;) {
      int quota = quotaAt("/sys/fs/cgroup" + group);
      if (quota > 0 && (least == 0 || quota < least)) least = quota;
      if (group.empty()) break;
      group.erase(std::min(group.rfind('/'), group.size()));
    }
  }
  return least;
}

}  // namespace

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

pid_t currentProcess() {
  pid_t known = process.load(std::memory_order_relaxed);
  if (known != 0) return known;
  known = getpid();
  if (forksAreHandled()) process.store(known, std::memory_order_relaxed);
  return known;
}

void renewProcess() { process.store(getpid(), std::memory_order_relaxed); }

int usableProcessors() {
  // Not a static constant: a fork while another thread initializes it would leave it uninitialized for ever.
  static std::atomic<int> known{-1};
  int quota = known;
  if (quota < 0) known = quota = quotaOfProcess();
  int processors = 0;
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) processors = CPU_COUNT(&allowed);
  // More processors than a cpu_set_t has.
  if (processors == 0) processors = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  if (quota > 0) processors = std::min(processors, quota);
  return std::max(1, processors);
}

void PollingTime::slept(double seconds) {
  seconds_ = seconds < 4 * seconds_ ? std::min(2 * seconds_, kMost) : std::max(seconds_ / 2, kLeast);
}

bool Polling::again() {
  turns_++;
  // Most waits end before: to read the clock costs as much as a few looks.
  if (turns_ >= clockTurn_) {
    double time = now();
    if (turns_ == clockTurn_) end_ = time + seconds_;
    if (time >= end_) return false;
  }
  // A peer may be waiting for this processor. The caller looks after each yield, which may take long.
  if (crowded_ || turns_ > clockTurn_) {
    sched_yield();
  } else {
    relax();
  }
  return true;
}

}  // namespace host

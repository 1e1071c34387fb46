// ras.h: the status service of a process, with the protocol and the reports of NCCL's RAS.
//
// If it is enabled, a process with communicators has one thread for it. As in NCCL, the thread listens at NCCL_RAS_ADDR; all
// processes of a user may listen there, and the kernel chooses the one that answers a client. That one asks the other
// processes of the job: each listens under an abstract name that follows from its process token, and, if it has a communicator
// between hosts, at a port of the interface of its ranks. The ranks of a communicator know token and port of each other; both ends
// prove to know the token (proof.h).
//
// The thread takes no lock of a communicator, so that it answers while operations hang, and no operation waits for it.
#pragma once

#include <array>
#include <atomic>

#include "base/types.h"
#include "transport/network.h"

namespace host {

class Comm;

/** The calls whose launches are counted: the collectives, which are the first calls. */
constexpr size_t kCountedCalls = static_cast<size_t>(Call::AlltoAllv) + 1;

/** A communicator in the reports of the service. */
class RasPresence {
 public:
  RasPresence() = default;
  ~RasPresence() { end(); }
  RasPresence(const RasPresence&) = delete;

  /**
   * Lets processes of other hosts ask, before ranks of theirs are connected. Returns where they ask; not valid if the service is not
   * enabled, or the system has no socket for it.
   */
  NetworkAddress listen(const Interface& interface);
  /** Adds a communicator whose ranks are connected; the first one of the process starts the service, if it is enabled. */
  void begin(const Comm& comm);
  /** Removes it; the last one of the process ends the service. */
  void end();

  void countLaunch(Call call) {
    size_t index = static_cast<size_t>(call);
    if (index >= kCountedCalls || comm_.load(std::memory_order_relaxed) == nullptr) return;
    launched_[index].fetch_add(1, std::memory_order_relaxed);
  }
  uint64_t launched(size_t call) const { return launched_[call].load(std::memory_order_relaxed); }

 private:
  std::atomic<const Comm*> comm_{nullptr};  // NULL if it is in no report
  bool listens_ = false;
  std::array<std::atomic<uint64_t>, kCountedCalls> launched_{};
};

}  // namespace host

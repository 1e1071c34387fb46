// profiler.h: calls a profiler plugin as NCCL does. NCCL_PROFILER_PLUGIN names it. A communicator without a plugin costs one
// comparison with NULL per operation.
//
// An operation is what NCCL launches as a kernel with one channel; its GPU clock is the clock of the system.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <atomic>
#include <memory>
#include <string>

namespace host {

class Comm;
struct Operation;

/** An operation in the plugin. */
struct ProfiledOperation {
  void* operation = nullptr;
  void* kernel = nullptr;
};

/** A communicator in the plugin. */
class Profiler {
 public:
  /** Returns NULL if there is no plugin. The first call of the process loads it. */
  static std::unique_ptr<Profiler> open(const Comm& comm);
  ~Profiler();
  Profiler(const Profiler&) = delete;

  /** Called around the launch of an operation; the group is an event of the plugin, or NULL. */
  void* beginLaunch();
  void launched(Operation& operation, void* group);
  void endLaunch(void* group);

  void kernelStarts(ProfiledOperation& operation);
  void kernelStops(ProfiledOperation& operation);

 private:
  Profiler() = default;
  static constexpr size_t kCalls = 32;
  void* context_ = nullptr;
  int rank_ = 0;
  std::atomic<uint64_t> launches_[kCalls] = {};  // by call
};

}  // namespace host

/*
 * The interface between NCCL and a profiler plugin, in the versions 4 (NCCL 2.27), 5 (2.28), 6 (2.29) and 7 (2.31). A plugin
 * exports a table of functions as ncclProfiler_v4 to ncclProfiler_v7; NCCL takes the newest one that it knows. The descriptions
 * of events in versions 5, 6 and 7 extend each other.
 */
#ifndef NCCL4J_PROFILER_INTERFACE_H_
#define NCCL4J_PROFILER_INTERFACE_H_

#include <stddef.h>
#include <stdint.h>

namespace __attribute__((visibility("hidden"))) nccl4j_profiler {

using Result = int;
constexpr Result kSuccess = 0;
using Logger = void (*)(int level, unsigned long flags, const char* file, int line, const char* format, ...);

enum Type : uint64_t {
  kGroup = 1 << 0,
  kCollective = 1 << 1,
  kMessage = 1 << 2,
  kKernelChannel = 1 << 6,
  kCopyEngine = 1 << 12,
};

constexpr int kKernelChannelStop = 22;

/** The events for which NCCL starts an event of a type: those below it have it as a parent. */
constexpr uint64_t reasonsFor(uint64_t type) {
  constexpr uint64_t kProxy = 1 << 3 | 1 << 4 | 1 << 7;
  constexpr uint64_t kCopies = 7 << 12;
  switch (type) {
    case kGroup: return kGroup | kCollective | kMessage | kProxy | kKernelChannel;
    case kCollective:
    case kMessage: return type | kProxy | kKernelChannel;
    case 1 << 3: return kProxy;
    case 1 << 4: return 1 << 4 | 1 << 7;
    case 1 << 8: return 0xf << 8 | 1 << 0 | kCollective | kMessage | kProxy | kKernelChannel | kCopies;
    case 1 << 9: return type | kCollective | kProxy | kKernelChannel | kCopies;
    case 1 << 10: return type | kMessage | kProxy | kKernelChannel;
    case kCopyEngine: return kCopies;
    default: return type;
  }
}

/** The bits of the events that NCCL has in each version, and the number of its last state. */
constexpr uint64_t knownEvents(int version) {
  return version == 4 ? 0xff : version == 5 ? 0xfff : version == 6 ? 0x7fff : 0xffff;
}
constexpr int lastState(int version) { return version == 4 ? 22 : version == 5 ? 24 : version == 6 ? 30 : 31; }

/** The description of an event in version 7; version 4 has 8 bits of the type only. */
struct Event {
  uint64_t type;
  void* parent;
  int rank;
  union {
    struct {
      uint64_t number;
      const char* function;
      const void* send;
      void* recv;
      size_t count;
      int root;
      const char* datatype;
      uint8_t channels;
      uint8_t warps;
      const char* algorithm;
      const char* protocol;
      void* group;          // from version 5
      const char* variant;  // from version 7
      bool symmetric;
      uint64_t tag;
    } collective;
    struct {
      const char* function;
      void* buffer;
      const char* datatype;
      size_t count;
      int peer;
      uint8_t channels;
      void* group;   // from version 5
      uint64_t tag;  // from version 7
    } message;
    struct {
      uint8_t channel;
      uint64_t gpuTime;
    } kernel;
    struct {  // from version 6
      uint64_t number;
      const char* function;
      const void* send;
      void* recv;
      size_t count;
      int root;
      const char* datatype;
      const char* synchronization;
      bool synchronizesBatches;
      uint32_t batchSize;
      uint32_t batches;
      uint32_t copyNumber;
      void* stream;
      uint64_t tag;  // from version 7
    } copy;
  };
};

static_assert(offsetof(Event, collective.number) == 24 && offsetof(Event, collective.root) == 64, "as in NCCL");
static_assert(offsetof(Event, collective.channels) == 80 && offsetof(Event, collective.algorithm) == 88, "as in NCCL");
static_assert(offsetof(Event, collective.group) == 104 && offsetof(Event, collective.tag) == 128, "as in NCCL");
static_assert(offsetof(Event, message.peer) == 56 && offsetof(Event, message.channels) == 60, "as in NCCL");
static_assert(offsetof(Event, message.group) == 64 && offsetof(Event, message.tag) == 72, "as in NCCL");
static_assert(offsetof(Event, kernel.gpuTime) == 32 && offsetof(Event, copy.tag) == 112, "as in NCCL");

constexpr size_t eventSize(int version) { return version == 4 ? 104 : version < 7 ? 112 : sizeof(Event); }
static_assert(sizeof(Event) == 136, "as in NCCL");

/** The arguments of a state: 8 bytes for any state. */
union StateArguments {
  uint64_t gpuTime;
};

using Init4 = Result (*)(void** context, int* mask, const char* name, uint64_t id, int nodes, int ranks, int rank, Logger);
using Init5 = Result (*)(void** context, uint64_t id, int* mask, const char* name, int nodes, int ranks, int rank, Logger);

/** The table of functions that a plugin exports. */
template <class Init>
struct Plugin {
  const char* name;
  Init init;
  Result (*start)(void* context, void** handle, Event* event);
  Result (*stop)(void* handle);
  Result (*state)(void* handle, int state, StateArguments* arguments);
  Result (*finalize)(void* context);
};

}  // namespace nccl4j_profiler

#endif  // NCCL4J_PROFILER_INTERFACE_H_

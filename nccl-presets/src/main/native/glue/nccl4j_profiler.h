/*
 * A profiler plugin for NCCL, in the library that JavaCPP loads: NCCL opens this library once more if NCCL_PROFILER_PLUGIN
 * names it, and finds ncclProfiler_v4 to ncclProfiler_v7. Java drains the records; nothing here calls Java.
 *
 * NCCL's threads write records of fixed size into a bounded queue, from which one thread reads. They never wait: a record that
 * does not fit is dropped and counted. Events have no memory here: the handle of an event is a number, which names an
 * operation, and for a kernel its channel. Nothing grows with the number of operations, and no event can be left over.
 *
 * NCCL loads one plugin only, so this one passes each event on to another one, if there is one. NCCL then gets the handles of
 * that plugin, which appear as parents of later events and must be its own; a table leads from them to the numbers here.
 */
#ifndef NCCL4J_PROFILER_H_
#define NCCL4J_PROFILER_H_

#include <dlfcn.h>
#include <nccl4j_profiler_interface.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>
#include <sys/statvfs.h>
#include <time.h>

#include <atomic>
#include <mutex>
#include <new>
#include <string>
#include <type_traits>

#include "library_file.h"

namespace __attribute__((visibility("hidden"))) nccl4j_profiler {

/* The queue. */

enum Kind : uint32_t { kCommunicatorBegins = 1, kCommunicatorEnds = 2, kOperation = 3, kKernelStarts = 4, kKernelStops = 5 };

/** A record as Java reads it. */
struct Record {
  uint32_t kind;
  uint32_t communicator;  // a number of this process, from 1
  uint64_t id;            // of the operation; kCommunicatorBegins: NCCL's id of the communicator
  uint64_t time;          // of CLOCK_MONOTONIC, in nanoseconds
  uint64_t number;        // kOperation: NCCL's sequence number; of a kernel: the time of the GPU's clock
  uint64_t count;         // kCommunicatorBegins: ranks
  uint64_t tag;           // kCommunicatorBegins: nodes
  int32_t peer;           // root or peer; kCommunicatorBegins: rank
  uint8_t channels;       // of a kernel: its channel; kCommunicatorBegins: version of the interface
  uint8_t warps;
  uint8_t type;           // 1: collective, 2: message, 3: collective of the copy engine
  uint8_t untimed;        // kOperation: 1 if no kernels are reported
  char text[4][16];  // function, datatype, algorithm, protocol; kCommunicatorBegins: name
};
static_assert(sizeof(Record) == 120, "as in ProfilerQueue");

class RecordQueue {
 public:
  static constexpr unsigned kShift = 15;
  static constexpr uint64_t kCells = uint64_t{1} << kShift;

  /** Writes a record by calling fill; drops it if the queue is full. */
  template <class Fill>
  void write(Fill&& fill) {
    uint64_t position = head_.load(std::memory_order_relaxed);
    Cell* cell;
    uint64_t free;
    for (;;) {
      cell = &cells_[position & (kCells - 1)];
      free = (position >> kShift) * 2;
      uint64_t state = cell->state.load(std::memory_order_acquire);
      if (state == free) {
        if (head_.compare_exchange_weak(position, position + 1, std::memory_order_relaxed)) break;
      } else if (state < free) {
        dropped_.fetch_add(1, std::memory_order_relaxed);
        return;
      } else {
        position = head_.load(std::memory_order_relaxed);
      }
    }
    fill(cell->record);
    cell->state.store(free + 1, std::memory_order_release);
  }

  /** Takes the oldest records, for one thread at a time. */
  int read(Record* to, int most) {
    int taken = 0;
    for (; taken < most; taken++, tail_++) {
      Cell& cell = cells_[tail_ & (kCells - 1)];
      uint64_t free = (tail_ >> kShift) * 2;
      if (cell.state.load(std::memory_order_acquire) != free + 1) break;
      to[taken] = cell.record;
      cell.state.store(free + 2, std::memory_order_release);
    }
    return taken;
  }

  uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  /** State of lap n: 2 n if free, 2 n + 1 if written. Zeros are an empty queue. */
  struct Cell {
    std::atomic<uint64_t> state;
    Record record;
  };
  Cell cells_[kCells];
  alignas(64) std::atomic<uint64_t> head_;
  alignas(64) std::atomic<uint64_t> dropped_;
  alignas(64) uint64_t tail_;
};

/* The other plugin. */

/** Numbers of this plugin by handles of the other one. An entry that another one replaced is a lost event. */
class HandleTable {
 public:
  void put(void* key, uint64_t value) {
    Set& set = setOf(key);
    for (Entry& entry : set.entries) {
      if (entry.key.load(std::memory_order_relaxed) == key) {
        entry.value.store(value, std::memory_order_release);
        return;
      }
    }
    if (value == 0) return;
    Entry& entry = set.entries[set.next.fetch_add(1, std::memory_order_relaxed) % kWays];
    entry.key.store(nullptr, std::memory_order_relaxed);
    entry.value.store(value, std::memory_order_release);
    entry.key.store(key, std::memory_order_release);
  }

  uint64_t get(void* key) {
    for (Entry& entry : setOf(key).entries) {
      if (entry.key.load(std::memory_order_acquire) != key) continue;
      uint64_t value = entry.value.load(std::memory_order_acquire);
      return entry.key.load(std::memory_order_relaxed) == key ? value : 0;
    }
    return 0;
  }

 private:
  static constexpr unsigned kWays = 8;
  static constexpr size_t kSets = 4096;
  struct Entry {
    std::atomic<void*> key;
    std::atomic<uint64_t> value;
  };
  struct Set {
    Entry entries[kWays];
    std::atomic<unsigned> next;
  };
  Set& setOf(void* key) { return sets_[(reinterpret_cast<uintptr_t>(key) >> 4) * 0x9e3779b97f4a7c15u >> 52]; }
  Set sets_[kSets];
};

/** The other plugin, as it is called if NCCL speaks one version with this plugin. */
struct Chain {
  bool searched = false;
  int version = 0;  // of the other plugin
  std::atomic<void*> table{nullptr};
  int mask = 0;  // of the events that it wants; it may change the mask at any time
};

struct State {
  RecordQueue queue;
  HandleTable handles;
  std::atomic<uint64_t> operations;
  std::atomic<uint32_t> communicators;
  std::atomic<int> wanted;  // events to record
  std::atomic<bool> withoutKernels;  // NCCL must not report kernels

  std::mutex mutex;  // for the members below
  Chain chains[8];   // by the version that NCCL speaks
  int* masks[8];     // of NCCL, one for each copy of NCCL in this process and each version
  int versions[8];
  uint64_t kernelMemory;  // bytes of shared memory that NCCL needs at each rank of a communicator to report kernels
  bool reading;
  bool hasOther;      // the user named another plugin, or none
  char other[4096];
};

static_assert(std::is_trivially_destructible_v<State>, "NCCL's threads may run when the process ends");

/** All zeros at first, which costs no memory. */
inline State instance;
inline State& state() { return instance; }

constexpr int kEvents = kCollective | kMessage | kKernelChannel | kCopyEngine;

/**
 * From this version on, NCCL counts kernels on the host only while it reports them, but always on the GPU: after a change, it
 * would take the times of other kernels. Therefore kernels are always reported, and dropped here while nothing is recorded.
 */
constexpr int kCountsReportedKernelsOnly = 7;

/** Tells NCCL which events the two plugins want. Needs the mutex. */
inline void setMasks() {
  State& s = state();
  for (int i = 0; i < 8 && s.masks[i] != nullptr; i++) {
    int version = s.versions[i];
    int theirs = __atomic_load_n(&s.chains[version].mask, __ATOMIC_RELAXED);
    int all = (s.wanted.load(std::memory_order_relaxed) | theirs) & static_cast<int>(knownEvents(version));
    if (version >= kCountsReportedKernelsOnly) all |= kKernelChannel;
    if (s.withoutKernels.load(std::memory_order_relaxed)) all &= ~static_cast<int>(kKernelChannel);
    if (__atomic_load_n(s.masks[i], __ATOMIC_RELAXED) != all) __atomic_store_n(s.masks[i], all, __ATOMIC_RELAXED);
  }
}

/**
 * True if shared memory has room for what the ranks of this host need to report kernels; NCCL would crash without. All of them
 * look at the same number, whichever allocates first. Needs the mutex.
 */
inline bool hasKernelMemory(int nodes, int ranks) {
  uint64_t each = state().kernelMemory;
  if (each == 0) return true;
  struct statvfs shared;
  if (statvfs("/dev/shm", &shared) != 0) return false;
  uint64_t local = static_cast<uint64_t>((ranks + nodes - 1) / (nodes > 0 ? nodes : 1));
  return static_cast<uint64_t>(shared.f_bavail) * shared.f_frsize / each >= local;
}

inline uint64_t now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1000000000u + static_cast<uint64_t>(time.tv_nsec);
}

/** A communicator, the context of its events. */
struct Communicator {
  uint32_t number;
  void* theirs;  // context of the other plugin; NULL if it does not take part
};

/* Handles: bit 63 is set in those of this plugin, which no address has; bit 62 in those of kernels. */
constexpr uint64_t kOurs = uint64_t{1} << 63;
constexpr uint64_t kOfKernel = uint64_t{1} << 62;
constexpr unsigned kChannelShift = 48;
constexpr uint64_t kIdMask = (uint64_t{1} << kChannelShift) - 1;

inline bool isOurs(const void* handle) { return (reinterpret_cast<uintptr_t>(handle) & kOurs) != 0; }

/** The number behind a handle, or 0. */
inline uint64_t numberOf(void* handle, bool chained) {
  if (handle == nullptr) return 0;
  if (isOurs(handle)) return reinterpret_cast<uintptr_t>(handle);
  return chained ? state().handles.get(handle) : 0;
}

inline void copyText(char (&to)[16], const char* from) {
  to[0] = 0;
  if (from == nullptr) return;
  strncpy(to, from, sizeof to - 1);
  to[sizeof to - 1] = 0;
}

template <int version>
struct Interface {
  using Init = std::conditional_t<version == 4, Init4, Init5>;

  static void* chainTable() { return state().chains[version].table.load(std::memory_order_acquire); }

  /** The functions of the other plugin, or NULL. Those behind the first one have one form in all versions. */
  static const Plugin<Init5>* other() { return static_cast<const Plugin<Init5>*>(chainTable()); }

  /** Searches the other plugin: the one that NCCL would have loaded. Needs the mutex. */
  static void findOther(const void* ours, Logger logger) {
    Chain& chain = state().chains[version];
    if (chain.searched) return;
    chain.searched = true;
    const char* name = state().hasOther ? state().other : nullptr;
    if (name != nullptr && (*name == 0 || strcasecmp(name, "none") == 0)) return;
    std::string why;
    void* library = name != nullptr ? nccl4j::openPlugin(name, why)
                                    : nccl4j::openLibrary("libnccl-profiler.so", RTLD_NOW | RTLD_LOCAL, why);
    if (library == nullptr) {
      if (name != nullptr && logger)
        logger(2, 1, __FILE__, __LINE__, "nccl4j: can't load the profiler plugin %s: %s", name, why.c_str());
      return;
    }
    for (int theirs = version; theirs >= 4; theirs--) {
      void* table = dlsym(library, ("ncclProfiler_v" + std::to_string(theirs)).c_str());
      if (table == nullptr || table == ours) continue;
      Dl_info of{}, here{};
      // By another name, this library may be opened again.
      if (dladdr(table, &of) != 0 && dladdr(ours, &here) != 0 && of.dli_fbase == here.dli_fbase) continue;
      chain.version = theirs;
      chain.table.store(table, std::memory_order_release);
      return;
    }
    if (name != nullptr && logger) {
      logger(2, 1, __FILE__, __LINE__, "nccl4j: the profiler plugin %s has no interface from v4 to v%d", name, version);
    }
  }

  /** The communicator of a call of init. */
  struct Named {
    uint64_t id;
    const char* name;
    int nodes;
    int ranks;
    int rank;
  };

  static Result begin(void** context, int* mask, const Named& of, Logger logger, const void* ours) {
    State& s = state();
    auto* communicator = new (std::nothrow) Communicator{s.communicators.fetch_add(1) + 1, nullptr};
    if (communicator == nullptr) return kSuccess;
    *context = communicator;
    {
      std::lock_guard<std::mutex> lock(s.mutex);
      findOther(ours, logger);
    }
    Chain& chain = s.chains[version];
    if (void* table = chainTable()) {
      Result result = chain.version == 4
                          ? static_cast<const Plugin<Init4>*>(table)->init(
                                &communicator->theirs, &chain.mask, of.name, of.id, of.nodes, of.ranks, of.rank, logger)
                          : static_cast<const Plugin<Init5>*>(table)->init(
                                &communicator->theirs, of.id, &chain.mask, of.name, of.nodes, of.ranks, of.rank, logger);
      if (result != kSuccess) {
        communicator->theirs = nullptr;
        if (logger) logger(2, 1, __FILE__, __LINE__, "nccl4j: the other profiler plugin failed with %d", result);
      }
    }
    std::lock_guard<std::mutex> lock(s.mutex);
    for (int i = 0; i < 8; i++) {
      if (s.masks[i] == mask) break;
      if (s.masks[i] != nullptr) continue;
      s.masks[i] = mask;
      s.versions[i] = version;
      break;
    }
    if (!hasKernelMemory(of.nodes, of.ranks)) s.withoutKernels.store(true, std::memory_order_relaxed);
    setMasks();
    uint32_t number = communicator->number;
    s.queue.write([&](Record& record) {
      record = {};
      record.kind = kCommunicatorBegins;
      record.communicator = number;
      record.id = of.id;
      record.time = now();
      record.count = static_cast<uint64_t>(of.ranks);
      record.tag = static_cast<uint64_t>(of.nodes);
      record.peer = of.rank;
      record.channels = version;
      if (of.name != nullptr) strncpy(&record.text[0][0], of.name, sizeof record.text - 1);
    });
    return kSuccess;
  }

  /** Records an event and returns its number; 0 for an event that is not recorded. */
  static uint64_t record(const Communicator& communicator, const Event& event, uint64_t type, bool chained) {
    State& s = state();
    if (type == kKernelChannel) {
      uint64_t parent = numberOf(event.parent, chained);
      if (parent == 0 || (parent & kOfKernel) != 0) return 0;
      uint64_t number = parent | kOfKernel | static_cast<uint64_t>(event.kernel.channel) << kChannelShift;
      writeKernel(kKernelStarts, number, event.kernel.gpuTime);
      return number;
    }
    uint64_t id = (s.operations.fetch_add(1, std::memory_order_relaxed) + 1) & kIdMask;
    s.queue.write([&](Record& record) {
      record.kind = kOperation;
      record.communicator = communicator.number;
      record.id = id;
      record.time = now();
      record.untimed = s.withoutKernels.load(std::memory_order_relaxed) ? 1 : 0;
      if (type == kMessage) {
        record.type = 2;
        record.number = 0;
        record.count = event.message.count;
        record.tag = version >= 7 ? event.message.tag : 0;
        record.peer = event.message.peer;
        record.channels = event.message.channels;
        record.warps = 0;
        copyText(record.text[0], event.message.function);
        copyText(record.text[1], event.message.datatype);
        record.text[2][0] = record.text[3][0] = 0;
      } else if (type == kCollective) {
        record.type = 1;
        record.number = event.collective.number;
        record.count = event.collective.count;
        record.tag = version >= 7 ? event.collective.tag : 0;
        record.peer = event.collective.root;
        record.channels = event.collective.channels;
        record.warps = event.collective.warps;
        copyText(record.text[0], event.collective.function);
        copyText(record.text[1], event.collective.datatype);
        copyText(record.text[2], event.collective.algorithm);
        copyText(record.text[3], event.collective.protocol);
      } else {
        record.type = 3;
        record.number = event.copy.number;
        record.count = event.copy.count;
        record.tag = version >= 7 ? event.copy.tag : 0;
        record.peer = event.copy.root;
        record.channels = record.warps = 0;
        copyText(record.text[0], event.copy.function);
        copyText(record.text[1], event.copy.datatype);
        copyText(record.text[2], "COPY_ENGINE");
        copyText(record.text[3], event.copy.synchronization);
      }
    });
    return kOurs | id;
  }

  static void writeKernel(Kind kind, uint64_t number, uint64_t gpuTime) {
    state().queue.write([&](Record& record) {
      record.kind = kind;
      record.communicator = 0;
      record.id = number & kIdMask;
      record.time = now();
      record.number = gpuTime;
      record.channels = static_cast<uint8_t>(number >> kChannelShift);
    });
  }

  /** Starts an event in the other plugin, if it knows the event; returns its handle or NULL. */
  static void* startOther(const Communicator& communicator, const Event& event, uint64_t type) {
    Chain& chain = state().chains[version];
    uint64_t wanted = static_cast<uint64_t>(__atomic_load_n(&chain.mask, __ATOMIC_RELAXED));
    if ((type & knownEvents(chain.version)) == 0 || communicator.theirs == nullptr) return nullptr;
    if ((wanted & reasonsFor(type)) == 0) return nullptr;
    Event copy;
    memcpy(static_cast<void*>(&copy), &event, eventSize(version));
    copy.type = type;
    if (chain.version == 4 && version > 4) {
      // Version 4 has the group as the parent.
      if (type == kCollective) copy.parent = event.collective.group;
      if (type == kMessage) copy.parent = event.message.group;
    }
    if (isOurs(copy.parent)) copy.parent = nullptr;
    if (version > 4 && type == kCollective && isOurs(copy.collective.group)) copy.collective.group = nullptr;
    if (version > 4 && type == kMessage && isOurs(copy.message.group)) copy.message.group = nullptr;
    void* handle = nullptr;
    other()->start(communicator.theirs, &handle, &copy);
    return handle;
  }

  static Result start(void* context, void** handle, Event* event) {
    *handle = nullptr;
    if (context == nullptr) return kSuccess;
    const Communicator& communicator = *static_cast<Communicator*>(context);
    uint64_t type = version == 4 ? event->type & 0xff : event->type;
    State& s = state();
    bool chained = chainTable() != nullptr;
    void* theirs = chained ? startOther(communicator, *event, type) : nullptr;
    // A kernel belongs to its operation, also if the recording has ended meanwhile.
    bool recorded = type == kKernelChannel || (static_cast<uint64_t>(s.wanted.load(std::memory_order_relaxed)) & type) != 0;
    uint64_t number = recorded ? record(communicator, *event, type, chained) : 0;
    if (theirs != nullptr) {
      // Also if it is 0: the other plugin may use a handle again.
      s.handles.put(theirs, number);
      *handle = theirs;
    } else {
      *handle = reinterpret_cast<void*>(number);
    }
    return kSuccess;
  }

  static Result stop(void* handle) {
    if (handle == nullptr || isOurs(handle) || chainTable() == nullptr) return kSuccess;
    return other()->stop(handle);
  }

  static Result recordState(void* handle, int eventState, StateArguments* arguments) {
    bool chained = chainTable() != nullptr;
    if (eventState == kKernelChannelStop && arguments != nullptr) {
      uint64_t number = numberOf(handle, chained);
      if ((number & kOfKernel) != 0) writeKernel(kKernelStops, number, arguments->gpuTime);
    }
    if (handle == nullptr || isOurs(handle) || !chained || eventState > lastState(state().chains[version].version)) {
      return kSuccess;
    }
    return other()->state(handle, eventState, arguments);
  }

  static Result finalize(void* context) {
    auto* communicator = static_cast<Communicator*>(context);
    if (communicator == nullptr) return kSuccess;
    if (communicator->theirs != nullptr) other()->finalize(communicator->theirs);
    uint32_t number = communicator->number;
    state().queue.write([&](Record& record) {
      record = {};
      record.kind = kCommunicatorEnds;
      record.communicator = number;
      record.time = now();
    });
    delete communicator;
    return kSuccess;
  }

  static Result init(
      void** context, uint64_t id, int* mask, const char* name, int nodes, int ranks, int rank, Logger logger);
  static Result init4(
      void** context, int* mask, const char* name, uint64_t id, int nodes, int ranks, int rank, Logger logger);
};

}  // namespace nccl4j_profiler

#define NCCL4J_PROFILER(version, init_)                                                                   \
  __attribute__((visibility("default"), used)) nccl4j_profiler::Plugin<                                   \
      nccl4j_profiler::Interface<version>::Init>                                                          \
      ncclProfiler_v##version = {                                                                         \
          "nccl4j",                                                                                       \
          nccl4j_profiler::Interface<version>::init_,                                                     \
          nccl4j_profiler::Interface<version>::start,                                                     \
          nccl4j_profiler::Interface<version>::stop,                                                      \
          nccl4j_profiler::Interface<version>::recordState,                                               \
          nccl4j_profiler::Interface<version>::finalize}

extern "C" {
NCCL4J_PROFILER(4, init4);
NCCL4J_PROFILER(5, init);
NCCL4J_PROFILER(6, init);
NCCL4J_PROFILER(7, init);
}

#undef NCCL4J_PROFILER

namespace __attribute__((visibility("hidden"))) nccl4j_profiler {

template <int version>
Result Interface<version>::init(
    void** context, uint64_t id, int* mask, const char* name, int nodes, int ranks, int rank, Logger logger) {
  const void* ours = version == 5   ? static_cast<const void*>(&ncclProfiler_v5)
                     : version == 6 ? static_cast<const void*>(&ncclProfiler_v6)
                                    : static_cast<const void*>(&ncclProfiler_v7);
  return begin(context, mask, {id, name, nodes, ranks, rank}, logger, ours);
}

template <int version>
Result Interface<version>::init4(
    void** context, int* mask, const char* name, uint64_t id, int nodes, int ranks, int rank, Logger logger) {
  return begin(context, mask, {id, name, nodes, ranks, rank}, logger, &ncclProfiler_v4);
}

}  // namespace nccl4j_profiler

/* For Java and for programs in C. */

/**
 * Names the other plugin as NCCL_PROFILER_PLUGIN would, before the first communicator is created. Without a name it is
 * libnccl-profiler.so, if that exists: NCCL loads this library by default.
 */
extern "C" __attribute__((visibility("default"), used)) inline void nccl4jProfilerChain(const char* name) {
  nccl4j_profiler::State& s = nccl4j_profiler::state();
  std::lock_guard<std::mutex> lock(s.mutex);
  s.hasOther = true;
  strncpy(s.other, name, sizeof s.other - 1);
}

/** Starts or ends the recording of events. */
extern "C" __attribute__((visibility("default"), used)) inline void nccl4jProfilerRecord(int on) {
  nccl4j_profiler::State& s = nccl4j_profiler::state();
  std::lock_guard<std::mutex> lock(s.mutex);
  s.wanted.store(on != 0 ? nccl4j_profiler::kEvents : 0, std::memory_order_relaxed);
  nccl4j_profiler::setMasks();
}

/**
 * Sets how many bytes of shared memory NCCL needs at each rank of a communicator to report kernels. Where less is free when a
 * communicator is created, kernels are not reported from then on.
 */
extern "C" __attribute__((visibility("default"), used)) inline void nccl4jProfilerKernelMemory(unsigned long long bytes) {
  nccl4j_profiler::State& s = nccl4j_profiler::state();
  std::lock_guard<std::mutex> lock(s.mutex);
  s.kernelMemory = bytes;
}

/** Returns 1 if kernels are not reported because there was too little shared memory. */
extern "C" __attribute__((visibility("default"), used)) inline int nccl4jProfilerWithoutKernels() {
  return nccl4j_profiler::state().withoutKernels.load(std::memory_order_relaxed) ? 1 : 0;
}

/** Copies the oldest records, 120 bytes each, and returns their number; -1 while another thread reads. */
extern "C" __attribute__((visibility("default"), used)) inline int nccl4jProfilerDrain(void* records, int most) {
  nccl4j_profiler::State& s = nccl4j_profiler::state();
  {
    std::lock_guard<std::mutex> lock(s.mutex);
    if (s.reading) return -1;
    s.reading = true;
    // The other plugin may have changed its mind.
    nccl4j_profiler::setMasks();
  }
  int taken = s.queue.read(static_cast<nccl4j_profiler::Record*>(records), most);
  std::lock_guard<std::mutex> lock(s.mutex);
  s.reading = false;
  return taken;
}

/** Returns the number of records that were dropped because the queue was full. */
extern "C" __attribute__((visibility("default"), used)) inline unsigned long long nccl4jProfilerDropped() {
  return nccl4j_profiler::state().queue.dropped();
}

#endif  // NCCL4J_PROFILER_H_

// profiler.cpp: loads the plugin and describes operations to it.

#include "status/profiler.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <mutex>

#include <nccl4j_profiler_interface.h>

#include "library_file.h"
#include "protocol/task.h"

namespace host {
namespace {

namespace api = nccl4j_profiler;

/** The plugin of the process; stays loaded. */
struct Loaded {
  int version = 0;
  const void* table = nullptr;
  int mask = 0;  // of wanted events; the plugin may change it at any time

  /** The functions behind the first one have one form in all versions. */
  const api::Plugin<api::Init5>& functions() const { return *static_cast<const api::Plugin<api::Init5>*>(table); }
  uint64_t wanted() const { return static_cast<uint64_t>(__atomic_load_n(&mask, __ATOMIC_RELAXED)); }
};

/** The plugin's messages; warnings go to standard error, as the engine has no log. */
__attribute__((format(printf, 5, 6))) void log(int level, unsigned long, const char*, int, const char* form, ...) {
  constexpr int kWarning = 2;
  if (level > kWarning) return;
  char text[512];
  va_list arguments;
  va_start(arguments, form);
  vsnprintf(text, sizeof text, form, arguments);
  va_end(arguments);
  fprintf(stderr, "nccl4j host engine: profiler plugin: %s\n", text);
}

/** Loads the plugin that the environment names; as in NCCL, a communicator is created even if this fails. */
void load(Loaded& plugin) {
  const char* name = getenv("NCCL_PROFILER_PLUGIN");
  if (name == nullptr || *name == '\0' || strcasecmp(name, "none") == 0) return;
  std::string why;
  void* library = nccl4j::openPlugin(name, why);
  if (library == nullptr) {
    log(2, 0, __FILE__, __LINE__, "can't load %s: %s", name, why.c_str());
    return;
  }
  for (int version = 7; version >= 4 && plugin.table == nullptr; version--) {
    plugin.table = dlsym(library, ("ncclProfiler_v" + std::to_string(version)).c_str());
    plugin.version = version;
  }
  if (plugin.table == nullptr) log(2, 0, __FILE__, __LINE__, "%s has no interface from v4 to v7", name);
}

std::mutex mutex;

Loaded& instance = *new Loaded;
Loaded& loaded() { return instance; }

uint64_t clockTime() {
  timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1000000000u + static_cast<uint64_t>(time.tv_nsec);
}

void* start(void* context, api::Event& event) {
  void* handle = nullptr;
  loaded().functions().start(context, &handle, &event);
  return handle;
}

size_t countOf(const Operation& operation) {
  if (!operation.extras().rows) return operation.count;
  size_t count = 0;
  for (size_t one : operation.extras().rows->sendCounts) count += one;
  return count;
}

}  // namespace

// A fork cannot wait for it, because the plugin may fork.
void renewProfilerLock() { new (&mutex) std::mutex; }

std::unique_ptr<Profiler> Profiler::open(const Comm& comm) {
  Loaded& plugin = loaded();
  std::lock_guard<std::mutex> lock(mutex);
  // Not found before is searched again: the variable may have been set since.
  if (plugin.table == nullptr) load(plugin);
  if (plugin.table == nullptr) return nullptr;
  std::unique_ptr<Profiler> profiler(new Profiler);
  profiler->rank_ = comm.rank;
  const char* name = comm.settings.name.empty() ? nullptr : comm.settings.name.c_str();
  int result = plugin.version == 4
                   ? static_cast<const api::Plugin<api::Init4>*>(plugin.table)
                         ->init(&profiler->context_, &plugin.mask, name, comm.hash, 1, comm.ranks, comm.rank, log)
                   : plugin.functions().init(
                         &profiler->context_, comm.hash, &plugin.mask, name, 1, comm.ranks, comm.rank, log);
  if (result != api::kSuccess) {
    log(2, 0, __FILE__, __LINE__, "its init failed with %d", result);
    return nullptr;
  }
  return profiler;
}

Profiler::~Profiler() {
  if (context_ != nullptr) loaded().functions().finalize(context_);
}

void* Profiler::beginLaunch() {
  if ((loaded().wanted() & api::reasonsFor(api::kGroup)) == 0) return nullptr;
  api::Event event{};
  event.type = api::kGroup;
  event.rank = rank_;
  return start(context_, event);
}

void Profiler::launched(Operation& operation, void* group) {
  bool message = isPointToPoint(operation.call);
  if (isOneSided(operation.call) || operation.call == Call::CommWindowRegister) return;
  static_assert(static_cast<size_t>(Call::CommGrow) < kCalls);
  uint64_t number = launches_[static_cast<size_t>(operation.call)].fetch_add(1, std::memory_order_relaxed);
  uint64_t type = message ? api::kMessage : api::kCollective;
  if ((loaded().wanted() & api::reasonsFor(type)) == 0) return;
  constexpr size_t kTagWord = 2;
  api::Event event{};
  event.type = type;
  event.rank = rank_;
  // Version 4 has the group as the parent; the later ones have the call, which is no event here.
  if (loaded().version == 4) event.parent = group;
  if (message) {
    event.message.function = callName(operation.call);
    event.message.buffer = operation.call == Call::Send ? const_cast<char*>(operation.send) : operation.recv;
    event.message.datatype = typeName(operation.type);
    event.message.count = operation.count;
    event.message.peer = operation.root;
    event.message.channels = 1;
    event.message.group = group;
  } else {
    event.collective.number = number;
    event.collective.function = callName(operation.call);
    event.collective.send = operation.send;
    event.collective.recv = operation.recv;
    event.collective.count = countOf(operation);
    event.collective.root = operation.root;
    event.collective.datatype = typeName(operation.type);
    event.collective.channels = 1;
    event.collective.warps = 1;
    event.collective.algorithm = "DIRECT";
    event.collective.protocol = "HOST";
    event.collective.group = group;
    event.collective.tag = operation.extras().config[kTagWord];
  }
  operation.addExtras().profiled.operation = start(context_, event);
  // As in NCCL: the event ends with the launch, and the kernels begin later.
  if (operation.extras().profiled.operation != nullptr) loaded().functions().stop(operation.extras().profiled.operation);
}

void Profiler::endLaunch(void* group) {
  if (group != nullptr) loaded().functions().stop(group);
}

void Profiler::kernelStarts(ProfiledOperation& operation) {
  if ((loaded().wanted() & api::kKernelChannel) == 0) return;
  api::Event event{};
  event.type = api::kKernelChannel;
  event.parent = operation.operation;
  event.rank = rank_;
  event.kernel.channel = 0;
  event.kernel.gpuTime = clockTime();
  operation.kernel = start(context_, event);
}

void Profiler::kernelStops(ProfiledOperation& operation) {
  if (operation.kernel == nullptr) return;
  api::StateArguments arguments;
  arguments.gpuTime = clockTime();
  loaded().functions().state(operation.kernel, api::kKernelChannelStop, &arguments);
  loaded().functions().stop(operation.kernel);
  operation.kernel = nullptr;
}

}  // namespace host

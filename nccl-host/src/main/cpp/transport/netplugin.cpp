// netplugin.cpp: loads network plugins, and calls the functions of each version.

#include "transport/netplugin.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <new>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/fork.h"
#include "library_file.h"

namespace host {
namespace {

using netapi::Result;
using netapi::Table;

/** As many names as NCCL takes from NCCL_NET_PLUGIN. */
constexpr size_t kMostPlugins = 14;

/** The plugin's messages; warnings go to standard error, as the engine has no log. */
__attribute__((format(printf, 5, 6))) void log(int level, unsigned long, const char*, int, const char* form, ...) {
  if (level > netapi::kWarning) return;
  char text[512];
  va_list arguments;
  va_start(arguments, form);
  vsnprintf(text, sizeof text, form, arguments);
  va_end(arguments);
  fprintf(stderr, "nccl4j host engine: network plugin: %s\n", text);
}

Result profileNothing(void**, int, void*, int64_t, void*) { return netapi::kSuccess; }

struct Process {
  std::mutex lock;
  std::map<const void*, Result> initialized;  // by table: before version 11, one init serves the process
  std::string warning;                        // the last one
};

Process& process = *new Process;

template <int V>
class VersionedNetwork final : public Network {
 public:
  /** Throws if the plugin cannot be used. */
  VersionedNetwork(const Table<V>& table, uint64_t communicator, int rank) : table_(table) {
    const void* required[] = {
        reinterpret_cast<const void*>(table.init),       reinterpret_cast<const void*>(table.devices),
        reinterpret_cast<const void*>(table.getProperties), reinterpret_cast<const void*>(table.listen),
        reinterpret_cast<const void*>(table.connect),    reinterpret_cast<const void*>(table.accept),
        reinterpret_cast<const void*>(table.regMr),      reinterpret_cast<const void*>(table.deregMr),
        reinterpret_cast<const void*>(table.isend),      reinterpret_cast<const void*>(table.irecv),
        reinterpret_cast<const void*>(table.test),       reinterpret_cast<const void*>(table.closeSend),
        reinterpret_cast<const void*>(table.closeRecv),  reinterpret_cast<const void*>(table.closeListen)};
    bool complete = std::find(std::begin(required), std::end(required), nullptr) == std::end(required);
    if (table.name == nullptr || !complete) fail(ncclSystemError, "its table of version %d lacks a function", V);
    name_ = table.name;
    check("init", init(communicator));
    try {
      chooseDevice(rank);
    } catch (const Failure&) {
      finalize();
      throw;
    }
  }

  ~VersionedNetwork() override { finalize(); }

  void* listen(Handle& handle) override {
    void* listener = nullptr;
    if constexpr (V >= 11) {
      check("listen", table_.listen(context_, device_, handle.bytes, &listener));
    } else {
      check("listen", table_.listen(device_, handle.bytes, &listener));
    }
    if (listener == nullptr) fail(ncclSystemError, "network plugin '%s': listen made no listener", name_.c_str());
    return listener;
  }

  void* connect(Handle& handle) override {
    void* connection = nullptr;
    void* ofDevice = nullptr;
    if constexpr (V >= 11) {
      check("connect", table_.connect(context_, device_, handle.bytes, &connection, &ofDevice));
    } else if constexpr (V == 10) {
      check("connect", table_.connect(device_, &config_, handle.bytes, &connection, &ofDevice));
    } else {
      check("connect", table_.connect(device_, handle.bytes, &connection, &ofDevice));
    }
    return connection;
  }

  void* accept(void* listener) override {
    void* connection = nullptr;
    void* ofDevice = nullptr;
    check("accept", table_.accept(listener, &connection, &ofDevice));
    return connection;
  }

  void* registerMemory(void* connection, void* data, size_t size) override {
    void* registration = nullptr;
    check("regMr", table_.regMr(connection, data, size, netapi::kHostMemory, &registration));
    return registration;
  }

  void* send(void* connection, void* data, size_t size, void* registration) override {
    void* request = nullptr;
    if constexpr (V >= 10) {
      check("isend", table_.isend(connection, data, size, 0, registration, nullptr, &request));
    } else if constexpr (V == 9) {
      check("isend", table_.isend(connection, data, size, 0, registration, &request));
    } else {
      check("isend", table_.isend(connection, data, static_cast<int>(size), 0, registration, &request));
    }
    return request;
  }

  void* receive(void* connection, void* data, size_t size, void* registration) override {
    void* request = nullptr;
    int tag = 0;
    if constexpr (V >= 10) {
      void* profile = nullptr;
      check("irecv", table_.irecv(connection, 1, &data, &size, &tag, &registration, &profile, &request));
    } else if constexpr (V == 9) {
      check("irecv", table_.irecv(connection, 1, &data, &size, &tag, &registration, &request));
    } else {
      int bytes = static_cast<int>(size);
      check("irecv", table_.irecv(connection, 1, &data, &bytes, &tag, &registration, &request));
    }
    return request;
  }

  bool test(void* request, size_t& size) override {
    int done = 0;
    int bytes = 0;
    check("test", table_.test(request, &done, &bytes));
    size = static_cast<size_t>(bytes);
    return done != 0;
  }

  bool deregister(void* connection, void* registration) noexcept override {
    return table_.deregMr(connection, registration) == netapi::kSuccess;
  }
  bool closeSending(void* connection) noexcept override { return table_.closeSend(connection) == netapi::kSuccess; }
  bool closeReceiving(void* connection) noexcept override { return table_.closeRecv(connection) == netapi::kSuccess; }
  bool closeListener(void* listener) noexcept override { return table_.closeListen(listener) == netapi::kSuccess; }

 private:
  Result init(uint64_t communicator) {
    if constexpr (V >= 11) {
      return table_.init(&context_, communicator, &config_, log, profileNothing);
    } else {
      (void)communicator;
      auto [found, isFirst] = process.initialized.try_emplace(&table_, netapi::kSuccess);
      if (!isFirst) return found->second;
      if constexpr (V == 10) {
        found->second = table_.init(log, profileNothing);
      } else {
        found->second = table_.init(log);
      }
      return found->second;
    }
  }

  void finalize() {
    if constexpr (V >= 11) {
      if (table_.finalize != nullptr) table_.finalize(context_);
    }
  }

  void chooseDevice(int rank) {
    int count = 0;
    check("devices", table_.devices(&count));
    if (count <= 0) fail(ncclSystemError, "network plugin '%s' has no devices on this host", name_.c_str());
    std::vector<std::pair<int, size_t>> usable;
    for (int device = 0; device < count; device++) {
      netapi::Properties<V> properties{};
      check("getProperties", table_.getProperties(device, &properties));
      if ((properties.ptrSupport & netapi::kHostMemory) == 0) continue;
      size_t most = INT_MAX;
      if constexpr (V > 8) {
        if (properties.maxP2pBytes > 0) most = std::min(most, properties.maxP2pBytes);
      }
      usable.emplace_back(device, most);
    }
    if (usable.empty()) {
      fail(ncclSystemError, "network plugin '%s' has %d devices, none of which takes host memory (NCCL_PTR_HOST)", name_.c_str(), count);
    }
    std::tie(device_, maxMessage_) = usable[static_cast<size_t>(rank) % usable.size()];
  }

  const Table<V>& table_;
  netapi::Config config_;
  void* context_ = nullptr;
  int device_ = 0;
};

template <int V>
std::shared_ptr<Network> make(void* library, uint64_t communicator, int rank) {
  if constexpr (V < netapi::kFirstVersion) {
    fail(
        ncclSystemError, "it has none of the tables ncclNetPlugin_v%d to ncclNetPlugin_v%d", netapi::kFirstVersion,
        netapi::kLastVersion);
  } else {
    void* table = dlsym(library, ("ncclNetPlugin_v" + std::to_string(V)).c_str());
    if (table == nullptr) return make<V - 1>(library, communicator, rank);
    return std::make_shared<VersionedNetwork<V>>(*static_cast<const Table<V>*>(table), communicator, rank);
  }
}

std::string variable(const char* name) {
  const char* value = getenv(name);
  return value == nullptr ? "" : value;
}

/** The plugins to try, in this order. */
std::vector<std::string> candidates(const std::string& list) {
  if (list.empty()) return {"libnccl-net.so"};
  std::vector<std::string> names;
  if (strcasecmp(list.c_str(), "none") == 0) return names;
  for (size_t at = 0; at <= list.size() && names.size() < kMostPlugins;) {
    size_t end = std::min(list.find(',', at), list.size());
    if (end > at) names.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  return names;
}

}  // namespace

// As that of the profiler: a plugin may fork.
void renewNetworkLock() { new (&process.lock) std::mutex; }

void Network::check(const char* function, Result result) const {
  if (result == netapi::kSuccess) return;
  ncclResult_t code = result == ncclRemoteError ? ncclRemoteError : ncclSystemError;
  fail(code, "network plugin '%s': its %s failed with %d", name_.c_str(), function, result);
}

std::shared_ptr<Network> Network::open(uint64_t communicator, int rank) {
  std::string wanted = variable("NCCL_NET");
  std::string list = variable("NCCL_NET_PLUGIN");
  if ((wanted.empty() && list.empty()) || strcasecmp(wanted.c_str(), "Socket") == 0) return nullptr;
  std::lock_guard<std::mutex> lock(process.lock);
  std::string reasons;
  for (const std::string& name : candidates(list)) {
    std::string why;
    void* library = nccl4j::openPlugin(name, why, "libnccl-net-");
    try {
      if (library == nullptr) fail(ncclSystemError, "can't load it: %s", why.c_str());
      std::shared_ptr<Network> network = make<netapi::kLastVersion>(library, communicator, rank);
      if (wanted.empty() || strcasecmp(wanted.c_str(), network->name().c_str()) == 0) return network;
      fail(ncclSystemError, "its network is '%s'", network->name().c_str());
    } catch (const Failure& failure) {
      reasons += (reasons.empty() ? "" : "; ") + name + ": " + failure.text();
    }
  }
  if (!wanted.empty()) {
    fail(
        ncclInvalidUsage, "NCCL_NET is '%s', but no network plugin has this name%s%s; 'Socket' is that of the engine's own sockets",
        wanted.c_str(), reasons.empty() ? "" : ": ", reasons.c_str());
  }
  if (!reasons.empty() && std::exchange(process.warning, reasons) != reasons) {
    log(netapi::kWarning, 0, __FILE__, __LINE__, "%s; using sockets instead", reasons.c_str());
  }
  return nullptr;
}

}  // namespace host

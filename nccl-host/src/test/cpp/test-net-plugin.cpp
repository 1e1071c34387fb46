// test-net-plugin.cpp: a network plugin for tests, of the version NET_VERSION. It moves bytes by TCP, takes host memory only, and refuses what a
// plugin may refuse. test-native.sh compiles it for each version. Variables:
//
// TEST_NET_ADDRESS  the IPv4 address at which it listens; 127.0.0.1 by default
// TEST_NET_NAME     its name; "test" by default
// TEST_NET_FAULT    FUNCTION or FUNCTION:N: its N-th call fails, or what fault() has beside functions
// TEST_NET_REPORT   set: the bytes that were sent are printed at the end of each connection

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "testnet.h"
#include "transport/netinterface.h"

namespace {

constexpr int kVersion = NET_VERSION;

using namespace host::netapi;

constexpr Result kSystemError = 2, kInternalError = 3, kRemoteError = 6;
constexpr int kContext = 0x7e57;

/** As NCCL may have for a connection. */
constexpr size_t kMostRequests = 32;

host::TestNet net;

/** True if this is the call that is to fail. */
bool fault(const char* what) {
  const char* text = getenv("TEST_NET_FAULT");
  if (text == nullptr) return false;
  size_t length = strlen(what);
  if (strncmp(text, what, length) != 0 || (text[length] != '\0' && text[length] != ':')) return false;
  static std::mutex lock;
  static std::map<std::string, std::pair<uint64_t, int>> calls;  // the number of the run of the test, and of the call
  std::lock_guard<std::mutex> guard(lock);
  auto& [run, count] = calls[what];
  if (run != net.runs) count = 0;
  run = net.runs;
  return ++count == (text[length] == ':' ? atoi(text + length + 1) : 1);
}

struct Connection;

struct Request {
  Connection* connection = nullptr;
  char* data = nullptr;
  uint64_t size = 0;  // of the message, once it is known
  size_t room = 0;
  size_t head = 0;  // bytes of the size that have moved
  size_t moved = 0;
  bool hangs = false;

  bool complete() const { return !hangs && head == sizeof size && moved == size; }
};

struct Connection {
  int fd;
  bool sends;
  std::atomic<bool> inUse{false};
  std::deque<Request*> requests;
  std::map<char*, size_t> registered;
  int calls = 0;
  bool began = false;

  Connection(int fdOfConnection, bool sendsBytes) : fd(fdOfConnection), sends(sendsBytes) { net.connections++; }
  ~Connection() {
    if (getenv("TEST_NET_REPORT") != nullptr && sends) {
      fprintf(stderr, "test network plugin %d: %llu bytes sent\n", kVersion, static_cast<unsigned long long>(net.sentBytes.load()));
    }
    if (!requests.empty()) net.closedWithRequests++;
    for (Request* request : requests) delete request;
    net.requests -= static_cast<int>(requests.size());
    close(fd);
    net.connections--;
  }

  bool isRegistered(const char* data, size_t size) const {
    for (const auto& [start, length] : registered) {
      if (data >= start && data + size <= start + length) return true;
    }
    return false;
  }

  /** Bytes that moved, 0 if none can, -1 at an error. */
  ssize_t move(char* data, size_t size) const {
    ssize_t count = sends ? send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT) : recv(fd, data, size, MSG_DONTWAIT);
    if (count > 0) return count;
    return count < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
  }

  Result progress() {
    for (Request* request : requests) {
      while (!request->complete()) {
        if (request->hangs) return kSuccess;
        bool isHead = request->head < sizeof request->size;
        char* data = isHead ? reinterpret_cast<char*>(&request->size) + request->head : request->data + request->moved;
        ssize_t count = move(data, isHead ? sizeof request->size - request->head : request->size - request->moved);
        if (count < 0) return kRemoteError;
        if (count == 0) return kSuccess;
        (isHead ? request->head : request->moved) += static_cast<size_t>(count);
        if (!isHead) (sends ? net.sentBytes : net.receivedBytes) += static_cast<uint64_t>(count);
        if (!sends && isHead && request->head == sizeof request->size && request->size > request->room) return kInternalError;
      }
    }
    return kSuccess;
  }
};

/** Fails if two threads use a connection at once. */
class Use {
 public:
  explicit Use(Connection* connection) : connection_(connection), alone_(!connection->inUse.exchange(true)) {}
  ~Use() { connection_->inUse = false; }
  bool alone() const { return alone_; }

 private:
  Connection* connection_;
  const bool alone_;
};

struct Address {
  sockaddr_in to;
  int fd;  // of the connection that connect() has begun; 0: none
};
static_assert(sizeof(Address) <= kHandleBytes);

char nameOfNet[64] = "test";

Result begin(Logger log) {
  if (fault("init")) return kSystemError;
  log(kWarning + 1, 0, __FILE__, __LINE__, "begins");
  net.inits++;
  return kSuccess;
}

// The functions that differ between the versions: the table takes the overload of its own.
#define OVERLOAD [[maybe_unused]] Result

OVERLOAD init(Logger log) { return begin(log); }
OVERLOAD init(Logger log, Profile) { return begin(log); }
OVERLOAD init(void** context, uint64_t, Config* config, Logger log, Profile) {
  if (config->trafficClass != -1) return kInternalError;
  Result result = begin(log);
  if (result != kSuccess) return result;
  *context = new int(kContext);
  net.contexts++;
  return kSuccess;
}
OVERLOAD finalize(void* context) {
  delete static_cast<int*>(context);
  net.contexts--;
  return kSuccess;
}
bool isContext(const void* context) { return *static_cast<const int*>(context) == kContext; }

Result devices(int* count) {
  *count = fault("none") ? 0 : 2;
  return fault("devices") ? kSystemError : kSuccess;
}

/** The maximum size of a message. */
[[maybe_unused]] void limit(FirstProperties*) {}
template <int kDevices>
[[maybe_unused]] void limit(LaterProperties<kDevices>* properties) {
  properties->maxP2pBytes = 100'000;
}

/** The first device is for GPUs only. */
Result properties(int device, Properties<kVersion>* properties) {
  if (device < 0 || device > 1 || fault("getProperties")) return kSystemError;
  memset(properties, 0, sizeof *properties);
  properties->name = nameOfNet;
  properties->ptrSupport = device == 0 || getenv("TEST_NET_ONLY_GPUS") != nullptr ? 2 : 3;
  properties->maxComms = 1000;
  properties->maxRecvs = 1;
  limit(properties);
  return kSuccess;
}

OVERLOAD listen(int device, void* handle, void** listener) {
  if (device != 1 || fault("listen")) return kSystemError;
  Address address{};
  address.to.sin_family = AF_INET;
  const char* own = getenv("TEST_NET_ADDRESS");
  inet_pton(AF_INET, own == nullptr ? "127.0.0.1" : own, &address.to.sin_addr);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  socklen_t size = sizeof address.to;
  if (fd < 0 || bind(fd, reinterpret_cast<sockaddr*>(&address.to), size) != 0 || ::listen(fd, 16) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&address.to), &size) != 0) {
    return kSystemError;
  }
  memcpy(handle, &address, sizeof address);
  *listener = new int(fd);
  net.listeners++;
  return kSuccess;
}
OVERLOAD listen(void* context, int device, void* handle, void** listener) {
  return isContext(context) ? listen(device, handle, listener) : kInternalError;
}

Result reach(int device, void* handle, void** connection) {
  if (device != 1 || fault("connect")) return kSystemError;
  Address address;
  memcpy(&address, handle, sizeof address);
  *connection = nullptr;
  if (address.fd == 0) {
    address.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    memcpy(handle, &address, sizeof address);
    return kSuccess;
  }
  if (::connect(address.fd, reinterpret_cast<sockaddr*>(&address.to), sizeof address.to) != 0 && errno != EISCONN) {
    return errno == EINPROGRESS || errno == EALREADY ? kSuccess : kRemoteError;
  }
  *connection = new Connection(address.fd, true);
  return kSuccess;
}
OVERLOAD connect(int device, void* handle, void** connection, void**) { return reach(device, handle, connection); }
OVERLOAD connect(int device, Config* config, void* handle, void** connection, void**) {
  return config->trafficClass == -1 ? reach(device, handle, connection) : kInternalError;
}
OVERLOAD connect(void* context, int device, void* handle, void** connection, void**) {
  return isContext(context) ? reach(device, handle, connection) : kInternalError;
}

Result accept(void* listener, void** connection, void**) {
  if (fault("accept")) return kSystemError;
  int fd = accept4(*static_cast<int*>(listener), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  *connection = fd < 0 ? nullptr : new Connection(fd, false);
  return fd >= 0 || errno == EAGAIN ? kSuccess : kSystemError;
}

Result regMr(void* connection, void* data, size_t size, int type, void** registration) {
  if (type != kHostMemory || fault("regMr")) return kSystemError;
  static_cast<Connection*>(connection)->registered[static_cast<char*>(data)] = size;
  *registration = data;
  net.registrations++;
  return kSuccess;
}

Result deregMr(void* connection, void* registration) {
  if (static_cast<Connection*>(connection)->registered.erase(static_cast<char*>(registration)) != 1) return kInternalError;
  net.registrations--;
  return kSuccess;
}

Result post(void* to, void* data, size_t size, void* registration, void** request) {
  auto* connection = static_cast<Connection*>(to);
  Use use(connection);
  auto* bytes = static_cast<char*>(data);
  if (!use.alone() || !connection->isRegistered(bytes, size) || connection->registered.count(static_cast<char*>(registration)) == 0) {
    return kInternalError;
  }
  // Not every call finds room.
  *request = nullptr;
  if (++connection->calls % 3 == 0 || connection->requests.size() == kMostRequests) return kSuccess;
  auto* made = new Request;
  made->connection = connection;
  made->data = bytes;
  made->room = size;
  made->size = connection->sends ? size : 0;
  made->hangs = connection->sends && fault("hang");
  if (connection->sends && !std::exchange(connection->began, true) && fault("forge")) bytes[0] ^= 1;
  connection->requests.push_back(made);
  net.requests++;
  *request = made;
  return kSuccess;
}

OVERLOAD isend(void* connection, void* data, size_t size, int tag, void* registration, void* profile, void** request) {
  if (fault("isend")) return kSystemError;
  return tag != 0 || profile != nullptr ? kInternalError : post(connection, data, size, registration, request);
}
OVERLOAD isend(void* connection, void* data, size_t size, int tag, void* registration, void** request) {
  return isend(connection, data, size, tag, registration, nullptr, request);
}
OVERLOAD isend(void* connection, void* data, int size, int tag, void* registration, void** request) {
  return isend(connection, data, static_cast<size_t>(size), tag, registration, nullptr, request);
}

OVERLOAD irecv(void* connection, int n, void** data, size_t* sizes, int* tags, void** registrations, void** profiles, void** request) {
  if (fault("irecv")) return kSystemError;
  if (n != 1 || tags[0] != 0 || profiles[0] != nullptr || *request != nullptr) return kInternalError;
  return post(connection, data[0], sizes[0], registrations[0], request);
}
OVERLOAD irecv(void* connection, int n, void** data, size_t* sizes, int* tags, void** registrations, void** request) {
  void* profile = nullptr;
  return irecv(connection, n, data, sizes, tags, registrations, &profile, request);
}
OVERLOAD irecv(void* connection, int n, void** data, int* sizes, int* tags, void** registrations, void** request) {
  auto size = static_cast<size_t>(sizes[0]);
  return irecv(connection, n, data, &size, tags, registrations, request);
}

Result test(void* of, int* done, int* sizes) {
  auto* request = static_cast<Request*>(of);
  Connection* connection = request->connection;
  Use use(connection);
  // As the real ones: in the order in which they were posted.
  if (!use.alone() || connection->requests.front() != request) return kInternalError;
  if (fault("test")) return kRemoteError;
  Result result = connection->progress();
  if (result != kSuccess) return result;
  *done = request->complete();
  if (*done == 0) return kSuccess;
  sizes[0] = static_cast<int>(request->size) - fault("short");
  connection->requests.pop_front();
  delete request;
  net.requests--;
  return kSuccess;
}

Result closeConnection(void* connection) {
  delete static_cast<Connection*>(connection);
  return kSuccess;
}

Result closeListener(void* listener) {
  close(*static_cast<int*>(listener));
  delete static_cast<int*>(listener);
  net.listeners--;
  return kSuccess;
}

Table<kVersion> makeTable() {
  if (const char* name = getenv("TEST_NET_NAME")) snprintf(nameOfNet, sizeof nameOfNet, "%s", name);
  Table<kVersion> table{};
  table.name = nameOfNet;
  table.init = init;
  table.listen = listen;
  table.connect = connect;
  table.isend = isend;
  table.irecv = irecv;
  if (kVersion >= 11) table.finalize = finalize;
  table.devices = devices;
  table.getProperties = properties;
  table.accept = accept;
  table.regMr = regMr;
  table.deregMr = deregMr;
  table.test = test;
  table.closeSend = closeConnection;
  table.closeRecv = closeConnection;
  table.closeListen = closeListener;
  return table;
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))
#define TABLE_OF(version) ncclNetPlugin_v##version
#define TABLE(version) TABLE_OF(version)

EXPORT Table<kVersion> TABLE(NET_VERSION);
Table<kVersion> TABLE(NET_VERSION) = makeTable();

EXPORT host::TestNet* testNet() { return &net; }

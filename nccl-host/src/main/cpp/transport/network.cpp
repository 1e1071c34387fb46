// network.cpp: the choice of an interface by NCCL's rules, and thin wrappers around the system calls of network.h.

#include "transport/network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "transport/hash.h"

namespace host {
namespace {

const char* environment(const char* name) {
  const char* text = getenv(name);
  return text == nullptr ? "" : text;
}

size_t bytesOf(int family) { return family == AF_INET6 ? sizeof(in6_addr) : sizeof(in_addr); }

NetworkAddress addressOf(const sockaddr* from) {
  NetworkAddress address;
  if (from->sa_family == AF_INET) {
    sockaddr_in in;
    memcpy(&in, from, sizeof in);
    memcpy(address.bytes, &in.sin_addr, sizeof in.sin_addr);
    address.port = ntohs(in.sin_port);
  } else if (from->sa_family == AF_INET6) {
    sockaddr_in6 in;
    memcpy(&in, from, sizeof in);
    memcpy(address.bytes, &in.sin6_addr, sizeof in.sin6_addr);
    address.port = ntohs(in.sin6_port);
  } else {
    return address;
  }
  address.family = from->sa_family;
  return address;
}

bool isLinkLocal(const NetworkAddress& address) {
  return address.family == AF_INET6 && address.bytes[0] == 0xfe && (address.bytes[1] & 0xc0) == 0x80;
}

/** `interface`: of this host, for an address that is valid in one network only. */
socklen_t fill(sockaddr_storage& storage, const NetworkAddress& address, unsigned interface) {
  memset(&storage, 0, sizeof storage);
  if (address.family == AF_INET) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(address.port);
    memcpy(&in.sin_addr, address.bytes, sizeof in.sin_addr);
    memcpy(&storage, &in, sizeof in);
    return sizeof in;
  }
  sockaddr_in6 in{};
  in.sin6_family = AF_INET6;
  in.sin6_port = htons(address.port);
  memcpy(&in.sin6_addr, address.bytes, sizeof in.sin6_addr);
  if (isLinkLocal(address)) in.sin6_scope_id = interface;
  memcpy(&storage, &in, sizeof in);
  return sizeof in;
}

Fd tcpSocket(int family) {
  Fd fd = Fd::opened([&] { return socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); });
  if (!fd.valid()) failErrno("cannot create a TCP socket");
  return fd;
}

/** A message is sent at once: frames are short, and the elements after them are in the same call. */
void sendAtOnce(const Fd& socket) {
  int on = 1;
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  for (size_t from = 0; from <= list.size();) {
    size_t to = std::min(list.find(',', from), list.size());
    if (to > from) parts.push_back(list.substr(from, to - from));
    from = to + 1;
  }
  return parts;
}

/** True if NCCL_SOCKET_IFNAME permits the name: a list of prefixes, after "=" of names, after "^" of those that are not meant. */
bool permits(std::string names, const std::string& name) {
  bool inverted = !names.empty() && names[0] == '^';
  if (inverted) names.erase(0, 1);
  bool exact = !names.empty() && names[0] == '=';
  if (exact) names.erase(0, 1);
  std::vector<std::string> all = split(names);
  bool listed = std::any_of(all.begin(), all.end(), [&](const std::string& one) {
    return exact ? name == one : name.compare(0, one.size(), one) == 0;
  });
  return listed != inverted;
}

bool isInNetwork(const Interface& interface, const NetworkAddress& address) {
  if (interface.address.family != address.family) return false;
  for (size_t i = 0; i < bytesOf(address.family); i++) {
    if (((interface.address.bytes[i] ^ address.bytes[i]) & interface.mask[i]) != 0) return false;
  }
  return true;
}

const Interface* find(const std::vector<Interface>& all, const std::string& names) {
  auto found = std::find_if(all.begin(), all.end(), [&](const Interface& one) { return permits(names, one.name); });
  return found == all.end() ? nullptr : &*found;
}

int familySetting() {
  std::string text = environment("NCCL_SOCKET_FAMILY");
  if (text.empty()) return 0;
  if (text == "AF_INET") return AF_INET;
  if (text == "AF_INET6") return AF_INET6;
  fail(ncclInvalidArgument, "NCCL_SOCKET_FAMILY must be AF_INET or AF_INET6: '%s'", text.c_str());
}

/** Identifies the boot of the kernel; empty if it is unknown. */
std::string bootId() {
  char text[64] = {};
  std::unique_ptr<FILE, int (*)(FILE*)> file(fopen("/proc/sys/kernel/random/boot_id", "re"), fclose);
  return file && fgets(text, sizeof text, file.get()) != nullptr ? text : "";
}

/** A number of the environment; 0 if there is none. */
long numberOf(const char* name) { return strtol(environment(name), nullptr, 10); }

}  // namespace

std::string NetworkAddress::text() const {
  char name[INET6_ADDRSTRLEN] = "?";
  inet_ntop(family, bytes, name, sizeof name);
  return format(family == AF_INET6 ? "[%s]:%u" : "%s:%u", name, static_cast<unsigned>(port));
}

std::string nodeName() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

uint64_t hostNumber() {
  std::string host = environment("NCCL_HOSTID");
  if (host.empty()) host = bootId();
  if (host.empty()) host = nodeName();
  char space[64] = {};
  ssize_t length = readlink("/proc/self/ns/net", space, sizeof space - 1);
  Digest hash = sha256(host + '\n' + std::string(space, static_cast<size_t>(std::max<ssize_t>(length, 0))));
  uint64_t number;
  memcpy(&number, hash.data(), sizeof number);
  return number;
}

bool expectsOtherHosts() {
  for (const char* name : {"NCCL_SOCKET_IFNAME", "NCCL_SOCKET_FAMILY", "NCCL_COMM_ID", "NCCL_HOSTID"}) {
    if (*environment(name) != '\0') return true;
  }
  constexpr const char* kRanks[][2] = {
      {"LOCAL_WORLD_SIZE", "WORLD_SIZE"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_SIZE"}};
  for (const auto& [local, all] : kRanks) {
    if (numberOf(local) > 0 && numberOf(local) < numberOf(all)) return true;
  }
  return numberOf("SLURM_STEP_NUM_NODES") > 1;
}

std::vector<Interface> runningInterfaces(int family) {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) failErrno("cannot list the network interfaces");
  std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> list(first, freeifaddrs);
  std::vector<Interface> all;
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_RUNNING) == 0) continue;
    Interface interface;
    interface.name = one->ifa_name;
    interface.index = if_nametoindex(one->ifa_name);
    interface.address = addressOf(one->ifa_addr);
    if (!interface.address.valid() || (family != 0 && interface.address.family != family)) continue;
    in6_addr loopback = IN6ADDR_LOOPBACK_INIT;
    if (interface.address.family == AF_INET6 && memcmp(interface.address.bytes, &loopback, sizeof loopback) == 0) continue;
    if (std::any_of(all.begin(), all.end(), [&](const Interface& known) { return known.name == interface.name; })) continue;
    if (one->ifa_netmask != nullptr) memcpy(interface.mask, addressOf(one->ifa_netmask).bytes, sizeof interface.mask);
    all.push_back(interface);
  }
  return all;
}

const Interface* chooseInterface(const std::vector<Interface>& all, const std::string& names, const NetworkAddress* commId) {
  if (commId != nullptr) {
    auto found = std::find_if(all.begin(), all.end(), [&](const Interface& one) { return isInNetwork(one, *commId); });
    return found == all.end() ? nullptr : &*found;
  }
  if (!names.empty()) return find(all, names);
  for (const char* usual : {"ib", "^docker,lo,virbr", "docker", "lo", "virbr"}) {
    if (const Interface* found = find(all, usual)) return found;
  }
  return nullptr;
}

Interface ownInterface() {
  std::string names = environment("NCCL_SOCKET_IFNAME");
  NetworkAddress commId = commIdAddress();
  std::vector<Interface> all = runningInterfaces(familySetting());
  const Interface* found = chooseInterface(all, names, commId.valid() ? &commId : nullptr);
  if (found != nullptr) return *found;
  std::string text;
  for (const Interface& one : all) text += (text.empty() ? "" : ", ") + one.name;
  fail(
      ncclSystemError, "no network interface for connections between hosts: NCCL_SOCKET_IFNAME is '%s', NCCL_SOCKET_FAMILY '%s', "
      "NCCL_COMM_ID '%s', and the running interfaces are %s",
      names.c_str(), environment("NCCL_SOCKET_FAMILY"), environment("NCCL_COMM_ID"), text.empty() ? "none" : text.c_str());
}

NetworkAddress commIdAddress() {
  std::string text = environment("NCCL_COMM_ID");
  if (text.empty()) return {};
  size_t colon = text.rfind(':');
  std::string port = colon == std::string::npos ? "" : text.substr(colon + 1);
  std::string name = text.substr(0, std::min(colon, text.size()));
  if (name.size() > 2 && name.front() == '[' && name.back() == ']') name = name.substr(1, name.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_family = familySetting();
  addrinfo* found = nullptr;
  int error = name.empty() || port.empty() ? EAI_NONAME : getaddrinfo(name.c_str(), port.c_str(), &hints, &found);
  std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(error == 0 ? found : nullptr, freeaddrinfo);
  NetworkAddress address = error == 0 ? addressOf(found->ai_addr) : NetworkAddress();
  if (!address.valid() || address.port == 0) {
    fail(ncclInvalidArgument, "NCCL_COMM_ID must be HOST:PORT or [IPV6]:PORT of the rank that makes the unique id: '%s'", text.c_str());
  }
  return address;
}

Fd listenAt(const Interface& interface, NetworkAddress& address) {
  Fd fd = tcpSocket(address.family);
  int on = 1;
  // A port of NCCL_COMM_ID may still have connections of the run before.
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_storage storage;
  socklen_t size = fill(storage, address, interface.index);
  std::string text = address.text() + " of " + interface.name;
  if (bind(fd.get(), reinterpret_cast<sockaddr*>(&storage), size) != 0) failErrno(("cannot bind a TCP socket to " + text).c_str());
  if (listen(fd.get(), 4096) != 0) failErrno(("cannot listen at " + text).c_str());
  size = sizeof storage;
  if (getsockname(fd.get(), reinterpret_cast<sockaddr*>(&storage), &size) != 0) failErrno(("cannot look at the port of " + text).c_str());
  address = addressOf(reinterpret_cast<sockaddr*>(&storage));
  return fd;
}

bool acceptFromNetwork(const Fd& listener, Fd& out) {
  out = Fd::opened([&] { return accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK); });
  if (out.valid()) {
    sendAtOnce(out);
    return true;
  }
  switch (errno) {
    case EAGAIN: return false;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM: failErrno("cannot accept a connection");
    // What accept reports of a connection that ended before.
    default: return true;
  }
}

Fd connectTo(const NetworkAddress& address) {
  Fd fd = tcpSocket(address.family);
  sendAtOnce(fd);
  sockaddr_storage storage;
  socklen_t size = fill(storage, address, isLinkLocal(address) ? ownInterface().index : 0);
  // The first use of the socket reports an error of the connection.
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&storage), size) != 0 && errno != EINPROGRESS && errno != EINTR) {
    failErrno(("cannot connect to " + address.text()).c_str());
  }
  return fd;
}

void awaitDelivery(const std::vector<int>& sockets, double seconds) {
  double deadline = now() + seconds;
  auto isDelivered = [](int socket) {
    tcp_info info{};
    socklen_t size = sizeof info;
    // A connection that the peer has reset keeps its count of bytes.
    if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 && info.tcpi_state == TCP_CLOSE) return true;
    int left = 0;
    return ioctl(socket, SIOCOUTQ, &left) != 0 || left == 0;
  };
  while (!std::all_of(sockets.begin(), sockets.end(), isDelivered) && now() < deadline) {
    timespec time{0, 1'000'000};
    nanosleep(&time, nullptr);
  }
}

}  // namespace host

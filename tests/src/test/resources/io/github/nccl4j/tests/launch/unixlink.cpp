// Preloaded into ranks on hosts that are network namespaces: their Unix sockets, by which the ranks of the host engine exchange all
// data without shared memory, reach the ranks of other hosts until a link is cut.
//
// Environment:
//   UNIXLINK_NETWORK  the network namespace to which the Unix sockets of all hosts belong
//   UNIXLINK_CUT      a folder; a file with the inode number of a host's network namespace as name means that its link is cut
//
// Behind a cut link nothing arrives, nothing is sent, and no end of a connection is reported.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace {

template <typename F>
F* next(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

/** The inode number of the network namespace of a process. It stays known when the process has ended: its link is cut. */
ino_t hostOf(const std::string& process) {
  static std::mutex lock;
  static std::map<std::string, ino_t> known;
  std::lock_guard<std::mutex> guard(lock);
  ino_t& host = known[process];
  struct stat found;
  if (host == 0 && stat(("/proc/" + process + "/ns/net").c_str(), &found) == 0) host = found.st_ino;
  return host;
}

bool isUnplugged(ino_t host) {
  static const std::string folder = getenv("UNIXLINK_CUT");
  return access((folder + "/" + std::to_string(host)).c_str(), F_OK) == 0;
}

bool isCut(int fd) {
  static const ino_t own = hostOf("self");
  int saved = errno;
  int domain = 0;
  socklen_t length = sizeof domain;
  ucred peer{};
  socklen_t peerLength = sizeof peer;
  bool cut = false;
  if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && domain == AF_UNIX &&
      getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peerLength) == 0 && peer.pid > 0) {
    ino_t other = hostOf(std::to_string(peer.pid));
    cut = other != own && (isUnplugged(own) || isUnplugged(other));
  }
  errno = saved;
  return cut;
}

}  // namespace

extern "C" int socket(int domain, int type, int protocol) noexcept {
  static auto* const real = next<int(int, int, int)>("socket");
  if (domain != AF_UNIX) return real(domain, type, protocol);
  static const int network = open(getenv("UNIXLINK_NETWORK"), O_RDONLY | O_CLOEXEC);
  int own = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
  if (network < 0 || own < 0 || setns(network, CLONE_NEWNET) != 0) abort();
  int made = real(domain, type, protocol);
  int saved = errno;
  if (setns(own, CLONE_NEWNET) != 0) abort();
  close(own);
  errno = saved;
  return made;
}

extern "C" ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  static auto* const real = next<ssize_t(int, const msghdr*, int)>("sendmsg");
  if (!isCut(fd)) return real(fd, message, flags);
  errno = EAGAIN;
  return -1;
}

extern "C" ssize_t recv(int fd, void* data, size_t size, int flags) {
  static auto* const real = next<ssize_t(int, void*, size_t, int)>("recv");
  if (!isCut(fd)) return real(fd, data, size, flags);
  errno = EAGAIN;
  return -1;
}

extern "C" ssize_t recvmsg(int fd, msghdr* message, int flags) {
  static auto* const real = next<ssize_t(int, msghdr*, int)>("recvmsg");
  if (!isCut(fd)) return real(fd, message, flags);
  errno = EAGAIN;
  return -1;
}

extern "C" int poll(pollfd* polled, nfds_t count, int milliseconds) {
  static auto* const real = next<int(pollfd*, nfds_t, int)>("poll");
  std::vector<pollfd> open(polled, polled + count);
  for (pollfd& one : open) {
    if (isCut(one.fd)) one.fd = -1;
  }
  int ready = real(open.data(), count, milliseconds);
  for (nfds_t i = 0; i < count; i++) polled[i].revents = open[i].revents;
  return ready;
}

// socket.cpp: thin wrappers over the system calls that socket.h names.

#include "socket.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "error.h"

namespace host {
namespace {

socklen_t abstractAddress(const std::string& name, sockaddr_un& address) {
  memset(&address, 0, sizeof address);
  address.sun_family = AF_UNIX;
  // A leading zero byte makes the name abstract.
  memcpy(address.sun_path + 1, name.data(), name.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

Fd streamSocket() {
  Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) failErrno("cannot create a Unix socket");
  return fd;
}

bool sameUser(const Fd& socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  return getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0 &&
         credentials.uid == geteuid();
}

}  // namespace

void Fd::reset() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

void randomBytes(void* out, size_t count) {
  char* at = static_cast<char*>(out);
  while (count > 0) {
    ssize_t got = getrandom(at, count, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) failErrno("cannot read random bytes");
    at += got;
    count -= static_cast<size_t>(got);
  }
}

double now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double secondsFromEnvironment(const char* name, double fallback) {
  const char* text = getenv(name);
  if (text == nullptr || *text == '\0') return fallback;
  char* end = nullptr;
  double value = strtod(text, &end);
  return *end == '\0' && isfinite(value) && value > 0 ? value : fallback;
}

Fd listenAt(const std::string& name) {
  Fd fd = streamSocket();
  sockaddr_un address;
  socklen_t size = abstractAddress(name, address);
  if (bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size) != 0) failErrno("cannot bind a Unix socket");
  if (listen(fd.get(), 4096) != 0) failErrno("cannot listen on a Unix socket");
  return fd;
}

Fd acceptFrom(const Fd& listener) {
  for (;;) {
    Fd fd(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.valid()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return fd;
      failErrno("cannot accept a connection");
    }
    if (sameUser(fd)) return fd;
  }
}

Connect connectTo(const std::string& name, Fd& out) {
  Fd fd = streamSocket();
  sockaddr_un address;
  socklen_t size = abstractAddress(name, address);
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), size) != 0) {
    if (errno == EAGAIN || errno == EINTR) return Connect::TryAgain;
    if (errno == ECONNREFUSED || errno == ENOENT) return Connect::Refused;
    failErrno("cannot connect to a Unix socket");
  }
  if (!sameUser(fd)) return Connect::Refused;
  out = std::move(fd);
  return Connect::Done;
}

void enlargeBuffers(const Fd& socket) {
  int size = 4 << 20;
  setsockopt(socket.get(), SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  setsockopt(socket.get(), SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
}

long sendSome(int fd, const void* data, size_t size) {
  for (;;) {
    ssize_t sent = send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) return sent;
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS || errno == ENOMEM) return 0;
    if (errno != EINTR) return -1;
  }
}

long receiveSome(int fd, void* data, size_t size) {
  // Closing a Unix socket that has unread data resets the connection: the reset is reported once, and what the peer had
  // sent before can still be read after it.
  bool reset = false;
  for (;;) {
    ssize_t got = recv(fd, data, size, MSG_DONTWAIT);
    if (got > 0) return got;
    if (got == 0) return -1;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
    if (errno == ECONNRESET && !reset) {
      reset = true;
      continue;
    }
    if (errno != EINTR) return -1;
  }
}

SignalsBlocked::SignalsBlocked() {
  static_assert(sizeof(sigset_t) <= sizeof saved_, "room for a signal mask");
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  memcpy(saved_, &old, sizeof old);
}

SignalsBlocked::~SignalsBlocked() {
  sigset_t old;
  memcpy(&old, saved_, sizeof old);
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

}  // namespace host

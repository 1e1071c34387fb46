// socket.cpp: thin wrappers around the system calls of socket.h.

#include "transport/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>

#include "base/error.h"

namespace host {
namespace {

struct Descriptor {
  bool owned = false;  // by an Fd
  std::shared_ptr<Tls> tls;
};

/** By number. Never destroyed, because Fds of threads and singletons are not. */
std::vector<Descriptor>& descriptors = *new std::vector<Descriptor>;

/** True once a descriptor has a Tls: the others are not looked up before. */
std::atomic<bool> anyEncrypted{false};

std::shared_ptr<Tls> tlsOf(int fd) {
  if (!anyEncrypted.load(std::memory_order_relaxed) || fd < 0) return nullptr;
  std::lock_guard<std::mutex> lock(lockOfDescriptors());
  auto at = static_cast<size_t>(fd);
  return at < descriptors.size() ? descriptors[at].tls : nullptr;
}

socklen_t abstractAddress(const std::string& name, sockaddr_un& address) {
  memset(&address, 0, sizeof address);
  address.sun_family = AF_UNIX;
  // A leading zero byte makes the name abstract.
  memcpy(address.sun_path + 1, name.data(), name.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

Fd streamSocket() {
  Fd fd = Fd::opened([] { return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); });
  if (!fd.valid()) failErrno("cannot create a Unix socket");
  return fd;
}

/** The user id that the kernel shows for the users that are not in this user namespace. */
uid_t overflowUser() {
  std::ifstream file("/proc/sys/kernel/overflowuid");
  uid_t user = 0;
  return file >> user ? user : 65534;
}

/** True if this user namespace has all users, as that of the system. */
bool hasAllUsers() {
  std::ifstream map("/proc/self/uid_map");
  uint64_t first, outside, count, all = 0;
  while (map >> first >> outside >> count) all += count;
  return all == UINT32_MAX;
}

void requireKnownUser() {
  uid_t user = geteuid();
  if (user != overflowUser() || hasAllUsers()) return;
  fail(
      ncclInvalidUsage,
      "user %u of this user namespace is the one that the kernel shows for all users outside of it "
      "(/proc/sys/kernel/overflowuid): run this program as another user",
      static_cast<unsigned>(user));
}

bool sameUser(const Fd& socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  return getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0 &&
         credentials.uid == geteuid();
}

/** True for the errors of a connection that cannot be made, or whose other end is gone. */
bool isBroken(int error) {
  switch (error) {
    case EPIPE:
    case ECONNRESET:
    case ECONNREFUSED:
    case ECONNABORTED:
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case EHOSTDOWN:
    case ENETUNREACH:
    case ENETDOWN: return true;
    default: return false;
  }
}

/** Seconds to tolerate the kernel's lack of memory for a message. */
constexpr double kMemoryPatience = 1;

void sleepMillisecond() {
  timespec time{0, 1'000'000};
  nanosleep(&time, nullptr);
}

long sendMessage(int fd, const msghdr& message) {
  for (double start = now();;) {
    ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) return sent;
    if (isBroken(errno)) return -1;
    switch (errno) {
      case EINTR: continue;
      case EAGAIN:
      case ETOOMANYREFS: return 0;
      case ENOBUFS:
      case ENOMEM:
        // Polling may return at once, since the socket may have space; and a missed doorbell would never be repeated.
        if (now() - start >= kMemoryPatience) failErrno("cannot send to another rank");
        sleepMillisecond();
        continue;
      default: failErrno("cannot send to another rank");
    }
  }
}

template <class Receive>
long receiveAny(Receive&& receive) {
  // Closing a Unix socket with unread data resets the connection: the reset is reported once, and the bytes that the
  // peer sent earlier can still be read after it.
  bool reset = false;
  for (;;) {
    ssize_t got = receive();
    if (got > 0) return got;
    if (got == 0) return -1;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
    if (errno == ECONNRESET) {
      if (reset) return -1;
      reset = true;
      continue;
    }
    if (isBroken(errno)) return -1;
    if (errno != EINTR) failErrno("cannot receive from another rank");
  }
}

}  // namespace

std::mutex& lockOfDescriptors() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}

Fd::Fd(int fd) : fd_(fd) {
  if (fd_ < 0) return;
  size_t at = static_cast<size_t>(fd_);
  if (descriptors.size() <= at) descriptors.resize(at + 1);
  descriptors[at].owned = true;
}

void Fd::reset() {
  if (fd_ < 0) return;
  std::lock_guard<std::mutex> lock(lockOfDescriptors());
  descriptors[static_cast<size_t>(fd_)] = {};
  close(fd_);
  fd_ = -1;
}

void replaceDescriptors() {
  auto next = [](size_t from) {
    while (from < descriptors.size() && !descriptors[from].owned) from++;
    return from;
  };
  size_t first = next(0);
  if (first == descriptors.size()) return;
  // The numbers stay in use: the objects that own them will close them. No system call but these needs a free number.
  close(static_cast<int>(first));
  int other = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  for (size_t fd = first; fd < descriptors.size(); fd = next(fd + 1)) {
    if (other < 0) {
      close(static_cast<int>(fd));
    } else if (other != static_cast<int>(fd)) {
      dup3(other, static_cast<int>(fd), O_CLOEXEC);
    }
  }
  if (other >= 0 && other != static_cast<int>(first)) close(other);
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

void encrypt(const Fd& socket, std::shared_ptr<Tls> tls) {
  std::lock_guard<std::mutex> lock(lockOfDescriptors());
  descriptors[static_cast<size_t>(socket.get())].tls = std::move(tls);
  anyEncrypted = true;
}

Fd duplicate(const Fd& socket) {
  Fd copy = Fd::opened([&] { return fcntl(socket.get(), F_DUPFD_CLOEXEC, 0); });
  if (!copy.valid()) failErrno("cannot duplicate a socket");
  if (std::shared_ptr<Tls> tls = tlsOf(socket.get())) encrypt(copy, std::move(tls));
  return copy;
}

Fd listenAt(const std::string& name) {
  requireKnownUser();
  Fd fd = streamSocket();
  sockaddr_un address;
  socklen_t size = abstractAddress(name, address);
  if (bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size) != 0) failErrno("cannot bind a Unix socket");
  if (listen(fd.get(), 4096) != 0) failErrno("cannot listen on a Unix socket");
  return fd;
}

bool acceptFrom(const Fd& listener, Fd& out) {
  out = Fd::opened([&] { return accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK); });
  if (out.valid()) {
    if (!sameUser(out)) out.reset();
    return true;
  }
  if (errno == EINTR || errno == ECONNABORTED) return true;
  if (errno == EAGAIN) return false;
  failErrno("cannot accept a connection");
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

void pollAll(std::vector<pollfd>& polled, int milliseconds) {
  auto mayHaveMore = [](const pollfd& one) {
    std::shared_ptr<Tls> tls = (one.events & POLLIN) != 0 ? tlsOf(one.fd) : nullptr;
    return tls && tls->mayHaveMore();
  };
  bool encrypted = anyEncrypted.load(std::memory_order_relaxed);
  if (encrypted && std::any_of(polled.begin(), polled.end(), mayHaveMore)) milliseconds = 0;
  if (poll(polled.data(), polled.size(), milliseconds) >= 0) {
    for (pollfd& one : polled) {
      if (encrypted && mayHaveMore(one)) one.revents |= POLLIN;
    }
  } else if (errno == ENOMEM) {
    sleepMillisecond();
  } else if (errno != EINTR) {
    failErrno("cannot wait for other ranks");
  }
}

void awaitInput(int fd, int milliseconds) {
  std::vector<pollfd> polled{{fd, POLLIN, 0}};
  pollAll(polled, milliseconds);
}

long sendSome(int fd, const void* data, size_t size) {
  iovec part{const_cast<void*>(data), size};
  return sendParts(fd, &part, 1);
}

long sendParts(int fd, iovec* parts, size_t count) {
  if (std::shared_ptr<Tls> tls = tlsOf(fd)) return tls->send(fd, parts, count);
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = count;
  return sendMessage(fd, message);
}

long sendWithDescriptor(int fd, const void* data, size_t size, int passed) {
  iovec part{const_cast<void*>(data), size};
  alignas(cmsghdr) char ancillary[CMSG_SPACE(sizeof passed)] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = ancillary;
  message.msg_controllen = sizeof ancillary;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof passed);
  memcpy(CMSG_DATA(header), &passed, sizeof passed);
  return sendMessage(fd, message);
}

long receiveSome(int fd, void* data, size_t size) {
  if (std::shared_ptr<Tls> tls = tlsOf(fd)) return tls->receive(fd, data, size);
  return receiveAny([&] { return recv(fd, data, size, MSG_DONTWAIT); });
}

long receiveWithDescriptor(int fd, void* data, size_t size, Fd& passed) {
  // No descriptor comes from another host.
  if (std::shared_ptr<Tls> tls = tlsOf(fd)) return tls->receive(fd, data, size);
  Fd arrived;
  std::unique_lock<std::mutex> lock(lockOfDescriptors());
  long received = receiveAny([&] {
    iovec part{data, size};
    alignas(cmsghdr) char ancillary[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = ancillary;
    message.msg_controllen = sizeof ancillary;
    ssize_t got = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    cmsghdr* header = got > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
    if (header != nullptr && header->cmsg_type == SCM_RIGHTS && header->cmsg_len == CMSG_LEN(sizeof(int))) {
      int descriptor;
      memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
      arrived = Fd(descriptor);
    }
    return got;
  });
  lock.unlock();
  if (arrived.valid()) passed = std::move(arrived);
  return received;
}

std::pair<Fd, Fd> newStream() {
  int ends[2];
  std::lock_guard<std::mutex> lock(lockOfDescriptors());
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
    failErrno("cannot create a pair of Unix sockets");
  }
  return {Fd(ends[0]), Fd(ends[1])};
}

Fd newEvent() {
  Fd event = Fd::opened([] { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); });
  if (!event.valid()) failErrno("cannot create an eventfd");
  return event;
}

void raiseEvent(const Fd& event) {
  uint64_t one = 1;
  ssize_t written = write(event.get(), &one, sizeof one);
  (void)written;  // fails only if the counter is full, that is, readable already
}

void clearEvent(const Fd& event) {
  uint64_t count;
  ssize_t got = read(event.get(), &count, sizeof count);
  (void)got;  // fails only if the event was not raised
}

SignalsBlocked::SignalsBlocked() {
  static_assert(sizeof(sigset_t) <= sizeof saved_, "room for a signal mask");
  sigset_t all, old;
  sigfillset(&all);
  // Fatal signals stay enabled, so that a crash of a helper thread is reported as a crash.
  for (int fatal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) sigdelset(&all, fatal);
  // On Linux, as pthread_sigmask, which glibc 2.32 gave another version.
  sigprocmask(SIG_SETMASK, &all, &old);
  memcpy(saved_, &old, sizeof old);
}

SignalsBlocked::~SignalsBlocked() {
  sigset_t old;
  memcpy(&old, saved_, sizeof old);
  sigprocmask(SIG_SETMASK, &old, nullptr);
}

}  // namespace host

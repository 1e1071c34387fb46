// socket.h: file descriptors and Unix sockets in the abstract name space.
// Abstract names are no files: the kernel removes a name with its last descriptor, so nothing remains after SIGKILL.
// Abstract names have no permissions either; every connection is therefore checked for the peer's user id, and begins with
// the proof of proof.h.
#pragma once

#include <poll.h>
#include <stddef.h>
#include <sys/uio.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/fork.h"
#include "transport/tls.h"

namespace host {

/** Owns a file descriptor. A child of fork() has another one in its place; see fork.h. */
class Fd {
 public:
  Fd() = default;
  /** Needs lockOfDescriptors() since the descriptor was opened. */
  explicit Fd(int fd);
  /** Owns the descriptor that `open` returns; invalid if that is negative. `open` must not wait. */
  template <class Open>
  static Fd opened(Open&& open) {
    std::lock_guard<std::mutex> lock(lockOfDescriptors());
    return Fd(open());
  }
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~Fd() { reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  void reset();

 private:
  int fd_ = -1;
};

/** Fills out with count random bytes of the kernel. */
void randomBytes(void* out, size_t count);

/** Seconds of a monotonic clock. */
double now();

/** From now on, the functions of this file pass the bytes of this socket through the Tls, whose handshake is done. */
void encrypt(const Fd& socket, std::shared_ptr<Tls> tls);

/** A second descriptor of the same socket. */
Fd duplicate(const Fd& socket);

/**
 * Creates a non-blocking listener under an abstract name. Throws in a user namespace in which this process has the id that the
 * kernel shows for all users outside: the user of a peer cannot be known there.
 */
Fd listenAt(const std::string& name);

/**
 * Maximum number of connections to accept in a row, so that a client that reconnects in a loop cannot block other work.
 */
constexpr int kAcceptTurn = 64;

/** Accepts one connection; false if none waits. Closes a connection of another user, and leaves `out` invalid then. */
bool acceptFrom(const Fd& listener, Fd& out);

enum class Connect { Done, TryAgain, Refused };

/** Connects to an abstract name without waiting; refused if it has no listener or one of another user. */
Connect connectTo(const std::string& name, Fd& out);

/** Requests large buffers; a smaller grant is acceptable. */
void enlargeBuffers(const Fd& socket);

/** As poll(), but throws on errors; a signal may end the wait early. */
void pollAll(std::vector<pollfd>& polled, int milliseconds);

/** Waits at most so long until the socket has bytes, or has ended. */
void awaitInput(int fd, int milliseconds);

/**
 * Sends without waiting. Returns the number of bytes, 0 if the call would block, or -1 if the connection is broken.
 * Throws on other errors, and on a persistent lack of kernel memory.
 */
long sendSome(int fd, const void* data, size_t size);

/** Receives without waiting: the number of bytes, 0 if the call would block, -1 at the end. Throws on other errors. */
long receiveSome(int fd, void* data, size_t size);

/** As sendSome for several pieces. */
long sendParts(int fd, iovec* parts, size_t count);

/**
 * As sendSome for a short message with a descriptor, which is duplicated into the other process. Also returns 0 while
 * RLIMIT_NOFILE descriptors of this user are in transit: polling does not report the end of this state.
 */
long sendWithDescriptor(int fd, const void* data, size_t size, int passed);

/** As receiveSome; stores a descriptor that came with the bytes in passed. */
long receiveWithDescriptor(int fd, void* data, size_t size, Fd& passed);

/** Returns the two connected ends of a new stream. */
std::pair<Fd, Fd> newStream();

/** A pollable event: readable from raiseEvent to clearEvent. */
Fd newEvent();
void raiseEvent(const Fd& event);
void clearEvent(const Fd& event);

/** Blocks signals in this thread while it starts helper threads, which inherit the mask. */
class SignalsBlocked {
 public:
  SignalsBlocked();
  ~SignalsBlocked();
  SignalsBlocked(const SignalsBlocked&) = delete;

 private:
  unsigned char saved_[128];  // a sigset_t
};

}  // namespace host

// socket.h: file descriptors and Unix sockets in the abstract name space.
// Abstract names are no files: the kernel drops them with the last descriptor, so nothing is left behind after SIGKILL.
// They have no permissions either; every accepted connection is therefore checked for the peer's user id.
#pragma once

#include <poll.h>
#include <stddef.h>
#include <sys/uio.h>

#include <string>
#include <utility>
#include <vector>

namespace host {

/** Owns a file descriptor. */
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
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

/** count bytes of the kernel's randomness. */
void randomBytes(void* out, size_t count);

/** Seconds of a clock that never jumps. */
double now();

/** A non-blocking listener under an abstract name. */
Fd listenAt(const std::string& name);

/** Connections that are accepted at most before other work gets its turn: who connects over and over must not hold it up. */
constexpr int kAcceptTurn = 64;

/** Takes one connection; false when none is waiting. One of another user is closed, and leaves out invalid. */
bool acceptFrom(const Fd& listener, Fd& out);

enum class Connect { Done, TryAgain, Refused };

/** Connects to an abstract name without waiting; refused when nobody listens there or it is another user's. */
Connect connectTo(const std::string& name, Fd& out);

/** Asks for large buffers; what the system grants is good enough. */
void enlargeBuffers(const Fd& socket);

/** poll(), but where the system refuses to wait it throws; a signal may end the waiting early. */
void pollAll(std::vector<pollfd>& polled, int milliseconds);

/**
 * Sends what the socket takes now: the number of bytes, 0 when it would block, -1 when the connection is broken. Any other
 * reason is thrown, a lack of kernel memory when it lasts.
 */
long sendSome(int fd, const void* data, size_t size);

/** Receives what is there now: the number of bytes, 0 when it would block, -1 at the end of the connection. Else throws. */
long receiveSome(int fd, void* data, size_t size);

/** As sendSome for several pieces. */
long sendParts(int fd, iovec* parts, size_t count);

/**
 * As sendSome for a short message, with a descriptor that the other process gets its own copy of. 0 also while as many
 * descriptors of this user are on their way as RLIMIT_NOFILE allows: polling does not tell when that ends.
 */
long sendWithDescriptor(int fd, const void* data, size_t size, int passed);

/** As receiveSome; a descriptor that came with the bytes goes to passed. */
long receiveWithDescriptor(int fd, void* data, size_t size, Fd& passed);

/** Two connected ends of a new stream. */
std::pair<Fd, Fd> newStream();

/** An event that can be polled: readable from raiseEvent to clearEvent. */
Fd newEvent();
void raiseEvent(const Fd& event);
void clearEvent(const Fd& event);

/** Blocks all signals in this thread while it starts helper threads: those inherit the mask. */
class SignalsBlocked {
 public:
  SignalsBlocked();
  ~SignalsBlocked();
  SignalsBlocked(const SignalsBlocked&) = delete;

 private:
  unsigned char saved_[128];  // a sigset_t
};

}  // namespace host

// netconnection.h: two connections of a plugin between two ranks, one for each direction.
//
// The bytes of a direction pass buffers that are registered once, in pieces of equal size but for the last one of those that the sender
// announced. Only for announced pieces are there receives, so that none is left when both ranks have what they expect.
#pragma once

#include <stddef.h>

#include <array>
#include <memory>
#include <string>

#include "transport/hash.h"
#include "transport/netplugin.h"

namespace host {

/** For one thread at a time. A function throws if the plugin fails. */
class NetConnection {
 public:
  static constexpr size_t kBuffers = 8;
  static constexpr size_t kPiece = 128 << 10;
  /** Bytes of memory of a connection. */
  static constexpr size_t kBytes = 2 * kBuffers * kPiece;

  /** `socket`: a proven connection to the peer, for connect(). The secret is that of the ranks. */
  NetConnection(std::shared_ptr<Network> network, const Digest& secret, int own, int peer, int socket);
  ~NetConnection();
  NetConnection(const NetConnection&) = delete;

  const std::string& network() const { return network_->name(); }

  /** Continues without waiting; true once both ranks have proven by the plugin that they know the secret. */
  bool connect();

  /** Takes the next bytes of an announcement, of which `size` are left; returns their number, 0 while all buffers are in use. */
  size_t send(const char* data, size_t size);
  /** Number of bytes that the plugin has sent since the last call. */
  size_t sent();
  /** Number of bytes that were taken and not sent. */
  size_t inFlight() const { return inFlight_; }

  /** The peer has announced bytes. */
  void expect(size_t bytes) { expected_ += bytes; }
  /** Receives announced bytes: their number, 0 if there are none. */
  size_t receive(void* data, size_t size);

 private:
  /** The first message of both ends on the socket. */
  struct Hello {
    uint32_t piece = 0;  // maximum number of bytes
    uint32_t unused = 0;
    Network::Handle handle;
    Digest challenge = {};
  };

  struct Buffer {
    char* data = nullptr;
    size_t size = 0;  // of the piece
    size_t read = 0;
    void* request = nullptr;
  };

  /** The buffers in use, in the order of their pieces. */
  struct Direction {
    std::array<Buffer, kBuffers> buffers;
    size_t first = 0;
    size_t used = 0;
    size_t posted = 0;  // of those in use: the first ones have a request, or had one
    void* connection = nullptr;
    void* registration = nullptr;
    bool registered = false;

    bool isFull() const { return used == kBuffers; }
    Buffer& at(size_t index) { return buffers[(first + index) % kBuffers]; }
    void removeFirst() {
      first = (first + 1) % kBuffers;
      used--;
      posted--;
    }
  };

  void greet();
  bool isGreeted();
  void prepare(Direction& direction, char* memory);
  void postSends();
  void postReceives();
  /** True if the first request of a direction is complete. */
  bool completeFirst(Direction& direction);
  bool hasRequests(Direction& direction) noexcept;
  Digest tag(int from, int to, const Hello& ofSender, const Hello& ofReceiver) const;

  const std::shared_ptr<Network> network_;
  const Digest secret_;
  const int own_;
  const int peer_;
  const int socket_;
  char* memory_ = nullptr;
  size_t piece_ = 0;
  void* listener_ = nullptr;
  Hello mine_;
  Hello theirs_;
  Network::Handle handle_;  // of the peer, with the state of connect
  size_t received_ = 0;     // bytes of theirs_
  bool proves_ = false;
  bool proofSent_ = false;
  Digest proof_ = {};
  size_t proofBytes_ = 0;
  Direction out_;
  Direction in_;
  size_t inFlight_ = 0;
  size_t expected_ = 0;  // bytes without a receive
};

}  // namespace host

// channel.h: the stream of frames and elements between two ranks.
//
// Its bytes go through memory that both map, a ring for each direction, where the system has memfd; the socket between the
// two is the bell then, and tells the death of the other. A memfd has no name: the kernel frees it with its last user, however
// that ends. Without memfd the bytes go through the socket itself.
#pragma once

#include <memory>

#include "socket.h"

namespace host {

class Channel {
 public:
  Channel() = default;
  Channel(Channel&&) noexcept = default;
  Channel& operator=(Channel&&) noexcept = default;

  /** Bytes of a ring in a communicator of so many ranks. */
  static size_t ringBytes(int ranks);
  /** Makes the memory of a new connection; an invalid descriptor where there is none to be had. */
  static Fd newMemory(size_t ringBytes);

  /** Takes the socket, and the memory if there is some; first says which of the two rings this side writes. */
  void open(Fd socket, const Fd& memory, size_t ringBytes, bool first);

  bool valid() const { return socket_.valid(); }
  /** To be polled, for reading also where this side waits for room. */
  int descriptor() const { return socket_.get(); }
  bool shared() const { return rings_ != nullptr; }

  /** As sendParts of socket.h; may change the parts. */
  long send(iovec* parts, size_t count);
  /** As receiveSome. */
  long receive(void* data, size_t size);
  /**
   * Has the other side ring when reading or writing can go on. To be called before the descriptor is polled; true when one
   * of them can go on already, and nothing is to be waited for.
   */
  bool ready(bool reading, bool writing);
  /** Nothing more will be sent; what was can still be read. */
  void endSending();
  void reset();

 private:
  struct Ring;
  struct Unmap {
    size_t bytes;
    void operator()(Ring* rings) const;
  };
  bool hearBell();
  void ring();
  static size_t filled(const Ring& ring);

  Fd socket_;
  std::unique_ptr<Ring[], Unmap> rings_;
  size_t size_ = 0;
  Ring* out_ = nullptr;
  Ring* in_ = nullptr;
  char* outData_ = nullptr;
  const char* inData_ = nullptr;
  bool ended_ = false;
};

}  // namespace host

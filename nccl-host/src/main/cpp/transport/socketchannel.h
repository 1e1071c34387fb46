// socketchannel.h: a channel whose frames and elements go through a stream socket.
#pragma once

#include "transport/channel.h"

namespace host {

class SocketChannel final : public Channel {
 public:
  explicit SocketChannel(Fd socket) : Channel(std::move(socket), 0, sizeof Frame::words) {}

  /** A frame and the elements after it are sent in one call. */
  long sendQueued(Fifo<Outgoing>& queue) override;
  long send(iovec* parts, size_t count) override;
  int receiveFrame(Frame& frame, char* elements) override;
  long receive(void* data, size_t size) override;

 private:
  size_t frameBytes_ = 0;  // received bytes of the next frame
  uint32_t nextIn_ = kFirstFrame;  // numbers of frames
  uint32_t nextOut_ = kFirstFrame;
};

}  // namespace host

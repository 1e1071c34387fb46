// socketchannel.cpp: frames and elements as bytes of a stream.

#include "transport/socketchannel.h"

#include <algorithm>

namespace host {

long SocketChannel::sendQueued(Fifo<Outgoing>& queue) {
  iovec parts[2];
  size_t count = std::min<size_t>(queue.size(), 2);
  uint32_t number = nextOut_;
  for (size_t i = 0; i < count; i++) {
    Outgoing& out = queue[i];
    const char* data = out.data;
    if (data == nullptr) {
      out.frame.number = number++;
      data = reinterpret_cast<const char*>(&out.frame);
    }
    parts[i].iov_base = const_cast<char*>(data) + out.sent;
    parts[i].iov_len = out.size - out.sent;
  }
  long sent = send(parts, count);
  for (size_t left = static_cast<size_t>(std::max(0L, sent)); left > 0;) {
    Outgoing& out = queue.front();
    size_t step = std::min(left, out.size - out.sent);
    out.sent += step;
    left -= step;
    if (out.sent < out.size) break;
    if (out.data == nullptr) nextOut_++;
    queue.pop_front();
  }
  return sent;
}

long SocketChannel::send(iovec* parts, size_t count) { return sendParts(socket_.get(), parts, count); }

int SocketChannel::receiveFrame(Frame& frame, char*) {
  long got = receive(reinterpret_cast<char*>(&frame) + frameBytes_, sizeof frame - frameBytes_);
  if (got <= 0) return static_cast<int>(got);
  frameBytes_ += static_cast<size_t>(got);
  if (frameBytes_ < sizeof frame) return 0;
  frameBytes_ = 0;
  return frame.number == nextIn_++ ? 1 : kGarbled;
}

long SocketChannel::receive(void* data, size_t size) { return receiveSome(socket_.get(), data, size); }

}  // namespace host

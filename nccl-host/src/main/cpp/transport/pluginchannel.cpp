// pluginchannel.cpp: announcements and the elements after them.

#include "transport/pluginchannel.h"

#include <math.h>
#include <poll.h>

#include <algorithm>

#include "base/error.h"

namespace host {
namespace {

/** A plugin has no descriptor to poll. After a pause of its bytes it is asked less often. */
constexpr double kBusySeconds = 0.01;
constexpr double kPauseSeconds = 0.001;

/** Milliseconds between the failure of a plugin and the end of the socket, if the peer has died. */
constexpr int kEndMillis = 500;

}  // namespace

short PluginChannel::events(const Wait& wait) const {
  bool reads = wait.frame || (wait.bytes > 0 && !in_.usesPlugin());
  bool writes = wait.outgoing != nullptr || (wait.room && !out_.usesPlugin());
  return static_cast<short>((reads ? POLLIN : 0) | (writes ? POLLOUT : 0));
}

double PluginChannel::nextLook(const Wait& wait) const {
  bool awaited = (wait.bytes > 0 && in_.usesPlugin()) || (wait.room && out_.usesPlugin());
  if (!awaited) return HUGE_VAL;
  double time = now();
  return time < lastMoved_ + kBusySeconds ? time : time + kPauseSeconds;
}

/** Calls the plugin. If it fails because the peer has ended, returns -1: the peer's control stream has the reason. */
template <class Body>
long PluginChannel::byPlugin(Body&& body) {
  try {
    long moved = body();
    if (moved > 0) lastMoved_ = now();
    return moved;
  } catch (const Failure&) {
    pollfd polled{socket_.get(), POLLRDHUP, 0};
    if (poll(&polled, 1, kEndMillis) > 0) return -1;
    throw;
  }
}

void PluginChannel::advance(Fifo<Outgoing>& queue, size_t sent) {
  Outgoing& out = queue.front();
  out.sent += sent;
  if (out.data != nullptr) out_.left -= sent;
  if (out.sent < out.size) return;
  if (out.data == nullptr) nextOut_++;
  queue.pop_front();
}

long PluginChannel::sendByPlugin(Fifo<Outgoing>& queue) {
  return byPlugin([&] {
    const Outgoing& out = queue.front();
    size_t sent = connection_->sent();
    size_t left = out_.left - sent;
    const char* next = out.data + out.sent + sent;
    while (left > connection_->inFlight()) {
      size_t flying = connection_->inFlight();
      if (connection_->send(next + flying, left - flying) == 0) break;
    }
    if (sent > 0) advance(queue, sent);
    return static_cast<long>(sent);
  });
}

long PluginChannel::sendQueued(Fifo<Outgoing>& queue) {
  if (out_.usesPlugin()) return sendByPlugin(queue);
  // A frame, the announcement of the elements after it, and these.
  iovec parts[3];
  size_t count = 0;
  auto add = [&](const void* data, size_t size) {
    parts[count++] = {const_cast<char*>(static_cast<const char*>(data)), size};
    return size;
  };
  Outgoing* next = &queue.front();
  size_t ofFrame = 0;
  if (next->data == nullptr) {
    next->frame.number = nextOut_;
    ofFrame = add(reinterpret_cast<const char*>(&next->frame) + next->sent, next->size - next->sent);
    next = queue.size() > 1 && queue[1].data != nullptr ? &queue[1] : nullptr;
  }
  size_t ofAnnouncement = 0;
  if (next != nullptr) {
    if (out_.left == 0) {
      out_.left = next->size - next->sent;
      out_.announced = 0;
      out_.announcement.way = out_.left < kMinimum ? Way::Socket : Way::Plugin;
      out_.announcement.bytes = out_.left;
    }
    if (!out_.isAnnounced()) {
      ofAnnouncement =
          add(reinterpret_cast<const char*>(&out_.announcement) + out_.announced, sizeof out_.announcement - out_.announced);
    }
    if (out_.announcement.way == Way::Socket) add(next->data + next->sent, out_.left);
  }
  long sent = sendParts(socket_.get(), parts, count);
  if (sent <= 0) return sent;
  size_t left = static_cast<size_t>(sent);
  if (ofFrame > 0) {
    size_t step = std::min(left, ofFrame);
    advance(queue, step);
    left -= step;
  }
  size_t step = std::min(left, ofAnnouncement);
  out_.announced += step;
  left -= step;
  if (step > 0) lastMoved_ = now();
  if (left > 0) advance(queue, left);
  return sent;
}

int PluginChannel::receiveFrame(Frame& frame, char*) {
  // What does not belong to a frame.
  if (in_.left > 0) return kGarbled;
  long got = receiveSome(socket_.get(), reinterpret_cast<char*>(&frame) + frameBytes_, sizeof frame - frameBytes_);
  if (got <= 0) return static_cast<int>(got);
  frameBytes_ += static_cast<size_t>(got);
  if (frameBytes_ < sizeof frame) return 0;
  frameBytes_ = 0;
  return frame.number == nextIn_++ ? 1 : kGarbled;
}

long PluginChannel::receive(void* data, size_t size) {
  if (in_.left == 0) {
    if (in_.isAnnounced()) in_.announced = 0;
    long got = receiveSome(
        socket_.get(), reinterpret_cast<char*>(&in_.announcement) + in_.announced, sizeof in_.announcement - in_.announced);
    if (got <= 0) return got;
    in_.announced += static_cast<size_t>(got);
    if (!in_.isAnnounced()) return 0;
    const Announcement& announcement = in_.announcement;
    bool known = announcement.way == Way::Socket || announcement.way == Way::Plugin;
    if (announcement.magic != kWireMagic || !known || announcement.bytes == 0) {
      fail(ncclInternalError, "a rank sent something unintelligible in place of elements, by network plugin '%s'", connection_->network().c_str());
    }
    in_.left = announcement.bytes;
    if (in_.usesPlugin()) {
      connection_->expect(in_.left);
      lastMoved_ = now();
    }
  }
  size_t most = std::min(size, in_.left);
  long got = in_.usesPlugin() ? byPlugin([&] { return static_cast<long>(connection_->receive(data, most)); })
                              : receiveSome(socket_.get(), data, most);
  if (got > 0) in_.left -= static_cast<size_t>(got);
  return got;
}

}  // namespace host

// pluginchannel.h: a channel through a socket and a network plugin.
//
// Frames go through the socket, and so do the elements after them unless they are many. Each run of elements begins with an
// announcement on the socket of their number and of the way that they take, so that their order is that of the sender.
#pragma once

#include "transport/channel.h"
#include "transport/netconnection.h"

namespace host {

class PluginChannel final : public Channel {
 public:
  /** Minimum number of bytes that take the plugin. */
  static constexpr size_t kMinimum = 16 << 10;

  PluginChannel(Fd socket, std::unique_ptr<NetConnection> connection)
      : Channel(std::move(socket), 0, sizeof Frame::words), connection_(std::move(connection)) {}

  short events(const Wait& wait) const override;
  double nextLook(const Wait& wait) const override;
  long sendQueued(Fifo<Outgoing>& queue) override;
  int receiveFrame(Frame& frame, char* elements) override;
  long receive(void* data, size_t size) override;

 private:
  enum class Way : uint32_t { Socket = 1, Plugin };

  /** Precedes a run of elements. */
  struct Announcement {
    uint32_t magic = kWireMagic;
    Way way = Way::Socket;
    uint64_t bytes = 0;
  };

  /** The run of one direction. */
  struct Run {
    Announcement announcement;
    size_t announced = 0;  // bytes of the announcement that have passed the socket
    size_t left = 0;       // bytes of elements

    bool isAnnounced() const { return announced == sizeof announcement; }
    bool usesPlugin() const { return left > 0 && isAnnounced() && announcement.way == Way::Plugin; }
  };

  long sendByPlugin(Fifo<Outgoing>& queue);
  template <class Body>
  long byPlugin(Body&& body);
  void advance(Fifo<Outgoing>& queue, size_t sent);

  std::unique_ptr<NetConnection> connection_;
  Run out_;
  Run in_;
  size_t frameBytes_ = 0;  // received bytes of the next frame
  uint32_t nextIn_ = kFirstFrame;  // numbers of frames
  uint32_t nextOut_ = kFirstFrame;
  double lastMoved_ = 0;  // by the plugin
};

}  // namespace host

// channel.cpp: what all channels share, and the choice of one.

#include "transport/channel.h"

#include <sys/socket.h>

#include "transport/memorychannel.h"
#include "transport/socketchannel.h"

namespace host {

void Channel::endSending() {
  if (socket_.valid()) shutdown(socket_.get(), SHUT_WR);
}

std::unique_ptr<Channel> openChannel(Fd socket, const Fd& memory, size_t ringBytes, bool first) {
  if (!memory.valid()) return std::make_unique<SocketChannel>(std::move(socket));
  return std::make_unique<MemoryChannel>(std::move(socket), memory, ringBytes, first);
}

}  // namespace host

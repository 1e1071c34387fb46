// netconnection.cpp: from the handles of two listeners to pieces in registered buffers.

#include "transport/netconnection.h"

#include <stdlib.h>
#include <string.h>

#include <algorithm>

#include "base/error.h"
#include "transport/socket.h"

namespace host {
namespace {

constexpr size_t kPage = 4096;

template <class Message>
std::string bytesOf(const Message& message) {
  return {reinterpret_cast<const char*>(&message), sizeof message};
}

}  // namespace

NetConnection::NetConnection(std::shared_ptr<Network> network, const Digest& secret, int own, int peer, int socket)
    : network_(std::move(network)), secret_(secret), own_(own), peer_(peer), socket_(socket) {
  memory_ = static_cast<char*>(aligned_alloc(kPage, kBytes));
  if (memory_ == nullptr) throw std::bad_alloc();
}

NetConnection::~NetConnection() {
  if (listener_ != nullptr) network_->closeListener(listener_);
  // While a plugin may still write to the buffers, they must not be freed.
  bool busy = hasRequests(out_) | hasRequests(in_);
  bool ended = true;
  for (Direction* direction : {&out_, &in_}) {
    if (direction->connection == nullptr) continue;
    if (direction->registered) ended &= network_->deregister(direction->connection, direction->registration);
    ended &= direction == &out_ ? network_->closeSending(direction->connection) : network_->closeReceiving(direction->connection);
  }
  if (ended || !busy) free(memory_);
}

bool NetConnection::hasRequests(Direction& direction) noexcept {
  try {
    for (size_t i = 0; i < direction.posted; i++) {
      Buffer& buffer = direction.at(i);
      size_t size;
      if (buffer.request != nullptr && !network_->test(buffer.request, size)) return true;
      buffer.request = nullptr;
    }
    return false;
  } catch (const std::exception&) {
    return true;
  }
}

void NetConnection::greet() {
  mine_.piece = static_cast<uint32_t>(std::min(kPiece, network_->maxMessage()));
  randomBytes(mine_.challenge.data(), mine_.challenge.size());
  listener_ = network_->listen(mine_.handle);
  if (sendSome(socket_, &mine_, sizeof mine_) != sizeof mine_) fail(ncclRemoteError, "rank %d went away during the init of the communicator", peer_);
}

bool NetConnection::isGreeted() {
  if (received_ == sizeof theirs_) return true;
  long got = receiveSome(socket_, reinterpret_cast<char*>(&theirs_) + received_, sizeof theirs_ - received_);
  if (got < 0) fail(ncclRemoteError, "rank %d went away during the init of the communicator", peer_);
  received_ += static_cast<size_t>(got);
  if (received_ < sizeof theirs_) return false;
  handle_ = theirs_.handle;
  piece_ = std::min(mine_.piece, theirs_.piece);
  if (piece_ == 0 || piece_ > kPiece) fail(ncclInternalError, "rank %d sent something unintelligible", peer_);
  return true;
}

/** The proof of the sender, by a connection that the plugin made. */
Digest NetConnection::tag(int from, int to, const Hello& ofSender, const Hello& ofReceiver) const {
  return hmac(secret_, {"plugin", bytesOf(from), bytesOf(to), bytesOf(ofSender), bytesOf(ofReceiver)});
}

void NetConnection::prepare(Direction& direction, char* memory) {
  direction.registration = network_->registerMemory(direction.connection, memory, kBuffers * kPiece);
  direction.registered = true;
  for (Buffer& buffer : direction.buffers) {
    buffer.data = memory;
    memory += kPiece;
  }
}

bool NetConnection::connect() {
  if (listener_ == nullptr && in_.connection == nullptr) greet();
  if (!isGreeted()) return false;
  if (out_.connection == nullptr) out_.connection = network_->connect(handle_);
  if (in_.connection == nullptr) {
    in_.connection = network_->accept(listener_);
    if (in_.connection != nullptr) network_->closeListener(std::exchange(listener_, nullptr));
  }
  if (out_.connection == nullptr || in_.connection == nullptr) return false;
  if (!proves_) {
    prepare(out_, memory_);
    prepare(in_, memory_ + kBuffers * kPiece);
    Digest own = tag(own_, peer_, mine_, theirs_);
    send(own.data(), own.size());
    expect(own.size());
    proves_ = true;
  }
  proofSent_ |= sent() > 0;
  proofBytes_ += receive(proof_.data() + proofBytes_, proof_.size() - proofBytes_);
  if (proofBytes_ == proof_.size() && !areEqual(proof_, tag(peer_, own_, theirs_, mine_))) {
    fail(ncclRemoteError, "network plugin '%s' connected rank %d with a process that is not rank %d", network().c_str(), own_, peer_);
  }
  return proofSent_ && proofBytes_ == proof_.size();
}

bool NetConnection::completeFirst(Direction& direction) {
  Buffer& buffer = direction.at(0);
  if (buffer.request == nullptr) return true;
  size_t size;
  if (!network_->test(buffer.request, size)) return false;
  buffer.request = nullptr;
  if (&direction == &in_ && size != buffer.size) {
    fail(
        ncclSystemError, "network plugin '%s' received %zu bytes of rank %d, which sent %zu", network().c_str(), size, peer_, buffer.size);
  }
  return true;
}

size_t NetConnection::send(const char* data, size_t size) {
  if (out_.isFull()) return 0;
  Buffer& buffer = out_.at(out_.used++);
  buffer.size = std::min(size, piece_);
  memcpy(buffer.data, data, buffer.size);
  inFlight_ += buffer.size;
  postSends();
  return buffer.size;
}

void NetConnection::postSends() {
  while (out_.posted < out_.used) {
    Buffer& buffer = out_.at(out_.posted);
    buffer.request = network_->send(out_.connection, buffer.data, buffer.size, out_.registration);
    if (buffer.request == nullptr) return;
    out_.posted++;
  }
}

size_t NetConnection::sent() {
  postSends();
  size_t bytes = 0;
  while (out_.posted > 0 && completeFirst(out_)) {
    bytes += out_.at(0).size;
    out_.removeFirst();
  }
  inFlight_ -= bytes;
  return bytes;
}

void NetConnection::postReceives() {
  while (expected_ > 0 && !in_.isFull()) {
    Buffer& buffer = in_.at(in_.used);
    buffer.size = std::min(expected_, piece_);
    buffer.read = 0;
    buffer.request = network_->receive(in_.connection, buffer.data, buffer.size, in_.registration);
    if (buffer.request == nullptr) return;
    in_.used++;
    in_.posted++;
    expected_ -= buffer.size;
  }
}

size_t NetConnection::receive(void* data, size_t size) {
  postReceives();
  size_t total = 0;
  while (total < size && in_.posted > 0 && completeFirst(in_)) {
    Buffer& buffer = in_.at(0);
    size_t step = std::min(size - total, buffer.size - buffer.read);
    memcpy(static_cast<char*>(data) + total, buffer.data + buffer.read, step);
    total += step;
    buffer.read += step;
    if (buffer.read < buffer.size) break;
    in_.removeFirst();
    postReceives();
  }
  return total;
}

}  // namespace host

// proof.cpp: the messages of proof.h.

#include "transport/proof.h"

#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/processors.h"

namespace host {

namespace {

/** Bytes of a greeting up to the end of its library. */
constexpr size_t kLibraryBytes = offsetof(Greeting, challenge);

std::string bytesOf(const Greeting& greeting) { return {reinterpret_cast<const char*>(&greeting), sizeof greeting}; }

}  // namespace

Greeting Greeting::make(int rank, int ranks) {
  Greeting greeting;
  greeting.rank = rank;
  greeting.ranks = ranks;
  greeting.pid = currentProcess();
  if (encryptionKey()) greeting.kind = kWithKey;
  static_assert(sizeof kLibrary <= sizeof greeting.library, "fits a greeting");
  memcpy(greeting.library, kLibrary, sizeof kLibrary);
  randomBytes(greeting.challenge.data(), greeting.challenge.size());
  return greeting;
}

std::string describeLibrary(uint32_t protocol, const char (&library)[24]) {
  std::string name(library, strnlen(library, sizeof library));
  return format("nccl4j %s (protocol %u)", printable(name).c_str(), protocol);
}

Proof::Proof(const Digest& secret, std::string name, Link link, const Greeting& own)
    : secret_(secret), name_(std::move(name)), link_(link), own_(own) {}

/** True when the whole message is there. It may arrive in pieces. */
bool Proof::receive(const Fd& socket, void* message, size_t size) {
  long got = receiveSome(socket.get(), static_cast<char*>(message) + received_, size - received_);
  if (got < 0) ended_ = true;
  received_ += static_cast<size_t>(std::max(0L, got));
  return received_ == size;
}

/** False until the greeting tells the library. */
bool Proof::isOtherLibrary() const {
  const Greeting& other = theirs_.greeting;
  return received_ >= kLibraryBytes && (other.protocol != own_.protocol || memcmp(other.library, own_.library, sizeof other.library) != 0);
}

Digest Proof::tag(const char* label, const Greeting& connected, const Greeting& accepted) const {
  return hmac(secret_, {label, name_, bytesOf(connected), bytesOf(accepted)});
}

/** Begins or continues what follows the proofs. */
Proof::Step Proof::encrypt(const Fd& socket, Tls::Side side) {
  known_ = true;
  std::optional<Digest> key = encryptionKey();
  if (link_ != Link::Any && theirs_.greeting.kind != own_.kind) return Step::OtherKey;
  if (link_ != Link::Network || !key) return Step::Proven;
  if (!tls_) tls_ = std::make_shared<Tls>(side, hmac(*key, {"nccl4j TLS", std::string(secret_.data(), secret_.size())}));
  switch (tls_->handshake(socket.get())) {
    case Tls::Step::Waiting: return Step::Waiting;
    case Tls::Step::Ended: return Step::Refused;
    case Tls::Step::Refused: return Step::OtherKey;
    case Tls::Step::Done: break;
  }
  host::encrypt(socket, std::move(tls_));
  return Step::Proven;
}

Proof::Step Proof::connect(const Fd& socket) {
  if (known_) return encrypt(socket, Tls::Side::Connects);
  if (!greeted_) {
    // The buffers of a new connection have space; one to another host may not stand yet.
    long sent = sendSome(socket.get(), &own_, sizeof own_);
    if (sent == 0) return Step::Waiting;
    if (sent != sizeof own_) return Step::Refused;
    greeted_ = true;
  }
  bool complete = receive(socket, &theirs_, sizeof theirs_);
  const Greeting& other = theirs_.greeting;
  if (other.magic == kWireMagic && isOtherLibrary()) return Step::OtherLibrary;
  if (!complete) return ended_ ? Step::Refused : Step::Waiting;
  if (!areEqual(theirs_.tag, tag("accept", own_, other))) return Step::Refused;
  Digest proof = tag("connect", own_, other);
  if (sendSome(socket.get(), proof.data(), proof.size()) != static_cast<long>(proof.size())) return Step::Refused;
  return encrypt(socket, Tls::Side::Connects);
}

Proof::Step Proof::accept(const Fd& socket) {
  if (known_) return encrypt(socket, Tls::Side::Accepts);
  Greeting& other = theirs_.greeting;
  if (!greeted_) {
    bool complete = receive(socket, &other, sizeof other);
    bool differs = isOtherLibrary();
    if (received_ >= sizeof other.magic && other.magic != kWireMagic) return Step::Refused;
    if (!complete && !differs) return ended_ ? Step::Refused : Step::Waiting;
    Answer answer;
    answer.greeting = own_;
    if (!differs) answer.tag = tag("accept", other, own_);
    if (sendSome(socket.get(), &answer, sizeof answer) != sizeof answer) return Step::Refused;
    if (differs) return Step::OtherLibrary;
    greeted_ = true;
    received_ = 0;
  }
  if (!receive(socket, tag_.data(), tag_.size())) return ended_ ? Step::Refused : Step::Waiting;
  return areEqual(tag_, tag("connect", other, own_)) ? encrypt(socket, Tls::Side::Accepts) : Step::Refused;
}

bool connectProven(const Digest& secret, const std::string& name, double seconds, Fd& out, const NetworkAddress* address) {
  double deadline = now() + seconds;
  Proof proof(secret, name, address != nullptr ? Link::Network : Link::Local);
  Fd socket;
  for (;;) {
    if (!socket.valid() && address != nullptr) socket = connectTo(*address);
    if (!socket.valid()) {
      Connect result = connectTo(name, socket);
      if (result == Connect::Refused) return false;
    }
    if (socket.valid()) {
      Proof::Step step = proof.connect(socket);
      if (step == Proof::Step::Proven) break;
      if (step != Proof::Step::Waiting) return false;
    }
    double left = deadline - now();
    if (left <= 0) return false;
    std::vector<pollfd> polled;
    if (socket.valid()) polled.push_back({socket.get(), proof.connectEvents(), 0});
    pollAll(polled, socket.valid() ? static_cast<int>(std::min(left, 1000.0) * 1000) + 1 : 1);
  }
  out = std::move(socket);
  return true;
}

}  // namespace host

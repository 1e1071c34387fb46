// proof.h: the begin of each connection between two processes.
//
// Every user of the machine can see the name of a socket, and the kernel shows all users outside of a user namespace as one:
// neither a name nor a user id admits a process. Both ends therefore prove that they know a secret, before they send or believe
// anything else: each sends a random challenge, and a hash of both challenges with the secret as key. The hashes of the two ends
// differ in a label, so that none can be sent back; they cover the name of the socket, so that none is valid for another one.
//
// A connection between hosts is encrypted after the proofs if this process has an encryption key: by TLS, whose key is a hash of that key
// and the secret.
//
// The first message also tells the protocol and the library, in a place that is the same in all versions: processes with different
// libraries tell each other so.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "transport/hash.h"
#include "transport/network.h"
#include "transport/socket.h"
#include "transport/wire.h"

namespace host {

/** The release of nccl4j that this library belongs to. */
constexpr char kLibrary[] = "0.1.0-SNAPSHOT";

/** Kinds of greetings: whether the process has an encryption key. */
constexpr uint32_t kWithoutKey = 1, kWithKey = 2;

/** First message of both ends. The fields before the challenge stay as they are in all protocols. */
struct Greeting {
  uint32_t magic = kWireMagic;
  uint32_t protocol = kWireVersion;
  uint32_t kind = kWithoutKey;
  int32_t rank = 0;  // of a rank that joins a server; with ranks and pid for an error message only
  int32_t ranks = 0;
  int32_t pid = 0;
  char library[24] = {};
  Digest challenge = {};

  /** A greeting of this process, with a new challenge. */
  static Greeting make(int rank = 0, int ranks = 0);
};
static_assert(sizeof(Greeting) == 80, "no padding in messages");

/** Names a library: "nccl4j 0.1.0 (protocol 15)". */
std::string describeLibrary(uint32_t protocol, const char (&library)[24]);

/** The processes that a connection joins. */
enum class Link {
  Any,      // of this host; both may have other encryption keys
  Local,    // of one host and one communicator: both have an encryption key, or none
  Network,  // of two hosts: encrypted if both have the same key
};

/** One end of a connection, until both ends have proven that they know the secret. */
class Proof {
 public:
  /** `name` is that of the socket of the end that accepts. */
  Proof(const Digest& secret, std::string name, Link link = Link::Local, const Greeting& own = Greeting::make());

  enum class Step {
    Waiting,       // for the other end
    Proven,
    Refused,       // the other end has ended, or does not know the secret
    OtherLibrary,  // that of greeting()
    OtherKey,      // the encryption keys of the processes differ, or one has none
  };

  /** Continues at the end that connected, or accepted, without waiting. Once proven, the socket is encrypted if it is to be. */
  Step connect(const Fd& socket);
  Step accept(const Fd& socket);

  /** The events to poll for at the end that connected. */
  short connectEvents() const { return greeted_ && !(tls_ && tls_->sends()) ? POLLIN : POLLIN | POLLOUT; }

  /** The greeting of the other end. Not proven to come from it if the library is another one. */
  const Greeting& greeting() const { return theirs_.greeting; }

 private:
  struct Answer {
    Greeting greeting;
    Digest tag = {};
  };

  bool receive(const Fd& socket, void* message, size_t size);
  bool isOtherLibrary() const;
  Digest tag(const char* label, const Greeting& connected, const Greeting& accepted) const;
  Step encrypt(const Fd& socket, Tls::Side side);

  Digest secret_;
  std::string name_;
  Link link_;
  Greeting own_;
  Answer theirs_;  // of an end that connected, the greeting only
  Digest tag_ = {};
  size_t received_ = 0;
  bool greeted_ = false;
  bool known_ = false;  // the other end knows the secret
  bool ended_ = false;
  std::shared_ptr<Tls> tls_;
};

/**
 * Connects and waits for the proofs, at most so many seconds; false if there is no other end that knows the secret. `address`: of a
 * listener with this name on another host.
 */
bool connectProven(
    const Digest& secret, const std::string& name, double seconds, Fd& out, const NetworkAddress* address = nullptr);

/** Number of connections from the network whose ends have not proven themselves, and the seconds that they have. */
constexpr size_t kMostStrangers = 256;
constexpr double kStrangerSeconds = 10;

/** Ends connections from the network without a proof: those whose time is over, and the oldest if they are too many. */
template <class Connection>
void dropStrangers(std::vector<std::unique_ptr<Connection>>& connections) {
  auto isStranger = [](const auto& one) { return one->fromNetwork && !one->proven; };
  size_t strangers = static_cast<size_t>(std::count_if(connections.begin(), connections.end(), isStranger));
  connections.erase(
      std::remove_if(
          connections.begin(), connections.end(),
          [&](const auto& one) {
            if (!isStranger(one) || (strangers <= kMostStrangers && now() < one->since + kStrangerSeconds)) return false;
            strangers--;
            return true;
          }),
      connections.end());
}

}  // namespace host

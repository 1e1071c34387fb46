// bootstrap.cpp: from the unique id to connections with all other ranks; the part of a rank.

#include "protocol/bootstrap.h"

#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/fork.h"
#include "base/settings.h"
#include "protocol/regroup.h"
#include "transport/memorychannel.h"
#include "transport/netconnection.h"
#include "transport/pluginchannel.h"

namespace host {
namespace {

// Added to a rank's own deadline, so that the server's error comes first: the server knows the missing ranks.
constexpr double kOwnMargin = 2;

/** Seconds to wait for a server that is to end. It answers at once unless its process is stopped. */
constexpr double kCancelSeconds = 1;

/** A connection of a higher rank. */
struct Arriving {
  Fd fd;
  Proof proof;
  const bool fromNetwork;
  const double since = now();
  bool proven = false;
  Fd memory;
  PairHello hello;
  size_t bytes = 0;

  Arriving(Fd socket, const Proof& proofOfRank, bool network)
      : fd(std::move(socket)), proof(proofOfRank), fromNetwork(network) {}
};

/** A connection to a lower rank. */
struct Reaching {
  int rank;
  PairKind kind;
  Fd fd;
  Proof proof;
};

/** A hash that is equal on all ranks. It does not reveal the secret. */
uint64_t hashOf(const Digest& secret) {
  Digest hash = hmac(secret, {"communicator"});
  uint64_t first;
  memcpy(&first, hash.data(), sizeof first);
  return first;
}

class Bootstrap {
 public:
  Bootstrap(Comm& comm, const ncclUniqueId& id, Members* members) : comm_(comm), members_(members) {
    memcpy(&id_, id.internal, sizeof id_);
    deadline_ = now() + initTimeout() + kOwnMargin;
  }

  void run() {
    if (id_.protocol != kWireVersion || memcmp(id_.library, kLibrary, sizeof kLibrary) != 0) failForOtherLibrary();
    randomBytes(ownName_, sizeof ownName_);
    listener_ = listenAt(socketName(ownName_));
    if (id_.address.valid()) {
      Interface interface = ownInterface();
      address_ = interface.address;
      networkListener_ = listenAt(interface, address_);
      status_ = comm_.ras.listen(interface);
    }
    std::optional<Failure> unusable;
    try {
      openNetwork();
    } catch (const Failure& failure) {
      unusable = failure;
    }
    joinServer(unusable.has_value());
    try {
      if (unusable) throw Failure(*unusable);
      std::string body = await(AnswerKind::Table);
      // All have joined: from here on the server knows of the end of each, which may end its old communicator as soon as it can go.
      members_ = nullptr;
      table_.resize(static_cast<size_t>(comm_.ranks));
      memcpy(table_.data(), body.data(), body.size());
      deadline_ = now() + initTimeout() + kOwnMargin;
      connectPairs();
      connectNetwork();
    } catch (const Failure& failure) {
      report(failure);
      throw;
    }
    Report connected;
    sendSome(server_.get(), &connected, sizeof connected);
    await(AnswerKind::Go);
  }

 private:
  /** Tells the server, and by it the other ranks, why this rank can't be connected. */
  void report(const Failure& failure) {
    Report report;
    std::string text = format("rank %d could not connect: %s", comm_.rank, failure.text().c_str());
    // The abort is no failure of the others.
    report.code = comm_.lifecycle.is(State::Aborted) ? ncclRemoteError : failure.code();
    memcpy(report.text, text.data(), std::min(text.size(), sizeof report.text - 1));
    sendSome(server_.get(), &report, sizeof report);
  }

  void checkMembers() {
    try {
      members_->check();
    } catch (const Failure&) {
      // What the server says comes first: others may have ended because of it.
      if (readServer()) return;
      throw;
    }
  }

  /** Tells the server, and with it the other ranks. */
  [[noreturn]] void failForOtherLibrary() {
    Greeting greeting = Greeting::make(comm_.rank, comm_.ranks);
    Fd server;
    if (connectTo(socketName(id_.name), server) == Connect::Done) sendSome(server.get(), &greeting, sizeof greeting);
    throw Failure(ncclInvalidUsage, describeOtherLibrary(greeting, id_));
  }

  /** The plugin for elements between hosts, if there is one. */
  void openNetwork() {
    if (!id_.address.valid()) return;
    network_ = Network::open(hashOf(id_.secret), comm_.rank);
    if (!network_ || !encryptionKey()) return;
    fail(
        ncclInvalidUsage,
        "rank %d has an encryption key, and the network plugin '%s' for elements between hosts, which would not be encrypted: unset "
        "NCCL_NET_PLUGIN and NCCL_NET, or the key",
        comm_.rank, network_->name().c_str());
  }

  void joinServer(bool fails) {
    Hello hello;
    hello.fails = fails;
    if (network_) network_->name().copy(hello.network, sizeof hello.network - 1);
    hello.rank = comm_.rank;
    hello.ranks = comm_.ranks;
    hello.pid = getpid();
    hello.process = processToken();
    hello.timeout = initTimeout();
    hello.processors = usableProcessors();
    memcpy(hello.listener, ownName_, kNonceBytes);
    hello.host = comm_.host;
    hello.address = address_;
    hello.status = status_;
    std::string name = nodeName();
    memcpy(hello.hostName, name.data(), std::min(name.size(), sizeof hello.hostName - 1));
    if (isAtServer()) {
      connectToServer();
    } else if (id_.address.valid()) {
      server_ = connectTo(id_.address);
    } else {
      fail(
          ncclInvalidUsage,
          "rank %d of %d is on another host, or in another network namespace, than process %d, whose unique id is for ranks of its "
          "own host: set NCCL_SOCKET_IFNAME in all processes, before ncclGetUniqueId",
          comm_.rank, comm_.ranks, static_cast<int>(id_.pid));
    }
    Proof proof(id_.secret, socketName(id_.name), isAtServer() ? Link::Local : Link::Network, Greeting::make(comm_.rank, comm_.ranks));
    Proof::Step step;
    while ((step = proof.connect(server_)) == Proof::Step::Waiting) {
      serverEvents_ = proof.connectEvents();
      waitFor({}, 1000);
    }
    serverEvents_ = POLLIN;
    if (step == Proof::Step::OtherKey) throw Failure(ncclInvalidUsage, describeOtherKey(Greeting::make(comm_.rank, comm_.ranks), id_, proof.greeting().kind));
    if (step != Proof::Step::Proven && !isAtServer()) {
      fail(
          ncclRemoteError,
          "rank %d of %d could not join at %s, where process %d made the unique id: it is gone, or all its ranks have connected "
          "already, or its init timeout is over, or the network does not permit the connection",
          comm_.rank, comm_.ranks, id_.address.text().c_str(), static_cast<int>(id_.pid));
    }
    if (step != Proof::Step::Proven) failForServer();
    sendSome(server_.get(), &hello, sizeof hello);
  }

  /** True if this rank is on the host of the server. */
  bool isAtServer() const { return id_.host == comm_.host; }

  void connectToServer() {
    for (;;) {
      Connect result = connectTo(socketName(id_.name), server_);
      if (result == Connect::Done) break;
      if (result == Connect::Refused) {
        fail(
            ncclRemoteError,
            "rank %d of %d found nobody behind the unique id: process %d, which made it, is gone or runs as another "
            "user, or all its ranks have connected already, or its init timeout is over",
            comm_.rank, comm_.ranks, static_cast<int>(id_.pid));
      }
      waitFor({}, 1);
    }
  }

  [[noreturn]] void failForServer() {
    fail(
        ncclRemoteError, "process %d, which made the unique id, went away during the init of rank %d of %d",
        static_cast<int>(id_.pid), comm_.rank, comm_.ranks);
  }

  /** Polls the given descriptors, the server and abort once; throws at the deadline and on abort. */
  void waitFor(std::vector<pollfd> polled, int milliseconds) {
    polled.push_back({comm_.wake.get(), POLLIN, 0});
    if (server_.valid()) polled.push_back({server_.get(), serverEvents_, 0});
    double left = deadline_ - now();
    if (left <= 0) {
      fail(
          ncclTimeout, "rank %d of %d got no answer from process %d, which made the unique id, within %.1f s",
          comm_.rank, comm_.ranks, static_cast<int>(id_.pid), initTimeout());
    }
    pollAll(polled, std::min(milliseconds, static_cast<int>(std::min(left, 1000.0) * 1000) + 1));
    if (comm_.lifecycle.is(State::Aborted)) {
      fail(ncclInternalError, "the init of rank %d was aborted by ncclCommAbort", comm_.rank);
    }
  }

  /** Reads messages of the server and throws its errors. Returns true when an answer is complete. */
  bool readServer() {
    for (;;) {
      char buffer[4096];
      size_t whole = answer_.size() < sizeof(Answer) ? sizeof(Answer) : sizeof(Answer) + header().bytes;
      size_t want = whole - answer_.size();
      if (want == 0) return true;
      long got = receiveSome(server_.get(), buffer, std::min(want, sizeof buffer));
      if (got == 0) return false;
      if (got < 0) failForServer();
      answer_.append(buffer, static_cast<size_t>(got));
      if (answer_.size() < sizeof(Answer)) continue;
      if (header().bytes != bodyBytes(header().kind)) failUnexpected();
      if (answer_.size() < sizeof(Answer) + header().bytes) continue;
      if (header().kind == AnswerKind::Error) {
        Report report;
        memcpy(&report, answer_.data() + sizeof(Answer), sizeof report);
        report.text[sizeof report.text - 1] = '\0';
        throw Failure(failureOfPeer(report.code), report.text);
      }
      return true;
    }
  }

  /** Number of bytes that follow the header of an answer. */
  size_t bodyBytes(AnswerKind kind) const {
    switch (kind) {
      case AnswerKind::Table: return static_cast<size_t>(comm_.ranks) * sizeof(TableEntry);
      case AnswerKind::Error: return sizeof(Report);
      default: return 0;
    }
  }

  [[noreturn]] static void failUnexpected() {
    fail(ncclInternalError, "the server of the unique id gave an unexpected answer");
  }

  Answer header() const {
    Answer answer;
    memcpy(&answer, answer_.data(), sizeof answer);
    return answer;
  }

  std::string await(AnswerKind kind) {
    while (!readServer()) {
      std::vector<pollfd> polled;
      if (members_ != nullptr) {
        checkMembers();
        members_->addDescriptors(polled);
      }
      waitFor(std::move(polled), 1000);
    }
    if (header().kind != kind) failUnexpected();
    std::string body = answer_.substr(sizeof(Answer));
    answer_.clear();
    return body;
  }

  /** Connects to all lower ranks and accepts all higher ranks, two streams each, and three between hosts. */
  void connectPairs() {
    comm_.hash = hashOf(id_.secret);
    comm_.peers.resize(static_cast<size_t>(comm_.ranks));
    std::map<uint64_t, int> ranksOfHost;
    for (const TableEntry& entry : table_) ranksOfHost[entry.host]++;
    std::vector<std::pair<int, PairKind>> lower;
    int missing = 0;
    for (int rank = 0; rank < comm_.ranks; rank++) {
      const TableEntry& entry = table_[static_cast<size_t>(rank)];
      peer(rank).rank = rank;
      peer(rank).pid = entry.pid;
      peer(rank).process = entry.process;
      peer(rank).onOtherHost = rank != comm_.rank && entry.host != comm_.host;
      peer(rank).host = nameOf(entry);
      peer(rank).hostNumber = entry.host;
      peer(rank).status = entry.status;
      comm_.crowded |= ranksOfHost[entry.host] > entry.processors;
      comm_.onSeveralHosts |= peer(rank).onOtherHost;
      if (rank == comm_.rank) continue;
      for (PairKind kind : {PairKind::Data, PairKind::Control, PairKind::Lane}) {
        if (kind == PairKind::Lane && !peer(rank).onOtherHost) continue;
        missing++;
        if (rank < comm_.rank) lower.emplace_back(rank, kind);
      }
    }
    size_t next = 0;
    for (;;) {
      bool busy = false;
      while (next < lower.size() && !busy) {
        if (reachLower(lower[next].first, lower[next].second)) {
          next++;
        } else {
          busy = true;
        }
      }
      missing -= connectLower() + acceptHigher();
      if (missing == 0) break;
      // The server reports the death of an awaited rank, and nothing else.
      if (readServer()) failUnexpected();
      dropStrangers(arriving_);
      std::vector<pollfd> polled{{listener_.get(), POLLIN, 0}};
      if (networkListener_.valid()) polled.push_back({networkListener_.get(), POLLIN, 0});
      for (const auto& arriving : arriving_) polled.push_back({arriving->fd.get(), POLLIN, 0});
      for (const Reaching& reaching : reaching_) polled.push_back({reaching.fd.get(), reaching.proof.connectEvents(), 0});
      waitFor(std::move(polled), busy ? 1 : 1000);
    }
    arriving_.clear();
    listener_.reset();
    networkListener_.reset();
  }

  /** Connects to the ranks of other hosts by the plugin. */
  void connectNetwork() {
    if (!network_) return;
    std::vector<std::pair<Peer*, std::unique_ptr<NetConnection>>> connections;
    for (Peer& peer : comm_.peers) {
      if (!peer.onOtherHost) continue;
      connections.emplace_back(
          &peer, std::make_unique<NetConnection>(network_, id_.secret, comm_.rank, peer.rank, peer.data->descriptor()));
    }
    while (!connections.empty()) {
      for (auto& [peer, connection] : connections) {
        if (!connection->connect()) continue;
        peer->data = std::make_unique<PluginChannel>(peer->data->takeSocket(), std::move(connection));
        comm_.ringBytes += NetConnection::kBytes;
      }
      connections.erase(
          std::remove_if(connections.begin(), connections.end(), [](const auto& one) { return one.second == nullptr; }),
          connections.end());
      if (readServer()) failUnexpected();
      // A plugin has no descriptor to poll.
      if (!connections.empty()) waitFor({}, 1);
    }
  }

  static std::string nameOf(const TableEntry& entry) {
    std::string name(entry.hostName, strnlen(entry.hostName, sizeof entry.hostName));
    for (char& c : name) {
      if (c <= ' ' || c > '~') c = '?';
    }
    return name;
  }

  /** Begins a connection; false if the caller must try again. */
  bool reachLower(int rank, PairKind kind) {
    const TableEntry& entry = table_[static_cast<size_t>(rank)];
    std::string name = socketName(entry.listener);
    Fd socket;
    Connect result = Connect::Done;
    if (peer(rank).onOtherHost) {
      if (!entry.address.valid() || entry.address.family != id_.address.family) {
        fail(
            ncclSystemError, "rank %d listens at %s, but the unique id was made at %s: set NCCL_SOCKET_FAMILY", rank,
            entry.address.text().c_str(), id_.address.text().c_str());
      }
      socket = connectTo(entry.address);
    } else {
      result = connectTo(name, socket);
    }
    if (result == Connect::TryAgain) return false;
    if (result == Connect::Refused) failForRank(rank);
    reaching_.push_back({rank, kind, std::move(socket), Proof(id_.secret, name, peer(rank).onOtherHost ? Link::Network : Link::Local)});
    return true;
  }

  [[noreturn]] void failForRank(int rank) {
    fail(
        ncclRemoteError, "rank %d (pid %d%s) went away during the init of the communicator", rank,
        static_cast<int>(peer(rank).pid), peer(rank).onOtherHost ? (" at " + addressOf(rank)).c_str() : "");
  }

  std::string addressOf(int rank) const { return table_[static_cast<size_t>(rank)].address.text(); }

  /** Continues the connections to lower ranks; returns the number of those that are complete now. */
  int connectLower() {
    int complete = 0;
    for (Reaching& reaching : reaching_) {
      Proof::Step step = reaching.proof.connect(reaching.fd);
      if (step == Proof::Step::Waiting) continue;
      if (step == Proof::Step::OtherKey) {
        fail(ncclInvalidUsage, "ranks %d and %d have set different keys by ncclSetEncryption", reaching.rank, comm_.rank);
      }
      if (step != Proof::Step::Proven) failForRank(reaching.rank);
      finish(reaching);
      complete++;
    }
    reaching_.erase(
        std::remove_if(reaching_.begin(), reaching_.end(), [](const Reaching& one) { return !one.fd.valid(); }),
        reaching_.end());
    return complete;
  }

  void finish(Reaching& reaching) {
    PairHello hello;
    hello.from = comm_.rank;
    hello.to = reaching.rank;
    hello.kind = reaching.kind;
    int socket = reaching.fd.get();
    if (reaching.kind != PairKind::Data) {
      sendSome(socket, &hello, sizeof hello);
      keep(reaching.rank, reaching.kind, std::move(reaching.fd));
      return;
    }
    bool shares = comm_.sharesMemory && !peer(reaching.rank).onOtherHost;
    Fd memory = shares ? MemoryChannel::newMemory(MemoryChannel::ringBytes(comm_.ranks)) : Fd();
    hello.shared = memory.valid();
    // The system may refuse to pass a descriptor while too many are in transit.
    if (memory.valid() && sendWithDescriptor(socket, &hello, sizeof hello, memory.get()) <= 0) {
      memory.reset();
      hello.shared = 0;
    }
    if (!memory.valid()) sendSome(socket, &hello, sizeof hello);
    openData(reaching.rank, std::move(reaching.fd), memory, true);
  }

  /** Takes a connection that has no elements of collectives or messages. */
  void keep(int rank, PairKind kind, Fd socket) {
    if (kind == PairKind::Control) {
      peer(rank).control.fd = std::move(socket);
    } else {
      peer(rank).puts.ofPeer = duplicate(socket);
      peer(rank).puts.fd = std::move(socket);
    }
  }

  void openData(int rank, Fd socket, const Fd& memory, bool connected) {
    // Fixed sizes would end the system's own choice for TCP.
    if (!memory.valid() && !peer(rank).onOtherHost) enlargeBuffers(socket);
    size_t bytes = MemoryChannel::ringBytes(comm_.ranks);
    peer(rank).data = openChannel(std::move(socket), memory, bytes, connected);
    if (!memory.valid()) return;
    comm_.ringBytes += bytes;
    if (comm_.singleCopy) peer(rank).data->permitCopies(peer(rank).process == processToken());
  }

  int acceptHigher() {
    Fd fd;
    for (int i = 0; i < kAcceptTurn && acceptFrom(listener_, fd); i++) {
      if (!fd.valid()) continue;
      arriving_.push_back(std::make_unique<Arriving>(std::move(fd), Proof(id_.secret, socketName(ownName_)), false));
    }
    for (int i = 0; networkListener_.valid() && i < kAcceptTurn && acceptFromNetwork(networkListener_, fd); i++) {
      if (!fd.valid()) continue;
      arriving_.push_back(std::make_unique<Arriving>(std::move(fd), Proof(id_.secret, socketName(ownName_), Link::Network), true));
    }
    int complete = 0;
    for (auto& arriving : arriving_) {
      if (!arriving->proven) {
        Proof::Step step = arriving->proof.accept(arriving->fd);
        if (step == Proof::Step::Waiting) continue;
        if (step != Proof::Step::Proven) {
          arriving.reset();
          continue;
        }
        arriving->proven = true;
      }
      char* into = reinterpret_cast<char*>(&arriving->hello) + arriving->bytes;
      long got = receiveWithDescriptor(
          arriving->fd.get(), into, sizeof arriving->hello - arriving->bytes, arriving->memory);
      if (got == 0) continue;
      if (got > 0) arriving->bytes += static_cast<size_t>(got);
      if (got > 0 && arriving->bytes < sizeof arriving->hello) continue;
      const PairHello& hello = arriving->hello;
      bool isOfPair = got > 0 && hello.to == comm_.rank && hello.from > comm_.rank && hello.from < comm_.ranks;
      if (isOfPair && peer(hello.from).onOtherHost == arriving->fromNetwork) {
        Peer& from = peer(hello.from);
        bool isNew = (hello.kind == PairKind::Control && !from.control.fd.valid()) ||
                     (hello.kind == PairKind::Lane && from.onOtherHost && !from.puts.fd.valid());
        if (isNew) {
          keep(hello.from, hello.kind, std::move(arriving->fd));
          complete++;
        } else if (hello.kind == PairKind::Data && !from.data->valid()) {
          if (hello.shared && !arriving->memory.valid()) {
            fail(
                ncclSystemError, "rank %d could not take the shared memory of rank %d: too many open files", comm_.rank,
                hello.from);
          }
          openData(hello.from, std::move(arriving->fd), arriving->memory, false);
          complete++;
        }
      }
      arriving.reset();
    }
    arriving_.erase(std::remove(arriving_.begin(), arriving_.end(), nullptr), arriving_.end());
    return complete;
  }

  Peer& peer(int rank) { return comm_.peers[static_cast<size_t>(rank)]; }

  Comm& comm_;
  Members* members_;  // NULL: the server knows all that join
  UniqueIdLayout id_;
  double deadline_;
  Fd listener_;
  Fd networkListener_;  // invalid if the id has no address
  NetworkAddress address_;  // of networkListener_
  std::shared_ptr<Network> network_;  // NULL: sockets
  NetworkAddress status_;
  Fd server_;
  short serverEvents_ = POLLIN;
  std::string answer_;
  std::vector<TableEntry> table_;
  char ownName_[kNonceBytes];  // of the listener
  std::vector<Reaching> reaching_;
  std::vector<std::unique_ptr<Arriving>> arriving_;
};

}  // namespace

double initTimeout() { return initTimeoutSetting.value(); }

std::string socketName(const char* bytes, const char* prefix) {
  std::string name = prefix;
  for (size_t i = 0; i < kNonceBytes; i++) name += format("%02x", static_cast<unsigned char>(bytes[i]));
  return name;
}

std::string describeOtherLibrary(const Greeting& rank, const UniqueIdLayout& id) {
  return format(
      "rank %d of %d (pid %d) uses %s, but process %d made the unique id with %s: all ranks must use the same library",
      rank.rank, rank.ranks, rank.pid, describeLibrary(rank.protocol, rank.library).c_str(), id.pid,
      describeLibrary(id.protocol, id.library).c_str());
}

std::string describeOtherKey(const Greeting& rank, const UniqueIdLayout& id, uint32_t kindOfId) {
  auto keyOf = [](uint32_t kind) { return kind == kWithoutKey ? "no key" : "a key"; };
  bool both = rank.kind == kindOfId;
  return format(
      "rank %d of %d (pid %d) has %s for ncclSetEncryption, and process %d, which made the unique id, has %s: all ranks must set the same",
      rank.rank, rank.ranks, rank.pid, keyOf(rank.kind), id.pid, both ? "another one" : keyOf(kindOfId));
}

UniqueIdLayout UniqueIdLayout::make() {
  UniqueIdLayout layout{};
  memcpy(layout.magic, "nccl4jH1", sizeof layout.magic);
  randomBytes(layout.secret.data(), layout.secret.size());
  Digest name = hmac(layout.secret, {"name"});
  memcpy(layout.name, name.data(), sizeof layout.name);
  layout.pid = currentProcess();
  layout.protocol = kWireVersion;
  memcpy(layout.library, kLibrary, sizeof kLibrary);
  layout.host = hostNumber();
  return layout;
}

void checkUniqueId(const ncclUniqueId& id, const char* call) {
  if (memcmp(id.internal, "nccl4jH1", 8) != 0) {
    fail(
        ncclInvalidArgument,
        "%s : commId was not made by ncclGetUniqueId of the host engine (all ranks must use the same engine)", call);
  }
}

void cancelUniqueId(const ncclUniqueId& id) noexcept {
  UniqueIdLayout layout;
  memcpy(&layout, id.internal, sizeof layout);
  Hello hello;
  hello.kind = HelloKind::Cancel;
  try {
    Fd server;
    bool isOther = layout.host != hostNumber() && layout.address.valid();
    if (!connectProven(layout.secret, socketName(layout.name), kCancelSeconds, server, isOther ? &layout.address : nullptr)) return;
    sendSome(server.get(), &hello, sizeof hello);
  } catch (const std::exception&) {
    // The server then ends later, at its deadline.
  }
}

std::mutex& lockOfToken() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}

const uint64_t& processToken() {
  static pid_t owner = 0;
  static uint64_t token = 0;
  std::lock_guard<std::mutex> lock(lockOfToken());
  if (owner != getpid()) {
    randomBytes(&token, sizeof token);
    owner = getpid();
  }
  return token;
}

void connectRanks(Comm& comm, const ncclUniqueId& id, Members* members) {
  Bootstrap(comm, id, members).run();
  comm.ras.begin(comm);
}

}  // namespace host

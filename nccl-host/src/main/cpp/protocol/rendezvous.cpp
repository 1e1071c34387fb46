// rendezvous.cpp: the server behind a unique id; bootstrap.h describes its role.

#include <errno.h>
#include <string.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/thread.h"
#include "protocol/bootstrap.h"

namespace host {
namespace {

// Lifetime of an unused id: programs may take long to distribute it to the ranks.
constexpr double kUnusedSeconds = 3600;

/** Milliseconds between attempts after the system refused something. */
constexpr int kPauseMillis = 100;

struct Joined {
  Fd fd;
  Proof proof;
  bool proven = false;
  const bool fromNetwork;
  const double since = now();
  Hello hello;
  size_t helloBytes = 0;
  Report report;
  size_t reportBytes = 0;
  bool ended = false;
  std::string out;  // not yet accepted by the socket

  Joined(Fd socket, const UniqueIdLayout& id, bool network)
      : fd(std::move(socket)), proof(id.secret, socketName(id.name), network ? Link::Network : Link::Local), fromNetwork(network) {}
  bool hasJoined() const { return helloBytes == sizeof hello; }
  bool connected() const { return reportBytes == sizeof report; }
};

class Server {
 public:
  Server(Fd listener, Fd networkListener, const UniqueIdLayout& id)
      : listener_(std::move(listener)),
        networkListener_(std::move(networkListener)),
        id_(id),
        deadline_(now() + kUnusedSeconds) {}

  /** Runs, also without descriptors or memory for ranks that want to join: the others are told then. */
  void serve() {
    while (!finished_) {
      try {
        run();
      } catch (const std::exception&) {
        Failure failure = failureInFlight();
        broken(
            failure.code(), format("process %d, which made the unique id: %s", static_cast<int>(id_.pid), failure.text().c_str()));
        flush();
        // From now on there is at least one descriptor for a rank that is told.
        spare_.reset();
        poll(nullptr, 0, kPauseMillis);
      }
    }
    flush();
  }

 private:
  void run() {
    while (!finished_) {
      std::vector<pollfd> polled;
      polled.push_back({listener_.get(), POLLIN, 0});
      if (networkListener_.valid()) polled.push_back({networkListener_.get(), POLLIN, 0});
      dropStrangers(connections_);
      for (const auto& rank : connections_) {
        polled.push_back({rank->fd.get(), static_cast<short>(POLLIN | (rank->out.empty() ? 0 : POLLOUT)), 0});
      }
      double left = deadline_ - now();
      if (left <= 0) {
        expire();
        finished_ = true;
        return;
      }
      pollAll(polled, static_cast<int>(std::min(left, 1000.0) * 1000) + 1);
      for (size_t i = 0; i < connections_.size() && !finished_; i++) receive(*connections_[i]);
      flush();
      connections_.erase(
          std::remove_if(connections_.begin(), connections_.end(), [](const auto& c) { return c->ended; }),
          connections_.end());
      // The connections that ended have given back their descriptors.
      acceptAll();
    }
  }

  void acceptAll() {
    Fd fd;
    for (int i = 0; i < kAcceptTurn && acceptFrom(listener_, fd); i++) {
      if (!fd.valid()) continue;
      connections_.push_back(std::make_unique<Joined>(std::move(fd), id_, false));
    }
    if (!networkListener_.valid()) return;
    for (int i = 0; i < kAcceptTurn && acceptFromNetwork(networkListener_, fd); i++) {
      if (fd.valid()) connections_.push_back(std::make_unique<Joined>(std::move(fd), id_, true));
    }
  }

  void prove(Joined& from) {
    switch (from.proof.accept(from.fd)) {
      case Proof::Step::Waiting: break;
      case Proof::Step::Proven: from.proven = true; break;
      case Proof::Step::Refused: from.ended = true; break;
      case Proof::Step::OtherLibrary: refuse(from, describeOtherLibrary(from.proof.greeting(), id_)); break;
      case Proof::Step::OtherKey: refuse(from, describeOtherKey(from.proof.greeting(), id_, Greeting::make().kind)); break;
    }
  }

  /** For a rank that knows why. */
  void refuse(Joined& from, const std::string& why) {
    const Greeting& greeting = from.proof.greeting();
    from.ended = true;
    came_++;
    if (greeting.ranks > 0) expect(greeting.ranks);
    deadline_ = std::min(deadline_, now() + initTimeout());
    broken(ncclInvalidUsage, why);
    closeWhenAllKnow();
  }

  void receive(Joined& from) {
    if (!from.proven) prove(from);
    while (from.proven && !from.ended && !finished_) {
      bool hello = !from.hasJoined();
      char* into = hello ? reinterpret_cast<char*>(&from.hello) : reinterpret_cast<char*>(&from.report);
      size_t& have = hello ? from.helloBytes : from.reportBytes;
      size_t size = hello ? sizeof from.hello : sizeof from.report;
      if (have == size) {
        // Only the end of the connection is expected.
        char byte;
        if (receiveSome(from.fd.get(), &byte, 1) == 0) return;
        lost(from);
        return;
      }
      long got = receiveSome(from.fd.get(), into + have, size - have);
      if (got == 0) return;
      if (got < 0) {
        lost(from);
        return;
      }
      have += static_cast<size_t>(got);
      if (have < size) continue;
      if (hello) {
        join(from);
      } else {
        report(from);
      }
    }
  }

  void lost(Joined& from) {
    from.ended = true;
    if (!from.hasJoined() || broken_) return;
    broken(
        ncclRemoteError, format(
                             "rank %d (pid %d) went away during the init of the communicator", from.hello.rank,
                             static_cast<int>(from.hello.pid)));
  }

  void join(Joined& from) {
    const Hello& hello = from.hello;
    bool joins = hello.kind == HelloKind::Join && hello.rank >= 0 && hello.rank < hello.ranks && hello.timeout > 0 &&
                 std::isfinite(hello.timeout);
    bool plausible = joins || hello.kind == HelloKind::Cancel;
    if (!plausible) {
      // Closes the connection without an answer.
      from.helloBytes = 0;
      from.ended = true;
      return;
    }
    if (hello.kind == HelloKind::Cancel) {
      finished_ = true;
      return;
    }
    came_++;
    if (expected_ == 0) {
      expected_ = hello.ranks;
      firstRank_ = hello.rank;
      firstJoin_ = now();
      deadline_ = firstJoin_ + hello.timeout;
    }
    deadline_ = std::min(deadline_, now() + hello.timeout);
    expect(hello.ranks);
    if (broken_) {
      sendError(from);
      closeWhenAllKnow();
      return;
    }
    if (hello.ranks != expected_) {
      broken(
          ncclInvalidUsage, format(
                                "rank %d was started with nranks %d while rank %d was started with nranks %d",
                                hello.rank, hello.ranks, firstRank_, expected_));
      return;
    }
    for (const auto& other : connections_) {
      if (other.get() == &from || !other->hasJoined() || other->hello.rank != hello.rank) continue;
      broken(
          ncclInvalidUsage, format(
                                "rank %d of %d was started twice: by pid %d and by pid %d", hello.rank, hello.ranks,
                                static_cast<int>(other->hello.pid), static_cast<int>(hello.pid)));
      return;
    }
    if (hello.fails) return;
    for (const auto& other : connections_) {
      if (other.get() == &from || !other->hasJoined() || other->hello.fails || sameNetwork(other->hello, hello)) continue;
      broken(
          ncclInvalidUsage, format(
                                "rank %d (%s) uses %s between hosts, and rank %d (%s) uses %s: NCCL_NET_PLUGIN and NCCL_NET must choose "
                                "one plugin for all ranks",
                                hello.rank, textOf(hello.hostName).c_str(), networkOf(hello).c_str(), other->hello.rank,
                                textOf(other->hello.hostName).c_str(), networkOf(other->hello).c_str()));
      return;
    }
    if (came_ == expected_) sendTable();
  }

  template <size_t size>
  static std::string textOf(const char (&text)[size]) {
    return printable(std::string(text, strnlen(text, size)));
  }
  static bool sameNetwork(const Hello& one, const Hello& other) {
    return strncmp(one.network, other.network, sizeof one.network) == 0;
  }
  static std::string networkOf(const Hello& hello) {
    return hello.network[0] == '\0' ? "the sockets of the engine" : "the network plugin '" + textOf(hello.network) + "'";
  }

  void expect(int ranks) { leastExpected_ = leastExpected_ == 0 ? ranks : std::min(leastExpected_, ranks); }

  void sendTable() {
    std::vector<TableEntry> table(static_cast<size_t>(expected_));
    for (const auto& rank : connections_) {
      if (!rank->hasJoined()) continue;
      TableEntry& entry = table[static_cast<size_t>(rank->hello.rank)];
      entry.pid = rank->hello.pid;
      entry.processors = rank->hello.processors;
      entry.process = rank->hello.process;
      memcpy(entry.listener, rank->hello.listener, kNonceBytes);
      entry.host = rank->hello.host;
      entry.address = rank->hello.address;
      entry.status = rank->hello.status;
      memcpy(entry.hostName, rank->hello.hostName, sizeof entry.hostName);
    }
    for (const auto& rank : connections_) {
      if (rank->hasJoined()) send(*rank, AnswerKind::Table, table.data(), table.size() * sizeof(TableEntry));
    }
    deadline_ = now() + deadline_ - firstJoin_;
    tableSent_ = true;
  }

  void report(Joined& from) {
    if (broken_) return;
    if (from.report.code != ncclSuccess) {
      from.report.text[sizeof from.report.text - 1] = '\0';
      broken(failureOfPeer(from.report.code), from.report.text);
      return;
    }
    for (const auto& rank : connections_) {
      if (rank->hasJoined() && !rank->connected()) return;
    }
    for (const auto& rank : connections_) {
      if (rank->hasJoined()) send(*rank, AnswerKind::Go, nullptr, 0);
    }
    finished_ = true;
  }

  void expire() {
    if (broken_ || expected_ == 0) return;
    std::set<int> there;
    for (const auto& rank : connections_) {
      if (rank->hasJoined() && (!tableSent_ || rank->connected())) there.insert(rank->hello.rank);
    }
    // expected_ may be a wrong, huge number: nothing here may grow with it.
    std::vector<int> missing;
    for (int rank = 0; rank < expected_ && missing.size() < kNamedRanks; rank++) {
      if (there.count(rank) == 0) missing.push_back(rank);
    }
    size_t count = static_cast<size_t>(expected_) - there.size();
    broken(
        ncclTimeout, format(
                         "waited %.1f s for %s of %d%s", now() - firstJoin_, rankList(missing, count).c_str(),
                         expected_, tableSent_ ? " to connect" : ""));
  }

  /** Sends an error to all ranks, also to later ones until as many ranks as expected have joined. */
  void broken(ncclResult_t code, const std::string& text) {
    if (broken_) return;
    broken_ = true;
    error_.code = code;
    memcpy(error_.text, text.data(), std::min(text.size(), sizeof error_.text - 1));
    for (const auto& rank : connections_) {
      if (rank->hasJoined()) sendError(*rank);
    }
    closeWhenAllKnow();
  }

  void closeWhenAllKnow() {
    if (came_ > 0 && came_ >= leastExpected_) finished_ = true;
  }

  void sendError(Joined& to) { send(to, AnswerKind::Error, &error_, sizeof error_); }

  void send(Joined& to, AnswerKind kind, const void* body, size_t bytes) {
    Answer answer;
    answer.kind = kind;
    answer.bytes = static_cast<uint32_t>(bytes);
    to.out.append(reinterpret_cast<const char*>(&answer), sizeof answer);
    to.out.append(static_cast<const char*>(body), bytes);
  }

  void flush() {
    for (const auto& rank : connections_) {
      if (rank->out.empty() || rank->ended) continue;
      long sent = sendSome(rank->fd.get(), rank->out.data(), rank->out.size());
      if (sent < 0) {
        rank->out.clear();
      } else {
        rank->out.erase(0, static_cast<size_t>(sent));
      }
    }
  }

  Fd listener_;
  Fd networkListener_;  // invalid if only ranks of this host may join
  Fd spare_ = newEvent();
  const UniqueIdLayout id_;
  double deadline_;
  double firstJoin_ = 0;
  int firstRank_ = 0;
  int expected_ = 0;
  int leastExpected_ = 0;
  int came_ = 0;
  bool tableSent_ = false;
  bool broken_ = false;
  bool finished_ = false;
  Report error_;
  std::vector<std::unique_ptr<Joined>> connections_;
};

}  // namespace

ncclUniqueId makeUniqueId(Reach reach) {
  UniqueIdLayout layout = UniqueIdLayout::make();
  // The first use: from now on the key cannot change.
  encryptionKey();
  Fd network;
  if (reach != Reach::OwnHost) {
    Interface interface = ownInterface();
    layout.address = interface.address;
    if (NetworkAddress fixed = commIdAddress(); reach == Reach::AtCommIdAddress && fixed.valid()) layout.address = fixed;
    network = listenAt(interface, layout.address);
  }
  auto server = std::make_shared<Server>(listenAt(socketName(layout.name)), std::move(network), layout);
  startThread("the thread that serves a unique id", [server] {
    try {
      server->serve();
    } catch (const std::exception&) {
      // The ranks see the end of their connections and report the loss of the server.
    }
  }).detach();
  ncclUniqueId id;
  memcpy(id.internal, &layout, sizeof layout);
  return id;
}

}  // namespace host

// ras.cpp: the thread of the status service, and its life.

#include "status/ras.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <algorithm>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "base/fork.h"
#include "base/processors.h"
#include "base/settings.h"
#include "base/thread.h"
#include "protocol/bootstrap.h"
#include "protocol/comm.h"
#include "status/rasclient.h"

namespace host {
namespace {

constexpr char kDefaultAddress[] = "localhost:28028";

/** Limits for connections at the same time. Clients leave room for the processes of the job. */
constexpr size_t kMaxConnections = 128;
constexpr size_t kMaxClients = 64;
/** Maximum number of clients to accept before those that are there are served. */
constexpr size_t kClientTurn = 16;

/** Limit for connections from the network without a proof. */
constexpr size_t kMaxStrangersOfService = 32;

/** Seconds without accepting connections after the system refused one. */
constexpr double kAcceptPause = 0.1;

const char* addressSetting() {
  const char* text = getenv("NCCL_RAS_ADDR");
  return text == nullptr ? "" : text;
}

/** Unlike in NCCL, off unless the environment has an address; see docs/host-engine.md. */
bool isEnabled() {
  return Setting{"NCCL_RAS_ENABLE", *addressSetting() == '\0' ? 0.0 : 1.0, Setting::Unit::Switch}.value() != 0;
}

/** The host and the port of "HOST:PORT" or "[IPV6]:PORT". */
std::pair<std::string, std::string> splitAddress(const std::string& address) {
  size_t colon = address.rfind(':');
  std::string port = colon == std::string::npos ? "" : address.substr(colon + 1);
  std::string host = address.substr(0, std::min(colon, address.size()));
  bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  double number = 0;
  if (host.empty() || (!bracketed && host.find(':') != std::string::npos) || port.empty() || port.size() > 5 ||
      port.find_first_not_of("0123456789") != std::string::npos || !parseNumber(port.c_str(), number) || number < 1 ||
      number > 65535) {
    fail(ncclInvalidArgument, "NCCL_RAS_ADDR must be HOST:PORT, with a port from 1 to 65535: '%s'", address.c_str());
  }
  return {host, port};
}

Fd listenerAt(const addrinfo& address) {
  Fd fd = Fd::opened([&] { return socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); });
  int on = 1;
  // All processes of the user listen at the same port.
  bool listens = fd.valid() && setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
                 setsockopt(fd.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) == 0 &&
                 bind(fd.get(), address.ai_addr, address.ai_addrlen) == 0 && listen(fd.get(), 4096) == 0;
  return listens ? std::move(fd) : Fd();
}

/** Listens for clients. Returns an invalid descriptor if the address is unusable, which is no error in NCCL either. */
Fd listenForClients(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) return Fd();
  std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, freeaddrinfo);
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
    Fd fd = listenerAt(*address);
    if (fd.valid()) return fd;
  }
  return Fd();
}

/** As acceptFrom, without a check of the user: clients may be on other machines. */
bool acceptClient(const Fd& listener, Fd& out) {
  out = Fd::opened([&] { return accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK); });
  if (out.valid() || errno == EINTR || errno == ECONNABORTED) return true;
  if (errno == EAGAIN) return false;
  failErrno("cannot accept a client");
}

RankStatus statusOf(const Comm& comm) {
  RankStatus status;
  status.hash = comm.hash;
  status.rank = comm.rank;
  status.ranks = comm.ranks;
  status.device = comm.device;
  State state = comm.lifecycle.state();
  if (state == State::Creating) {
    status.initState = comm.lifecycle.error() == ncclSuccess ? ncclInProgress : comm.lifecycle.error();
  } else {
    status.asyncError = comm.lifecycle.error();
  }
  status.finalized = state == State::Finalized;
  status.destroyed = state == State::Destroyed;
  status.aborted = state == State::Aborted;
  for (size_t call = 0; call < kCountedCalls; call++) status.launched[call] = comm.ras.launched(call);
  return status;
}

Member memberOf(const Peer& peer) {
  Member member;
  member.process = peer.process;
  member.pid = peer.pid;
  member.host = peer.hostNumber;
  member.address = peer.status;
  memcpy(member.hostName, peer.host.data(), std::min(peer.host.size(), sizeof member.hostName - 1));
  return member;
}

/** The service of a process. */
class Service {
 public:
  Service() = default;
  Service(const Service&) = delete;

  /** Returns false if the service is not enabled, or the system has no thread or socket for it. */
  bool add(const Comm& comm) {
    std::lock_guard<std::mutex> life(life_);
    if (!thread_.joinable() && !(isEnabled() && start())) return false;
    std::vector<Member> members;
    for (const Peer& peer : comm.peers) members.push_back(memberOf(peer));
    std::lock_guard<std::mutex> lock(mutex_);
    comms_[&comm] = std::move(members);
    return true;
  }

  /** Returns where processes of other hosts ask, until stopListening has been called as often. */
  NetworkAddress listen(const Interface& interface) {
    std::lock_guard<std::mutex> life(life_);
    if (!isEnabled()) return {};
    std::lock_guard<std::mutex> lock(mutex_);
    if (listening_ == 0) {
      NetworkAddress address = interface.address;
      try {
        network_ = listenAt(interface, address);
      } catch (const Failure&) {
        return {};
      }
      address_ = address;
      if (thread_.joinable()) raiseEvent(wake_);
    }
    listening_++;
    return address_;
  }

  void stopListening() {
    std::lock_guard<std::mutex> life(life_);
    std::lock_guard<std::mutex> lock(mutex_);
    if (--listening_ > 0) return;
    network_.reset();
    address_ = {};
    if (thread_.joinable()) raiseEvent(wake_);
  }

  void remove(const Comm& comm) {
    std::lock_guard<std::mutex> life(life_);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (comms_.erase(&comm) == 0 || !comms_.empty()) return;
    }
    stopping_ = true;
    raiseEvent(wake_);
    thread_.join();
    closeSockets();
  }

  void closeSockets() {
    wake_.reset();
    processes_.reset();
    clients_.reset();
  }

 private:
  bool start() {
    const char* set = addressSetting();
    auto [host, port] = splitAddress(*set == '\0' ? kDefaultAddress : set);
    clients_ = listenForClients(host, port);
    stopping_ = false;
    try {
      processes_ = listenAt(rasSocketName(processToken()));
      wake_ = newEvent();
      thread_ = startThread("the thread of the status service", [this] { run(); });
      return true;
    } catch (const std::exception&) {
      closeSockets();
      return false;
    }
  }

  std::vector<RankReport> ownRanks() {
    std::lock_guard<std::mutex> lock(mutex_);
    std::vector<RankReport> ranks;
    for (const auto& [comm, members] : comms_) ranks.push_back({statusOf(*comm), members});
    return ranks;
  }

  /** For a process of another host, which can't know which processes of this one have ended. */
  std::vector<RankReport> ranksForOthers() {
    std::vector<RankReport> ranks = ownRanks();
    for (RankReport& rank : ranks) {
      uint64_t own = rank.members[static_cast<size_t>(rank.status.rank)].host;
      for (Member& member : rank.members) member.ended = member.host == own && !isAlive(member.pid);
    }
    return ranks;
  }

  void run() noexcept {
    std::list<RasClient> clients;
    double acceptAgain = 0;
    while (!stopping_) {
      bool accepts = now() >= acceptAgain;
      try {
        awaitEvents(clients, accepts ? now() + 1000 : acceptAgain, accepts);
        if (accepts) accept(clients);
      } catch (const std::exception&) {
        // No descriptors or no memory.
        acceptAgain = now() + kAcceptPause;
        poll(nullptr, 0, static_cast<int>(kAcceptPause * 1000));
      }
      for (RasClient& client : clients) client.advance();
      clients.remove_if([](const RasClient& client) { return client.ended(); });
    }
  }

  void awaitEvents(const std::list<RasClient>& clients, double deadline, bool accepts) {
    std::vector<pollfd> polled{{wake_.get(), POLLIN, 0}};
    if (accepts && clients.size() < kMaxConnections) {
      polled.push_back({processes_.get(), POLLIN, 0});
      {
        std::lock_guard<std::mutex> lock(mutex_);
        if (network_.valid()) polled.push_back({network_.get(), POLLIN, 0});
      }
      if (clients_.valid() && hasRoom(clients)) polled.push_back({clients_.get(), POLLIN, 0});
    }
    for (const RasClient& client : clients) {
      client.addDescriptors(polled);
      deadline = std::min(deadline, client.deadline());
    }
    pollAll(polled, static_cast<int>(std::max(deadline - now(), 0.0) * 1000) + 1);
  }

  /** The client, if any, that has asked nothing and read nothing for the longest time. */
  template <class Clients>
  static auto longestSilent(Clients& clients) {
    auto first = std::min_element(clients.begin(), clients.end(), [](const RasClient& one, const RasClient& other) {
      return one.expires() < other.expires();
    });
    return first != clients.end() && first->expires() < HUGE_VAL ? first : clients.end();
  }

  /** A new client takes the place of a silent one. */
  static bool hasRoom(const std::list<RasClient>& clients) {
    return clients.size() < kMaxClients || longestSilent(clients) != clients.end();
  }

  void accept(std::list<RasClient>& clients) {
    Fd fd;
    while (clients.size() < kMaxConnections && acceptFrom(processes_, fd)) {
      if (fd.valid()) clients.emplace_back(std::move(fd), rasProof(processToken()), [this] { return encode(ranksForOthers()); });
    }
    for (size_t turn = 0; turn < kClientTurn && clients.size() < kMaxConnections && acceptOfOtherHost(fd); turn++) {
      if (!fd.valid()) continue;
      dropStranger(clients);
      clients.emplace_back(
          std::move(fd), rasProof(processToken(), Link::Network), [this] { return encode(ranksForOthers()); });
    }
    for (size_t turn = 0; turn < kClientTurn && clients.size() < kMaxConnections && clients_.valid() && hasRoom(clients) &&
                          acceptClient(clients_, fd);
         turn++) {
      if (clients.size() >= kMaxClients) clients.erase(longestSilent(clients));
      if (fd.valid()) clients.emplace_back(std::move(fd), [this] { return ownRanks(); });
    }
  }

  bool acceptOfOtherHost(Fd& fd) {
    std::lock_guard<std::mutex> lock(mutex_);
    return network_.valid() && acceptFromNetwork(network_, fd);
  }

  /** The oldest connection without a proof gives way if there are too many. */
  static void dropStranger(std::list<RasClient>& clients) {
    auto isStranger = [](const RasClient& client) { return client.proves(); };
    auto oldest = std::find_if(clients.begin(), clients.end(), isStranger);
    if (std::count_if(clients.begin(), clients.end(), isStranger) >= static_cast<long>(kMaxStrangersOfService)) clients.erase(oldest);
  }

  std::mutex life_;   // for the start and the end of the thread, which does not take it
  std::mutex mutex_;  // for comms_, network_ and address_
  std::map<const Comm*, std::vector<Member>> comms_;
  std::thread thread_;
  std::atomic<bool> stopping_{false};
  Fd wake_;
  Fd processes_;  // for the other processes of the job on this host
  Fd network_;    // for those on other hosts; invalid without a communicator between hosts
  NetworkAddress address_;  // of network_
  int listening_ = 0;
  Fd clients_;    // invalid if the address can't be used
};

}  // namespace

std::mutex& lockOfRas() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}

namespace {

/** The service of this process. Never destroyed: threads of the program may outlive static destructors. */
Service& service() {
  static Service* instance = nullptr;
  static pid_t owner = 0;
  std::lock_guard<std::mutex> lock(lockOfRas());
  if (owner != currentProcess()) {
    // A child of fork() has no thread of its parent's service, whose locks may be held for ever.
    instance = new Service;
    owner = currentProcess();
  }
  return *instance;
}

}  // namespace

NetworkAddress RasPresence::listen(const Interface& interface) {
  NetworkAddress address = service().listen(interface);
  listens_ = address.valid();
  return address;
}

void RasPresence::begin(const Comm& comm) {
  if (service().add(comm)) comm_ = &comm;
}

void RasPresence::end() {
  const Comm* comm = comm_.exchange(nullptr);
  if (comm != nullptr) service().remove(*comm);
  if (std::exchange(listens_, false)) service().stopListening();
}

}  // namespace host

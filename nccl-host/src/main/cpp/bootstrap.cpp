// bootstrap.cpp: from the unique id to connections with all other ranks; the part of a rank.

#include "bootstrap.h"

#include <string.h>
#include <unistd.h>

#include <algorithm>

#include "regroup.h"
#include "settings.h"

namespace host {
namespace {

// Added to a rank's own deadline, so that the server's error comes first: the server knows the missing ranks.
constexpr double kOwnMargin = 2;

/** First message on a connection between two ranks. */
struct PairHello {
  uint32_t magic = kWireMagic;
  int32_t from = 0;
  int32_t to = 0;
  uint32_t control = 0;
  uint32_t shared = 0;  // shared memory comes with this message
  char nonce[kNonceBytes] = {};
};

struct Arriving {
  Fd fd;
  Fd memory;
  PairHello hello;
  size_t bytes = 0;
};

/** A hash that is equal on all ranks. It does not reveal the nonce, which is a secret of the ranks. */
uint64_t hashOf(const char (&nonce)[kNonceBytes]) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (char byte : nonce) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3u;
  return hash;
}

class Bootstrap {
 public:
  Bootstrap(Comm& comm, const ncclUniqueId& id, Members* members) : comm_(comm), members_(members) {
    memcpy(&id_, id.internal, sizeof id_);
    deadline_ = now() + initTimeout() + kOwnMargin;
  }

  void run() {
    char listenerNonce[kNonceBytes];
    randomBytes(listenerNonce, sizeof listenerNonce);
    listener_ = listenAt(socketName(listenerNonce));
    joinServer(listenerNonce);
    std::string body = await(AnswerKind::Table);
    // All have joined: from here on the server knows of the end of each, which may end its old communicator as soon as it can go.
    members_ = nullptr;
    table_.resize(static_cast<size_t>(comm_.ranks));
    memcpy(table_.data(), body.data(), body.size());
    deadline_ = now() + initTimeout() + kOwnMargin;
    try {
      connectPairs();
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
    report.code = failure.code();
    memcpy(report.text, text.data(), std::min(text.size(), sizeof report.text - 1));
    sendSome(server_.get(), &report, sizeof report);
  }

  void checkMembers() {
    try {
      members_->check();
    } catch (const Failure& failure) {
      // What the server says comes first: others may have ended because of it.
      if (readServer()) return;
      report(failure);
      throw;
    }
  }

  void joinServer(const char* listenerNonce) {
    Hello hello;
    hello.rank = comm_.rank;
    hello.ranks = comm_.ranks;
    hello.pid = getpid();
    hello.process = processToken();
    hello.timeout = initTimeout();
    hello.processors = usableProcessors();
    memcpy(hello.nonce, id_.nonce, kNonceBytes);
    memcpy(hello.listener, listenerNonce, kNonceBytes);
    for (;;) {
      Connect result = connectTo(socketName(id_.nonce), server_);
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
    sendSome(server_.get(), &hello, sizeof hello);
  }

  /** Polls the given descriptors, the server and abort once; throws at the deadline and on abort. */
  void waitFor(std::vector<pollfd> polled, int milliseconds) {
    polled.push_back({comm_.wake.get(), POLLIN, 0});
    if (server_.valid()) polled.push_back({server_.get(), POLLIN, 0});
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
      if (got < 0) {
        fail(
            ncclRemoteError, "process %d, which made the unique id, went away during the init of rank %d of %d",
            static_cast<int>(id_.pid), comm_.rank, comm_.ranks);
      }
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

  /** Connects to all lower ranks and accepts all higher ranks, two streams each. */
  void connectPairs() {
    comm_.hash = hashOf(id_.nonce);
    comm_.peers.resize(static_cast<size_t>(comm_.ranks));
    for (int rank = 0; rank < comm_.ranks; rank++) {
      peer(rank).rank = rank;
      peer(rank).pid = table_[static_cast<size_t>(rank)].pid;
      peer(rank).process = table_[static_cast<size_t>(rank)].process;
      comm_.crowded |= comm_.ranks > table_[static_cast<size_t>(rank)].processors;
    }
    int nextLower = 0;
    int missing = 2 * (comm_.ranks - 1 - comm_.rank);
    while (nextLower < comm_.rank || missing > 0) {
      bool busy = false;
      while (nextLower < comm_.rank) {
        if (!connectLower(nextLower)) {
          busy = true;
          break;
        }
        nextLower++;
      }
      missing -= acceptHigher();
      if (nextLower == comm_.rank && missing == 0) break;
      // The server reports the death of an awaited rank, and nothing else.
      if (readServer()) failUnexpected();
      std::vector<pollfd> polled{{listener_.get(), POLLIN, 0}};
      for (const auto& arriving : arriving_) polled.push_back({arriving->fd.get(), POLLIN, 0});
      waitFor(std::move(polled), busy ? 1 : 1000);
    }
    arriving_.clear();
    listener_.reset();
  }

  bool connectLower(int rank) {
    for (bool control : {false, true}) {
      if (control ? peer(rank).control.valid() : peer(rank).data.valid()) continue;
      Fd socket;
      Connect result = connectTo(socketName(table_[static_cast<size_t>(rank)].listener), socket);
      if (result == Connect::TryAgain) return false;
      if (result == Connect::Refused) {
        fail(
            ncclRemoteError, "rank %d (pid %d) went away during the init of the communicator", rank,
            static_cast<int>(peer(rank).pid));
      }
      PairHello hello;
      hello.from = comm_.rank;
      hello.to = rank;
      hello.control = control;
      memcpy(hello.nonce, id_.nonce, kNonceBytes);
      if (control) {
        sendSome(socket.get(), &hello, sizeof hello);
        peer(rank).control = std::move(socket);
        continue;
      }
      Fd memory = comm_.sharesMemory ? Channel::newMemory(Channel::ringBytes(comm_.ranks)) : Fd();
      hello.shared = memory.valid();
      // The system may refuse to pass a descriptor while too many are in transit.
      if (memory.valid() && sendWithDescriptor(socket.get(), &hello, sizeof hello, memory.get()) <= 0) {
        memory.reset();
        hello.shared = 0;
      }
      if (!memory.valid()) sendSome(socket.get(), &hello, sizeof hello);
      openData(rank, std::move(socket), memory, true);
    }
    return true;
  }

  void openData(int rank, Fd socket, const Fd& memory, bool connected) {
    if (!memory.valid()) enlargeBuffers(socket);
    size_t bytes = Channel::ringBytes(comm_.ranks);
    peer(rank).data.open(std::move(socket), memory, bytes, connected);
    if (!memory.valid()) return;
    comm_.ringBytes += bytes;
    if (comm_.singleCopy) peer(rank).data.permitCopies(peer(rank).process == processToken());
  }

  int acceptHigher() {
    Fd fd;
    for (int i = 0; i < kAcceptTurn && acceptFrom(listener_, fd); i++) {
      if (!fd.valid()) continue;
      arriving_.push_back(std::make_unique<Arriving>());
      arriving_.back()->fd = std::move(fd);
    }
    int complete = 0;
    for (auto& arriving : arriving_) {
      char* into = reinterpret_cast<char*>(&arriving->hello) + arriving->bytes;
      long got = receiveWithDescriptor(
          arriving->fd.get(), into, sizeof arriving->hello - arriving->bytes, arriving->memory);
      if (got == 0) continue;
      if (got > 0) arriving->bytes += static_cast<size_t>(got);
      if (got > 0 && arriving->bytes < sizeof arriving->hello) continue;
      const PairHello& hello = arriving->hello;
      if (got > 0 && hello.magic == kWireMagic && memcmp(hello.nonce, id_.nonce, kNonceBytes) == 0 &&
          hello.to == comm_.rank && hello.from > comm_.rank && hello.from < comm_.ranks) {
        Peer& from = peer(hello.from);
        if (hello.control && !from.control.valid()) {
          from.control = std::move(arriving->fd);
          complete++;
        } else if (!hello.control && !from.data.valid()) {
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
  Fd server_;
  std::string answer_;
  std::vector<TableEntry> table_;
  std::vector<std::unique_ptr<Arriving>> arriving_;
};

}  // namespace

double initTimeout() { return initTimeoutSetting.value(); }

std::string socketName(const char* nonce) {
  std::string name = "nccl4j-";
  for (size_t i = 0; i < kNonceBytes; i++) name += format("%02x", static_cast<unsigned char>(nonce[i]));
  return name;
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
  memcpy(hello.nonce, layout.nonce, kNonceBytes);
  try {
    Fd server;
    if (connectTo(socketName(layout.nonce), server) != Connect::Done) return;
    sendSome(server.get(), &hello, sizeof hello);
  } catch (const Failure&) {
    // The server then ends later, at its deadline.
  }
}

const uint64_t& processToken() {
  static std::mutex& mutex = *new std::mutex;
  static pid_t owner = 0;
  static uint64_t token = 0;
  std::lock_guard<std::mutex> lock(mutex);
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

// onesided.cpp: the registration of windows, puts, signals, and waits for signals.
//
// Registration is collective: all ranks compare size and flags, exchange the addresses of their memory, and open their lanes to
// the others. A put is complete for its caller when the kernel has accepted the bytes; the target's inbox moves them to the
// window. Signals are counted by rank (NCCL has one signal index and one context, 0) and raised after the bytes of
// their put.

#include <string.h>
#include <sys/uio.h>

#include <algorithm>

#include "protocol/inbox.h"
#include "protocol/task.h"

namespace host {
namespace {

/** Maximum number of bytes of a put before other communicators of the group are served. */
constexpr size_t kTurn = 1 << 20;

class Registration : public Task {
 public:
  Registration(Comm& comm, Operation operation) : Task(comm), allPairs_(comm.peers.size()) {
    Extras& extras = operation.addExtras();
    out_ = extras.windowOut;
    window_.base = operation.recv;
    window_.size = extras.windowBytes;
    window_.flags = extras.windowFlags;
    extras.allPairs = &allPairs_;
    extras.ownPair.first = reinterpret_cast<int64_t>(window_.base);
    exchange_ = makeCollective(comm_, std::move(operation));
  }

  ~Registration() override {
    if (started_ && !finished_) comm_.windows.removeFromInbox(window_.number);
  }

  void start() override {
    started_ = true;
    window_.number = comm_.nextWindow++;
    // Before the exchange: the first rank to finish may put at once.
    comm_.openInbox().addWindow(window_.number, window_.base, window_.size);
    openLanes();
    exchange_->start();
  }

  Wanted wants(Peer& peer) override { return exchange_->wants(peer); }
  void framed(Peer& peer) override { exchange_->framed(peer); }
  void received(Peer& peer, size_t bytes) override { exchange_->received(peer, bytes); }

  bool advanceOwn() override {
    bool opened = !lanesOpen_ && openLanes();
    return exchange_->advanceOwn() || opened;
  }
  double addDescriptors(std::vector<pollfd>& polled) override {
    return std::min(exchange_->addDescriptors(polled), lanesOpen_ ? HUGE_VAL : nextLaneTry_);
  }

  bool complete() const override {
    if (!lanesOpen_ || !exchange_->complete()) return false;
    for (const Peer& peer : comm_.peers) {
      if (!laneArrived(peer)) return false;
    }
    return true;
  }

  void finish() override {
    finished_ = true;
    for (const auto& pair : allPairs_) window_.bases.push_back(reinterpret_cast<char*>(pair.first));
    *out_ = comm_.windows.add(std::move(window_));
  }

  Dependence dependsOn(Peer& peer) override {
    bool any = exchange_->wants(peer).any() || !laneArrived(peer);
    return {any, any, false};
  }
  std::string name() const override { return exchange_->name(); }
  std::string description() const override { return name(); }

 private:
  /** Opens the lanes; true when all are open. */
  bool openLanes() {
    lanesOpen_ = true;
    nextLaneTry_ = HUGE_VAL;
    for (Peer& peer : comm_.peers) {
      if (comm_.openLane(peer)) continue;
      lanesOpen_ = false;
      nextLaneTry_ = std::min(nextLaneTry_, peer.puts.nextTry);
    }
    return lanesOpen_;
  }

  bool laneArrived(const Peer& peer) const { return peer.rank == comm_.rank || comm_.windows.inbox()->hasLane(peer.rank); }

  ncclWindow_t* out_;
  Window window_;
  std::vector<std::pair<int64_t, int64_t>> allPairs_;  // address of the memory, and 0, by rank
  std::unique_ptr<Task> exchange_;
  bool lanesOpen_ = false;
  double nextLaneTry_ = 0;
  bool started_ = false;
  bool finished_ = false;
};

class OneSided : public Task {
 public:
  OneSided(Comm& comm, std::vector<Operation> operations) : Task(comm), operations_(std::move(operations)) {}

  void start() override {
    comm_.openInbox();
  }

  Wanted wants(Peer&) override { return {}; }
  void received(Peer&, size_t) override {}
  void framed(Peer& peer) override {
    if (peer.frame.isBuffered()) comm_.matcher.keepBuffered(peer);
  }

  bool advanceOwn() override {
    bool moved = false;
    for (size_t turn = 0; at_ < operations_.size() && turn < kTurn;) {
      const Operation& operation = operations_[at_];
      bool done;
      if (operation.call == Call::WaitSignal) {
        comm_.windows.inbox()->clearNotification();
        done = comm_.windows.inbox()->take(*operation.extras().signals);
      } else if (operation.root == comm_.rank) {
        if (operation.recv != operation.send && operation.bytes() > 0) {
          memmove(operation.recv, operation.send, operation.bytes());
        }
        comm_.windows.inbox()->raise({comm_.rank, operation.extras().context, operation.extras().signal});
        done = true;
      } else {
        size_t before = sent_;
        done = put(operation);
        turn += sent_ - before;
        moved |= sent_ != before;
      }
      if (!done) break;
      moved = true;
      sent_ = 0;
      at_++;
    }
    return moved;
  }

  double addDescriptors(std::vector<pollfd>& polled) override {
    if (complete()) return HUGE_VAL;
    if (waitsFor() == Source::Inbox) {
      polled.push_back({comm_.windows.inbox()->notification(), POLLIN, 0});
      return HUGE_VAL;
    }
    if (target().puts.broken) return HUGE_VAL;
    if (!target().puts.fd.valid()) return target().puts.nextTry;
    polled.push_back({target().puts.fd.get(), POLLOUT, 0});
    return HUGE_VAL;
  }

  bool complete() const override { return at_ == operations_.size(); }
  Source waitsFor() const override { return current().call == Call::WaitSignal ? Source::Inbox : Source::Lane; }

  Dependence dependsOn(Peer& peer) override {
    if (complete()) return {};
    const Operation& operation = operations_[at_];
    bool any = operation.call != Call::WaitSignal ? peer.rank == operation.root
                                                  : comm_.windows.inbox()->lacks(*operation.extras().signals, peer.rank);
    return {any, any, false};
  }

  bool completesWithoutPeers() const override {
    return std::all_of(operations_.begin(), operations_.end(), [](const Operation& operation) {
      return operation.call == Call::WaitSignal;
    });
  }

  std::string name() const override { return callName(current().call); }

  std::string description() const override {
    if (current().call != Call::WaitSignal) return describe(current().frame());
    std::string text;
    for (const auto& [signal, least] : *current().extras().signals) {
      text += format(
          "%s%llu from rank %d", text.empty() ? "" : ", ", static_cast<unsigned long long>(least), signal.rank);
      if (signal.context != 0) text += format(" in context %d", signal.context);
      if (signal.index != 0) text += format(" at index %d", signal.index);
    }
    return "WaitSignal(" + text + ")";
  }

 private:
  const Operation& current() const { return operations_[std::min(at_, operations_.size() - 1)]; }
  Peer& target() { return comm_.peers[static_cast<size_t>(operations_[at_].root)]; }

  /** Sends as much as the lane accepts; true when all is sent. */
  bool put(const Operation& operation) {
    Peer& peer = target();
    if (peer.puts.broken || !comm_.openLane(peer)) return false;
    PutFrame frame;
    frame.context = operation.extras().context;
    frame.signal = operation.extras().signal;
    frame.window = operation.extras().windowNumber;
    frame.offset = operation.extras().windowOffset;
    frame.bytes = operation.bytes();
    size_t headLeft = sizeof frame - std::min(sent_, sizeof frame);
    size_t bodySent = sent_ - (sizeof frame - headLeft);
    iovec parts[2];
    size_t count = 0;
    if (headLeft > 0) parts[count++] = {reinterpret_cast<char*>(&frame) + sizeof frame - headLeft, headLeft};
    if (operation.bytes() > bodySent) {
      parts[count++] = {const_cast<char*>(operation.send) + bodySent, std::min(operation.bytes() - bodySent, kTurn)};
    }
    long sent = sendParts(peer.puts.fd.get(), parts, count);
    if (sent < 0) {
      peer.puts.broken = true;
      comm_.readEndReasonOfLane(peer, ("during " + name()).c_str());
      return false;
    }
    sent_ += static_cast<size_t>(sent);
    return sent_ == sizeof frame + operation.bytes();
  }

  std::vector<Operation> operations_;
  size_t at_ = 0;
  size_t sent_ = 0;  // of the current put, with its header
};

}  // namespace

std::unique_ptr<Task> makeRegistration(Comm& comm, Operation operation) {
  return std::make_unique<Registration>(comm, std::move(operation));
}

std::unique_ptr<Task> makeOneSided(Comm& comm, std::vector<Operation> operations) {
  return std::make_unique<OneSided>(comm, std::move(operations));
}

}  // namespace host

// inbox.cpp: the thread that receives puts and signals.

#include "protocol/inbox.h"

#include <algorithm>

#include "base/thread.h"

namespace host {
namespace {

/** Maximum number of bytes from one rank before other ranks are served and other threads can take the lock. */
constexpr size_t kTurn = 1 << 20;

}  // namespace

Inbox::Inbox(int rank, int ranks, int contexts, int signalsPerContext)
    : rank_(rank),
      contexts_(contexts),
      signalsPerContext_(signalsPerContext),
      lanes_(static_cast<size_t>(ranks)), 
      notification_(newEvent()),
      wake_(newEvent()) {}

Inbox::~Inbox() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  raiseEvent(wake_);
  thread_.join();
}

void Inbox::addWindow(uint64_t number, char* base, size_t size) {
  std::lock_guard<std::mutex> lock(mutex_);
  windows_[number] = {base, size};
}

void Inbox::removeWindow(uint64_t number) {
  std::lock_guard<std::mutex> lock(mutex_);
  windows_.erase(number);
}

void Inbox::addLane(int from, Fd fd) {
  std::lock_guard<std::mutex> lock(mutex_);
  Lane& lane = lanes_[static_cast<size_t>(from)];
  // The thread may be waiting for the first one.
  if (lane.fd.valid()) throw Failure(ncclInternalError, format("rank %d passed a second socket for its puts", from));
  if (!thread_.joinable()) thread_ = startThread("the thread that takes puts", [this] { run(); });
  lane.fd = std::move(fd);
  raiseEvent(wake_);
}

bool Inbox::hasLane(int from) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return lanes_[static_cast<size_t>(from)].fd.valid();
}

bool Inbox::ended(int from) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const Lane& lane = lanes_[static_cast<size_t>(from)];
  return lane.ended || !lane.fd.valid();
}

void Inbox::raise(const SignalKey& signal) {
  std::lock_guard<std::mutex> lock(mutex_);
  signals_[signal]++;
  raiseEvent(notification_);
}

/** Returns the number of signals with this key. Needs the lock. */
uint64_t Inbox::count(const SignalKey& signal) const {
  auto found = signals_.find(signal);
  return found == signals_.end() ? 0 : found->second;
}

bool Inbox::lacks(const SignalCounts& wanted, int from) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return std::any_of(wanted.begin(), wanted.end(), [&](const auto& one) {
    return one.first.rank == from && count(one.first) < one.second;
  });
}

bool Inbox::take(const SignalCounts& wanted) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [signal, least] : wanted) {
    if (count(signal) < least) return false;
  }
  for (const auto& [signal, least] : wanted) {
    // Entries with count 0 are removed, so that memory is used only for waiting signals.
    if ((signals_[signal] -= least) == 0) signals_.erase(signal);
  }
  return true;
}

void Inbox::throwIfFaulty() const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (fault_) throw Failure(*fault_);
}

size_t Inbox::heldBytes() const { return sizeof *this + lanes_.capacity() * sizeof(Lane); }

void Inbox::clearNotification() { clearEvent(notification_); }

void Inbox::run() {
  try {
    takePuts();
  } catch (const std::exception&) {
    Failure failure = failureInFlight();
    std::lock_guard<std::mutex> lock(mutex_);
    noteFault(failure);
    // Ends the lanes, since no thread reads them any more: their senders must not wait.
    for (Lane& lane : lanes_) {
      lane.ended = true;
      lane.fd.reset();
    }
    raiseEvent(notification_);
  }
}

/** Keeps the first fault only. Needs the lock. */
void Inbox::noteFault(const Failure& fault) noexcept {
  if (!fault_) fault_ = fault;
}

void Inbox::takePuts() {
  std::vector<pollfd> polled;
  std::vector<int> ranks;
  for (;;) {
    polled.assign(1, {wake_.get(), POLLIN, 0});
    ranks.assign(1, -1);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      for (size_t rank = 0; rank < lanes_.size(); rank++) {
        if (!lanes_[rank].fd.valid() || lanes_[rank].ended) continue;
        polled.push_back({lanes_[rank].fd.get(), POLLIN, 0});
        ranks.push_back(static_cast<int>(rank));
      }
    }
    pollAll(polled, -1);
    if (polled[0].revents != 0) clearEvent(wake_);
    for (size_t i = 0; i < polled.size(); i++) {
      std::lock_guard<std::mutex> lock(mutex_);
      if (stopping_) return;
      if (ranks[i] >= 0 && polled[i].revents != 0) receive(ranks[i], lanes_[static_cast<size_t>(ranks[i])]);
    }
  }
}

void Inbox::receive(int from, Lane& lane) {
  char unwanted[4096];
  for (size_t total = 0; total < kTurn;) {
    bool head = lane.frameBytes < sizeof lane.frame;
    char* into;
    size_t size;
    if (head) {
      into = reinterpret_cast<char*>(&lane.frame) + lane.frameBytes;
      size = sizeof lane.frame - lane.frameBytes;
    } else {
      into = targetOf(lane);
      size = std::min<uint64_t>(lane.frame.bytes - lane.received, kTurn - total);
      if (into == nullptr) {
        lane.dropped = true;
        into = unwanted;
        size = std::min(size, sizeof unwanted);
      }
    }
    long got = receiveSome(lane.fd.get(), into, size);
    if (got == 0) return;
    if (got < 0 || (head && lane.frame.magic != kWireMagic && lane.frameBytes + static_cast<size_t>(got) >= 4)) {
      if (got > 0) {
        noteFault({ncclInvalidUsage, format("rank %d sent something unintelligible in place of a put", from)});
      }
      endLane(lane);
      return;
    }
    total += static_cast<size_t>(got);
    (head ? lane.frameBytes : lane.received) += static_cast<size_t>(got);
    if (head && lane.frameBytes == sizeof lane.frame && !isSignal(lane.frame)) {
      noteFault(
          {ncclInvalidUsage, format(
                                 "rank %d sent signal %d in context %d, but rank %d has %d signals in each of %d contexts",
                                 from, lane.frame.signal, lane.frame.context, rank_, signalsPerContext_, contexts_)});
      endLane(lane);
      return;
    }
    if (lane.frameBytes == sizeof lane.frame && lane.received == lane.frame.bytes) finishPut(from, lane);
  }
}

/** Reads no more from a lane. */
void Inbox::endLane(Lane& lane) {
  lane.ended = true;
  raiseEvent(notification_);
}

bool Inbox::isSignal(const PutFrame& frame) const {
  return frame.context >= 0 && frame.context < contexts_ && frame.signal >= 0 && frame.signal < signalsPerContext_;
}

/** Destination of the next bytes of a put, or NULL if this rank has no such memory. */
char* Inbox::targetOf(const Lane& lane) const {
  auto found = windows_.find(lane.frame.window);
  if (found == windows_.end()) return nullptr;
  const Window& window = found->second;
  if (lane.frame.offset > window.size || lane.frame.bytes > window.size - lane.frame.offset) return nullptr;
  return window.base + lane.frame.offset + lane.received;
}

void Inbox::finishPut(int from, Lane& lane) {
  if (lane.dropped) {
    noteFault(
        {ncclInvalidUsage, format(
                               "rank %d put %llu bytes into a window that rank %d had deregistered", from,
                               static_cast<unsigned long long>(lane.frame.bytes), rank_)});
  } else {
    signals_[{from, lane.frame.context, lane.frame.signal}]++;
  }
  lane.frameBytes = 0;
  lane.received = 0;
  lane.dropped = false;
  raiseEvent(notification_);
}

}  // namespace host

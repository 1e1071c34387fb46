// memorychannel.cpp: the rings.

#include "transport/memorychannel.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "base/error.h"
#include "base/processors.h"
#include "old_systems.h"

namespace host {
namespace {

// Small enough for a processor's cache.
constexpr size_t kMaxRingBytes = 1 << 20;
constexpr size_t kMinRingBytes = 16 << 10;
// Limit for all rings that a rank writes, so that many ranks do not exhaust memory.
constexpr size_t kMaxRingBytesOfRank = 8 << 20;
// Maximum size of a copy before the peer can see its bytes, and the size from which it sees them at once.
constexpr size_t kPiece = 32 << 10;
constexpr size_t kVisible = 8 << 10;
// Maximum size of a copy from the memory of the peer's process, before other ranks are served.
constexpr size_t kCopy = 1 << 20;
// Slots of a direction. A power of two, since their numbers wrap around. With fewer, the root of a broadcast cannot run ahead while
// other ranks wait for a processor.
constexpr uint32_t kSlots = 128;
// The positions of both rings and the slots of both directions precede the data.
constexpr size_t kPositions = 4096;
constexpr size_t kSlotBytes = 64 * kSlots;
constexpr size_t kHead = kPositions + 2 * kSlotBytes;

constexpr uint32_t kCapabilities =
    static_cast<uint32_t>(Capability::Polling) | static_cast<uint32_t>(Capability::ReadInPlace) |
    static_cast<uint32_t>(Capability::OptionalFrames) | static_cast<uint32_t>(Capability::Credits) |
    static_cast<uint32_t>(Capability::Offers);

// Not with ThreadSanitizer: each side maps the shared memory for itself, so that it does not see the order of their accesses.
#ifdef __SANITIZE_THREAD__
constexpr bool kCopiesWithinProcess = false;
#else
constexpr bool kCopiesWithinProcess = true;
#endif

void* at(uint64_t address) { return reinterpret_cast<void*>(static_cast<uintptr_t>(address)); }

size_t memoryBytes(size_t ringBytes) { return kHead + 2 * ringBytes; }

}  // namespace

/** A frame, whose number is stored last, or elements of the one before. */
struct alignas(64) MemoryChannel::Slot {
  std::atomic<uint32_t> number;
  char rest[sizeof(Frame) - sizeof number];

  /** Copies elements to or from `rest`: those of a whole slot without a call. */
  static void copy(char* to, const char* from, size_t bytes) {
    if (bytes == sizeof rest) {
      memcpy(to, from, sizeof rest);
    } else {
      memcpy(to, from, bytes);
    }
  }
};

/** Positions count all bytes since the start; each position has one writer. */
struct MemoryChannel::Ring {
  alignas(64) std::atomic<uint64_t> written;
  alignas(64) std::atomic<uint64_t> read;
  std::atomic<uint32_t> readFrames;  // number of the next slot, less kFirstFrame
  std::atomic<uint32_t> credits;     // that the reader has returned
  // 0: none; else 1 more than the number of bytes that the writer must send. The reader sets it, the writer resets it.
  std::atomic<uint64_t> answer;
  // Both sides write the flags, but only around a wait: they stay in the caches of both while nobody waits.
  alignas(64) std::atomic<uint32_t> readerWaits;
  std::atomic<uint32_t> writerWaits;
  std::atomic<uint32_t> announcements;  // of the writer, for control messages
  std::atomic<uint32_t> withdrawn;      // not 0: the writer's memory may change
  std::atomic<uint32_t> copying;        // not 0: the reader copies from the writer's memory without the kernel
};

static_assert(std::atomic<uint64_t>::is_always_lock_free, "shared between processes");
static_assert(std::atomic<uint32_t>::is_always_lock_free, "shared between processes");

void MemoryChannel::Unmap::operator()(Ring* rings) const { munmap(rings, bytes); }

size_t MemoryChannel::ringBytes(int ranks) {
  size_t bytes = kMaxRingBytes;
  while (bytes > kMinRingBytes && bytes * static_cast<size_t>(ranks) > kMaxRingBytesOfRank) bytes /= 2;
  return bytes;
}

Fd MemoryChannel::newMemory(size_t ringBytes) {
  Fd memory;
  rlimit limit{};
  // RLIMIT_FSIZE also applies to a memfd; exceeding it raises a signal that ends the process.
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur < memoryBytes(ringBytes)) return memory;
  memory = Fd::opened([] { return memfd_create("nccl4j", MFD_CLOEXEC | MFD_ALLOW_SEALING); });
  if (!memory.valid()) return memory;
  // Seals: no process can remove pages while the other one uses them.
  if (ftruncate(memory.get(), static_cast<off_t>(memoryBytes(ringBytes))) != 0 ||
      fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    memory.reset();
  }
  return memory;
}

MemoryChannel::MemoryChannel(Fd socket, const Fd& memory, size_t ringBytes, bool first)
    : Channel(std::move(socket), kCapabilities, kMaxInlined) {
  // A peer that shrinks unsealed memory could kill this process with SIGBUS.
  int seals = fcntl(memory.get(), F_GET_SEALS);
  if (seals < 0) failErrno("cannot look at the seals of the memory of a connection");
  if ((seals & F_SEAL_SHRINK) == 0) {
    fail(
        ncclInternalError, "the memory of a connection must have F_SEAL_SHRINK (%d), but its seals are %d",
        F_SEAL_SHRINK, seals);
  }
  struct stat status {};
  if (fileStatus(memory.get(), &status) != 0) failErrno("cannot look at the memory of a connection");
  size_t bytes = memoryBytes(ringBytes);
  if (static_cast<size_t>(status.st_size) != bytes) {
    fail(
        ncclInternalError, "the memory of a connection has %lld bytes, expected %zu",
        static_cast<long long>(status.st_size), bytes);
  }
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  if (mapped == MAP_FAILED) failErrno("cannot map the memory of a connection");
  rings_ = {static_cast<Ring*>(mapped), Unmap{bytes}};
  size_ = ringBytes;
  static_assert(kMaxInlined % sizeof Slot::rest == 0 && kMaxInlined / sizeof Slot::rest < kSlots / 4, "see receiveFrame");
  static_assert(kSlots < 0u - kFirstFrame, "the number in an unused slot is 0, and must be none of its frames");
  static_assert(
      kMostBuffered * (2 + kMaxBuffered / sizeof Slot::rest) <= kSlots - kSlots / 4,
      "a reader reports up to a quarter of the slots late");
  static_assert(2 * sizeof(Ring) <= kPositions && sizeof(Slot) * kSlots == kSlotBytes && sizeof(Slot) == sizeof(Frame), "fits kHead");
  char* data = static_cast<char*>(mapped) + kHead;
  auto* slots = reinterpret_cast<Slot*>(static_cast<char*>(mapped) + kPositions);
  outSlots_ = slots + (first ? 0 : kSlots);
  inSlots_ = slots + (first ? kSlots : 0);
  out_ = rings_.get() + (first ? 0 : 1);
  in_ = rings_.get() + (first ? 1 : 0);
  outData_ = data + (first ? 0 : ringBytes);
  inData_ = data + (first ? ringBytes : 0);
  announcements_ = &in_->announcements;
}

MemoryChannel::~MemoryChannel() { withdraw(); }

/**
 * Free bytes of the ring that this side writes. Looks at the position of the peer only if fewer than `wanted` were free at the last
 * look. A peer with an impossible position gets none.
 */
size_t MemoryChannel::room(size_t wanted) {
  auto free = [&] {
    uint64_t used = written_ - peerRead_;
    return used < size_ ? size_ - static_cast<size_t>(used) : 0;
  };
  if (free() < wanted) peerRead_ = out_->read.load();
  return free();
}

/** Writes bytes that the peer cannot see yet. */
void MemoryChannel::write(const char* bytes, size_t size) {
  size_t at = static_cast<size_t>(written_ % size_);
  size_t first = std::min(size, size_ - at);
  memcpy(outData_ + at, bytes, first);
  memcpy(outData_, bytes + first, size - first);
  written_ += size;
}

void MemoryChannel::putBytes(const char* bytes, size_t size) {
  write(bytes, size);
  out_->written.store(written_, std::memory_order_release);
}

size_t MemoryChannel::available() {
  peerWritten_ = in_->written.load();
  return static_cast<size_t>(std::min<uint64_t>(peerWritten_ - read_, size_));
}

const char* MemoryChannel::readable(size_t& size) {
  if (peerWritten_ == read_) peerWritten_ = in_->written.load();
  size_t at = static_cast<size_t>(read_ % size_);
  size = static_cast<size_t>(std::min<uint64_t>(peerWritten_ - read_, size_ - at));
  return inData_ + at;
}

void MemoryChannel::consume(size_t size) {
  uint64_t quarter = size_ / 4;
  bool passes = (read_ + size) / quarter != read_ / quarter;
  read_ += size;
  // As in send, the position is stored before the flag is loaded; but only now and then, since the order costs more than a
  // short message. A writer that waits has filled the ring, so a quarter is passed before all is read.
  in_->read.store(read_, passes ? std::memory_order_seq_cst : std::memory_order_release);
  wakeWriter();
}

uint32_t MemoryChannel::slotsFor(size_t elements) {
  if (elements <= sizeof Frame::words || elements > kMaxInlined) return 1;
  return static_cast<uint32_t>(1 + (elements + sizeof Slot::rest - 1) / sizeof Slot::rest);
}

/** True if so many slots are free. A peer with an impossible position gets none. */
bool MemoryChannel::hasSlots(uint32_t wanted) {
  if (nextOut_ - peerReadFrames_ > kSlots - wanted) peerReadFrames_ = kFirstFrame + out_->readFrames.load();
  return nextOut_ - peerReadFrames_ <= kSlots - wanted;
}

bool MemoryChannel::hasRoomForOptionalFrame() { return hasSlots(kSlots / 2); }

bool MemoryChannel::sendFrame(const Frame& frame, const char* elements) {
  if (!putFrame(frame, elements)) return false;
  fence();
  wakeReader();
  return true;
}

bool MemoryChannel::putFrame(const Frame& frame, const char* elements) {
  uint32_t slots = slotsOf(frame);
  if (!hasSlots(slots)) return false;
  size_t left = frame.inlined;
  for (uint32_t i = 1; i < slots; i++) {
    Slot& slot = outSlots_[(nextOut_ + i) % kSlots];
    size_t step = std::min(left, sizeof slot.rest);
    Slot::copy(slot.rest, elements, step);
    // In the next round of the slots a frame may be awaited here: the number must be that of this round.
    slot.number.store(nextOut_ + i, std::memory_order_relaxed);
    elements += step;
    left -= step;
  }
  Slot& slot = outSlots_[nextOut_ % kSlots];
  memcpy(slot.rest, reinterpret_cast<const char*>(&frame) + sizeof frame.number, sizeof slot.rest);
  slot.number.store(nextOut_, std::memory_order_release);
  nextOut_ += slots;
  return true;
}

void MemoryChannel::prefetchForPut(size_t elements) const {
  for (uint32_t i = 0; i < slotsFor(elements); i++) {
    const Slot* slot = &outSlots_[(nextOut_ + i) % kSlots];
#if defined(__x86_64__)
    // For the built-in function, GCC generates it only if it may use instructions that not all processors have.
    __asm__ volatile("prefetchw %0" : : "m"(*slot));
#else
    __builtin_prefetch(slot, 1);
#endif
  }
}

void MemoryChannel::prefetchForReceive(size_t elements) const {
  for (uint32_t i = 0; i < slotsFor(elements); i++) __builtin_prefetch(&inSlots_[(nextIn_ + i) % kSlots]);
}

bool MemoryChannel::hasFrame() const {
  return inSlots_[nextIn_ % kSlots].number.load(std::memory_order_acquire) == nextIn_;
}

bool MemoryChannel::isNext(FrameKind kind) const {
  if (!hasFrame()) return false;
  Frame frame;
  memcpy(reinterpret_cast<char*>(&frame) + sizeof frame.number, inSlots_[nextIn_ % kSlots].rest, sizeof Slot::rest);
  return frame.kind == kind;
}

long MemoryChannel::sendQueued(Fifo<Outgoing>& queue) {
  Outgoing& first = queue.front();
  if (first.data == nullptr) {
    if (!sendFrame(first.frame, first.elements.data())) return ended_ ? -1 : 0;
    queue.pop_front();
    return sizeof(Frame);
  }
  iovec part{const_cast<char*>(first.data) + first.sent, first.size - first.sent};
  long sent = send(&part, 1);
  if (sent <= 0) return sent;
  first.sent += static_cast<size_t>(sent);
  if (first.sent == first.size) queue.pop_front();
  return sent;
}

int MemoryChannel::receiveFrame(Frame& frame, char* elements) {
  if (takeFrame(frame, elements)) return 1;
  // Frames that arrived before the end are still valid.
  return !ended_ ? 0 : takeFrame(frame, elements) ? 1 : kEnd;
}

bool MemoryChannel::takeFrame(Frame& frame, char* elements) {
  if (!hasFrame()) return false;
  const Slot& slot = inSlots_[nextIn_ % kSlots];
  frame.number = nextIn_;
  // Checked in this copy, which the peer cannot change.
  memcpy(reinterpret_cast<char*>(&frame) + sizeof frame.number, slot.rest, sizeof slot.rest);
  uint32_t slots = slotsOf(frame);
  size_t left = frame.inlined;
  for (uint32_t i = 1; i < slots; i++) {
    const Slot& next = inSlots_[(nextIn_ + i) % kSlots];
    size_t step = std::min(left, sizeof next.rest);
    Slot::copy(elements, next.rest, step);
    elements += step;
    left -= step;
  }
  constexpr uint32_t kQuarter = kSlots / 4;
  bool passes = (nextIn_ + slots) / kQuarter != nextIn_ / kQuarter;
  nextIn_ += slots;
  // A writer that waits has filled most of the slots, so a quarter is passed before all are read; see consume.
  if (passes) {
    in_->readFrames = nextIn_ - kFirstFrame;
    wakeWriter();
  }
  return true;
}

void MemoryChannel::returnCredit() {
  // Stored before the flag is loaded, as in consume: a writer may wait for each credit.
  in_->credits = ++creditsReturned_;
  wakeWriter();
}

uint32_t MemoryChannel::takeCredits() {
  uint32_t before = creditsTaken_;
  creditsTaken_ = out_->credits.load();
  return creditsTaken_ - before;
}

void MemoryChannel::wakeReader() {
  if (out_->readerWaits.load() != 0 && out_->readerWaits.exchange(0) != 0) ringDoorbell();
}

void MemoryChannel::wakeWriter() {
  if (in_->writerWaits.load() != 0 && in_->writerWaits.exchange(0) != 0) ringDoorbell();
}

long MemoryChannel::send(iovec* parts, size_t count) {
  if (ended_) return -1;
  size_t total = 0;
  auto publish = [&] {
    out_->written = written_;
    wakeReader();
  };
  size_t hidden = 0;
  for (size_t i = 0; i < count;) {
    size_t step = std::min({room(), kPiece, parts[i].iov_len});
    if (step == 0) break;
    write(static_cast<const char*>(parts[i].iov_base), step);
    total += step;
    parts[i].iov_base = static_cast<char*>(parts[i].iov_base) + step;
    parts[i].iov_len -= step;
    if (parts[i].iov_len == 0) i++;
    // The peer sees short parts together.
    hidden += step;
    if (hidden < kVisible) continue;
    hidden = 0;
    publish();
  }
  if (hidden > 0) publish();
  return static_cast<long>(total);
}

long MemoryChannel::receive(void* data, size_t size) {
  if (accepted_.size > 0) return copyOffered(data, size);
  size_t total = 0;
  while (total < size) {
    size_t there;
    const char* from = readable(there);
    if (there == 0) {
      if (total > 0 || !ended_) break;
      // Bytes that arrived before the end are still valid.
      if (available() > 0) continue;
      return -1;
    }
    size_t step = std::min({there, kPiece, size - total});
    memcpy(static_cast<char*>(data) + total, from, step);
    total += step;
    consume(step);
  }
  return static_cast<long>(total);
}

void MemoryChannel::permitCopies(bool sameProcess) {
  // The id from the kernel, not from the peer: that of a peer in another container may be the id of another process here.
  ucred credentials{};
  socklen_t size = sizeof credentials;
  bool known = getsockopt(socket_.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0;
  if (!known) return;
  peerProcess_ = credentials.pid;
  sameProcess_ = kCopiesWithinProcess && sameProcess && peerProcess_ == currentProcess();
}

void MemoryChannel::accept(const Offer& offer) {
  accepted_ = offer;
  if (peerProcess_ == 0) answer(offer.size);
}

long MemoryChannel::copyOffered(void* data, size_t size) {
  size = std::min({size, accepted_.size, kCopy});
  size_t copied = sameProcess_ ? copyWithinProcess(data, size) : copyFromProcess(data, size);
  // The peer has failed, and will say so or end.
  if (in_->withdrawn.load() != 0) return ended_ ? -1 : 0;
  if (copied == 0) {
    answer(accepted_.size);
    return 0;
  }
  accepted_.address += copied;
  accepted_.size -= copied;
  if (accepted_.size == 0) answer(0);
  return static_cast<long>(copied);
}

size_t MemoryChannel::copyFromProcess(void* data, size_t size) const {
  // The token proves that the bytes come from the peer's process, whose id may have been used again.
  uint64_t token = 0;
  iovec to[] = {{&token, sizeof token}, {data, size}};
  const iovec from[] = {{at(accepted_.token), sizeof token}, {at(accepted_.address), size}};
  ssize_t got = process_vm_readv(peerProcess_, to, 2, from, 2, 0);
  if (got <= static_cast<ssize_t>(sizeof token) || token != accepted_.process) return 0;
  return static_cast<size_t>(got) - sizeof token;
}

size_t MemoryChannel::copyWithinProcess(void* data, size_t size) {
  // Freed memory would end the process. Stored before the load, as in withdraw: one of the two sides sees the other's store.
  in_->copying = 1;
  bool offered = in_->withdrawn.load() == 0;
  if (offered) memcpy(data, at(accepted_.address), size);
  in_->copying = 0;
  return offered ? size : 0;
}

void MemoryChannel::answer(size_t left) {
  accepted_ = {};
  in_->answer = left + 1;
  wakeWriter();
}

bool MemoryChannel::takeAnswer(size_t& left) {
  if (out_->answer.load() == 0) return false;
  left = static_cast<size_t>(out_->answer.exchange(0) - 1);
  refused_ |= left > 0;
  return true;
}

void MemoryChannel::withdraw() {
  out_->withdrawn = 1;
  while (sameProcess_ && out_->copying.load() != 0) relax();
}

bool MemoryChannel::arm(const Wait& wait) {
  armed_ = true;
  // This side sets the flag and then checks the positions; the peer moves its position and then checks the flag. At
  // least one of the two sees the other's change.
  if (wait.reads()) in_->readerWaits = 1;
  if (wait.writes()) out_->writerWaits = 1;
  fence();
  wakeWriter();
  return (wait.frame && hasFrame()) || (wait.bytes > 0 && available() >= wait.bytes) ||
         (wait.outgoing != nullptr && hasSlots(slotsOf(*wait.outgoing))) || (wait.room && room() > 0) ||
         (wait.answer && out_->answer.load() != 0) || (wait.credit && out_->credits.load() != creditsTaken_);
}

void MemoryChannel::disarm() {
  if (!armed_) return;
  armed_ = false;
  in_->readerWaits = 0;
  out_->writerWaits = 0;
  readDoorbell();
}

void MemoryChannel::announceMessage() {
  out_->announcements++;
}

/** Consumes the doorbell bytes; false if the peer has ended. */
bool MemoryChannel::readDoorbell() {
  char bells[64];
  while (!ended_) {
    long got = receiveSome(socket_.get(), bells, sizeof bells);
    if (got < 0) ended_ = true;
    if (got < static_cast<long>(sizeof bells)) break;
  }
  return !ended_;
}

void MemoryChannel::ringDoorbell() {
  char bell = 0;
  // A full socket already holds doorbells; the wait of this side detects the end of the peer.
  sendSome(socket_.get(), &bell, 1);
}

}  // namespace host

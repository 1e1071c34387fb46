// channel.cpp: the rings.

#include "channel.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "error.h"

namespace host {
namespace {

// Small enough for a processor's cache.
constexpr size_t kMaxRingBytes = 1 << 20;
constexpr size_t kMinRingBytes = 16 << 10;
// Limit for all rings that a rank writes, so that many ranks do not exhaust memory.
constexpr size_t kMaxRingBytesOfRank = 8 << 20;
// Maximum size of a copy before the peer can see its bytes.
constexpr size_t kPiece = 128 << 10;
// The positions of both rings precede the data.
constexpr size_t kHead = 4096;

size_t memoryBytes(size_t ringBytes) { return kHead + 2 * ringBytes; }

}  // namespace

/** Positions count all bytes since the start; each position has one writer. */
struct Channel::Ring {
  alignas(64) std::atomic<uint64_t> written;
  std::atomic<uint32_t> readerWaits;
  alignas(64) std::atomic<uint64_t> read;
  std::atomic<uint32_t> writerWaits;
};

static_assert(std::atomic<uint64_t>::is_always_lock_free, "shared between processes");
static_assert(std::atomic<uint32_t>::is_always_lock_free, "shared between processes");

void Channel::Unmap::operator()(Ring* rings) const { munmap(rings, bytes); }

size_t Channel::ringBytes(int ranks) {
  size_t bytes = kMaxRingBytes;
  while (bytes > kMinRingBytes && bytes * static_cast<size_t>(ranks) > kMaxRingBytesOfRank) bytes /= 2;
  return bytes;
}

Fd Channel::newMemory(size_t ringBytes) {
  Fd memory;
  rlimit limit{};
  // RLIMIT_FSIZE also applies to a memfd; exceeding it raises a signal that ends the process.
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur < memoryBytes(ringBytes)) return memory;
  memory = Fd(memfd_create("nccl4j", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory.valid()) return memory;
  // Seals: no process can remove pages while the other one uses them.
  if (ftruncate(memory.get(), static_cast<off_t>(memoryBytes(ringBytes))) != 0 ||
      fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    memory.reset();
  }
  return memory;
}

void Channel::open(Fd socket, const Fd& memory, size_t ringBytes, bool first) {
  reset();
  socket_ = std::move(socket);
  if (!memory.valid()) return;
  // A peer that shrinks unsealed memory could kill this process with SIGBUS.
  int seals = fcntl(memory.get(), F_GET_SEALS);
  if (seals < 0) failErrno("cannot look at the seals of the memory of a connection");
  if ((seals & F_SEAL_SHRINK) == 0) {
    fail(
        ncclInternalError, "the memory of a connection must have F_SEAL_SHRINK (%d), but its seals are %d",
        F_SEAL_SHRINK, seals);
  }
  struct stat status {};
  if (fstat(memory.get(), &status) != 0) failErrno("cannot look at the memory of a connection");
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
  char* data = static_cast<char*>(mapped) + kHead;
  out_ = rings_.get() + (first ? 0 : 1);
  in_ = rings_.get() + (first ? 1 : 0);
  outData_ = data + (first ? 0 : ringBytes);
  inData_ = data + (first ? ringBytes : 0);
}

size_t Channel::filled(const Ring& ring) { return static_cast<size_t>(ring.written.load() - ring.read.load()); }

long Channel::send(iovec* parts, size_t count) {
  if (!rings_) return sendParts(socket_.get(), parts, count);
  if (ended_) return -1;
  size_t total = 0;
  for (size_t i = 0; i < count;) {
    size_t room = size_ - filled(*out_);
    if (room == 0) {
      if (total == 0 && !readDoorbell()) return -1;
      break;
    }
    uint64_t written = out_->written.load(std::memory_order_relaxed);
    size_t at = written % size_;
    size_t step = std::min({room, size_ - at, kPiece, parts[i].iov_len});
    memcpy(outData_ + at, parts[i].iov_base, step);
    out_->written = written + step;
    if (out_->readerWaits.exchange(0) != 0) ringDoorbell();
    total += step;
    parts[i].iov_base = static_cast<char*>(parts[i].iov_base) + step;
    parts[i].iov_len -= step;
    if (parts[i].iov_len == 0) i++;
  }
  return static_cast<long>(total);
}

long Channel::receive(void* data, size_t size) {
  if (!rings_) return receiveSome(socket_.get(), data, size);
  size_t total = 0;
  while (total < size) {
    size_t there = filled(*in_);
    if (there == 0) {
      if (total > 0) break;
      bool open = readDoorbell();
      // Bytes that arrived before the end are still valid.
      if (filled(*in_) > 0) continue;
      return open ? 0 : -1;
    }
    uint64_t read = in_->read.load(std::memory_order_relaxed);
    size_t at = read % size_;
    size_t step = std::min({there, size_ - at, kPiece, size - total});
    memcpy(static_cast<char*>(data) + total, inData_ + at, step);
    in_->read = read + step;
    if (in_->writerWaits.exchange(0) != 0) ringDoorbell();
    total += step;
  }
  return static_cast<long>(total);
}

bool Channel::ready(bool reading, bool writing) {
  if (!rings_) return false;
  // This side sets the flag and then checks the positions; the peer moves its position and then checks the flag. At
  // least one of the two sees the other's change.
  if (reading) in_->readerWaits = 1;
  if (writing) out_->writerWaits = 1;
  return (reading && filled(*in_) > 0) || (writing && filled(*out_) < size_);
}

/** Consumes the doorbell bytes; false if the peer has ended. */
bool Channel::readDoorbell() {
  char bells[64];
  while (!ended_) {
    long got = receiveSome(socket_.get(), bells, sizeof bells);
    if (got < 0) ended_ = true;
    if (got < static_cast<long>(sizeof bells)) break;
  }
  return !ended_;
}

void Channel::ringDoorbell() {
  char bell = 0;
  // A full socket already holds doorbells; the wait of this side detects the end of the peer.
  sendSome(socket_.get(), &bell, 1);
}

void Channel::endSending() {
  if (socket_.valid()) shutdown(socket_.get(), SHUT_WR);
}

void Channel::reset() {
  socket_.reset();
  rings_.reset();
  out_ = in_ = nullptr;
  ended_ = false;
}

}  // namespace host

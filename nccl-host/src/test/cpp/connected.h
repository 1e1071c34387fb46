// connected.h: communicators whose connections end in the hands of a test, without a rendezvous.
#pragma once

#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/processors.h"
#include "protocol/comm.h"
#include "protocol/task.h"
#include "testthread.h"
#include "transport/memorychannel.h"

namespace host {

/** If a test ends the process, the lines that the tests have printed are not lost. */
inline const int kLineBuffered = setvbuf(stdout, nullptr, _IOLBF, 0);

constexpr size_t kTestRing = 64 << 10;

/** The other end of a connection to a peer. */
struct PeerEnd {
  Fd data;
  Fd control;
  Fd memory;  // of the rings; invalid without shared memory
};

/** A communicator of one rank, 0 by default, connected with `ranks - 1` peers. */
struct Connected {
  std::shared_ptr<Comm> comm;
  std::vector<PeerEnd> ends;  // by rank; that of this rank is unused

  explicit Connected(int ranks, bool shared = true, const CommSettings& settings = {}, int own = 0)
      : comm(std::make_shared<Comm>(own, ranks, 0, settings)), ends(static_cast<size_t>(ranks)) {
    comm->peers.resize(static_cast<size_t>(ranks));
    comm->lifecycle.created();
    // On any machine.
    comm->crowded = false;
    for (int rank = 0; rank < ranks; rank++) {
      Peer& peer = comm->peers[static_cast<size_t>(rank)];
      PeerEnd& end = ends[static_cast<size_t>(rank)];
      peer.rank = rank;
      if (rank == own) continue;
      auto [mine, theirs] = newStream();
      if (shared) end.memory = MemoryChannel::newMemory(kTestRing);
      peer.data = openChannel(std::move(mine), end.memory, kTestRing, true);
      end.data = std::move(theirs);
      std::tie(peer.control.fd, end.control) = newStream();
    }
  }

  Peer& peer(int rank) { return comm->peers[static_cast<size_t>(rank)]; }

  /** Runs one task to its end. */
  void run(std::unique_ptr<Task> task) {
    Work work;
    work.comm = comm.get();
    work.add(std::move(task));
    runWork(work);
  }
};

/** The words that two ranks share, as channel.cpp lays them out: positions and flags of one direction. */
struct RingWords {
  alignas(64) uint64_t written;
  alignas(64) uint64_t read;
  uint32_t readFrames;
  uint64_t answer;
  alignas(64) uint32_t flags[4];
};

/** Bytes before the rings: the words and the slots. */
constexpr size_t kTestHead = 5 * 4096;
constexpr uint32_t kTestSlots = 128;

/** The memory of a connection, mapped anew. */
class Mapped {
 public:
  explicit Mapped(const Fd& memory)
      : base_(static_cast<char*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0))) {
    if (base_ == MAP_FAILED) failErrno("cannot map the memory of a test");
  }
  ~Mapped() { munmap(base_, kBytes); }
  Mapped(const Mapped&) = delete;

  /** 0: the ring that the side with `first` writes. */
  volatile RingWords& words(int ring) { return reinterpret_cast<volatile RingWords*>(base_)[ring]; }

  /** The first word of a slot of this direction: the number of its frame. */
  volatile uint32_t& slot(int ring, uint32_t slot) {
    return *reinterpret_cast<volatile uint32_t*>(base_ + 4096 + sizeof(Frame) * (kTestSlots * static_cast<uint32_t>(ring) + slot));
  }

 private:
  static constexpr size_t kBytes = kTestHead + 2 * kTestRing;
  char* base_;
};

/** The text of the failure that a body throws; empty if it throws none. */
template <class Body>
std::string failureOf(Body&& body) {
  try {
    body();
  } catch (const Failure& failure) {
    return format("%d: %s", static_cast<int>(failure.code()), failure.text().c_str());
  }
  return "";
}

inline pid_t ownThread() { return static_cast<pid_t>(syscall(SYS_gettid)); }

/** Waits until a thread of this process sleeps or has ended, or for 10 s. */
inline void awaitSleep(pid_t thread) {
  char state = 'R';
  for (double end = now() + 10; state != 'S' && now() < end; std::this_thread::yield()) {
    std::unique_ptr<FILE, int (*)(FILE*)> file(fopen(format("/proc/self/task/%d/stat", thread).c_str(), "re"), fclose);
    if (!file || fscanf(file.get(), "%*d (%*[^)]) %c", &state) != 1) return;
  }
}

/**
 * Lets a thread send frames, each while this thread begins to wait for it. True if a doorbell is lost, or `send` returns false.
 * `prepare` runs in this thread before each of them.
 */
template <class Prepare, class Send>
bool losesDoorbell(Channel& reader, int frames, Prepare&& prepare, Send&& send) {
  std::atomic<int> wanted{0};
  // Both sides write to these cache lines: the frame becomes visible late.
  std::vector<std::atomic<int>> lines(16 * 16);
  auto touch = [&] {
    for (size_t i = 0; i < lines.size(); i += 16) lines[i].store(1, std::memory_order_relaxed);
  };
  std::atomic<bool> lost{false};
  TestThread sender([&] {
    for (int sent = 0; sent < frames; sent++) {
      while (wanted.load() <= sent) relax();
      touch();
      if (!lost && !send()) lost = true;
    }
  });
  Channel::Wait wait;
  wait.frame = true;
  Frame frame;
  char elements[kMaxInlined];
  for (int got = 0; got < frames && !lost; got++) {
    prepare();
    touch();
    wanted = got + 1;
    // For different times, so that some frames are sent just when this thread has looked.
    for (int i = got % 64; i > 0; i--) relax();
    while (!lost && !reader.receiveFrame(frame, elements)) {
      pollfd polled{reader.descriptor(), POLLIN, 0};
      if (!reader.arm(wait) && poll(&polled, 1, 10000) == 0) lost = true;
      reader.disarm();
    }
  }
  wanted = frames;
  sender.join();
  return lost;
}

}  // namespace host

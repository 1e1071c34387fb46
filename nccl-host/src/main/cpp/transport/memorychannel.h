// memorychannel.h: a channel through memory that both ranks map, where the system has memfd.
//
// Each direction has slots of one cache line for frames and the elements of short messages, and a ring of bytes for all other
// elements. The number in a slot tells that its frame has arrived, and the elements in the slots after it, so the reader of a
// short message looks at one place. It does not answer each frame: it reports the slots that it has read a quarter of them at a
// time, and returns a credit for a Send that did not wait for its Recv. The socket between the two ranks serves as doorbell and
// reports the death of the peer. A memfd has no name: the kernel frees it when its last user ends, in any way.
//
// Many elements need not pass the ring: their sender offers them, and the receiver copies them from the memory of the
// sender's process: through the kernel (cross-memory attach), or by itself if that is its own process. The sender waits for the
// answer before it sends anything else. If the system refuses the copy, the receiver says so in its answer, and the elements
// pass the ring.
#pragma once

#include "transport/channel.h"

namespace host {

class MemoryChannel final : public Channel {
 public:
  /** Size of a ring in bytes, by the number of ranks of the communicator. */
  static size_t ringBytes(int ranks);
  /** Allocates the memory of a new connection; returns an invalid descriptor if none is available. */
  static Fd newMemory(size_t ringBytes);

  MemoryChannel(Fd socket, const Fd& memory, size_t ringBytes, bool first);
  ~MemoryChannel() override;

  /** Slots of a frame with its elements. */
  static uint32_t slotsOf(const Frame& frame) { return slotsFor(frame.inlined); }

  /** Always for reading: the doorbells of the peer arrive there. */
  short events(const Wait& wait) const override { return wait.reads() || wait.writes() ? POLLIN : 0; }
  bool arm(const Wait& wait) override;
  void disarm() override;
  long sendQueued(Fifo<Outgoing>& queue) override;
  bool sendFrame(const Frame& frame, const char* elements = nullptr) override;
  long send(iovec* parts, size_t count) override;
  bool hasRoomForFrame(size_t elements) override { return hasSlots(slotsFor(elements)); }
  /** True if half of the slots are free. */
  bool hasRoomForOptionalFrame() override;
  bool hasRoomFor(size_t bytes) override { return bytes == 0 || room(bytes) >= bytes; }
  bool putFrame(const Frame& frame, const char* elements) override;
  void wakeReader() override;
  void putBytes(const char* bytes, size_t size) override;
  void prefetchForPut(size_t elements) const override;
  void prefetchForReceive(size_t elements) const override;
  int receiveFrame(Frame& frame, char* elements) override;
  bool hasFrame() const override;
  bool isNext(FrameKind kind) const override;
  long receive(void* data, size_t size) override;
  const char* readable(size_t& size) override;
  size_t available() override;
  void consume(size_t size) override;
  void returnCredit() override;
  uint32_t takeCredits() override;
  void permitCopies(bool sameProcess = false) override;
  bool offers() const override { return peerProcess_ != 0 && !refused_; }
  bool takeAnswer(size_t& left) override;
  void accept(const Offer& offer) override;
  void withdraw() override;
  void announceMessage() override;

 private:
  struct Slot;
  struct Ring;
  struct Unmap {
    size_t bytes;
    void operator()(Ring* rings) const;
  };
  bool takeFrame(Frame& frame, char* elements);
  bool readDoorbell();
  void ringDoorbell();
  void wakeWriter();
  static uint32_t slotsFor(size_t elements);
  bool hasSlots(uint32_t wanted);
  size_t room(size_t wanted = 1);
  void write(const char* bytes, size_t size);
  long copyOffered(void* data, size_t size);
  /** These return the number of bytes copied; 0 if the system refuses it or the peer has withdrawn its offer. */
  size_t copyFromProcess(void* data, size_t size) const;
  size_t copyWithinProcess(void* data, size_t size);
  void answer(size_t left);

  std::unique_ptr<Ring[], Unmap> rings_;
  size_t size_ = 0;
  Ring* out_ = nullptr;
  Ring* in_ = nullptr;
  Slot* outSlots_ = nullptr;
  Slot* inSlots_ = nullptr;
  char* outData_ = nullptr;
  const char* inData_ = nullptr;
  // Positions of this side, and the last known ones of the peer: its memory is read only when they do not suffice.
  uint64_t written_ = 0;
  uint64_t read_ = 0;
  uint64_t peerWritten_ = 0;
  uint64_t peerRead_ = 0;
  uint32_t nextOut_ = kFirstFrame;  // numbers of slots
  uint32_t nextIn_ = kFirstFrame;
  uint32_t peerReadFrames_ = kFirstFrame;
  uint32_t creditsReturned_ = 0;
  uint32_t creditsTaken_ = 0;
  pid_t peerProcess_ = 0;  // 0: no copies
  bool sameProcess_ = false;
  bool refused_ = false;   // this side must not offer
  Offer accepted_;         // what is left of it
  bool armed_ = false;
};

}  // namespace host

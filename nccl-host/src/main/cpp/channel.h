// channel.h: the stream of frames and elements between two ranks.
//
// Where the system has memfd, the bytes go through memory that both ranks map. Each direction has slots of one cache line
// for frames and the elements of short messages, and a ring of bytes for all other elements. The number in a slot tells
// that its frame has arrived, and the elements in the slots after it, so the reader of a short message looks at one place.
// It does not answer each frame: it reports the slots that it has read a quarter of them at a time, and returns a credit for a
// Send that did not wait for its Recv. The socket between the two ranks serves as doorbell and reports the death of the peer.
// A memfd has no name: the kernel frees it when its last user ends, in any way. Without memfd all bytes go through the socket.
//
// Many elements need not pass the ring: their sender offers them, and the receiver copies them from the memory of the
// sender's process: through the kernel (cross-memory attach), or by itself if that is its own process. The sender waits for the
// answer before it sends anything else. If the system refuses the copy, the receiver says so in its answer, and the elements
// pass the ring.
#pragma once

#include <atomic>
#include <memory>

#include "socket.h"
#include "wire.h"

namespace host {

class Channel {
 public:
  Channel() = default;
  Channel(Channel&&) noexcept = default;
  Channel& operator=(Channel&&) noexcept = default;

  /** Size of a ring in bytes, by the number of ranks of the communicator. */
  static size_t ringBytes(int ranks);
  /** Allocates the memory of a new connection; returns an invalid descriptor if none is available. */
  static Fd newMemory(size_t ringBytes);

  /** Takes the socket, and the memory if it is valid. `first` selects the ring that this side writes. */
  void open(Fd socket, const Fd& memory, size_t ringBytes, bool first);

  bool valid() const { return socket_.valid(); }
  /** To be polled for reading, even while this side waits for space in its ring. */
  int descriptor() const { return socket_.get(); }
  bool shared() const { return rings_ != nullptr; }

  /** The event that a side waits for. */
  struct Wait {
    bool frame = false;       // to arrive
    size_t bytes = 0;         // to arrive
    uint32_t freeSlots = 0;
    bool room = false;        // in the ring
    bool answer = false;      // to an offer
    bool credit = false;
  };

  /** Elements in the memory of the process that sends them. */
  struct Offer {
    uint64_t address = 0;
    uint64_t token = 0;    // address of the token of the process
    uint64_t process = 0;  // this token
    size_t size = 0;
  };

  /** Slots of a frame with its elements. */
  static uint32_t slotsOf(const Frame& frame) { return slotsFor(frame.inlined); }
  /** True if a frame with this many bytes of elements can be sent now. Only for shared memory. */
  bool hasRoomForFrame(size_t elements) { return hasSlots(slotsFor(elements)); }
  /** True if half of the slots are free: those for frames that need not be sent. Only for shared memory. */
  bool hasRoomForOptionalFrame();
  /** Sends a frame with its elements, with the next number; false if its slots are not free. Only for shared memory. */
  bool sendFrame(const Frame& frame, const char* elements = nullptr);
  /**
   * sendFrame in parts, for frames to several ranks: putFrame for each, fence, and wakeReader for each. One fence waits until
   * this processor owns all their slots.
   */
  bool putFrame(const Frame& frame, const char* elements);
  static void fence();
  void wakeReader();
  /** True if the ring has room for this many bytes. Only for shared memory. */
  bool hasRoomFor(size_t bytes) { return bytes == 0 || room(bytes) >= bytes; }
  /** Writes bytes for which the ring has room. A putFrame and wakeReader must follow. */
  void putBytes(const char* bytes, size_t size);
  /** Moves the slots of the next frame to this processor's cache, as writable or to be read. */
  void prefetchForPut(size_t elements) const;
  void prefetchForReceive(size_t elements) const;
  /**
   * True if it received a frame. Its elements go to `elements`, of kMaxInlined bytes, unless they are in its words. Only for
   * shared memory.
   */
  bool receiveFrame(Frame& frame, char* elements);
  /** Returns a credit to the peer. Only for shared memory. */
  void returnCredit();
  /** The number of credits that the peer has returned since the last call. */
  uint32_t takeCredits();
  /** True if the next frame has arrived. Only for shared memory. */
  bool hasFrame() const;
  /** The same for a frame of this kind. */
  bool isNext(FrameKind kind) const;
  /** As sendParts of socket.h; may modify the parts. */
  long send(iovec* parts, size_t count);
  /** As receiveSome of socket.h. Copies the elements of an accepted offer before others. */
  long receive(void* data, size_t size);

  /**
   * Permits this side to copy from the peer's process, and to offer its own elements. Only for shared memory.
   * `sameProcess`: the peer says that it is in this process; believed if the kernel says so, too.
   */
  void permitCopies(bool sameProcess = false);
  /** True if this side may offer its elements: that is permitted, and the peer has refused no offer. */
  bool offers() const { return peerProcess_ != 0 && !refused_; }
  /** True once the peer has answered this side's offer; the last `left` bytes of the offer must then be sent. */
  bool takeAnswer(size_t& left);
  /** Makes the next receives copy these elements. They answer the offer after the last byte, or when a copy fails. */
  void accept(const Offer& offer);
  /**
   * Withdraws an unanswered offer, before its memory may change or be freed: a copy through the kernel that ends later is
   * discarded, the end of another one is awaited.
   */
  void withdraw();

  /** The bytes that can be read in place, up to the end of the ring. Only for shared memory. */
  const char* readable(size_t& size);
  /** Number of bytes that can be read, also beyond the end of the ring. Only for shared memory. */
  size_t available();
  /** Removes bytes that were read in place. */
  void consume(size_t size);
  /**
   * Requests a doorbell from the peer for when one of these can continue. Call before polling the descriptor. Returns true if
   * one of them can continue now; the caller must not wait then.
   */
  bool arm(const Wait& wait);
  /** Ends the request of arm and takes the doorbells that arrived. */
  void disarm();
  /** True if the end of the peer was seen; bytes may still be readable. */
  bool ended() const { return ended_; }

  /** Makes messageAnnounced true at the peer. Call after a message on the control stream to that peer. */
  void announceMessage();
  /** True once for all announcements of the peer; always true without shared memory. */
  bool messageAnnounced() {
    if (announcements_ == nullptr) return true;
    uint32_t announcements = announcements_->load();
    if (announcements == announcementsSeen_) return false;
    announcementsSeen_ = announcements;
    return true;
  }
  /** Ends this side's sending. The peer can still read the bytes that were sent. */
  void endSending();
  void reset();

 private:
  struct Slot;
  struct Ring;
  struct Unmap {
    size_t bytes;
    void operator()(Ring* rings) const;
  };
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

  Fd socket_;
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
  const std::atomic<uint32_t>* announcements_ = nullptr;  // of the peer; NULL without shared memory
  uint32_t announcementsSeen_ = 0;
  uint32_t creditsReturned_ = 0;
  uint32_t creditsTaken_ = 0;
  pid_t peerProcess_ = 0;  // 0: no copies
  bool sameProcess_ = false;
  bool refused_ = false;   // this side must not offer
  Offer accepted_;         // what is left of it
  bool armed_ = false;
  bool ended_ = false;
};

}  // namespace host

// channel.h: the connection between two ranks for frames and elements, as the protocol uses it.
//
// MemoryChannel is one through memory that both ranks map, SocketChannel one through a socket. Code that uses a channel does not
// ask which one it has, but what it can do: a Capability, or the result of a call. A function that a channel cannot do has no
// effect and returns 0, false or NULL. A new transport derives from Channel, and openChannel or the bootstrap makes it.
#pragma once

#include <math.h>

#include <atomic>
#include <memory>
#include <string>

#include "base/fifo.h"
#include "transport/socket.h"
#include "transport/wire.h"

namespace host {

/** Queued bytes: a frame stored here with its elements, or memory of the caller. */
struct Outgoing {
  Frame frame;
  std::string elements;  // of the frame, if they are not in its words
  const char* data = nullptr;  // NULL: the frame is sent
  size_t size = 0;
  size_t sent = 0;
  bool offered = false;  // the Data frame before offers these bytes
};

/** The abilities of a channel. Equal at both ends. */
enum class Capability : uint32_t {
  // A rank sees what arrives without a system call.
  Polling = 1,
  // Elements can be read where they arrive, with readable() and consume().
  ReadInPlace = 2,
  // Frames that the peer does not take can wait in the channel, without an end to other frames.
  OptionalFrames = 4,
  // The peer returns credits, for Sends that do not wait for their Recv.
  Credits = 8,
  // Elements may be offered in a frame, for the receiver to copy.
  Offers = 16,
};

/** This class itself is a channel that is not connected. */
class Channel {
 public:
  Channel() = default;
  Channel(const Channel&) = delete;
  virtual ~Channel() = default;

  bool valid() const { return socket_.valid(); }
  bool has(Capability capability) const { return (capabilities_ & static_cast<uint32_t>(capability)) != 0; }
  /** Maximum number of bytes of elements that belong to a frame; equal at both ends. */
  size_t maxInlined() const { return maxInlined_; }
  /** True if the end of the peer was seen; bytes may still be readable. A channel without Polling sees it when it receives. */
  bool ended() const { return ended_; }

  /** Takes the socket before anything was sent, for another channel in place of this one. */
  Fd takeSocket() { return std::move(socket_); }

  /** The event that a side waits for. */
  struct Wait {
    bool frame = false;       // to arrive
    size_t bytes = 0;         // to arrive
    const Frame* outgoing = nullptr;  // to be sent
    bool room = false;        // for elements
    bool answer = false;      // to an offer
    bool credit = false;

    bool reads() const { return frame || bytes > 0; }
    bool writes() const { return outgoing != nullptr || room || answer || credit; }
  };

  /** Elements in the memory of the process that sends them. */
  struct Offer {
    uint64_t address = 0;
    uint64_t token = 0;    // address of the token of the process
    uint64_t process = 0;  // this token
    size_t size = 0;
  };

  /** The descriptor to be polled, also for writing. */
  int descriptor() const { return socket_.get(); }
  /** The events of the descriptor to poll for. */
  virtual short events(const Wait& wait) const { return static_cast<short>((wait.reads() ? POLLIN : 0) | (wait.writes() ? POLLOUT : 0)); }
  /**
   * Announces the wait to the peer. Call before polling the descriptor. Returns true if one of the events is there now; the caller
   * must not wait then.
   */
  virtual bool arm(const Wait&) { return false; }
  /** The time at which to call again, if that may be before the descriptor shows an event. */
  virtual double nextLook(const Wait&) const { return HUGE_VAL; }
  /** Ends the wait of arm. */
  virtual void disarm() {}

  /** Sends from the front of the queue, which offers nothing there: the number of bytes, 0 if it must wait, -1 if the peer has ended. */
  virtual long sendQueued(Fifo<Outgoing>&) { return -1; }
  /** Sends a frame with its elements at once, with the next number; false if it cannot: it must then be queued. */
  virtual bool sendFrame(const Frame&, const char* /*elements*/ = nullptr) { return false; }
  /** Sends elements: the number of bytes, 0 if it must wait, -1 if the peer has ended. May modify the parts. */
  virtual long send(iovec*, size_t) { return -1; }
  /** True if a frame with this many bytes of elements can be sent now. */
  virtual bool hasRoomForFrame(size_t) { return false; }
  /** The same for a frame that need not be sent. Needs Capability::OptionalFrames. */
  virtual bool hasRoomForOptionalFrame() { return false; }
  /** True if this many bytes can be sent now. */
  virtual bool hasRoomFor(size_t) { return false; }

  // sendFrame in parts, for frames to several ranks: putFrame for each, fence, and wakeReader for each. One fence waits until this
  // processor owns all their slots. Only after hasRoomForFrame.
  virtual bool putFrame(const Frame&, const char*) { return false; }
  static void fence() { std::atomic_thread_fence(std::memory_order_seq_cst); }
  virtual void wakeReader() {}
  /** Writes bytes after hasRoomFor. A putFrame and wakeReader must follow. */
  virtual void putBytes(const char*, size_t) {}
  /** Moves the memory of the next frame to this processor's cache, as writable or to be read. */
  virtual void prefetchForPut(size_t) const {}
  virtual void prefetchForReceive(size_t) const {}

  static constexpr int kEnd = -1;
  static constexpr int kGarbled = -2;
  /**
   * Receives a frame without waiting: 1, 0 if there is none, kEnd, or kGarbled if it is none of this connection. Its elements go to
   * `elements`, of kMaxInlined bytes, unless they are in its words.
   */
  virtual int receiveFrame(Frame&, char*) { return kEnd; }
  /** True if the next frame has arrived; and if it is of this kind. Only with Capability::Polling. */
  virtual bool hasFrame() const { return false; }
  virtual bool isNext(FrameKind) const { return false; }
  /** Receives elements: the number of bytes, 0 if there are none, -1 at the end. Those of an accepted offer come before others. */
  virtual long receive(void*, size_t) { return -1; }

  /** The bytes that can be read in place without a gap. Needs Capability::ReadInPlace. */
  virtual const char* readable(size_t& size) {
    size = 0;
    return nullptr;
  }
  /** Number of bytes that can be read, also after a gap. */
  virtual size_t available() { return 0; }
  /** Removes bytes that were read in place. */
  virtual void consume(size_t) {}

  /** Returns a credit to the peer. */
  virtual void returnCredit() {}
  /** The number of credits that the peer has returned since the last call. */
  virtual uint32_t takeCredits() { return 0; }

  /**
   * Permits this side to copy from the peer's process, and to offer its own elements. `sameProcess`: the peer says that it is in
   * this process; believed if the kernel says so, too.
   */
  virtual void permitCopies(bool /*sameProcess*/ = false) {}
  /** True if this side may offer its elements: that is permitted, and the peer has refused no offer. */
  virtual bool offers() const { return false; }
  /** True once the peer has answered this side's offer; the last `left` bytes of the offer must then be sent. */
  virtual bool takeAnswer(size_t& left) {
    left = 0;
    return false;
  }
  /** Makes the next receives copy these elements. They answer the offer after the last byte, or when a copy fails. */
  virtual void accept(const Offer&) {}
  /**
   * Withdraws an unanswered offer, before its memory may change or be freed: a copy through the kernel that ends later is
   * discarded, the end of another one is awaited.
   */
  virtual void withdraw() {}

  /** Makes messageAnnounced true at the peer. Call after a message on the control stream to that peer. */
  virtual void announceMessage() {}
  /** True once for all announcements of the peer; always true on a channel without announcements. */
  bool messageAnnounced() {
    if (announcements_ == nullptr) return true;
    uint32_t announcements = announcements_->load();
    if (announcements == announcementsSeen_) return false;
    announcementsSeen_ = announcements;
    return true;
  }
  /** Ends this side's sending. The peer can still read the bytes that were sent. */
  void endSending();

 protected:
  Channel(Fd socket, uint32_t capabilities, size_t maxInlined)
      : socket_(std::move(socket)), capabilities_(capabilities), maxInlined_(maxInlined) {}

  Fd socket_;
  const std::atomic<uint32_t>* announcements_ = nullptr;  // of the peer
  uint32_t announcementsSeen_ = 0;
  bool ended_ = false;

 private:
  const uint32_t capabilities_ = 0;
  const size_t maxInlined_ = 0;
};

/**
 * Makes a channel through the memory if it is valid, else through the socket. `first` is true at one of its ends: it selects the
 * ring that this end writes.
 */
std::unique_ptr<Channel> openChannel(Fd socket, const Fd& memory, size_t ringBytes, bool first);

}  // namespace host

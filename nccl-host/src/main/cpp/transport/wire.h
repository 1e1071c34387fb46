// wire.h: messages between the ranks of a communicator.
// A pair of ranks has two streams. The data stream carries frames and elements. The control stream carries failure
// reports and Close messages, which must arrive even if the data stream is full. Ranks that put have one additional lane
// in each direction, since puts arrive at any time; between hosts it is one for both directions. Both ends come from the same build,
// so plain structs are sent.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "base/types.h"

namespace host {

constexpr uint32_t kWireMagic = 0x34484a4e;
constexpr uint32_t kWireVersion = 19;

enum class FrameKind : uint8_t {
  Collective,  // a rank has entered a collective; both sides compare
  Post,        // a rank called Send or Recv for the receiver of this frame; the elements of an eager Send are in it or follow
  Data,        // the elements of the next matched Send that is not eager, or many of a collective, follow or are offered
  Waiting,     // a rank has slept for a while in a short Broadcast; for the comparison of calls only
};

/** Maximum number of bytes of elements in the slots after a frame, in shared memory. */
constexpr size_t kMaxInlined = 540;

/** The fields of a collective's configuration that are set; 0 if none. See collconfig.cpp. */
using ConfigWords = std::array<uint64_t, 3>;

/** The Send that a Post announces. */
enum class SendKind : int8_t {
  Alone,
  AlsoReceives,  // its rank also called Recv with the same count and type
  Buffered,      // it does not wait for its Recv; its elements are in the frame. Only in shared memory
};

/**
 * The signature of a call, before its elements; with few elements, a whole message. As large as a cache line, so that a
 * message with elements in its words moves between two processors at once. By kind and call:
 *
 * Collective  AllReduce to Scatter   op, root, count  elements if inlined > 0, else `settings`
 *             AlltoAllv                               `matrices`
 *             CommSplit                               `pair`
 *             CommWindowRegister     flags, count     `pair`
 * Post        Send                   send, count      elements if inlined > 0, else `offer`
 *             Recv                   count
 * Data        as of the call         count            `offer`
 * Waiting     Broadcast              root, count      `settings`
 */
struct Frame {
  uint32_t number = 0;  // of the frames in this direction, from kFirstFrame
  FrameKind kind = FrameKind::Collective;
  Call call = Call::AllReduce;
  uint8_t type = 0;
  union {
    int8_t op = 0;  // ncclRedOp_t or kPreMulSum; 0 without an operator
    SendKind send;
  };
  uint16_t sequence = 0;  // Collective: its number; Post: that of the last collective before it; see Matcher
  uint16_t inlined = 0;   // number of bytes of elements that belong to the frame: in words, or in the slots after it
  union {
    int32_t root = 0;  // 0 without a root
    int32_t peer;
    int32_t flags;
  };
  uint64_t count = 0;  // of elements; of a window: of bytes
  union {
    uint64_t words[5] = {};  // elements, if they have room here
    struct {
      ConfigWords config;
      uint64_t collective;  // Waiting: the number of the call, from Matcher
      uint64_t scalar;      // PreMulSum: that of this rank
    } settings;
    struct {
      uint64_t hashes[3];  // of all send counts, receive counts and receive displacements: equal at all ranks
      uint64_t sendCount;  // to the receiver of the frame
      uint64_t recvCount;  // from it
    } matrices;
    int64_t pair[2];  // color and key, or address and 0
    struct {
      uint64_t address;  // of the elements; 0: none are offered
      uint64_t token;    // address of the token of their process
    } offer;
  };

  /** Adds at most kMaxInlined bytes of elements: copies them into the words if they are few, else they follow the frame. */
  void add(const void* elements, size_t bytes);
  /** The elements that belong to this frame. `after`: those that followed it, if the words have no room. */
  const char* elements(const char* after) const {
    return inlined <= sizeof words ? reinterpret_cast<const char*>(words) : after;
  }

  bool sends() const { return kind == FrameKind::Post && call == Call::Send; }
  bool receives() const {
    return kind == FrameKind::Post && (call == Call::Recv || (sends() && send == SendKind::AlsoReceives));
  }
  bool isBuffered() const { return sends() && send == SendKind::Buffered; }
  /** False for a call with elements in its frame. */
  bool hasConfig() const { return isConfigurable(call) && inlined == 0; }
  ConfigWords config() const { return hasConfig() ? settings.config : ConfigWords{}; }
};
static_assert(sizeof(Frame) == 64, "no padding in frames");

/** Number of frames of earlier calls that may wait: to take one as it arrives would stop the peer at its next one. */
constexpr size_t kLateFrames = 16;

/** Minimum number of bytes of elements that are offered, in shared memory. */
constexpr size_t kMany = 64 << 10;

/** Near the end of the numbers, so that they wrap around in every longer run, and not only after 4 billion frames. */
constexpr uint32_t kFirstFrame = 0u - 200;

/** Number of buffered Sends to a rank that may lack their Recv: as many as NCCL has buffers. */
constexpr size_t kMostBuffered = 8;
/** Maximum number of bytes of each: the slots of a channel hold them all. */
constexpr size_t kMaxBuffered = 256;

/** Signals with equal keys are counted together: those of one rank, for one context and index. */
struct SignalKey {
  int rank = 0;
  int context = 0;
  int index = 0;
  bool operator<(const SignalKey& other) const {
    return std::tie(rank, context, index) < std::tie(other.rank, other.context, other.index);
  }
};
using SignalCounts = std::map<SignalKey, uint64_t>;

/** Header of a put or a signal, on a lane; the bytes of the put follow. */
struct PutFrame {
  uint32_t magic = kWireMagic;
  int32_t context = 0;
  int32_t signal = 0;
  uint32_t unused = 0;
  uint64_t window = 0;  // numbered per communicator
  uint64_t offset = 0;
  uint64_t bytes = 0;
};
static_assert(sizeof(PutFrame) == 40, "no padding in frames");

enum class ControlKind : uint32_t {
  Close = 1,
  Fault,
  Abort,
  Lane,     // carries a socket: the lane for the sender's puts
  Regroup,  // carries a RegroupNote
  GrowId,   // carries an id of ncclCommGetUniqueId
};

/** A message of the control stream. */
struct Control {
  ControlKind kind = ControlKind::Close;
  int32_t code = 0;
  char text[504] = {};
};
static_assert(sizeof(Control) == 512, "no padding in control messages");

/** Data of one rank for the creation of a communicator from an existing one. */
struct RegroupNote {
  Call call = Call::CommShrink;
  uint64_t attempt = 0;  // numbered per parent
  uint64_t completed = 0;  // the last attempt that the sender completed
  uint64_t members = 0;  // hash of the list of ranks
  std::pair<int64_t, int64_t> pair;  // CommSplit: color and key
  ncclUniqueId id = {};  // of the rank that serves the rendezvous
};
static_assert(sizeof(RegroupNote) < sizeof Control::text, "fits a control message");

/** The error that another process reported; ncclRemoteError if its number is no error. */
ncclResult_t failureOfPeer(int32_t code);

/** The call that a frame announces, in a user's notation: "AllReduce(ncclFloat32, count 10, ncclSum)". */
std::string describe(const Frame& frame);

}  // namespace host

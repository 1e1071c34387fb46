// wire.h: messages between the ranks of a communicator.
// A pair of ranks has two streams. The data stream carries frames and elements. The control stream carries failure
// reports and Close messages, which must arrive even if the data stream is full. Ranks that put have one additional lane
// in each direction, since puts arrive at any time. Both ends run on one machine and come from the same build, so plain
// structs are sent.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "types.h"

namespace host {

constexpr uint32_t kWireMagic = 0x34484a4e;
constexpr uint32_t kWireVersion = 15;

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

/**
 * The signature of a call, before its elements; with few elements, a whole message. As large as a cache line, so that a
 * message with elements in its words moves between two processors at once.
 */
struct Frame {
  uint32_t number = 0;  // of the frames in this direction, from kFirstFrame
  FrameKind kind = FrameKind::Collective;
  Call call = Call::AllReduce;
  uint8_t type = 0;
  int8_t op = 0;  // reductions: ncclRedOp_t or kPreMulSum; Post of a Send: kAlsoReceives, kBuffered or 0; else 0
  uint16_t sequence = 0;  // Collective: its number; Post: that of the last collective before it; see Entered
  uint16_t inlined = 0;  // number of bytes of elements that belong to the frame: in words, or in the slots after it
  int32_t root = 0;  // rooted calls: the root; Send and Recv: the peer; CommWindowRegister: the flags; else 0
  uint64_t count = 0;  // CommWindowRegister: of bytes
  // Elements, or numbers by FrameWord; calls that exchange two numbers: the numbers; configurable calls: their ConfigWords.
  uint64_t words[5] = {};

  /** Adds at most kMaxInlined bytes of elements: copies them into the words if they are few, else they follow the frame. */
  void add(const void* elements, size_t bytes);
};
static_assert(sizeof(Frame) == 64, "no padding in frames");

/** True if the frames of two ranks announce the same collective. Its words are numbers that must be equal, or elements. */
inline bool isSameCall(const Frame& one, const Frame& other) {
  bool same = one.kind == FrameKind::Collective && other.kind == FrameKind::Collective &&
              one.sequence == other.sequence && one.call == other.call &&
              one.type == other.type && one.op == other.op && one.root == other.root && one.count == other.count;
  if (!same || one.inlined > 0 || other.inlined > 0) return same;
  uint64_t difference = 0;
  for (size_t i = 0; i < std::tuple_size_v<ConfigWords>; i++) difference |= one.words[i] ^ other.words[i];
  return difference == 0;
}

/** Number of frames of earlier calls that may wait: to take one as it arrives would stop the peer at its next one. */
constexpr size_t kLateFrames = 16;

/** Minimum number of bytes of elements that are offered, in shared memory. */
constexpr size_t kMany = 64 << 10;

/** Near the end of the numbers, so that they wrap around in every longer run, and not only after 4 billion frames. */
constexpr uint32_t kFirstFrame = 0u - 200;

/** Frame::op of the Post of a Send whose rank also called Recv with the same count and type. */
constexpr int8_t kAlsoReceives = 1;
/** Frame::op of the Post of a Send that does not wait for its Recv; its elements are in the frame. Only in shared memory. */
constexpr int8_t kBuffered = 2;

/** Number of such Sends to a rank that may lack their Recv: as many as NCCL has buffers. */
constexpr size_t kMostBuffered = 8;
/** Maximum number of bytes of each: the slots of a channel hold them all. */
constexpr size_t kMaxBuffered = 256;

inline bool isBuffered(const Frame& frame) {
  return frame.kind == FrameKind::Post && frame.call == Call::Send && frame.op == kBuffered;
}

/**
 * Indexes of Frame::words. AlltoAllv: hashes of matrices that must agree, and the two counts of this pair. PreMulSum: this
 * rank's scalar. Data, and the Post of a large Send: the addresses of offered elements, and of the token of their process; 0 if
 * they are not offered in this frame. Waiting: the number of the collective, from Entered.
 */
enum FrameWord {
  kHashSendCounts, kHashRecvCounts, kHashRecvDisplacements, kSendCount, kRecvCount,
  kScalar = 4,
  kAddress = 0, kToken = 1,
  kCollective = 4,
};

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

// wire.h: messages between the ranks of a communicator.
// A pair of ranks has two streams. The data stream carries frames and elements. The control stream carries failure
// reports and Close messages, which must arrive even if the data stream is full. Ranks that put have one additional lane
// in each direction, since puts arrive at any time. Both ends run on one machine and come from the same build, so plain
// structs are sent.
#pragma once

#include <array>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "types.h"

namespace host {

constexpr uint32_t kWireMagic = 0x34484a4e;
constexpr uint32_t kWireVersion = 5;

enum class FrameKind : uint8_t {
  Collective,  // a rank has entered a collective; both sides compare
  Post,        // a rank called Send or Recv for the receiver of this frame; the elements of an eager Send follow
  Data,        // the elements of the next matched Send that is not eager follow
};

/** The fields of a collective's configuration that are set; 0 if none. See collconfig.cpp. */
using ConfigWords = std::array<uint64_t, 3>;

/** The signature of a call, sent before its elements. */
struct Frame {
  uint32_t magic = kWireMagic;
  FrameKind kind = FrameKind::Collective;
  Call call = Call::AllReduce;
  uint8_t type = 0;
  uint8_t unused = 0;
  int32_t op = 0;    // reductions: ncclRedOp_t or kPreMulSum, else 0
  int32_t root = 0;  // rooted calls: the root; Send and Recv: the peer; else 0
  uint64_t count = 0;
  uint64_t bytes = 0;   // Post and Data: number of bytes that follow
  uint64_t scalar = 0;  // PreMulSum: this rank's scalar
  // AlltoAllv: see AlltoAllvExtra; calls that exchange two numbers: the numbers; configurable calls: their ConfigWords.
  uint64_t extra[5] = {};
};
static_assert(sizeof(Frame) == 80, "no padding in frames");

/** Indexes of Frame::extra for AlltoAllv: hashes of matrices that must agree, and the two counts of this pair. */
enum AlltoAllvExtra { kHashSendCounts, kHashRecvCounts, kHashRecvDisplacements, kSendCount, kRecvCount };

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

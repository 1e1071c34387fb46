// task.cpp: descriptions of calls, and the error for calls that do not match.

#include "task.h"

#include <algorithm>

#include "collconfig.h"

namespace host {

Frame Operation::frame() const {
  Frame frame;
  frame.call = call;
  frame.type = static_cast<uint8_t>(type);
  frame.op = op;
  frame.root = root;
  frame.count = count;
  frame.scalar = scalar;
  if (call == Call::AlltoAllv) {
    std::copy_n(rows->hashes, 3, frame.extra);
  }
  if (exchangesPairs(call)) {
    frame.extra[0] = static_cast<uint64_t>(ownPair.first);
    frame.extra[1] = static_cast<uint64_t>(ownPair.second);
  }
  if (isConfigurable(call)) std::copy(config.begin(), config.end(), frame.extra);
  return frame;
}

ncclResult_t failureOfPeer(int32_t code) {
  bool isError = code > ncclSuccess && code < ncclNumResults && code != ncclInProgress;
  return isError ? static_cast<ncclResult_t>(code) : ncclRemoteError;
}

std::string describe(const Frame& frame) {
  std::string text = callName(frame.call);
  if (exchangesPairs(frame.call) || frame.call == Call::CommSplitId || frame.call == Call::WaitSignal) return text;
  text += format("(%s", typeName(frame.type));
  if (frame.call != Call::AlltoAllv) text += format(", count %llu", static_cast<unsigned long long>(frame.count));
  if (isReduction(frame.call)) text += format(", %s", opName(frame.op));
  if (isRooted(frame.call)) text += format(", root %d", frame.root);
  if (frame.call == Call::Send || frame.call == Call::PutSignal || frame.call == Call::Signal) {
    text += format(", to rank %d", frame.root);
  }
  if (frame.call == Call::Recv) text += format(", from rank %d", frame.root);
  return text + ")";
}

void Task::failMismatch(const Peer& peer, const Frame& theirs, const Frame& mine) const {
  fail(
      ncclInvalidUsage, "rank %d called %s while rank %d called %s", peer.rank, describe(theirs).c_str(), comm_.rank,
      describe(mine).c_str());
}

void Task::failUnintelligible(const Peer& peer) {
  fail(ncclInternalError, "rank %d sent something unintelligible", peer.rank);
}

}  // namespace host

// task.cpp: operations, and descriptions of their frames.

#include "protocol/task.h"

#include <string.h>

#include <algorithm>

namespace host {

// Never destroyed: threads of streams continue while the process ends.
const Extras& Operation::kNoExtras = *new Extras;

Extras& Operation::addExtras() {
  if (extras_.use_count() != 1) extras_ = std::make_shared<Extras>(extras());
  return *extras_;
}

Frame Operation::frame() const {
  Frame frame;
  frame.call = call;
  frame.type = static_cast<uint8_t>(type);
  frame.op = static_cast<int8_t>(op);
  frame.root = root;
  frame.count = count;
  if (!hasExtras()) return frame;
  if (call == Call::AlltoAllv) std::copy_n(extras().rows->hashes, 3, frame.matrices.hashes);
  if (call == Call::CommWindowRegister) {
    frame.count = extras().windowBytes;
    frame.flags = extras().windowFlags;
  }
  if (exchangesPairs(call)) {
    frame.pair[0] = extras().ownPair.first;
    frame.pair[1] = extras().ownPair.second;
  }
  if (isConfigurable(call)) frame.settings.config = extras().config;
  if (op == kPreMulSum) frame.settings.scalar = extras().scalar;
  return frame;
}

std::string nameOf(const Operation* operations, size_t count) {
  Call call = operations->call;
  bool same = std::all_of(operations, operations + count, [&](const Operation& other) { return other.call == call; });
  return same ? callName(call) : "Send/Recv";
}

void Frame::add(const void* elements, size_t bytes) {
  inlined = static_cast<uint16_t>(bytes);
  if (bytes > 0 && bytes <= sizeof words) memcpy(words, elements, bytes);
}

ncclResult_t failureOfPeer(int32_t code) {
  bool isError = code > ncclSuccess && code < ncclNumResults && code != ncclInProgress;
  return isError ? static_cast<ncclResult_t>(code) : ncclRemoteError;
}

std::string describe(const Frame& frame) {
  std::string text = callName(frame.call);
  if (frame.call == Call::CommWindowRegister) {
    return text + format("(%llu bytes, flags %d)", static_cast<unsigned long long>(frame.count), frame.flags);
  }
  if (exchangesPairs(frame.call) || frame.call == Call::CommSplitId || frame.call == Call::WaitSignal) return text;
  text += format("(%s", typeName(frame.type));
  if (frame.call != Call::AlltoAllv) text += format(", count %llu", static_cast<unsigned long long>(frame.count));
  if (isReduction(frame.call)) text += format(", %s", opName(frame.op));
  if (isRooted(frame.call)) text += format(", root %d", frame.root);
  if (frame.call == Call::Send || frame.call == Call::PutSignal || frame.call == Call::Signal) {
    text += format(", to rank %d", frame.peer);
  }
  if (frame.call == Call::Recv) text += format(", from rank %d", frame.peer);
  return text + ")";
}

}  // namespace host

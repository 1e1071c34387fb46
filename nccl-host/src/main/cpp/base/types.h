// types.h: names and sizes of datatypes, operators and calls.
#pragma once

#include <string>

#include "base/abi.h"

namespace host {

/** The kind of a call. The values travel between processes. */
enum class Call : uint8_t {
  AllReduce,
  Broadcast,
  Reduce,
  AllGather,
  ReduceScatter,
  AlltoAll,
  Gather,
  Scatter,
  AlltoAllv,
  CommSplit,    // exchange of colors and keys
  CommSplitId,  // exchange of the children's ids
  Send,
  Recv,
  CommWindowRegister,
  PutSignal,
  Signal,
  WaitSignal,
  CommShrink,
  CommGrow,
};

/** Number on the wire of any operator that a rank created, since handles may differ between ranks. */
constexpr int kPreMulSum = ncclNumOps;

/** The name as in NCCL's messages: "AllReduce". */
const char* callName(Call call);

/** True for calls on an existing communicator; false for those that create communicators. */
bool isOperation(Call call);

constexpr bool isPointToPoint(Call call) { return call == Call::Send || call == Call::Recv; }

/** True for puts, signals, and waits for signals. */
constexpr bool isOneSided(Call call) {
  return call == Call::PutSignal || call == Call::Signal || call == Call::WaitSignal;
}

/** True for calls in which each rank sends two numbers to all others. */
constexpr bool exchangesPairs(Call call) { return call == Call::CommSplit || call == Call::CommWindowRegister; }

/** True for calls that fold elements with an operator. */
constexpr bool isReduction(Call call) {
  return call == Call::AllReduce || call == Call::Reduce || call == Call::ReduceScatter;
}

/** True for calls that have a root. */
constexpr bool isRooted(Call call) {
  return call == Call::Broadcast || call == Call::Reduce || call == Call::Gather || call == Call::Scatter;
}

/** True for calls that accept a configuration. */
constexpr bool isConfigurable(Call call) {
  return call == Call::AlltoAll || call == Call::AllGather || isReduction(call) || isRooted(call);
}

constexpr bool validType(int type) { return type >= 0 && type < ncclNumTypes; }
constexpr size_t typeSize(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
    case ncclFloat8e4m3:
    case ncclFloat8e5m2: return 1;
    case ncclFloat16:
    case ncclBfloat16: return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32: return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64: return 8;
    default: return 0;
  }
}
const char* typeName(int type);
const char* opName(int op);

}  // namespace host

// types.h: names and sizes of datatypes, operators and calls.
#pragma once

#include <string>

#include "abi.h"

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

bool isPointToPoint(Call call);

/** True for puts, signals, and waits for signals. */
bool isOneSided(Call call);

/** True for calls in which each rank sends two numbers to all others. */
bool exchangesPairs(Call call);

/** True for calls that fold elements with an operator. */
bool isReduction(Call call);

/** True for calls that have a root. */
bool isRooted(Call call);

bool validType(int type);
size_t typeSize(ncclDataType_t type);
const char* typeName(int type);
const char* opName(int op);

}  // namespace host

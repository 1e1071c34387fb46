// types.h: names and sizes of datatypes, operators and calls.
#pragma once

#include <string>

#include "abi.h"

namespace host {

/** What a rank called. The values travel between processes. */
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

/** An operator that a rank created; its number on the wire, since handles may differ between ranks. */
constexpr int kPreMulSum = ncclNumOps;

/** The name as NCCL writes it in its messages: "AllReduce". */
const char* callName(Call call);

/** True for what users call on a communicator that is made; false for the making of others. */
bool isOperation(Call call);

bool isPointToPoint(Call call);

/** True for puts, signals, and the waiting for signals. */
bool isOneSided(Call call);

/** True for calls in which each rank tells two numbers to all others. */
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

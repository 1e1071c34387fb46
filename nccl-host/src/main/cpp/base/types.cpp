// types.cpp: the tables for types.h.

#include "base/types.h"

namespace host {

const char* callName(Call call) {
  switch (call) {
    case Call::AllReduce: return "AllReduce";
    case Call::Broadcast: return "Broadcast";
    case Call::Reduce: return "Reduce";
    case Call::AllGather: return "AllGather";
    case Call::ReduceScatter: return "ReduceScatter";
    case Call::AlltoAll: return "AlltoAll";
    case Call::Gather: return "Gather";
    case Call::Scatter: return "Scatter";
    case Call::AlltoAllv: return "AlltoAllv";
    case Call::CommSplit: return "CommSplit";
    case Call::CommSplitId: return "CommSplit";
    case Call::Send: return "Send";
    case Call::Recv: return "Recv";
    case Call::CommWindowRegister: return "CommWindowRegister";
    case Call::PutSignal: return "PutSignal";
    case Call::Signal: return "Signal";
    case Call::WaitSignal: return "WaitSignal";
    case Call::CommShrink: return "CommShrink";
    case Call::CommGrow: return "CommGrow";
  }
  return "an unknown call";
}

bool isOperation(Call call) {
  return call != Call::CommSplit && call != Call::CommSplitId && call != Call::CommShrink && call != Call::CommGrow;
}

const char* typeName(int type) {
  static const char* const names[] = {"ncclInt8",    "ncclUint8",   "ncclInt32",   "ncclUint32",
                                      "ncclInt64",   "ncclUint64",  "ncclFloat16", "ncclFloat32",
                                      "ncclFloat64", "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"};
  return validType(type) ? names[type] : "an invalid type";
}

const char* opName(int op) {
  static const char* const names[] = {"ncclSum", "ncclProd", "ncclMax", "ncclMin", "ncclAvg", "PreMulSum"};
  return op >= 0 && op <= kPreMulSum ? names[op] : "an invalid operator";
}

}  // namespace host

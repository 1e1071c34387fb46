// faults.h: injected failures, so that programs can test their reaction to failures of ranks.
//
// NCCL4J_HOST_FAULT lists faults, separated by semicolons. Each has an action and, after commas, conditions:
//
//     delay=1.5,rank=2; drop,rank=1,op=3; result=6,call=Broadcast
//
// delay=SECONDS  the operation begins later
// hang           the operation never begins; only abort, revoke, an aborting shrink, or the rank's own deadline ends it
// result=CODE    the operation fails with this ncclResult_t; the other ranks see the failure of a rank
// drop           the communicator's connections end without a message, as if the process had died
// kill           the process gets SIGKILL
//
// rank=N   at this rank of the communicator; default: every rank
// call=X   operations with this name ("AllReduce", "Send"), or calls that make a communicator of this one ("CommSplit", "CommShrink",
//          "CommGrow"); default: all operations
// op=K     at the K-th matching operation of a communicator, counted from 1, or at all with op=all; default: the
//          first. op=0 is the creation of the communicator
//
// Faults apply to communicators that are created from an id. Communicators created from others (split, shrink, grow)
// have no faults, so that programs can test the recovery from a failure.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/types.h"

namespace host {

enum class FaultKind { Delay, Hang, Result, Drop, Kill };

struct Fault {
  FaultKind kind = FaultKind::Delay;
  double seconds = 0;
  ncclResult_t code = ncclSuccess;
  int rank = -1;            // -1: every rank
  std::string call;         // empty: every call
  long long operation = 1;  // -1: all
  long long seen = 0;
};

/** The faults of one communicator at one rank. */
class Faults {
 public:
  /** Reads the current environment. Throws if the value is invalid. */
  static std::unique_ptr<Faults> fromEnvironment(int rank);

  /** The faults at the creation of the communicator. */
  std::vector<Fault> atCreation() const;

  /** Counts a call and returns the faults that apply to it. */
  std::vector<Fault> at(Call call);

 private:
  std::mutex mutex_;
  std::vector<Fault> faults_;
};

/** Performs the fault's action after the delay: ends the process, or throws. */
void injectFault(const Fault& fault, const std::string& what);

}  // namespace host

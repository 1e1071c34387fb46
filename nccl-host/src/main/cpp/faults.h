// faults.h: failures on demand, so that programs can test what they do about those of others.
//
// NCCL4J_HOST_FAULT holds faults, separated by semicolons: what happens, and after commas where:
//
//     delay=1.5,rank=2; drop,rank=1,op=3; result=6,call=Broadcast
//
// delay=SECONDS  the operation begins later
// hang           the operation never begins; only abort, revoke, a shrink that aborts, or the rank's own deadline end it
// result=CODE    the operation fails with that ncclResult_t, and at the other ranks as any failure of a rank does
// drop           the communicator's connections end without a farewell, as if the process had died
// kill           the process gets SIGKILL
//
// rank=N   at that rank of the communicator; without it at every rank
// call=X   operations of that name only ("AllReduce", "Send"); without it all
// op=K     at the K-th of those operations of a communicator, counted from 1, or at all of them with op=all; without it
//          the first. op=0 is the making of the communicator
//
// Faults are for communicators that are made from an id. Those that are made from others (split, shrink, grow) have none,
// so that what follows a failure can be tested.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "types.h"

namespace host {

enum class FaultKind { Delay, Hang, Result, Drop, Kill };

struct Fault {
  FaultKind kind = FaultKind::Delay;
  double seconds = 0;
  ncclResult_t code = ncclSuccess;
  int rank = -1;            // every one
  std::string call;         // every one
  long long operation = 1;  // -1: all
  long long seen = 0;
};

/** The faults of one communicator at one rank. */
class Faults {
 public:
  /** As the environment has it now. Throws when that can't be read. */
  static std::unique_ptr<Faults> fromEnvironment(int rank);

  /** Those of the making of the communicator. */
  std::vector<Fault> atCreation() const;

  /** Counts a call; those that concern it. */
  std::vector<Fault> at(Call call);

 private:
  std::mutex mutex_;
  std::vector<Fault> faults_;
};

/** What is to happen after the delay: ends the process, or throws. */
void strike(const Fault& fault, const std::string& what);

}  // namespace host

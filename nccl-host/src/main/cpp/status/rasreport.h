// rasreport.h: the state of the ranks of a process, the message with it for another process, and the reports on a job.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "status/ras.h"

namespace host {

/** A rank of a communicator. */
struct RankStatus {
  uint64_t hash = 0;  // of the communicator
  int32_t rank = 0;
  int32_t ranks = 0;
  int32_t device = 0;
  int32_t initState = 0;   // an ncclResult_t, as the next one
  int32_t asyncError = 0;
  uint8_t finalized = 0;  // flags, 0 or 1
  uint8_t destroyed = 0;
  uint8_t aborted = 0;
  uint8_t unused = 0;
  std::array<uint64_t, kCountedCalls> launched = {};
};
static_assert(sizeof(RankStatus) == 32 + 8 * kCountedCalls, "no padding in messages");

/** The process of a rank. */
struct Member {
  uint64_t process = 0;  // see processToken
  int32_t pid = 0;
  uint32_t ended = 0;      // 1: on the host of the process that says so, and ended
  uint64_t host = 0;       // see hostNumber
  NetworkAddress address;  // of its service, for other hosts; not valid if it has none
  char hostName[64] = {};
};
static_assert(sizeof(Member) == 112, "no padding in messages");

/** A rank, and the processes of all ranks of its communicator, by rank. */
struct RankReport {
  RankStatus status;
  std::vector<Member> members;
};

/** The message of a process about its ranks. */
std::string encode(const std::vector<RankReport>& ranks);

enum class Decoded {
  Incomplete,  // the bytes are the begin of a message
  Complete,
  Invalid,
};

/** Reads a message from the bytes of another process. */
Decoded decode(const std::string& bytes, std::vector<RankReport>& ranks);

enum class Response {
  Answered,
  Silent,     // gave no answer, or no valid one, within the timeout
  NoService,  // the process lives, without communicators
  Dead,
};

struct ProcessStatus {
  Member member;
  Response response = Response::Silent;
  std::vector<RankStatus> ranks;
};

/** The state of a job, as its processes reported it. */
struct Job {
  std::map<uint64_t, ProcessStatus> processes;            // by process token
  std::map<uint64_t, std::vector<Member>> communicators;  // by hash; the members by rank
  double seconds = 0;                                     // of the collection of the data

  /** Adds what a process reported. Ignores a rank that contradicts an earlier report. */
  void add(uint64_t process, int32_t pid, const std::vector<RankReport>& ranks);
};

std::string textReport(const Job& job, bool verbose);
std::string jsonReport(const Job& job);

/** The local time, as in "2026-01-31 23:59:59". */
std::string timeOfDay();

/** A process of an event: "Process 12 on node here managing GPU 0". */
std::string describe(const ProcessStatus& process);

/** As JSON; `indent` precedes each of its lines but the first. */
std::string describeAsJson(const ProcessStatus& process, const char* indent);

}  // namespace host

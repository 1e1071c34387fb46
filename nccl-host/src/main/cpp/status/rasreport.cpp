// rasreport.cpp: messages between the services of processes, and reports in the layout of NCCL's, which programs parse.

#include "status/rasreport.h"

#include <string.h>
#include <time.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "protocol/bootstrap.h"

namespace host {
namespace {

#define HOST_TEXT_OF(value) #value
#define HOST_DOTTED(major, minor, patch) HOST_TEXT_OF(major) "." HOST_TEXT_OF(minor) "." HOST_TEXT_OF(patch)

/** With the release, which tools also read from the file of the library. */
constexpr char kBanner[] = "NCCL version " HOST_DOTTED(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH);
constexpr const char* kRelease = kBanner + sizeof "NCCL version " - 1;

constexpr uint32_t kMessageMagic = 0x52484a4e;
constexpr uint32_t kMessageVersion = 2;

/** Limit for the message of a process, which another process may have garbled. */
constexpr uint64_t kMaxMessageBytes = 64 << 20;

struct MessageHeader {
  uint32_t magic = kMessageMagic;
  uint32_t version = kMessageVersion;
  uint64_t bytes = 0;  // that follow
};

template <class T>
void append(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class T>
bool take(const std::string& bytes, size_t& at, T& value) {
  if (bytes.size() - at < sizeof value) return false;
  memcpy(static_cast<void*>(&value), bytes.data() + at, sizeof value);
  at += sizeof value;
  return true;
}

bool isResult(int32_t code) { return code >= ncclSuccess && code < ncclNumResults; }

bool isPlausible(const RankStatus& rank) {
  return rank.ranks > 0 && rank.rank >= 0 && rank.rank < rank.ranks && rank.device >= 0 && isResult(rank.initState) &&
         isResult(rank.asyncError) && rank.finalized <= 1 && rank.destroyed <= 1 && rank.aborted <= 1;
}

/** The counted calls in the order of NCCL's reports, then those that NCCL does not count. */
constexpr std::array<Call, kCountedCalls> kReportedCalls = {
    Call::Broadcast, Call::Reduce, Call::AllGather, Call::ReduceScatter, Call::AllReduce,
    Call::AlltoAll,  Call::Gather, Call::Scatter,   Call::AlltoAllv};

/** The state of a rank in a report. A later one determines the state of the communicator. */
enum class Status : unsigned {
  NoComm,  // its process answered, but does not know the communicator
  Init,
  Running,
  Finalize,
  Abort,
};
constexpr const char* kStatusNames[] = {"NOCOMM", "INIT", "RUNNING", "FINALIZE", "ABORT"};

Status statusOf(const RankStatus& rank) {
  return rank.aborted                       ? Status::Abort
         : rank.finalized || rank.destroyed ? Status::Finalize
         : rank.initState == ncclSuccess    ? Status::Running
                                            : Status::Init;
}

/** Kinds of errors; a communicator may have several. */
enum ErrorKind : unsigned { kMismatch = 1, kError = 2, kIncomplete = 4 };
constexpr const char* kErrorNames[] = {
    "OK",         "MISMATCH",            "ERROR",            "ERROR,MISMATCH",
    "INCOMPLETE", "INCOMPLETE,MISMATCH", "INCOMPLETE,ERROR", "INCOMPLETE,ERROR,MISMATCH"};

bool isError(int32_t code) { return code != ncclSuccess && code != ncclInProgress; }

/** Ranks with the same value. */
struct Group {
  uint64_t value = 0;
  std::vector<int> ranks;
};

/** The largest group first. */
std::vector<Group> groupsOf(const std::map<uint64_t, std::vector<int>>& byValue) {
  std::vector<Group> groups;
  for (const auto& [value, ranks] : byValue) groups.push_back({value, ranks});
  std::stable_sort(
      groups.begin(), groups.end(), [](const Group& a, const Group& b) { return a.ranks.size() > b.ranks.size(); });
  return groups;
}

/** A communicator, with what the answers say about it. */
struct Communicator {
  uint64_t hash;
  const std::vector<Member>* processes;  // by rank
  std::vector<const RankStatus*> ranks;  // NULL: missing
  unsigned status = 0;                   // bits by Status
  unsigned errors = 0;                   // of ErrorKind
  std::vector<int> incomplete;           // ranks whose process did not answer
  std::vector<int> left;                 // ranks whose process answered, without this communicator

  Communicator(uint64_t hashOfComm, const std::vector<Member>& membersOfComm)
      : hash(hashOfComm), processes(&membersOfComm), ranks(membersOfComm.size()) {}

  size_t size() const { return ranks.size(); }
  const Member& member(size_t rank) const { return (*processes)[rank]; }

  size_t answered() const { return size() - incomplete.size() - left.size(); }

  Status highestStatus() const {
    unsigned highest = 0;
    for (unsigned bits = status; bits > 1; bits >>= 1) highest++;
    return static_cast<Status>(highest);
  }

  /** Compares communicators of one line of the summary. */
  auto summary() const { return std::make_tuple(size(), highestStatus(), errors); }
};

const ProcessStatus& processOf(const Job& job, const Member& member) { return job.processes.at(member.process); }

std::vector<Communicator> communicatorsOf(const Job& job) {
  std::map<uint64_t, size_t> index;
  std::vector<Communicator> all;
  for (const auto& [hash, members] : job.communicators) {
    index[hash] = all.size();
    all.emplace_back(hash, members);
  }
  for (const auto& [token, process] : job.processes) {
    for (const RankStatus& rank : process.ranks) {
      all[index.at(rank.hash)].ranks[static_cast<size_t>(rank.rank)] = &rank;
    }
  }
  for (Communicator& comm : all) {
    const RankStatus* first = nullptr;
    for (size_t i = 0; i < comm.size(); i++) {
      const RankStatus* rank = comm.ranks[i];
      if (rank == nullptr) {
        Response response = processOf(job, comm.member(i)).response;
        bool left = response == Response::Answered || response == Response::NoService;
        (left ? comm.left : comm.incomplete).push_back(static_cast<int>(i));
        continue;
      }
      comm.status |= 1u << static_cast<unsigned>(statusOf(*rank));
      if (isError(rank->initState) || isError(rank->asyncError)) comm.errors |= kError;
      if (first == nullptr) first = rank;
      if (rank->launched != first->launched) comm.errors |= kMismatch;
    }
    if (!comm.left.empty()) comm.status |= 1u << static_cast<unsigned>(Status::NoComm);
    if (!comm.incomplete.empty()) comm.errors |= kIncomplete;
    if ((comm.status & (comm.status - 1)) != 0) comm.errors |= kMismatch;
  }
  return all;
}

std::set<int> devicesOf(const ProcessStatus& process) {
  std::set<int> devices;
  for (const RankStatus& rank : process.ranks) devices.insert(rank.device);
  // That of a process that did not answer: ranks have another one only if one process made them all.
  if (devices.empty()) devices.insert(0);
  return devices;
}

std::string listOf(const std::set<int>& numbers) {
  std::string list;
  for (int number : numbers) list += (list.empty() ? "" : ",") + std::to_string(number);
  return list;
}

/** The name of the host of a process. */
std::string nodeOf(const Member& member) { return *member.hostName == '\0' ? "unknown" : member.hostName; }

const char* plural(size_t count) { return count == 1 ? "" : "s"; }

/** NCCL names each member of a group only if these are few: up to 10, and a quarter of all; verbose, up to a half of all. */
bool isNamed(size_t count, bool verbose) { return count == 1 || verbose || count <= 10; }
bool isNamed(size_t count, bool verbose, size_t all) {
  return count == 1 || (verbose ? count * 2 < all : count <= 10 && count * 4 <= all);
}

class TextReport {
 public:
  TextReport(const Job& job, bool verbose) : job_(job), verbose_(verbose) {}

  std::string text() {
    out_ = format("%s, host engine of nccl4j\n\n", kBanner);
    addJob();
    addCommunicators();
    out_ += "\nErrors\n======\n\n";
    addProcesses("INCOMPLETE", Response::Silent, "gave no answer within the timeout");
    addProcesses("DEAD", Response::Dead, "ended without notice");
    forEach([&](const std::string& title, const Communicator& comm) { addErrors(title, comm); });
    out_ += "Warnings\n========\n\n";
    forEach([&](const std::string& title, const Communicator& comm) { addMismatches(title, comm); });
    return std::move(out_);
  }

 private:
  void addJob() {
    Range perProcess, perNode;
    size_t devices = 0;
    std::map<uint64_t, size_t> nodes;
    for (const auto& [token, process] : job_.processes) {
      size_t own = devicesOf(process).size();
      perProcess.add(own);
      devices += own;
      nodes[process.member.host]++;
    }
    for (const auto& [host, count] : nodes) perNode.add(count);
    size_t processes = job_.processes.size();
    out_ += format(
        "Job summary\n===========\n\n  Nodes  Processes         GPUs  Processes     GPUs\n"
        "(total)   per node  per process    (total)  (total)\n%7zu  %9s  %11s  %9zu  %7zu\n",
        nodes.size(), perNode.text().c_str(), perProcess.text().c_str(), processes, devices);
  }

  void addCommunicators() {
    out_ += format("\nCommunicators... (%.3fs)\n=============\n\n", job_.seconds);
    std::vector<Communicator> all = communicatorsOf(job_);
    if (all.empty()) out_ += "No communicator data collected!\n";
    std::stable_sort(all.begin(), all.end(), [](const Communicator& a, const Communicator& b) {
      return std::make_pair(a.summary(), b.answered()) > std::make_pair(b.summary(), a.answered());
    });
    for (Communicator& comm : all) {
      if (lines_.empty() || lines_.back().front().summary() != comm.summary()) lines_.emplace_back();
      lines_.back().push_back(std::move(comm));
    }
    if (lines_.empty()) return;
    out_ +=
        "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n"
        "    #  in group  per comm  per node  per comm  in group\n";
    for (size_t line = 0; line < lines_.size(); line++) {
      const std::vector<Communicator>& comms = lines_[line];
      std::set<std::pair<uint64_t, size_t>> ranks;  // process, and rank
      Range nodes, perNode;
      for (const Communicator& comm : comms) {
        std::map<uint64_t, size_t> answered;  // by host
        for (size_t rank = 0; rank < comm.ranks.size(); rank++) {
          answered[comm.member(rank).host] += comm.ranks[rank] != nullptr;
          if (comm.ranks[rank] != nullptr) ranks.insert({comm.member(rank).process, rank});
        }
        nodes.add(answered.size());
        for (const auto& [host, count] : answered) perNode.add(count);
      }
      out_ += format(
          "%5zu  %8zu  %8s  %8s  %8zu  %8zu  %8s  %6s\n", line, comms.size(), nodes.text().c_str(), perNode.text().c_str(),
          comms.front().size(), ranks.size(),
          kStatusNames[static_cast<size_t>(comms.front().highestStatus())], kErrorNames[comms.front().errors]);
    }
  }

  struct Range {
    size_t least = SIZE_MAX, most = 0;

    void add(size_t number) {
      least = std::min(least, number);
      most = std::max(most, number);
    }
    std::string text() const { return least == most ? format("%zu", most) : format("%zu-%zu", least, most); }
  };

  template <class Body>
  void forEach(Body&& body) {
    for (size_t line = 0; line < lines_.size(); line++) {
      for (size_t i = 0; i < lines_[line].size(); i++) {
        const Communicator& comm = lines_[line][i];
        body(format("#%zu-%zu (%016llx)", line, i, static_cast<unsigned long long>(comm.hash)), comm);
      }
    }
  }

  void addProcesses(const char* title, Response response, const char* what) {
    std::vector<const ProcessStatus*> found;
    for (const auto& [token, process] : job_.processes) {
      if (process.response == response) found.push_back(&process);
    }
    if (found.empty()) return;
    out_ += format("%s\n  %zu process%s of the job %s\n", title, found.size(), found.size() == 1 ? "" : "es", what);
    if (isNamed(found.size(), verbose_)) {
      std::sort(found.begin(), found.end(), [](auto* a, auto* b) { return a->member.pid < b->member.pid; });
      for (const ProcessStatus* process : found) out_ += "  " + describe(*process) + "\n";
    }
    out_ += "\n";
  }

  static std::string place(const Communicator& comm, int rank) {
    const RankStatus* status = comm.ranks[static_cast<size_t>(rank)];
    const Member& member = comm.member(static_cast<size_t>(rank));
    return format(
        "GPU %d managed by process %d on node %s", status == nullptr ? 0 : status->device, member.pid, nodeOf(member).c_str());
  }

  void addRanks(const Communicator& comm, const std::vector<int>& ranks) {
    for (int rank : ranks) out_ += format("  Rank %d -- %s\n", rank, place(comm, rank).c_str());
  }

  void addErrors(const std::string& title, const Communicator& comm) {
    if (comm.errors & kIncomplete) {
      out_ += format(
          "%s INCOMPLETE\n  No data of %zu rank%s\n", title.c_str(), comm.incomplete.size(),
          plural(comm.incomplete.size()));
      if (isNamed(comm.incomplete.size(), verbose_)) addRanks(comm, comm.incomplete);
      out_ += "\n";
    }
    if ((comm.errors & kError) == 0) return;
    out_ += title + " ERROR\n";
    addResults(comm, "Initialization", &RankStatus::initState);
    addResults(comm, "Asynchronous", &RankStatus::asyncError);
    out_ += "\n";
  }

  void addResults(const Communicator& comm, const char* kind, int32_t RankStatus::*result) {
    std::map<uint64_t, std::vector<int>> byResult;
    size_t count = 0;
    for (const RankStatus* rank : comm.ranks) {
      if (rank == nullptr || !isError(rank->*result)) continue;
      byResult[static_cast<uint64_t>(rank->*result)].push_back(rank->rank);
      count++;
    }
    if (count == 0) return;
    out_ += format("  %s error%s on %zu rank%s\n", kind, plural(count), count, plural(count));
    for (const Group& group : groupsOf(byResult)) {
      addGroup(comm, group, isNamed(group.ranks.size(), verbose_), [](uint64_t code, bool) {
        return format("reported \"%s\"", ncclGetErrorString(static_cast<ncclResult_t>(code)));
      });
    }
  }

  /** Adds a line for a group, and one for each of its ranks; one line for a group of one rank. */
  template <class Describe>
  void addGroup(const Communicator& comm, const Group& group, bool named, Describe&& describeValue) {
    if (group.ranks.size() == 1) {
      int rank = group.ranks.front();
      out_ += format("  Rank %d %s -- %s\n", rank, describeValue(group.value, true).c_str(), place(comm, rank).c_str());
      return;
    }
    out_ += format("  %zu ranks %s\n", group.ranks.size(), describeValue(group.value, false).c_str());
    if (named) addRanks(comm, group.ranks);
  }

  void addMismatches(const std::string& title, const Communicator& comm) {
    if ((comm.errors & kMismatch) == 0) return;
    out_ += title + " MISMATCH\n";
    if ((comm.status & (comm.status - 1)) != 0) addStatus(comm);
    for (Call call : kReportedCalls) addCounts(comm, call);
  }

  void addStatus(const Communicator& comm) {
    std::map<uint64_t, std::vector<int>> byStatus;
    for (const RankStatus* rank : comm.ranks) {
      if (rank != nullptr) byStatus[static_cast<uint64_t>(statusOf(*rank))].push_back(rank->rank);
    }
    if (!comm.left.empty()) byStatus[static_cast<uint64_t>(Status::NoComm)] = comm.left;
    out_ += "  The status differs between ranks\n";
    addGroups(comm, byStatus, [](uint64_t status, bool one) {
      return format("%s status %s", one ? "has" : "have", kStatusNames[status]);
    });
  }

  void addCounts(const Communicator& comm, Call call) {
    std::map<uint64_t, std::vector<int>> byCount;
    for (const RankStatus* rank : comm.ranks) {
      if (rank != nullptr) byCount[rank->launched[static_cast<size_t>(call)]].push_back(rank->rank);
    }
    if (byCount.size() < 2) return;
    out_ += format("  The number of %s operations differs between ranks\n", callName(call));
    addGroups(comm, byCount, [](uint64_t count, bool one) {
      return format("%s launched %llu", one ? "has" : "have", static_cast<unsigned long long>(count));
    });
  }

  template <class Describe>
  void addGroups(const Communicator& comm, const std::map<uint64_t, std::vector<int>>& byValue, Describe&& describeValue) {
    for (const Group& group : groupsOf(byValue)) {
      addGroup(comm, group, isNamed(group.ranks.size(), verbose_, comm.size()), describeValue);
    }
    out_ += "\n";
  }

  const Job& job_;
  const bool verbose_;
  std::vector<std::vector<Communicator>> lines_;  // of the summary
  std::string out_;
};

/** A machine name has no other characters; it is the only text of the system in a report. */
std::string quoted(const Member& member) {
  std::string plain = "\"";
  for (char c : nodeOf(member)) plain += c == '"' || c == '\\' ? '?' : c;
  return plain + '"';
}

const char* boolean(bool value) { return value ? "true" : "false"; }

std::string jsonOf(const RankStatus& rank, const Member& member) {
  std::string out = format(
      "        {\n          \"rank\": %d,\n          \"host\": %s,\n          \"pid\": %d,\n          \"cuda_dev\": %d,\n"
      "          \"nvml_dev\": %d,\n          \"status\": {\n            \"init_state\": %d,\n"
      "            \"async_error\": %d,\n            \"finalize_called\": %s,\n            \"destroy_flag\": %s,\n"
      "            \"abort_flag\": %s\n          },\n          \"collective_counts\": {\n",
      rank.rank, quoted(member).c_str(), member.pid, rank.device, rank.device, rank.initState, rank.asyncError,
      boolean(rank.finalized), boolean(rank.destroyed), boolean(rank.aborted));
  for (Call call : kReportedCalls) {
    out += format(
        "            \"%s\": %llu%s\n", callName(call),
        static_cast<unsigned long long>(rank.launched[static_cast<size_t>(call)]),
        call == kReportedCalls.back() ? "" : ",");
  }
  return out + "          }\n        }";
}

std::string jsonOfMissing(size_t rank, const Member& member, Response response) {
  bool dead = response == Response::Dead;
  return format(
      "        {\n          \"rank\": %zu,\n          \"host\": %s,\n          \"pid\": %d,\n          \"cuda_dev\": 0,\n"
      "          \"nvml_dev\": 0,\n          \"status\": {\n            \"unresponsive\": %s,\n"
      "            \"considered_dead\": %s\n          }\n        }",
      rank, quoted(member).c_str(), member.pid, boolean(dead || response == Response::Silent), boolean(dead));
}

std::string joined(const std::vector<std::string>& elements) {
  std::string out;
  for (const std::string& element : elements) out += (out.empty() ? "" : ",\n") + element;
  return out;
}

}  // namespace

std::string encode(const std::vector<RankReport>& ranks) {
  std::string body;
  for (const RankReport& rank : ranks) {
    append(body, rank.status);
    for (const Member& member : rank.members) append(body, member);
  }
  MessageHeader header;
  header.bytes = body.size();
  std::string message;
  append(message, header);
  return message + body;
}

Decoded decode(const std::string& bytes, std::vector<RankReport>& ranks) {
  MessageHeader header;
  size_t at = 0;
  if (!take(bytes, at, header)) return Decoded::Incomplete;
  if (header.magic != kMessageMagic || header.version != kMessageVersion || header.bytes > kMaxMessageBytes ||
      bytes.size() - at > header.bytes) {
    return Decoded::Invalid;
  }
  if (bytes.size() - at < header.bytes) return Decoded::Incomplete;
  ranks.clear();
  while (at < bytes.size()) {
    RankReport rank;
    if (!take(bytes, at, rank.status) || !isPlausible(rank.status)) return Decoded::Invalid;
    size_t count = static_cast<size_t>(rank.status.ranks);
    if ((bytes.size() - at) / sizeof(Member) < count) return Decoded::Invalid;
    rank.members.resize(count);
    for (Member& member : rank.members) {
      take(bytes, at, member);
      if (member.pid <= 0) return Decoded::Invalid;
      member.hostName[sizeof member.hostName - 1] = '\0';
      for (char* c = member.hostName; *c != '\0'; c++) {
        if (*c <= ' ' || *c > '~') *c = '?';
      }
    }
    ranks.push_back(std::move(rank));
  }
  return Decoded::Complete;
}

void Job::add(uint64_t process, int32_t pid, const std::vector<RankReport>& ranks) {
  ProcessStatus& own = processes[process];
  own.member.process = process;
  own.member.pid = pid;
  own.response = Response::Answered;
  for (const RankReport& rank : ranks) {
    auto known = communicators.find(rank.status.hash);
    const std::vector<Member>& members = known == communicators.end() ? rank.members : known->second;
    bool agrees = members.size() == rank.members.size() &&
                  members[static_cast<size_t>(rank.status.rank)].process == process &&
                  std::none_of(own.ranks.begin(), own.ranks.end(), [&](const RankStatus& other) {
                    return other.hash == rank.status.hash && other.rank == rank.status.rank;
                  });
    if (!agrees) continue;
    own.ranks.push_back(rank.status);
    own.member = members[static_cast<size_t>(rank.status.rank)];
    for (const Member& member : rank.members) {
      ProcessStatus& other = processes.emplace(member.process, ProcessStatus{member, Response::Silent, {}}).first->second;
      if (member.ended != 0) other.member.ended = 1;
    }
    if (known == communicators.end()) communicators[rank.status.hash] = rank.members;
  }
}

std::string textReport(const Job& job, bool verbose) { return TextReport(job, verbose).text(); }

std::string jsonReport(const Job& job) {
  std::vector<std::string> comms;
  for (const Communicator& comm : communicatorsOf(job)) {
    std::vector<std::string> ranks, missing;
    for (size_t rank = 0; rank < comm.size(); rank++) {
      const Member& member = comm.member(rank);
      if (comm.ranks[rank] != nullptr) {
        ranks.push_back(jsonOf(*comm.ranks[rank], member));
      } else {
        missing.push_back(jsonOfMissing(rank, member, processOf(job, member).response));
      }
    }
    comms.push_back(format(
        "    {\n      \"hash\": \"0x%llx\",\n      \"secondary_hash\": \"0x0:0x%x\",\n      \"size\": %zu,\n"
        "      \"ranks_count\": %zu,\n      \"missing_ranks_count\": %zu,\n      \"ranks\": [\n",
        static_cast<unsigned long long>(comm.hash), static_cast<unsigned>(comm.member(0).pid),
        comm.size(), ranks.size(), missing.size()) +
        joined(ranks) + "\n      ],\n      \"missing_ranks\": [\n" + joined(missing) + "\n      ]\n    }");
  }
  long silent = std::count_if(job.processes.begin(), job.processes.end(), [](const auto& process) {
    return process.second.response == Response::Silent;
  });
  return format(
             "{\n  \"nccl_version\": \"%s\",\n  \"cuda_runtime_version\": -1,\n  \"cuda_driver_version\": -1,\n"
             "  \"timestamp\": \"%s\",\n  \"communicators_count\": %zu,\n  \"communicators\": [\n",
             kRelease, timeOfDay().c_str(), comms.size()) +
         joined(comms) +
         format(
             "\n  ],\n  \"ras\": {\n    \"collection_time_sec\": %.3f,\n    \"timeouts_count\": %ld\n  }\n}\n",
             job.seconds, silent);
}

std::string timeOfDay() {
  time_t seconds = time(nullptr);
  tm local{};
  localtime_r(&seconds, &local);
  return format(
      "%04d-%02d-%02d %02d:%02d:%02d", local.tm_year + 1900, local.tm_mon + 1, local.tm_mday, local.tm_hour,
      local.tm_min, local.tm_sec);
}

std::string describe(const ProcessStatus& process) {
  std::set<int> devices = devicesOf(process);
  return format(
      "Process %d on node %s managing GPU%s %s", process.member.pid, nodeOf(process.member).c_str(), plural(devices.size()),
      listOf(devices).c_str());
}

std::string describeAsJson(const ProcessStatus& process, const char* indent) {
  std::string devices = listOf(devicesOf(process));
  return format(
      "{\n%s  \"host\": %s,\n%s  \"pid\": %d,\n%s  \"cuda_devs\": [%s],\n%s  \"nvml_devs\": [%s]\n%s}", indent,
      quoted(process.member).c_str(), indent, process.member.pid, indent, devices.c_str(), indent, devices.c_str(), indent);
}

}  // namespace host

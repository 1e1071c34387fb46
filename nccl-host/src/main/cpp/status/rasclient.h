// rasclient.h: the connection to one client of the status service, and the collection of the data that it asks for.
#pragma once

#include <math.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "status/rasreport.h"
#include "transport/proof.h"
#include "transport/socket.h"

namespace host {

/** Groups of events, as bits. */
enum RasEvents : unsigned { kLifecycleEvents = 1, kTraceEvents = 2 };

/** A line of a client. */
struct RasCommand {
  enum class Kind { Protocol, Timeout, Format, Status, Monitor, Error };
  Kind kind = Kind::Error;
  double timeout = 0;    // seconds
  bool json = false;     // Format
  bool verbose = false;  // Status
  unsigned events = 0;   // Monitor: of RasEvents
  std::string reason;    // Error: the response
};

/** Understands a line without its end. */
RasCommand parseRasCommand(const std::string& line);

/** The ranks of this process, at the moment. */
using OwnRanks = std::function<std::vector<RankReport>()>;

/** False if the process has ended, even if its parent does not know yet. */
bool isAlive(pid_t pid);

/** The abstract name at which the service of a process answers those of others. It does not reveal the token. */
std::string rasSocketName(uint64_t process);
/** For a connection to this service; its secret is the token. */
Proof rasProof(uint64_t process, Link link = Link::Any);

/** Asks all processes of the job, at once, for their ranks. */
class Collection {
 public:
  /** Begins with this process. */
  Collection(const OwnRanks& ownRanks, double timeout);

  /** Continues without waiting. */
  void advance();
  bool complete() const { return asked_.empty(); }
  /** Valid when complete. */
  const Job& job() const { return job_; }

  void addDescriptors(std::vector<pollfd>& polled) const;
  /** The time at which to call advance() without an arrival. */
  double deadline() const;

 private:
  struct Asked {
    Fd fd;  // invalid: not connected yet
    std::optional<Proof> proof;  // until both ends have proven that they know the token
    std::string bytes;
  };

  void add(uint64_t process, int32_t pid, const std::vector<RankReport>& ranks);
  /** Continues with one process; true if its response is known. */
  bool ask(uint64_t process, Asked& asked);
  bool isOnOtherHost(const ProcessStatus& process) const { return process.member.host != host_; }
  /** For a process that does not listen. */
  void setAbsent(uint64_t process, ProcessStatus& status);
  void judgeAbsentOfOtherHosts();

  const uint64_t host_;
  const double started_;
  const double deadline_;
  Job job_;
  std::set<uint64_t> known_;         // process tokens
  std::set<uint64_t> absent_;        // of other hosts
  std::map<uint64_t, Asked> asked_;  // without a response yet, by process token
};

class RasClient {
 public:
  /** A connection that asks with commands. */
  RasClient(Fd fd, const OwnRanks& ownRanks);
  /** A connection of another process, which is sent this message after the proof. */
  RasClient(Fd fd, const Proof& proof, std::function<std::string()> message);

  /** Continues without waiting. */
  void advance();
  bool ended() const { return state_ == State::Ended; }
  /** True until the other process has proven that it may ask. */
  bool proves() const { return state_ == State::Proving; }
  /** The time at which the connection is closed if nothing happens; HUGE_VAL: never. */
  double expires() const { return expires_; }

  void addDescriptors(std::vector<pollfd>& polled) const;
  /** The time at which to call advance() without an arrival. */
  double deadline() const;

 private:
  enum class State {
    Proving,
    Commands,    // reads commands, and may send events
    Collecting,  // waits for the data of a report
    Sending,     // sends the rest, then ends
    Ended,
  };

  void prove();
  void readCommands();
  void execute(const RasCommand& command);
  void advanceCollection();
  void sendEvents(const Job& job);
  void sendEvent(RasEvents group, const char* event, const ProcessStatus& process);
  void flush();

  Fd fd_;
  std::optional<Proof> proof_;  // while Proving, as the next one
  std::function<std::string()> message_;
  const OwnRanks ownRanks_;
  State state_;
  double expires_;  // when the connection is closed if nothing happens
  std::string in_;
  std::string out_;
  double timeout_;
  bool json_ = false;
  bool verbose_ = false;
  std::unique_ptr<Collection> collection_;

  unsigned events_ = 0;                     // monitored groups
  double nextCollection_ = 0;               // for events
  std::map<uint64_t, Response> monitored_;  // the last response of each process
};

}  // namespace host

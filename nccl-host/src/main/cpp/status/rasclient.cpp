// rasclient.cpp: the commands of clients, and the questions to the other processes of the job.

#include "status/rasclient.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/processors.h"
#include "base/settings.h"
#include "protocol/bootstrap.h"

namespace host {
namespace {

constexpr int kProtocol = 2;

/** Seconds that other processes have for their answers, unless the client sets them; the longest time. */
constexpr double kDefaultTimeout = 5;
constexpr double kMaxTimeout = 3600;

constexpr size_t kMaxLine = 1024;

/** Limit for the events that a client does not read. */
constexpr size_t kMaxUnsentEvents = 1 << 20;

/** Maximum number of reads in a row, so that a client that sends without end cannot block other work. */
constexpr int kTurns = 16;

/** Seconds for the next command, and for the client to read what it asked for. */
constexpr double kPatience = 300;

/** Seconds for the proof of another process. */
constexpr double kProofPatience = 5;

/** Seconds between the collections for events, and between attempts to connect to a process. */
constexpr double kMonitorPeriod = 1;
constexpr double kConnectRetry = 0.001;

/** Limit for the processes of a job, which others name. */
constexpr size_t kMaxProcesses = 4096;

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

/** If the line begins with the word, in upper or lower case, stores the rest. */
bool startsWith(const std::string& line, const char* word, std::string& rest) {
  std::string prefix = word;
  if (lower(line.substr(0, prefix.size())) != prefix) return false;
  rest = line.substr(prefix.size());
  return true;
}

RasCommand commandOf(RasCommand::Kind kind) {
  RasCommand command;
  command.kind = kind;
  return command;
}

RasCommand refuse(const char* reason, const std::string& text) {
  RasCommand command;
  // A terminal would obey other characters.
  command.reason = format("ERROR: %s %s", reason, printable(text).c_str());
  return command;
}

RasCommand parseTimeout(const std::string& text) {
  RasCommand command = commandOf(RasCommand::Kind::Timeout);
  // Else a NUL would end the number.
  bool isNumber = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  if (!isNumber || !parseNumber(text.c_str(), command.timeout)) return refuse("Invalid timeout value", text);
  // In NCCL, 0 is no limit.
  if (command.timeout == 0 || command.timeout > kMaxTimeout) command.timeout = kMaxTimeout;
  return command;
}

RasCommand parseFormat(const std::string& text) {
  RasCommand command = commandOf(RasCommand::Kind::Format);
  command.json = lower(text) == "json";
  return command.json || lower(text) == "text" ? command : refuse("Invalid format", text);
}

RasCommand parseMonitor(const std::string& text) {
  RasCommand command = commandOf(RasCommand::Kind::Monitor);
  size_t at = std::min(text.find_first_not_of(' '), text.size());
  while (at < text.size()) {
    size_t end = std::min(text.find(',', at), text.size());
    std::string group = text.substr(at, end - at);
    if (lower(group) == "lifecycle") {
      command.events |= kLifecycleEvents;
    } else if (lower(group) == "trace") {
      command.events |= kTraceEvents;
    } else if (lower(group) == "all") {
      command.events |= kLifecycleEvents | kTraceEvents;
    } else {
      return refuse("Invalid event group", "'" + group + "'");
    }
    at = end + 1;
  }
  if (command.events == 0) command.events = kLifecycleEvents;
  return command;
}

Digest secretOf(uint64_t process) {
  Digest secret = {};
  memcpy(secret.data(), &process, sizeof process);
  return secret;
}

}  // namespace

bool isAlive(pid_t pid) {
  if (kill(pid, 0) != 0 && errno == ESRCH) return false;
  std::unique_ptr<FILE, int (*)(FILE*)> file(fopen(format("/proc/%d/stat", static_cast<int>(pid)).c_str(), "re"), fclose);
  char text[256] = {};
  if (!file || fread(text, 1, sizeof text - 1, file.get()) == 0) return true;
  // The state follows the name of the program, which is in parentheses.
  const char* end = strrchr(text, ')');
  return end == nullptr || strncmp(end, ") Z", 3) != 0;
}

RasCommand parseRasCommand(const std::string& line) {
  std::string rest;
  if (startsWith(line, "client protocol ", rest)) return commandOf(RasCommand::Kind::Protocol);
  if (startsWith(line, "timeout ", rest)) return parseTimeout(rest);
  if (startsWith(line, "set format ", rest)) return parseFormat(rest);
  if (lower(line) == "monitor") return parseMonitor("");
  if (startsWith(line, "monitor ", rest)) return parseMonitor(rest);
  if (lower(line) == "status" || lower(line) == "verbose status") {
    RasCommand command = commandOf(RasCommand::Kind::Status);
    command.verbose = lower(line) != "status";
    return command;
  }
  return refuse("Unknown command", line);
}

std::string rasSocketName(uint64_t process) {
  return socketName(hmac(secretOf(process), {"name"}).data(), "nccl4j-ras-");
}

Proof rasProof(uint64_t process, Link link) { return Proof(secretOf(process), rasSocketName(process), link); }

/* The collection. */

Collection::Collection(const OwnRanks& ownRanks, double timeout)
    : host_(hostNumber()), started_(now()), deadline_(started_ + timeout) {
  known_.insert(processToken());
  add(processToken(), currentProcess(), ownRanks());
  advance();
}

void Collection::add(uint64_t process, int32_t pid, const std::vector<RankReport>& ranks) {
  job_.add(process, pid, ranks);
  for (const auto& [token, status] : job_.processes) {
    if (known_.size() < kMaxProcesses && known_.insert(token).second) asked_.emplace(token, Asked());
  }
}

void Collection::advance() {
  for (auto at = asked_.begin(); at != asked_.end();) {
    // An answer may add others.
    at = ask(at->first, at->second) ? asked_.erase(at) : std::next(at);
  }
  if (now() >= deadline_) asked_.clear();
  if (!complete()) return;
  judgeAbsentOfOtherHosts();
  job_.seconds = now() - started_;
}

void Collection::setAbsent(uint64_t process, ProcessStatus& status) {
  if (isOnOtherHost(status)) {
    absent_.insert(process);
  } else {
    status.response = isAlive(status.member.pid) ? Response::NoService : Response::Dead;
  }
}

void Collection::judgeAbsentOfOtherHosts() {
  std::set<uint64_t> answered;
  for (const auto& [token, status] : job_.processes) {
    if (status.response == Response::Answered) answered.insert(status.member.host);
  }
  for (uint64_t process : absent_) {
    ProcessStatus& status = job_.processes[process];
    // The processes of its host know whether it has ended. Without an answer of that host, it may be the network.
    if (answered.count(status.member.host) != 0) status.response = status.member.ended != 0 ? Response::Dead : Response::NoService;
  }
  absent_.clear();
}

bool Collection::ask(uint64_t process, Asked& asked) {
  ProcessStatus& status = job_.processes[process];
  bool absent = false;
  try {
    if (!asked.fd.valid() && isOnOtherHost(status)) {
      absent = !status.member.address.valid();
      if (!absent) asked.fd = connectTo(status.member.address);
      asked.proof = rasProof(process, Link::Network);
    } else if (!asked.fd.valid()) {
      Connect result = connectTo(rasSocketName(process), asked.fd);
      if (result == Connect::TryAgain) return false;
      absent = result == Connect::Refused;
      asked.proof = rasProof(process);
    }
    if (!absent && asked.proof) {
      Proof::Step step = asked.proof->connect(asked.fd);
      if (step == Proof::Step::Waiting) return false;
      absent = step != Proof::Step::Proven;
      asked.proof.reset();
    }
    if (absent) {
      setAbsent(process, status);
      return true;
    }
    for (;;) {
      char buffer[16 << 10];
      long got = receiveSome(asked.fd.get(), buffer, sizeof buffer);
      if (got == 0) return false;
      if (got < 0) {
        setAbsent(process, status);
        return true;
      }
      asked.bytes.append(buffer, static_cast<size_t>(got));
      std::vector<RankReport> ranks;
      Decoded decoded = decode(asked.bytes, ranks);
      if (decoded == Decoded::Incomplete) continue;
      if (decoded == Decoded::Complete) add(process, status.member.pid, ranks);
      return true;
    }
  } catch (const Failure&) {
    // The system has no more sockets, for example.
    return true;
  }
}

void Collection::addDescriptors(std::vector<pollfd>& polled) const {
  for (const auto& [process, asked] : asked_) {
    if (asked.fd.valid()) polled.push_back({asked.fd.get(), asked.proof ? asked.proof->connectEvents() : static_cast<short>(POLLIN), 0});
  }
}

double Collection::deadline() const {
  bool unconnected = std::any_of(
      asked_.begin(), asked_.end(), [](const auto& asked) { return !asked.second.fd.valid(); });
  return unconnected ? std::min(deadline_, now() + kConnectRetry) : deadline_;
}

/* The client. */

RasClient::RasClient(Fd fd, const OwnRanks& ownRanks)
    : fd_(std::move(fd)),
      ownRanks_(ownRanks),
      state_(State::Commands),
      expires_(now() + kPatience),
      timeout_(kDefaultTimeout) {}

RasClient::RasClient(Fd fd, const Proof& proof, std::function<std::string()> message)
    : fd_(std::move(fd)),
      proof_(proof),
      message_(std::move(message)),
      state_(State::Proving),
      expires_(now() + kProofPatience),
      timeout_(kDefaultTimeout) {}

void RasClient::advance() {
  try {
    if (now() >= expires_) state_ = State::Ended;
    if (state_ == State::Proving) prove();
    if (state_ == State::Commands) readCommands();
    if (state_ == State::Collecting || (state_ == State::Commands && events_ != 0)) advanceCollection();
    flush();
  } catch (const std::exception&) {
    // The client sees the end of its connection.
    state_ = State::Ended;
  }
}

void RasClient::prove() {
  Proof::Step step = proof_->accept(fd_);
  if (step == Proof::Step::Waiting) return;
  state_ = step == Proof::Step::Proven ? State::Sending : State::Ended;
  if (state_ == State::Sending) out_ = message_();
  expires_ = now() + kPatience;
}

void RasClient::readCommands() {
  for (int turn = 0; turn < kTurns && state_ == State::Commands; turn++) {
    char buffer[kMaxLine];
    long got = receiveSome(fd_.get(), buffer, sizeof buffer);
    if (got == 0) return;
    // The client may have closed its side alone: it gets the responses.
    if (got < 0) {
      state_ = State::Sending;
      return;
    }
    in_.append(buffer, static_cast<size_t>(got));
    for (size_t end; state_ == State::Commands && (end = in_.find('\n')) != std::string::npos;) {
      std::string line = in_.substr(0, end);
      in_.erase(0, end + 1);
      if (!line.empty() && line.back() == '\r') line.pop_back();
      execute(parseRasCommand(line));
    }
    if (in_.size() > kMaxLine) state_ = State::Sending;
  }
}

void RasClient::execute(const RasCommand& command) {
  expires_ = now() + kPatience;
  switch (command.kind) {
    case RasCommand::Kind::Protocol: out_ += format("SERVER PROTOCOL %d\n", kProtocol); return;
    case RasCommand::Kind::Error: out_ += command.reason + "\n"; return;
    case RasCommand::Kind::Timeout: timeout_ = command.timeout; break;
    case RasCommand::Kind::Format: json_ = command.json; break;
    case RasCommand::Kind::Monitor: events_ = command.events; break;
    case RasCommand::Kind::Status:
      verbose_ = command.verbose;
      collection_ = std::make_unique<Collection>(ownRanks_, timeout_);
      state_ = State::Collecting;
      // The collection has a deadline.
      expires_ = HUGE_VAL;
      return;
  }
  out_ += "OK\n";
  if (events_ != 0) expires_ = HUGE_VAL;
}

void RasClient::advanceCollection() {
  if (!collection_) {
    if (now() < nextCollection_) return;
    collection_ = std::make_unique<Collection>(ownRanks_, timeout_);
  }
  collection_->advance();
  if (!collection_->complete()) return;
  if (state_ == State::Collecting) {
    out_ += json_ ? jsonReport(collection_->job()) : textReport(collection_->job(), verbose_);
    state_ = State::Sending;
    expires_ = now() + kPatience;
  } else {
    sendEvents(collection_->job());
    nextCollection_ = now() + kMonitorPeriod;
  }
  collection_.reset();
}

void RasClient::sendEvents(const Job& job) {
  // Events tell of changes.
  bool first = monitored_.empty();
  for (const auto& [token, process] : job.processes) {
    auto [known, isNew] = monitored_.emplace(token, process.response);
    Response before = std::exchange(known->second, process.response);
    if (first) continue;
    bool isGone = process.response == Response::Dead || process.response == Response::NoService;
    bool wasGone = !isNew && (before == Response::Dead || before == Response::NoService);
    if (isNew && !isGone) sendEvent(kLifecycleEvents, "PEER_NEW", process);
    if (isGone && !isNew && !wasGone) sendEvent(kLifecycleEvents, "PEER_DEAD", process);
    if (process.response == Response::Silent && (isNew || before != Response::Silent)) {
      sendEvent(kTraceEvents, "PEER_UNRESPONSIVE", process);
    }
  }
}

void RasClient::sendEvent(RasEvents group, const char* event, const ProcessStatus& process) {
  if ((events_ & group) == 0) return;
  if (json_) {
    out_ += format(
        "{\n  \"timestamp\": \"%s\",\n  \"group\": \"%s\",\n  \"event\": \"%s\",\n  \"peer\": %s,\n  \"details\": \"\"\n}\n",
        timeOfDay().c_str(), group == kLifecycleEvents ? "LIFECYCLE" : "TRACE", event,
        describeAsJson(process, "  ").c_str());
  } else {
    out_ += format("[%s] %s: %s\n", timeOfDay().c_str(), event, describe(process).c_str());
  }
}

void RasClient::flush() {
  if (state_ == State::Ended || state_ == State::Proving) return;
  if (!out_.empty()) {
    long sent = sendSome(fd_.get(), out_.data(), out_.size());
    if (sent < 0) {
      state_ = State::Ended;
      return;
    }
    out_.erase(0, static_cast<size_t>(sent));
  }
  if (out_.size() > kMaxUnsentEvents && state_ == State::Commands) state_ = State::Ended;
  if (!out_.empty() || state_ != State::Sending) return;
  // With unread bytes, the end would discard what the client has not read yet.
  char unread[kMaxLine];
  for (int turn = 0; turn < kTurns && receiveSome(fd_.get(), unread, sizeof unread) > 0; turn++) {
  }
  state_ = State::Ended;
}

void RasClient::addDescriptors(std::vector<pollfd>& polled) const {
  int events = (state_ == State::Commands ? POLLIN : 0) | (out_.empty() ? 0 : POLLOUT);
  if (state_ == State::Proving) events = POLLIN;
  // Without a wanted event, poll would report the end of the connection again and again.
  if (events != 0) polled.push_back({fd_.get(), static_cast<short>(events), 0});
  if (collection_) collection_->addDescriptors(polled);
}

double RasClient::deadline() const {
  double own = collection_ ? collection_->deadline() : events_ != 0 ? nextCollection_ : HUGE_VAL;
  return std::min(own, expires_);
}

}  // namespace host

// faults.cpp: parser of NCCL4J_HOST_FAULT; see faults.h for the meaning.

#include "status/faults.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "base/settings.h"

namespace host {
namespace {

const char* const kKey = "NCCL4J_HOST_FAULT";

std::string trimmed(const std::string& text) {
  size_t first = text.find_first_not_of(" \t\n");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (size_t start = 0; start <= text.size();) {
    size_t end = std::min(text.find(separator, start), text.size());
    parts.push_back(trimmed(text.substr(start, end - start)));
    start = end + 1;
  }
  return parts;
}

/** Parses "name=value" and reports errors in it. */
class Part {
 public:
  explicit Part(const std::string& text) : text_(text) {
    size_t equals = text.find('=');
    name = trimmed(text.substr(0, equals));
    has = equals != std::string::npos;
    if (has) value = trimmed(text.substr(equals + 1));
  }

  double seconds() const {
    double number;
    if (!parseNumber(value.c_str(), number) || number < 0) refuse("a number of seconds");
    return number;
  }

  long long integer(long long least, long long most) const {
    char* end = nullptr;
    long long number = strtoll(value.c_str(), &end, 10);
    if (value.empty() || *end != '\0' || number < least || number > most) {
      refuse(format("a number from %lld to %lld", least, most).c_str());
    }
    return number;
  }

  [[noreturn]] void refuse(const char* expected) const {
    fail(ncclInvalidArgument, "%s : '%s' is not understood, expected %s", kKey, text_.c_str(), expected);
  }

  std::string name;
  std::string value;
  bool has = false;

 private:
  const std::string text_;
};

bool isCall(const std::string& name) {
  for (int call = 0; call <= static_cast<int>(Call::CommGrow); call++) {
    if (name == callName(static_cast<Call>(call))) return true;
  }
  return false;
}

Fault parse(const std::string& text) {
  Fault fault;
  std::vector<std::string> parts = split(text, ',');
  Part what(parts.front());
  if (what.name == "delay") {
    fault.seconds = what.seconds();
  } else if (what.name == "result") {
    fault.kind = FaultKind::Result;
    fault.code = static_cast<ncclResult_t>(what.integer(1, ncclNumResults - 1));
    if (fault.code == ncclInProgress) what.refuse("a code that is an error; hang stays in progress");
  } else if (!what.has && what.name == "hang") {
    fault.kind = FaultKind::Hang;
  } else if (!what.has && what.name == "drop") {
    fault.kind = FaultKind::Drop;
  } else if (!what.has && what.name == "kill") {
    fault.kind = FaultKind::Kill;
  } else {
    what.refuse("delay=SECONDS, hang, result=CODE, drop or kill");
  }
  for (size_t i = 1; i < parts.size(); i++) {
    Part where(parts[i]);
    if (where.name == "rank") {
      fault.rank = static_cast<int>(where.integer(0, INT_MAX));
    } else if (where.name == "op") {
      fault.operation = where.value == "all" ? -1 : where.integer(0, INT64_MAX);
    } else if (where.name == "call") {
      if (!isCall(where.value)) where.refuse("the name of a call, such as AllReduce or CommSplit");
      fault.call = where.value;
    } else {
      where.refuse("rank=N, op=K, op=all or call=NAME");
    }
  }
  if (fault.operation == 0 && !fault.call.empty()) {
    fail(ncclInvalidArgument, "%s : '%s' has op=0, the making of a communicator, and a call", kKey, text.c_str());
  }
  return fault;
}

}  // namespace

std::unique_ptr<Faults> Faults::fromEnvironment(int rank) {
  const char* text = getenv(kKey);
  if (text == nullptr) return nullptr;
  auto faults = std::make_unique<Faults>();
  for (const std::string& one : split(text, ';')) {
    if (one.empty()) continue;
    Fault fault = parse(one);
    if (fault.rank < 0 || fault.rank == rank) faults->faults_.push_back(fault);
  }
  return faults;
}

std::vector<Fault> Faults::atCreation() const {
  std::vector<Fault> due;
  for (const Fault& fault : faults_) {
    if (fault.operation == 0) due.push_back(fault);
  }
  return due;
}

std::vector<Fault> Faults::at(Call call) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<Fault> due;
  for (Fault& fault : faults_) {
    if (fault.call.empty() ? !isOperation(call) : fault.call != callName(call)) continue;
    fault.seen++;
    if (fault.operation == -1 || fault.operation == fault.seen) due.push_back(fault);
  }
  return due;
}

void injectFault(const Fault& fault, const std::string& what) {
  if (fault.kind == FaultKind::Kill) {
    kill(getpid(), SIGKILL);
    pause();
  }
  if (fault.kind == FaultKind::Drop) fail(ncclSystemError, "%s: the rank was dropped by %s", what.c_str(), kKey);
  if (fault.kind == FaultKind::Result) {
    fail(fault.code, "%s was made to fail by %s", what.c_str(), kKey);
  }
}

}  // namespace host

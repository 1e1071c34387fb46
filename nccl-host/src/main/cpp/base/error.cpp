// error.cpp: texts of errors, and the exported functions that return them.

#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <system_error>

#include "base/fork.h"
#include "base/ofthread.h"
#include "protocol/comm.h"

namespace host {
namespace {

const locale_t kPlain = newlocale(LC_ALL_MASK, "C", static_cast<locale_t>(nullptr));
using Text = std::shared_ptr<const std::string>;

struct GlobalError {
  std::mutex mutex;
  Text text;
};

// Made while there is memory. Never destroyed: a helper thread may still report an error while the process ends.
GlobalError& globalError = *new GlobalError;
const Failure& outOfMemory = *new Failure(ncclSystemError, "out of host memory");

// NCCL has one text for the whole process. If ranks are threads of one process, this text is often another rank's. A
// thread whose last communication failed therefore gets its own text; other threads get the newest of the process.
struct ThreadError {
  bool isNew = false;
  Text text;
  Text returned;  // the last ncclGetLastError of this thread returned a pointer to this
};

ThreadError& threadError() { return ofThread<ThreadError>(); }

std::string formatList(const char* pattern, va_list args) {
  PlainLocale plain;
  va_list again;
  va_copy(again, args);
  int length = vsnprintf(nullptr, 0, pattern, again);
  va_end(again);
  std::string text(length > 0 ? static_cast<size_t>(length) : 0, '\0');
  if (length > 0) vsnprintf(&text[0], text.size() + 1, pattern, args);
  return text;
}

}  // namespace

PlainLocale::PlainLocale() : saved_(uselocale(kPlain)) {}

std::mutex& lockOfErrors() { return globalError.mutex; }

PlainLocale::~PlainLocale() { uselocale(saved_); }

std::string format(const char* pattern, ...) {
  va_list args;
  va_start(args, pattern);
  std::string text = formatList(pattern, args);
  va_end(args);
  return text;
}

std::string printable(std::string text) {
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text;
}

void fail(ncclResult_t code, const char* pattern, ...) {
  va_list args;
  va_start(args, pattern);
  std::string text = formatList(pattern, args);
  va_end(args);
  throw Failure(code, std::move(text));
}

void failErrno(const char* what) {
  int code = errno;
  PlainLocale plain;
  throw Failure(ncclSystemError, std::string(what) + ": " + std::generic_category().message(code));
}

std::string rankList(const std::vector<int>& ranks) { return rankList(ranks, ranks.size()); }

std::string rankList(const std::vector<int>& first, size_t count) {
  std::string text = count == 1 ? "rank" : "ranks";
  size_t named = std::min(first.size(), kNamedRanks);
  for (size_t i = 0; i < named; i++) text += (i == 0 ? " " : ", ") + std::to_string(first[i]);
  if (count > named) text += " and " + std::to_string(count - named) + " more";
  return text;
}

Failure failureInFlight() noexcept {
  try {
    try {
      throw;
    } catch (const Failure& failure) {
      return failure;
    } catch (const std::system_error& error) {
      return Failure(ncclSystemError, error.what());
    } catch (const std::bad_alloc&) {
      return outOfMemory;
    } catch (const std::exception& other) {
      return Failure(ncclInternalError, other.what());
    }
  } catch (const std::bad_alloc&) {
    return outOfMemory;
  }
}

void recordError(const Failure& failure) noexcept {
  {
    std::lock_guard<std::mutex> lock(globalError.mutex);
    globalError.text = failure.sharedText();
  }
  try {
    threadError().isNew = true;
    threadError().text = failure.sharedText();
  } catch (const std::bad_alloc&) {
    // The first call of a thread. It gets the newest text of the process.
  }
}

void forgetThreadError() { threadError().isNew = false; }

const char* lastErrorText(const std::string& commText) {
  ThreadError& mine = threadError();
  if (mine.isNew) {
    mine.returned = mine.text;
  } else if (!commText.empty()) {
    mine.returned = std::make_shared<const std::string>(commText);
  } else {
    std::lock_guard<std::mutex> lock(globalError.mutex);
    mine.returned = globalError.text;
  }
  return mine.returned ? mine.returned->c_str() : "";
}

ncclResult_t currentExceptionToResult() noexcept {
  Failure failure = failureInFlight();
  recordError(failure);
  return failure.code();
}

}  // namespace host

using namespace host;

extern "C" const char* ncclGetErrorString(ncclResult_t result) {
  switch (static_cast<int>(result)) {
    case ncclSuccess: return "no error";
    case ncclUnhandledCudaError: return "CUDA error";
    case ncclSystemError: return "system error";
    case ncclInternalError: return "internal error";
    case ncclInvalidArgument: return "invalid argument";
    case ncclInvalidUsage: return "invalid usage";
    case ncclRemoteError: return "another rank failed or went away";
    case ncclInProgress: return "operation in progress";
    case ncclTimeout: return "timeout";
    default: return "unknown result code";
  }
}
HOST_PROFILER_ALIAS(ncclGetErrorString)

extern "C" const char* ncclGetLastError(ncclComm_t comm) {
  try {
    std::shared_ptr<Comm> known = findComm(comm);
    return lastErrorText(known ? known->lifecycle.errorText() : std::string());
  } catch (...) {
    return "";
  }
}
HOST_PROFILER_ALIAS(ncclGetLastError)

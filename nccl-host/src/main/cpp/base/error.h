// error.h: errors inside the engine and at the C boundary.
// Engine code throws Failure. At the C boundary `guarded` converts it to a result code and stores its text for
// ncclGetLastError. Any allocation may throw as well: what handles an exception, and what a thread does outside a handler,
// allocates nothing.
#pragma once

#include <locale.h>

#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/abi.h"

namespace host {

/** Copies share the text. */
class Failure : public std::exception {
 public:
  Failure(ncclResult_t code, std::string text)
      : code_(code), text_(std::make_shared<const std::string>(std::move(text))) {}
  ncclResult_t code() const { return code_; }
  const std::string& text() const { return *text_; }
  const std::shared_ptr<const std::string>& sharedText() const { return text_; }
  const char* what() const noexcept override { return text_->c_str(); }

 private:
  ncclResult_t code_;
  std::shared_ptr<const std::string> text_;
};

/** The exception in flight. Allocates nothing for a Failure or for a lack of memory. */
Failure failureInFlight() noexcept;

/**
 * Switches the calling thread to the "C" locale for its lifetime. The program may set another one; a JVM sets LANG's.
 */
class PlainLocale {
 public:
  PlainLocale();
  ~PlainLocale();
  PlainLocale(const PlainLocale&) = delete;

 private:
  const locale_t saved_;
};

/** Formats as printf into a string, in the "C" locale. */
std::string format(const char* pattern, ...) __attribute__((format(printf, 1, 2)));

/** Replaces what is no printable ASCII by '?'. */
std::string printable(std::string text);

/** Throws a Failure. */
[[noreturn]] void fail(ncclResult_t code, const char* pattern, ...) __attribute__((format(printf, 2, 3)));

/** Throws a Failure with ncclSystemError; its text is `what` and the message for errno. */
[[noreturn]] void failErrno(const char* what);

/** Maximum number of ranks that a list names. */
constexpr size_t kNamedRanks = 16;

/** "rank 3", "ranks 1, 3, 5" or, for more than kNamedRanks, "ranks 0, 1, ... and 84 more". */
std::string rankList(const std::vector<int>& ranks);

/** As above for a list with only the first of count ranks. */
std::string rankList(const std::vector<int>& first, size_t count);

/** Stores the text of an error for the calling thread and as the process's last error. */
void recordError(const Failure& failure) noexcept;

/** Call after successful communication: the calling thread's older error no longer precedes that of the process. */
void forgetThreadError();

/** The text for ncclGetLastError. commText is the text of the communicator in the call, or empty. */
const char* lastErrorText(const std::string& commText);

/** Converts the exception in flight to a result code and stores its text. */
ncclResult_t currentExceptionToResult() noexcept;

/** Runs the body of an exported function. */
template <class Body>
ncclResult_t guarded(Body&& body) {
  try {
    return body();
  } catch (...) {
    return currentExceptionToResult();
  }
}

}  // namespace host

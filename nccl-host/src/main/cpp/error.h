// error.h: how errors travel inside the engine and out of it.
// Inside, a Failure is thrown; at the C boundary `guarded` turns it into a result code and keeps its text for
// ncclGetLastError.
#pragma once

#include <locale.h>

#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "abi.h"

namespace host {

class Failure : public std::exception {
 public:
  Failure(ncclResult_t code, std::string text) : code_(code), text_(std::move(text)) {}
  ncclResult_t code() const { return code_; }
  const std::string& text() const { return text_; }
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  ncclResult_t code_;
  std::string text_;
};

/** While one lives, its thread formats and parses as in the "C" locale, whatever the program has set; a JVM sets LANG's. */
class PlainLocale {
 public:
  PlainLocale();
  ~PlainLocale();
  PlainLocale(const PlainLocale&) = delete;

 private:
  const locale_t saved_;
};

/** printf into a string, in the "C" locale. */
std::string format(const char* pattern, ...) __attribute__((format(printf, 1, 2)));

/** Throws a Failure. */
[[noreturn]] void fail(ncclResult_t code, const char* pattern, ...) __attribute__((format(printf, 2, 3)));

/** Throws a Failure with ncclSystemError, the text followed by errno's meaning. */
[[noreturn]] void failErrno(const char* what);

/** How many ranks a list names at most. */
constexpr size_t kNamedRanks = 16;

/** "rank 3", "ranks 1, 3, 5" or, of more than kNamedRanks, "ranks 0, 1, ... and 84 more". */
std::string rankList(const std::vector<int>& ranks);

/** As above, where the list has only the first of count ranks. */
std::string rankList(const std::vector<int>& first, size_t count);

/** Keeps the text of an error of the calling thread, also as the process's last error. */
void recordError(const std::string& text);

/** Called when communication of this thread succeeded: its older error is no longer the one to show first. */
void forgetThreadError();

/** The text that ncclGetLastError returns; commText is the text of the communicator that was asked about, or empty. */
const char* lastErrorText(const std::string& commText);

/** Translates the exception being handled, records its text and returns its code. */
ncclResult_t currentExceptionToResult();

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

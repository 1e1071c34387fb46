// lifecycle.h: the state of a communicator at this rank, and the error that ended its use.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>

#include "base/error.h"

namespace host {

enum class State : uint8_t {
  Creating,   // the ranks are being connected
  Ready,
  Failed,     // has an error; NCCL_SHRINK_ABORT, revoke, abort and destroy remain
  Finalized,  // takes no further operations
  Revoked,    // has no error, even if it had one; split, shrink and grow remain
  Aborted,    // nothing waits any longer
  Destroyed,
};

/**
 * The state and, beside it, the first error. An error during the creation makes the communicator Failed at the end of the
 * creation. A Finalized or Aborted communicator keeps its state when an error occurs. All functions may be called at any
 * time.
 */
class Lifecycle {
 public:
  State state() const { return state_; }
  bool is(State state) const { return state_ == state; }
  /** True if ncclCommAbort or ncclCommDestroy was called. */
  bool ended() const { return is(State::Aborted) || is(State::Destroyed); }

  /** Returns false, and changes nothing, if the present state does not permit the next one. */
  bool enter(State next);
  /** Ends the creation, unless an abort ended it before. */
  void created();

  ncclResult_t error() const { return error_; }
  std::string errorText() const;
  void throwIfFailed() const;
  /** Ignores all errors but the first, and those of a revoked communicator. */
  void setError(const Failure& failure) noexcept;
  void setError(ncclResult_t code, const std::string& text) { setError(Failure(code, text)); }

 private:
  bool change(State next);

  mutable std::mutex mutex_;  // for changes, and for the text
  std::atomic<State> state_{State::Creating};
  std::atomic<ncclResult_t> error_{ncclSuccess};
  std::optional<Failure> failure_;
};

}  // namespace host

// lifecycle.cpp: the legal transitions between the states of a communicator.

#include "protocol/lifecycle.h"

namespace host {
namespace {

template <class... States>
constexpr unsigned setOf(States... states) {
  return (0u | ... | (1u << static_cast<unsigned>(states)));
}

/** The states that may follow each state, in the order of State. */
constexpr unsigned kNext[] = {
    /* Creating  */ setOf(State::Ready, State::Failed, State::Aborted),
    /* Ready     */ setOf(State::Failed, State::Finalized, State::Revoked, State::Aborted, State::Destroyed),
    /* Failed    */ setOf(State::Revoked, State::Aborted, State::Destroyed),
    /* Finalized */ setOf(State::Aborted, State::Destroyed),
    /* Revoked   */ setOf(State::Aborted, State::Destroyed),
    /* Aborted   */ setOf(),
    /* Destroyed */ setOf(),
};

}  // namespace

/** The only function that changes the state. Needs the lock. */
bool Lifecycle::change(State next) {
  unsigned permitted = kNext[static_cast<unsigned>(state())];
  if ((permitted & setOf(next)) == 0) return false;
  if (next == State::Revoked) {
    error_ = ncclSuccess;
    failure_.reset();
  }
  state_ = next;
  return true;
}

bool Lifecycle::enter(State next) {
  std::lock_guard<std::mutex> lock(mutex_);
  return change(next);
}

void Lifecycle::created() {
  std::lock_guard<std::mutex> lock(mutex_);
  change(error() == ncclSuccess ? State::Ready : State::Failed);
}

std::string Lifecycle::errorText() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return failure_ ? failure_->text() : std::string();
}

void Lifecycle::throwIfFailed() const {
  if (error() == ncclSuccess) return;
  std::lock_guard<std::mutex> lock(mutex_);
  // A revoke may have cleared it.
  if (failure_) throw Failure(*failure_);
}

void Lifecycle::setError(const Failure& failure) noexcept {
  std::lock_guard<std::mutex> lock(mutex_);
  if (failure.code() == ncclSuccess || error() != ncclSuccess || is(State::Revoked)) return;
  failure_ = failure;
  error_ = failure.code();
  if (is(State::Ready)) change(State::Failed);
}

}  // namespace host

// condition.h: replaces std::condition_variable, whose wait() needs the libstdc++ of GCC 12 at run time; and a lock.
#pragma once

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <time.h>

#include <atomic>
#include <mutex>

#include "old_systems.h"

namespace host {

class Condition {
 public:
  Condition() {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&native_, &attributes);
    pthread_condattr_destroy(&attributes);
  }
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;
  ~Condition() { pthread_cond_destroy(&native_); }

  void notify_all() { pthread_cond_broadcast(&native_); }
  void notify_one() { pthread_cond_signal(&native_); }

  template <typename Predicate>
  void wait(std::unique_lock<std::mutex>& lock, Predicate predicate) {
    while (!predicate()) pthread_cond_wait(&native_, lock.mutex()->native_handle());
  }

  /** As wait, until a time of now(); false if the predicate is false then. */
  template <typename Predicate>
  bool waitUntil(std::unique_lock<std::mutex>& lock, double until, Predicate predicate) {
    if (until == HUGE_VAL) return wait(lock, predicate), true;
    auto seconds = static_cast<time_t>(until);
    timespec time{seconds, static_cast<long>((until - static_cast<double>(seconds)) * 1e9)};
    while (!predicate()) {
      if (pthread_cond_timedwait(&native_, lock.mutex()->native_handle(), &time) == ETIMEDOUT) return predicate();
    }
    return true;
  }

 private:
  pthread_cond_t native_;
};

/** A mutual exclusion that one thread may enter and another leave. */
class Baton {
 public:
  void lock() {
    if (try_lock()) return;
    std::unique_lock<std::mutex> lock(mutex_);
    waiters_++;
    released_.wait(lock, [&] { return try_lock(); });
    waiters_--;
  }

  bool try_lock() { return !taken_.exchange(true); }

  void unlock() {
    // A waiter is counted before it tries again, so that one of the two threads sees the other's change.
    taken_.exchange(false);
    if (waiters_.load() == 0) return;
    std::lock_guard<std::mutex> lock(mutex_);
    released_.notify_one();
  }

 private:
  std::mutex mutex_;
  Condition released_;
  std::atomic<bool> taken_{false};
  std::atomic<int> waiters_{0};
};

}  // namespace host

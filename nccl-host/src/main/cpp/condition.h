// condition.h: replaces std::condition_variable, whose wait() needs the libstdc++ of GCC 12 at run time.
#pragma once

#include <pthread.h>

#include <mutex>

namespace host {

class Condition {
 public:
  Condition() = default;
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;
  ~Condition() { pthread_cond_destroy(&native_); }

  void notify_all() { pthread_cond_broadcast(&native_); }
  void notify_one() { pthread_cond_signal(&native_); }

  template <typename Predicate>
  void wait(std::unique_lock<std::mutex>& lock, Predicate predicate) {
    while (!predicate()) pthread_cond_wait(&native_, lock.mutex()->native_handle());
  }

 private:
  pthread_cond_t native_ = PTHREAD_COND_INITIALIZER;
};

}  // namespace host

/* A thread of a test. It is joined at the end of its scope, too: std::thread ends the program there if a failed assertion or an
 * exception leaves the test earlier, and nothing then names the test. */
#ifndef NCCL4J_HOST_TESTTHREAD_H_
#define NCCL4J_HOST_TESTTHREAD_H_

#include <thread>
#include <utility>

class TestThread {
 public:
  template <typename Code, typename... Arguments>
  explicit TestThread(Code&& code, Arguments&&... arguments)
      : thread_(std::forward<Code>(code), std::forward<Arguments>(arguments)...) {
  }
  TestThread(TestThread&&) = default;
  ~TestThread() {
    join();
  }

  void join() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::thread thread_;
};

#endif

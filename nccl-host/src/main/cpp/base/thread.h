// thread.h: starts the threads of the engine.
#pragma once

#include <system_error>
#include <thread>
#include <utility>

#include "base/error.h"
#include "transport/socket.h"

namespace host {

/** Throws a Failure that names the thread if the system has none, or no memory. Exceptions must not leave the code. */
template <class Code>
std::thread startThread(const char* what, Code&& code) {
  SignalsBlocked blocked;
  try {
    return std::thread(std::forward<Code>(code));
  } catch (const std::system_error& error) {
    fail(ncclSystemError, "cannot start %s: %s", what, error.what());
  }
}

}  // namespace host

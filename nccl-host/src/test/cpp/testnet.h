// testnet.h: what test-net-plugin.cpp counts.
#pragma once

#include <atomic>
#include <cstdint>

namespace host {

/** Of the process and one version of the plugin; testNet() returns it. What is open is 0 when all is closed. */
struct TestNet {
  std::atomic<uint64_t> sentBytes{0};
  std::atomic<uint64_t> receivedBytes{0};
  std::atomic<uint64_t> runs{0};  // a test adds 1: calls that are to fail are counted anew
  std::atomic<int> inits{0};
  std::atomic<int> closedWithRequests{0};
  std::atomic<int> contexts{0};  // open, as those below
  std::atomic<int> listeners{0};
  std::atomic<int> connections{0};
  std::atomic<int> registrations{0};
  std::atomic<int> requests{0};

  int open() const { return contexts + listeners + connections + registrations + requests; }
};

}  // namespace host

// hosts.h: ranks whose hosts differ by NCCL_HOSTID, on the loopback interface.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <thread>
#include <vector>

#include "connected.h"
#include "protocol/bootstrap.h"
#include "transport/network.h"

namespace host {

/** Sets a variable while it lives. */
class ScopedVariable {
 public:
  ScopedVariable(const char* nameOfVariable, const char* value) : name_(nameOfVariable) { set(value); }
  ~ScopedVariable() { unsetenv(name_); }
  ScopedVariable(const ScopedVariable&) = delete;
  void set(const char* value) { setenv(name_, value, 1); }

 private:
  const char* name_;
};

/** The loopback interface, for ranks on several hosts. */
class HostsTest : public testing::Test {
 protected:
  static Interface loopback() {
    for (const Interface& one : runningInterfaces(AF_INET)) {
      if (one.name == "lo") return one;
    }
    return {};
  }

  void SetUp() override {
    if (!loopback().address.valid()) GTEST_SKIP() << "needs the loopback interface";
  }

  void TearDown() override { setEncryptionKey(nullptr); }

  ScopedVariable names{"NCCL_SOCKET_IFNAME", "=lo"};
  ScopedVariable hostId{"NCCL_HOSTID", "first"};

  /** Connects ranks, each on the host of this name, in one thread. */
  std::vector<ncclComm_t> connect(const std::vector<const char*>& hosts) {
    std::vector<ncclComm_t> comms(hosts.size());
    hostId.set(hosts[0]);
    ncclUniqueId id;
    EXPECT_EQ(ncclSuccess, ncclGetUniqueId(&id));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    for (size_t rank = 0; rank < hosts.size(); rank++) {
      // Read before the call returns; other threads connect the ranks.
      hostId.set(hosts[rank]);
      ncclCommInitRankConfig(&comms[rank], static_cast<int>(hosts.size()), id, static_cast<int>(rank), &config);
    }
    for (ncclComm_t comm : comms) await(comm);
    return comms;
  }

  static void await(ncclComm_t comm) {
    ncclResult_t result = ncclInProgress;
    while (result == ncclInProgress) {
      ASSERT_EQ(ncclSuccess, ncclCommGetAsyncError(comm, &result));
      std::this_thread::yield();
    }
    ASSERT_EQ(ncclSuccess, result) << ncclGetLastError(comm);
  }

  /** Runs a call for each rank in a group, and waits for its end. */
  template <class Call>
  static void inGroup(const std::vector<ncclComm_t>& comms, Call&& call) {
    ncclGroupStart();
    for (size_t rank = 0; rank < comms.size(); rank++) call(static_cast<int>(rank), comms[rank]);
    ncclGroupEnd();
    for (ncclComm_t comm : comms) await(comm);
  }
};

}  // namespace host

// netplugin_test.cpp: ranks of several hosts whose elements go by test-net-plugin.cpp, and what a plugin may do wrong.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "child.h"
#include "hosts.h"
#include "testnet.h"
#include "testthread.h"
#include "transport/netplugin.h"
#include "transport/pluginchannel.h"

namespace host {
namespace {

/** Many: they take the plugin. */
constexpr size_t kManyElements = 100'000;

class PluginsTest : public HostsTest {
 protected:
  /** The plugin beside this program. */
  static std::string pathOf(int version) {
    char program[PATH_MAX] = {};
    if (readlink("/proc/self/exe", program, sizeof program - 1) < 0) return "";
    std::string path = program;
    return path.substr(0, path.rfind('/')) + "/libnccl-net-test" + std::to_string(version) + ".so";
  }

  static TestNet& netOf(int version) {
    void* library = dlopen(pathOf(version).c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(nullptr, library) << dlerror();
    void* function = dlsym(library, "testNet");
    TestNet* (*get)();
    memcpy(&get, &function, sizeof get);
    return *get();
  }

  void TearDown() override {
    unsetenv("NCCL_NET");
    HostsTest::TearDown();
  }

  ScopedVariable plugin{"NCCL_NET_PLUGIN", pathOf(12).c_str()};
  ScopedVariable nameOfNet{"TEST_NET_NAME", "test"};
  ScopedVariable failing{"TEST_NET_FAULT", ""};

  /** The next calls of this function are counted from 1. */
  void failAt(const char* fault, int version = 12) {
    netOf(version).runs++;
    failing.set(fault);
  }

  static bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

  /** The error of a communicator, as soon as it has one. */
  static std::string errorOf(ncclComm_t comm) {
    ncclResult_t result = ncclInProgress;
    for (double end = now() + 20; (result == ncclInProgress || result == ncclSuccess) && now() < end; std::this_thread::yield()) {
      ncclCommGetAsyncError(comm, &result);
    }
    return format("%d: %s", static_cast<int>(result), ncclGetLastError(comm));
  }

  /** Begins an AllReduce of many elements. */
  std::vector<int32_t> in = std::vector<int32_t>(2 * kManyElements, 5), out = std::vector<int32_t>(2 * kManyElements);
  void beginAllReduce(const std::vector<ncclComm_t>& comms) {
    ncclGroupStart();
    for (size_t rank = 0; rank < comms.size(); rank++) {
      size_t at = rank * kManyElements;
      ncclAllReduce(in.data() + at, out.data() + at, kManyElements, ncclInt32, ncclSum, comms[rank], nullptr);
    }
    ncclGroupEnd();
  }

  /** As connect(), for ranks that cannot be connected: their errors. */
  std::vector<std::string> failToConnect() {
    std::vector<std::string> errors(2);
    ncclUniqueId id = makeUniqueId(Reach::OtherHosts);
    std::vector<std::unique_ptr<Comm>> comms;
    for (int rank = 0; rank < 2; rank++) {
      hostId.set(rank == 0 ? "first" : "second");
      comms.push_back(std::make_unique<Comm>(rank, 2, 0, CommSettings{}));
    }
    TestThread other([&] { errors[1] = failureOf([&] { connectRanks(*comms[1], id); }); });
    errors[0] = failureOf([&] { connectRanks(*comms[0], id); });
    other.join();
    return errors;
  }
};

/** With each version of the interface. */
class PluginVersionsTest : public PluginsTest, public testing::WithParamInterface<int> {
 protected:
  void SetUp() override {
    PluginsTest::SetUp();
    plugin.set(pathOf(GetParam()).c_str());
  }
};

INSTANTIATE_TEST_SUITE_P(
    EveryTest, PluginVersionsTest, testing::Range(netapi::kFirstVersion, netapi::kLastVersion + 1),
    [](const auto& info) { return "Version" + std::to_string(info.param); });

TEST_P(PluginVersionsTest, CollectivesAndMessagesOfAllSizes) {
  TestNet& net = netOf(GetParam());
  for (const std::vector<const char*>& hosts :
       {std::vector<const char*>{"first", "second"}, {"first", "first", "second", "second"}, {"a", "b", "c"}}) {
    uint64_t sentBefore = net.sentBytes, receivedBefore = net.receivedBytes;
    int closedBefore = net.closedWithRequests;
    std::vector<ncclComm_t> comms = connect(hosts);
    size_t ranks = comms.size();
    int root = static_cast<int>(ranks) - 1;
    for (size_t count : {1u, 5000u, 300'000u}) {
      int wrong = 0;
      std::vector<std::vector<int32_t>> in(ranks), out(ranks, std::vector<int32_t>(count * ranks));
      for (size_t rank = 0; rank < ranks; rank++) {
        in[rank].resize(count * ranks);
        std::iota(in[rank].begin(), in[rank].end(), static_cast<int32_t>(100'000'000 * rank));
      }
      // The element at an index of the result of a rank, from that of the sum of all inputs.
      auto sumAt = [&](size_t index) {
        int32_t sum = 0;
        for (size_t rank = 0; rank < ranks; rank++) sum += in[rank][index];
        return sum;
      };
      auto run = [&](auto&& call) {
        inGroup(comms, [&](int rank, ncclComm_t comm) {
          size_t at = static_cast<size_t>(rank);
          EXPECT_EQ(ncclSuccess, call(rank, in[at].data(), out[at].data(), comm));
        });
      };
      auto compare = [&](int rank, size_t elements, auto&& expected) {
        for (size_t i = 0; i < elements; i++) wrong += out[static_cast<size_t>(rank)][i] != expected(i);
      };
      run([&](int, int32_t* from, int32_t* to, ncclComm_t comm) { return ncclAllReduce(from, to, count, ncclInt32, ncclSum, comm, nullptr); });
      for (int rank = 0; rank <= root; rank++) compare(rank, count, sumAt);
      run([&](int, int32_t* from, int32_t* to, ncclComm_t comm) { return ncclReduce(from, to, count, ncclInt32, ncclSum, root, comm, nullptr); });
      compare(root, count, sumAt);
      run([&](int, int32_t* from, int32_t* to, ncclComm_t comm) { return ncclReduceScatter(from, to, count, ncclInt32, ncclSum, comm, nullptr); });
      for (int rank = 0; rank <= root; rank++) {
        compare(rank, count, [&](size_t i) { return sumAt(static_cast<size_t>(rank) * count + i); });
      }
      run([&](int, int32_t* from, int32_t* to, ncclComm_t comm) { return ncclBroadcast(from, to, count, ncclInt32, root, comm, nullptr); });
      for (int rank = 0; rank <= root; rank++) compare(rank, count, [&](size_t i) { return in[static_cast<size_t>(root)][i]; });
      run([&](int, int32_t* from, int32_t* to, ncclComm_t comm) { return ncclAllGather(from, to, count, ncclInt32, comm, nullptr); });
      for (int rank = 0; rank <= root; rank++) compare(rank, count * ranks, [&](size_t i) { return in[i / count][i % count]; });
      run([&](int, int32_t* from, int32_t* to, ncclComm_t comm) { return ncclGather(from, to, count, ncclInt32, root, comm, nullptr); });
      compare(root, count * ranks, [&](size_t i) { return in[i / count][i % count]; });
      run([&](int, int32_t* from, int32_t* to, ncclComm_t comm) { return ncclScatter(from, to, count, ncclInt32, root, comm, nullptr); });
      for (int rank = 0; rank <= root; rank++) {
        compare(rank, count, [&](size_t i) { return in[static_cast<size_t>(root)][static_cast<size_t>(rank) * count + i]; });
      }
      auto exchanged = [&](int rank) {
        return [&, rank](size_t i) { return in[i / count][static_cast<size_t>(rank) * count + i % count]; };
      };
      run([&](int, int32_t* from, int32_t* to, ncclComm_t comm) { return ncclAlltoAll(from, to, count, ncclInt32, comm, nullptr); });
      for (int rank = 0; rank <= root; rank++) compare(rank, count * ranks, exchanged(rank));
      for (std::vector<int32_t>& one : out) std::fill(one.begin(), one.end(), -1);
      run([&](int, int32_t* from, int32_t* to, ncclComm_t comm) {
        for (size_t peer = 0; peer < ranks; peer++) {
          ncclSend(from + peer * count, count, ncclInt32, static_cast<int>(peer), comm, nullptr);
          ncclRecv(to + peer * count, count, ncclInt32, static_cast<int>(peer), comm, nullptr);
        }
        return ncclSuccess;
      });
      for (int rank = 0; rank <= root; rank++) compare(rank, count * ranks, exchanged(rank));
      ASSERT_EQ(0, wrong) << ranks << " ranks, " << count << " elements";
    }
    inGroup(comms, [](int, ncclComm_t comm) { ncclCommFinalize(comm); });
    for (ncclComm_t comm : comms) EXPECT_EQ(ncclSuccess, ncclCommDestroy(comm));
    EXPECT_GT(net.sentBytes - sentBefore, 8u << 20);
    EXPECT_EQ(net.sentBytes - sentBefore, net.receivedBytes - receivedBefore);
    EXPECT_EQ(0, net.open()) << net.contexts << ", " << net.listeners << ", " << net.connections << ", " << net.registrations;
    EXPECT_EQ(closedBefore, net.closedWithRequests);
  }
}

TEST_F(PluginsTest, OnlyManyElementsOfOtherHostsTakeThePlugin) {
  TestNet& net = netOf(12);
  std::vector<ncclComm_t> comms = connect({"first", "first", "second"});
  uint64_t before = net.sentBytes;
  auto sendTo = [&](int receiver, size_t count) {
    ncclGroupStart();
    ncclSend(in.data(), count, ncclInt8, receiver, comms[0], nullptr);
    ncclRecv(out.data(), count, ncclInt8, 0, comms[static_cast<size_t>(receiver)], nullptr);
    ncclGroupEnd();
    for (ncclComm_t comm : comms) await(comm);
    return net.sentBytes - std::exchange(before, net.sentBytes);
  };
  EXPECT_EQ(0u, sendTo(2, PluginChannel::kMinimum - 1));
  EXPECT_EQ(PluginChannel::kMinimum, sendTo(2, PluginChannel::kMinimum));
  EXPECT_EQ(300'001u, sendTo(2, 300'001));
  EXPECT_EQ(0u, sendTo(1, 300'001));
  for (ncclComm_t comm : comms) ncclCommAbort(comm);
  EXPECT_EQ(0, net.open());
}

TEST_F(PluginsTest, ANewCommunicatorOfOldOnesTakesThePlugin) {
  TestNet& net = netOf(12);
  std::vector<ncclComm_t> comms = connect({"first", "second"});
  std::vector<ncclComm_t> children(2);
  for (size_t rank = 0; rank < 2; rank++) {
    hostId.set(rank == 0 ? "first" : "second");
    ncclCommSplit(comms[rank], 0, static_cast<int>(rank), &children[rank], nullptr);
  }
  for (ncclComm_t child : children) await(child);
  uint64_t before = net.sentBytes;
  beginAllReduce(children);
  for (ncclComm_t child : children) await(child);
  EXPECT_EQ(2 * kManyElements, static_cast<size_t>(std::count(out.begin(), out.end(), 10)));
  EXPECT_GE(net.sentBytes - before, kManyElements * sizeof(int32_t));
  for (ncclComm_t child : children) ncclCommAbort(child);
  for (ncclComm_t comm : comms) ncclCommAbort(comm);
  EXPECT_EQ(0, net.open());
}

TEST_F(PluginsTest, TheEnvironmentChoosesThePlugin) {
  auto chosen = [] {
    std::shared_ptr<Network> network = Network::open(1, 0);
    return network ? network->name() : "";
  };
  EXPECT_EQ("test", chosen());
  plugin.set(("nowhere," + pathOf(9) + "," + pathOf(12)).c_str());
  EXPECT_EQ("test", chosen());
  for (const char* none : {"none", "NONE", ""}) {
    plugin.set(none);
    EXPECT_EQ("", chosen()) << none;
  }
  plugin.set(pathOf(12).c_str());
  ScopedVariable wanted("NCCL_NET", "socket");
  EXPECT_EQ("", chosen());
  wanted.set("TEST");
  EXPECT_EQ("test", chosen());
  wanted.set("IB");
  EXPECT_EQ(
      "5: NCCL_NET is 'IB', but no network plugin has this name: " + pathOf(12) +
          ": its network is 'test'; 'Socket' is that of the engine's own sockets",
      failureOf(chosen));
  plugin.set("none");
  EXPECT_EQ(
      "5: NCCL_NET is 'IB', but no network plugin has this name; 'Socket' is that of the engine's own sockets", failureOf(chosen));
  EXPECT_EQ(0, netOf(12).open());
}

TEST_F(PluginsTest, APluginThatCannotBeUsedIsSkippedWithAWarning) {
  auto warning = [&](const std::string& name) {
    plugin.set(name.c_str());
    testing::internal::CaptureStderr();
    EXPECT_EQ(nullptr, Network::open(1, 0));
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_TRUE(has(warning("nowhere"), "network plugin: nowhere: can't load it: "));
  EXPECT_EQ("", warning("nowhere")) << "once is enough";
  EXPECT_TRUE(has(warning("libc.so.6"), "libc.so.6: it has none of the tables ncclNetPlugin_v8 to ncclNetPlugin_v12; using sockets instead"));
  failAt("init");
  EXPECT_TRUE(has(warning(pathOf(12)), "network plugin 'test': its init failed with 2"));
  failAt("none");
  EXPECT_TRUE(has(warning(pathOf(12)), "network plugin 'test' has no devices on this host"));
  failAt("devices");
  EXPECT_TRUE(has(warning(pathOf(12)), "its devices failed with 2"));
  failAt("getProperties");
  EXPECT_TRUE(has(warning(pathOf(12)), "its getProperties failed with 2"));
  failAt("");
  ScopedVariable onlyGpus("TEST_NET_ONLY_GPUS", "1");
  EXPECT_TRUE(has(warning(pathOf(12)), "has 2 devices, none of which takes host memory (NCCL_PTR_HOST)"));
  EXPECT_EQ(0, netOf(12).open());
}

TEST_F(PluginsTest, BeforeVersion11OneInitServesTheProcess) {
  plugin.set(pathOf(10).c_str());
  Network::open(1, 0);
  Network::open(2, 0);
  EXPECT_EQ(1, netOf(10).inits);
}

TEST_F(PluginsTest, RanksWithoutTheSamePluginAreRefused) {
  ncclUniqueId id = makeUniqueId(Reach::OtherHosts);
  pid_t child = inChild([&] {
    plugin.set("none");
    hostId.set("second");
    Comm comm(1, 2, 0, {});
    std::string failure = failureOf([&] { connectRanks(comm, id); });
    EXPECT_TRUE(has(failure, "the network plugin 'test'")) << failure;
    return testing::Test::HasFailure() ? 1 : 0;
  });
  hostId.set("first");
  Comm comm(0, 2, 0, {});
  std::string failure = failureOf([&] { connectRanks(comm, id); });
  EXPECT_EQ(0u, failure.find("5: rank ")) << failure;
  EXPECT_TRUE(has(failure, "uses the network plugin 'test' between hosts") || has(failure, "uses the network plugin 'test': NCCL_NET_PLUGIN")) << failure;
  EXPECT_TRUE(has(failure, "uses the sockets of the engine")) << failure;
  EXPECT_EQ(0, statusOf(child));
  EXPECT_EQ(0, netOf(12).open());
}

TEST_F(PluginsTest, AFailureOfOneRankBeforeItJoinsReachesTheOthers) {
  ncclUniqueId id = makeUniqueId(Reach::OtherHosts);
  pid_t child = inChild([&] {
    ScopedVariable wanted("NCCL_NET", "IB");
    hostId.set("second");
    Comm comm(1, 2, 0, {});
    std::string failure = failureOf([&] { connectRanks(comm, id); });
    EXPECT_EQ(0u, failure.find("5: NCCL_NET is 'IB'")) << failure;
    return testing::Test::HasFailure() ? 1 : 0;
  });
  hostId.set("first");
  Comm comm(0, 2, 0, {});
  std::string failure = failureOf([&] { connectRanks(comm, id); });
  EXPECT_EQ(0u, failure.find("5: rank 1 could not connect: NCCL_NET is 'IB'")) << failure;
  EXPECT_EQ(0, statusOf(child));
}

TEST_F(PluginsTest, WithAnEncryptionKeyAPluginIsRefused) {
  if (!failureOf([] { setEncryptionKey("key"); }).empty()) GTEST_SKIP() << "this system has no OpenSSL 3";
  for (const std::string& error : failToConnect()) {
    EXPECT_EQ(0u, error.find("5: ")) << error;
    EXPECT_TRUE(has(error, "has an encryption key, and the network plugin 'test' for elements between hosts, which would not be encrypted")) << error;
  }
  EXPECT_EQ(0, netOf(12).open());
}

TEST_F(PluginsTest, FailuresWhileRanksConnectNameThePlugin) {
  for (const char* function : {"listen", "connect", "accept", "regMr", "isend", "irecv", "test"}) {
    failAt(function);
    std::vector<std::string> errors = failToConnect();
    // The other rank may notice the end of a connection first.
    EXPECT_TRUE(has(errors[0] + errors[1], format("network plugin 'test': its %s failed with ", function))) << errors[0] << errors[1];
    for (const std::string& error : errors) EXPECT_TRUE(has(error, "network plugin 'test'")) << error;
    EXPECT_EQ(0, netOf(12).open()) << function;
  }
}

TEST_F(PluginsTest, AConnectionWithoutTheSecretIsRefused) {
  failAt("forge");
  for (const std::string& error : failToConnect()) {
    EXPECT_TRUE(has(error, "network plugin 'test' connected rank ")) << error;
    EXPECT_TRUE(has(error, " with a process that is not rank ")) << error;
  }
  EXPECT_EQ(0, netOf(12).open());
}

TEST_F(PluginsTest, FailuresOfOperationsNameThePlugin) {
  for (auto [fault, code] : {std::pair("isend:6", "2: "), {"irecv:6", "2: "}, {"test:20", "6: "}, {"short:6", "2: "}}) {
    failAt("");
    std::vector<ncclComm_t> comms = connect({"first", "second"});
    failAt(fault);
    // Until the call that fails.
    for (int i = 0; i < 5; i++) beginAllReduce(comms);
    for (ncclComm_t comm : comms) {
      std::string error = errorOf(comm);
      EXPECT_EQ(0u, error.find(code)) << error;
      EXPECT_TRUE(has(error, "network plugin 'test'")) << fault << ": " << error;
    }
    for (ncclComm_t comm : comms) ncclCommAbort(comm);
    EXPECT_EQ(0, netOf(12).open()) << fault;
  }
}

TEST_F(PluginsTest, AbortEndsASendThatNeverCompletes) {
  std::vector<ncclComm_t> comms = connect({"first", "second"});
  failAt("hang:2");
  beginAllReduce(comms);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  ncclResult_t result;
  ncclCommGetAsyncError(comms[0], &result);
  EXPECT_EQ(ncclInProgress, result);
  double begun = now();
  for (ncclComm_t comm : comms) ncclCommAbort(comm);
  EXPECT_LT(now() - begun, 5);
  EXPECT_EQ(0, netOf(12).open());
}

TEST_F(PluginsTest, ATimeoutEndsASendThatNeverCompletes) {
  ScopedVariable limit("NCCL4J_HOST_OP_TIMEOUT", "0.3");
  std::vector<ncclComm_t> comms = connect({"first", "second"});
  failAt("hang:2");
  beginAllReduce(comms);
  for (ncclComm_t comm : comms) {
    std::string error = errorOf(comm);
    EXPECT_TRUE(has(error, "AllReduce")) << error;
    EXPECT_TRUE(has(error, "waited 0.")) << error;
    ncclCommAbort(comm);
  }
  EXPECT_EQ(0, netOf(12).open());
}

TEST_F(PluginsTest, TheDeathOfAProcessIsNoticedDuringATransfer) {
  // The peer's plugin never completes, so that this rank waits for bytes of the plugin.
  hostId.set("first");
  ncclUniqueId id = makeUniqueId(Reach::OtherHosts);
  int ready[2];
  ASSERT_EQ(0, pipe(ready));
  pid_t child = inChild([&] {
    hostId.set("second");
    ncclComm_t comm;
    if (ncclCommInitRank(&comm, 2, id, 1) != ncclSuccess) return 1;
    failAt("hang:2");
    if (write(ready[1], "x", 1) != 1) return 1;
    ncclSend(in.data(), kManyElements, ncclInt32, 0, comm, nullptr);
    return 0;
  });
  ncclComm_t comm;
  ASSERT_EQ(ncclSuccess, ncclCommInitRank(&comm, 2, id, 0));
  char byte;
  ASSERT_EQ(1, read(ready[0], &byte, 1));
  TestThread kills([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    kill(child, SIGKILL);
  });
  double begun = now();
  EXPECT_EQ(ncclRemoteError, ncclRecv(out.data(), kManyElements, ncclInt32, 1, comm, nullptr));
  EXPECT_GT(now() - begun, 0.1);
  EXPECT_LT(now() - begun, 5);
  EXPECT_TRUE(has(ncclGetLastError(comm), format("rank 1 (pid %d) went away", child))) << ncclGetLastError(comm);
  ncclCommAbort(comm);
  kills.join();
  statusOf(child);
  close(ready[0]);
  close(ready[1]);
  EXPECT_EQ(0, netOf(12).open());
}

}  // namespace
}  // namespace host

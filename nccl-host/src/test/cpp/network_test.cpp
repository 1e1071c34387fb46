// network_test.cpp: the choice of an interface, TCP sockets, and ranks whose hosts differ by NCCL_HOSTID, on the loopback interface.

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "child.h"
#include "connected.h"
#include "hosts.h"
#include "protocol/bootstrap.h"
#include "status/rasclient.h"
#include "testthread.h"
#include "transport/network.h"

namespace host {
namespace {

Interface interface(const char* name, unsigned char last) {
  Interface made;
  made.name = name;
  made.address.family = AF_INET;
  unsigned char bytes[] = {10, 0, last, 1};
  memcpy(made.address.bytes, bytes, sizeof bytes);
  memset(made.mask, 0xff, 3);
  return made;
}

std::string chosen(const std::vector<Interface>& all, const char* names, const NetworkAddress* commId = nullptr) {
  const Interface* found = chooseInterface(all, names, commId);
  return found == nullptr ? "none" : found->name;
}

TEST(InterfaceTest, NamesArePrefixes) {
  std::vector<Interface> all{interface("lo", 1), interface("eth0", 2), interface("eth10", 3), interface("docker0", 4)};
  EXPECT_EQ("eth0", chosen(all, "eth"));
  EXPECT_EQ("eth10", chosen(all, "eth1"));
  EXPECT_EQ("eth0", chosen(all, "ib,eth"));
  EXPECT_EQ("none", chosen(all, "ib"));
  EXPECT_EQ("none", chosen(all, "=eth"));
  EXPECT_EQ("eth10", chosen(all, "=ib0,eth10"));
  EXPECT_EQ("docker0", chosen(all, "^lo,eth"));
  EXPECT_EQ("eth0", chosen(all, "^=lo,eth"));
  EXPECT_EQ("eth10", chosen(all, "^=lo,eth0"));
}

TEST(InterfaceTest, WithoutNamesTheUsualOnesAreChosen) {
  EXPECT_EQ("ib0", chosen({interface("eth0", 1), interface("ib0", 2)}, ""));
  EXPECT_EQ("eth0", chosen({interface("lo", 1), interface("docker0", 2), interface("virbr0", 3), interface("eth0", 4)}, ""));
  EXPECT_EQ("docker0", chosen({interface("lo", 1), interface("virbr0", 2), interface("docker0", 3)}, ""));
  EXPECT_EQ("lo", chosen({interface("virbr0", 1), interface("lo", 2)}, ""));
  EXPECT_EQ("virbr0", chosen({interface("virbr0", 1)}, ""));
  EXPECT_EQ("none", chosen({}, ""));
}

TEST(InterfaceTest, WithACommIdOnlyItsNetworkCounts) {
  std::vector<Interface> all{interface("eth0", 1), interface("eth1", 2)};
  NetworkAddress commId = interface("", 2).address;
  commId.bytes[3] = 77;
  EXPECT_EQ("eth1", chosen(all, "eth0", &commId));
  commId.bytes[2] = 3;
  EXPECT_EQ("none", chosen(all, "eth0", &commId));
  commId.family = AF_INET6;
  EXPECT_EQ("none", chosen(all, "", &commId));
}

TEST(InterfaceTest, TheFamilyAndTheAddressAreThoseOfTheEnvironment) {
  ScopedVariable names("NCCL_SOCKET_IFNAME", "=lo");
  EXPECT_EQ("127.0.0.1:0", ownInterface().address.text());
  names.set("=no interface");
  EXPECT_NE(std::string::npos, failureOf([] { ownInterface(); }).find("NCCL_SOCKET_IFNAME is '=no interface'"));
  names.set("=lo");
  ScopedVariable family("NCCL_SOCKET_FAMILY", "AF_INET6");
  // NCCL does not use ::1 either.
  EXPECT_NE("", failureOf([] { ownInterface(); }));
  family.set("IPv4");
  EXPECT_EQ("4: NCCL_SOCKET_FAMILY must be AF_INET or AF_INET6: 'IPv4'", failureOf([] { ownInterface(); }));
  family.set("AF_INET");
  ScopedVariable commId("NCCL_COMM_ID", "127.0.0.1:1234");
  EXPECT_EQ("127.0.0.1:1234", commIdAddress().text());
  for (const char* wrong : {"127.0.0.1", "127.0.0.1:0", ":12", "127.0.0.1:port"}) {
    commId.set(wrong);
    EXPECT_NE(std::string::npos, failureOf([] { commIdAddress(); }).find("4: NCCL_COMM_ID must be HOST:PORT")) << wrong;
  }
  family.set("AF_INET6");
  commId.set("[::1]:80");
  EXPECT_EQ("[::1]:80", commIdAddress().text());
}

TEST(HostTest, TheEnvironmentNamesTheHost) {
  uint64_t own = hostNumber();
  EXPECT_EQ(own, hostNumber());
  EXPECT_FALSE(expectsOtherHosts());
  ScopedVariable name("NCCL_HOSTID", "one");
  uint64_t one = hostNumber();
  EXPECT_NE(own, one);
  EXPECT_TRUE(expectsOtherHosts());
  name.set("two");
  EXPECT_NE(one, hostNumber());
  name.set("");
  ScopedVariable all("WORLD_SIZE", "4"), local("LOCAL_WORLD_SIZE", "4");
  EXPECT_FALSE(expectsOtherHosts());
  local.set("2");
  EXPECT_TRUE(expectsOtherHosts());
}

TEST(HostTest, NothingListensInTheNetworkUnlessOtherHostsAreExpected) {
  for (bool expected : {false, true}) {
    ScopedVariable names("NCCL_SOCKET_IFNAME", expected ? "=lo" : "");
    ncclUniqueId id;
    ASSERT_EQ(ncclSuccess, ncclGetUniqueId(&id));
    UniqueIdLayout layout;
    memcpy(&layout, id.internal, sizeof layout);
    EXPECT_EQ(expected, layout.address.valid());
    cancelUniqueId(id);
  }
}

/** Without and with encryption. */
class ConnectedHostsTest : public HostsTest, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    HostsTest::SetUp();
    if (!GetParam()) return;
    std::string failure = failureOf([] { setEncryptionKey("key"); });
    if (!failure.empty()) GTEST_SKIP() << failure;
  }
};

INSTANTIATE_TEST_SUITE_P(
    EveryTest, ConnectedHostsTest, testing::Bool(), [](const auto& info) { return info.param ? "Encrypted" : "Plain"; });

TEST_F(HostsTest, AConnectionIsProven) {
  Interface lo = loopback();
  NetworkAddress address = lo.address;
  Fd listener = listenAt(lo, address);
  EXPECT_NE(0, address.port);
  Digest secret = {1}, other = {2};
  for (const Digest& known : {secret, other}) {
    bool joined = true;
    Fd mine, theirs;
    TestThread connects([&] { joined = connectProven(known, "name", 10, mine, &address); });
    while (!acceptFromNetwork(listener, theirs) || !theirs.valid()) std::this_thread::yield();
    Proof proof(secret, "name");
    Proof::Step step;
    while ((step = proof.accept(theirs)) == Proof::Step::Waiting) std::this_thread::yield();
    theirs = step == Proof::Step::Proven ? std::move(theirs) : Fd();
    connects.join();
    EXPECT_EQ(known == secret, joined);
    EXPECT_EQ(known == secret, step == Proof::Step::Proven);
  }
  listener.reset();
  Fd none;
  EXPECT_FALSE(connectProven(secret, "name", 10, none, &address));
}

TEST_F(HostsTest, StrangersAreEndedInTime) {
  struct Stranger {
    bool fromNetwork;
    bool proven;
    double since;
  };
  std::vector<std::unique_ptr<Stranger>> all;
  auto add = [&](bool network, bool proven, double age) { all.push_back(std::make_unique<Stranger>(Stranger{network, proven, now() - age})); };
  add(true, false, 1000);
  add(true, true, 1000);
  add(false, false, 1000);
  dropStrangers(all);
  EXPECT_EQ(2u, all.size());
  for (size_t i = 0; i < kMostStrangers + 10; i++) add(true, false, i == 0 ? 5 : 0);
  dropStrangers(all);
  EXPECT_EQ(2 + kMostStrangers, all.size());
  EXPECT_GT(all[2]->since, now() - 4) << "the oldest one is ended first";
}

TEST_F(HostsTest, AStrangerThatSaysNothingDoesNotDelayRanks) {
  ncclUniqueId id;
  ASSERT_EQ(ncclSuccess, ncclGetUniqueId(&id));
  UniqueIdLayout layout;
  memcpy(&layout, id.internal, sizeof layout);
  ASSERT_TRUE(layout.address.valid());
  std::vector<Fd> strangers;
  for (size_t i = 0; i < kMostStrangers + 50; i++) {
    strangers.push_back(connectTo(layout.address));
    char garbage[200] = {};
    if (i % 2 == 0) sendSome(strangers.back().get(), garbage, sizeof garbage);
  }
  TestThread first([&] {
    ncclComm_t comm;
    EXPECT_EQ(ncclSuccess, ncclCommInitRank(&comm, 2, id, 0));
    ncclCommDestroy(comm);
  });
  ncclComm_t comm;
  EXPECT_EQ(ncclSuccess, ncclCommInitRank(&comm, 2, id, 1));
  ncclCommDestroy(comm);
  first.join();
}

TEST_F(HostsTest, ARankOfAnotherHostNeedsAnIdForIt) {
  UniqueIdLayout layout = UniqueIdLayout::make();
  ncclUniqueId id;
  memcpy(id.internal, &layout, sizeof layout);
  hostId.set("second");
  Comm comm(1, 2, 0, {});
  std::string failure = failureOf([&] { connectRanks(comm, id); });
  EXPECT_NE(std::string::npos, failure.find("5: rank 1 of 2 is on another host")) << failure;
}

TEST_F(HostsTest, RanksWithoutTheSameKeyAreRefused) {
  if (!failureOf([] { setEncryptionKey("key"); }).empty()) GTEST_SKIP() << "this system has no OpenSSL 3";
  struct Case {
    const char* keyOfId;
    const char* keyOfRank;
    const char* text;
  };
  for (const Case& one : {Case{"key", "Key", "a key for ncclSetEncryption, and process %d, which made the unique id, has another one"},
                          Case{"key", nullptr, "no key for ncclSetEncryption, and process %d, which made the unique id, has a key"},
                          Case{nullptr, "key", "a key for ncclSetEncryption, and process %d, which made the unique id, has no key"}}) {
    setEncryptionKey(one.keyOfId);
    hostId.set("first");
    ncclUniqueId id = makeUniqueId(Reach::OtherHosts);
    std::string reason = format(one.text, getpid());
    pid_t child = inChild([&] {
      setEncryptionKey(one.keyOfRank);
      hostId.set("second");
      Comm comm(1, 2, 0, {});
      std::string failure = failureOf([&] { connectRanks(comm, id); });
      EXPECT_EQ(0u, failure.find("5: rank 1 of 2 (pid " + std::to_string(getpid()) + ") has ")) << failure;
      EXPECT_NE(std::string::npos, failure.find(reason)) << failure;
      return testing::Test::HasFailure() ? 1 : 0;
    });
    // This rank needs no network to the server, which tells it of the other one.
    Comm comm(0, 2, 0, {});
    std::string failure = failureOf([&] { connectRanks(comm, id); });
    EXPECT_EQ(0u, failure.find("5: rank 1 of 2 (pid " + std::to_string(child) + ") has ")) << failure;
    EXPECT_NE(std::string::npos, failure.find(reason)) << failure;
    EXPECT_EQ(0, statusOf(child));
  }
}

TEST_F(HostsTest, NobodyAtTheAddressIsReported) {
  UniqueIdLayout layout = UniqueIdLayout::make();
  Interface lo = loopback();
  layout.address = lo.address;
  listenAt(lo, layout.address);  // and ends
  ncclUniqueId id;
  memcpy(id.internal, &layout, sizeof layout);
  hostId.set("second");
  Comm comm(1, 2, 0, {});
  std::string failure = failureOf([&] { connectRanks(comm, id); });
  EXPECT_EQ(0u, failure.find("6: rank 1 of 2 could not join at " + layout.address.text())) << failure;
}

TEST_P(ConnectedHostsTest, TheStatusServiceListensAsLongAsACommunicatorIsBetweenHosts) {
  ScopedVariable service("NCCL_RAS_ADDR", "127.0.0.1:28997");
  std::vector<ncclComm_t> comms = connect({"first", "second"});
  NetworkAddress address = findComm(comms[0])->peers[1].status;
  ASSERT_TRUE(address.valid());
  // The number of ranks that the service tells; -1: it refuses; -2: it does not answer.
  auto ask = [&](uint64_t process) {
    double end = now() + 3;
    Fd socket = connectTo(address);
    Proof proof = rasProof(process, Link::Network);
    Proof::Step step;
    while ((step = proof.connect(socket)) == Proof::Step::Waiting && now() < end) std::this_thread::yield();
    if (step != Proof::Step::Proven) return step == Proof::Step::Waiting ? -2 : -1;
    std::string bytes;
    std::vector<RankReport> ranks;
    while (now() < end && decode(bytes, ranks) == Decoded::Incomplete) {
      char buffer[4096];
      long got = receiveSome(socket.get(), buffer, sizeof buffer);
      if (got < 0) return -1;
      bytes.append(buffer, static_cast<size_t>(got));
    }
    return static_cast<int>(ranks.size());
  };
  std::vector<Fd> strangers;
  for (int i = 0; i < 200; i++) strangers.push_back(connectTo(address));
  EXPECT_EQ(2, ask(processToken()));
  EXPECT_EQ(-1, ask(processToken() + 1));
  ncclCommDestroy(comms[0]);
  EXPECT_EQ(1, ask(processToken()));
  ncclCommDestroy(comms[1]);
  EXPECT_EQ(-1, ask(processToken()));
  {
    // As one that fails before its ranks are connected.
    Comm comm(1, 2, 0, {});
    address = comm.ras.listen(loopback());
    ASSERT_TRUE(address.valid());
    EXPECT_EQ(-2, ask(processToken()));
  }
  EXPECT_EQ(-1, ask(processToken()));
}

TEST_P(ConnectedHostsTest, OnlyRanksOfAnotherHostUseTheNetwork) {
  std::vector<ncclComm_t> comms = connect({"first", "first", "second", "second"});
  for (int rank = 0; rank < 4; rank++) {
    std::shared_ptr<Comm> comm = findComm(comms[static_cast<size_t>(rank)]);
    for (int peer = 0; peer < 4; peer++) {
      if (peer == rank) continue;
      const Peer& to = comm->peers[static_cast<size_t>(peer)];
      EXPECT_EQ(rank / 2 != peer / 2, to.onOtherHost);
      EXPECT_EQ(rank / 2 == peer / 2, to.data->has(Capability::Polling)) << rank << ", " << peer;
    }
  }
  for (ncclComm_t comm : comms) ncclCommAbort(comm);
}

TEST_P(ConnectedHostsTest, CollectivesAndMessagesOfAllSizes) {
  for (const std::vector<const char*>& hosts :
       {std::vector<const char*>{"first", "second"}, {"first", "first", "second", "second"}, {"a", "b", "c"}, {"a", "b", "a", "b"}}) {
    std::vector<ncclComm_t> comms = connect(hosts);
    size_t ranks = comms.size();
    for (size_t count : {1u, 10u, 100u, 3000u, 100'000u, 400'000u}) {
      int wrong = 0;
      std::vector<std::vector<int32_t>> in(ranks), out(ranks, std::vector<int32_t>(count * ranks));
      for (size_t rank = 0; rank < ranks; rank++) {
        in[rank].resize(count * ranks);
        std::iota(in[rank].begin(), in[rank].end(), static_cast<int32_t>(1000 * rank));
      }
      inGroup(comms, [&](int rank, ncclComm_t comm) {
        size_t at = static_cast<size_t>(rank);
        ncclAllReduce(in[at].data(), out[at].data(), count, ncclInt32, ncclSum, comm, nullptr);
      });
      int32_t offset = static_cast<int32_t>(1000 * (ranks * (ranks - 1) / 2));
      for (size_t rank = 0; rank < ranks; rank++) {
        for (size_t i = 0; i < count; i++) wrong += out[rank][i] != static_cast<int32_t>(ranks * i) + offset;
      }
      inGroup(comms, [&](int rank, ncclComm_t comm) {
        size_t at = static_cast<size_t>(rank);
        ncclBroadcast(in[at].data(), out[at].data(), count, ncclInt32, static_cast<int>(ranks) - 1, comm, nullptr);
      });
      for (size_t rank = 0; rank < ranks; rank++) {
        for (size_t i = 0; i < count; i++) wrong += out[rank][i] != in[ranks - 1][i];
      }
      inGroup(comms, [&](int rank, ncclComm_t comm) {
        size_t at = static_cast<size_t>(rank);
        for (size_t peer = 0; peer < ranks; peer++) {
          ncclSend(in[at].data() + peer * count, count, ncclInt32, static_cast<int>(peer), comm, nullptr);
          ncclRecv(out[at].data() + peer * count, count, ncclInt32, static_cast<int>(peer), comm, nullptr);
        }
      });
      for (size_t rank = 0; rank < ranks; rank++) {
        for (size_t i = 0; i < count * ranks; i++) {
          wrong += out[rank][i] != in[i / count][rank * count + i % count];
        }
      }
      ASSERT_EQ(0, wrong) << ranks << " ranks, " << count << " elements";
    }
    inGroup(comms, [](int, ncclComm_t comm) { ncclCommFinalize(comm); });
    for (ncclComm_t comm : comms) EXPECT_EQ(ncclSuccess, ncclCommDestroy(comm));
  }
}

TEST_P(ConnectedHostsTest, PutsAndSignals) {
  std::vector<ncclComm_t> comms = connect({"first", "second"});
  constexpr size_t kCount = 300'000, kBytes = kCount * sizeof(int32_t);
  std::vector<void*> memory(2);
  std::vector<ncclWindow_t> windows(2);
  for (void*& one : memory) ASSERT_EQ(ncclSuccess, ncclMemAlloc(&one, 2 * kBytes));
  inGroup(comms, [&](int rank, ncclComm_t comm) {
    size_t at = static_cast<size_t>(rank);
    ncclCommWindowRegister(comm, memory[at], 2 * kBytes, &windows[at], NCCL_WIN_COLL_SYMMETRIC);
  });
  int32_t* sent = static_cast<int32_t*>(memory[0]);
  std::iota(sent, sent + kCount, 7);
  inGroup(comms, [&](int rank, ncclComm_t comm) {
    if (rank == 0) {
      EXPECT_EQ(ncclSuccess, ncclPutSignal(sent, kCount, ncclInt32, 1, windows[0], kBytes, 0, 0, 0, comm, nullptr));
    } else {
      ncclWaitSignalDesc_t wait{};
      wait.opCnt = 1;
      EXPECT_EQ(ncclSuccess, ncclWaitSignal(1, &wait, comm, nullptr));
    }
  });
  EXPECT_EQ(0, memcmp(sent, static_cast<char*>(memory[1]) + kBytes, kBytes));
  for (ncclComm_t comm : comms) ncclCommAbort(comm);
  for (void* one : memory) ncclMemFree(one);
}

TEST_P(ConnectedHostsTest, ElementsThatWereSentArriveAfterTheirSenderHasLeft) {
  std::vector<ncclComm_t> comms = connect({"first", "second"});
  constexpr size_t kCount = 4'000'000;
  std::vector<int32_t> sent(kCount, 3), got(kCount);
  // Unread by rank 0: the frames of a call that rank 1 begins.
  TestThread sends([&] {
    ncclSend(sent.data(), kCount, ncclInt32, 1, comms[0], nullptr);
    await(comms[0]);
    ncclCommDestroy(comms[0]);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ncclRecv(got.data(), kCount, ncclInt32, 0, comms[1], nullptr);
  await(comms[1]);
  sends.join();
  EXPECT_EQ(sent, got);
  ncclCommDestroy(comms[1]);
}

TEST_P(ConnectedHostsTest, AMismatchAndTheEndOfARankAreReported) {
  std::vector<ncclComm_t> comms = connect({"first", "second"});
  int32_t values[2] = {};
  ncclGroupStart();
  ncclAllReduce(&values[0], &values[0], 1, ncclInt32, ncclSum, comms[0], nullptr);
  ncclAllReduce(&values[1], &values[1], 1, ncclInt32, ncclMax, comms[1], nullptr);
  ncclGroupEnd();
  for (ncclComm_t comm : comms) {
    ncclResult_t result = ncclInProgress;
    while (result == ncclInProgress) ncclCommGetAsyncError(comm, &result);
    EXPECT_EQ(ncclInvalidUsage, result);
    ncclCommAbort(comm);
  }
  comms = connect({"first", "second"});
  ncclCommAbort(comms[1]);
  ncclAllReduce(&values[0], &values[0], 1, ncclInt32, ncclSum, comms[0], nullptr);
  ncclResult_t result = ncclInProgress;
  while (result == ncclInProgress) ncclCommGetAsyncError(comms[0], &result);
  EXPECT_EQ(ncclRemoteError, result);
  EXPECT_NE(nullptr, strstr(ncclGetLastError(comms[0]), "rank 1 aborted its communicator")) << ncclGetLastError(comms[0]);
  ncclCommAbort(comms[0]);
}

}  // namespace
}  // namespace host

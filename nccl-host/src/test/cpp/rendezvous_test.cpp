// rendezvous_test.cpp: the server of a unique id and the ranks that join it, each against a peer that says anything.

#include <gtest/gtest.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <chrono>
#include <thread>

#include "connected.h"
#include "protocol/bootstrap.h"
#include "protocol/regroup.h"
#include "testthread.h"

namespace host {
namespace {

UniqueIdLayout layoutOf(const ncclUniqueId& id) {
  UniqueIdLayout layout;
  memcpy(&layout, id.internal, sizeof layout);
  return layout;
}

/** Reads a message of this size; fewer bytes at the end of the stream. */
std::string readFrom(const Fd& socket, size_t size) {
  std::string bytes(size, '\0');
  for (size_t have = 0; have < size;) {
    long got = receiveSome(socket.get(), &bytes[have], size - have);
    if (got < 0) return bytes.substr(0, have);
    have += static_cast<size_t>(got);
    pollfd polled{socket.get(), POLLIN, 0};
    if (got == 0 && poll(&polled, 1, 10'000) <= 0) return "nothing within 10 s";
  }
  return bytes;
}

template <class T>
T structOf(const std::string& bytes) {
  T value;
  EXPECT_EQ(sizeof value, bytes.size());
  memcpy(static_cast<void*>(&value), bytes.data(), std::min(sizeof value, bytes.size()));
  return value;
}

class ServerTest : public testing::Test {
 protected:
  ServerTest() : id(makeUniqueId()) {}
  ~ServerTest() override { cancelUniqueId(id); }

  Hello hello(int rank, int ranks) {
    Hello hello;
    hello.rank = rank;
    hello.ranks = ranks;
    hello.pid = 100 + rank;
    hello.timeout = 30;
    hello.processors = 10 + rank;
    return hello;
  }

  Fd join(const Hello& hello) {
    Fd socket;
    EXPECT_TRUE(connectProven(layoutOf(id).secret, socketName(layoutOf(id).name), 10, socket));
    sendSome(socket.get(), &hello, sizeof hello);
    return socket;
  }

  static std::string errorFrom(const Fd& socket) {
    Answer answer = structOf<Answer>(readFrom(socket, sizeof(Answer)));
    EXPECT_EQ(AnswerKind::Error, answer.kind);
    Report report = structOf<Report>(readFrom(socket, sizeof(Report)));
    return format("%d: %s", report.code, report.text);
  }

  const ncclUniqueId id;
};

TEST_F(ServerTest, AllRanksGetTheTableAndThenTheWordToGo) {
  Fd ranks[] = {join(hello(0, 2)), join(hello(1, 2))};
  for (const Fd& rank : ranks) {
    Answer answer = structOf<Answer>(readFrom(rank, sizeof(Answer)));
    EXPECT_EQ(AnswerKind::Table, answer.kind);
    ASSERT_EQ(2 * sizeof(TableEntry), answer.bytes);
    readFrom(rank, sizeof(TableEntry));
    TableEntry second = structOf<TableEntry>(readFrom(rank, sizeof(TableEntry)));
    EXPECT_EQ(101, second.pid);
    EXPECT_EQ(11, second.processors);
  }
  Report report;
  for (const Fd& rank : ranks) sendSome(rank.get(), &report, sizeof report);
  for (const Fd& rank : ranks) EXPECT_EQ(AnswerKind::Go, structOf<Answer>(readFrom(rank, sizeof(Answer))).kind);
}

TEST_F(ServerTest, MissingRanksAreNamedAtTheDeadline) {
  Hello early = hello(1, 4);
  early.timeout = 0.2;
  std::string error = errorFrom(join(early));
  EXPECT_NE(std::string::npos, error.find("s for ranks 0, 2, 3 of 4")) << error;
}

TEST_F(ServerTest, RanksThatDisagreeGetAnError) {
  Fd first = join(hello(0, 2));
  Fd second = join(hello(1, 3));
  const char* error = "5: rank 1 was started with nranks 3 while rank 0 was started with nranks 2";
  EXPECT_EQ(error, errorFrom(first));
  EXPECT_EQ(error, errorFrom(second));
}

TEST_F(ServerTest, ARankThatIsStartedTwiceIsNamed) {
  Fd first = join(hello(1, 3));
  Hello again = hello(1, 3);
  again.pid = 7;
  Fd second = join(again);
  EXPECT_EQ("5: rank 1 of 3 was started twice: by pid 101 and by pid 7", errorFrom(first));
}

TEST_F(ServerTest, TheDeathOfARankIsReported) {
  Fd first = join(hello(0, 2));
  { Fd second = join(hello(1, 2)); }
  structOf<Answer>(readFrom(first, sizeof(Answer)));
  readFrom(first, 2 * sizeof(TableEntry));
  EXPECT_EQ("6: rank 1 (pid 101) went away during the init of the communicator", errorFrom(first));
}

TEST_F(ServerTest, ARankThatComesAfterAFailureIsToldAtOnce) {
  Fd first = join(hello(0, 3));
  join(hello(1, 3)).reset();
  const char* error = "6: rank 1 (pid 101) went away during the init of the communicator";
  EXPECT_EQ(error, errorFrom(first));
  first.reset();
  Fd late = join(hello(2, 3));
  EXPECT_EQ(error, errorFrom(late));
  EXPECT_EQ("", readFrom(late, 1)) << "the server knows no other rank to wait for";
}

TEST_F(ServerTest, ImplausibleHellosAreNotCounted) {
  std::vector<Hello> implausible(7, hello(0, 2));
  implausible[0].rank = -1;
  implausible[1].rank = 2;
  implausible[2].ranks = -5;
  implausible[3].timeout = NAN;
  implausible[4].timeout = HUGE_VAL;
  implausible[5].timeout = -1;
  implausible[6].kind = static_cast<HelloKind>(77);
  for (const Hello& one : implausible) EXPECT_EQ("", readFrom(join(one), 1));
  // They did not take the place of a rank.
  Fd ranks[] = {join(hello(0, 2)), join(hello(1, 2))};
  EXPECT_EQ(AnswerKind::Table, structOf<Answer>(readFrom(ranks[0], sizeof(Answer))).kind);
}

TEST_F(ServerTest, ACodeThatIsNoErrorBecomesOne) {
  Fd first = join(hello(0, 2));
  Fd second = join(hello(1, 2));
  readFrom(first, sizeof(Answer) + 2 * sizeof(TableEntry));
  Report report;
  report.code = 99;
  memset(report.text, 'x', sizeof report.text);
  sendSome(second.get(), &report, sizeof report);
  EXPECT_EQ("6: " + std::string(sizeof report.text - 1, 'x'), errorFrom(first));
}

TEST_F(ServerTest, NobodyJoinsWithoutTheSecret) {
  UniqueIdLayout layout = layoutOf(id);
  std::string name = socketName(layout.name);
  // It knows the name, which everybody can see, and all of the id but one bit.
  Digest secret = layout.secret;
  secret[31] = static_cast<char>(secret[31] ^ 1);
  Fd socket;
  EXPECT_FALSE(connectProven(secret, name, 10, socket));
  // It learns nothing of the table either, and takes no place of a rank.
  Fd ranks[] = {join(hello(0, 2)), join(hello(1, 2))};
  EXPECT_EQ(AnswerKind::Table, structOf<Answer>(readFrom(ranks[0], sizeof(Answer))).kind);
}

TEST_F(ServerTest, ARankOfALaterLibraryIsNamed) {
  for (bool early : {false, true}) {
    ncclUniqueId own = makeUniqueId();
    UniqueIdLayout layout = layoutOf(own);
    auto joinFirst = [&] {
      Fd socket;
      EXPECT_TRUE(connectProven(layout.secret, socketName(layout.name), 10, socket));
      Hello of0 = hello(0, 2);
      sendSome(socket.get(), &of0, sizeof of0);
      return socket;
    };
    Fd first;
    if (!early) first = joinFirst();
    Greeting greeting = Greeting::make(1, 2);
    strcpy(greeting.library, "9.9.9");
    Fd second;
    ASSERT_EQ(Connect::Done, connectTo(socketName(layout.name), second));
    Proof proof(layout.secret, socketName(layout.name), Link::Local, greeting);
    Proof::Step step;
    while ((step = proof.connect(second)) == Proof::Step::Waiting) std::this_thread::yield();
    EXPECT_EQ(Proof::Step::OtherLibrary, step);
    EXPECT_STREQ(kLibrary, proof.greeting().library);
    if (early) first = joinFirst();
    std::string error = errorFrom(first);
    EXPECT_NE(std::string::npos, error.find("rank 1 of 2 (pid")) << error;
    EXPECT_NE(std::string::npos, error.find("uses nccl4j 9.9.9 (protocol")) << error;
  }
}

TEST(OtherLibraryTest, ARankThatGetsTheIdOfAnotherLibraryFailsAtOnceAndTellsTheServer) {
  ncclUniqueId id = makeUniqueId();
  UniqueIdLayout layout = layoutOf(id);
  Fd listener = listenAt(socketName("another server: "));
  memcpy(layout.name, "another server: ", sizeof layout.name);
  struct {
    uint32_t protocol;
    const char* library;
    const char* named;
  } const others[] = {
      {kWireVersion + 1, kLibrary, "nccl4j 0."}, {kWireVersion, "8.8.8", "nccl4j 8.8.8 ("}};
  for (const auto& other : others) {
    layout.protocol = other.protocol;
    memset(layout.library, 0, sizeof layout.library);
    strcpy(layout.library, other.library);
    ncclUniqueId changed;
    memcpy(changed.internal, &layout, sizeof layout);
    Comm comm(1, 2, 0, {});
    std::string failure = failureOf([&] { connectRanks(comm, changed); });
    EXPECT_EQ(0u, failure.find(format("5: rank 1 of 2 (pid %d) uses nccl4j %s (protocol %u), but", getpid(), kLibrary, kWireVersion)))
        << failure;
    EXPECT_NE(std::string::npos, failure.find(std::string("made the unique id with ") + other.named)) << failure;
    Fd told;
    ASSERT_TRUE(acceptFrom(listener, told));
    Greeting greeting = structOf<Greeting>(readFrom(told, sizeof(Greeting)));
    EXPECT_EQ(kWireVersion, greeting.protocol);
    EXPECT_EQ(1, greeting.rank);
  }
  cancelUniqueId(id);
}

/** A rank whose server gives a fixed answer. */
std::string initWith(const std::string& answer) {
  UniqueIdLayout layout = UniqueIdLayout::make();
  layout.pid = 42;
  Fd listener = listenAt(socketName(layout.name));
  TestThread server([&] {
    Fd rank;
    while (!acceptFrom(listener, rank)) std::this_thread::yield();
    Proof proof(layout.secret, socketName(layout.name));
    while (proof.accept(rank) == Proof::Step::Waiting) std::this_thread::yield();
    readFrom(rank, sizeof(Hello));
    sendSome(rank.get(), answer.data(), answer.size());
  });
  ncclUniqueId id;
  memcpy(id.internal, &layout, sizeof layout);
  Comm comm(0, 2, 0, {});
  std::string failure = failureOf([&] { connectRanks(comm, id); });
  server.join();
  return failure;
}

std::string answerOf(AnswerKind kind, const std::string& body, uint32_t bytes) {
  Answer answer;
  answer.kind = kind;
  answer.bytes = bytes;
  return std::string(reinterpret_cast<const char*>(&answer), sizeof answer) + body;
}

std::string answerOf(AnswerKind kind, const std::string& body) {
  return answerOf(kind, body, static_cast<uint32_t>(body.size()));
}

std::string bytesOf(const Report& report) { return {reinterpret_cast<const char*>(&report), sizeof report}; }

TEST(RankTest, AnErrorOfTheServerIsThrown) {
  Report report;
  report.code = ncclInvalidUsage;
  strcpy(report.text, "reason");
  EXPECT_EQ("5: reason", initWith(answerOf(AnswerKind::Error, bytesOf(report))));
}

TEST(RankTest, AnErrorIsNeverASuccess) {
  for (int code : {0, static_cast<int>(ncclInProgress), -1, 12345}) {
    Report report;
    report.code = code;
    strcpy(report.text, "reason");
    EXPECT_EQ("6: reason", initWith(answerOf(AnswerKind::Error, bytesOf(report))));
  }
}

TEST(RankTest, AnswersOfAnotherSizeAreRefused) {
  const char* unexpected = "3: the server of the unique id gave an unexpected answer";
  EXPECT_EQ(unexpected, initWith(answerOf(AnswerKind::Table, "", UINT32_MAX)));
  EXPECT_EQ(unexpected, initWith(answerOf(AnswerKind::Table, std::string(sizeof(TableEntry), 'x'))));
  EXPECT_EQ(unexpected, initWith(answerOf(AnswerKind::Error, "", 0)));
  EXPECT_EQ(unexpected, initWith(answerOf(AnswerKind::Go, "")));
  EXPECT_EQ(unexpected, initWith(answerOf(static_cast<AnswerKind>(9), "")));
}

TEST(RankTest, AnAnswerBeforeItsTimeIsRefused) {
  std::string table = answerOf(AnswerKind::Table, std::string(2 * sizeof(TableEntry), 'x'));
  EXPECT_EQ(
      "3: the server of the unique id gave an unexpected answer", initWith(table + answerOf(AnswerKind::Go, "")));
}

TEST(RankTest, AnAbortIsReportedToTheServer) {
  UniqueIdLayout layout = UniqueIdLayout::make();
  Fd listener = listenAt(socketName(layout.name));
  ncclUniqueId id;
  memcpy(id.internal, &layout, sizeof layout);
  Comm comm(0, 2, 0, {});
  std::string failure;
  TestThread rank([&] { failure = failureOf([&] { connectRanks(comm, id); }); });
  Fd joining;
  while (!acceptFrom(listener, joining)) std::this_thread::yield();
  Proof proof(layout.secret, socketName(layout.name));
  while (proof.accept(joining) == Proof::Step::Waiting) std::this_thread::yield();
  readFrom(joining, sizeof(Hello));
  comm.requestAbort();
  rank.join();
  EXPECT_EQ("3: the init of rank 0 was aborted by ncclCommAbort", failure);
  Report report = structOf<Report>(readFrom(joining, sizeof(Report)));
  EXPECT_EQ(ncclRemoteError, report.code);
  EXPECT_STREQ("rank 0 could not connect: the init of rank 0 was aborted by ncclCommAbort", report.text);
}

TEST(RankTest, TheEndOfTheServerIsReported) {
  const char* gone = "6: process 42, which made the unique id, went away during the init of rank 0 of 2";
  EXPECT_EQ(gone, initWith(""));
  EXPECT_EQ(gone, initWith("abc"));
  EXPECT_EQ(gone, initWith(answerOf(AnswerKind::Table, "short", 2 * sizeof(TableEntry))));
}

// Only the parent's connections tell of the death of a rank that has not joined.
TEST_F(ServerTest, TheDeathOfARankOfTheParentEndsTheWaitForIt) {
  Connected parent(3);
  // Takes no part.
  parent.ends[2].control.reset();
  Fd newRank = join(hello(3, 4));
  Comm child(0, 4, 0, {});
  std::string failure;
  Members members(*parent.comm, Call::CommSplit, {0, 1});
  TestThread other([&] { failure = failureOf([&] { connectRanks(child, id, &members); }); });
  parent.ends[1].control.reset();
  other.join();
  EXPECT_EQ("6: rank 1 (pid 0) went away while rank 0 was in CommSplit", failure);
  EXPECT_EQ("6: rank 0 could not connect: " + failure.substr(3), errorFrom(newRank));
}

// Another thread may read the parent's connections. It does not do so for ever.
TEST_F(ServerTest, TheDeathIsSeenAfterAnOperationOfTheParent) {
  Connected parent(2);
  parent.ends[1].control.reset();
  parent.comm->operation.lock();
  Comm child(0, 2, 0, {});
  std::string failure;
  Members members(*parent.comm, Call::CommShrink, {0, 1});
  TestThread other([&] { failure = failureOf([&] { connectRanks(child, id, &members); }); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  parent.comm->operation.unlock();
  other.join();
  EXPECT_EQ("6: rank 1 (pid 0) went away while rank 0 was in CommShrink", failure);
}

// The ranks choose the same way for an operation only if all of them know this.
TEST(RankTest, ARankWithFewProcessorsCrowdsAllRanks) {
  for (bool crowded : {false, true}) {
    if (!crowded && usableProcessors() < 2) continue;
    ncclUniqueId id = makeUniqueId();
    ncclComm_t comms[2] = {};
    auto init = [&](int rank) {
      cpu_set_t processors;
      ASSERT_EQ(0, sched_getaffinity(0, sizeof processors, &processors));
      for (int i = 0; crowded && rank == 0 && CPU_COUNT(&processors) > 1; i++) CPU_CLR(i, &processors);
      ASSERT_EQ(0, sched_setaffinity(0, sizeof processors, &processors));
      ASSERT_EQ(ncclSuccess, ncclCommInitRank(&comms[rank], 2, id, rank));
    };
    TestThread first(init, 0), second(init, 1);
    first.join();
    second.join();
    for (ncclComm_t comm : comms) {
      EXPECT_EQ(crowded, findComm(comm)->crowded);
      ncclCommAbort(comm);
    }
  }
}

}  // namespace
}  // namespace host

// proof_test.cpp: connections whose ends know a secret, or do not.

#include <gtest/gtest.h>
#include <sched.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <utility>

#include "connected.h"
#include "transport/proof.h"

namespace host {
namespace {

using Step = Proof::Step;

const Digest kSecret = {'s', 'e', 'c', 'r', 'e', 't'};
const Digest kGuess = {'s', 'e', 'c', 'r', 'e', 'T'};

/** A connection; `connecting` and `accepting` are its ends. */
struct Ends {
  std::pair<Fd, Fd> sockets = newStream();
  const Fd& connecting = sockets.first;
  const Fd& accepting = sockets.second;
};

/** All bytes that have arrived. */
std::string bytesAt(const Fd& socket) {
  char bytes[1024];
  long got = receiveSome(socket.get(), bytes, sizeof bytes);
  return std::string(bytes, static_cast<size_t>(std::max(0L, got)));
}

void send(const Fd& socket, const std::string& bytes) {
  ASSERT_EQ(static_cast<long>(bytes.size()), sendSome(socket.get(), bytes.data(), bytes.size()));
}

TEST(ProofTest, EndsThatKnowTheSecretProveIt) {
  Ends ends;
  Proof one(kSecret, "name"), other(kSecret, "name");
  EXPECT_EQ(Step::Waiting, other.accept(ends.accepting));
  EXPECT_EQ(Step::Waiting, one.connect(ends.connecting));
  EXPECT_EQ(Step::Waiting, other.accept(ends.accepting));
  EXPECT_EQ(Step::Proven, one.connect(ends.connecting));
  EXPECT_EQ(Step::Proven, other.accept(ends.accepting));
  // Nothing is left of the proofs.
  send(ends.connecting, "first");
  EXPECT_EQ("first", bytesAt(ends.accepting));
}

TEST(ProofTest, MessagesMayArriveInPieces) {
  Ends ends, relayed;
  Proof one(kSecret, "name"), other(kSecret, "name");
  Step connecting = Step::Waiting, accepting = Step::Waiting;
  while (connecting == Step::Waiting || accepting == Step::Waiting) {
    if (connecting == Step::Waiting) connecting = one.connect(ends.connecting);
    if (accepting == Step::Waiting) accepting = other.accept(relayed.accepting);
    char byte;
    if (receiveSome(ends.accepting.get(), &byte, 1) > 0) send(relayed.connecting, {byte});
    if (receiveSome(relayed.connecting.get(), &byte, 1) > 0) send(ends.accepting, {byte});
  }
  EXPECT_EQ(Step::Proven, connecting);
  EXPECT_EQ(Step::Proven, accepting);
}

TEST(ProofTest, AConnectionBetweenHostsIsEncryptedWithAKey) {
  if (!failureOf([] { setEncryptionKey("key"); }).empty()) GTEST_SKIP() << "this system has no OpenSSL 3";
  for (Link link : {Link::Any, Link::Local, Link::Network}) {
    Ends ends, relayed;
    Proof one(kSecret, "name", link), other(kSecret, "name", link);
    Step connecting = Step::Waiting, accepting = Step::Waiting;
    std::string seen;
    auto relay = [&] {
      std::string bytes = bytesAt(ends.accepting);
      if (!bytes.empty()) send(relayed.connecting, bytes);
      seen = bytes;
      bytes = bytesAt(relayed.connecting);
      if (!bytes.empty()) send(ends.accepting, bytes);
    };
    for (int turn = 0; turn < 20 && (connecting == Step::Waiting || accepting == Step::Waiting); turn++) {
      if (connecting == Step::Waiting) connecting = one.connect(ends.connecting);
      if (accepting == Step::Waiting) accepting = other.accept(relayed.accepting);
      relay();
    }
    ASSERT_EQ(Step::Proven, connecting);
    ASSERT_EQ(Step::Proven, accepting);
    send(ends.connecting, "elements");
    relay();
    EXPECT_EQ(link == Link::Network, seen.find("elements") == std::string::npos);
    EXPECT_EQ("elements", bytesAt(relayed.accepting));
  }
  // Of two processes with and without a key; those that are not of one communicator need not have the same.
  for (Link link : {Link::Any, Link::Local, Link::Network}) {
    Ends ends;
    setEncryptionKey("key");
    Proof one(kSecret, "name", link);
    setEncryptionKey(nullptr);
    Proof other(kSecret, "name", link);
    one.connect(ends.connecting);
    other.accept(ends.accepting);
    EXPECT_EQ(link == Link::Any ? Step::Proven : Step::OtherKey, one.connect(ends.connecting));
    EXPECT_EQ(link == Link::Any ? Step::Proven : Step::OtherKey, other.accept(ends.accepting));
  }
}

TEST(ProofTest, AnEndThatOnlyGuessesIsRefused) {
  for (bool guesserAccepts : {true, false}) {
    Ends ends;
    Proof one(guesserAccepts ? kSecret : kGuess, "name"), other(guesserAccepts ? kGuess : kSecret, "name");
    one.connect(ends.connecting);
    EXPECT_EQ(Step::Waiting, other.accept(ends.accepting));
    EXPECT_EQ(Step::Refused, one.connect(ends.connecting));
    EXPECT_EQ("", bytesAt(ends.accepting)) << "a proof is given only to an end that has proven";
  }
  // The end that connects guesses, but does not check.
  Ends ends;
  Proof other(kSecret, "name");
  Greeting greeting = Greeting::make();
  send(ends.connecting, std::string(reinterpret_cast<char*>(&greeting), sizeof greeting) + std::string(32, 'x'));
  EXPECT_EQ(Step::Refused, other.accept(ends.accepting));
}

TEST(ProofTest, AProofIsForOneSocket) {
  Ends ends;
  Proof one(kSecret, "name"), other(kSecret, "other");
  one.connect(ends.connecting);
  EXPECT_EQ(Step::Waiting, other.accept(ends.accepting));
  EXPECT_EQ(Step::Refused, one.connect(ends.connecting));
}

TEST(ProofTest, AProofIsForOneConnection) {
  Ends first;
  Proof one(kSecret, "name"), other(kSecret, "name");
  one.connect(first.connecting);
  other.accept(first.accepting);
  std::string answer = bytesAt(first.connecting);
  ASSERT_EQ(sizeof(Greeting) + sizeof(Digest), answer.size());
  Ends second;
  Proof later(kSecret, "name");
  send(second.accepting, answer);
  EXPECT_EQ(Step::Refused, later.connect(second.connecting));
  // The bytes that an end sent itself prove nothing either.
  Ends third;
  Proof mirrored(kSecret, "name");
  EXPECT_EQ(Step::Waiting, mirrored.connect(third.connecting));
  std::string greeting = bytesAt(third.accepting);
  send(third.accepting, greeting + greeting.substr(48));
  EXPECT_EQ(Step::Refused, mirrored.connect(third.connecting));
}

TEST(ProofTest, OtherBytesAreRefusedAtOnce) {
  Ends ends;
  Proof one(kSecret, "name");
  send(ends.connecting, "GET / HTTP/1.1\r\n");
  EXPECT_EQ(Step::Refused, one.accept(ends.accepting));
  Ends closed;
  closed.sockets.first.reset();
  EXPECT_EQ(Step::Refused, Proof(kSecret, "name").accept(closed.accepting));
}

TEST(ProofTest, ANameOfALibraryIsPrintable) {
  char name[24];
  memset(name, '\x1b', sizeof name);
  EXPECT_EQ("nccl4j ???????????????????????? (protocol 99)", describeLibrary(99, name));
}

// In such a namespace the kernel shows a process of another user as one of the own user.
TEST(UserNamespaceTest, TheIdOfAllUsersOutsideGetsNoSocket) {
  unsigned overflow = 0;
  std::ifstream("/proc/sys/kernel/overflowuid") >> overflow;
  enum Exit { kRefused, kAccepted, kOtherText, kNoNamespace };
  pid_t child = fork();
  if (child == 0) {
    std::string map = format("%u %u 1", overflow, geteuid());
    if (unshare(CLONE_NEWUSER) != 0 || !(std::ofstream("/proc/self/uid_map") << map << std::flush) || geteuid() != overflow) {
      _exit(kNoNamespace);
    }
    std::string failure = failureOf([] { listenAt("nccl4j-namespace"); });
    bool named = failure.find(format("5: user %u of this user namespace", overflow)) == 0;
    _exit(failure.empty() ? kAccepted : named ? kRefused : kOtherText);
  }
  int status = 0;
  ASSERT_EQ(child, waitpid(child, &status, 0));
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNoNamespace) GTEST_SKIP() << "this system permits no user namespaces";
  EXPECT_EQ(kRefused, WEXITSTATUS(status));
}

}  // namespace
}  // namespace host

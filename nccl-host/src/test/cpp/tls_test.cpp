// tls_test.cpp: encrypted connections, with a network between the ends that reads and changes their bytes.

#include <gtest/gtest.h>
#include <string.h>

#include <numeric>
#include <utility>

#include "connected.h"
#include "testthread.h"
#include "transport/tls.h"
#include "transport/socket.h"

namespace host {
namespace {

const Digest kKey = {'k', 'e', 'y'};

/** Two ends, and the network between them: `mine` and `theirs` are its sockets. */
class TlsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!failureOf([] { Tls(Tls::Side::Connects, kKey); }).empty()) GTEST_SKIP() << "this system has no OpenSSL 3";
  }

  struct End {
    std::pair<Fd, Fd> sockets = newStream();  // of the end, and of the network
    std::shared_ptr<Tls> tls;
    Tls::Step step = Tls::Step::Waiting;

    const Fd& own() const { return sockets.first; }
    const Fd& network() const { return sockets.second; }
  };

  End one, other;
  std::string seen;                       // by the network, from `one`
  void (*change)(std::string&) = nullptr;  // by the network

  /** Passes what has been sent to the other end. */
  void pass() {
    for (auto [from, to] : {std::pair(&one, &other), std::pair(&other, &one)}) {
      char buffer[4096];
      for (long got; (got = receiveSome(from->network().get(), buffer, sizeof buffer)) > 0;) {
        std::string bytes(buffer, static_cast<size_t>(got));
        if (from == &one) seen += bytes;
        if (change != nullptr) change(bytes);
        for (size_t sent = 0; sent < bytes.size();) {
          long taken = sendSome(to->network().get(), bytes.data() + sent, bytes.size() - sent);
          ASSERT_GE(taken, 0);
          sent += static_cast<size_t>(taken);
        }
      }
    }
  }

  void shakeHands(const Digest& key = kKey, uint64_t recordsOfKeys = Tls::kRecordsOfKeys) {
    one.tls = std::make_shared<Tls>(Tls::Side::Connects, kKey, recordsOfKeys);
    other.tls = std::make_shared<Tls>(Tls::Side::Accepts, key, recordsOfKeys);
    for (int turn = 0; turn < 10; turn++) {
      for (End* end : {&one, &other}) {
        if (end->step == Tls::Step::Waiting) end->step = end->tls->handshake(end->own().get());
        pass();
      }
    }
  }

  /** From now on the sockets of both ends are encrypted. */
  void begin(uint64_t recordsOfKeys = Tls::kRecordsOfKeys) {
    shakeHands(kKey, recordsOfKeys);
    for (End* end : {&one, &other}) {
      ASSERT_EQ(Tls::Step::Done, end->step);
      encrypt(end->own(), end->tls);
    }
    seen.clear();
  }

  static std::string receiveAll(const End& end, size_t size = 1 << 20) {
    std::string bytes(size, '\0');
    long got = receiveSome(end.own().get(), bytes.data(), bytes.size());
    if (got < 0) return "end";
    bytes.resize(static_cast<size_t>(got));
    return bytes;
  }

  static bool hasInput(const End& end) {
    std::vector<pollfd> polled{{end.own().get(), POLLIN, 0}};
    pollAll(polled, 0);
    return (polled[0].revents & POLLIN) != 0;
  }

  static void send(const End& end, const std::string& bytes) {
    ASSERT_EQ(static_cast<long>(bytes.size()), sendSome(end.own().get(), bytes.data(), bytes.size()));
  }
};

TEST_F(TlsTest, TheNetworkReadsNothing) {
  begin();
  std::string secret = "a secret that is long enough to be found";
  send(one, secret);
  send(other, secret + " back");
  pass();
  EXPECT_EQ(secret, receiveAll(other));
  EXPECT_EQ(secret + " back", receiveAll(one));
  EXPECT_GT(seen.size(), secret.size());
  EXPECT_EQ(std::string::npos, seen.find(secret.substr(0, 4)));
}

TEST_F(TlsTest, AnotherKeyIsRefused) {
  shakeHands({'K', 'e', 'y'});
  EXPECT_EQ(Tls::Step::Refused, other.step);
  EXPECT_EQ(Tls::Step::Refused, one.step);
}

TEST_F(TlsTest, AnEndThatIsGoneIsTold) {
  other.sockets.first.reset();
  other.sockets.second.reset();
  one.tls = std::make_shared<Tls>(Tls::Side::Connects, kKey);
  EXPECT_EQ(Tls::Step::Waiting, one.tls->handshake(one.own().get()));
  one.sockets.second.reset();
  EXPECT_EQ(Tls::Step::Ended, one.tls->handshake(one.own().get()));
}

TEST_F(TlsTest, OtherBytesAreRefused) {
  std::string text = "GET / HTTP/1.1\r\n\r\n";
  sendSome(other.network().get(), text.data(), text.size());
  Tls accepting(Tls::Side::Accepts, kKey);
  EXPECT_EQ(Tls::Step::Refused, accepting.handshake(other.own().get()));
}

TEST_F(TlsTest, AChangedByteEndsTheConnection) {
  begin();
  send(one, "first");
  pass();
  EXPECT_EQ("first", receiveAll(other));
  change = [](std::string& bytes) { bytes[bytes.size() - 20] ^= 1; };
  send(one, std::string(100, 'x'));
  pass();
  change = nullptr;
  EXPECT_TRUE(hasInput(other));
  EXPECT_EQ("end", receiveAll(other));
}

TEST_F(TlsTest, PollingShowsAnEndBehindBytes) {
  begin();
  send(one, "last");
  pass();
  change = [](std::string& bytes) { bytes[bytes.size() - 20] ^= 1; };
  send(one, std::string(100, 'x'));
  pass();
  change = nullptr;
  // Both records are taken from the socket.
  EXPECT_EQ("last", receiveAll(other));
  EXPECT_TRUE(hasInput(other));
  EXPECT_EQ("end", receiveAll(other));
}

TEST_F(TlsTest, ARepeatedRecordEndsTheConnection) {
  begin();
  send(one, "again");
  pass();
  EXPECT_EQ("again", receiveAll(other));
  ASSERT_EQ(static_cast<long>(seen.size()), sendSome(other.network().get(), seen.data(), seen.size()));
  EXPECT_EQ("end", receiveAll(other));
}

TEST_F(TlsTest, PollingShowsBytesThatAreDecryptedAlready) {
  begin();
  send(one, "0123456789");
  pass();
  EXPECT_TRUE(hasInput(other));
  EXPECT_EQ("012", receiveAll(other, 3));
  EXPECT_TRUE(hasInput(other));
  double begun = now();
  awaitInput(other.own().get(), 10'000);
  EXPECT_LT(now() - begun, 5) << "polling waits for more";
  EXPECT_EQ("3456789", receiveAll(other));
  EXPECT_FALSE(hasInput(other));
  // A second descriptor of the socket is the same connection.
  Fd copy = duplicate(other.own());
  send(one, "more");
  pass();
  char bytes[8];
  EXPECT_EQ(4, receiveSome(copy.get(), bytes, sizeof bytes));
  EXPECT_FALSE(hasInput(other));
}

TEST_F(TlsTest, ManyBytesInPartsOfAnySizeWaitForRoom) {
  begin();
  std::string all(3 << 20, '\0');
  for (size_t i = 0; i < all.size(); i++) all[i] = static_cast<char>(i * 31 + i / 997);
  TestThread network([&] {
    // Slowly, so that the sender must wait.
    size_t passed = 0;
    while (passed < all.size()) {
      size_t before = seen.size();
      pass();
      passed += seen.size() - before;
      if (seen.size() == before) std::this_thread::yield();
    }
  });
  bool waited = false;
  TestThread sender([&] {
    const size_t sizes[] = {64, 5000, 70000, 1, 16384, 16383};
    for (size_t at = 0, i = 0; at < all.size(); i++) {
      size_t first = std::min(sizes[i % 6], all.size() - at), second = std::min(sizes[(i + 2) % 6], all.size() - at - first);
      for (size_t sent = 0; sent < first + second;) {
        // What is left of the two parts, as callers send it again.
        iovec parts[2] = {
            {all.data() + at + std::min(sent, first), first - std::min(sent, first)},
            {all.data() + at + std::max(sent, first), first + second - std::max(sent, first)}};
        long got = sendParts(one.own().get(), parts, 2);
        ASSERT_GE(got, 0);
        waited |= got == 0;
        sent += static_cast<size_t>(got);
      }
      at += first + second;
    }
  });
  std::string received;
  while (received.size() < all.size()) {
    awaitInput(other.own().get(), 1000);
    std::string more = receiveAll(other, 30000);
    ASSERT_NE("end", more);
    received += more;
  }
  sender.join();
  network.join();
  EXPECT_TRUE(all == received);
  EXPECT_TRUE(waited);
}

TEST_F(TlsTest, KeysAreRenewed) {
  constexpr uint64_t kRecords = 3;
  begin(kRecords);
  std::string received;
  for (int i = 0; i < 10; i++) {
    send(one, "record");
    pass();
    received += receiveAll(other);
  }
  EXPECT_EQ(60u, received.size());
  size_t records = 0;
  for (size_t at = 0; at + 5 <= seen.size(); records++) {
    at += 5 + static_cast<unsigned char>(seen[at + 3]) * 256u + static_cast<unsigned char>(seen[at + 4]);
  }
  EXPECT_EQ(10u + 3, records) << "one for new keys after every three";
}

}  // namespace
}  // namespace host

// hash_test.cpp: the hashes of the standards' own examples.

#include <gtest/gtest.h>

#include "base/error.h"
#include "transport/hash.h"

namespace host {
namespace {

std::string hex(const Digest& digest) {
  std::string text;
  for (char byte : digest) text += format("%02x", static_cast<unsigned char>(byte));
  return text;
}

TEST(HashTest, Sha256IsThatOfTheStandard) {
  EXPECT_EQ("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", hex(sha256("")));
  EXPECT_EQ("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", hex(sha256("abc")));
  EXPECT_EQ(
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
      hex(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")));
  EXPECT_EQ("cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0", hex(sha256(std::string(1000000, 'a'))));
}

TEST(HashTest, PaddingFillsBlocksOfAnyLength) {
  // Around the lengths at which the padding needs one more block.
  Digest last = {};
  for (size_t length = 50; length < 70; length++) {
    Digest hash = sha256(std::string(length, 'x'));
    EXPECT_FALSE(areEqual(last, hash));
    last = hash;
  }
  EXPECT_EQ("9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318", hex(sha256(std::string(55, 'a'))));
  EXPECT_EQ("ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb", hex(sha256(std::string(64, 'a'))));
}

TEST(HashTest, HmacIsThatOfTheStandard) {
  // RFC 4231, test case 2: a shorter key is one with zeros after it.
  Digest key = {'J', 'e', 'f', 'e'};
  EXPECT_EQ(
      "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
      hex(hmac(key, {"what do ya want ", "for nothing?"})));
}

TEST(HashTest, EqualityLooksAtAllBytes) {
  Digest one = {};
  for (size_t i = 0; i < one.size(); i++) {
    Digest other = one;
    other[i] = '\x80';
    EXPECT_FALSE(areEqual(one, other));
  }
  EXPECT_TRUE(areEqual(one, Digest()));
}

}  // namespace
}  // namespace host

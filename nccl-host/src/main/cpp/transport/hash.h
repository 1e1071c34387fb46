// hash.h: SHA-256 (FIPS 180-4) and HMAC (RFC 2104) with it, for proofs between processes.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <array>
#include <initializer_list>
#include <string>

namespace host {

using Digest = std::array<char, 32>;

Digest sha256(const std::string& bytes);

/** The hash of the parts, one after the other, that only the holders of the key can compute. */
Digest hmac(const Digest& key, std::initializer_list<std::string> parts);

/** Compares in a time that does not depend on the bytes. */
bool areEqual(const Digest& one, const Digest& other);

}  // namespace host

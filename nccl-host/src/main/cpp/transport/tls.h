// tls.h: TLS 1.3 (RFC 8446) on the connections between hosts, by the OpenSSL 3 of the system, with a key that all processes share.
//
// A descriptor gets a Tls by encrypt() of socket.h. From then on the functions of socket.h that send, receive and poll pass its bytes
// through the Tls, so that their callers need not know which connections are encrypted.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>

#include "transport/hash.h"

struct ssl_st;

namespace host {

/** Encrypts the connections between hosts that this process makes from now on; NULL: does not. Throws if OpenSSL 3 cannot be loaded. */
void setEncryptionKey(const char* key);

/** A digest of the key; empty if there is none. */
std::optional<Digest> encryptionKey();

/** True once encryptionKey() was called: other processes may know this one by its answer. */
bool encryptionKeyIsUsed();

/** One end of an encrypted connection. For any threads. */
class Tls {
 public:
  enum class Side { Connects, Accepts };

  /** Number of records, in one direction, after which the sender takes new keys: far fewer than AES-GCM permits. */
  static constexpr uint64_t kRecordsOfKeys = 1 << 22;

  /** Throws if OpenSSL 3 cannot be loaded. */
  Tls(Side side, const Digest& key, uint64_t recordsOfKeys = kRecordsOfKeys);
  ~Tls();
  Tls(const Tls&) = delete;

  enum class Step {
    Waiting,  // for the other end
    Done,
    Ended,    // the connection has
    Refused,  // the other end has another key, or is none of TLS
  };

  /** Continues without waiting. */
  Step handshake(int socket);
  /** True if the handshake waits until it can send. */
  bool sends() const { return sends_; }

  /**
   * As sendParts of socket.h. After 0, the next call must begin with the same bytes: some of them may have been encrypted.
   */
  long send(int socket, iovec* parts, size_t count);
  /** As receiveSome of socket.h. */
  long receive(int socket, void* data, size_t size);
  /** True if receive() may have bytes that polling does not show. */
  bool mayHaveMore() const { return mayHaveMore_; }

  struct Bytes;  // the connection, as OpenSSL sees it

 private:
  long write(const void* data, size_t size);

  std::mutex lock_;
  const Digest key_;
  const uint64_t recordsOfKeys_;
  uint64_t records_ = 0;
  bool pending_ = false;  // a record that the socket has not taken completely
  bool sends_ = false;
  bool ended_ = false;    // the socket is
  std::atomic<bool> mayHaveMore_{true};
  int socket_ = -1;       // during a call
  ssl_st* ssl_ = nullptr;
};

}  // namespace host

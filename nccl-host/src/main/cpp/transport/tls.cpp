// tls.cpp: the functions of OpenSSL that tls.h needs, loaded at run time.

#include "transport/tls.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include <algorithm>
#include <string>
#include <type_traits>

#include "base/error.h"
#include "library_file.h"

using Ssl = ssl_st;
struct SslContext;
struct SslMethod;
struct Bio;
struct BioMethod;

namespace host {
namespace {

// Numbers of OpenSSL 3.
constexpr uint64_t kNoExitHandler = 0x80000;  // OPENSSL_INIT_NO_ATEXIT
constexpr int kSetMode = 33;
constexpr long kModes = 1 | 2 | 0x10;  // partial writes, moving write buffers, release of idle buffers
constexpr int kSetMinimum = 123;
constexpr long kTls13 = 0x304;
constexpr int kVerifyPeer = 1;
constexpr int kWantRead = 2;
constexpr int kWantWrite = 3;
constexpr int kBioType = 0x400 | 100;  // a source and sink of our own
constexpr int kBioFlush = 11;
constexpr int kBioRetryRead = 1 | 8;
constexpr int kBioRetryWrite = 2 | 8;
constexpr int kBioRetryFlags = 1 | 2 | 4 | 8;

/** Maximum number of bytes of a record. */
constexpr size_t kRecord = 16 << 10;
/** Bytes that are taken from the socket at once. */
constexpr size_t kReadBuffer = 128 << 10;

using ClientKey = unsigned (*)(Ssl*, const char* hint, char* identity, unsigned room, unsigned char* key, unsigned roomForKey);
using ServerKey = unsigned (*)(Ssl*, const char* identity, unsigned char* key, unsigned roomForKey);

// The functions of libssl.so.3, and of libcrypto.so.3, which it needs.
#define HOST_OPENSSL(X) \
  X(OPENSSL_init_ssl, int(uint64_t, const void*)) \
  X(TLS_method, SslMethod*()) \
  X(SSL_CTX_new, SslContext*(SslMethod*)) \
  X(SSL_CTX_ctrl, long(SslContext*, int, long, void*)) \
  X(SSL_CTX_set_ciphersuites, int(SslContext*, const char*)) \
  X(SSL_CTX_set_num_tickets, int(SslContext*, size_t)) \
  X(SSL_CTX_set_default_read_buffer_len, void(SslContext*, size_t)) \
  X(SSL_CTX_set_psk_client_callback, void(SslContext*, ClientKey)) \
  X(SSL_CTX_set_psk_server_callback, void(SslContext*, ServerKey)) \
  X(SSL_new, Ssl*(SslContext*)) \
  X(SSL_free, void(Ssl*)) \
  X(SSL_set_verify, void(Ssl*, int, void*)) \
  X(SSL_set_bio, void(Ssl*, Bio*, Bio*)) \
  X(SSL_set_ex_data, int(Ssl*, int, void*)) \
  X(SSL_get_ex_data, void*(const Ssl*, int)) \
  X(SSL_set_read_ahead, void(Ssl*, int)) \
  X(SSL_set_connect_state, void(Ssl*)) \
  X(SSL_set_accept_state, void(Ssl*)) \
  X(SSL_do_handshake, int(Ssl*)) \
  X(SSL_session_reused, int(const Ssl*)) \
  X(SSL_read, int(Ssl*, void*, int)) \
  X(SSL_write, int(Ssl*, const void*, int)) \
  X(SSL_get_error, int(const Ssl*, int)) \
  X(SSL_key_update, int(Ssl*, int)) \
  X(ERR_clear_error, void()) \
  X(BIO_meth_new, BioMethod*(int, const char*)) \
  X(BIO_meth_set_write, int(BioMethod*, int (*)(Bio*, const char*, int))) \
  X(BIO_meth_set_read, int(BioMethod*, int (*)(Bio*, char*, int))) \
  X(BIO_meth_set_ctrl, int(BioMethod*, long (*)(Bio*, int, long, void*))) \
  X(BIO_new, Bio*(const BioMethod*)) \
  X(BIO_set_data, void(Bio*, void*)) \
  X(BIO_get_data, void*(Bio*)) \
  X(BIO_set_init, void(Bio*, int)) \
  X(BIO_set_flags, void(Bio*, int)) \
  X(BIO_clear_flags, void(Bio*, int))

struct OpenSsl {
#define HOST_DECLARE(name, ...) std::add_pointer_t<__VA_ARGS__> name = nullptr;
  HOST_OPENSSL(HOST_DECLARE)
#undef HOST_DECLARE

  SslContext* context = nullptr;
  BioMethod* bytes = nullptr;
};

struct Key {
  std::mutex lock;
  bool used = false;
  std::optional<Digest> digest;
};

Key& keyOfProcess() {
  static Key& instance = *new Key;
  return instance;
}

OpenSsl load();

/** Loaded at the first use. Never destroyed: connections are used until the process ends. */
const OpenSsl& openSsl() {
  static const OpenSsl& instance = *new OpenSsl(load());
  return instance;
}

unsigned giveKey(const Ssl* ssl, unsigned char* to, unsigned room) {
  const auto* key = static_cast<const Digest*>(openSsl().SSL_get_ex_data(ssl, 0));
  if (key == nullptr || room < key->size()) return 0;
  memcpy(to, key->data(), key->size());
  return static_cast<unsigned>(key->size());
}

constexpr char kIdentity[] = "nccl4j";

}  // namespace

/** The callbacks of OpenSSL, through which no exception may pass. */
struct Tls::Bytes {
  static int write(Bio* bio, const char* data, int size) {
    return transfer(bio, kBioRetryWrite, [&](int socket) {
      return ::send(socket, data, static_cast<size_t>(size), MSG_NOSIGNAL | MSG_DONTWAIT);
    });
  }

  static int read(Bio* bio, char* data, int size) {
    return transfer(bio, kBioRetryRead, [&](int socket) { return recv(socket, data, static_cast<size_t>(size), MSG_DONTWAIT); });
  }

  static long control(Bio*, int command, long, void*) { return command == kBioFlush; }

 private:
  template <class Call>
  static int transfer(Bio* bio, int retry, Call&& call) {
    const OpenSsl& library = openSsl();
    Tls& tls = *static_cast<Tls*>(library.BIO_get_data(bio));
    library.BIO_clear_flags(bio, kBioRetryFlags);
    ssize_t count;
    do {
      count = call(tls.socket_);
    } while (count < 0 && errno == EINTR);
    bool waits = count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS || errno == ENOMEM);
    if (waits) {
      library.BIO_set_flags(bio, retry);
    } else if (count <= 0) {
      tls.ended_ = true;
    }
    return static_cast<int>(count);
  }
};

namespace {

OpenSsl load() {
  std::string why;
  void* handle = nccl4j::openPlugin("libssl.so.3", why);
  if (handle == nullptr) fail(ncclSystemError, "encryption needs OpenSSL 3, whose libssl.so.3 cannot be loaded: %s", why.c_str());
  OpenSsl made;
  auto find = [&](auto& function, const char* name) {
    void* symbol = dlsym(handle, name);
    if (symbol == nullptr) fail(ncclSystemError, "encryption needs OpenSSL 3: the libssl.so.3 that was loaded lacks %s", name);
    memcpy(&function, &symbol, sizeof symbol);
  };
#define HOST_FIND(name, ...) find(made.name, #name);
  HOST_OPENSSL(HOST_FIND)
#undef HOST_FIND
  // Its own handler would free what threads of this engine still use while the process ends.
  made.OPENSSL_init_ssl(kNoExitHandler, nullptr);
  made.context = made.SSL_CTX_new(made.TLS_method());
  made.bytes = made.BIO_meth_new(kBioType, "nccl4j");
  if (made.context == nullptr || made.bytes == nullptr) fail(ncclSystemError, "OpenSSL cannot begin to encrypt");
  bool set = made.SSL_CTX_ctrl(made.context, kSetMinimum, kTls13, nullptr) == 1 &&
             // The hash of the key is that of this cipher.
             made.SSL_CTX_set_ciphersuites(made.context, "TLS_AES_128_GCM_SHA256") == 1 &&
             made.SSL_CTX_set_num_tickets(made.context, 0) == 1 &&
             made.BIO_meth_set_write(made.bytes, Tls::Bytes::write) == 1 && made.BIO_meth_set_read(made.bytes, Tls::Bytes::read) == 1 &&
             made.BIO_meth_set_ctrl(made.bytes, Tls::Bytes::control) == 1;
  if (!set) fail(ncclSystemError, "OpenSSL does not permit TLS 1.3 with TLS_AES_128_GCM_SHA256");
  made.SSL_CTX_ctrl(made.context, kSetMode, kModes, nullptr);
  made.SSL_CTX_set_default_read_buffer_len(made.context, kReadBuffer);
  made.SSL_CTX_set_psk_client_callback(
      made.context, [](Ssl* ssl, const char*, char* identity, unsigned room, unsigned char* key, unsigned roomForKey) -> unsigned {
        if (room < sizeof kIdentity) return 0;
        memcpy(identity, kIdentity, sizeof kIdentity);
        return giveKey(ssl, key, roomForKey);
      });
  made.SSL_CTX_set_psk_server_callback(
      made.context, [](Ssl* ssl, const char* identity, unsigned char* key, unsigned roomForKey) -> unsigned {
        return strcmp(identity, kIdentity) == 0 ? giveKey(ssl, key, roomForKey) : 0;
      });
  return made;
}

}  // namespace

void setEncryptionKey(const char* key) {
  if (key != nullptr) openSsl();
  Key& own = keyOfProcess();
  std::lock_guard<std::mutex> lock(own.lock);
  own.digest.reset();
  if (key != nullptr) own.digest = sha256(key);
}

std::optional<Digest> encryptionKey() {
  Key& own = keyOfProcess();
  std::lock_guard<std::mutex> lock(own.lock);
  own.used = true;
  return own.digest;
}

bool encryptionKeyIsUsed() {
  Key& own = keyOfProcess();
  std::lock_guard<std::mutex> lock(own.lock);
  return own.used;
}

Tls::Tls(Side side, const Digest& key, uint64_t recordsOfKeys) : key_(key), recordsOfKeys_(recordsOfKeys) {
  const OpenSsl& library = openSsl();
  library.ERR_clear_error();
  ssl_ = library.SSL_new(library.context);
  Bio* bio = ssl_ == nullptr ? nullptr : library.BIO_new(library.bytes);
  if (bio == nullptr) {
    if (ssl_ != nullptr) library.SSL_free(ssl_);
    fail(ncclSystemError, "OpenSSL cannot encrypt one more connection");
  }
  library.BIO_set_data(bio, this);
  library.BIO_set_init(bio, 1);
  library.SSL_set_bio(ssl_, bio, bio);
  library.SSL_set_ex_data(ssl_, 0, const_cast<Digest*>(&key_));
  library.SSL_set_read_ahead(ssl_, 1);
  if (side == Side::Accepts) {
    library.SSL_set_accept_state(ssl_);
    return;
  }
  library.SSL_set_connect_state(ssl_);
  // No certificate is trusted: the key alone admits. The other side has none to offer.
  library.SSL_set_verify(ssl_, kVerifyPeer, nullptr);
}

Tls::~Tls() { openSsl().SSL_free(ssl_); }

Tls::Step Tls::handshake(int socket) {
  std::lock_guard<std::mutex> lock(lock_);
  const OpenSsl& library = openSsl();
  socket_ = socket;
  library.ERR_clear_error();
  int result = library.SSL_do_handshake(ssl_);
  if (result == 1) return library.SSL_session_reused(ssl_) == 1 ? Step::Done : Step::Refused;
  int error = library.SSL_get_error(ssl_, result);
  sends_ = error == kWantWrite;
  if (error == kWantRead || error == kWantWrite) return Step::Waiting;
  return ended_ ? Step::Ended : Step::Refused;
}

/** Encrypts at most a record: as sendSome. */
long Tls::write(const void* data, size_t size) {
  const OpenSsl& library = openSsl();
  library.ERR_clear_error();
  if (!pending_ && ++records_ > recordsOfKeys_) {
    records_ = 1;
    constexpr int kOwnKeysOnly = 0;
    if (library.SSL_key_update(ssl_, kOwnKeysOnly) != 1) return -1;
  }
  int written = library.SSL_write(ssl_, data, static_cast<int>(std::min(size, kRecord)));
  pending_ = written <= 0 && library.SSL_get_error(ssl_, written) == kWantWrite;
  return pending_ ? 0 : written > 0 ? written : -1;
}

long Tls::send(int socket, iovec* parts, size_t count) {
  std::lock_guard<std::mutex> lock(lock_);
  socket_ = socket;
  long total = 0;
  for (size_t i = 0; i < count;) {
    iovec& part = parts[i];
    if (part.iov_len == 0) {
      i++;
      continue;
    }
    // Short parts, as a frame before its elements, share a record.
    char record[kRecord];
    size_t size = 0;
    for (size_t next = i; part.iov_len < kRecord && next < count && size < kRecord; next++) {
      size_t step = std::min(parts[next].iov_len, kRecord - size);
      memcpy(record + size, parts[next].iov_base, step);
      size += step;
    }
    long sent = size > 0 ? write(record, size) : write(part.iov_base, part.iov_len);
    if (sent <= 0) return total > 0 ? total : sent;
    total += sent;
    for (auto left = static_cast<size_t>(sent); left > 0;) {
      size_t step = std::min(left, parts[i].iov_len);
      parts[i].iov_base = static_cast<char*>(parts[i].iov_base) + step;
      parts[i].iov_len -= step;
      left -= step;
      if (parts[i].iov_len == 0) i++;
    }
  }
  return total;
}

long Tls::receive(int socket, void* data, size_t size) {
  std::lock_guard<std::mutex> lock(lock_);
  const OpenSsl& library = openSsl();
  socket_ = socket;
  size_t total = 0;
  while (total < size) {
    library.ERR_clear_error();
    int got = library.SSL_read(ssl_, static_cast<char*>(data) + total, static_cast<int>(std::min<size_t>(size - total, 1 << 30)));
    if (got > 0) {
      total += static_cast<size_t>(got);
      continue;
    }
    bool waits = library.SSL_get_error(ssl_, got) == kWantRead;
    // The bytes before an end come first.
    mayHaveMore_ = !waits;
    if (total > 0 || waits) return static_cast<long>(total);
    return -1;
  }
  mayHaveMore_ = true;
  return static_cast<long>(total);
}

}  // namespace host

// bootstrap.h: connects the ranks that share a unique id.
//
// The process that creates a unique id serves it in a thread. Every rank connects to this server and identifies itself;
// the server sends the list of all ranks when the last rank has joined. Each pair of ranks then connects directly, the
// higher rank to the lower. The connections to the server stay open until all pairs are connected, so that every rank
// learns of a death between two steps. The server ends when all ranks are connected, when it has sent an error to all
// ranks, or at its deadline.
#pragma once

#include "comm.h"

namespace host {

/** Seconds that ranks wait for each other: NCCL4J_HOST_INIT_TIMEOUT, 60 by default. */
double initTimeout();

/** Creates an id and starts its server. */
ncclUniqueId makeUniqueId();

/** Ends the server of an unused id. */
void cancelUniqueId(const ncclUniqueId& id) noexcept;

/** Throws unless the bytes are an id of this engine. */
void checkUniqueId(const ncclUniqueId& id, const char* call);

class Members;

/**
 * Connects comm with all other ranks of the same id. The caller has set rank and ranks of comm. `members`: those that this rank knows
 * already.
 */
void connectRanks(Comm& comm, const ncclUniqueId& id, Members* members = nullptr);

/** Identifies the process, also across containers, where process ids repeat. Changes after fork. */
const uint64_t& processToken();

// Messages between ranks and server; see bootstrap.cpp and rendezvous.cpp.

constexpr size_t kNonceBytes = 16;

struct UniqueIdLayout {
  char magic[8];
  char nonce[kNonceBytes];
  int32_t pid;
  char unused[NCCL_UNIQUE_ID_BYTES - 8 - kNonceBytes - 4];
};
static_assert(sizeof(UniqueIdLayout) == NCCL_UNIQUE_ID_BYTES, "fits an id exactly");

/** Returns the abstract socket name for 16 random bytes. */
std::string socketName(const char* nonce);

enum class HelloKind : uint32_t { Join = 1, Cancel };

/** First message of a rank to the server. */
struct Hello {
  uint32_t magic = kWireMagic;
  uint32_t version = kWireVersion;
  HelloKind kind = HelloKind::Join;
  int32_t rank = 0;
  int32_t ranks = 0;
  int32_t pid = 0;
  uint64_t process = 0;  // see processToken
  double timeout = 0;
  int32_t processors = 0;  // that this rank may use
  int32_t unused = 0;
  char nonce[kNonceBytes] = {};
  char listener[kNonceBytes] = {};  // this rank accepts the others here
};

/** Second message of a rank: all its pairs are connected (code 0), or the rank failed. */
struct Report {
  int32_t code = 0;
  char text[508] = {};
};

enum class AnswerKind : uint32_t { Table = 1, Go, Error };

/** Header of the server's messages. TableEntry[ranks] follows Table; a Report follows Error. */
struct Answer {
  AnswerKind kind = AnswerKind::Table;
  uint32_t bytes = 0;
};

struct TableEntry {
  int32_t pid = 0;
  int32_t processors = 0;
  uint64_t process = 0;
  char listener[kNonceBytes] = {};
};

}  // namespace host

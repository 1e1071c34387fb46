// bootstrap.h: how ranks that share a unique id find and connect to each other.
//
// Whoever makes a unique id serves it in a small thread: every rank connects there, says who it is, and gets the list
// of all ranks when the last has come. Each pair of ranks then connects directly, the higher rank to the lower. The
// connections to the server stay open until all pairs are connected, so that everybody learns when somebody dies
// between two steps. The server ends when all ranks are connected, when an error was told to all, or at its deadline.
#pragma once

#include "comm.h"

namespace host {

/** Seconds that ranks wait for each other: NCCL4J_HOST_INIT_TIMEOUT, by default 60. */
double initTimeout();

/** Makes an id and starts its server. */
ncclUniqueId makeUniqueId();

/** Ends the server of an id that is not needed. */
void cancelUniqueId(const ncclUniqueId& id) noexcept;

/** Throws unless these are the bytes of an id of this engine. */
void checkUniqueId(const ncclUniqueId& id, const char* call);

/** Connects comm, whose rank and ranks are set, with all others that were given the same id. */
void connectRanks(Comm& comm, const ncclUniqueId& id);

/** A number that no other process has: process ids are told apart within one container only. Another one after fork. */
uint64_t processToken();

// What ranks and server say to each other; see bootstrap.cpp and rendezvous.cpp.

constexpr size_t kNonceBytes = 16;

struct UniqueIdLayout {
  char magic[8];
  char nonce[kNonceBytes];
  int32_t pid;
  char unused[NCCL_UNIQUE_ID_BYTES - 8 - kNonceBytes - 4];
};
static_assert(sizeof(UniqueIdLayout) == NCCL_UNIQUE_ID_BYTES, "fits an id exactly");

/** The abstract socket name that belongs to 16 random bytes. */
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
  char nonce[kNonceBytes] = {};
  char listener[kNonceBytes] = {};  // where this rank accepts the others
};

/** Second message of a rank: all its pairs are connected (code 0), or it gave up. */
struct Report {
  int32_t code = 0;
  char text[508] = {};
};

enum class AnswerKind : uint32_t { Table = 1, Go, Error };

/** Header of the server's messages; Table is followed by TableEntry[ranks], Error by a Report. */
struct Answer {
  AnswerKind kind = AnswerKind::Table;
  uint32_t bytes = 0;
};

struct TableEntry {
  int32_t pid = 0;
  uint64_t process = 0;
  char listener[kNonceBytes] = {};
};

}  // namespace host

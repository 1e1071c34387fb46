// bootstrap.h: connects the ranks that share a unique id.
//
// The process that creates a unique id serves it in a thread. Every rank connects to this server and identifies itself;
// the server sends the list of all ranks when the last rank has joined. Each pair of ranks then connects directly, the
// higher rank to the lower. The connections to the server stay open until all pairs are connected, so that every rank
// learns of a death between two steps. The server ends when all ranks are connected, when it has sent an error to all
// ranks, or at its deadline.
//
// Ranks of one host connect by Unix sockets, those of two hosts by TCP, with a third stream for puts. Only if the id has an
// address, its server and its ranks listen in the network.
//
// Each of these connections begins with the proofs of proof.h. Their secret is in the unique id, so that only the processes
// that know the id can join, or take part in a connection.
#pragma once

#include "protocol/comm.h"
#include "transport/proof.h"

namespace host {

/** Seconds that ranks wait for each other: NCCL4J_HOST_INIT_TIMEOUT, 60 by default. */
double initTimeout();

/** The hosts from which the server of an id can be reached. */
enum class Reach {
  OwnHost,
  OtherHosts,       // at a port that the system chooses
  AtCommIdAddress,  // OtherHosts, at the address of NCCL_COMM_ID if it is set
};

/** Creates an id and starts its server. */
ncclUniqueId makeUniqueId(Reach reach = Reach::OwnHost);

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

/** The first three fields are those of all protocols. */
struct UniqueIdLayout {
  char magic[8];
  char name[kNonceBytes];  // of the server's socket; follows from the secret
  int32_t pid;
  uint32_t protocol;
  char library[sizeof(Greeting::library)];
  Digest secret;
  uint64_t host;           // of the server; see hostNumber
  NetworkAddress address;  // of the server; not valid if only ranks of its host may join
  char unused[NCCL_UNIQUE_ID_BYTES - 8 - kNonceBytes - 8 - sizeof(Greeting::library) - sizeof(Digest) - 8 - sizeof(NetworkAddress)];

  /** A new one of this process and library. */
  static UniqueIdLayout make();
};
static_assert(sizeof(UniqueIdLayout) == NCCL_UNIQUE_ID_BYTES, "fits an id exactly");

/** Returns the abstract socket name for 16 bytes. */
std::string socketName(const char* bytes, const char* prefix = "nccl4j-");

/** The error of a rank whose library is not that of the id. */
std::string describeOtherLibrary(const Greeting& rank, const UniqueIdLayout& id);

/** The error of a rank whose encryption key is not that of the process that made the id. `kindOfId`: of the greeting of that process. */
std::string describeOtherKey(const Greeting& rank, const UniqueIdLayout& id, uint32_t kindOfId);

enum class HelloKind : uint32_t { Join = 1, Cancel };

/** The message of a rank to the server after the proofs. */
struct Hello {
  HelloKind kind = HelloKind::Join;
  int32_t rank = 0;
  int32_t ranks = 0;
  int32_t pid = 0;
  uint64_t process = 0;  // see processToken
  double timeout = 0;
  int32_t processors = 0;  // that this rank may use
  int32_t fails = 0;       // 1: a Report with the reason follows
  char listener[kNonceBytes] = {};  // this rank accepts the others here
  uint64_t host = 0;                // see hostNumber
  NetworkAddress address;           // this rank accepts those of other hosts here; not valid if the id has none
  NetworkAddress status;            // of the status service of the process; not valid if it has none for other hosts
  char hostName[64] = {};
  char network[64] = {};            // the name of its network plugin; empty for sockets
};

/** The connections of a pair of ranks. The lane for puts is among them only between hosts; see Comm::openLane for the others. */
enum class PairKind : uint32_t { Data, Control, Lane };

/** The message of a rank to a lower one after the proofs. Shared memory comes with it. */
struct PairHello {
  int32_t from = 0;
  int32_t to = 0;
  PairKind kind = PairKind::Data;
  uint32_t shared = 0;  // has memory
};

/** The last message of a rank to the server: all its pairs are connected (code 0), or the rank failed. */
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
  uint64_t host = 0;
  NetworkAddress address;
  NetworkAddress status;
  char hostName[64] = {};
};

}  // namespace host

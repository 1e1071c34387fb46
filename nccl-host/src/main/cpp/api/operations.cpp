// operations.cpp: exported collectives, Send, Recv, and the reduction operators of ranks. Arguments are checked here;
// later failures concern other ranks.

#include <string.h>

#include "api/group.h"
#include "protocol/collconfig.h"

using namespace host;

namespace {

/** Arguments of an exported call. */
struct Arguments {
  Call call;
  const void* send;
  void* recv;
  size_t count;
  ncclDataType_t type;
  int op = 0;
  int root = 0;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  const ncclCollConfig_t* config = nullptr;
};

void checkType(const char* name, int type) {
  if (validType(type)) return;
  fail(ncclInvalidArgument, "%s : invalid type %d, expected 0 to %d", name, type, ncclNumTypes - 1);
}

void checkReduction(const char* name, const Arguments& arguments, Comm& comm, Operation& operation) {
  int op = arguments.op;
  if (op >= 0 && op < ncclNumOps) {
    operation.op = op;
    return;
  }
  std::optional<PreMulSum> made = comm.operators.find(op);
  if (!made) {
    fail(
        ncclInvalidArgument,
        "%s : invalid reduction operation %d: neither one of 0 to %d nor made by ncclRedOpCreatePreMulSum for this "
        "communicator",
        name, op, ncclNumOps - 1);
  }
  if (made->type != arguments.type) {
    fail(
        ncclInvalidArgument, "%s : reduction operation %d was made for %s, but the datatype of this call is %s", name,
        op, typeName(made->type), typeName(arguments.type));
  }
  operation.op = kPreMulSum;
  operation.addExtras().scalar = made->value;
  if (made->onDevice) operation.addExtras().scalarAt = made->address;
}

/** The configuration is NULL for none. */
ncclResult_t runChecked(const Arguments& arguments, const ncclCollConfig_t* config) {
  return guardedCall([&]() -> ncclResult_t {
    const char* name = callName(arguments.call);
    CommRef own;
    const CommRef& comm = requireReadyComm(arguments.comm, name, own);
    checkType(name, arguments.type);
    const StreamRef& stream = requireStream(arguments.stream, name);
    Operation operation;
    operation.call = arguments.call;
    operation.send = static_cast<const char*>(arguments.send);
    operation.recv = static_cast<char*>(arguments.recv);
    operation.count = arguments.count;
    operation.type = arguments.type;
    operation.root = arguments.root;
    if (isReduction(arguments.call)) checkReduction(name, arguments, *comm, operation);
    bool rooted = isRooted(arguments.call);
    bool messages = isPointToPoint(arguments.call);
    if ((rooted || messages) && (arguments.root < 0 || arguments.root >= comm->ranks)) {
      const char* what = rooted ? "root" : "peer";
      fail(
          ncclInvalidArgument, "%s : invalid %s %d (%s should be in the 0..%d range)", name, what, arguments.root, what,
          comm->ranks - 1);
    }
    size_t total;
    if (__builtin_mul_overflow(arguments.count, typeSize(arguments.type), &total) ||
        __builtin_mul_overflow(total, static_cast<size_t>(comm->ranks), &total) || total > PTRDIFF_MAX) {
      fail(
          ncclInvalidArgument, "%s : count %zu of %s for %d ranks is more than memory can hold", name, arguments.count,
          typeName(arguments.type), comm->ranks);
    }
    // Only the root reads the source of Broadcast and Scatter and writes the result of Reduce and Gather.
    bool root = arguments.root == comm->rank;
    bool sends = arguments.call != Call::Recv &&
                 (root || (arguments.call != Call::Broadcast && arguments.call != Call::Scatter));
    bool receives = arguments.call != Call::Send &&
                    (root || (arguments.call != Call::Reduce && arguments.call != Call::Gather));
    if (arguments.count > 0) {
      auto missing = [&](const char* buffer) {
        fail(
            ncclInvalidArgument, "%s : %s argument is NULL, but count is %zu (rank %d)", name, buffer, arguments.count,
            comm->rank);
      };
      if (sends && arguments.send == nullptr) missing("sendbuff");
      if (receives && arguments.recv == nullptr) missing("recvbuff");
    }
    if (config != nullptr) {
      applyCollConfig(*config, *comm, operation);
      if (operation.extras().launchEvent != nullptr) checkEvent(operation.extras().launchEvent, name);
    }
    return submit(comm, std::move(operation), stream);
  });
}

/** As in NCCL, the configuration is checked first, and an invalid one leaves the open group unchanged. */
ncclResult_t run(const Arguments& arguments) {
  if (arguments.config == nullptr) return runChecked(arguments, nullptr);
  return guarded([&]() -> ncclResult_t {
    ncclCollConfig_t config = readCollConfig(*arguments.config, callName(arguments.call));
    return runChecked(arguments, &config);
  });
}

/** A hash to compare matrices between ranks (FNV-1a over 64-bit words). */
uint64_t hashOf(const size_t* matrix, size_t elements) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; i < elements; i++) {
    hash = (hash ^ matrix[i]) * 0x100000001b3u;
    hash ^= hash >> 29;
  }
  return hash;
}

/** Throws unless the block fits into the address space; a zero count may have any displacement. */
void checkBlock(
    const char* counts, const char* displacements, int row, int column, size_t count, size_t start, size_t element) {
  size_t end;
  if (count == 0) return;
  bool overflows = __builtin_add_overflow(count, start, &end) || __builtin_mul_overflow(end, element, &end);
  if (!overflows && end <= PTRDIFF_MAX) return;
  fail(
      ncclInvalidArgument, "AlltoAllv : %s[%d][%d] = %zu from %s[%d][%d] = %zu is more than memory can hold", counts,
      row, column, count, displacements, row, column, start);
}

}  // namespace

extern "C" ncclResult_t ncclAllReduce(
    const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
    cudaStream_t stream) {
  return run({Call::AllReduce, sendbuff, recvbuff, count, datatype, op, 0, comm, stream});
}
HOST_PROFILER_ALIAS(ncclAllReduce)

extern "C" ncclResult_t ncclReduce(
    const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op, int root,
    ncclComm_t comm, cudaStream_t stream) {
  return run({Call::Reduce, sendbuff, recvbuff, count, datatype, op, root, comm, stream});
}
HOST_PROFILER_ALIAS(ncclReduce)

extern "C" ncclResult_t ncclReduceScatter(
    const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
    cudaStream_t stream) {
  return run({Call::ReduceScatter, sendbuff, recvbuff, recvcount, datatype, op, 0, comm, stream});
}
HOST_PROFILER_ALIAS(ncclReduceScatter)

extern "C" ncclResult_t ncclBroadcast(
    const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
    cudaStream_t stream) {
  return run({Call::Broadcast, sendbuff, recvbuff, count, datatype, 0, root, comm, stream});
}
HOST_PROFILER_ALIAS(ncclBroadcast)

// Other ranks see Bcast as a Broadcast; the two may be mixed.
extern "C" ncclResult_t ncclBcast(
    void* buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream) {
  return run({Call::Broadcast, buff, buff, count, datatype, 0, root, comm, stream});
}
HOST_PROFILER_ALIAS(ncclBcast)

extern "C" ncclResult_t ncclAllGather(
    const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream) {
  return run({Call::AllGather, sendbuff, recvbuff, sendcount, datatype, 0, 0, comm, stream});
}
HOST_PROFILER_ALIAS(ncclAllGather)

extern "C" ncclResult_t ncclAlltoAll(
    const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream) {
  return run({Call::AlltoAll, sendbuff, recvbuff, count, datatype, 0, 0, comm, stream});
}
HOST_PROFILER_ALIAS(ncclAlltoAll)

extern "C" ncclResult_t ncclGather(
    const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
    cudaStream_t stream) {
  return run({Call::Gather, sendbuff, recvbuff, count, datatype, 0, root, comm, stream});
}
HOST_PROFILER_ALIAS(ncclGather)

extern "C" ncclResult_t ncclScatter(
    const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
    cudaStream_t stream) {
  return run({Call::Scatter, sendbuff, recvbuff, count, datatype, 0, root, comm, stream});
}
HOST_PROFILER_ALIAS(ncclScatter)

extern "C" ncclResult_t ncclAllReduceConfig(
    const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
    cudaStream_t stream, const ncclCollConfig_t* config) {
  return run({Call::AllReduce, sendbuff, recvbuff, count, datatype, op, 0, comm, stream, config});
}
HOST_PROFILER_ALIAS(ncclAllReduceConfig)

extern "C" ncclResult_t ncclBroadcastConfig(
    const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
    cudaStream_t stream, const ncclCollConfig_t* config) {
  return run({Call::Broadcast, sendbuff, recvbuff, count, datatype, 0, root, comm, stream, config});
}
HOST_PROFILER_ALIAS(ncclBroadcastConfig)

extern "C" ncclResult_t ncclReduceConfig(
    const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op, int root,
    ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config) {
  return run({Call::Reduce, sendbuff, recvbuff, count, datatype, op, root, comm, stream, config});
}
HOST_PROFILER_ALIAS(ncclReduceConfig)

extern "C" ncclResult_t ncclAllGatherConfig(
    const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype, ncclComm_t comm, cudaStream_t
    stream, const ncclCollConfig_t* config) {
  return run({Call::AllGather, sendbuff, recvbuff, sendcount, datatype, 0, 0, comm, stream, config});
}
HOST_PROFILER_ALIAS(ncclAllGatherConfig)

extern "C" ncclResult_t ncclReduceScatterConfig(
    const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t
    comm, cudaStream_t stream, const ncclCollConfig_t* config) {
  return run({Call::ReduceScatter, sendbuff, recvbuff, recvcount, datatype, op, 0, comm, stream, config});
}
HOST_PROFILER_ALIAS(ncclReduceScatterConfig)

extern "C" ncclResult_t ncclAlltoAllConfig(
    const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclComm_t comm, cudaStream_t
    stream, const ncclCollConfig_t* config) {
  return run({Call::AlltoAll, sendbuff, recvbuff, count, datatype, 0, 0, comm, stream, config});
}
HOST_PROFILER_ALIAS(ncclAlltoAllConfig)

extern "C" ncclResult_t ncclGatherConfig(
    const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
    cudaStream_t stream, const ncclCollConfig_t* config) {
  return run({Call::Gather, sendbuff, recvbuff, count, datatype, 0, root, comm, stream, config});
}
HOST_PROFILER_ALIAS(ncclGatherConfig)

extern "C" ncclResult_t ncclScatterConfig(
    const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
    cudaStream_t stream, const ncclCollConfig_t* config) {
  return run({Call::Scatter, sendbuff, recvbuff, count, datatype, 0, root, comm, stream, config});
}
HOST_PROFILER_ALIAS(ncclScatterConfig)

extern "C" ncclResult_t ncclSend(
    const void* sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm, cudaStream_t stream) {
  return run({Call::Send, sendbuff, nullptr, count, datatype, 0, peer, comm, stream});
}
HOST_PROFILER_ALIAS(ncclSend)

extern "C" ncclResult_t ncclRecv(
    void* recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm, cudaStream_t stream) {
  return run({Call::Recv, nullptr, recvbuff, count, datatype, 0, peer, comm, stream});
}
HOST_PROFILER_ALIAS(ncclRecv)

/** Throws unless all ranks expect what the others send. */
static void checkCounts(const size_t* sendcounts, const size_t* recvcounts, const Comm& comm) {
  size_t n = static_cast<size_t>(comm.ranks);
  for (size_t from = 0; from < n; from++) {
    for (size_t to = 0; to < n; to++) {
      size_t sent = sendcounts[from * n + to], expected = recvcounts[to * n + from];
      if (sent == expected) continue;
      fail(
          ncclInvalidArgument,
          "AlltoAllv : sendcounts[%zu][%zu] = %zu differs from recvcounts[%zu][%zu] = %zu (matrices passed by rank %d)", from,
          to, sent, to, from, expected, comm.rank);
    }
  }
}

/** A buffer of an all-to-all-v, with the matrices of its counts and displacements. */
struct SendBlocks {
  const void* buffer;
  const size_t* counts;
  const size_t* displacements;
};

struct RecvBlocks {
  void* buffer;
  const size_t* counts;
  const size_t* displacements;
};

/**
 * All-to-all-v, whose matrices are copied here; the caller may reuse them at once, also inside a group. Windows are not
 * required and the relay buffer is not used. All ranks must pass the same matrices, except for sdispls, of which only this
 * rank's row is used. In place is refused: VCCL would overwrite elements that it still sends.
 */
static ncclResult_t allToAllv(
    const SendBlocks& send, const RecvBlocks& recv, ncclDataType_t datatype, ncclComm_t comm, cudaStream_t cudaStream) {
  return guardedCall([&]() -> ncclResult_t {
    const auto& [sendbuff, sendcounts, sdispls] = send;
    const auto& [recvbuff, recvcounts, rdispls] = recv;
    // The communicator is checked first: nccl4j distinguishes two forms of this function by that check.
    std::shared_ptr<Comm> known = requireReadyComm(comm, "AlltoAllv");
    checkType("AlltoAllv", datatype);
    const StreamRef& stream = requireStream(cudaStream, "AlltoAllv");
    const std::pair<const char*, const size_t*> matrices[] = {
        {"sendcounts", sendcounts}, {"sdispls", sdispls}, {"recvcounts", recvcounts}, {"rdispls", rdispls}};
    for (const auto& matrix : matrices) {
      if (matrix.second == nullptr) fail(ncclInvalidArgument, "AlltoAllv : %s argument is NULL", matrix.first);
    }
    checkCounts(sendcounts, recvcounts, *known);
    const int rank = known->rank;
    size_t n = static_cast<size_t>(known->ranks);
    auto row = [&](const size_t* matrix) {
      const size_t* first = matrix + static_cast<size_t>(rank) * n;
      return std::vector<size_t>(first, first + n);
    };
    auto rows = std::make_shared<AlltoAllvRows>(AlltoAllvRows{
        row(sendcounts), row(sdispls), row(recvcounts), row(rdispls),
        {hashOf(sendcounts, n * n), hashOf(recvcounts, n * n), hashOf(rdispls, n * n)}});
    bool sends = false, receives = false;
    for (size_t at = 0; at < n; at++) {
      size_t sent = rows->sendCounts[at], received = rows->recvCounts[at], element = typeSize(datatype);
      int other = static_cast<int>(at);
      checkBlock("sendcounts", "sdispls", rank, other, sent, rows->sendDisplacements[at], element);
      checkBlock("recvcounts", "rdispls", rank, other, received, rows->recvDisplacements[at], element);
      sends |= sent > 0;
      receives |= received > 0;
    }
    if (sends && sendbuff == nullptr) {
      fail(ncclInvalidArgument, "AlltoAllv : sendbuff argument is NULL, but rank %d sends elements", rank);
    }
    if (receives && recvbuff == nullptr) {
      fail(ncclInvalidArgument, "AlltoAllv : recvbuff argument is NULL, but rank %d receives elements", rank);
    }
    if (sends && receives && sendbuff == recvbuff) {
      fail(ncclInvalidArgument, "AlltoAllv : sendbuff and recvbuff are the same at rank %d: it has no in-place form", rank);
    }
    Operation operation;
    operation.call = Call::AlltoAllv;
    operation.send = static_cast<const char*>(sendbuff);
    operation.recv = static_cast<char*>(recvbuff);
    operation.type = datatype;
    operation.addExtras().rows = std::move(rows);
    return submit(known, std::move(operation), stream);
  });
}

extern "C" int nccl4jHostAlltoAllvArguments(void) {
  int arguments = 11;
  guarded([&]() -> ncclResult_t {
    arguments = static_cast<int>(alltoallvSetting.value());
    return ncclSuccess;
  });
  return arguments;
}

// Both forms of VCCL under its one symbol. The arguments from the eighth on are words, because the forms have different
// types there: type, communicator and stream, or the relay buffer's length before them. The calling conventions of x86-64
// and arm64 pass each in a word of its own; the last one is undefined in the form with ten arguments.
extern "C" __attribute__((visibility("default"))) ncclResult_t allToAllvOfBothForms(
    const void* sendbuff, const size_t* sendcounts, const size_t* sdispls, void* recvbuff, const size_t* recvcounts,
    const size_t* rdispls, void*, uintptr_t eighth, uintptr_t ninth, uintptr_t tenth,
    uintptr_t eleventh) __asm__("ncclAlltoAllv");
extern "C" ncclResult_t allToAllvOfBothForms(
    const void* sendbuff, const size_t* sendcounts, const size_t* sdispls, void* recvbuff, const size_t* recvcounts,
    const size_t* rdispls, void*, uintptr_t eighth, uintptr_t ninth, uintptr_t tenth, uintptr_t eleventh) {
  bool hasRelayCount = true;
  ncclResult_t result = guardedCall([&]() -> ncclResult_t {
    hasRelayCount = alltoallvSetting.value() == 11;
    return ncclSuccess;
  });
  if (result != ncclSuccess) return result;
  uintptr_t type = hasRelayCount ? ninth : eighth;
  uintptr_t comm = hasRelayCount ? tenth : ninth;
  uintptr_t stream = hasRelayCount ? eleventh : tenth;
  return allToAllv(
      {sendbuff, sendcounts, sdispls}, {recvbuff, recvcounts, rdispls},
      static_cast<ncclDataType_t>(static_cast<int>(type)), reinterpret_cast<ncclComm_t>(comm),
      reinterpret_cast<cudaStream_t>(stream));
}
extern "C" decltype(allToAllvOfBothForms) profiledAllToAllvOfBothForms __asm__("pncclAlltoAllv")
    __attribute__((alias("ncclAlltoAllv"), visibility("default")));

extern "C" ncclResult_t ncclRedOpCreatePreMulSum(
    ncclRedOp_t* op, void* scalar, ncclDataType_t datatype, ncclScalarResidence_t residence, ncclComm_t comm) {
  return guarded([&]() -> ncclResult_t {
    const char* name = "RedOpCreatePreMulSum";
    std::shared_ptr<Comm> known = requireReadyComm(comm, name, kAllowRevoked | kAllowSuspended);
    if (op == nullptr) fail(ncclInvalidArgument, "%s : op argument is NULL", name);
    if (scalar == nullptr) fail(ncclInvalidArgument, "%s : scalar argument is NULL", name);
    checkType(name, datatype);
    if (residence != ncclScalarDevice && residence != ncclScalarHostImmediate) {
      fail(
          ncclInvalidArgument,
          "%s : invalid residence %d, expected ncclScalarDevice (0) or ncclScalarHostImmediate (1)", name,
          static_cast<int>(residence));
    }
    PreMulSum made;
    made.type = datatype;
    made.onDevice = residence == ncclScalarDevice;
    made.address = scalar;
    if (!made.onDevice) memcpy(&made.value, scalar, typeSize(datatype));
    *op = known->operators.add(made);
    return ncclSuccess;
  });
}
HOST_PROFILER_ALIAS(ncclRedOpCreatePreMulSum)

extern "C" ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm) {
  return guarded([&]() -> ncclResult_t {
    std::shared_ptr<Comm> known = requireComm(comm, "RedOpDestroy");
    int number = op;
    if (number >= 0 && number < ncclNumOps) {
      fail(ncclInvalidArgument, "RedOpDestroy : operator %d (%s) is builtin", number, opName(number));
    }
    if (!known->operators.remove(number)) {
      fail(ncclInvalidArgument, "RedOpDestroy : operator %d was not made for this communicator", number);
    }
    return ncclSuccess;
  });
}
HOST_PROFILER_ALIAS(ncclRedOpDestroy)

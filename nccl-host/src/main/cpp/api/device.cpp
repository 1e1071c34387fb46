// device.cpp: the host side of the device API, except for kernels. Loads and stores of a rank reach the windows of the
// ranks in its own process. As in NCCL, teams of such ranks have consecutive ranks and equal sizes. There is no
// multicast, no network for kernels, and no device communicator.

#include <stdlib.h>
#include <string.h>

#include <numeric>

#include "protocol/comm.h"

using namespace host;

namespace {

/** The first version with the present layout of ncclCommProperties_t; later versions only append fields. */
constexpr int kFirstVersion = 22902;
constexpr int kLastWithSmallType = 22903;
constexpr size_t kOffsetOfSmallType = 34;

/** Number of ranks with common memory: the largest number that divides all groups of neighbours in one process. */
int lsaSize(const Comm& comm) {
  int size = 0;
  int group = 1;
  for (size_t rank = 1; rank < comm.peers.size(); rank++) {
    if (comm.peers[rank].process == comm.peers[rank - 1].process) {
      group++;
    } else {
      size = std::gcd(size, group);
      group = 1;
    }
  }
  return std::gcd(size, group);
}

ncclTeam_t worldTeam(const Comm& comm) { return {comm.ranks, comm.rank, 1}; }

ncclTeam_t lsaTeam(const Comm& comm) {
  int size = lsaSize(comm);
  return {size, comm.rank % size, 1};
}

ncclTeam_t railTeam(const Comm& comm) {
  int size = lsaSize(comm);
  return {comm.ranks / size, comm.rank / size, size};
}

/** Size of the structure in a release, by its version code. */
size_t propertiesSize(unsigned int version) {
  if (version < 23100) return offsetof(ncclCommProperties_t, commHash);
  if (version < 23200) return offsetof(ncclCommProperties_t, cftSupport);
  return sizeof(ncclCommProperties_t);
}

void checkVersion(unsigned int version) {
  const char* setting = getenv("NCCL_ENABLE_VERSION_CHECK");
  if (version > NCCL_VERSION_CODE && (setting == nullptr || strcmp(setting, "0") != 0)) {
    fail(
        ncclInvalidUsage, "CommQueryProperties : props->version is %u, newer than this library, %d", version,
        NCCL_VERSION_CODE);
  }
  if (version < kFirstVersion) {
    fail(
        ncclInvalidUsage, "CommQueryProperties : props->version is %u, older than the function, %d", version,
        kFirstVersion);
  }
}

/** For team functions, which cannot return an error; NCCL does not check their arguments. */
template <class Result, class Body>
Result ofComm(const char* call, ncclComm_t comm, Result otherwise, Body&& body) {
  Result result = otherwise;
  guarded([&]() -> ncclResult_t {
    result = body(*requireReadyComm(comm, call, kAllowFailed | kAllowRevoked | kAllowSuspended));
    return ncclSuccess;
  });
  return result;
}

/** Writes the result of `addressOf` for a window of a live communicator. */
template <class Body>
ncclResult_t pointer(const char* call, ncclWindow_t handle, void** out, Body&& addressOf) {
  return guarded([&]() -> ncclResult_t {
    if (handle == nullptr) fail(ncclInvalidArgument, "%s : window argument is NULL", call);
    if (out == nullptr) fail(ncclInvalidArgument, "%s : outPtr argument is NULL", call);
    std::shared_ptr<Comm> comm = findCommOf(handle);
    if (!comm) {
      fail(
          ncclInvalidArgument, "%s : %p is no window of a live communicator", call, static_cast<void*>(handle));
    }
    requireComm(comm->handle(), call);
    WindowRef window = comm->windows.find(handle);
    if (!window) fail(ncclInvalidArgument, "%s : %p was deregistered", call, static_cast<void*>(handle));
    *out = addressOf(*comm, *window);
    return ncclSuccess;
  });
}

char* addressAt(const char* call, const Window& window, int rank, size_t offset) {
  if (offset >= window.size) {
    fail(
        ncclInvalidArgument, "%s : offset %zu is not within the window of rank %d, which has %zu bytes", call, offset,
        rank, window.size);
  }
  return window.bases[static_cast<size_t>(rank)] + offset;
}

}  // namespace

extern "C" ncclResult_t ncclCommQueryProperties(ncclComm_t comm, ncclCommProperties_t* props) {
  return guarded([&]() -> ncclResult_t {
    const char* call = "CommQueryProperties";
    std::shared_ptr<Comm> known = requireReadyComm(comm, call);
    if (props == nullptr) fail(ncclInvalidArgument, "%s : props argument is NULL", call);
    if (props->magic != NCCL_API_MAGIC) {
      fail(
          ncclInvalidUsage, "%s : props was not initialized with NCCL_COMM_PROPERTIES_INITIALIZER (magic 0x%x)", call,
          props->magic);
    }
    checkVersion(props->version);
    ncclCommProperties_t properties{};
    properties.size = props->size;
    properties.magic = props->magic;
    properties.version = props->version;
    properties.rank = known->rank;
    properties.nRanks = known->ranks;
    properties.cudaDev = known->device;
    properties.nvmlDev = known->device;
    properties.ginType = NCCL_GIN_TYPE_NONE;
    if (props->version <= kLastWithSmallType) {
      memcpy(props, &properties, kOffsetOfSmallType);
      reinterpret_cast<char*>(props)[kOffsetOfSmallType] = NCCL_GIN_TYPE_NONE;
      return ncclSuccess;
    }
    properties.nLsaTeams = railTeam(*known).nRanks;
    properties.hostRmaSupport = known->settings.rmaContexts > 0;
    properties.railedGinType = NCCL_GIN_TYPE_NONE;
    properties.commHash = known->hash;
    properties.ginConnectionType = NCCL_GIN_CONNECTION_NONE;
    memcpy(props, &properties, propertiesSize(props->version));
    return ncclSuccess;
  });
}
HOST_PROFILER_ALIAS(ncclCommQueryProperties)

extern "C" ncclResult_t ncclGetLsaDevicePointer(ncclWindow_t window, size_t offset, int lsaRank, void** outPtr) {
  const char* call = "GetLsaDevicePointer";
  return pointer(call, window, outPtr, [&](const Comm& comm, const Window& known) {
    ncclTeam_t team = lsaTeam(comm);
    if (lsaRank < 0 || lsaRank >= team.nRanks) {
      fail(
          ncclInvalidArgument, "%s : invalid lsaRank %d (lsaRank should be in the 0..%d range)", call, lsaRank,
          team.nRanks - 1);
    }
    return addressAt(call, known, comm.rank - team.rank + lsaRank, offset);
  });
}
HOST_PROFILER_ALIAS(ncclGetLsaDevicePointer)

extern "C" ncclResult_t ncclGetPeerDevicePointer(ncclWindow_t window, size_t offset, int peer, void** outPtr) {
  const char* call = "GetPeerDevicePointer";
  return pointer(call, window, outPtr, [&](const Comm& comm, const Window& known) -> char* {
    if (peer < 0 || peer >= comm.ranks) {
      fail(
          ncclInvalidArgument, "%s : invalid peer %d (peer should be in the 0..%d range)", call, peer, comm.ranks - 1);
    }
    int size = lsaSize(comm);
    return peer / size == comm.rank / size ? addressAt(call, known, peer, offset) : nullptr;
  });
}
HOST_PROFILER_ALIAS(ncclGetPeerDevicePointer)

extern "C" ncclResult_t ncclGetLsaMultimemDevicePointer(ncclWindow_t window, size_t, void** outPtr) {
  return pointer("GetLsaMultimemDevicePointer", window, outPtr, [](const Comm&, const Window&) { return nullptr; });
}
HOST_PROFILER_ALIAS(ncclGetLsaMultimemDevicePointer)

extern "C" ncclResult_t ncclGetMultimemDevicePointer(
    ncclWindow_t window, size_t, ncclMultimemHandle_t multimem, void** outPtr) {
  const char* call = "GetMultimemDevicePointer";
  return pointer(call, window, outPtr, [&](const Comm&, const Window&) {
    if (multimem.mcBasePtr == nullptr) fail(ncclInvalidArgument, "%s : multimem.mcBasePtr is NULL", call);
    return nullptr;
  });
}
HOST_PROFILER_ALIAS(ncclGetMultimemDevicePointer)

extern "C" ncclTeam_t ncclTeamWorld(ncclComm_t comm) {
  return ofComm("TeamWorld", comm, ncclTeam_t{}, worldTeam);
}
HOST_PROFILER_ALIAS(ncclTeamWorld)

extern "C" ncclTeam_t ncclTeamLsa(ncclComm_t comm) { return ofComm("TeamLsa", comm, ncclTeam_t{}, lsaTeam); }
HOST_PROFILER_ALIAS(ncclTeamLsa)

extern "C" ncclTeam_t ncclTeamRail(ncclComm_t comm) { return ofComm("TeamRail", comm, ncclTeam_t{}, railTeam); }
HOST_PROFILER_ALIAS(ncclTeamRail)

extern "C" int ncclTeamRankToWorld(ncclComm_t comm, ncclTeam_t team, int rank) {
  return ofComm("TeamRankToWorld", comm, -1, [&](const Comm& known) {
    return known.rank + (rank - team.rank) * team.stride;
  });
}
HOST_PROFILER_ALIAS(ncclTeamRankToWorld)

extern "C" int ncclTeamRankToLsa(ncclComm_t comm, ncclTeam_t team, int rank) {
  return ofComm("TeamRankToLsa", comm, -1, [&](const Comm& known) {
    return lsaTeam(known).rank + (rank - team.rank) * team.stride;
  });
}
HOST_PROFILER_ALIAS(ncclTeamRankToLsa)

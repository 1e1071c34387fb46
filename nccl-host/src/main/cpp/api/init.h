// init.h: shared by the exported functions that create communicators.
#pragma once

#include "api/group.h"

namespace host {

/** The settings of a new communicator: `inherited` if the caller gave no configuration. */
CommSettings settingsOf(const ncclConfig_t* given, const CommSettings& inherited, const char* call);

/** A job that connects with the other ranks of an id. */
InitJob initJob(
    ncclComm_t* out, int ranks, const ncclUniqueId& id, int rank, int device, const CommSettings& settings,
    const char* call);

ncclResult_t initOne(InitJob job);

}  // namespace host

// init.h: what the exported functions that make communicators share.
#pragma once

#include "group.h"

namespace host {

/** The settings of a new communicator: `inherited` where there is no configuration. */
CommSettings settingsOf(const ncclConfig_t* given, const CommSettings& inherited, const char* call);

/** A job that meets the other ranks at an id. */
InitJob initJob(
    ncclComm_t* out, int ranks, const ncclUniqueId& id, int rank, int device, const CommSettings& settings,
    const char* call);

ncclResult_t initOne(InitJob job);

}  // namespace host

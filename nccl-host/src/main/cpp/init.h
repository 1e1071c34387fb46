// init.h: what the exported functions that make communicators share.
#pragma once

#include "group.h"

namespace host {

/** The caller's configuration, read only as far as its size and version say; the rest keeps the values for "not set". */
ncclConfig_t readConfig(const ncclConfig_t* given, const char* call);

bool isBlocking(const ncclConfig_t& config, bool inherited);

/** A job that meets the other ranks at an id. */
InitJob initJob(
    ncclComm_t* out, int ranks, const ncclUniqueId& id, int rank, int device, bool blocking, const char* call);

ncclResult_t initOne(InitJob job);

}  // namespace host

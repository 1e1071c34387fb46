// collconfig.h: the configuration of one collective, ncclCollConfig_t.
#pragma once

#include "protocol/task.h"

namespace host {

/** Reads the caller's configuration as far as its size says. Other fields have initial values. */
ncclCollConfig_t readCollConfig(const ncclCollConfig_t& given, const char* call);

/** Checks the selection of algorithms against the call and stores the configuration in its operation. */
void applyCollConfig(const ncclCollConfig_t& config, Comm& comm, Operation& operation);

/** The first difference between two ranks, as "minCTAs 4" of one and "minCTAs unset" of the other; empty if none. */
std::pair<std::string, std::string> configDifference(const ConfigWords& one, const ConfigWords& other);

}  // namespace host

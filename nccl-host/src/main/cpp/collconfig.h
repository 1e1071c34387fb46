// collconfig.h: the configuration of one collective, ncclCollConfig_t.
#pragma once

#include "task.h"

namespace host {

/** True for the calls that can have a configuration. */
bool isConfigurable(Call call);

/** The caller's configuration, read only as far as its size says; the rest, and all of NULL, as the initializer has it. */
ncclCollConfig_t readCollConfig(const ncclCollConfig_t* given, const char* call);

/** Checks what the selection of algorithms means for a call, and puts what is set into its operation. */
void applyCollConfig(const ncclCollConfig_t& config, Comm& comm, Operation& operation);

/** What two ranks have set differently, as "minCTAs 4" of one and "minCTAs unset" of the other; empty if nothing. */
std::pair<std::string, std::string> configDifference(const ConfigWords& one, const ConfigWords& other);

}  // namespace host

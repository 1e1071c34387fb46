// settings.h: what the engine reads from its environment, each time it is needed.
#pragma once

namespace host {

/** A number of seconds. */
struct Setting {
  const char* key;
  double fallback;

  /** The environment's value, or the fallback if it has none. Throws if that is no positive number. */
  double value() const;
};

/** How long ranks wait for each other when a communicator is made. */
extern const Setting& initTimeoutSetting;

/** How long an operation may take; 0 for ever. */
extern const Setting& operationTimeoutSetting;

}  // namespace host

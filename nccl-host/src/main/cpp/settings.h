// settings.h: what the engine reads from its environment, each time it is needed.
#pragma once

namespace host {

enum class Unit { Seconds, Switch };

/** The number that the whole text is, in the "C" locale; false when it is none or not finite. */
bool parseNumber(const char* text, double& number);

/** A number of seconds, or 1 for on and 0 for off. Where the fallback is no limit, 0, the environment may say so too. */
struct Setting {
  const char* key;
  double fallback;
  Unit unit;

  /** The environment's value, or the fallback if it has none. Throws if that is none of its unit. */
  double value() const;
};

/** How long ranks wait for each other when a communicator is made. */
extern const Setting& initTimeoutSetting;

/** How long an operation may take; 0 for ever. */
extern const Setting& operationTimeoutSetting;

/** Whether the connections that this rank makes, those to lower ranks, use shared memory. */
extern const Setting& sharedMemorySetting;

}  // namespace host

// settings.h: settings from the environment, read anew at each use.
#pragma once

namespace host {

/** Parses the whole text as a number in the "C" locale; returns false if it is no number or not finite. */
bool parseNumber(const char* text, double& number);

/**
 * A number of seconds, a switch (0: off, 1: on), or a number of arguments (10 or 11). With a fallback of 0 seconds (no
 * limit) the environment may set 0.
 */
struct Setting {
  enum class Unit { Seconds, Switch, Arguments };

  const char* key;
  double fallback;
  Unit unit;

  /** The environment's value, or the fallback if unset. Throws if the value does not fit the unit. */
  double value() const;
};

/** Time limit for the ranks to wait for each other at the creation of a communicator. */
extern const Setting& initTimeoutSetting;

/** Time limit for an operation; 0: none. */
extern const Setting& operationTimeoutSetting;

/** Shared memory for the connections that this rank opens, those to lower ranks. */
extern const Setting& sharedMemorySetting;

/** Copies of many elements from the memory of another rank's process. If one of two ranks sets 0, neither copies. */
extern const Setting& singleCopySetting;

/** The form of ncclAlltoAllv. */
extern const Setting& alltoallvSetting;

}  // namespace host

// settings.cpp: the settings, and the exported functions that return them as NCCL's parameters. NCCL has no type for
// fractions of seconds, so all values are strings; reading them as numbers returns ncclInvalidArgument, as with any
// type other than the parameter's own.

#include "base/settings.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "base/ofthread.h"

namespace host {
namespace {

const Setting settings[] = {
    {"NCCL4J_HOST_INIT_TIMEOUT", 60, Setting::Unit::Seconds},
    {"NCCL4J_HOST_OP_TIMEOUT", 0, Setting::Unit::Seconds},
    {"NCCL4J_HOST_SHARED_MEMORY", 1, Setting::Unit::Switch},
    {"NCCL4J_HOST_SINGLE_COPY", 1, Setting::Unit::Switch},
    {"NCCL4J_HOST_ALLTOALLV", 11, Setting::Unit::Arguments},
};

}  // namespace

const Setting& initTimeoutSetting = settings[0];
const Setting& operationTimeoutSetting = settings[1];
const Setting& sharedMemorySetting = settings[2];
const Setting& singleCopySetting = settings[3];
const Setting& alltoallvSetting = settings[4];

bool parseNumber(const char* text, double& number) {
  PlainLocale plain;
  char* end = nullptr;
  number = strtod(text, &end);
  return end != text && *end == '\0' && isfinite(number);
}

double Setting::value() const {
  const char* text = getenv(key);
  if (text == nullptr || *text == '\0') return fallback;
  bool mayBeZero = fallback == 0;
  double number;
  if (parseNumber(text, number)) {
    bool valid = unit == Unit::Switch      ? number == 0 || number == 1
                 : unit == Unit::Arguments ? number == 10 || number == 11
                                           : number > 0 || (mayBeZero && number == 0);
    if (valid) return number;
  }
  fail(
      ncclInvalidArgument, "%s must be %s: '%s'", key,
      unit == Unit::Switch      ? "0 or 1"
      : unit == Unit::Arguments ? "10 or 11"
      : mayBeZero               ? "a number of seconds, or 0 for no limit"
                                : "a number of seconds above 0",
      text);
}

}  // namespace host

using namespace host;

namespace {

/** The memory to which the last calls of a thread returned pointers. */
struct Returned {
  std::string text;
  std::string textOfKey;
  const char* keys[std::size(settings)];
};

std::string textOf(const Setting& setting) { return format("%g", setting.value()); }

const Setting* find(const char* key) {
  auto found = std::find_if(
      std::begin(settings), std::end(settings), [&](const Setting& setting) { return strcmp(setting.key, key) == 0; });
  return found == std::end(settings) ? nullptr : found;
}

void requireArguments(const char* call, bool present) {
  if (!present) fail(ncclInvalidArgument, "%s : an argument is NULL", call);
}

const Setting& requireSetting(const char* call, ncclParamHandle_t handle) {
  for (const Setting& setting : settings) {
    if (reinterpret_cast<const void*>(handle) == &setting) return setting;
  }
  fail(ncclInvalidArgument, "%s : %p was not made by ncclParamBind", call, static_cast<const void*>(handle));
}

ncclResult_t refuseNumber(const char* call, ncclParamHandle_t handle, const void* out) {
  return guarded([&]() -> ncclResult_t {
    requireArguments(call, handle != nullptr && out != nullptr);
    fail(
        ncclInvalidArgument, "%s : the value of %s is a string: use ncclParamGetStr", call,
        requireSetting(call, handle).key);
  });
}

}  // namespace

extern "C" ncclResult_t ncclParamBind(ncclParamHandle_t* out, const char* key) {
  return guarded([&]() -> ncclResult_t {
    requireArguments("ParamBind", out != nullptr && key != nullptr);
    const Setting* setting = find(key);
    if (setting == nullptr) fail(ncclInvalidArgument, "ParamBind : the host engine has no parameter %s", key);
    *out = reinterpret_cast<ncclParamHandle_t>(const_cast<Setting*>(setting));
    return ncclSuccess;
  });
}
HOST_PROFILER_ALIAS(ncclParamBind)

#define HOST_NUMBER_GETTER(name, type)                                \
  extern "C" ncclResult_t nccl##name(ncclParamHandle_t h, type* out) { \
    return refuseNumber(#name, h, out);                                \
  }                                                                    \
  HOST_PROFILER_ALIAS(nccl##name)

HOST_NUMBER_GETTER(ParamGetI8, int8_t)
HOST_NUMBER_GETTER(ParamGetI16, int16_t)
HOST_NUMBER_GETTER(ParamGetI32, int32_t)
HOST_NUMBER_GETTER(ParamGetI64, int64_t)
HOST_NUMBER_GETTER(ParamGetU8, uint8_t)
HOST_NUMBER_GETTER(ParamGetU16, uint16_t)
HOST_NUMBER_GETTER(ParamGetU32, uint32_t)
HOST_NUMBER_GETTER(ParamGetU64, uint64_t)

extern "C" ncclResult_t ncclParamGetStr(ncclParamHandle_t h, const char** out) {
  return guarded([&]() -> ncclResult_t {
    requireArguments("ParamGetStr", h != nullptr && out != nullptr);
    std::string& text = ofThread<Returned>().text;
    text = textOf(requireSetting("ParamGetStr", h));
    *out = text.c_str();
    return ncclSuccess;
  });
}
HOST_PROFILER_ALIAS(ncclParamGetStr)

extern "C" ncclResult_t ncclParamGet(ncclParamHandle_t h, void* out, int maxLen, int* len) {
  return guarded([&]() -> ncclResult_t {
    requireArguments("ParamGet", h != nullptr && out != nullptr && len != nullptr);
    std::string text = textOf(requireSetting("ParamGet", h));
    int size = static_cast<int>(text.size()) + 1;
    *len = size <= maxLen ? size : 0;
    if (size > maxLen) {
      fail(ncclInvalidArgument, "ParamGet : maxLen is %d, but the value takes %d bytes", maxLen, size);
    }
    memcpy(out, text.c_str(), static_cast<size_t>(size));
    return ncclSuccess;
  });
}
HOST_PROFILER_ALIAS(ncclParamGet)

extern "C" ncclResult_t ncclParamGetParameter(const char* key, const char** value, int* valueLen) {
  return guarded([&]() -> ncclResult_t {
    requireArguments("ParamGetParameter", key != nullptr && value != nullptr && valueLen != nullptr);
    *value = nullptr;
    *valueLen = 0;
    const Setting* setting = find(key);
    if (setting == nullptr) fail(ncclInvalidArgument, "ParamGetParameter : the host engine has no parameter %s", key);
    std::string& text = ofThread<Returned>().textOfKey;
    text = textOf(*setting);
    *value = text.c_str();
    *valueLen = static_cast<int>(text.size());
    return ncclSuccess;
  });
}
HOST_PROFILER_ALIAS(ncclParamGetParameter)

extern "C" ncclResult_t ncclParamGetAllParameterKeys(const char*** table, int* tableLen) {
  return guarded([&]() -> ncclResult_t {
    requireArguments("ParamGetAllParameterKeys", table != nullptr && tableLen != nullptr);
    const char** keys = ofThread<Returned>().keys;
    std::transform(std::begin(settings), std::end(settings), keys, [](const Setting& setting) { return setting.key; });
    *table = keys;
    *tableLen = static_cast<int>(std::size(settings));
    return ncclSuccess;
  });
}
HOST_PROFILER_ALIAS(ncclParamGetAllParameterKeys)

extern "C" void ncclParamDumpAll(void) {
  guarded([]() -> ncclResult_t {
    for (const Setting& setting : settings) {
      fputs(format("%s=%g (default %g)\n", setting.key, setting.value(), setting.fallback).c_str(), stdout);
    }
    return ncclSuccess;
  });
  fflush(stdout);
}
HOST_PROFILER_ALIAS(ncclParamDumpAll)
